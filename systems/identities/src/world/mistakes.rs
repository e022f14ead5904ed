//! Mistakes that must be found.

use super::Identities;
use super::refine::REFINED;
use super::size::Size;
use crate::irsa::{Accounts, decide as irsa};
use crate::kinds::POLICY;
use crate::outside::{Asked, Call, Cloud, Code, PolicyReading, Question, Version};
use crate::policy::Policies;
use crate::policy::decide::{Decision, Facts, Left, Look, State};
use crate::role::{Roles, decide as role};
use interlock_api::identities::Mark;
use interlock_kernel::{Bent, LiveReads, Observe, Observed, Place, Room};
use interlock_world::Mistake;

/// The rule of a room that is bent.
#[derive(Clone, Copy)]
enum Rule {
    Observe(Observe<Policies>),
    Policy(fn(&Facts) -> Decision),
    Role(fn(&role::Facts) -> role::Decision),
    Irsa(fn(&irsa::Facts) -> irsa::Decision),
}

/// A row: name, sentence, what breaks, the least size, the rule instead.
struct Row {
    name: &'static str,
    sentence: &'static str,
    breaks: &'static [&'static str],
    size: Size,
    rule: Rule,
}

/// Two processes, of which one crashes, and whatever is declared is deleted.
const TWO: Size = Size { processes: 2, deletes: 1, flights: 1, faults: 1, ..Size::SMALL };
/// All children, and nothing fails.
const WHOLE: Size = Size { whole: 1, ..Size::SMALL };
/// One process, whose answers get lost.
const ONE: Size = Size { deletes: 1, faults: 1, crash: 1, ..Size::SMALL };

pub(super) fn all() -> Vec<Mistake<Identities>> {
    let mut rows = about_deletion();
    rows.extend(about_marks());
    rows.extend(about_others());
    rows.into_iter().map(Row::mistake).collect()
}

/// What the protocol of the mark says more, or in another way, than the rows below.
fn about_marks() -> Vec<Row> {
    vec![
        Row {
            name: "mark-not-read-live",
            sentence: "a call is made under the mark that the cache shows",
            breaks: &["GoneIsClean"],
            size: Size { processes: 2, stale: 1, deletes: 1, elapses: 1, ..Size::SMALL },
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let mut bent = copied(live_reads);
                for (address, object) in &mut bent.objects {
                    if address.kind == POLICY {
                        *object = view.get(Place::HUB, &POLICY, &address.name);
                    }
                }
                room.observe(subject, view, &bent)
            }),
        },
        Row {
            name: "created-again",
            sentence: "a policy that is there is created once more: no harm, and no step of the protocol",
            breaks: &[REFINED],
            size: Size { refine: 1, ..Size::SMALL },
            rule: Rule::Policy(|facts| match Policies::decide(facts) {
                Decision::Unmark { .. } => {
                    let (document, tags) = (facts.document.clone(), facts.owner.tags());
                    Decision::Call(facts.owner.at(), Call::CreatePolicy { document, tags })
                }
                decision => decision,
            }),
        },
    ]
}

/// What belongs to others, and what is in use.
fn about_others() -> Vec<Row> {
    vec![
        Row {
            name: "id-in-the-status-is-proof",
            sentence: "a policy whose id the status has is ours, wherever it is",
            breaks: &["OnlyOurs"],
            size: Size { there: 4, ..Size::SMALL },
            rule: Rule::Policy(|facts| {
                let known = facts.status.policy_id.clone();
                Policies::decide(&with_look(facts, |look| {
                    for place in &mut look.places {
                        if let State::Policy { found, whose, .. } = &mut place.state
                            && Some(&found.id) == known.as_ref()
                        {
                            *whose = crate::owner::Whose::Ours;
                        }
                    }
                }))
            }),
        },
        Row {
            name: "delete-conflict-is-success",
            sentence: "a policy that the cloud does not delete since it is attached counts as deleted",
            breaks: &["GoneIsClean"],
            size: Size { there: 5, deletes: 1, ..Size::SMALL },
            rule: Rule::Policy(|facts| {
                let refused = facts.look.as_ref().and_then(|look| look.journal.refused.as_ref());
                if refused.is_some_and(|refusal| refusal.code == Code::DeleteConflict) {
                    return Decision::RemoveFinalizer(Left::Nothing);
                }
                Policies::decide(&with_look(facts, |look| {
                    for place in &mut look.places {
                        if let State::Policy { found, .. } = &mut place.state {
                            let id = found.default_version.clone();
                            let default = Version { id, document: String::new() };
                            found.attached_to = found.attached_to.as_ref().map(|_| Vec::new());
                            found.versions.get_or_insert_with(|| vec![default]);
                        }
                    }
                }))
            }),
        },
        Row {
            name: "attachments-of-others-detached",
            sentence: "whatever is attached to a role of ours, and not declared, is detached",
            breaks: &["OthersStayAttached"],
            size: Size { drifts: 1, ..WHOLE },
            rule: Rule::Role(|facts| {
                let mut facts = facts.clone();
                let places = facts.look.iter().flat_map(|look| &look.places);
                let found = places.filter_map(|place| match &place.state {
                    role::State::Role { found, .. } => Some(&found.attached),
                    role::State::Absent | role::State::Failed(_) => None,
                });
                let attached: Vec<String> = found.flatten().cloned().collect();
                facts.status.attached.extend(attached);
                Roles::decide(&facts)
            }),
        },
    ]
}

fn about_deletion() -> Vec<Row> {
    vec![
        Row {
            name: "create-without-mark",
            sentence: "a call is made under no mark",
            breaks: &["GoneIsClean"],
            size: Size { crash: 1, ..ONE },
            rule: Rule::Policy(|facts| match Policies::decide(facts) {
                Decision::Mark(mark) => Policies::decide(&marked(facts, Some(mark))),
                decision => decision,
            }),
        },
        Row {
            name: "mark-of-another-believed",
            sentence: "calls are made under the mark of another process",
            breaks: &["GoneIsClean"],
            size: TWO,
            rule: Rule::Policy(|facts| Policies::decide(&as_if_mine(facts))),
        },
        Row {
            name: "taken-over-without-waiting",
            sentence: "the mark of another process is taken over, and its calls are not waited for",
            breaks: &["GoneIsClean"],
            size: ONE,
            rule: Rule::Policy(|facts| match Policies::decide(facts) {
                Decision::Mark(mark) => Decision::Mark(Mark { quiet_at: Some(0), ..mark }),
                decision => decision,
            }),
        },
        Row {
            name: "absence-believed-at-once",
            sentence: "a policy that the cloud does not show is gone",
            breaks: &["GoneIsClean"],
            size: ONE,
            rule: Rule::Policy(|facts| {
                match is_absent(facts) && facts.is_deleting && facts.has_finalizer {
                    true => Decision::RemoveFinalizer(Left::Nothing),
                    false => Policies::decide(facts),
                }
            }),
        },
        Row {
            name: "finalizer-after-the-first-call",
            sentence: "the finalizer is put on the object once something is in the cloud",
            breaks: &["FinalizerFirst", "GoneIsClean"],
            size: Size { deletes: 1, ..Size::SMALL },
            rule: Rule::Policy(|facts| {
                let shown = Facts { has_finalizer: true, ..facts.clone() };
                match Policies::decide(&shown) {
                    Decision::Report(_) if !facts.has_finalizer => Decision::AddFinalizer,
                    decision => decision,
                }
            }),
        },
        Row {
            name: "what-is-there-is-ours",
            sentence: "a policy of the right name counts as ours",
            breaks: &["OnlyOurs"],
            size: Size { there: 1, ..Size::SMALL },
            rule: Rule::Policy(|facts| Policies::decide(&all_ours(facts))),
        },
        Row {
            name: "adopted-unasked",
            sentence: "a namesake's policy is adopted though nobody chose so",
            breaks: &["OnlyOurs"],
            size: Size { there: 2, ..Size::SMALL },
            rule: Rule::Policy(|facts| Policies::decide(&all_ours(facts))),
        },
        Row {
            name: "mark-never-quiet",
            sentence: "the late-call window never ends",
            breaks: &["Converges", "Deletes"],
            size: Size { live: 1, deletes: 1, elapses: 4, ..Size::SMALL },
            rule: Rule::Policy(|facts| match Policies::decide(facts) {
                Decision::RemoveFinalizer(_) | Decision::Unmark { .. } => {
                    Decision::Wait("for ever", 60)
                }
                decision => decision,
            }),
        },
        Row {
            name: "no-mark-is-quiet",
            sentence: "where there is no mark, an absence that was read before is believed",
            breaks: &["GoneIsClean"],
            size: Size { faults: 0, elapses: 1, ..TWO },
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let mut bent = copied(live_reads);
                for (question, answer) in &live_reads.answers {
                    let Asked::Policy { at, .. } = &question.object else { continue };
                    let reading = PolicyReading::Attachments;
                    let object = Asked::Policy { at: at.clone(), reading };
                    let about = question.about.clone();
                    bent.answers.insert(Question { object, about }, answer.clone());
                }
                match room.observe(subject, view, &bent) {
                    Observed::Seen { facts, scene } => {
                        Observed::Seen { facts: unmarked_is_mine(&facts), scene }
                    }
                    nothing @ Observed::Nothing(_) => nothing,
                }
            }),
        },
        Row {
            name: "role-without-boundary",
            sentence: "a role is created without the permissions boundary",
            breaks: &["BoundaryHolds"],
            size: WHOLE,
            rule: Rule::Role(|facts| {
                Roles::decide(&role::Facts { boundary: None, ..facts.clone() })
            }),
        },
        Row {
            name: "trust-not-compared",
            sentence: "a role that trusts somebody else counts as it is declared",
            breaks: &["Converges"],
            size: Size { drifts: 1, live: 1, elapses: 4, ..WHOLE },
            rule: Rule::Role(|facts| match Roles::decide(facts) {
                role::Decision::Call(_, Call::UpdateAssumeRolePolicy { .. }) => {
                    role::Decision::Resync
                }
                decision => decision,
            }),
        },
        Row {
            name: "role-gone-at-once",
            sentence: "a role that the cloud does not show is gone",
            breaks: &["GoneIsClean"],
            size: Size { crash: 1, faults: 1, deletes: 1, ..WHOLE },
            rule: Rule::Role(|facts| {
                let first = facts.look.as_ref().and_then(|look| look.places.first());
                let is_absent = first.is_some_and(|place| place.state == role::State::Absent);
                match is_absent && facts.is_deleting && facts.has_finalizer {
                    true => role::Decision::RemoveFinalizer(role::Left::Nothing),
                    false => Roles::decide(facts),
                }
            }),
        },
        Row {
            name: "window-counted-before-the-mark-is-read",
            sentence: "the late-call window is counted from before the mark is written",
            breaks: &["GoneIsClean"],
            size: Size { faults: 0, ..TWO },
            rule: Rule::Policy(|facts| match Policies::decide(facts) {
                Decision::Mark(mark) if mark.quiet_at.is_none() => {
                    let uptime = facts.look.as_ref().map_or(0, |look| look.journal.process.uptime);
                    let quiet_at = Some(uptime + super::clients::LATE_CALL_SECONDS);
                    Decision::Mark(Mark { quiet_at, ..mark })
                }
                decision => decision,
            }),
        },
        Row {
            name: "role-deleted-before-the-service-account",
            sentence: "the ServiceAccount is not deleted before the role that it names",
            breaks: &["SaOnlyWithRole"],
            size: Size { deletes: 1, ..WHOLE },
            rule: Rule::Irsa(|facts| {
                let role = &facts.role;
                let is_last = matches!(role, irsa::Child::Absent);
                match Accounts::decide(facts) {
                    irsa::Decision::Delete(irsa::Which::Account) if !is_last => {
                        let account = irsa::Account::Absent;
                        Accounts::decide(&irsa::Facts { account, ..facts.clone() })
                    }
                    decision => decision,
                }
            }),
        },
        Row {
            name: "children-not-awaited",
            sentence: "the finalizer is taken off while the children are being deleted",
            breaks: &["ChildrenFirst"],
            size: Size { deletes: 1, ..WHOLE },
            rule: Rule::Irsa(|facts| match Accounts::decide(facts) {
                irsa::Decision::Report(_) if facts.is_deleting => irsa::Decision::RemoveFinalizer,
                decision => decision,
            }),
        },
    ]
}

impl Row {
    fn mistake(self) -> Mistake<Identities> {
        let Row { name, sentence, breaks, size, rule } = self;
        let mut system = Identities::of(size);
        let settings = super::settings();
        match rule {
            Rule::Observe(observe) => {
                system.policies = Bent::new(Policies { settings }).observing(observe);
            }
            Rule::Policy(decide) => {
                system.policies = Bent::new(Policies { settings }).deciding(decide);
            }
            Rule::Role(decide) => system.roles = Bent::new(Roles { settings }).deciding(decide),
            Rule::Irsa(decide) => {
                system.accounts = Bent::new(Accounts { settings }).deciding(decide);
            }
        }
        Mistake { name, sentence, breaks, system }
    }
}

/// Whether the cloud shows nothing at the first place.
fn is_absent(facts: &Facts) -> bool {
    let first = facts.look.as_ref().and_then(|look| look.places.first());
    first.is_some_and(|place| place.state == State::Absent)
}

fn with_look(facts: &Facts, change: impl FnOnce(&mut Look)) -> Facts {
    let mut facts = facts.clone();
    if let Some(look) = &mut facts.look {
        change(look);
    }
    facts
}

fn marked(facts: &Facts, mark: Option<Mark>) -> Facts {
    with_look(facts, |look| look.journal.mark = mark)
}

/// What was read live, to be bent.
pub(super) fn copied(live_reads: &LiveReads<Cloud>) -> LiveReads<Cloud> {
    LiveReads {
        objects: live_reads.objects.clone(),
        lists: live_reads.lists.clone(),
        selected: live_reads.selected.clone(),
        dry_runs: live_reads.dry_runs.clone(),
        answers: live_reads.answers.clone(),
    }
}

/// Where there is no mark, it counts as a quiet one of this process: before the cloud is read, and of a Policy
/// that is being deleted.
fn unmarked_is_mine(facts: &Facts) -> Facts {
    with_look(facts, |look| {
        let (instance, quiet_at) = (look.journal.process.instance.clone(), Some(0));
        if look.places.is_empty() || facts.is_deleting {
            look.journal.mark.get_or_insert(Mark { instance, quiet_at, settled: false });
        }
    })
}

/// Whoever wrote the mark, it counts as this process's own.
fn as_if_mine(facts: &Facts) -> Facts {
    with_look(facts, |look| {
        let me = look.journal.process.instance.clone();
        if let Some(mark) = &mut look.journal.mark {
            mark.instance = me;
        }
    })
}

fn all_ours(facts: &Facts) -> Facts {
    with_look(facts, |look| {
        for place in &mut look.places {
            if let State::Policy { whose, .. } = &mut place.state {
                *whose = crate::owner::Whose::Ours;
            }
        }
    })
}
