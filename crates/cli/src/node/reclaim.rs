//! `interlock node reclaim`: takes machines back from their tenant.

use super::Common;
use super::hub::Hub;
use super::picture::{Row, row};
use crate::output::{Format, ProgressLine, say, say_json};
use anyhow::bail;
use interlock_api::nodes::PhysicalNode;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a machine is read while it is waited for.
const EVERY: Duration = Duration::from_millis(300);
/// How often a write that met another one is tried again.
const ATTEMPTS: usize = 5;

pub(super) const EXPLAINED: &str = "\
The present epoch of each machine is revoked (spec.reclaimEpoch): a number, which cannot hit the next owner. A machine that
runs a cluster is drained first, and keeps its network until then. The machine is in the pool again once every one of its
DPUs has reported that it is clean.

Exit status: 0 revoked, or with --wait: back in the pool; 1 not in time, or a person has to act; 2 usage error.";

/// Options of `node reclaim`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The PhysicalNodes
    #[arg(value_name = "MACHINE", required = true)]
    nodes: Vec<String>,
    /// Hold the machines outside of the pool afterwards, for this reason
    #[arg(long, value_name = "REASON")]
    quarantine: Option<String>,
    /// Wait until the machines are back in the pool, or in quarantine
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::words::time)]
    timeout: Duration,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = Hub::open(&args.common.location).await?;
    // Nothing is revoked if one of the names is wrong.
    for name in &args.nodes {
        hub.node(name).await?;
    }
    let mut revoked = Vec::new();
    for name in &args.nodes {
        revoked.push(revoke(&hub, name, args.quarantine.as_deref()).await?);
    }
    let rows = settled(&hub, args, &revoked).await?;
    match args.common.output {
        Format::Json => say_json(&rows)?,
        Format::Text => say(&page(&rows, &revoked, args.wait))?,
    }
    let is_done = !args.wait || left(&rows, &revoked) == 0;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a machine was in the pool since an epoch was revoked: it is there, or has a later epoch already.
fn is_back(row: &Row, revoked: i64) -> bool {
    row.phase.is_clean() || row.epoch > revoked
}

/// How many machines are not back yet.
fn left(rows: &[Row], revoked: &[i64]) -> usize {
    rows.iter().zip(revoked).filter(|(row, revoked)| !is_back(row, **revoked)).count()
}

/// Revokes the epoch that the machine has now, which it returns. The write is refused if the machine has changed since.
async fn revoke(hub: &Hub, name: &str, quarantine: Option<&str>) -> anyhow::Result<i64> {
    let nodes: Api<PhysicalNode> = Api::all(hub.client.clone());
    for _ in 0..ATTEMPTS {
        let node = hub.node(name).await?;
        let status = node.status_or_default();
        let mut spec = json!({});
        if status.phase.is_assigned() && node.spec.reclaim_epoch < status.epoch {
            spec["reclaimEpoch"] = json!(status.epoch);
        }
        if let Some(reason) = quarantine {
            spec["quarantine"] = json!({"reason": reason});
        }
        if spec == json!({}) {
            return Ok(status.epoch);
        }
        let seen = json!({"uid": node.uid(), "resourceVersion": node.resource_version()});
        let patch = json!({"metadata": seen, "spec": spec});
        match nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => return Ok(status.epoch),
            Err(kube::Error::Api(refused)) if refused.code == 409 => {}
            Err(error) => return Err(hub.told(error, &format!("reclaim {name}"))),
        }
    }
    bail!("PhysicalNode {name} changes all the time: try again")
}

/// The machines once they are in the pool again, or the time is over.
async fn settled(hub: &Hub, args: &Args, revoked: &[i64]) -> anyhow::Result<Vec<Row>> {
    let deadline = Instant::now() + args.timeout;
    let progress = ProgressLine::default();
    loop {
        let reports = hub.reports().await?;
        let mut rows = Vec::new();
        for name in &args.nodes {
            rows.push(row(&hub.node(name).await?, &reports));
        }
        let left = left(&rows, revoked);
        if !args.wait || left == 0 || Instant::now() > deadline {
            progress.clear();
            return Ok(rows);
        }
        if ProgressLine::is_wanted() {
            progress.show(&format!("{} of {} machines are clean", rows.len() - left, rows.len()));
        }
        sleep(EVERY).await;
    }
}

fn page(rows: &[Row], revoked: &[i64], has_waited: bool) -> String {
    let mut page = String::new();
    for (row, revoked) in rows.iter().zip(revoked) {
        let Row { name, phase, epoch, .. } = row;
        if epoch > revoked {
            let tenant = row.tenant.as_deref().unwrap_or("-");
            let claim = row.claim.as_deref().unwrap_or("-");
            page += &format!(
                "machine {name}: was back in the pool, and is assigned again: claim {claim} of tenant {tenant} wanted a \
                 machine (epoch {epoch})\nnext: interlock node assign {tenant}/{claim} --count N, or reclaim with \
                 --quarantine REASON\n"
            );
            continue;
        }
        match phase.is_assigned() && !has_waited {
            true => page += &format!("machine {name}: epoch {epoch} is to be revoked\n"),
            false => page += &format!("machine {name}: {phase} (epoch {epoch})\n"),
        }
        for wait in row.waits_for.iter().filter(|_| !phase.is_assigned() || has_waited) {
            page += &format!("  waits: {wait}\n");
        }
        if !phase.is_clean() {
            page += &format!("next: interlock node explain {name}\n");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_api::nodes::NodePhase;

    #[test]
    fn a_machine_that_is_not_clean_yet_comes_with_what_it_waits_for_and_a_command() {
        let row = Row {
            name: "n1".to_owned(),
            rack: "r1".to_owned(),
            phase: NodePhase::Releasing,
            since: None,
            tenant: None,
            claim: None,
            cluster: None,
            epoch: 3,
            floor: 3,
            network_ready: false,
            waits_for: vec!["DPU r1.d2 has not reported this machine".to_owned()],
            needs_a_person: false,
            next: None,
        };
        let bound = Row { phase: NodePhase::Bound, waits_for: Vec::new(), ..row.clone() };
        assert_eq!(
            page(std::slice::from_ref(&row), &[3], false),
            "machine n1: Releasing (epoch 3)\n  waits: DPU r1.d2 has not reported this machine\n\
             next: interlock node explain n1\n"
        );
        assert!(page(&[bound], &[3], false).starts_with("machine n1: epoch 3 is to be revoked\n"));
        let back = Row { phase: NodePhase::Available, waits_for: Vec::new(), ..row.clone() };
        assert_eq!(
            page(std::slice::from_ref(&back), &[3], true),
            "machine n1: Available (epoch 3)\n"
        );
        assert_eq!(left(&[row.clone(), back], &[3, 3]), 1);
        // A claim that still wants it has got it again: it was in the pool in between.
        let again =
            Row { phase: NodePhase::Bound, epoch: 4, tenant: Some("blue".to_owned()), ..row };
        assert_eq!(left(std::slice::from_ref(&again), &[3]), 0);
        assert!(page(&[again], &[3], true).contains("assigned again: claim - of tenant blue"));
    }
}
