//! The applier with mistakes made on purpose. Each must be found.

use super::policy::Checks;
use super::{Fence, Objects, Reports, Rollout};
use crate::applier::fence as fences;
use crate::applier::object::decide::{self as objects, Live, There};
use crate::applier::outside::{Answer, Held, Question, Reach};
use crate::applier::report::decide::{self as reports, Listed};
use crate::health::{Health, State};
use crate::kinds::CLUSTER_ROLLOUT;
use interlock_api::rollouts::{ClusterRolloutStatus, RolloutReportStatus};
use interlock_kernel::{Bent, Index, Kind, LiveReads, Name, Object, Place, Room, View, read_part};
use interlock_world::{Hostility, Mistake};
use jiff::Timestamp;
use std::sync::Arc;

/// A step under way, and nothing out of date.
const LATE: Hostility = Hostility { stale: 0, ..Hostility::HARSH };
/// Nothing comes in between.
const CALM: Hostility = Hostility { flights: 0, stale: 0, ..Hostility::HARSH };

fn shipped(hostility: Hostility) -> Rollout {
    Rollout::new(hostility)
}

fn object(system: Rollout, decide: fn(&objects::Facts) -> objects::Decision) -> Rollout {
    let object: Bent<Objects> = system.object.clone().deciding(decide);
    Rollout { object, ..system }
}

fn fence(system: Rollout, decide: fn(&fences::Facts) -> fences::Decision) -> Rollout {
    let fence: Bent<Fence> = system.fence.clone().deciding(decide);
    Rollout { fence, ..system }
}

fn report(system: Rollout, decide: fn(&reports::Facts) -> reports::Decision) -> Rollout {
    let report: Bent<Reports> = system.report.clone().deciding(decide);
    Rollout { report, ..system }
}

pub(super) fn mistakes() -> Vec<Mistake<Rollout>> {
    let one = |hostility| Rollout { objects: 1, ..shipped(hostility) };
    let three = |hostility| Rollout { objects: 3, ..shipped(hostility) };
    vec![
        Mistake {
            name: "no-token-check",
            sentence: "the cluster takes writes that are older than the fence",
            breaks: &["IdleIsGood", "NoLateWrite", "OrderedWrites"],
            system: Rollout { policy: Checks { tokens: false, ..Checks::ALL }, ..one(LATE) },
        },
        Mistake {
            name: "read-before-the-fence",
            sentence: "objects are written, and count, before the fence is raised to the token",
            breaks: &["IdleIsGood", "NoLateWrite", "OrderedWrites"],
            system: report(one(LATE), |facts| {
                let mut facts = facts.clone();
                let token = facts.token;
                if let Some(fence) = facts.fence.as_mut().filter(|it| it.token < Some(token)) {
                    fence.token = Some(token);
                }
                reports::decide(&facts)
            }),
        },
        Mistake {
            name: "report-of-an-older-token",
            sentence: "what was said of the target before is said of the new one",
            breaks: &["IdleIsGood"],
            system: report(one(CALM), |facts| {
                let said = RolloutReportStatus { token: facts.token, ..facts.said.clone() };
                reports::decide(&reports::Facts { said, ..facts.clone() })
            }),
        },
        Mistake {
            name: "delete-without-mark",
            sentence: "an object is deleted without a mark, and the policy asks for none",
            breaks: &["IdleIsGood", "NoLateWrite"],
            system: Rollout {
                policy: Checks { marks: false, ..Checks::ALL },
                ..object(shipped(LATE), |facts| match objects::decide(facts) {
                    objects::Decision::Mark => objects::Decision::Delete,
                    decision => decision,
                })
            },
        },
        Mistake {
            name: "apply-over-anything",
            sentence: "the policy lets an object be made over one that somebody else made since",
            breaks: &["OnlyOurs"],
            system: Rollout {
                policy: Checks { owners: false, ..Checks::ALL },
                people: true,
                ..one(LATE)
            },
        },
        Mistake {
            name: "inventory-ignored",
            sentence: "whatever has a name that a bundle has is taken for ours",
            breaks: &["OnlyOurs"],
            system: Rollout {
                policy: Checks { owners: false, ..Checks::ALL },
                people: true,
                ..object(one(CALM), |facts| {
                    let mut facts = facts.clone();
                    if let Live::There(there) = &mut facts.live {
                        *there = There { is_ours: true, ..*there };
                    }
                    objects::decide(&facts)
                })
            },
        },
        Mistake {
            name: "delete-on-absence",
            sentence: "a bundle that the hub does not show counts as one that wants nothing",
            breaks: &["IdleIsGood"],
            system: without_bundles(Rollout { loses: true, ..three(CALM) }),
        },
        Mistake {
            name: "unobserved-is-healthy",
            sentence: "what a controller said of an older generation counts",
            breaks: &["VerifiedIsHealthy"],
            system: report(three(CALM), |facts| reports::decide(&well(facts))),
        },
        Mistake {
            name: "never-pruned",
            sentence: "what the target does not have stays, and is said to be verified",
            breaks: &["IdleIsGood"],
            system: report(shipped(CALM), |facts| {
                let listed = facts.listed.clone();
                let listed = listed.map(|listed| Listed { extra: Vec::new(), ..listed });
                reports::decide(&reports::Facts { listed, ..facts.clone() })
            }),
        },
        Mistake {
            name: "pruned-is-not-named",
            sentence: "objects that are to be pruned are not named, so nobody deletes them",
            breaks: &["TargetIsVerified"],
            system: report(one(Hostility::LIVE), |facts| match reports::decide(facts) {
                reports::Decision::Write(mut next) => {
                    if next.objects.to_prune > 0 {
                        next.pending.clear();
                    }
                    let is_new = RolloutReportStatus {
                        observed_at: facts.said.observed_at.clone(),
                        ..(*next).clone()
                    } != facts.said;
                    match is_new {
                        true => reports::Decision::Write(next),
                        false => reports::Decision::Wait("nothing is new", 2),
                    }
                }
                decision => decision,
            }),
        },
    ]
    .into_iter()
    .chain(of_late_servers())
    .collect()
}

/// Mistakes that show where the API server learns of the fence late.
fn of_late_servers() -> Vec<Mistake<Rollout>> {
    let lagging = || Rollout { objects: 1, lags: true, ..shipped(LATE) };
    vec![
        Mistake {
            name: "probe-skipped",
            sentence: "the fence counts as proven though no API server was asked",
            breaks: &["IdleIsGood", "NoLateWrite", "OrderedWrites"],
            system: fence(lagging(), |facts| match Fence::decide(facts) {
                fences::Decision::Probe => fences::Decision::Prove(facts.token),
                decision => decision,
            }),
        },
        Mistake {
            name: "no-settle",
            sentence: "what is read as soon as the fence is proven counts",
            breaks: &["IdleIsGood"],
            system: report(lagging(), |facts| {
                reports::decide(&reports::Facts { settle_seconds: 0, ..facts.clone() })
            }),
        },
    ]
}

/// The objects of which a controller has not seen the last generation are well.
fn well(facts: &reports::Facts) -> reports::Facts {
    let mut facts = facts.clone();
    let all = facts.listed.as_mut().into_iter().flat_map(|listed| &mut listed.wanted);
    for object in all.filter(|it| it.health.reason == "LatestGenerationNotObserved") {
        object.health =
            Health { state: State::Current, reason: String::new(), message: String::new() };
    }
    facts
}

/// Both rooms forget the bundles that cannot be read.
fn without_bundles(system: Rollout) -> Rollout {
    let object = system.object.clone().observing(|room, subject, view, live_reads| {
        room.observe(subject, &Empty::of(view, live_reads), live_reads)
    });
    let report = system.report.clone().observing(|room, subject, view, live_reads| {
        room.observe(subject, &Empty::of(view, live_reads), live_reads)
    });
    Rollout { object, report, ..system }
}

/// A view of a record without the bundles that could not be read.
struct Empty<'a> {
    view: &'a dyn View,
    lost: Vec<String>,
}

impl<'a> Empty<'a> {
    fn of(view: &'a dyn View, live_reads: &LiveReads<Reach>) -> Empty<'a> {
        let lost =
            live_reads.answers.iter().filter_map(|(question, answer)| match (question, answer) {
                (Question::Bundle(digest), Answer::Bundle(Held::Unreadable(_))) => {
                    Some(digest.clone())
                }
                _ => None,
            });
        Empty { view, lost: lost.collect() }
    }
}

impl View for Empty<'_> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        let found = self.view.get(place, kind, name)?;
        let status = read_part::<ClusterRolloutStatus>(&found, "status").ok().flatten();
        let Some(mut status) = status.filter(|_| *kind == CLUSTER_ROLLOUT) else {
            return Some(found);
        };
        let is_there = |digest: &String| !self.lost.contains(digest);
        status.target.digest = status.target.digest.filter(is_there);
        status.may_exist.retain(is_there);
        let mut changed = (*found).clone();
        changed.data["status"] = serde_json::to_value(status).unwrap_or_default();
        Some(Arc::new(changed))
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.view.list(place, kind, namespace)
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.view.find(place, index, value)
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.view.count(place, index, value)
    }
}
