//! What happens to a machine. First matching rule wins.

use super::facts::{Dpu, Facts, Fence, Live, Node, OnCluster};
use super::fences::refusal;
use super::words::{blocked, network_ready};
use crate::power::PowerState;
use crate::record::Revocation;
use interlock_api::nodes::condition::NETWORK_READY;
use interlock_api::nodes::{DpuName, NodePhase, PowerControl, Ref};
use interlock_kernel::conditions::{Finding, is_true};
use serde::Serialize;

/// How often a DPU that blocks a release is asked for its power again.
const POWER_SECONDS: i64 = 60;

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds, and why.
    Wait(&'static str, i64),
    /// Read the node itself: a refusal is final, and a drain may be needed although the cache does not show that.
    ReadNode,
    /// Read the cluster on it: a cache proves no absence.
    ReadCluster,
    /// Ask for the power of these DPUs.
    AskPower(Vec<DpuName>),
    /// Put labels and finalizer on the node.
    Label,
    /// Make the report of a DPU, for its agent to fill.
    MakeReport(DpuName),
    /// The node is not known clean: Releasing.
    Recheck,
    /// Write these conditions.
    Say(Finding),
    /// Raise epoch and floor to this epoch, and release.
    Raise(i64),
    /// Say that a NodeFence took effect.
    FenceApplied(String),
    /// Refuse a NodeFence, and why.
    FenceRefused(String, String),
    /// Write which cluster is on it.
    SetCluster(Option<Ref>),
    /// End the epoch of the node.
    Revoke(Revocation, &'static str),
    /// Ask the cluster to drain.
    AddDrain,
    /// Ask a cluster no more to drain.
    RemoveDrain(String),
    /// The drain is over: raise the floor. The NodeFence that ended it, if one did.
    EndDrain(Option<Ref>),
    /// The node is clean.
    Return(NodePhase),
    /// A DPU was seen off: by a NodeFence, or by the platform's command.
    AddFenced(DpuName, Option<Ref>),
    /// Turn a DPU off.
    PowerOff(DpuName),
    /// Take the finalizer off.
    TakeFinalizerOff,
    /// Into the pool, or out of it.
    Move(NodePhase),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if let Some(decision) =
        facts.node.as_ref().and_then(|node| prepare(node).or_else(|| record(node)))
    {
        return decision;
    }
    if let Some(decision) = answer(facts).or_else(|| take_drain_back(facts)) {
        return decision;
    }
    let Some(node) = &facts.node else { return Decision::Rest("there is no such node") };
    let rows: [Row; 8] =
        [on_cluster, revoke, ask_to_drain, end_drain, network, give_back, fence, report_blocked];
    let found = rows.iter().find_map(|row| row(node, &facts.fences));
    found.or_else(|| in_the_pool(node)).unwrap_or_else(|| rest(node))
}

/// A rule about a node and its NodeFences.
type Row = fn(&Node, &[Fence]) -> Option<Decision>;

/// Finalizer, labels and DpuReports; last the status: a new node is not yet known clean. So it is with one whose DPUs
/// were changed: it leaves the pool before its labels say so.
fn prepare(node: &Node) -> Option<Decision> {
    if node.has_other_labels && node.state.phase.is_clean() && node.has_status {
        return Some(Decision::Recheck);
    }
    if node.has_other_labels || !(node.has_finalizer || node.is_terminating) {
        return Some(Decision::Label);
    }
    if let Some(dpu) = node.dpus.iter().find(|dpu| dpu.lacks_report) {
        return Some(Decision::MakeReport(dpu.name.clone()));
    }
    (!node.has_status).then_some(Decision::Recheck)
}

/// Whether the wiring is consistent is said first. Then: a DPU reports for this uid a floor above ours, or an epoch
/// that we did not give. The hub was restored from an old backup, and nothing is given before both are raised
/// (EpochsGrow).
fn record(node: &Node) -> Option<Decision> {
    if !node.wiring.is_in(&node.said) {
        return Some(Decision::Say(node.wiring.clone()));
    }
    let is_ahead = node.reported_floor > node.floor || node.reported_epoch > node.state.epoch;
    let is_behind = node.state.phase == NodePhase::Releasing && node.floor < node.state.epoch;
    let highest = node.state.epoch.max(node.reported_floor).max(node.reported_epoch);
    (is_ahead || is_behind).then_some(Decision::Raise(highest))
}

/// A NodeFence that took effect says so; one that names another state than the node has, by a live read, is refused.
fn answer(facts: &Facts) -> Option<Decision> {
    facts.fences.iter().find_map(|fence| {
        let name = || fence.reference.name.clone();
        if facts.node.as_ref().is_some_and(|node| node.has_used(fence)) {
            return Some(Decision::FenceApplied(name()));
        }
        let cached = facts.node.as_ref().map(|node| &node.state);
        refusal(fence, cached)?;
        match &facts.live {
            None => Some(Decision::ReadNode),
            Some(Live::Gone) => refusal(fence, None).map(|why| Decision::FenceRefused(name(), why)),
            Some(Live::There(state)) => {
                refusal(fence, Some(state)).map(|why| Decision::FenceRefused(name(), why))
            }
        }
    })
}

/// The first cluster that names a bound node is on it, until by a live read it no longer names it.
fn on_cluster(node: &Node, _: &[Fence]) -> Option<Decision> {
    if node.state.phase != NodePhase::Bound {
        return None;
    }
    let Some(cluster) = &node.cluster else {
        return node.named_by.first().map(|first| Decision::SetCluster(Some(first.clone())));
    };
    if cluster.cached != OnCluster::NotOnIt {
        return None;
    }
    match cluster.live {
        None => Some(Decision::ReadCluster),
        Some(OnCluster::NotOnIt) => Some(Decision::SetCluster(None)),
        Some(OnCluster::OnIt | OnCluster::Draining | OnCluster::Drained) => None,
    }
}

/// People end the epoch of a bound node. It needs no tenant and no clean hardware.
fn revoke(node: &Node, _: &[Fence]) -> Option<Decision> {
    if node.state.phase != NodePhase::Bound {
        return None;
    }
    let because = match node {
        // A number, and not a flag: it cannot hit the next owner.
        Node { reclaim_epoch, state, .. } if *reclaim_epoch >= state.epoch => {
            "spec.reclaimEpoch ends the epoch"
        }
        Node { is_quarantined: true, .. } => "the node is quarantined",
        Node { is_terminating: true, .. } => "the PhysicalNode is being deleted",
        _ => return None,
    };
    Some(Decision::Revoke(Revocation::of(node.cluster.is_some()), because))
}

/// A cluster is asked no more to drain once the node is not Draining, by a live read: where the cache is behind, somebody
/// may rely on the cluster to be empty (DrainedIsEmpty).
fn take_drain_back(facts: &Facts) -> Option<Decision> {
    let node = facts.node.as_ref()?;
    let in_vain = node.drained_in_vain.first()?;
    match &facts.live {
        None => Some(Decision::ReadNode),
        Some(Live::There(live)) if live.is_in_the_phase_of(&node.state) => {
            Some(Decision::RemoveDrain(in_vain.clone()))
        }
        Some(Live::There(_) | Live::Gone) => None,
    }
}

/// While the node is Draining, its cluster is asked to drain.
fn ask_to_drain(node: &Node, _: &[Fence]) -> Option<Decision> {
    let cluster = node.cluster.as_ref().filter(|_| node.state.phase == NodePhase::Draining)?;
    (cluster.cached == OnCluster::OnIt).then_some(Decision::AddDrain)
}

/// The drain is over: by a live read the cluster is drained at its generation, gone, or not on the node; or a person
/// has fenced the machine (C4).
fn end_drain(node: &Node, fences: &[Fence]) -> Option<Decision> {
    if node.state.phase != NodePhase::Draining {
        return None;
    }
    let by = fences
        .iter()
        .find(|fence| fence.dpu.is_none() && refusal(fence, Some(&node.state)).is_none());
    if let Some(fence) = by {
        return Some(Decision::EndDrain(Some(fence.reference.clone())));
    }
    let Some(cluster) = &node.cluster else { return Some(Decision::EndDrain(None)) };
    let is_over = |seen: OnCluster| matches!(seen, OnCluster::NotOnIt | OnCluster::Drained);
    match cluster.live {
        None if is_over(cluster.cached) => Some(Decision::ReadCluster),
        Some(live) if is_over(live) => Some(Decision::EndDrain(None)),
        None | Some(_) => None,
    }
}

/// All DPUs have it programmed, or no more.
fn network(node: &Node, _: &[Fence]) -> Option<Decision> {
    if !node.state.phase.is_assigned() {
        return None;
    }
    let is_ready = node.dpus.iter().all(|dpu| dpu.is_programmed);
    let finding = network_ready(node);
    (is_ready != is_true(&node.said, NETWORK_READY) && !finding.is_in(&node.said))
        .then_some(Decision::Say(finding))
}

/// Each DPU has reported this uid and floor, or was seen off at this epoch: the node is clean (PoolIsClean). What a DPU
/// reported stays true, so a cache is enough.
fn give_back(node: &Node, _: &[Fence]) -> Option<Decision> {
    let is_releasing = node.state.phase == NodePhase::Releasing && node.floor == node.state.epoch;
    let is_done = is_releasing && !node.dpus.is_empty() && node.open_dpus().next().is_none();
    is_done.then(|| Decision::Return(node.clean_phase()))
}

/// The power of a DPU that has not reported: by a NodeFence, or asked for after the floor was seen raised.
fn fence(node: &Node, fences: &[Fence]) -> Option<Decision> {
    if node.state.phase != NodePhase::Releasing {
        return None;
    }
    let named = |dpu: &Dpu| {
        let mut names_it = fences.iter().filter(|fence| fence.dpu.as_ref() == Some(&dpu.name));
        names_it.find(|fence| refusal(fence, Some(&node.state)).is_none())
    };
    if let Some((dpu, fence)) = node.open_dpus().find_map(|dpu| Some((dpu, named(dpu)?))) {
        return Some(Decision::AddFenced(dpu.name.clone(), Some(fence.reference.clone())));
    }
    if let Some(off) = node.open_dpus().find(|dpu| dpu.power == Some(PowerState::Off)) {
        return Some(Decision::AddFenced(off.name.clone(), None));
    }
    if node.power == PowerControl::Manual || node.age_seconds < node.after_seconds {
        return None;
    }
    let unasked: Vec<DpuName> =
        node.open_dpus().filter(|dpu| dpu.power.is_none()).map(|dpu| dpu.name.clone()).collect();
    (!unasked.is_empty()).then_some(Decision::AskPower(unasked))
}

/// A release that takes too long is reported with the next command. A timer neither revokes nor returns.
fn report_blocked(node: &Node, _: &[Fence]) -> Option<Decision> {
    let finding = blocked(node)?;
    if !finding.is_in(&node.said) {
        return Some(Decision::Say(finding));
    }
    let is_on = |dpu: &&Dpu| dpu.power == Some(PowerState::On);
    let on = node.open_dpus().find(is_on).filter(|_| node.state.phase == NodePhase::Releasing)?;
    Some(Decision::PowerOff(on.name.clone()))
}

/// A clean node leaves, or changes between the pool and the quarantine.
fn in_the_pool(node: &Node) -> Option<Decision> {
    if !node.state.phase.is_clean() {
        return None;
    }
    if node.is_terminating {
        return node.has_finalizer.then_some(Decision::TakeFinalizerOff);
    }
    (node.state.phase != node.clean_phase()).then(|| Decision::Move(node.clean_phase()))
}

fn rest(node: &Node) -> Decision {
    let left = |seconds: i64| (seconds - node.age_seconds).max(1);
    match node.state.phase {
        NodePhase::Releasing if node.age_seconds < node.after_seconds => Decision::Wait(
            "not all DPUs have reported that they are clean",
            left(node.after_seconds),
        ),
        NodePhase::Releasing if node.power == PowerControl::Command => {
            Decision::Wait("a DPU has not reported, and is not seen off", POWER_SECONDS)
        }
        NodePhase::Draining if node.age_seconds < node.drain_seconds => {
            Decision::Wait("the cluster on the node is not drained", left(node.drain_seconds))
        }
        NodePhase::Releasing | NodePhase::Draining => {
            Decision::Rest("the release is blocked; a person has to act")
        }
        NodePhase::Available | NodePhase::Bound | NodePhase::Quarantined => {
            Decision::Rest("the node is as it should be")
        }
    }
}
