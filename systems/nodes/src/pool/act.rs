//! What is done about a machine: one write, or one action.

use super::decide::Decision;
use super::observe::{Scene, cluster_at};
use crate::filed::{drained_node, requester};
use crate::kinds::{DPU_REPORT, NODE_FENCE, PHYSICAL_NODE, WORKLOAD_CLUSTER};
use crate::power::{IsOff, Power, PowerOff};
use crate::record::{NodeRecord, Revocation};
use interlock_api::nodes::condition::{CONFIGURATION_CONSISTENT, NETWORK_READY, RELEASE_BLOCKED};
use interlock_api::nodes::event::{
    self, CONFIGURATION_INCONSISTENT, FENCE_REFUSED, NODE_FENCED, NODE_RETURNED, NODE_REVOKED,
};
use interlock_api::nodes::{
    DpuName, FINALIZER_NODE_IN_USE, FencedDpu, NodeFenceOutcome, NodePhase, Ref,
};
use interlock_api::placement::{Drain, WorkloadClusterSpec};
use interlock_kernel::conditions::{Finding, is_true};
use interlock_kernel::metadata::{finalizers_with, name_of, take_finalizer_off, uid_of};
use interlock_kernel::{
    Address, Event, Importance, Name, Object, Place, Read, Step, Write, read_part,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a DPU that was turned off has until it is asked again.
const POWER_OFF_SECONDS: u64 = 60;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Power> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => {
            let at_most = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
            Step::Wait { because: because.to_owned(), at_most }
        }
        Decision::ReadNode => {
            let because = "a refusal is final, and a drain may be needed, so it needs a live read";
            live_read(scene.address.clone(), because)
        }
        Decision::AskPower(dpus) => Step::LiveRead {
            reads: dpus.into_iter().map(|dpu| Read::Ask(IsOff(dpu))).collect(),
            because: "a DPU has not reported; its power is asked for after the floor was raised"
                .to_owned(),
        },
        Decision::MakeReport(dpu) => make_report(&dpu),
        Decision::PowerOff(dpu) => {
            let because = format!("DPU {dpu} blocks a release, and its rack says Command");
            Step::outside(PowerOff(dpu), because)
                .then_waiting(Some(Duration::from_secs(POWER_OFF_SECONDS)))
        }
        Decision::FenceApplied(name) => on_fence(scene, &name, |fence| fence_applied(scene, fence)),
        Decision::FenceRefused(name, why) => {
            on_fence(scene, &name, |fence| fence_refused(scene, fence, &why))
        }
        Decision::RemoveDrain(name) => on_node(scene, |node| remove_drain(scene, node, &name)),
        Decision::AddDrain => on_node(scene, |node| add_drain(scene, node)),
        Decision::ReadCluster => on_node(scene, |node| match &node.status.cluster {
            Some(cluster) => live_read(cluster_at(&cluster.name), "a cache proves no absence"),
            None => Step::rest("no cluster is on the node"),
        }),
        Decision::Label => on_node(scene, label),
        Decision::Recheck => on_node(scene, |node| recheck(scene, node)),
        Decision::Say(finding) => on_node(scene, |node| say(scene, node, &finding)),
        Decision::Raise(epoch) => on_node(scene, |node| raise(scene, node, epoch)),
        Decision::SetCluster(cluster) => on_node(scene, |node| set_cluster(node, cluster.as_ref())),
        Decision::Revoke(how, because) => on_node(scene, |node| revoke(scene, node, how, because)),
        Decision::EndDrain(by) => on_node(scene, |node| end_drain(scene, node, by.as_ref())),
        Decision::Return(phase) => on_node(scene, |node| give_back(scene, node, phase)),
        Decision::AddFenced(dpu, by) => on_node(scene, |node| add_fenced(node, &dpu, by.as_ref())),
        Decision::Move(phase) => on_node(scene, |node| {
            Step::write(
                node.write_phase(phase, scene.now, json!({})),
                format!("the node is to be {phase}"),
            )
        }),
        Decision::TakeFinalizerOff => on_node(scene, |node| {
            let change = take_finalizer_off(&node.object, FINALIZER_NODE_IN_USE);
            let write = Write::patch(Place::HUB, &PHYSICAL_NODE, &node.object, change);
            Step::write(write, "the node is being deleted, and no DPU has it programmed")
        }),
    }
}

fn on_node(scene: &Scene, write: impl FnOnce(&NodeRecord) -> Step<Power>) -> Step<Power> {
    scene.node.as_ref().map_or_else(|| Step::rest("there is no such node"), write)
}

fn on_fence(scene: &Scene, name: &str, write: impl FnOnce(&Object) -> Step<Power>) -> Step<Power> {
    let found = scene.fences.iter().find(|fence| name_of(fence) == name);
    found.map_or_else(|| Step::rest("there is no such NodeFence"), write)
}

fn live_read(address: Address, because: &str) -> Step<Power> {
    Step::LiveRead { reads: vec![Read::Object(address)], because: because.to_owned() }
}

fn label(node: &NodeRecord) -> Step<Power> {
    let mut metadata = json!({ "labels": node.labels_to_change() });
    if !node.is_terminating() {
        metadata["finalizers"] = json!(finalizers_with(&node.object, FINALIZER_NODE_IN_USE));
    }
    let change = json!({ "metadata": metadata });
    let write = Write::patch(Place::HUB, &PHYSICAL_NODE, &node.object, change);
    Step::write(write, "the agents of its DPUs select the node by its labels")
}

fn make_report(dpu: &DpuName) -> Step<Power> {
    let address = Address::new(Place::HUB, &DPU_REPORT, Name::cluster_wide(&dpu.to_string()));
    let object = json!({ "spec": { "rack": dpu.rack, "dpu": dpu.dpu } });
    Step::write(Write::Create { address, object }, "the agent of the DPU fills it")
}

fn recheck(scene: &Scene, node: &NodeRecord) -> Step<Power> {
    let change = json!({ "epoch": node.status.epoch, "floor": node.status.floor });
    let write = node.write_phase(NodePhase::Releasing, scene.now, change);
    Step::write(write, "not all DPUs of the node are known clean of it")
}

fn say(scene: &Scene, node: &NodeRecord, finding: &Finding) -> Step<Power> {
    let conditions = node.conditions_with(std::slice::from_ref(finding), scene.now);
    let step = Step::write(
        node.write_status(json!({ "conditions": conditions })),
        finding.message.clone(),
    );
    let next = finding.next.as_ref().map(|next| format!(". next: {next}")).unwrap_or_default();
    let note = format!("{}{next}", finding.message);
    let reason = match (finding.kind, finding.holds) {
        (CONFIGURATION_CONSISTENT, Some(false)) => CONFIGURATION_INCONSISTENT,
        (RELEASE_BLOCKED, Some(true)) => event::RELEASE_BLOCKED,
        _ => return step,
    };
    step.telling(node.tells(Importance::Warning, reason, note))
}

fn raise(scene: &Scene, node: &NodeRecord, epoch: i64) -> Step<Power> {
    let because = format!(
        "a DPU reports epoch {epoch} of node {}; the hub has {}",
        node.name(),
        node.status.epoch
    );
    let change = json!({ "epoch": epoch, "floor": epoch });
    let event = node.tells(Importance::Warning, NODE_REVOKED, because.as_str());
    Step::write(node.write_phase(NodePhase::Releasing, scene.now, change), because).telling(event)
}

fn set_cluster(node: &NodeRecord, cluster: Option<&Ref>) -> Step<Power> {
    let because = match cluster {
        Some(cluster) => format!("WorkloadCluster {cluster} names the node at its epoch"),
        None => "the WorkloadCluster does not name the node any more".to_owned(),
    };
    Step::write(node.write_status(json!({ "cluster": cluster })), because)
}

fn revoke(scene: &Scene, node: &NodeRecord, how: Revocation, because: &str) -> Step<Power> {
    let end = match how {
        Revocation::AtOnce => "is over",
        Revocation::AfterDrain => "ends once its cluster is drained",
    };
    let note = format!("epoch {} of node {} {end}: {because}", node.status.epoch, node.name());
    let event = node.tells(Importance::Normal, NODE_REVOKED, note);
    Step::write(node.revoke(how, scene.now), because).telling(event)
}

fn cluster_named<'a>(scene: &'a Scene, name: &str) -> Option<(&'a Object, WorkloadClusterSpec)> {
    let cluster = scene.clusters.iter().find(|cluster| name_of(cluster) == name)?;
    Some((cluster, read_part::<WorkloadClusterSpec>(cluster, "spec").ok().flatten()?))
}

fn write_drains(cluster: &Object, drains: &[Drain], because: &str) -> Step<Power> {
    let change = json!({ "spec": { "drains": drains } });
    Step::write(Write::patch(Place::HUB, &WORKLOAD_CLUSTER, cluster, change), because)
}

fn add_drain(scene: &Scene, node: &NodeRecord) -> Step<Power> {
    let on_it = node.status.cluster.as_ref();
    let Some((cluster, spec)) = on_it.and_then(|it| cluster_named(scene, &it.name)) else {
        return Step::rest("the cache does not show the cluster on the node");
    };
    let reason = format!("epoch {} of PhysicalNode {} is to end", node.status.epoch, node.name());
    let ours = Drain { requester: requester(node.uid(), node.status.epoch), reason };
    let drains: Vec<Drain> = spec.drains.into_iter().chain([ours]).collect();
    write_drains(cluster, &drains, "the node is released once the cluster is drained")
}

/// Takes away what was asked for this node, but for what is still to be.
fn remove_drain(scene: &Scene, node: &NodeRecord, name: &str) -> Step<Power> {
    let Some((cluster, mut spec)) = cluster_named(scene, name) else {
        return Step::rest("the cache does not show the cluster");
    };
    let is_on_it = node.status.cluster.as_ref().is_some_and(|it| it.uid == uid_of(cluster));
    let ours = requester(node.uid(), node.status.epoch);
    let stays = |drain: &Drain| {
        let is_needed =
            node.status.phase == NodePhase::Draining && is_on_it && drain.requester == ours;
        is_needed || drained_node(&drain.requester) != Some(node.uid())
    };
    spec.drains.retain(stays);
    write_drains(cluster, &spec.drains, "the node does not wait for the cluster to be drained")
}

/// The conditions once a release is blocked no more, and with what else is found.
fn unblocked(scene: &Scene, node: &NodeRecord, found: Option<Finding>) -> Value {
    let message = "what the release waited for has happened";
    let is_blocked = is_true(&node.status.conditions, RELEASE_BLOCKED);
    let unblocked = is_blocked.then(|| Finding::fails(RELEASE_BLOCKED, "NotBlocked", message));
    let findings: Vec<Finding> = unblocked.into_iter().chain(found).collect();
    json!(node.conditions_with(&findings, scene.now))
}

fn end_drain(scene: &Scene, node: &NodeRecord, by: Option<&Ref>) -> Step<Power> {
    let because = match by {
        Some(fence) => format!("NodeFence {fence} ends the wait for the cluster on the node"),
        None => "the cluster on the node is drained, gone, or names the node no more".to_owned(),
    };
    let change = json!({
        "floor": node.status.epoch, "undrainedBy": by,
        "conditions": unblocked(scene, node, None),
    });
    let write = node.write_phase(NodePhase::Releasing, scene.now, change);
    let note = format!("epoch {} of node {} is over: {because}", node.status.epoch, node.name());
    let event =
        node.tells(Importance::Normal, if by.is_some() { NODE_FENCED } else { NODE_REVOKED }, note);
    Step::write(write, because).telling(event)
}

fn give_back(scene: &Scene, node: &NodeRecord, phase: NodePhase) -> Step<Power> {
    let not_assigned = Finding::fails(NETWORK_READY, "NotAssigned", "the node is no tenant's");
    let change = json!({
        "assignment": null, "cluster": null, "fenced": null, "undrainedBy": null,
        "conditions": unblocked(scene, node, Some(not_assigned)),
    });
    let write = node.write_phase(phase, scene.now, change);
    let note = format!("node {} is clean in all its DPUs, and {phase}", node.name());
    let event = node.tells(Importance::Normal, NODE_RETURNED, note);
    Step::write(write, "each DPU of the node is clean of it, or was seen off").telling(event)
}

fn add_fenced(node: &NodeRecord, dpu: &DpuName, by: Option<&Ref>) -> Step<Power> {
    let epoch = node.status.epoch;
    let others = node.status.fenced.iter().filter(|fenced| fenced.dpu != *dpu).cloned();
    let fenced = FencedDpu { dpu: dpu.clone(), epoch, by: by.cloned() };
    let fenced: Vec<FencedDpu> = others.chain([fenced]).collect();
    let seen =
        by.map_or_else(|| "the power command".to_owned(), |fence| format!("NodeFence {fence}"));
    let note =
        format!("DPU {dpu} is off by {seen}, after the floor of node {} was {epoch}", node.name());
    let event = node.tells(Importance::Warning, NODE_FENCED, note.as_str());
    Step::write(node.write_status(json!({ "fenced": fenced })), note).telling(event)
}

fn fence_applied(scene: &Scene, fence: &Object) -> Step<Power> {
    let node = &scene.address.name.name;
    let because = format!("the release of node {node} went on with it");
    let change = json!({"status": {"outcome": NodeFenceOutcome::Applied, "because": because}});
    Step::write(Write::patch_status(Place::HUB, &NODE_FENCE, fence, change), because)
}

fn fence_refused(scene: &Scene, fence: &Object, why: &str) -> Step<Power> {
    let node = &scene.address.name.name;
    let change = json!({"status": {"outcome": NodeFenceOutcome::Refused, "because": why}});
    let event = Event {
        about: Address::new(Place::HUB, &NODE_FENCE, Name::of(fence)),
        uid: uid_of(fence).to_owned(),
        importance: Importance::Warning,
        reason: FENCE_REFUSED,
        note: format!("Refused: {why}. next: interlock node explain {node}"),
    };
    Step::write(Write::patch_status(Place::HUB, &NODE_FENCE, fence, change), why).telling(event)
}
