//! The ends of the world: stand-ins as in `fleet/drain`, a DPU, people, and a syncer that sends heartbeats.

use super::start::{CLAIM, NODE_UIDS, NODES, ONE_MORE, PORTS, machine, node, report};
use super::{Machine, Machines};
use crate::world::drain::ends::{SUBMIT, apply, check, follow, sent};
use crate::world::drain::{self, cluster, submitted};
use interlock_api::nodes::condition::RELEASE_BLOCKED;
use interlock_api::nodes::{
    Applied, DpuReportStatus, NodePhase, PhysicalNodeStatus, PortReport, Ref,
};
use interlock_api::placement::condition::DRAINED;
use interlock_kernel::conditions::is_true;
use interlock_kernel::{Name, read_part};
use interlock_nodes::kinds::{DPU_REPORT, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE};
use interlock_placement::kinds::WORKLOAD_CLUSTER;
use interlock_world::{CLUSTERS, Chance, Move, Scene};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What happens beside that of `fleet/drain`, who does it, and whether it must happen in the end.
const MOVES: [(&str, &str, bool); 6] = [
    ("Report", "DPU", true),
    ("Reclaim", "platform", false),
    ("DeleteClaim", "tenant", false),
    ("Fence", "people", true),
    ("Edit", "people", false),
    ("Beat", "syncer", true),
];
const FIRST: usize = drain::ends::MOVES.len();
const REPORT: usize = FIRST;
const RECLAIM: usize = FIRST + 1;
const DELETE_CLAIM: usize = FIRST + 2;
const FENCE: usize = FIRST + 3;
const EDIT: usize = FIRST + 4;
const BEAT: usize = FIRST + 5;

/// That the claim was deleted. The bits below are of the updates.
const DELETED: Chance = 1 << 4;
/// That cluster a got one more machine.
const EDITED: Chance = 1 << 5;

pub(super) fn moves() -> Vec<(&'static str, &'static str, bool)> {
    [&drain::ends::MOVES[..], &MOVES[..]].concat()
}

/// What can happen now.
pub(super) fn next(system: &Machines, scene: &Scene<'_, Machines>) -> Vec<Move<Machine>> {
    let mut next: Vec<Move<Machine>> =
        (0..system.spaces).filter_map(|space| follow(scene, space)).collect();
    if let Some(c) = system.updated {
        next.extend(check(scene, c));
        next.extend(apply(scene, c));
        if scene.chance & sent(c) == 0 {
            let hub = submitted(scene.servers, scene.contents[0], c);
            next.push(Move { chance: scene.chance | sent(c), ..scene.at_hub(SUBMIT, hub) });
        }
    }
    for n in 0..system.nodes.len() {
        let status = status_of(scene, n);
        next.extend(reported(scene, n, &status));
        next.extend(reclaimed(system, scene, n, &status));
        next.extend(fenced(system, scene, n, &status));
    }
    next.extend(people(system, scene));
    next.extend((0..CLUSTERS).filter_map(|c| beaten(scene, c)));
    next
}

/// The status of a node.
pub(super) fn status_of(scene: &Scene<'_, Machines>, n: usize) -> PhysicalNodeStatus {
    let found = scene.hub().get(&PHYSICAL_NODE, &node(n));
    found.and_then(|it| read_part(&it, "status").ok().flatten()).unwrap_or_default()
}

/// The name of the NodeFence of a node.
pub(super) fn fence_name(n: usize) -> Name {
    Name::cluster_wide(NODES[n])
}

/// The DPU has the port of a node as the record of the node says, and reports it.
fn reported(
    scene: &Scene<'_, Machines>,
    n: usize,
    status: &PhysicalNodeStatus,
) -> Option<Move<Machine>> {
    let there = scene.hub().get(&DPU_REPORT, &report())?;
    let said: DpuReportStatus = read_part(&there, "status").ok().flatten().unwrap_or_default();
    let given = status.assignment.as_ref().filter(|_| status.phase.is_assigned());
    let applied = given.map(|given| Applied {
        tenant: given.tenant.uid.clone(),
        claim_uid: given.claim.uid.clone(),
        epoch: given.epoch,
    });
    let port = PortReport {
        port: PORTS[n].to_owned(),
        node: Some(Ref::new(NODES[n], NODE_UIDS[n])),
        floor: status.floor,
        clean: applied.is_none(),
        applied,
    };
    if said.port(PORTS[n]) == Some(&port) {
        return None;
    }
    let others = said.ports.into_iter().filter(|other| other.port != port.port);
    let mut ports: Vec<PortReport> = others.chain([port.clone()]).collect();
    ports.sort_by(|a, b| a.port.cmp(&b.port));
    let change = json!({"status": {"ports": ports}});
    let hub = scene.servers.change(scene.contents[0], &DPU_REPORT, &report(), &change);
    Some(scene.at_hub(REPORT, hub))
}

/// The platform ends the first epoch of a node, at any time in it.
fn reclaimed(
    system: &Machines,
    scene: &Scene<'_, Machines>,
    n: usize,
    status: &PhysicalNodeStatus,
) -> Option<Move<Machine>> {
    let spec = scene.hub().part(&PHYSICAL_NODE, &node(n), "spec");
    let is_ended = spec["reclaimEpoch"].as_i64().unwrap_or(0) > 0;
    if !system.reclaims || is_ended || status.epoch != 1 || !status.phase.is_assigned() {
        return None;
    }
    let change = json!({"spec": {"reclaimEpoch": 1}});
    let hub = scene.servers.change(scene.contents[0], &PHYSICAL_NODE, &node(n), &change);
    Some(scene.at_hub(RECLAIM, hub))
}

/// A person gives up what runs on one machine. Where it is asked what must happen in the end, nobody does before the
/// node says that it is blocked.
fn fenced(
    system: &Machines,
    scene: &Scene<'_, Machines>,
    n: usize,
    status: &PhysicalNodeStatus,
) -> Option<Move<Machine>> {
    let is_blocked = is_true(&status.conditions, RELEASE_BLOCKED);
    let is_declared = !scene.hub().list(&NODE_FENCE).is_empty();
    let is_time = status.phase == NodePhase::Draining && (is_blocked || !system.live);
    if !system.fences || is_declared || !is_time {
        return None;
    }
    let declared = json!({"spec": {
        "node": {"name": NODES[n], "uid": NODE_UIDS[n]},
        "epoch": status.epoch,
        "phaseSince": status.phase_since,
        "attestation": "AcceptUndrained",
        "reason": "nobody needs the work on it",
        "requester": "operator",
    }});
    let hub = scene.servers.put(scene.contents[0], &NODE_FENCE, &fence_name(n), declared);
    Some(scene.at_hub(FENCE, hub))
}

/// The tenant deletes its claim, and people give cluster a one more machine.
fn people(system: &Machines, scene: &Scene<'_, Machines>) -> Vec<Move<Machine>> {
    let mut next = Vec::new();
    if system.deletes && scene.chance & DELETED == 0 {
        let mut found = scene.at_hub(DELETE_CLAIM, scene.contents[0]);
        let claim = Name::cluster_wide(CLAIM);
        found.servers[1] = scene.servers.remove(scene.contents[1], &NODE_CLAIM, &claim);
        found.chance |= DELETED;
        next.push(found);
    }
    if system.edits && scene.chance & EDITED == 0 {
        let spec = scene.hub().part(&WORKLOAD_CLUSTER, &cluster(0), "spec");
        let mut machines = spec["machines"].as_array().cloned().unwrap_or_default();
        machines.push(machine(ONE_MORE, "uid-n9"));
        let change = json!({"spec": {"machines": machines}});
        let hub = scene.servers.change(scene.contents[0], &WORKLOAD_CLUSTER, &cluster(0), &change);
        next.push(Move { chance: scene.chance | EDITED, ..scene.at_hub(EDIT, hub) });
    }
    next
}

/// The syncer of a cluster sends one more heartbeat. All others would change nothing: what a cluster says to those who
/// need it empty is of its generation, except after a change of something else.
fn beaten(scene: &Scene<'_, Machines>, c: usize) -> Option<Move<Machine>> {
    let there = scene.hub().get(&WORKLOAD_CLUSTER, &cluster(c))?;
    let (spec, status) = (&there.data["spec"], &there.data["status"]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let asked = spec["drains"].as_array().into_iter().flatten();
    let asked: BTreeSet<String> = asked.filter_map(|it| text(&it["requester"])).collect();
    let told = status["drained"].as_array().into_iter().flatten();
    let told: BTreeSet<String> = told.filter_map(text).collect();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut of_drain = conditions.filter(|it| it["type"] == DRAINED);
    let generation = there.metadata.generation;
    let is_outdated = of_drain.any(|it| it["observedGeneration"].as_i64() != generation);
    let sequence = status["heartbeat"]["sequence"].as_i64()?;
    let is_noted = status["heartbeat"]["receivedSequence"] == sequence;
    if !is_outdated || !is_noted || asked != told {
        return None;
    }
    let change = json!({"status": {"heartbeat": {"sequence": sequence + 1}}});
    let hub = scene.servers.change(scene.contents[0], &WORKLOAD_CLUSTER, &cluster(c), &change);
    Some(scene.at_hub(BEAT, hub))
}
