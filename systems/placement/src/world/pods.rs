//! The pod: people delete it, once, and make another one of its name.

use super::machine::Machine;
use super::people::MADE_POD_AGAIN;
use super::truth::{self, Life, Truth};
use super::{DELETE_POD, MAKE_POD_AGAIN, Namespaces, POD_NAMES};
use crate::kinds::POD;
use crate::syncer::marks::from_uid;
use interlock_api::placement::Phase;
use interlock_kernel::Name;
use interlock_kernel::metadata::{is_deleting, uid_of};
use interlock_world::{CLUSTERS, Move, Rule, Scene};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn name() -> Name {
    Name::within("shop", POD_NAMES[0])
}

/// A pod without volumes.
pub(super) fn pod(command: &str) -> Value {
    json!({"spec": {"runtimeClassName": "interlock-process",
        "containers": [{"name": "main", "image": "none", "command": [command]}]}})
}

/// What people can do now.
pub(super) fn next(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    moves: &mut Vec<Move<Machine>>,
) {
    let (servers, hub) = (scene.servers, scene.contents[0]);
    match scene.hub().get(&POD, &name()) {
        Some(pod) if scene.chance & MADE_POD_AGAIN == 0 && !is_deleting(&pod) => {
            moves.push(scene.at_hub(DELETE_POD, servers.remove(hub, &POD, &name())));
        }
        None if truth::life_of_namespace(system, scene, 0) == Life::There => {
            let hub = servers.put(hub, &POD, &name(), pod("another-writer"));
            let chance = scene.chance | MADE_POD_AGAIN;
            moves.push(Move { chance, ..scene.at_hub(MAKE_POD_AGAIN, hub) });
        }
        Some(_) | None => {}
    }
}

/// The pod at the hub, and what the pods of a cluster were made from, of those that stay.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Pods {
    /// Its uid, if it stays.
    at_hub: Option<String>,
    /// Whether people deleted it, and it is gone.
    pub(super) is_gone: bool,
    /// The uids of what they were made from.
    on_clusters: [BTreeSet<String>; CLUSTERS],
}

impl Pods {
    pub(super) fn of(system: &Namespaces, scene: &Scene<'_, Namespaces>) -> Pods {
        if !system.pods {
            return Pods::default();
        }
        let at_hub = scene.hub().get(&POD, &name());
        let made_from = |c: usize| {
            let pods = scene.cluster(c).list(&POD);
            let stay = pods.iter().filter(|pod| !is_deleting(pod));
            stay.filter_map(|pod| from_uid(pod).map(str::to_owned)).collect()
        };
        Pods {
            is_gone: at_hub.is_none(),
            at_hub: at_hub.filter(|pod| !is_deleting(pod)).map(|pod| uid_of(&pod).to_owned()),
            on_clusters: std::array::from_fn(made_from),
        }
    }

    /// Whether a cluster has pods of objects that the hub has not.
    pub(super) fn has_strays(&self, cluster: usize) -> bool {
        self.on_clusters[cluster].iter().any(|from| Some(from) != self.at_hub.as_ref())
    }
}

pub(super) fn rules(system: &Namespaces) -> Vec<Rule<Namespaces>> {
    // A write that makes a pod cannot be guarded: one that is under way may come at any time, and what it
    // made goes again (DesiredIsMet).
    if !system.pods || system.hostility.flights > 0 {
        return Vec::new();
    }
    vec![
        Rule {
            name: "OnlyPodsOfTheHub",
            sentence: "what comes to a cluster was made from a pod that the hub has",
            allows: |_, from, to| {
                let comes = |c: usize| {
                    let mut new = to.pods.on_clusters[c].difference(&from.pods.on_clusters[c]);
                    new.all(|pod| from.pods.at_hub.as_ref() == Some(pod))
                };
                (0..CLUSTERS).all(comes)
            },
        },
        Rule {
            name: "PodsOfTheHubStay",
            sentence: "a pod runs on while the hub has the one that it was made from, and its owner is the same",
            allows: |_, from, to| {
                let granted = |truth: &Truth| {
                    let grant = truth.grant.as_ref();
                    grant.filter(|it| it.phase == Phase::Granted).map(|it| (it.epoch, it.owner))
                };
                let (Some(before), Some(pod)) = (granted(from), &to.pods.at_hub) else {
                    return true;
                };
                let has_it = |truth: &Truth, c: usize| truth.pods.on_clusters[c].contains(pod);
                let stays = |c: usize| !has_it(from, c) || has_it(to, c);
                granted(to) != Some(before) || before.1.is_none_or(stays)
            },
        },
    ]
}
