//! `interlock node fence`: a person declares what the fleet cannot see of a machine or a DPU.

use super::dpu;
use super::hub::Hub;
use crate::declare::{confirm, reason, requester, short_id};
use crate::location::Location;
use crate::output::{complain, say};
use anyhow::{Context, bail};
use interlock_api::nodes::{
    DpuName, NodeAttestation, NodeFence, NodeFenceOutcome, NodeFenceSpec, NodePhase, PhysicalNode,
    Ref,
};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the declaration is read while its outcome is waited for.
const EVERY: Duration = Duration::from_millis(300);

pub(super) const EXPLAINED: &str = "\
Use this only for what does not answer. A machine returns to the pool once each of its DPUs has reported that it is clean; a
DPU that is off cannot report, and one that is declared off counts as clean. If the attestation is not true, the machine may be
programmed for two tenants at once.

The attestation must be true when you run the command:
  dpu-powered-off      the DPU is off; name it with --dpu
  machine-powered-off  the machine is off; ends the wait for its cluster to be drained
  accept-undrained     the state of the machine is unknown, and work on it may be lost; ends the same wait

Exit status: 0 applied; 1 refused, or no outcome in time; 2 usage error, or not confirmed.";

/// Options of `node fence`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The PhysicalNode
    #[arg(value_name = "MACHINE")]
    node: String,
    /// The DPU that is off, as RACK/DPU
    #[arg(long, value_name = "RACK/DPU", value_parser = dpu)]
    dpu: Option<DpuName>,
    /// The epoch of the machine; the command is refused if the machine has another epoch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    epoch: i64,
    /// The state of the DPU or the machine; it must be true now
    #[arg(long, value_enum, value_name = "WHAT")]
    attest: Attest,
    /// The reason, for the record: at least ten characters
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// How long to wait for the outcome
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::words::time)]
    timeout: Duration,
    #[command(flatten)]
    location: Location,
}

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attest {
    /// The DPU is off
    #[value(alias = "DpuPoweredOff")]
    DpuPoweredOff,
    /// The machine is off
    #[value(alias = "MachinePoweredOff")]
    MachinePoweredOff,
    /// The state of the machine is unknown: work on it may be lost
    #[value(alias = "AcceptUndrained")]
    AcceptUndrained,
}

impl Attest {
    fn as_attestation(self) -> NodeAttestation {
        match self {
            Attest::DpuPoweredOff => NodeAttestation::DpuPoweredOff,
            Attest::MachinePoweredOff => NodeAttestation::MachinePoweredOff,
            Attest::AcceptUndrained => NodeAttestation::AcceptUndrained,
        }
    }
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = Hub::open(&args.location).await?;
    let node = hub.node(&args.node).await?;
    let mut spec = checked(args, &node)?;
    spec.requester = requester(&hub.user);
    complain(consequence(args.attest));
    if !args.yes {
        let what = match &args.dpu {
            Some(dpu) => format!("DPU {dpu} off for {} at epoch {}", args.node, args.epoch),
            None => format!("the state of {} at epoch {}", args.node, args.epoch),
        };
        confirm(&what, "machine", &args.node)?;
    }
    let fences: Api<NodeFence> = Api::all(hub.client.clone());
    let name = format!("{}-{}-{}", args.node, args.epoch, short_id());
    let fence = NodeFence::new(&name, spec);
    let created = fences.create(&PostParams::default(), &fence).await;
    created.map_err(|error| hub.told(error, "create the NodeFence"))?;
    outcome(&fences, &name, args).await
}

/// The declaration, if it is about what is there. The phase was read from the hub itself just now.
fn checked(args: &Args, node: &PhysicalNode) -> anyhow::Result<NodeFenceSpec> {
    let (name, status) = (&args.node, node.status_or_default());
    if status.epoch != args.epoch {
        bail!("the epoch of {name} is {}, and --epoch is {}", status.epoch, args.epoch);
    }
    let (wanted, what) = match args.attest {
        Attest::DpuPoweredOff => (NodePhase::Releasing, "its release waits for DPUs"),
        Attest::MachinePoweredOff | Attest::AcceptUndrained => {
            (NodePhase::Draining, "its release waits for a cluster")
        }
    };
    if status.phase != wanted {
        bail!(
            "{name} is {}, and a machine is {wanted} while {what}\nnext: interlock node explain {name}",
            status.phase
        );
    }
    match (&args.dpu, args.attest) {
        (None, Attest::DpuPoweredOff) => {
            let known: Vec<String> =
                node.spec.dpus.iter().map(|dpu| format!("{}/{}", dpu.rack, dpu.dpu)).collect();
            bail!("name the DPU that is off with --dpu: {name} has {}", known.join(", "))
        }
        (Some(_), Attest::MachinePoweredOff | Attest::AcceptUndrained) => {
            bail!("--dpu goes with --attest dpu-powered-off only")
        }
        (Some(dpu), Attest::DpuPoweredOff) if node.spec.at(dpu).is_none() => {
            bail!("{name} is not wired through DPU {}/{}", dpu.rack, dpu.dpu)
        }
        _ => {}
    }
    let Some(phase_since) = status.phase_since else {
        bail!(
            "{name} does not say since when it is {}: the controllers have not seen it yet",
            status.phase
        );
    };
    Ok(NodeFenceSpec {
        node: Ref::new(name.clone(), node.uid().unwrap_or_default()),
        epoch: args.epoch,
        phase_since,
        dpu: args.dpu.clone(),
        attestation: args.attest.as_attestation(),
        reason: args.reason.clone(),
        requester: String::new(),
    })
}

fn consequence(attest: Attest) -> &'static str {
    match attest {
        Attest::DpuPoweredOff => {
            "the machine returns to the pool without a report of this DPU: if the DPU is not off, the machine may be in \
             the networks of two tenants"
        }
        Attest::MachinePoweredOff => {
            "the epoch is revoked although the cluster of the machine is not drained: its work there has ended"
        }
        Attest::AcceptUndrained => {
            "the epoch is revoked although the cluster of the machine is not drained: work on it may be lost"
        }
    }
}

async fn outcome(fences: &Api<NodeFence>, name: &str, args: &Args) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.timeout;
    loop {
        let fence = fences.get(name).await.context("cannot read the NodeFence")?;
        let status = fence.status_or_default();
        let because = status.because.map_or_else(String::new, |because| format!(": {because}"));
        match status.outcome {
            NodeFenceOutcome::Applied => {
                say(&format!("applied{because}\nnext: interlock node explain {}\n", args.node))?;
                return Ok(ExitCode::SUCCESS);
            }
            NodeFenceOutcome::Refused => {
                say(&format!("refused{because}\nnext: interlock node explain {}\n", args.node))?;
                return Ok(ExitCode::FAILURE);
            }
            NodeFenceOutcome::Pending if Instant::now() > deadline => {
                say(&format!(
                    "NodeFence {name} is not answered after {} s; it stays, and is answered once the hub's controllers \
                     run\nnext: kubectl get nodefence {name} -o wide\n",
                    args.timeout.as_secs()
                ))?;
                return Ok(ExitCode::FAILURE);
            }
            NodeFenceOutcome::Pending => sleep(EVERY).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn checked(words: &[&str], phase: &str) -> Result<NodeFenceSpec, String> {
        let all = ["fence", "n1", "--reason", "the rack burnt down"].iter().chain(words);
        let args = Command::try_parse_from(all).map_err(|error| error.to_string())?.args;
        let node: PhysicalNode = serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "PhysicalNode",
            "metadata": {"name": "n1", "uid": "uid-n1"},
            "spec": {"rack": "r1", "reclaimEpoch": 0, "dpus": [
                {"rack": "r1", "dpu": "d1", "port": "p1", "mac": "02:00:00:00:00:01"}]},
            "status": {"phase": phase, "epoch": 3, "floor": 3, "phaseSince": "2001-01-01T00:00:00Z"},
        }))
        .expect("a node");
        super::checked(&args, &node).map_err(|error| error.to_string())
    }

    const OFF: [&str; 2] = ["--attest", "dpu-powered-off"];

    #[test]
    fn a_declaration_names_what_is_there_now() {
        let words = [&OFF[..], &["--dpu", "r1/d1", "--epoch", "3"]].concat();
        let spec = checked(&words, "Releasing").expect("it is as named");
        assert_eq!((spec.node.uid.as_str(), spec.epoch), ("uid-n1", 3));
        assert_eq!(spec.dpu, Some(DpuName::new("r1", "d1")));
    }

    #[test]
    fn what_does_not_match_is_refused_with_what_is_there() {
        let with = |more: &[&str], phase: &str| {
            checked(&[&OFF[..], more].concat(), phase).expect_err("it is refused")
        };
        assert_eq!(
            with(&["--dpu", "r1/d1", "--epoch", "2"], "Releasing"),
            "the epoch of n1 is 3, and --epoch is 2"
        );
        assert!(with(&["--dpu", "r1/d1", "--epoch", "3"], "Bound").starts_with("n1 is Bound, and"));
        assert!(with(&["--epoch", "3"], "Releasing").contains("n1 has r1/d1"));
        assert!(with(&["--dpu", "r1/d9", "--epoch", "3"], "Releasing").contains("not wired"));
        let undrained = ["--attest", "accept-undrained", "--epoch", "3", "--dpu", "r1/d1"];
        assert!(checked(&undrained, "Draining").expect_err("refused").contains("--dpu goes with"));
    }
}
