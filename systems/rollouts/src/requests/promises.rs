//! What the record promises, and the rules whose loss each promise must notice.

use super::state::{Drain, MOST_REQUESTS, Phase, digest};
use super::{RolloutsRequests, Rules, State};
use interlock_checker::{Formula, Invariant, Mutant, Property, Reachable, StepRule};

pub(super) fn invariants(model: &RolloutsRequests) -> Vec<Invariant<State>> {
    let drained: Vec<usize> = (0..model.requests).filter(|r| model.drains(*r)).collect();
    vec![
        Invariant::new("TypeInvariants", "every variable has a value of its type", |_: &State| {
            true
        })
        .unbreakable("the types of the state say so"),
        Invariant::new("NoConcurrentUpdate", "at most one request is active", |s: &State| {
            s.requests.iter().filter(|it| it.phase.is_active()).count() <= 1
        }),
        Invariant::new(
            "LockHasOwner",
            "the lock is taken while a request is active, and at no other time",
            |s: &State| {
                let is_active = |r: u8| s.requests[usize::from(r)].phase.is_active();
                s.lock.is_some() == s.active.is_some() && s.active.is_none_or(is_active)
            },
        ),
        Invariant::new("OneQueued", "at most one request waits", |s: &State| {
            s.queued().count() <= 1
        }),
        Invariant::new(
            "LastGoodSucceeded",
            "the last good version is one that was verified",
            |s: &State| s.good.is_none_or(|r| s.requests[usize::from(r)].phase == Phase::Succeeded),
        ),
        Invariant::new(
            "BadIsProven",
            "content is remembered as bad only if it failed by itself",
            |s: &State| s.bad & !s.failed == 0,
        ),
        Invariant::new(
            "DrainedFirst",
            "a request that asks for a drain is active only while the cluster is drained",
            move |s: &State| {
                let is_active = |r: &usize| s.requests[*r].phase.is_active();
                s.drain == Drain::Done || !drained.iter().any(is_active)
            },
        ),
    ]
}

/// The requests that start in a step.
fn started<'a>(from: &'a State, to: &'a State) -> impl Iterator<Item = usize> + 'a {
    (0..MOST_REQUESTS).filter(|r| {
        !from.requests[*r].phase.is_active() && to.requests[*r].phase == Phase::Applying
    })
}

pub(super) fn step_rules() -> Vec<StepRule<State>> {
    vec![
        StepRule::new(
            "NoApplicationOfOutdatedReq",
            "what starts was queued, and is newer than all that are queued or succeeded",
            |from: &State, to: &State| {
                let counts = |phase: Phase| matches!(phase, Phase::Queued | Phase::Succeeded);
                let newest = from.requests.iter().filter(|it| counts(it.phase));
                let newest = newest.map(|it| it.version).max().unwrap_or_default();
                started(from, to).all(|r| {
                    let request = from.requests[r];
                    request.phase == Phase::Queued && newest <= request.version
                })
            },
        ),
        StepRule::new(
            "BadNotRetried",
            "content that failed by itself is not started again",
            |from: &State, to: &State| started(from, to).all(|r| from.failed & digest(r) == 0),
        ),
        StepRule::new("TerminalIsFinal", "an outcome never changes", |from: &State, to: &State| {
            let pairs = from.requests.iter().zip(&to.requests);
            pairs.filter(|(it, _)| it.phase.is_final()).all(|(old, new)| old.phase == new.phase)
        }),
        StepRule::new(
            "SupersededByValid",
            "a request is superseded only in the step that queues a newer one",
            |from: &State, to: &State| {
                let newest = to.queued().map(|r| to.requests[r].version).max();
                let is_superseded = |r: &usize| to.requests[*r].phase == Phase::Superseded;
                from.queued().filter(is_superseded).all(|r| newest > Some(from.requests[r].version))
            },
        ),
    ]
}

impl RolloutsRequests {
    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let each = 0..self.requests;
        vec![
            Property::for_all(
                "EveryReqIsProcessed",
                "every request ends",
                each.clone()
                    .map(|r| Formula::eventually(move |s: &State| s.requests[r].phase.is_final())),
            ),
            Property::for_all(
                "EveryReqInQueueIsProcessed",
                "every request that waits is started or ends",
                each.map(|r| {
                    let phase = move |s: &State| s.requests[r].phase;
                    Formula::leads_to(
                        move |s: &State| phase(s) == Phase::Queued,
                        move |s: &State| phase(s).is_active() || phase(s).is_final(),
                    )
                }),
            ),
            Property::new(
                "NoPartialUpdateTermination",
                "in the end no request is active, and the lock is free",
                Formula::eventually_always(|s: &State| s.active.is_none() && s.lock.is_none()),
            ),
            Property::new(
                "DrainIsTakenOff",
                "in the end the drain is taken off, unless a rollback failed",
                Formula::eventually_always(|s: &State| s.drain == Drain::None || s.is_degraded),
            ),
            Property::new("Quiesces", "in the end nothing changes any more", Formula::ComesToRest),
        ]
    }

    pub(super) fn all_reachable(&self) -> Vec<Reachable<State>> {
        let ends = |name, sentence, phase: Phase| {
            let is_end = move |s: &State| s.requests.iter().any(|it| it.phase == phase);
            Reachable::new(name, sentence, is_end)
        };
        let mut reachable = vec![
            ends("Succeeded", "a request succeeds", Phase::Succeeded),
            ends("RolledBack", "a request is rolled back", Phase::RolledBack),
        ];
        if !self.is_calm {
            let sentence = "a rollback is given up";
            reachable.push(ends("RollbackFailed", sentence, Phase::RollbackFailed));
        }
        if self.cancels > 0 {
            reachable.push(ends("Cancelled", "a request is cancelled", Phase::Cancelled));
        }
        if self.requests > 1 {
            reachable.push(ends("Superseded", "a request is superseded", Phase::Superseded));
        }
        if self.requests > 2 {
            reachable.push(Reachable::new(
                "KnownBad",
                "a request ends because its content is known to be bad",
                |s: &State| {
                    let is_known = |r: usize| s.bad & digest(r) != 0;
                    let phase = |r: usize| s.requests[r].phase;
                    (0..MOST_REQUESTS).any(|r| phase(r) == Phase::Failed && is_known(r))
                },
            ));
        }
        reachable
    }

    pub(super) fn all_mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken, change: fn(&mut Rules)| {
            let (requests, cancels) = (self.requests.max(2), self.cancels.max(1));
            let least = RolloutsRequests { requests, cancels, is_calm: false, ..self.clone() };
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        let three = |name, sentence, change: fn(&mut Rules)| {
            let mut mutant = mutant(name, sentence, "BadNotRetried", change);
            mutant.model.requests = 3;
            mutant
        };
        let mut mutants = vec![
            mutant(
                "numbered-again",
                "a request that runs or ended is numbered anew",
                OWNED,
                |rules| {
                    rules.by_uid = false;
                },
            ),
            mutant(
                "superseded-later",
                "the older request waits on when a newer one is queued",
                "OneQueued",
                |rules| rules.supersede_at_once = false,
            ),
            mutant(
                "superseded-by-rejected",
                "a request that is rejected supersedes the one that waits",
                "SupersededByValid",
                |rules| rules.only_valid_supersedes = false,
            ),
            mutant(
                "two-at-once",
                "a request starts while another one is active",
                "NoConcurrentUpdate",
                |rules| rules.one_at_a_time = false,
            ),
            mutant(
                "good-unverified",
                "a version is good when it was applied",
                "LastGoodSucceeded",
                |rules| rules.good_once_verified = false,
            ),
            mutant(
                "causes-mixed",
                "a cancel or an absent cluster counts against the content",
                "BadIsProven",
                |rules| rules.causes_apart = false,
            ),
            mutant(
                "outdated-start",
                "the request is not read again after the lock was taken",
                "NoApplicationOfOutdatedReq",
                |rules| (rules.one_write, rules.checks_outdated) = (false, false),
            ),
            mutant(
                "no-deadlines",
                "what does not come is awaited for ever",
                "EveryReqIsProcessed",
                |rules| rules.deadlines = false,
            ),
            mutant("drain-left", "a drain is not taken off", "DrainIsTakenOff", |rules| {
                rules.drain_ends = false;
            }),
            three("bad-forgotten", "content that failed may be queued and started", |rules| {
                (rules.bad_kept, rules.bad_at_start) = (false, false);
            }),
            three(
                "bad-unchecked-at-start",
                "content that failed while the request waited is started",
                |rules| rules.bad_at_start = false,
            ),
        ];
        let least = RolloutsRequests { requests: self.requests.max(2), ..self.clone() };
        mutants.push(Mutant::new(
            "lock-leaked",
            "the lock of a request that was superseded meanwhile is kept",
            &["EveryReqInQueueIsProcessed", "NoPartialUpdateTermination"],
            least.without(|rules| (rules.one_write, rules.frees_outdated) = (false, false)),
        ));
        mutants
    }
}

const OWNED: &str = "LockHasOwner";
