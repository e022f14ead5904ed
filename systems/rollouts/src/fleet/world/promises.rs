//! What the controller promises.

use super::truth::Cluster;
use super::{Fleets, Truth};
use interlock_api::rollouts::{FleetPhase, OnFailure};
use interlock_world::{Goal, Promise, Rule};

pub(super) fn promises() -> Vec<Promise<Fleets>> {
    vec![
        Promise {
            name: "FleetBudget",
            sentence: "at most spec.maxUnavailable clusters are chosen, in flight or drained for the request",
            holds: |system, truth| {
                truth.clusters.iter().filter(|cluster| cluster.is_out()).count() <= system.most
            },
        },
        Promise {
            name: "MadeOnce",
            sentence: "no cluster has two ClusterUpdates of the request",
            holds: |_, truth| truth.clusters.iter().all(|cluster| cluster.updates.len() <= 1),
        },
        Promise {
            name: "InFlightIsChosen",
            sentence: "the request names each cluster that is in flight for it, unless it is cancelled",
            holds: |_, truth| {
                truth.is_cancelled || truth.in_flight().all(|cluster| cluster.is_chosen)
            },
        },
        Promise {
            name: "OutcomeIsTrue",
            sentence: "a request that succeeded ended well on every cluster, and one that failed has ended on every cluster",
            holds: |_, truth| match truth.phase {
                FleetPhase::Succeeded => truth.clusters.iter().all(Cluster::is_well),
                FleetPhase::Failed => truth.clusters.iter().all(Cluster::has_ended),
                FleetPhase::Progressing | FleetPhase::Paused | FleetPhase::Cancelled => true,
            },
        },
    ]
}

/// The place of the cluster that is chosen in a step, if its turn has not been yet.
fn chosen(before: &Truth, after: &Truth) -> Option<usize> {
    let mut pairs = before.clusters.iter().zip(&after.clusters);
    pairs.position(|(old, new)| new.is_chosen && !old.is_chosen && old.updates.is_empty())
}

/// The other clusters.
fn others(truth: &Truth, place: usize) -> impl Iterator<Item = &Cluster> {
    let all = truth.clusters.iter().enumerate();
    all.filter(move |(other, _)| *other != place).map(|(_, cluster)| cluster)
}

pub(super) fn rules() -> Vec<Rule<Fleets>> {
    vec![
        Rule {
            name: "StartHasRoom",
            sentence: "a cluster is chosen only while fewer than spec.maxUnavailable others are in flight, drained for the request \
                       or not Ready",
            allows: |system, before, after| {
                chosen(before, after).is_none_or(|place| {
                    let is_out = |cluster: &&Cluster| cluster.is_out() || !cluster.is_ready;
                    others(before, place).filter(is_out).count() < system.most
                })
            },
        },
        Rule {
            name: "CanaryIsFirst",
            sentence: "another cluster is chosen only once the canary has ended, and well, unless spec.onFailure is Continue",
            allows: |system, before, after| {
                chosen(before, after).is_none_or(|place| {
                    let canary = before.clusters.last();
                    system.is_canary(place)
                        || canary.is_some_and(|canary| match before.on_failure {
                            OnFailure::Pause => canary.is_well(),
                            OnFailure::Continue => canary.has_ended(),
                        })
                })
            },
        },
        Rule {
            name: "PauseHolds",
            sentence: "while the request says that it is paused, no cluster is chosen, unless spec.onFailure is Continue",
            allows: |_, before, after| {
                let is_held =
                    before.phase == FleetPhase::Paused && before.on_failure == OnFailure::Pause;
                !is_held || chosen(before, after).is_none()
            },
        },
        Rule {
            name: "OutcomeIsFinal",
            sentence: "the outcome of a request never changes",
            allows: |_, before, after| !before.phase.is_terminal() || before.phase == after.phase,
        },
    ]
}

/// The ends that a request gets to in this size.
pub(super) fn reachable(system: &Fleets) -> Vec<Promise<Fleets>> {
    let mut all: Vec<Promise<Fleets>> = vec![Promise {
        name: "SomeSucceed",
        sentence: "a request ends well on every cluster",
        holds: |_, truth| truth.phase == FleetPhase::Succeeded,
    }];
    if system.fails {
        all.push(Promise {
            name: "SomeFail",
            sentence: "a request fails, once every cluster has ended",
            holds: |_, truth| truth.phase == FleetPhase::Failed,
        });
    }
    if system.fails && system.clusters > 1 {
        all.push(Promise {
            name: "SomePause",
            sentence: "a request pauses with a cluster left",
            holds: |_, truth| {
                let is_left = |cluster: &Cluster| cluster.updates.is_empty();
                truth.phase == FleetPhase::Paused && truth.clusters.iter().any(is_left)
            },
        });
    }
    if system.cancels {
        all.push(Promise {
            name: "SomeAreCancelled",
            sentence: "a request is cancelled with a cluster left",
            holds: |_, truth| {
                let is_left = |cluster: &Cluster| cluster.updates.is_empty();
                truth.phase == FleetPhase::Cancelled && truth.clusters.iter().any(is_left)
            },
        });
    }
    if system.clusters > 2 && system.most > 1 {
        all.push(Promise {
            name: "TwoAtOnce",
            sentence: "two clusters are in flight at once",
            holds: |_, truth| truth.in_flight().count() == 2,
        });
    }
    all
}

pub(super) fn goals() -> Vec<Goal<Fleets>> {
    vec![
        Goal {
            name: "EveryFleetEnds",
            sentence: "the request ends",
            while_true: |_, truth| !truth.phase.is_terminal(),
            then: |_, truth| truth.phase.is_terminal(),
        },
        Goal {
            name: "NothingStaysInFlight",
            sentence: "no cluster stays in flight, also after the request was cancelled",
            while_true: |_, truth| truth.in_flight().next().is_some(),
            then: |_, truth| truth.in_flight().next().is_none(),
        },
    ]
}
