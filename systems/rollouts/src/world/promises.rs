//! What the conductor and the mirror promise.

use super::truth::{Entry, is_active};
use super::{Rollouts, Truth};
use interlock_api::rollouts::{UpdatePhase, Verdict};
use interlock_world::{Goal, Promise, Rule};

pub(super) fn promises() -> Vec<Promise<Rollouts>> {
    vec![
        Promise {
            name: "NoConcurrentUpdate",
            sentence: "at most one request of a cluster is in flight",
            holds: |_, truth| truth.entries().filter(|it| is_active(it.phase)).count() <= 1,
        },
        Promise {
            name: "LockHasOwner",
            sentence: "the record says that a request is in flight exactly while it is",
            holds: |_, truth| {
                let mut phases = truth.entries().map(|entry| entry.phase);
                match (truth.in_flight(), &truth.active) {
                    (Some(entry), Some((_, phase))) => entry.phase == *phase && is_active(*phase),
                    (None, None) => !phases.any(is_active),
                    (None, Some(_)) | (Some(_), None) => false,
                }
            },
        },
        Promise {
            name: "OneQueued",
            sentence: "at most one request waits",
            holds: |_, truth| {
                truth.entries().filter(|it| it.phase == UpdatePhase::Queued).count() <= 1
            },
        },
        Promise {
            name: "IdleIsGood",
            sentence: "while nothing is in flight, the target is the last good version, but on a cluster that is Degraded",
            holds: |_, truth| truth.active.is_some() || is_at_rest(truth),
        },
        Promise {
            name: "LastGoodSucceeded",
            sentence: "the last good version is one of a request that succeeded",
            holds: |_, truth| {
                let is_it = |entry: &Entry, version: i64| entry.version == version;
                truth.good.as_ref().is_none_or(|(version, _)| {
                    let mut entries = truth.entries().filter(|entry| is_it(entry, *version));
                    entries.all(|entry| entry.phase == UpdatePhase::Succeeded)
                })
            },
        },
        Promise {
            name: "CancelledIsAsked",
            sentence: "no request is cancelled that nobody cancelled",
            holds: |_, truth| {
                let cancelled = |entry: &Entry| entry.phase == UpdatePhase::Cancelled;
                truth.is_cancelled || !truth.entries().any(cancelled)
            },
        },
        Promise {
            name: "HeldUntilItEnds",
            sentence: "a request with a number is held until it says its outcome",
            holds: |_, truth| {
                let mut numbered = truth.sent().filter(|request| request.entry.is_some());
                numbered.all(|request| request.is_held || request.is_over())
            },
        },
    ]
}

/// What the record said of each request, and says now.
fn entries<'a>(
    before: &'a Truth,
    after: &'a Truth,
) -> impl Iterator<Item = (Option<&'a Entry>, &'a Entry)> {
    let pairs = before.requests.iter().zip(&after.requests);
    pairs.filter_map(|(old, new)| {
        let old = old.as_ref().and_then(|request| request.entry.as_ref());
        Some((old, new.as_ref()?.entry.as_ref()?))
    })
}

fn is_waiting(entry: &Entry) -> bool {
    entry.phase == UpdatePhase::Queued
}

/// Whether nothing is in flight, and the cluster is at the last good version or says that it is not.
fn is_at_rest(truth: &Truth) -> bool {
    let good = truth.good.as_ref().map(|(_, digest)| digest);
    truth.active.is_none() && (truth.is_degraded || truth.target.as_ref() == good)
}

/// The request that starts in a step.
fn started<'a>(before: &Truth, after: &'a Truth) -> Option<&'a Entry> {
    let uid = |truth: &Truth| truth.active.as_ref().map(|(uid, _)| uid.clone());
    if uid(before) == uid(after) { None } else { after.in_flight() }
}

pub(super) fn rules() -> Vec<Rule<Rollouts>> {
    vec![
        Rule {
            name: "TokenMeansTarget",
            sentence: "a start and a rollback give a new token, and nothing else does",
            allows: |_, before, after| {
                let turns_back =
                    |truth: &Truth| matches!(truth.active, Some((_, UpdatePhase::RollingBack)));
                let begins =
                    started(before, after).is_some() || turns_back(after) && !turns_back(before);
                let is_same = before.target == after.target;
                match begins {
                    true => after.token == before.token + 1,
                    false => after.token == before.token && is_same,
                }
            },
        },
        Rule {
            name: "NoApplicationOfOutdatedReq",
            sentence: "what starts has waited until then, and is not older than one that waits or has succeeded",
            allows: |_, before, after| {
                started(before, after).is_none_or(|it| {
                    let is_it = |old: &Entry| old.version == it.version;
                    let mut waiting = before.entries().filter(|old| is_waiting(old));
                    if !waiting.any(is_it) {
                        return false;
                    }
                    let counts = [UpdatePhase::Queued, UpdatePhase::Succeeded];
                    let mut others = after.entries().filter(|other| counts.contains(&other.phase));
                    others.all(|other| other.version <= it.version)
                })
            },
        },
        Rule {
            name: "BadNotRetried",
            sentence: "content that failed is not applied again unasked",
            allows: |_, before, after| {
                started(before, after).is_none_or(|it| !before.bad.contains(&it.digest))
            },
        },
        Rule {
            name: "BadIsProven",
            sentence: "content counts as bad only when an object of it failed, or its time was over, on a cluster that was reached",
            allows: |_, before, after| {
                let is_new = after.bad.iter().any(|digest| !before.bad.contains(digest));
                let is_about_it = before.said.token == before.token;
                !is_new || is_about_it && (before.said.has_failed || before.is_away)
            },
        },
        Rule {
            name: "GoodIsVerified",
            sentence: "a version becomes the last good one only when the report says that it is soaked",
            allows: |_, before, after| before.good == after.good || before.is_said(Verdict::Soaked),
        },
        Rule {
            name: "RollbackIsVerified",
            sentence: "a request is rolled back only when the report says that the version before is soaked",
            allows: |_, before, after| {
                let mut newly = entries(before, after).filter(|(old, new)| {
                    let was = old.map(|old| old.phase);
                    new.phase == UpdatePhase::RolledBack && was != Some(UpdatePhase::RolledBack)
                });
                newly.next().is_none() || before.is_said(Verdict::Soaked)
            },
        },
        Rule {
            name: "TerminalIsFinal",
            sentence: "an outcome never changes",
            allows: |_, before, after| {
                let mut entries = entries(before, after);
                entries.all(|(old, new)| {
                    old.is_none_or(|old| !old.phase.is_terminal() || old.phase == new.phase)
                })
            },
        },
        Rule {
            name: "SupersededByValid",
            sentence: "a request is superseded by a newer one that waits, in the same write",
            allows: |_, before, after| {
                let mut newly = entries(before, after).filter(|(old, new)| {
                    let was = old.map(|old| old.phase);
                    new.phase == UpdatePhase::Superseded && was != Some(UpdatePhase::Superseded)
                });
                newly.all(|(_, old)| {
                    let is_by =
                        |new: &Entry| new.phase == UpdatePhase::Queued && new.version > old.version;
                    after.entries().any(is_by)
                })
            },
        },
        Rule {
            name: "RefusedNeverApplied",
            sentence: "a request that was rejected, superseded or failed had never started",
            allows: |_, before, after| {
                let mut entries = entries(before, after);
                entries.all(|(old, new)| {
                    let unapplied =
                        [UpdatePhase::Rejected, UpdatePhase::Superseded, UpdatePhase::Failed];
                    let was_active = old.is_some_and(|old| is_active(old.phase));
                    !(was_active && unapplied.contains(&new.phase))
                })
            },
        },
        Rule {
            name: "ShownIsDecided",
            sentence: "a request says an outcome only once the record does",
            allows: |_, _, after| {
                let mut shown = after.sent().filter(|request| request.shown.is_terminal());
                shown.all(|request| {
                    request.entry.as_ref().is_some_and(|entry| entry.phase == request.shown)
                })
            },
        },
    ]
}

/// The phases that some request gets to in this size.
pub(super) fn reachable(system: &Rollouts) -> Vec<Promise<Rollouts>> {
    fn is_any(truth: &Truth, phase: UpdatePhase) -> bool {
        truth.sent().any(|request| request.shown == phase)
    }
    let mut all = vec![Promise {
        name: "SomeSucceed",
        sentence: "a request succeeds, and says so",
        holds: |_, truth| is_any(truth, UpdatePhase::Succeeded),
    }];
    if system.requests > 1 {
        all.push(Promise {
            name: "SomeAreSuperseded",
            sentence: "a request is superseded, and says so",
            holds: |_, truth| is_any(truth, UpdatePhase::Superseded),
        });
    }
    if system.requests > 1 && system.fails {
        all.extend([
            Promise {
                name: "SomeAreRolledBack",
                sentence: "a request is rolled back, and says so",
                holds: |_, truth| is_any(truth, UpdatePhase::RolledBack),
            },
            Promise {
                name: "SomeFail",
                sentence: "a request fails before it starts, and says so",
                holds: |_, truth| is_any(truth, UpdatePhase::Failed),
            },
        ]);
    }
    if system.requests > 2 && system.fails {
        all.push(Promise {
            name: "SomeAreRejected",
            sentence: "a request is rejected for content that is known to be bad, and says so",
            holds: |_, truth| is_any(truth, UpdatePhase::Rejected),
        });
    }
    if system.cancels {
        all.push(Promise {
            name: "SomeAreCancelled",
            sentence: "a request is cancelled while it waits, and says so",
            holds: |_, truth| is_any(truth, UpdatePhase::Cancelled),
        });
    }
    if system.away {
        all.push(Promise {
            name: "SomeRollbacksFail",
            sentence: "a rollback fails, and the cluster is Degraded",
            holds: |_, truth| is_any(truth, UpdatePhase::RollbackFailed) && truth.is_degraded,
        });
    }
    all
}

pub(super) fn goals() -> Vec<Goal<Rollouts>> {
    vec![
        Goal {
            name: "EveryReqIsProcessed",
            sentence: "every request that is sent ends, and says how",
            while_true: |_, truth| truth.sent().any(|request| !request.is_over()),
            then: |_, truth| truth.sent().all(super::truth::Request::is_over),
        },
        Goal {
            name: "EveryReqInQueueIsProcessed",
            sentence: "every request that waits is started or ends",
            while_true: |_, truth| truth.entries().any(is_waiting),
            then: |_, truth| !truth.entries().any(is_waiting),
        },
        Goal {
            name: "NoPartialUpdateTermination",
            sentence: "the cluster comes to rest at the last good version, or is Degraded",
            while_true: |_, truth| !is_at_rest(truth),
            then: |_, truth| is_at_rest(truth),
        },
    ]
}
