//! `interlock rollout status`: which version each cluster runs, and what is in flight.

use super::Common;
use super::picture::{cluster, cluster_page, clusters_page};
use super::record::{all, one, open};
use crate::output::{Format, say, say_json};
use jiff::Timestamp;
use std::process::ExitCode;

/// Options of `rollout status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster [default: all clusters, one line each]
    cluster: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = open(&args.common).await?;
    let now = Timestamp::now();
    let needs_a_person = match &args.cluster {
        Some(name) => {
            let row = cluster(&one(&hub, name).await?);
            match args.common.output {
                Format::Json => say_json(&row)?,
                Format::Text => say(&cluster_page(&row, now))?,
            }
            row.needs_a_person()
        }
        None => {
            let rows: Vec<_> = all(&hub).await?.iter().map(cluster).collect();
            match args.common.output {
                Format::Json => say_json(&rows)?,
                Format::Text => say(&clusters_page(&rows, now))?,
            }
            rows.iter().any(super::picture::ClusterRow::needs_a_person)
        }
    };
    Ok(if needs_a_person { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
