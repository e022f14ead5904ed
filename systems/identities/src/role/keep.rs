//! A cloud role that is ours: brought to what is declared, or deleted.

use super::decide::{
    CHECKED_SECONDS, Decision, Facts, Look, Report, awaiting_policy, call, idle, late,
};
use super::placed::Placement;
use super::rights;
use crate::document;
use crate::journal::{Going, Resting};
use crate::outside::{At, Call, RoleFound};
use crate::standing::{Standing, is_spec_arn_ignored};
use interlock_api::identities::condition as words;

/// After how many seconds it is checked whether somebody took the role out of an instance profile.
const TAKEN_OUT_SECONDS: i64 = 30;

/// A cloud role that is ours.
pub(super) struct Held<'a> {
    /// Where it is.
    pub(super) at: &'a At,
    /// As it is.
    pub(super) found: &'a RoleFound,
}

/// Whom a role must trust.
pub(super) enum Wanted<'a> {
    /// This is the trust policy.
    Trust(&'a str),
    /// The owner of the Grant.
    Grant(&'a Placement),
}

/// Tags, trust, boundary, attachments; then the status.
pub(super) fn keep(facts: &Facts, look: &Look, held: &Held<'_>, wanted: &Wanted<'_>) -> Decision {
    let Held { at, found } = *held;
    if !facts.owner.has_tagged(&found.tags) {
        return call(facts, look, at, Call::TagRole { tags: facts.owner.tags() });
    }
    if let Some(decision) = trust(facts, look, held, wanted) {
        return decision;
    }
    if let Some(arn) = facts.boundary.clone().filter(|arn| found.boundary.as_ref() != Some(arn)) {
        return call(facts, look, at, Call::PutRolePermissionsBoundary { arn });
    }
    if let Some(decision) = attach(facts, look, at, found) {
        return decision;
    }
    let recorded = recorded(facts, look, found);
    let known = Some((found.arn.clone(), found.id.clone()));
    let conditions = &facts.status.conditions;
    let is_spec_arn_ignored =
        is_spec_arn_ignored(facts.spec_arn.as_deref(), &found.arn, conditions);
    let untrusted = match wanted {
        Wanted::Trust(_) => None,
        Wanted::Grant(placement) => rights::standing(placement),
    };
    let awaits_issuer = untrusted.is_some();
    let standing = match untrusted {
        _ if look.awaits_policy => awaiting_policy(),
        Some(standing) => standing,
        None => Standing::Ready("the cloud role is as declared"),
    };
    let is_settled = matches!(standing, Standing::Ready(_)) && recorded == facts.status.attached;
    let mark = look.journal.settling(is_settled);
    let report = Report { standing, known, is_spec_arn_ignored, mark };
    let then = match rest(facts, look, recorded) {
        // Clusters change with every heartbeat, so no change of them wakes this controller.
        Decision::Resync if awaits_issuer => {
            Decision::Wait("the issuer of the owner is not ready", CHECKED_SECONDS)
        }
        decision => decision,
    };
    facts.report(report, then)
}

fn trust(facts: &Facts, look: &Look, held: &Held<'_>, wanted: &Wanted<'_>) -> Option<Decision> {
    match wanted {
        Wanted::Grant(placement) => rights::follow(facts, look, held, placement),
        Wanted::Trust(trust) if document::is_same(&held.found.trust, trust) => None,
        Wanted::Trust(trust) => {
            let trust = (*trust).to_owned();
            Some(call(facts, look, held.at, Call::UpdateAssumeRolePolicy { trust }))
        }
    }
}

/// What is wanted is recorded, then attached; what is recorded and not wanted is detached. Attachments of
/// others are left alone.
fn attach(facts: &Facts, look: &Look, at: &At, found: &RoleFound) -> Option<Decision> {
    let recorded = &facts.status.attached;
    let missing = look.policies.iter().find(|arn| !found.attached.contains(arn));
    if let Some(arn) = missing {
        if !recorded.contains(arn) {
            let all = recorded.iter().chain([arn]).cloned().collect();
            return Some(Decision::Record(all));
        }
        return Some(call(facts, look, at, Call::AttachRolePolicy { arn: arn.clone() }));
    }
    // While the Policy is not ready, its ARN is not known: whatever is attached may be its own.
    let unwanted = recorded.iter().filter(|_| !look.awaits_policy);
    let mut unwanted = unwanted.filter(|arn| !look.policies.contains(arn));
    let arn = unwanted.find(|arn| found.attached.contains(arn))?.clone();
    Some(call(facts, look, at, Call::DetachRolePolicy { arn }))
}

/// What stays on record of the policies that Interlock attached: what is wanted, or attached.
fn recorded(facts: &Facts, look: &Look, found: &RoleFound) -> Vec<String> {
    let is_kept = |arn: &&String| {
        look.awaits_policy || look.policies.contains(arn) || found.attached.contains(arn)
    };
    facts.status.attached.iter().filter(is_kept).cloned().collect()
}

/// Nothing is to be done: what is detached is dropped from the record, and the mark is removed, once nothing
/// is under way.
fn rest(facts: &Facts, look: &Look, kept: Vec<String>) -> Decision {
    match look.journal.resting() {
        Resting::Quiet if kept != facts.status.attached => match look.journal.going() {
            Going::Mark(mark) => Decision::Mark(mark),
            Going::Gone | Going::Late { .. } => Decision::Resync,
        },
        Resting::Unmark { .. } if kept != facts.status.attached => Decision::Record(kept),
        Resting::Quiet | Resting::Unmark { .. } | Resting::Wait { .. } | Resting::Another => {
            idle(look)
        }
    }
}

/// The Role is being deleted, and its cloud role is there.
pub(super) fn delete(facts: &Facts, look: &Look, at: &At, found: &RoleFound) -> Decision {
    if let Some(profile) = found.instance_profiles.iter().flatten().next() {
        let message = format!("the cloud role is in the instance profile {profile}");
        let standing = Standing::reconciling(words::ATTACHED_ELSEWHERE, message)
            .next(Some(format!("remove the role from the instance profile {profile}")));
        return facts.say(standing, Decision::Wait("the role is in use", TAKEN_OUT_SECONDS));
    }
    if let Some(arn) = found.attached.first().cloned() {
        return call(facts, look, at, Call::DetachRolePolicy { arn });
    }
    // Fences go last: somebody else's inline policy may allow what they deny.
    let inline = found.inline.iter().flatten();
    match inline.min_by_key(|inline| rights::is_fence(&inline.id)) {
        Some(inline) => {
            let delete = Call::DeleteRolePolicy { name: inline.id.clone() };
            // What is attached late, or shown late to be attached, would be there for whom the fence denies.
            match look.journal.going() {
                Going::Late { seconds } if rights::is_fence(&inline.id) => late(facts, seconds),
                Going::Late { .. } | Going::Gone | Going::Mark(_) => call(facts, look, at, delete),
            }
        }
        None => call(facts, look, at, Call::DeleteRole),
    }
}
