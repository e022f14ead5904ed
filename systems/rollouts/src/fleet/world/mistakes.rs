//! The controller with mistakes made on purpose. Each must be found.

use super::{Fleet, Fleets, HOME};
use crate::fleet::decide::{Child, Cluster, Decision, Facts, decide};
use crate::kinds::FLEET_UPDATE;
use interlock_api::rollouts::{FleetPhase, FleetUpdateStatus, OnFailure, UpdatePhase};
use interlock_kernel::{
    Action, Bent, Index, Kind, Name, Object, Place, Room, Step, View, Write, read_part,
};
use interlock_world::{Hostility, Mistake, unguarded};
use jiff::Timestamp;
use std::sync::Arc;

/// Nothing comes in between, and nothing is out of date.
const CALM: Hostility = Hostility { flights: 0, stale: 0, ..Hostility::HARSH };
/// A cache may be out of date.
const STALE: Hostility = Hostility { flights: 0, ..Hostility::HARSH };
/// What is decided is written late, and nothing is out of date.
const LATE: Hostility = Hostility { stale: 0, ..Hostility::HARSH };

fn deciding(system: Fleets, decide: fn(&Facts) -> Decision) -> Fleets {
    let fleet: Bent<Fleet> = system.fleet.deciding(decide);
    Fleets { fleet, ..system }
}

fn acting(system: Fleets, act: interlock_kernel::Act<Fleet>) -> Fleets {
    let fleet = system.fleet.acting(act);
    Fleets { fleet, ..system }
}

/// The same facts of a request, but for one thing.
fn but(facts: &Facts, change: fn(&mut Facts)) -> Facts {
    let mut facts = facts.clone();
    change(&mut facts);
    facts
}

fn each(facts: &Facts, change: fn(&mut Cluster)) -> Facts {
    let mut facts = facts.clone();
    facts.clusters.iter_mut().for_each(change);
    facts
}

pub(super) fn mistakes() -> Vec<Mistake<Fleets>> {
    [of_the_budget(), of_the_order(), of_the_end()].into_iter().flatten().collect()
}

/// One cluster, on which nothing fails and which nobody drains.
fn one(hostility: Hostility) -> Fleets {
    Fleets { clusters: 1, fails: false, drains: false, ..Fleets::new(hostility) }
}

fn of_the_budget() -> Vec<Mistake<Fleets>> {
    vec![
        Mistake {
            name: "drained-does-not-count",
            sentence: "a cluster that is still drained for an update that has ended counts as available",
            breaks: &["FleetBudget"],
            system: deciding(Fleets::new(CALM), |facts| {
                decide(&each(facts, |cluster| cluster.has_drain = false))
            }),
        },
        Mistake {
            name: "drains-from-a-cache",
            sentence: "a cluster is chosen by what the cache shows of the others",
            breaks: &["FleetBudget"],
            system: deciding(Fleets::new(STALE), |facts| {
                decide(&but(facts, |facts| facts.is_live = Some(true)))
            }),
        },
        Mistake {
            name: "ended-gives-its-place-at-once",
            sentence: "a cluster that ended while the clusters were read counts as available, drained or not",
            breaks: &["FleetBudget"],
            system: deciding(
                Fleets { clusters: 3, most: 2, fails: false, ..Fleets::new(Hostility::HARSH) },
                |facts| {
                    decide(&but(facts, |facts| {
                        let has_ended =
                            |cluster: &&Cluster| matches!(cluster.child, Child::Ended { .. });
                        let ended = facts.clusters.iter().filter(has_ended);
                        let ended: Vec<String> = ended.map(|it| it.name.clone()).collect();
                        facts.said.children.retain(|child| {
                            child.phase.is_terminal() || !ended.contains(&child.cluster)
                        });
                    }))
                },
            ),
        },
        Mistake {
            name: "not-ready-does-not-count",
            sentence: "a cluster that is not Ready counts as available",
            breaks: &["StartHasRoom"],
            system: deciding(Fleets { is_unready: true, ..Fleets::new(CALM) }, |facts| {
                decide(&each(facts, |cluster| cluster.is_ready = true))
            }),
        },
        Mistake {
            name: "asked-before-it-is-chosen",
            sentence: "a ClusterUpdate is made before the request says whose turn it is",
            breaks: &["InFlightIsChosen"],
            system: deciding(one(CALM), |facts| match decide(facts) {
                Decision::Write(next) => match newly_chosen(facts, &next) {
                    Some(name) => Decision::MakeChild(name),
                    None => Decision::Write(next),
                },
                decision => decision,
            }),
        },
        Mistake {
            name: "choice-is-written-over",
            sentence: "a cluster is chosen whatever the request says by now",
            breaks: &["InFlightIsChosen", "FleetBudget"],
            system: acting(
                Fleets { programs: 2, fails: false, drains: false, ..Fleets::new(LATE) },
                |room, scene, decision| {
                    unguarded(room.act(scene, decision), |write| {
                        write.address().kind == FLEET_UPDATE
                    })
                },
            ),
        },
        Mistake {
            name: "named-by-count",
            sentence: "a ClusterUpdate is named for how many of them the cache shows, and not for its cluster alone",
            breaks: &["MadeOnce"],
            system: acting(
                Fleets {
                    clusters: 3,
                    programs: 2,
                    most: 2,
                    fails: false,
                    drains: false,
                    ..Fleets::new(STALE)
                },
                |room, scene, decision| {
                    let count = scene.children.len();
                    let mut step = room.act(scene, decision);
                    if let Step::Act(effect) = &mut step
                        && let Action::Write(Write::Create { address, .. }) = &mut effect.action
                    {
                        let name = format!("{}-{count}", address.name.name);
                        address.name = Name::within(HOME, &name);
                    }
                    step
                },
            ),
        },
    ]
}

/// The cluster that a status names and the one before does not.
fn newly_chosen(facts: &Facts, next: &FleetUpdateStatus) -> Option<String> {
    let is_known = |name: &str| facts.said.children.iter().any(|child| child.cluster == name);
    let mut open = next.children.iter().filter(|child| !child.phase.is_terminal());
    open.find(|child| !is_known(&child.cluster)).map(|child| child.cluster.clone())
}

fn of_the_order() -> Vec<Mistake<Fleets>> {
    vec![
        Mistake {
            name: "canary-with-the-others",
            sentence: "the canary is one of the clusters that nobody selects",
            breaks: &["CanaryIsFirst"],
            system: deciding(Fleets { clusters: 3, most: 2, ..Fleets::new(CALM) }, |facts| {
                decide(&each(facts, |cluster| cluster.partition = 1))
            }),
        },
        Mistake {
            name: "failure-is-only-counted",
            sentence: "a cluster that fails stops no other one",
            breaks: &["CanaryIsFirst"],
            system: deciding(Fleets::new(CALM), |facts| {
                decide(&but(facts, |facts| facts.on_failure = OnFailure::Continue))
            }),
        },
        Mistake {
            name: "pause-is-only-shown",
            sentence: "a request that has said that it is paused goes on",
            breaks: &["PauseHolds"],
            system: deciding(Fleets::new(CALM), |facts| match facts.phase {
                FleetPhase::Paused => {
                    decide(&but(facts, |facts| facts.on_failure = OnFailure::Continue))
                }
                FleetPhase::Progressing
                | FleetPhase::Succeeded
                | FleetPhase::Failed
                | FleetPhase::Cancelled => decide(facts),
            }),
        },
        Mistake {
            name: "failure-is-forgotten",
            sentence: "a failure that the request names counts only if the cache shows it, too",
            breaks: &["PauseHolds"],
            system: {
                let two = Fleets { clusters: 3, programs: 2, most: 2, ..Fleets::new(STALE) };
                let fleet: Bent<Fleet> = two.fleet.observing(|room, subject, view, live_reads| {
                    room.observe(subject, &WithoutFailures(view), live_reads)
                });
                Fleets { fleet, ..two }
            },
        },
    ]
}

fn of_the_end() -> Vec<Mistake<Fleets>> {
    vec![
        Mistake {
            name: "in-flight-counts-as-well",
            sentence: "a cluster that is in flight counts as one that ended well",
            breaks: &["OutcomeIsTrue"],
            system: deciding(one(CALM), |facts| {
                decide(&each(facts, |cluster| {
                    if matches!(cluster.child, Child::InFlight { .. }) {
                        let (phase, reason) = (UpdatePhase::Succeeded, String::new());
                        cluster.child = Child::Ended { phase, reason };
                    }
                }))
            }),
        },
        Mistake {
            name: "outcome-is-judged-again",
            sentence: "a request that has ended is cancelled afterwards",
            breaks: &["OutcomeIsFinal"],
            system: deciding(Fleets { cancels: true, ..one(CALM) }, |facts| {
                decide(&but(facts, |facts| facts.phase = FleetPhase::Progressing))
            }),
        },
        Mistake {
            name: "late-one-is-not-cancelled",
            sentence: "a ClusterUpdate that the cache shows only once the request has ended is left alone",
            breaks: &["NothingStaysInFlight"],
            system: deciding(
                Fleets { cancels: true, ..one(Hostility { stale: 1, ..Hostility::LIVE }) },
                |facts| match facts.phase.is_terminal() {
                    true => Decision::Rest("the request has ended"),
                    false => decide(facts),
                },
            ),
        },
        Mistake {
            name: "chosen-is-not-asked",
            sentence: "a cluster that was chosen gets no ClusterUpdate",
            breaks: &["EveryFleetEnds"],
            system: deciding(one(Hostility::LIVE), |facts| match decide(facts) {
                Decision::MakeChild(_) => Decision::Rest("somebody else makes it"),
                decision => decision,
            }),
        },
        Mistake {
            name: "behind-and-asleep",
            sentence: "what only the live read shows is not read again until an event comes",
            breaks: &["WorkWakes"],
            system: deciding(Fleets::new(STALE), |facts| match decide(facts) {
                Decision::Wait(because) => Decision::Rest(because),
                decision => decision,
            }),
        },
    ]
}

/// A view of a request without what its status says of clusters that have ended.
struct WithoutFailures<'a>(&'a dyn View);

impl View for WithoutFailures<'_> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        let found = self.0.get(place, kind, name)?;
        let status = read_part::<FleetUpdateStatus>(&found, "status").ok().flatten();
        let Some(mut status) = status.filter(|_| *kind == FLEET_UPDATE) else {
            return Some(found);
        };
        status.children.retain(|child| !child.phase.is_terminal());
        let mut changed = (*found).clone();
        changed.data["status"] = serde_json::to_value(status).unwrap_or_default();
        Some(Arc::new(changed))
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.0.list(place, kind, namespace)
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.0.find(place, index, value)
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.0.count(place, index, value)
    }
}
