//! What is around the controllers: the cloud, people who move the namespace, and a cluster that loses power.

use super::truth::{self, Truth};
use super::{
    CLOUD, CLUSTER_UIDS, FORCE, Machine, Placed, cluster, conditions, elapses_left, grant,
    namespace, role,
};
use interlock_api::identities::RoleStatus;
use interlock_api::names::ANNOTATION_CLUSTER;
use interlock_identities::kinds::ROLE;
use interlock_identities::world::clients;
use interlock_identities::world::kept::admitted;
use interlock_kernel::{Name, read_part};
use interlock_placement::kinds::{FORCE_RELEASE, GRANT, NAMESPACE, WORKLOAD_CLUSTER};
use interlock_world::{Chance, Move, Scene};
use serde_json::json;

/// What happens by itself, who does it, and whether it must happen in the end.
pub(super) const MOVES: [(&str, &str, bool); 5] = [
    ("Answer", "cloud", true),
    ("Elapse", "clock", true),
    ("Move", "people", false),
    ("PowerOff", "machine", false),
    ("DeclareGone", "people", true),
];
const ANSWER: usize = 0;
const ELAPSE: usize = 1;
const MOVE: usize = 2;
const POWER_OFF: usize = 3;
const DECLARE_GONE: usize = 4;

/// People may still move the namespace. The bits below are of [`elapses_left`].
const MAY_MOVE: Chance = 1 << 3;
/// Cluster a may still lose power.
const MAY_LOSE_POWER: Chance = 1 << 4;

/// All that may happen.
pub(super) fn first(system: &Placed) -> Chance {
    let may_move = if system.moves { MAY_MOVE } else { 0 };
    let may_lose_power = if system.force { MAY_LOSE_POWER } else { 0 };
    system.elapses | may_move | may_lose_power
}

/// What can happen now.
pub(super) fn next(scene: &Scene<'_, Placed>) -> Vec<Move<Machine>> {
    let machine = &scene.machines[CLOUD];
    let mut next = Vec::new();
    let mut to = |name: usize, cloud: clients::Machine, chance: Chance| {
        let mut found = scene.at_hub(name, scene.contents[0]);
        found.machines[CLOUD] = Some(machine.with_cloud(tried(cloud)));
        found.chance = chance;
        next.push(found);
    };
    for call in 0..machine.cloud.calls.len() {
        to(ANSWER, machine.cloud.landed(call, false), scene.chance);
    }
    if elapses_left(scene.chance) > 0 && is_waited_for(scene) {
        to(ELAPSE, machine.cloud.elapsed(), scene.chance - 1);
    }
    next.extend(people(scene, &truth::read(scene)));
    next
}

/// Whoever has a token tries it.
fn tried(mut cloud: clients::Machine) -> clients::Machine {
    let trusts = cloud.account.roles.values().flat_map(|role| admitted(&role.trust));
    let epochs: Vec<i64> = trusts.map(|(epoch, _)| epoch).collect();
    let date = cloud.date;
    for epoch in epochs {
        cloud.clusters.sessions.entry(epoch).or_insert((date, date)).1 = date;
    }
    cloud
}

/// Whether somebody waits for the late-call window to pass, and nothing can land any more.
fn is_waited_for(scene: &Scene<'_, Placed>) -> bool {
    let cloud = &scene.machines[CLOUD].cloud;
    if !cloud.calls.is_empty() {
        return false;
    }
    let found = scene.hub().get(&ROLE, &role());
    let status = found.and_then(|it| read_part::<RoleStatus>(&it, "status").ok().flatten());
    let status = status.unwrap_or_default();
    let before = status.fence.and_then(|fence| fence.before);
    let is_fencing = before.is_some_and(|before| before.0.as_second() >= cloud.date);
    let process = cloud.process(0);
    let is_marked = status.mark.is_some_and(|mark| {
        mark.instance == process.instance && mark.quiet_at > Some(process.uptime)
    });
    is_fencing || is_marked || cloud.clients.iter().any(|client| !client.sent.is_empty())
}

/// What people and machines do.
fn people(scene: &Scene<'_, Placed>, truth: &Truth) -> Vec<Move<Machine>> {
    let (servers, hub) = (scene.servers, scene.contents[0]);
    let moved = |hub: u32| {
        let patch = json!({"metadata": {"annotations": {ANNOTATION_CLUSTER: "b"}}});
        servers.change(hub, &NAMESPACE, &namespace(), &patch)
    };
    let mut next = Vec::new();
    if scene.chance & MAY_MOVE != 0 {
        let chance = scene.chance & !MAY_MOVE;
        next.push(Move { chance, ..scene.at_hub(MOVE, moved(hub)) });
    }
    if scene.chance & MAY_LOSE_POWER != 0 && truth.is_held_by(0) {
        // The hub hears no more of it.
        let patch = json!({"status": {"conditions": conditions(0, false)}});
        let hub = servers.change(hub, &WORKLOAD_CLUSTER, &cluster(0), &patch);
        let mut found = scene.at_hub(POWER_OFF, hub);
        found.machines[0] = Some(scene.machines[0].without_power());
        found.chance &= !MAY_LOSE_POWER;
        found.restarts = Some(0);
        next.push(found);
    }
    let force = Name::cluster_wide(FORCE);
    let is_declared = scene.hub().get(&FORCE_RELEASE, &force).is_some();
    if scene.machines[0].is_off && truth.is_held_by(0) && !is_declared {
        let name = grant();
        let uid = servers.uid(hub, &GRANT, &Name::cluster_wide(&name));
        let object = json!({"metadata": {"uid": "uid-force"}, "spec": {
            "grant": {"name": name, "uid": uid},
            "owner": {"name": "a", "uid": CLUSTER_UIDS[0]}, "epoch": truth.epoch,
            "attestation": "PoweredOff", "reason": "the rack burnt down", "requester": "kim"}});
        let hub = servers.put(moved(hub), &FORCE_RELEASE, &force, object);
        next.push(scene.at_hub(DECLARE_GONE, hub));
    }
    next
}
