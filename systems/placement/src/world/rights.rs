//! Cloud roles: people give the namespace one before it is placed, and the cloud comes to trust each owner
//! in its own time. The controllers that see to that are another system's; here is what they write.

use super::machine::Machine;
use super::promises::promise;
use super::truth::Truth;
use super::{ADD_ROLE, Namespaces, TRUST_OWNER};
use crate::kinds::GRANT;
use interlock_api::placement::RightsState;
use interlock_kernel::Name;
use interlock_world::{CLUSTERS, Move, Promise, Scene};
use serde_json::{Value, json};

/// What people and the cloud can do now.
pub(super) fn next(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    moves: &mut Vec<Move<Machine>>,
) {
    let grant = Name::cluster_wide(&system.grant_name(0));
    let Some(found) = scene.hub().get(&GRANT, &grant) else { return };
    let status = &found.data["status"];
    let epoch = status["epoch"].as_i64().unwrap_or(0);
    let has_role = status["rights"].as_array().is_some_and(|roles| !roles.is_empty());
    let is_trusted =
        status["rights"][0]["epoch"] == epoch && status["rights"][0]["state"] == "Ready";
    let change = |name: usize, role: Value| {
        let patch = json!({"status": {"rights": [role]}});
        scene.at_hub(name, scene.servers.change(scene.contents[0], &GRANT, &grant, &patch))
    };
    // A role that comes later than a permit was not known to whoever gave it.
    if !has_role && epoch == 0 {
        moves.push(change(ADD_ROLE, role(0, "Waiting")));
    }
    if has_role && !is_trusted && status["phase"] == "Granted" {
        moves.push(change(TRUST_OWNER, role(epoch, "Ready")));
    }
}

fn role(epoch: i64, state: &str) -> Value {
    json!({"uid": "uid-role", "name": "app", "epoch": epoch, "state": state})
}

/// Whether every role trusts the owner of an epoch.
fn is_trusted(truth: &Truth, epoch: i64) -> bool {
    let mut roles = truth.grant.iter().flat_map(|grant| &grant.rights);
    roles.all(|role| *role == (epoch, RightsState::Ready))
}

pub(super) fn promises(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    if !system.rights {
        return Vec::new();
    }
    vec![promise(
        "RightsBeforeTheStart",
        "what a cluster has a permit for, or runs, has the rights of its present epoch",
        |_, truth| {
            let here = |c: usize| {
                let cluster = &truth.clusters[c];
                let permitted =
                    [cluster.permitted].into_iter().filter(|epoch| *epoch > cluster.released);
                let mut epochs = permitted.chain(cluster.running.iter().copied());
                // What is left of an epoch that was ended by force is somebody else's to promise.
                epochs.all(|epoch| epoch != truth.epoch() || is_trusted(truth, epoch))
            };
            (0..CLUSTERS).all(here)
        },
    )]
}

pub(super) fn reachable(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    if !system.rights || system.unfit {
        return Vec::new();
    }
    vec![promise("StartsWithRights", "a namespace with a cloud role runs", |_, truth| {
        let has_role = truth.grant.as_ref().is_some_and(|grant| !grant.rights.is_empty());
        has_role && truth.is_as_desired()
    })]
}
