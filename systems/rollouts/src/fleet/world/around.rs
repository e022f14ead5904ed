//! The clusters that answer the ClusterUpdates, and people.

use super::truth::{cluster_of, phase_of};
use super::{Fleets, request};
use crate::filed::drained_for;
use crate::kinds::{CLUSTER_UPDATE, FLEET_UPDATE, WORKLOAD_CLUSTER};
use interlock_api::rollouts::{FleetPhase, UpdatePhase, drain_requester};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Kind, Name, Object};
use interlock_world::{Move, Scene, System};
use serde_json::{Value, json};

/// What happens around the controller, and who does it.
pub(super) const MOVES: [(&str, &str); 8] = [
    ("Drain", "conductor"),
    ("Succeed", "cluster"),
    ("Fail", "cluster"),
    ("End", "conductor"),
    ("Release", "conductor"),
    ("GetReady", "cluster"),
    ("Cancel", "people"),
    ("GoOn", "people"),
];
const DRAIN: usize = 0;
const SUCCEED: usize = 1;
const FAIL: usize = 2;
const END: usize = 3;
const RELEASE: usize = 4;
const GET_READY: usize = 5;
const CANCEL: usize = 6;
const GO_ON: usize = 7;

/// The status of a cluster whose agent sends heartbeats.
pub(super) fn status(is_ready: bool) -> Value {
    let said = |kind: &str, is_so: bool| {
        let status = if is_so { "True" } else { "False" };
        json!({"type": kind, "status": status, "reason": "Heard", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z"})
    };
    json!({"conditions": [said("Ready", is_ready), said("Reachable", true)]})
}

/// Makes moves of changes at the hub.
struct Hub<'a, 'b> {
    scene: &'a Scene<'b, Fleets>,
    moves: Vec<Move<()>>,
}

impl Hub<'_, '_> {
    fn may(&mut self, name: usize, kind: &Kind, of: &Name, change: &Value) {
        let hub = self.scene.servers.change(self.scene.contents[0], kind, of, change);
        self.moves.push(self.scene.at_hub(name, hub));
    }
}

pub(super) fn next(system: &Fleets, scene: &Scene<'_, Fleets>) -> Vec<Move<()>> {
    let mut hub = Hub { scene, moves: Vec::new() };
    for update in scene.hub().list(&CLUSTER_UPDATE) {
        of_update(system, &mut hub, &update);
    }
    let clusters = system.names().iter().zip(system.truth(scene).clusters);
    for (name, _) in clusters.filter(|(_, cluster)| !cluster.is_ready) {
        let name = Name::cluster_wide(name);
        hub.may(GET_READY, &WORKLOAD_CLUSTER, &name, &json!({"status": status(true)}));
    }
    of_people(system, &mut hub);
    hub.moves
}

/// How a cluster answers a ClusterUpdate.
fn of_update(system: &Fleets, hub: &mut Hub<'_, '_>, update: &Object) {
    let at = Name::of(update);
    let cluster = Name::cluster_wide(cluster_of(update));
    let found = hub.scene.hub().get(&WORKLOAD_CLUSTER, &cluster);
    let uid = uid_of(update);
    let has_drain = found.is_some_and(|it| drained_for(&it).iter().any(|of| of == uid));
    if phase_of(update).is_terminal() {
        if has_drain {
            let change = json!({"spec": {"drains": null}});
            hub.may(RELEASE, &WORKLOAD_CLUSTER, &cluster, &change);
        }
        return;
    }
    let ends = |phase: UpdatePhase| json!({"status": {"phase": phase, "reason": phase.as_str()}});
    if update.data["spec"]["cancel"] == true {
        hub.may(END, &CLUSTER_UPDATE, &at, &ends(UpdatePhase::Cancelled));
    } else if system.drains && !has_drain {
        let drain = json!({"requester": drain_requester(uid), "reason": "an update"});
        let change = json!({"spec": {"drains": [drain]}});
        hub.may(DRAIN, &WORKLOAD_CLUSTER, &cluster, &change);
        return;
    }
    // Who cancels may be too late.
    if has_drain || !system.drains {
        hub.may(SUCCEED, &CLUSTER_UPDATE, &at, &ends(UpdatePhase::Succeeded));
        if system.fails {
            hub.may(FAIL, &CLUSTER_UPDATE, &at, &ends(UpdatePhase::RolledBack));
        }
    }
}

fn of_people(system: &Fleets, hub: &mut Hub<'_, '_>) {
    let part = |part: &str| hub.scene.hub().part(&FLEET_UPDATE, &request(), part);
    let (spec, status) = (part("spec"), part("status"));
    if system.cancels && spec["cancel"] != true {
        hub.may(CANCEL, &FLEET_UPDATE, &request(), &json!({"spec": {"cancel": true}}));
    }
    if status["phase"] == FleetPhase::Paused.as_str() && spec["onFailure"] != "Continue" {
        hub.may(GO_ON, &FLEET_UPDATE, &request(), &json!({"spec": {"onFailure": "Continue"}}));
    }
}
