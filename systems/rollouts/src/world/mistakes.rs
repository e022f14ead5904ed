//! The conductor and the mirror with mistakes made on purpose. Each must be found.

mod ends;
mod refined;

use super::Rollouts;
use crate::conductor::Conductor;
use crate::conductor::decide::{Decision, decide};
use crate::conductor::facts::{Asked, Candidate, Facts, Source};
use crate::mirror::{self, Mirror};
use interlock_api::rollouts::{UpdatePhase, Verdict};
use interlock_kernel::{Bent, Room, Write};
use interlock_world::{Hostility, Mistake, rewritten};
use serde_json::{Value, json};

/// Nothing comes in between, and nothing is out of date.
const CALM: Hostility = Hostility { flights: 0, stale: 0, ..Hostility::HARSH };
/// A cache may be out of date.
const STALE: Hostility = Hostility { flights: 0, ..Hostility::HARSH };

fn conductor(system: Rollouts, decide: fn(&Facts) -> Decision) -> Rollouts {
    let conductor: Bent<Conductor> = system.conductor.deciding(decide);
    Rollouts { conductor, ..system }
}

/// A conductor that writes other records than it decided on.
fn writing(system: Rollouts, act: interlock_kernel::Act<Conductor>) -> Rollouts {
    let conductor = system.conductor.acting(act);
    Rollouts { conductor, ..system }
}

/// The status that a write gives to a record, once a request has begun to be in flight in a phase.
fn in_phase<'a>(write: &'a mut Write, phase: &str) -> Option<&'a mut Value> {
    let Write::Patch { change, .. } = write else { return None };
    let status = change.get_mut("status")?;
    (status["active"]["phase"] == phase).then_some(status)
}

/// The same facts of a record, but for one thing.
fn but(facts: &Facts, change: fn(&mut Facts)) -> Facts {
    let mut facts = facts.clone();
    change(&mut facts);
    facts
}

pub(super) fn mistakes() -> Vec<Mistake<Rollouts>> {
    [of_promises(), ends::mistakes(), refined::mistakes()].into_iter().flatten().collect()
}

fn of_promises() -> Vec<Mistake<Rollouts>> {
    let calm = || Rollouts::new(CALM);
    let live = || Rollouts::new(Hostility::LIVE);
    vec![
        Mistake {
            name: "start-while-active",
            sentence: "the request that waits starts although another one is in flight",
            breaks: &["NoConcurrentUpdate", "LockHasOwner"],
            system: conductor(calm(), |facts| {
                let alone = but(facts, |facts| {
                    facts.record.iter_mut().for_each(|record| record.active = None);
                });
                match decide(&alone) {
                    Decision::Start => Decision::Start,
                    _ => decide(facts),
                }
            }),
        },
        Mistake {
            name: "good-once-applied",
            sentence: "a version is the last good one when it is applied, and not when it is verified",
            breaks: &["GoodIsVerified"],
            system: conductor(calm(), |facts| match decide(facts) {
                Decision::Verify => Decision::Succeed,
                decision => decision,
            }),
        },
        Mistake {
            name: "report-of-an-older-token",
            sentence: "what the report says of the target before counts for the new one",
            breaks: &["GoodIsVerified", "BadIsProven"],
            system: conductor(calm(), |facts| {
                decide(&but(facts, |facts| {
                    let token = facts.record.as_ref().map_or(0, |record| record.token);
                    facts.report.iter_mut().for_each(|report| report.token = token);
                }))
            }),
        },
        Mistake {
            name: "bad-applied-again",
            sentence: "nobody remembers that content failed",
            breaks: &["BadNotRetried"],
            system: Rollouts {
                requests: 3,
                ..conductor(calm(), |facts| {
                    decide(&but(facts, |facts| {
                        let queued = facts.record.as_mut().and_then(|it| it.queued.as_mut());
                        queued.into_iter().for_each(|queued| queued.bad = None);
                        if let Candidate::Here(request) = &mut facts.candidate
                            && let Source::Bundle { bad, .. } = &mut request.source
                        {
                            *bad = None;
                        }
                    }))
                })
            },
        },
        Mistake {
            name: "cancel-counts-as-bad",
            sentence: "the content of a request that somebody cancelled counts as bad",
            breaks: &["BadIsProven"],
            system: Rollouts {
                cancels: true,
                ..conductor(calm(), |facts| match decide(facts) {
                    Decision::RollBack(why, false) => Decision::RollBack(why, true),
                    decision => decision,
                })
            },
        },
        Mistake {
            name: "absence-is-a-cancel",
            sentence: "a request that the cache does not show counts as deleted",
            breaks: &["CancelledIsAsked"],
            system: conductor(
                Rollouts { requests: 1, programs: 2, ..Rollouts::new(STALE) },
                |facts| {
                    decide(&but(facts, |facts| {
                        let Some(record) = &mut facts.record else { return };
                        let queued = record.queued.iter_mut().map(|queued| &mut queued.asked);
                        let active = record.active.iter_mut().map(|active| &mut active.asked);
                        for asked in queued.chain(active).filter(|asked| **asked == Asked::Unread) {
                            *asked = Asked::Gone;
                        }
                    }))
                },
            ),
        },
        Mistake {
            name: "no-deadlines",
            sentence: "an agent that is away is awaited for ever",
            breaks: &["EveryReqIsProcessed"],
            system: Rollouts {
                requests: 1,
                away: true,
                ..conductor(live(), |facts| {
                    decide(&but(facts, |facts| {
                        let Some(record) = &mut facts.record else { return };
                        if let Some(active) = &mut record.active {
                            (active.started_seconds, active.phase_seconds) = (0, 0);
                        }
                        record.queued.iter_mut().for_each(|queued| queued.seconds = 0);
                    }))
                })
            },
        },
        Mistake {
            name: "unreachable-is-bad",
            sentence: "content counts as bad although the agent never said anything of it",
            breaks: &["BadIsProven"],
            system: Rollouts {
                requests: 1,
                away: true,
                ..conductor(calm(), |facts| match decide(facts) {
                    Decision::RollBack(why, _) => Decision::RollBack(why, true),
                    decision => decision,
                })
            },
        },
        Mistake {
            name: "rolled-back-unverified",
            sentence: "a rollback ends before the report says anything of it",
            breaks: &["RollbackIsVerified"],
            system: conductor(calm(), |facts| {
                decide(&but(facts, |facts| {
                    let Some(record) = &facts.record else { return };
                    let active = record.active.as_ref();
                    let is_back = active.is_some_and(|it| it.phase == UpdatePhase::RollingBack);
                    if let Some(report) = facts.report.as_mut().filter(|_| is_back) {
                        (report.token, report.verdict) = (record.token, Verdict::Soaked);
                    }
                }))
            }),
        },
        Mistake {
            name: "superseded-later",
            sentence: "a request that gets its number leaves the one before it in the queue",
            breaks: &["OneQueued"],
            system: writing(calm(), |room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    let Write::Patch { change, .. } = write else { return };
                    let requests = change["status"]["requests"].as_array_mut();
                    for entry in requests.into_iter().flatten() {
                        if entry["phase"] == "Superseded" {
                            entry["phase"] = json!("Queued");
                        }
                    }
                })
            }),
        },
        Mistake {
            name: "rollback-under-the-old-token",
            sentence: "the target goes back, and its token stays",
            breaks: &["TokenMeansTarget"],
            system: writing(calm(), |room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    if let Some(status) = in_phase(write, "RollingBack") {
                        let token = status["target"]["token"].as_i64().unwrap_or(0);
                        status["target"]["token"] = json!(token - 1);
                    }
                })
            }),
        },
        Mistake {
            name: "rollback-to-what-failed",
            sentence: "the token of the target grows, and the target stays what failed",
            breaks: &["IdleIsGood"],
            system: writing(calm(), |room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    if let Some(status) = in_phase(write, "RollingBack") {
                        status["target"]["digest"] = status["active"]["digest"].clone();
                    }
                })
            }),
        },
        Mistake {
            name: "good-moved-early",
            sentence: "a version is the last good one from its start on",
            breaks: &["LastGoodSucceeded", "GoodIsVerified"],
            system: writing(calm(), |room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    if let Some(status) = in_phase(write, "Applying") {
                        let active = status["active"].clone();
                        status["lastGood"] =
                            json!({"version": active["version"], "digest": active["digest"]});
                    }
                })
            }),
        },
        Mistake {
            name: "let-go-at-once",
            sentence: "the mirror lets a request go before it has an outcome",
            breaks: &["HeldUntilItEnds"],
            system: {
                let system = Rollouts { requests: 1, ..calm() };
                let mirror: Bent<Mirror> = system.mirror.deciding(|facts| {
                    match (Mirror::decide(facts), facts.has_finalizer) {
                        (mirror::Decision::Show, true) => mirror::Decision::TakeFinalizerOff,
                        (decision, _) => decision,
                    }
                });
                Rollouts { mirror, ..system }
            },
        },
        Mistake {
            name: "outcomes-are-not-shown",
            sentence: "the mirror shows no outcome",
            breaks: &["EveryReqIsProcessed"],
            system: {
                let system = Rollouts { requests: 1, ..live() };
                let mirror: Bent<Mirror> =
                    system.mirror.deciding(|facts| match Mirror::decide(facts) {
                        mirror::Decision::Show => mirror::Decision::Rest("it is not shown"),
                        decision => decision,
                    });
                Rollouts { mirror, ..system }
            },
        },
    ]
}
