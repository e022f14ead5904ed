//! Somebody needs a cluster empty, learns that it is, and takes that back: what rollouts and nodes rely on.

use super::machine::Machine;
use super::promises::promise;
use super::truth::{Past, Truth};
use super::{ASK_TO_DRAIN, CLUSTER_NAMES, END_DRAIN, Namespaces};
use crate::kinds::WORKLOAD_CLUSTER;
use interlock_kernel::Name;
use interlock_world::{CLUSTERS, Goal, Move, Promise, Scene};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Who asked for a cluster to be empty, and whom it told that it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Drain {
    asked: BTreeSet<String>,
    told: BTreeSet<String>,
}

impl Drain {
    pub(super) fn is_asked_for(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether somebody relies on it to be empty.
    fn is_relied_on(&self) -> bool {
        !self.asked.is_disjoint(&self.told)
    }

    fn is_answered(&self) -> bool {
        self.asked.is_subset(&self.told)
    }
}

fn cluster(c: usize) -> Name {
    Name::cluster_wide(CLUSTER_NAMES[c])
}

/// How it is with each cluster.
pub(super) fn read(system: &Namespaces, scene: &Scene<'_, Namespaces>) -> [Drain; CLUSTERS] {
    if system.drains == 0 {
        return Default::default();
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    std::array::from_fn(|c| {
        let part = |part| scene.hub().part(&WORKLOAD_CLUSTER, &cluster(c), part);
        let (spec, status) = (part("spec"), part("status"));
        let asked = spec["drains"].as_array().into_iter().flatten();
        let told = status["drained"].as_array().into_iter().flatten();
        Drain {
            asked: asked.filter_map(|drain| text(&drain["requester"])).collect(),
            told: told.filter_map(text).collect(),
        }
    })
}

/// What whoever needs a cluster empty can do now: each time somebody else asks.
pub(super) fn next(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    moves: &mut Vec<Move<Machine>>,
) {
    let entries = |c: usize| -> Vec<Value> {
        let spec = scene.hub().part(&WORKLOAD_CLUSTER, &cluster(c), "spec");
        spec["drains"].as_array().cloned().unwrap_or_default()
    };
    let with = |c: usize, drains: Vec<Value>| {
        let patch = json!({"spec": {"drains": drains}});
        scene.servers.change(scene.contents[0], &WORKLOAD_CLUSTER, &cluster(c), &patch)
    };
    let count = scene.past.asked;
    for c in 0..CLUSTERS {
        let mut drains = entries(c);
        for number in 0..drains.len() {
            let mut fewer = drains.clone();
            fewer.remove(number);
            moves.push(scene.at_hub(END_DRAIN, with(c, fewer)));
        }
        if count < system.drains {
            drains.push(json!({"requester": format!("rollouts/{count}"), "reason": "an update"}));
            moves.push(scene.at_hub(ASK_TO_DRAIN, with(c, drains)));
        }
    }
}

/// How often somebody has asked, after a step.
pub(super) fn remember(past: &mut Past, before: &Truth, after: &Truth) {
    let pairs = before.drains.iter().zip(&after.drains);
    let new: usize = pairs.map(|(old, new)| new.asked.difference(&old.asked).count()).sum();
    past.asked += u32::try_from(new).unwrap_or(u32::MAX);
}

pub(super) fn promises(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    if system.drains == 0 {
        return Vec::new();
    }
    vec![promise(
        "DrainedIsEmpty",
        "nothing is granted to a cluster while it says to somebody who asked that it is empty",
        |_, truth| {
            let is_owner = |c: usize| truth.each().any(|it| it.is_held() && it.owner() == Some(c));
            (0..CLUSTERS).all(|c| !truth.drains[c].is_relied_on() || !is_owner(c))
        },
    )]
}

pub(super) fn reachable(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    if system.drains == 0 || system.moves == 0 {
        return Vec::new();
    }
    vec![promise(
        "DrainEnds",
        "a cluster that a namespace ran on is empty, and says so",
        |_, truth| truth.epoch() > 1 && truth.drains[0].is_relied_on(),
    )]
}

/// Whether the namespace may leave a cluster: people want it on the other one, which takes it.
fn may_leave(truth: &Truth, c: usize) -> bool {
    truth.desired == Some(1 - c)
        && !truth.drains[1 - c].is_asked_for()
        && !truth.clusters[1 - c].is_off
}

fn waits(truth: &Truth, c: usize) -> bool {
    truth.drains[c].is_asked_for() && may_leave(truth, c) && !truth.clusters[c].is_off
}

pub(super) fn goals(system: &Namespaces) -> Vec<Goal<Namespaces>> {
    if system.drains == 0 {
        return Vec::new();
    }
    vec![
        Goal {
            name: "DrainIsAnswered",
            sentence: "a cluster that the namespace may leave comes to be empty, and says so",
            while_true: |system, truth| system.makes_snapshots() && waits(truth, 0),
            then: |_, truth| truth.drains[0].is_answered(),
        },
        Goal {
            name: "SecondDrainIsAnswered",
            sentence: "so does the second",
            while_true: |system, truth| system.makes_snapshots() && waits(truth, 1),
            then: |_, truth| truth.drains[1].is_answered(),
        },
    ]
}
