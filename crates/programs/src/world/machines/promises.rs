//! What nodes and placement promise together, and rollouts with them.

use super::Machines;
use super::truth::Truth;
use interlock_world::{CLUSTERS, Goal, Promise, Rule};

fn promise(
    name: &'static str,
    sentence: &'static str,
    holds: fn(&Machines, &Truth) -> bool,
) -> Promise<Machines> {
    Promise { name, sentence, holds }
}

pub(super) fn promises() -> Vec<Promise<Machines>> {
    vec![
        promise(
            "DrainedIsEmpty",
            "while a cluster says to somebody who asked that it is drained, no namespace is granted to it or runs there",
            |_, truth| {
                let is_kept = |c: usize| !truth.placed.is_drained(c) || truth.placed.is_empty(c);
                (0..CLUSTERS).all(is_kept)
            },
        ),
        promise(
            "UpdatedIsEmpty",
            "while an update that drains its cluster first is in flight, no namespace is granted to the cluster or runs there",
            |_, truth| {
                let is_kept = |c: usize| !truth.placed.is_updated(c) || truth.placed.is_empty(c);
                (0..CLUSTERS).all(is_kept)
            },
        ),
    ]
}

pub(super) fn rules() -> Vec<Rule<Machines>> {
    vec![Rule {
        name: "MachineIsTenants",
        sentence: "while a cluster is on a machine, the epoch of the machine ends only if the cluster says to it that it is \
                   drained, and is empty, or a person has fenced the machine",
        allows: |_, before, after| before.allows(after),
    }]
}

pub(super) fn reachable(system: &Machines) -> Vec<Promise<Machines>> {
    let mut reachable = Vec::new();
    // Alone, it takes a person.
    if (system.reclaims || system.deletes) && (!system.is_alone || system.fences) {
        reachable.push(promise(
            "ReturnedWhileNamespacesRun",
            "the first epoch of every machine has ended, and all namespaces run",
            |_, truth| truth.all_are_returned() && truth.placed.all_run(),
        ));
    }
    if system.updated == Some(1) {
        reachable.push(promise(
            "DrainedWhileTheOtherIsUpdated",
            "cluster b is updated while cluster a is to be drained",
            |_, truth| truth.placed.is_updated(1) && truth.placed.is_asked(0),
        ));
    }
    if system.may_be_stuck() {
        reachable.push(promise(
            "BlockedIsReported",
            "a machine whose cluster was not drained in time says so, while all namespaces run",
            |_, truth| truth.is_one_blocked() && truth.placed.all_run(),
        ));
    }
    reachable
}

/// No reclaim, no update and no namespace waits for a drain, and no drain for one of them, for ever.
pub(super) fn goals(system: &Machines) -> Vec<Goal<Machines>> {
    let mut goals: Vec<Goal<Machines>> = vec![
        Goal {
            name: "ReclaimCompletes",
            sentence: "a machine that is taken back returns to the pool, or says that a person has to act",
            while_true: |system, truth| !truth.no_reclaim_waits(system),
            then: |system, truth| truth.no_reclaim_waits(system),
        },
        Goal {
            name: "EveryDrainEnds",
            sentence: "every drain is taken off, but for that of a machine that says that a person has to act",
            while_true: |system, truth| !truth.no_drain_waits(system),
            then: |system, truth| truth.no_drain_waits(system),
        },
    ];
    // Alone, no namespace ever moves.
    if !system.is_alone {
        goals.push(Goal {
            name: "EveryNamespaceRuns",
            sentence: "every namespace comes to run again",
            while_true: |_, truth| !truth.placed.all_run(),
            then: |_, truth| truth.placed.all_run(),
        });
    }
    if system.updated.is_some() {
        goals.push(Goal {
            name: "EveryUpdateEnds",
            sentence: "every update that is sent ends, and says how",
            while_true: |_, truth| !truth.placed.no_update_waits(),
            then: |_, truth| truth.placed.no_update_waits(),
        });
    }
    goals
}
