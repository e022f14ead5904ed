//! What a machine says of itself: a reason, a sentence, and what a person does next.

use super::facts::{Dpu, Node};
use super::fences::shown;
use crate::power::PowerState;
use crate::record::{INTERRUPTED, NEVER_PROGRAMMED};
use interlock_api::nodes::condition::{NETWORK_READY, RELEASE_BLOCKED};
use interlock_api::nodes::{NodePhase, PowerControl};
use interlock_kernel::conditions::{Finding, find};

/// Whether all DPUs have a node programmed.
pub(super) fn network_ready(node: &Node) -> Finding {
    let missing: Vec<String> =
        node.dpus.iter().filter(|dpu| !dpu.is_programmed).map(|dpu| shown(&dpu.name)).collect();
    let epoch = node.state.epoch;
    if missing.is_empty() {
        let message = format!("all DPUs have node {} programmed for epoch {epoch}", node.name);
        return Finding::holds(NETWORK_READY, "Programmed", message);
    }
    // From the first time on that all DPUs had it programmed, the tenant may use it: that is not forgotten.
    let before = find(&node.said, NETWORK_READY);
    let was_never =
        before.is_some_and(|before| before.status != "True" && before.reason == NEVER_PROGRAMMED);
    let reason = if was_never { NEVER_PROGRAMMED } else { INTERRUPTED };
    let message = format!("not programmed for epoch {epoch} in DPU {}", missing.join(", "));
    Finding::fails(NETWORK_READY, reason, message)
}

/// Why a release takes longer than its rack allows; None: it does not.
pub(super) fn blocked(node: &Node) -> Option<Finding> {
    match node.state.phase {
        NodePhase::Draining if node.age_seconds >= node.drain_seconds => Some(not_drained(node)),
        NodePhase::Releasing if node.age_seconds >= node.after_seconds => not_reported(node),
        NodePhase::Draining
        | NodePhase::Releasing
        | NodePhase::Available
        | NodePhase::Bound
        | NodePhase::Quarantined => None,
    }
}

fn since(node: &Node) -> String {
    node.state
        .phase_since
        .as_ref()
        .map_or_else(|| "an unknown time".to_owned(), |since| since.0.to_string())
}

fn not_drained(node: &Node) -> Finding {
    let cluster = node.cluster.as_ref();
    let (name, grants) = cluster.map_or(("none", 0), |it| (it.reference.name.as_str(), it.grants));
    let message = format!(
        "WorkloadCluster {name} on node {} is not drained: it holds {grants} grants. The node is Draining since {}, \
         and keeps its network",
        node.name,
        since(node)
    );
    let next = format!(
        "if the machine is off: interlock node fence {} --epoch {} --attest machine-powered-off --reason \"...\"",
        node.name, node.state.epoch
    );
    Finding::holds(RELEASE_BLOCKED, "NotDrained", message).next(next)
}

fn not_reported(node: &Node) -> Option<Finding> {
    let open: Vec<&Dpu> = node.open_dpus().collect();
    let first = open.first()?;
    let dpus: Vec<String> = open.iter().map(|dpu| shown(&dpu.name)).collect();
    let message = format!(
        "DPU {} has not reported node {} clean at epoch {}. The node is Releasing since {}{}",
        dpus.join(", "),
        node.name,
        node.state.epoch,
        since(node),
        power_words(node, &open)
    );
    let next = format!(
        "if the DPU is off: interlock node fence {} --dpu {} --epoch {} --attest dpu-powered-off --reason \"...\"",
        node.name,
        shown(&first.name),
        node.state.epoch
    );
    Some(Finding::holds(RELEASE_BLOCKED, "DpuSilent", message).next(next))
}

/// What the platform's command could not say, if it is asked at all.
fn power_words(node: &Node, open: &[&Dpu]) -> String {
    let unknown = open.iter().find_map(|dpu| match &dpu.power {
        Some(PowerState::Unknown(because)) => Some(because),
        Some(PowerState::On | PowerState::Off) | None => None,
    });
    match (node.power, unknown) {
        (PowerControl::Command, Some(because)) => format!(". The power command says: {because}"),
        (PowerControl::Command, None) | (PowerControl::Manual, _) => String::new(),
    }
}
