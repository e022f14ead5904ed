//! `interlock node explain`: whose a machine is, what it waits for, and the next command.

use super::Common;
use super::hub::Hub;
use super::picture::{Row, row};
use crate::output::{Format, say, say_json};
use crate::words::age_or_dash;
use interlock_api::nodes::NodePhase;
use jiff::Timestamp;
use std::process::ExitCode;

/// Options of `node explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The PhysicalNode
    #[arg(value_name = "MACHINE")]
    node: String,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = Hub::open(&args.common.location).await?;
    let node = hub.node(&args.node).await?;
    let row = row(&node, &hub.reports().await?);
    match args.common.output {
        Format::Json => say_json(&row)?,
        Format::Text => say(&page(&row, Timestamp::now()))?,
    }
    Ok(if row.needs_a_person { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn page(row: &Row, now: Timestamp) -> String {
    let Row { name, rack, phase, epoch, floor, .. } = row;
    let mut page = format!(
        "machine {name} of rack {rack}: {phase} for {} (epoch {epoch}, floor {floor})\n",
        age_or_dash(now, row.since)
    );
    page += &format!("  {}\n", meaning(row));
    for wait in &row.waits_for {
        page += &format!("  waits: {wait}\n");
    }
    if let Some(next) = next(row) {
        page += &format!("next: {next}\n");
    }
    page
}

/// What the phase means for whoever asks.
fn meaning(row: &Row) -> String {
    let nobody = "nobody".to_owned();
    let tenant = row.tenant.as_ref().unwrap_or(&nobody);
    let claim = row.claim.as_deref().unwrap_or("-");
    match row.phase {
        NodePhase::Available => "it is in the pool: any tenant may get it".to_owned(),
        NodePhase::Bound if row.network_ready => {
            format!("it is tenant {tenant}'s (claim {claim}), and all its DPUs have it programmed")
        }
        NodePhase::Bound => format!("it is tenant {tenant}'s (claim {claim})"),
        NodePhase::Draining => {
            let cluster = row.cluster.as_deref().unwrap_or("-");
            format!(
                "it is tenant {tenant}'s until cluster {cluster} is drained, and keeps its network"
            )
        }
        NodePhase::Releasing if row.tenant.is_none() => {
            "its DPUs are not known to be clean yet: nobody gets it before".to_owned()
        }
        NodePhase::Releasing => {
            format!("it was tenant {tenant}'s; nobody gets it before all its DPUs are clean")
        }
        NodePhase::Quarantined => "it is held outside of the pool".to_owned(),
    }
}

fn next(row: &Row) -> Option<String> {
    let name = &row.name;
    row.next.clone().or_else(|| match row.phase {
        NodePhase::Quarantined => Some(format!(
            "kubectl patch physicalnode {name} --type merge -p '{{\"spec\":{{\"quarantine\":null}}}}'"
        )),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(phase: NodePhase) -> Row {
        Row {
            name: "n1".to_owned(),
            rack: "r1".to_owned(),
            phase,
            since: Timestamp::from_second(1_000).ok(),
            tenant: Some("blue".to_owned()),
            claim: Some("web".to_owned()),
            cluster: Some("west".to_owned()),
            epoch: 3,
            floor: 2,
            network_ready: true,
            waits_for: Vec::new(),
            needs_a_person: false,
            next: None,
        }
    }

    fn told(row: &Row) -> String {
        page(row, Timestamp::from_second(1_045).unwrap())
    }

    #[test]
    fn every_phase_is_explained_in_a_sentence() {
        let bound = told(&row(NodePhase::Bound));
        assert_eq!(
            bound,
            "machine n1 of rack r1: Bound for 45s (epoch 3, floor 2)\n  \
             it is tenant blue's (claim web), and all its DPUs have it programmed\n"
        );
        assert!(told(&row(NodePhase::Draining)).contains("until cluster west is drained"));
        let fresh = Row { tenant: None, ..row(NodePhase::Releasing) };
        assert!(told(&fresh).contains("not known to be clean yet"));
        let held = told(&row(NodePhase::Quarantined));
        assert!(held.contains("next: kubectl patch physicalnode n1"), "{held}");
    }

    #[test]
    fn what_it_waits_for_comes_before_the_next_command() {
        let mut blocked = row(NodePhase::Releasing);
        blocked.waits_for = vec!["DPU r1.d2 has not reported this machine".to_owned()];
        blocked.next = Some("interlock node fence n1".to_owned());
        let page = told(&blocked);
        assert!(page.ends_with(
            "  waits: DPU r1.d2 has not reported this machine\nnext: interlock node fence n1\n"
        ));
    }
}
