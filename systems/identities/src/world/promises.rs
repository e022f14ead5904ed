//! What is promised.

use super::account::{HeldPolicy, HeldRole};
use super::people::AUDIT;
use super::truth::{Truth, is_trusting};
use super::{BOUNDARY, Identities};
use crate::outside::Tags;
use interlock_api::identities::TAG_OWNER_UID;
use interlock_world::{Goal, Promise, Rule};

/// The owner of foreign objects.
pub(super) const ANOTHER: &str = "another";

/// What must hold in every state.
pub(super) fn promises() -> Vec<Promise<Identities>> {
    vec![
        Promise {
            name: "GoneIsClean",
            sentence: "when an object is gone, nothing of it is in the cloud, and nothing can still land",
            holds: |_, truth| truth.left_over.is_none(),
        },
        Promise {
            name: "FinalizerFirst",
            sentence: "nothing is made in the cloud for an object without its finalizer",
            holds: |_, truth| {
                let is_made = |uid: &String| {
                    let is_its = |tags: &Tags| tags.get(TAG_OWNER_UID) == Some(uid);
                    truth.tags().any(is_its) || truth.creating.contains(uid)
                };
                truth.owners().all(|owner| owner.has_finalizer || !is_made(&owner.uid))
            },
        },
        Promise {
            name: "ChildrenFirst",
            sentence: "when an identity is gone, so are its Policy, its Role and its ServiceAccount",
            holds: |system, truth| {
                let is_empty = truth.owners().next().is_none() && !truth.has_service_account;
                !is_whole(system) || truth.account.is_some() || is_empty
            },
        },
        Promise {
            name: "SaOnlyWithRole",
            sentence: "a ServiceAccount names only a role that is ours",
            holds: |system, truth| {
                let is_ours = |named: &String| truth.own_roles().any(|(arn, _)| arn == *named);
                system.size.drifts > 0 || truth.named.as_ref().is_none_or(is_ours)
            },
        },
        Promise {
            name: "BoundaryHolds",
            sentence: "no role of ours is without the permissions boundary",
            holds: |system, truth| {
                let mut own = truth.own_roles();
                let has_it = |role: &HeldRole| role.boundary.as_deref() == Some(BOUNDARY);
                system.size.drifts > 0 || own.all(|(_, role)| has_it(role))
            },
        },
        Promise {
            name: "OneSubject",
            sentence: "a role of ours trusts its service account, and nobody else",
            holds: |system, truth| {
                let mut own = truth.own_roles();
                system.size.drifts > 0 || own.all(|(_, role)| is_trusting(role))
            },
        },
    ]
}

/// What must hold of every step.
pub(super) fn rules() -> Vec<Rule<Identities>> {
    vec![others_stay_attached(), only_ours()]
}

fn others_stay_attached() -> Rule<Identities> {
    Rule {
        name: "OthersStayAttached",
        sentence: "what others attached to a role of ours stays attached while the role is declared",
        allows: |_, before, after| {
            let is_declared = after.role.as_ref().is_some_and(|role| !role.is_deleting);
            let has_it = |role: &HeldRole| role.attached.contains(AUDIT);
            let mut audited = before.roles.iter().filter(|(_, role)| has_it(role));
            !is_declared || audited.all(|(name, _)| after.roles.get(name).is_none_or(has_it))
        },
    }
}

fn only_ours() -> Rule<Identities> {
    Rule {
        name: "OnlyOurs",
        sentence: "no call changes a foreign object, save a proven adoption",
        allows: |system, before, after| {
            let is_foreign = |held: &HeldPolicy| match held.tags.get(TAG_OWNER_UID) {
                Some(uid) => uid == ANOTHER,
                // The first object was there before; ours lose their tag only by drift.
                None => held.id == 1 && matches!(system.size.there, 1 | 4),
            };
            let mut foreign = before.policies.iter().filter(|(_, held)| is_foreign(held));
            foreign.all(|(name, held)| {
                let now = after.policies.get(name);
                let is_adopted = system.size.there == 3 && now.is_some_and(|now| now.id == held.id);
                now == Some(held) || is_adopted || system.size.drifts > 0
            })
        },
    }
}

fn is_whole(system: &Identities) -> bool {
    system.size.whole == 1
}

/// What must be possible.
pub(super) fn reachable(system: &Identities) -> Vec<Promise<Identities>> {
    let mut all = vec![Promise {
        name: "SettlesDown",
        sentence: "the cloud is as declared, and nothing is under way",
        holds: |system: &Identities, truth: &Truth| {
            let is_there = truth.declared(is_whole(system)).is_some();
            let is_done = truth.is_done(is_whole(system));
            is_there && is_done && truth.is_as_declared(is_whole(system))
        },
    }];
    // A policy that others use stays.
    if system.size.deletes == 1 && system.size.there != 5 {
        all.push(Promise {
            name: "IsDeleted",
            sentence: "what was declared is deleted, and nothing is left of it",
            holds: |system, truth| {
                let is_there = truth.declared(is_whole(system)).is_some();
                !is_there && truth.is_as_declared(is_whole(system))
            },
        });
    }
    all
}

/// What must happen in the end.
pub(super) fn goals() -> Vec<Goal<Identities>> {
    vec![
        Goal {
            name: "Converges",
            sentence: "what is declared is in the cloud in the end",
            while_true: |system, truth| {
                let declared = truth.declared(is_whole(system));
                let is_live = declared.is_some_and(|it| !it.is_deleting);
                is_live && !truth.is_as_declared(is_whole(system))
            },
            then: |_, truth| truth.is_out_of_time,
        },
        Goal {
            name: "Deletes",
            sentence: "what is deleted is gone in the end",
            while_true: |system, truth| {
                truth.declared(is_whole(system)).is_some_and(|it| it.is_deleting)
            },
            then: |_, truth| truth.is_out_of_time,
        },
    ]
}
