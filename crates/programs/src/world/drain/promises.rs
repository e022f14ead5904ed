//! What rollouts and placement promise together.

use super::Drains;
use super::truth::Truth;
use interlock_world::{CLUSTERS, Goal, Promise};

fn promise(
    name: &'static str,
    sentence: &'static str,
    holds: fn(&Drains, &Truth) -> bool,
) -> Promise<Drains> {
    Promise { name, sentence, holds }
}

pub(super) fn promises() -> Vec<Promise<Drains>> {
    vec![
        promise(
            "DrainedIsEmpty",
            "while a cluster says to somebody who asked that it is drained, no namespace is granted to it or runs there",
            |_, truth| (0..CLUSTERS).all(|c| !truth.is_drained(c) || truth.is_empty(c)),
        ),
        promise(
            "UpdatedIsEmpty",
            "while an update that drains its cluster first is in flight, no namespace is granted to the cluster or runs there",
            |_, truth| (0..CLUSTERS).all(|c| !truth.is_updated(c) || truth.is_empty(c)),
        ),
    ]
}

pub(super) fn reachable(system: &Drains) -> Vec<Promise<Drains>> {
    let mut reachable = vec![promise(
        "UpdatedUnderADrain",
        "cluster a is updated while a namespace runs on cluster b",
        |_, truth| truth.is_updated(0) && !truth.is_empty(1) && truth.all_run(),
    )];
    if system.may_be_stuck() {
        reachable.push(promise(
            "EachWaits",
            "each cluster is to be drained, and has a namespace that only the other one could take",
            |_, truth| truth.is_stuck(),
        ));
        reachable.push(promise(
            "DeadlineEndsIt",
            "an update that waited too long for its drain has failed, and the namespaces run",
            |_, truth| truth.has_one_failed() && truth.all_run() && truth.nobody_drains(),
        ));
    }
    reachable
}

/// No update waits for a drain, and no drain for an update, for ever.
pub(super) fn goals() -> Vec<Goal<Drains>> {
    vec![
        Goal {
            name: "EveryUpdateEnds",
            sentence: "every update that is sent ends, and says how",
            while_true: |_, truth| !truth.no_update_waits(),
            then: |_, truth| truth.no_update_waits(),
        },
        Goal {
            name: "EveryDrainEnds",
            sentence: "every drain is taken off",
            while_true: |_, truth| !truth.nobody_drains(),
            then: |_, truth| truth.nobody_drains(),
        },
        Goal {
            name: "EveryNamespaceRuns",
            sentence: "every namespace comes to run again",
            while_true: |_, truth| !truth.all_run(),
            then: |_, truth| truth.all_run(),
        },
    ]
}
