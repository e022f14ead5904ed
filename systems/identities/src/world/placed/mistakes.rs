//! Mistakes that must be found.

use super::refine::REFINED;
use super::size::Size;
use super::{Placed, settings};
use crate::entries::{self, Entries};
use crate::kinds::{CLUSTER, GRANT, NAMESPACE, ROLE};
use crate::outside::{Call, Cloud};
use crate::providers::Providers;
use crate::providers::decide as providers;
use crate::role::Roles;
use crate::role::decide::{Change, Decision, Facts, Home, Left, Look, State};
use crate::role::placed::Placement;
use crate::settings::Settings;
use crate::world::clients::LATE_CALL_SECONDS;
use crate::world::mistakes::copied;
use interlock_api::identities::Mark;
use interlock_api::names::LABEL_PLACED;
use interlock_api::placement::{GrantStatus, Phase};
use interlock_kernel::{Bent, LiveReads, Object, Observe, Place, Room, View, read_part};
use interlock_world::Mistake;
use std::sync::Arc;

/// The rule of a room that is bent.
#[derive(Clone, Copy)]
enum Rule {
    Observe(Observe<Roles>),
    Decide(fn(&Facts) -> Decision),
    Providers(fn(&providers::Facts) -> providers::Decision),
    Entries(fn(&entries::Facts) -> entries::Decision),
}

/// A row: name, sentence, what breaks, the least size, the rule instead.
struct Row {
    name: &'static str,
    sentence: &'static str,
    breaks: &'static [&'static str],
    size: Size,
    rule: Rule,
}

/// The namespace moves once.
const MOVED: Size = Size { epochs: 2, ..Size::SMALL };
/// The namespace is moved by force.
const FORCED: Size = Size { forced: 1, ..MOVED };

/// The provider of a cluster that is deleted.
const PROVIDED: Size = Size { managed: 1, faults: 1, deletes: 1, ..Size::SMALL };

const FOLLOW: &[&str] = &["RightsFollowTheGrant", "ReadyIsTrue"];
const FENCED: &[&str] = &["FencedHasNoRights"];

pub(super) fn all() -> Vec<Mistake<Placed>> {
    let mut rows = about_trust();
    rows.extend(about_fences());
    rows.extend(about_names());
    rows.into_iter().map(Row::mistake).collect()
}

fn about_trust() -> Vec<Row> {
    vec![
        Row {
            name: "trust-from-a-cached-grant",
            sentence: "the trust follows the Grant that the cache shows",
            breaks: FOLLOW,
            size: Size { processes: 2, stale: 1, elapses: 1, ..MOVED },
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let mut bent = copied(live_reads);
                for (address, object) in &mut bent.objects {
                    if address.kind == GRANT {
                        *object = view.get(Place::HUB, &GRANT, &address.name);
                    }
                }
                room.observe(subject, view, &bent)
            }),
        },
        Row {
            name: "trust-before-release",
            sentence: "the next owner is trusted while the owner leaves",
            breaks: FOLLOW,
            size: MOVED,
            rule: Rule::Decide(|facts| {
                let shown = placement(facts).filter(|it| it.phase == Phase::Revoking);
                let Some(shown) = shown else { return Roles::decide(facts) };
                let (epoch, phase) = (shown.epoch + 1, Phase::Granted);
                let issuer = crate::role::placed::Issuer::Usable("https://b.example".to_owned());
                Roles::decide(&placed(facts, |it| {
                    *it = Placement { epoch, phase, issuer, ..it.clone() };
                }))
            }),
        },
        Row {
            name: "mark-of-another-believed",
            sentence: "calls are made under the mark of another process",
            breaks: FOLLOW,
            size: Size { processes: 2, flights: 1, faults: 1, elapses: 0, ..MOVED },
            rule: Rule::Decide(|facts| {
                Roles::decide(&with_look(facts, |look| {
                    let me = look.journal.process.instance.clone();
                    if let Some(mark) = &mut look.journal.mark {
                        *mark = Mark { instance: me, quiet_at: Some(0), settled: false };
                    }
                }))
            }),
        },
        Row {
            name: "taken-over-without-waiting",
            sentence: "the mark of another process is taken over, and its calls are not waited for",
            breaks: FOLLOW,
            size: Size { crash: 1, faults: 1, elapses: 0, ..MOVED },
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Mark(mark) => Decision::Mark(Mark { quiet_at: Some(0), ..mark }),
                decision => decision,
            }),
        },
        Row {
            name: "own-late-call-ignored",
            sentence: "an unanswered update of the trust is not waited for",
            breaks: FOLLOW,
            size: Size { faults: 1, elapses: 0, ..MOVED },
            rule: Rule::Decide(|facts| {
                Roles::decide(&with_look(facts, |look| {
                    look.journal.sent.retain(|sent| sent.is_answered);
                }))
            }),
        },
        Row {
            name: "mark-not-read-live",
            sentence: "the trust is written under the mark that the cache shows",
            breaks: FOLLOW,
            size: Size { processes: 2, stale: 1, elapses: 1, ..MOVED },
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let mut bent = copied(live_reads);
                for (address, object) in &mut bent.objects {
                    if address.kind == ROLE {
                        *object = view.get(Place::HUB, &ROLE, &address.name);
                    }
                }
                room.observe(subject, view, &bent)
            }),
        },
        Row {
            name: "ready-while-a-call-is-unanswered",
            sentence: "rights are ready when the trust is shown, though the same call may land again: no harm, and \
                       no step of the protocol",
            breaks: &[REFINED],
            size: Size { faults: 1, refine: 1, ..Size::SMALL },
            rule: Rule::Decide(|facts| {
                let answered = with_look(facts, |look| {
                    look.journal.sent.retain(|sent| sent.is_answered);
                });
                match Roles::decide(&answered) {
                    Decision::Rights(rights) if rights.change == Change::Ready => {
                        Decision::Rights(rights)
                    }
                    _ => Roles::decide(facts),
                }
            }),
        },
        Row {
            name: "rights-never-ready",
            sentence: "the Grant is never told that the role trusts the owner",
            breaks: &["GrantRuns"],
            size: Size { live: 1, ..Size::SMALL },
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Rights(rights) if rights.change == Change::Ready => Decision::Resync,
                decision => decision,
            }),
        },
    ]
}

fn about_fences() -> Vec<Row> {
    vec![
        Row {
            name: "no-fence",
            sentence: "sessions of a forced owner are not denied",
            breaks: FENCED,
            size: FORCED,
            rule: Rule::Decide(|facts| Roles::decide(&placed(facts, |it| it.fenced_epoch = 0))),
        },
        Row {
            name: "fence-before-close",
            sentence: "the time of the fence is recorded before the trust is closed",
            breaks: FENCED,
            size: FORCED,
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Call(_, Call::UpdateAssumeRolePolicy { .. }) if is_unfenced(facts) => {
                    fence(facts)
                }
                decision => decision,
            }),
        },
        Row {
            name: "closed-believed-at-once",
            sentence: "a read that shows the trust closed is believed while a call may still land",
            breaks: FENCED,
            size: Size { faults: 1, ..FORCED },
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Call(..) | Decision::Wait(..) | Decision::Report(_)
                    if is_unfenced(facts) && is_shown_closed(facts) =>
                {
                    fence(facts)
                }
                decision => decision,
            }),
        },
        Row {
            name: "fence-without-propagation",
            sentence: "the time of the fence is that at which the trust was closed",
            breaks: FENCED,
            size: FORCED,
            rule: Rule::Decide(|facts| {
                let seconds = if is_put(facts) { 0 } else { -LATE_CALL_SECONDS };
                Roles::decide(&at_another_time(facts, seconds))
            }),
        },
        Row {
            name: "opened-before-the-fence",
            sentence: "the next owner is trusted before the time of the fence has passed",
            breaks: &["OwnerNotDenied"],
            size: FORCED,
            rule: Rule::Decide(|facts| {
                let seconds = if is_put(facts) { 2 * LATE_CALL_SECONDS } else { 0 };
                Roles::decide(&at_another_time(facts, seconds))
            }),
        },
        Row {
            name: "never-fenced",
            sentence: "the Grant is never told that the sessions of a forced owner are denied",
            breaks: &["ForceEnds"],
            size: Size { live: 1, elapses: 4, ..FORCED },
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Rights(rights) if rights.change == Change::Fenced => Decision::Resync,
                decision => decision,
            }),
        },
    ]
}

fn about_names() -> Vec<Row> {
    vec![
        Row {
            name: "two-clusters-with-one-issuer",
            sentence: "the issuer of a cluster is ready though another cluster has the same",
            breaks: &["OneIssuer"],
            size: Size { shared: 1, ..Size::SMALL },
            rule: Rule::Providers(|facts| {
                let mut facts = facts.clone();
                facts.shared_with = None;
                if let Some(look) = &mut facts.look {
                    look.shared_with = None;
                }
                Providers::decide(&facts)
            }),
        },
        Row {
            name: "condition-of-the-old-issuer-believed",
            sentence: "a role trusts the issuer that a cluster reports, though another one was found to be ready",
            breaks: &["OneIssuer"],
            size: Size { shared: 2, ..Size::SMALL },
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let mut bent = copied(live_reads);
                for (address, object) in &mut bent.objects {
                    if address.kind == CLUSTER {
                        *object = object.as_ref().map(of_its_issuer);
                    }
                }
                room.observe(subject, view, &bent)
            }),
        },
        Row {
            name: "provider-gone-at-once",
            sentence: "an OIDC provider that the cloud does not show is gone",
            breaks: &["NoProviderIsLeft"],
            size: Size { crash: 1, ..PROVIDED },
            rule: Rule::Providers(|facts| {
                let state = facts.look.as_ref().map(|look| &look.state);
                match facts.removes && state == Some(&providers::State::Absent) {
                    true => providers::Decision::RemoveFinalizer,
                    false => Providers::decide(facts),
                }
            }),
        },
        Row {
            name: "provider-before-the-finalizer",
            sentence: "an OIDC provider is made before that is written down",
            breaks: &["NoProviderIsLeft"],
            size: PROVIDED,
            rule: Rule::Providers(|facts| match Providers::decide(facts) {
                providers::Decision::Keep(record) if !facts.has_finalizer => {
                    let mut facts = providers::Facts { has_finalizer: true, ..facts.clone() };
                    facts.record = record;
                    if let Some(look) = &mut facts.look {
                        let instance = look.journal.process.instance.clone();
                        look.journal.mark =
                            Some(Mark { instance, quiet_at: Some(0), settled: false });
                    }
                    Providers::decide(&facts)
                }
                decision => decision,
            }),
        },
        Row {
            name: "provider-marks-taken-over-at-once",
            sentence: "the mark of another process is taken over, and its calls are not waited for",
            breaks: &["NoProviderIsLeft"],
            size: Size { crash: 1, ..PROVIDED },
            rule: Rule::Providers(|facts| match Providers::decide(facts) {
                providers::Decision::Keep(mut record) => {
                    if let Some(mark) = &mut record.mark {
                        mark.quiet_at = Some(0);
                    }
                    providers::Decision::Keep(record)
                }
                decision => decision,
            }),
        },
        Row {
            name: "configured-issuer-for-a-placed-namespace",
            sentence: "the role of a placed namespace trusts the provider that the operator configured",
            breaks: &["OneIssuer"],
            size: Size::SMALL,
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let mut bent = copied(live_reads);
                for (address, object) in &mut bent.objects {
                    if address.kind == GRANT {
                        *object = None;
                    }
                    if let Some(object) = object.as_mut().filter(|_| address.kind == NAMESPACE) {
                        let labels = Arc::make_mut(object).metadata.labels.as_mut();
                        labels.map(|labels| labels.remove(LABEL_PLACED));
                    }
                }
                room.observe(subject, view, &bent)
            }),
        },
        Row {
            name: "workload-cluster-in-the-name",
            sentence: "the cloud role is named for the cluster that runs the namespace",
            breaks: &["OneRole"],
            size: MOVED,
            rule: Rule::Observe(|room, subject, view, live_reads| {
                let owner = owner(view, live_reads);
                let settings = Settings { fleet: owner, ..(*room.settings).clone() };
                Roles { settings: Arc::new(settings) }.observe(subject, view, live_reads)
            }),
        },
        Row {
            name: "called-before-it-is-listed",
            sentence: "the role is made before the Grant lists it",
            breaks: &["ListedFirst"],
            size: Size::SMALL,
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Rights(rights) if rights.change == Change::Waiting => {
                    Roles::decide(&placed(facts, |it| it.rights.clone_from(&rights.all)))
                }
                decision => decision,
            }),
        },
        Row {
            name: "finalizer-before-the-entry",
            sentence: "a Role is let go while the Grant lists it",
            breaks: &["GoneIsUnlisted"],
            size: Size { deletes: 1, ..Size::SMALL },
            rule: Rule::Decide(|facts| match Roles::decide(facts) {
                Decision::Rights(rights) if rights.change == Change::Removed => {
                    Decision::RemoveFinalizer(Left::Nothing)
                }
                decision => decision,
            }),
        },
        Row {
            name: "entries-of-the-gone-stay",
            sentence: "nobody takes the entry of a Role that is gone out of the Grant",
            breaks: &["Unlists"],
            size: Size { processes: 2, deletes: 1, flights: 1, elapses: 0, live: 1, ..Size::SMALL },
            rule: Rule::Entries(|_| entries::Decision::Rest),
        },
        Row {
            name: "role-gone-at-once",
            sentence: "a role that the cloud does not show is gone",
            breaks: &["GoneIsClean"],
            size: Size { crash: 1, faults: 1, deletes: 1, ..Size::SMALL },
            rule: Rule::Decide(|facts| {
                let first = facts.look.as_ref().and_then(|look| look.places.first());
                let is_absent = first.is_some_and(|place| place.state == State::Absent);
                match is_absent && facts.is_deleting && facts.has_finalizer {
                    true => Decision::RemoveFinalizer(Left::Nothing),
                    false => Roles::decide(facts),
                }
            }),
        },
    ]
}

impl Row {
    fn mistake(self) -> Mistake<Placed> {
        let Row { name, sentence, breaks, size, rule } = self;
        let mut system = Placed::of(size);
        let roles = || Bent::new(Roles { settings: settings(&size) });
        match rule {
            Rule::Observe(observe) => system.roles = roles().observing(observe),
            Rule::Decide(decide) => system.roles = roles().deciding(decide),
            Rule::Entries(decide) => system.entries = Bent::new(Entries).deciding(decide),
            Rule::Providers(decide) => {
                let providers = Bent::new(Providers { settings: settings(&size) });
                system.providers = providers.deciding(decide);
            }
        }
        Mistake { name, sentence, breaks, system }
    }
}

/// A cluster whose conditions are about the issuer that it reports, whichever they were about.
fn of_its_issuer(cluster: &Object) -> Object {
    let mut bent = (**cluster).clone();
    let status = &mut bent.data["status"];
    let message =
        format!("the cloud trusts the issuer {}", status["issuer"].as_str().unwrap_or(""));
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if condition["status"] == "True" {
            condition["message"] = message.clone().into();
        }
    }
    Arc::new(bent)
}

/// The name of the owner of the Grant: as it was read, else as the cache shows it.
fn owner(view: &dyn View, live_reads: &LiveReads<Cloud>) -> String {
    let read = live_reads.objects.iter().find(|(address, _)| address.kind == GRANT);
    let grant = match read {
        Some((_, grant)) => grant.clone(),
        None => view.list(Place::HUB, &GRANT, None).into_iter().next(),
    };
    let status = grant.and_then(|it| read_part::<GrantStatus>(&it, "status").ok().flatten());
    status.and_then(|status| status.owner).map(|owner| owner.name).unwrap_or_default()
}

fn with_look(facts: &Facts, change: impl FnOnce(&mut Look)) -> Facts {
    let mut facts = facts.clone();
    if let Some(look) = &mut facts.look {
        change(look);
    }
    facts
}

fn at_another_time(facts: &Facts, seconds: i64) -> Facts {
    with_look(facts, |look| look.date = look.date.map(|date| date + seconds))
}

fn placement(facts: &Facts) -> Option<&Placement> {
    match &facts.home {
        Some(Home::Placed(placement)) => placement.as_deref(),
        Some(Home::Unknown(_) | Home::Unplaced(_)) | None => None,
    }
}

fn placed(facts: &Facts, change: impl FnOnce(&mut Placement)) -> Facts {
    let mut facts = facts.clone();
    if let Some(Home::Placed(Some(placement))) = &mut facts.home {
        change(placement);
    }
    facts
}

fn found(facts: &Facts) -> Option<&crate::outside::RoleFound> {
    facts.look.as_ref()?.places.iter().find_map(|place| match &place.state {
        State::Role { found, .. } => Some(&**found),
        State::Absent | State::Failed(_) => None,
    })
}

/// Whether a forced release has no fence yet.
fn is_unfenced(facts: &Facts) -> bool {
    let known = facts.status.fence.as_ref().map_or(0, |fence| fence.epoch);
    placement(facts).is_some_and(|it| it.fenced_epoch > known)
}

/// Whether the cloud shows a fence.
fn is_put(facts: &Facts) -> bool {
    let inline = found(facts).and_then(|found| found.inline.as_ref());
    inline.is_some_and(|inline| !inline.is_empty())
}

fn is_shown_closed(facts: &Facts) -> bool {
    found(facts).is_some_and(|found| found.trust.contains("Deny"))
}

fn fence(facts: &Facts) -> Decision {
    let epoch = placement(facts).map_or(0, |it| it.fenced_epoch);
    let date = facts.look.as_ref().and_then(|look| look.date);
    Decision::Fence { epoch, before: date.map(|date| date + LATE_CALL_SECONDS) }
}
