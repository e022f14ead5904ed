//! What a NodeFence is compared with, and why it is refused: with both values, and what would be right.

use super::facts::{Fence, State};
use interlock_api::nodes::{DpuName, NodePhase};

/// Why a NodeFence does not fit a node; None: it does.
pub(super) fn refusal(fence: &Fence, node: Option<&State>) -> Option<String> {
    let name = &fence.node.name;
    let Some(node) = node else { return Some(format!("there is no PhysicalNode {name}")) };
    if node.uid != fence.node.uid {
        return Some(format!(
            "the uid of PhysicalNode {name} is {}, you named {}",
            node.uid, fence.node.uid
        ));
    }
    if node.epoch != fence.epoch {
        return Some(format!("epoch is {}, you named {}", node.epoch, fence.epoch));
    }
    let since = node.phase_since.as_ref().map(|since| since.0);
    if since != Some(fence.phase_since.0) {
        let since = since.map_or_else(|| "not known".to_owned(), |since| since.to_string());
        return Some(format!(
            "phaseSince is {since} ({}), you named {}: what you saw is older than the phase",
            node.phase, fence.phase_since.0
        ));
    }
    match &fence.dpu {
        Some(dpu) => wrong_dpu(dpu, name, node),
        None if node.phase == NodePhase::Draining => None,
        None if node.phase == NodePhase::Releasing => {
            let open: Vec<String> = node.open.iter().map(shown).collect();
            Some(format!(
                "node {name} is Releasing, and waits for DPU {}: {} says nothing of a DPU; name the DPU that is off",
                open.join(", "),
                fence.attestation
            ))
        }
        None => Some(not_revoked(name, node)),
    }
}

fn wrong_dpu(dpu: &DpuName, name: &str, node: &State) -> Option<String> {
    if !node.dpus.contains(dpu) {
        let dpus: Vec<String> = node.dpus.iter().map(shown).collect();
        return Some(format!(
            "node {name} is wired through DPU {}, you named {}",
            dpus.join(", "),
            shown(dpu)
        ));
    }
    match node.phase {
        NodePhase::Releasing if node.open.contains(dpu) => None,
        NodePhase::Releasing => Some(format!(
            "DPU {} has reported that node {name} is clean, so nothing waits for it",
            shown(dpu)
        )),
        NodePhase::Draining => Some(format!(
            "node {name} is Draining: power counts only once the floor is raised; end the drain first, without a dpu"
        )),
        NodePhase::Available | NodePhase::Bound | NodePhase::Quarantined => {
            Some(not_revoked(name, node))
        }
    }
}

fn not_revoked(name: &str, node: &State) -> String {
    match node.phase {
        NodePhase::Bound => {
            format!("node {name} is Bound: revoke it first with interlock node reclaim {name}")
        }
        phase => format!("node {name} is {phase}: there is nothing to release"),
    }
}

/// A DPU, as people write it.
pub(super) fn shown(dpu: &DpuName) -> String {
    format!("{}/{}", dpu.rack, dpu.dpu)
}
