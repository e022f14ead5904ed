//! The trust of a role follows the Grant of its namespace, and a forced release ends the sessions of the old
//! owner.
//!
//! The protocol is `spec/identities-rights`. What the Grant says of a role is believed by the syncer of the next
//! owner, so it is written only under a mark of this process, once nothing else can land, and over the version of
//! the Grant that was read after the cloud.

use super::decide::{Change, Decision, Facts, Look, Rights, call, late};
use super::keep::Held;
use super::placed::{Issuer, Placement};
use crate::document::{self, Trusted};
use crate::journal::{Gate, Going};
use crate::outside::{At, Call, Register, Version};
use crate::standing::Standing;
use interlock_api::identities::{Fence, condition as words};
use interlock_api::placement::{Phase, RightsState, RoleRights};

/// The longest session that the cloud gives for any role. Roles are made with an hour, but adopted ones, and those
/// that people changed, may have more.
const LONGEST_SESSION_SECONDS: i64 = 12 * 3600;
/// What the names of fences begin with.
const FENCE: &str = "interlock-fence-";

/// Whatever is done about a role that the Grant does not list is done after it is listed: a Grant that lists all
/// roles as ready is then right.
pub(super) fn list(facts: &Facts, placement: &Placement) -> Option<Decision> {
    if placement.entry(&facts.owner.uid).is_some() {
        return None;
    }
    let state = RightsState::Waiting;
    let because = "the cloud role is not ready yet".to_owned();
    Some(write(facts, placement, state, because))
}

/// The role is not in the cloud: it is made without trusting anybody. Its account, and with it the ARN of the
/// provider to trust, is known once it is there.
pub(super) fn create(facts: &Facts, look: &Look, at: &At, placement: &Placement) -> Decision {
    let (epoch, fenced) = (placement.epoch, placement.fenced_epoch);
    if fenced > fence_epoch(facts) {
        // A role that was never there has no sessions. One that a late call creates may have.
        return match look.journal.going() {
            Going::Gone => Decision::Fence { epoch: fenced, before: None },
            Going::Mark(mark) => Decision::Mark(mark),
            Going::Late { seconds } => late(facts, seconds),
        };
    }
    let (trust, boundary) = (closed(epoch), facts.boundary.clone());
    call(facts, look, at, Call::CreateRole { trust, boundary, tags: facts.owner.tags() })
}

/// The fence first, then the trust; None: both are as the Grant asks.
pub(super) fn follow(
    facts: &Facts,
    look: &Look,
    held: &Held<'_>,
    placement: &Placement,
) -> Option<Decision> {
    if let Some(decision) = fence(facts, look, held, placement) {
        return Some(decision);
    }
    match placement.phase {
        Phase::Fenced => fenced(facts, look, held, placement),
        Phase::Granted => granted(facts, look, held, placement),
        // An owner that leaves may need its rights to finish.
        Phase::Revoking | Phase::Released | Phase::Unassigned | Phase::Deleting => None,
    }
}

/// Why the role is not as the Grant asks, though nothing can be done about it now.
pub(super) fn standing(placement: &Placement) -> Option<Standing> {
    match &placement.issuer {
        Issuer::NotReady(because) if placement.phase == Phase::Granted => {
            Some(Standing::reconciling(words::ISSUER_NOT_READY, because.clone()))
        }
        Issuer::NotReady(_) | Issuer::Unread | Issuer::Usable(_) => None,
    }
}

/// The epoch whose sessions are known to be denied, or being denied.
fn fence_epoch(facts: &Facts) -> i64 {
    facts.status.fence.as_ref().map_or(0, |fence| fence.epoch)
}

fn closed(epoch: i64) -> String {
    document::closed(&format!("Epoch{epoch}")).to_string()
}

/// Whether the cloud shows that the role trusts nobody.
fn is_shown_closed(held: &Held<'_>, epoch: i64) -> bool {
    document::is_same(&held.found.trust, &closed(epoch))
}

/// Closes the trust, unless it is known to be closed. A read alone proves that only when nothing can land any more
/// and reads show what is; else the answer to a call of this process does.
fn close(facts: &Facts, look: &Look, held: &Held<'_>, epoch: i64) -> Option<Decision> {
    let close = Call::UpdateAssumeRolePolicy { trust: closed(epoch) };
    let is_read = is_shown_closed(held, epoch) && look.journal.is_quiet();
    // An earlier call of the same content may be unanswered: whenever it lands, it closes.
    match look.journal.gate(&close) {
        Gate::Open if is_read || look.journal.has_done(&close) => None,
        _ => Some(call(facts, look, held.at, close)),
    }
}

/// Brings the fence of the last forced release into the cloud, and waits until it is past.
fn fence(facts: &Facts, look: &Look, held: &Held<'_>, placement: &Placement) -> Option<Decision> {
    let epoch = placement.fenced_epoch;
    if epoch > fence_epoch(facts) {
        return Some(match close(facts, look, held, epoch) {
            Some(decision) => decision,
            None => record(facts, look, epoch),
        });
    }
    let Fence { epoch, before } = facts.status.fence.as_ref()?;
    let before = before.as_ref()?.0;
    let Some(date) = look.date else { return Some(timeless(facts)) };
    let late_seconds = look.journal.late_call_seconds;
    let forgotten = before.as_second().saturating_add(LONGEST_SESSION_SECONDS + late_seconds);
    if date > forgotten {
        return Some(remove_fences(facts, look, held, *epoch));
    }
    let name = format!("{FENCE}{epoch}");
    let put = Call::PutRolePolicy { name, document: document::fence(before).to_string() };
    if !is_there(held, &put) && !look.journal.has_done(&put) {
        // The next owner was let in: a later time would deny its sessions, too.
        let is_too_late = date >= before.as_second() - late_seconds / 2;
        if !is_too_late || !is_shown_closed(held, *epoch) {
            return Some(call(facts, look, held.at, put));
        }
        return Some(match close(facts, look, held, *epoch) {
            Some(decision) => decision,
            None => record(facts, look, *epoch),
        });
    }
    let left = before.as_second().saturating_add(1).saturating_sub(date);
    (left > 0).then(|| {
        let message = "sessions of an owner that lost the namespace by force are being denied";
        let standing = Standing::reconciling(words::PROGRESSING, message);
        facts.say(standing, Decision::Wait("the time of the fence is not past", left))
    })
}

/// The trust is closed. Within the late-call window nobody is let in by an older trust any more: the fence denies
/// whatever was issued until then.
fn record(facts: &Facts, look: &Look, epoch: i64) -> Decision {
    match look.date {
        Some(date) => {
            let before = Some(date.saturating_add(look.journal.late_call_seconds));
            Decision::Fence { epoch, before }
        }
        None => timeless(facts),
    }
}

fn timeless(facts: &Facts) -> Decision {
    let standing = Standing::reconciling(words::UNAVAILABLE, "the cloud does not say its time");
    facts.say(standing, Decision::Wait("the cloud does not say its time", 15))
}

fn inline<'a>(held: &Held<'a>) -> impl Iterator<Item = &'a Version> + use<'a> {
    held.found.inline.iter().flatten()
}

fn is_there(held: &Held<'_>, put: &Call) -> bool {
    let Call::PutRolePolicy { name, document } = put else { return false };
    inline(held).any(|it| it.id == *name && document::is_same(&it.document, document))
}

/// The epoch whose sessions an inline policy denies, if it is a fence.
fn fenced_by(inline: &str) -> Option<i64> {
    inline.strip_prefix(FENCE)?.parse().ok()
}

/// Whether an inline policy is a fence.
pub(super) fn is_fence(inline: &str) -> bool {
    fenced_by(inline).is_some()
}

/// No session is left that an old fence denies.
fn remove_fences(facts: &Facts, look: &Look, held: &Held<'_>, last: i64) -> Decision {
    let is_old = |it: &&Version| fenced_by(&it.id).is_some_and(|epoch| epoch <= last);
    match inline(held).find(is_old) {
        Some(old) => call(facts, look, held.at, Call::DeleteRolePolicy { name: old.id.clone() }),
        None => Decision::Fence { epoch: last, before: None },
    }
}

/// The epoch was ended by force, and its sessions are denied.
fn fenced(facts: &Facts, look: &Look, held: &Held<'_>, placement: &Placement) -> Option<Decision> {
    let epoch = placement.fenced_epoch;
    let close_again = Call::UpdateAssumeRolePolicy { trust: closed(epoch) };
    if !is_shown_closed(held, epoch) && !look.journal.has_done(&close_again) {
        return Some(call(facts, look, held.at, close_again));
    }
    claim(facts, look, placement, RightsState::Fenced)
}

/// The owner of this epoch is trusted, and nobody else.
fn granted(facts: &Facts, look: &Look, held: &Held<'_>, placement: &Placement) -> Option<Decision> {
    let issuer = match &placement.issuer {
        Issuer::Usable(issuer) => issuer,
        Issuer::Unread => return None,
        Issuer::NotReady(because) => {
            let entry = placement.entry(&facts.owner.uid)?;
            let known = (entry.epoch, entry.state, entry.because.as_str());
            let is_known = known == (placement.epoch, RightsState::Waiting, because)
                || placement.is_ready(&facts.owner.uid);
            let waiting = || write(facts, placement, RightsState::Waiting, because.clone());
            return (!is_known).then(waiting);
        }
    };
    let Some(provider) = provider_arn(&held.found.arn, issuer) else {
        let message = format!("the ARN of the cloud role cannot be read: {}", held.found.arn);
        let standing = Standing::stalled(words::INVALID, message);
        return Some(facts.say(standing, Decision::Resync));
    };
    let (subject, audience) = (&placement.subject, &placement.audience);
    let trusted = Trusted { provider: &provider, subject, audience };
    let trust = trusted.document(&format!("Epoch{}", placement.epoch)).to_string();
    if document::is_same(&held.found.trust, &trust) {
        return claim(facts, look, placement, RightsState::Ready);
    }
    Some(call(facts, look, held.at, Call::UpdateAssumeRolePolicy { trust }))
}

/// Tells the Grant, unless it knows.
fn claim(
    facts: &Facts,
    look: &Look,
    placement: &Placement,
    state: RightsState,
) -> Option<Decision> {
    let known = placement.entry(&facts.owner.uid).map(|entry| (entry.epoch, entry.state));
    if known == Some((placement.epoch, state)) {
        return None;
    }
    Some(match look.journal.ground(&Register::Trust) {
        Gate::Open => write(facts, placement, state, String::new()),
        Gate::Mark(mark) => Decision::Mark(mark),
        Gate::Late { seconds } | Gate::Hidden { seconds } | Gate::Refused { seconds, .. } => {
            late(facts, seconds)
        }
    })
}

fn write(facts: &Facts, placement: &Placement, state: RightsState, because: String) -> Decision {
    let (uid, name) = (facts.owner.uid.clone(), facts.owner.name.clone());
    let entry = RoleRights { uid, name, epoch: placement.epoch, state, because };
    let change = match state {
        RightsState::Waiting => Change::Waiting,
        RightsState::Ready => Change::Ready,
        RightsState::Fenced => Change::Fenced,
    };
    Decision::Rights(Rights { all: placement.with(entry), change })
}

/// The ARN of the provider of an issuer in the account of a role.
fn provider_arn(role: &str, issuer: &str) -> Option<String> {
    let (account, _) = role.split_once(":role/")?;
    let (_, host) = issuer.split_once("://")?;
    Some(format!("{account}:oidc-provider/{host}"))
}
