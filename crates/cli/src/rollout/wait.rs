//! Waiting until a request has ended, with its progress on a terminal.

use super::picture::{RequestRow, line, request_page};
use crate::hub::Hub;
use crate::output::{Format, ProgressLine, say, say_json};
use anyhow::bail;
use interlock_api::rollouts::ClusterUpdate;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a request is read while it is waited for.
const EVERY: Duration = Duration::from_millis(300);

/// Whether the end is waited for, and how long.
#[derive(Debug, clap::Args)]
pub(super) struct Waiting {
    /// Wait until the request has ended
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = crate::words::time)]
    timeout: Duration,
}

impl Waiting {
    /// Whether the end is waited for.
    pub(super) fn is_wanted(&self) -> bool {
        self.wait
    }
}

/// The request when it has ended, or when the time is over.
pub(super) async fn until_ended(
    hub: &Hub,
    request: &ClusterUpdate,
    waiting: &Waiting,
) -> anyhow::Result<ClusterUpdate> {
    let namespace = request.namespace().unwrap_or_default();
    let updates: Api<ClusterUpdate> = Api::namespaced(hub.client.clone(), &namespace);
    let (deadline, progress) = (Instant::now() + waiting.timeout, ProgressLine::default());
    loop {
        let found = updates.get_opt(&request.name_any()).await;
        let found = found.map_err(|error| hub.told(error, "read the ClusterUpdate"))?;
        let Some(found) = found.filter(|found| found.uid() == request.uid()) else {
            progress.clear();
            bail!("ClusterUpdate {namespace}/{} was deleted", request.name_any());
        };
        if found.status_or_default().phase.is_terminal() || Instant::now() >= deadline {
            progress.clear();
            return Ok(found);
        }
        if ProgressLine::is_wanted() {
            progress.show(&shown(&found, Timestamp::now()));
        }
        sleep(EVERY).await;
    }
}

/// The line on the terminal: how far it is, and the first thing that is not healthy yet.
fn shown(update: &ClusterUpdate, now: Timestamp) -> String {
    let status = update.status_or_default();
    let mut text = line(&RequestRow::from(update), now);
    if let Some(objects) = &status.objects {
        text += &format!("; {} of {} objects are healthy", objects.current, objects.wanted);
    }
    if let Some(first) = status.not_ready.first() {
        text += &format!("; {}: {}", first.id, first.message);
    }
    text
}

/// Prints a request, and says by the exit status whether it is as was asked for.
pub(super) fn answer(
    output: Format,
    row: &RequestRow,
    is_as_asked: bool,
) -> anyhow::Result<ExitCode> {
    match output {
        Format::Json => say_json(row)?,
        Format::Text => say(&request_page(row, Timestamp::now()))?,
    }
    Ok(if is_as_asked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
