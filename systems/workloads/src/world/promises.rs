//! What is promised.

use super::Workloads;
use super::truth::{Pod, Truth};
use interlock_world::{Goal, Promise, Rule};

/// What must hold in every state.
pub(super) fn promises() -> Vec<Promise<Workloads>> {
    vec![
        Promise {
            name: "PodsBounded",
            sentence: "there are never more pods than desired and surge together, terminating ones too",
            holds: |system, truth| truth.pods.len() <= system.size.most(),
        },
        Promise {
            name: "ReadyFloor",
            sentence: "while pods stay ready by themselves, those that are ready are never fewer than the floor: that \
                       of the fewest that were asked for, or of the present number once it is said that all is done",
            holds: |system, truth| {
                let is_done = truth.is_said_to_be_done();
                let desired = if is_done { truth.desired } else { system.size.desired };
                truth.is_disturbed || truth.ready() >= system.size.floor(desired)
            },
        },
        Promise {
            name: "SaidWhenDone",
            sentence: "a status that says that a change is over is written after the sizes of all ReplicaSets",
            holds: |system, truth| {
                system.size.alone == 1 || !truth.is_said_to_be_done() || truth.is_sized()
            },
        },
    ]
}

/// What must hold of every step.
pub(super) fn rules() -> Vec<Rule<Workloads>> {
    vec![Rule {
        name: "AdoptedByTheLiving",
        sentence: "a pod is adopted by a ReplicaSet that is there, as far as nothing comes between a live read and the \
                   write",
        allows: |system, before, after| {
            let is_adopted = |pod: &&Pod| {
                let was = before.pods.iter().find(|other| other.uid == pod.uid);
                was.is_some_and(|was| was.of.is_empty()) && !pod.of.is_empty()
            };
            let is_there = |pod: &Pod| before.sets.iter().any(|set| set.uid == pod.of);
            system.size.flights > 0 || after.pods.iter().filter(is_adopted).all(is_there)
        },
    }]
}

/// What must be possible.
pub(super) fn reachable(system: &Workloads) -> Vec<Promise<Workloads>> {
    let mut reachable = Vec::new();
    if system.size.alone == 0 && system.size.changes > 0 {
        reachable.push(Promise {
            name: "Changed",
            sentence: "all pods are of the second template, and the status says so",
            holds: |system, truth: &Truth| truth.is_changed && truth.is_done(system),
        });
    }
    if system.size.alone == 0 && system.size.undos > 0 && system.size.changes > 0 {
        reachable.push(Promise {
            name: "Undone",
            sentence: "the template changed back, and all pods are of the first again",
            holds: |system, truth: &Truth| {
                !truth.is_changed && truth.sets.len() > 1 && truth.is_done(system)
            },
        });
    }
    reachable
}

/// What must happen in the end.
pub(super) fn goals() -> Vec<Goal<Workloads>> {
    vec![Goal {
        name: "ChangesEnd",
        sentence: "with pods that become ready every change ends, and the status says so",
        while_true: |system, truth| !truth.is_done(system),
        then: |_, _| false,
    }]
}
