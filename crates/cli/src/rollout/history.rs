//! `interlock rollout history`: the requests of a cluster, and how each ended.

use super::Common;
use super::picture::{RequestRow, history_page};
use super::record::{one, open};
use crate::output::{Format, say, say_json};
use jiff::Timestamp;
use std::process::ExitCode;

/// Options of `rollout history`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster
    cluster: String,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = open(&args.common).await?;
    let known = one(&hub, &args.cluster).await?;
    let rows: Vec<RequestRow> = known.requests().iter().map(RequestRow::from).collect();
    match args.common.output {
        Format::Json => say_json(&rows)?,
        Format::Text => say(&history_page(&known.cluster, &rows, Timestamp::now()))?,
    }
    Ok(ExitCode::SUCCESS)
}
