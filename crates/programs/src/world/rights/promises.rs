//! What placement and identities promise together.

use super::Placed;
use super::truth::Truth;
use interlock_world::{Goal, Promise};

fn promise(
    name: &'static str,
    sentence: &'static str,
    holds: fn(&Placed, &Truth) -> bool,
) -> Promise<Placed> {
    Promise { name, sentence, holds }
}

pub(super) fn promises() -> Vec<Promise<Placed>> {
    vec![
        promise(
            "PermittedToTheOwner",
            "a cluster that may run the namespace is its owner, in the present epoch",
            |_, truth| truth.is_permitted_to_the_owner(),
        ),
        promise(
            "RightsFollowTheGrant",
            "while an epoch may run, the role trusts its owner, and nobody else",
            |_, truth| truth.of_rights().follow_the_grant(),
        ),
        promise(
            "ReadyIsTrue",
            "rights that are said to be ready for the present epoch are",
            |_, truth| truth.of_rights().are_ready_if_said(),
        ),
        promise(
            "FencedHasNoRights",
            "where a forced epoch is said to have no rights, each session of it is denied",
            |_, truth| truth.of_rights().fenced_have_none(),
        ),
        promise("OwnerNotDenied", "no fence denies a session of the present owner", |_, truth| {
            truth.of_rights().owner_is_not_denied()
        }),
    ]
}

pub(super) fn reachable(system: &Placed) -> Vec<Promise<Placed>> {
    let mut reachable = Vec::new();
    if system.moves {
        reachable.push(promise(
            "MovedWithRights",
            "the namespace may run on cluster b, and the role trusts cluster b",
            |_, truth| truth.is_moved(false),
        ));
    }
    if system.force {
        reachable.push(promise(
            "ForcedWithRights",
            "so it is after cluster a was declared gone",
            |_, truth| truth.is_moved(true),
        ));
    }
    reachable
}

/// The move does not wait for the role, and the role for the move, for ever.
pub(super) fn goals() -> Vec<Goal<Placed>> {
    vec![Goal {
        name: "RunsWithRights",
        sentence: "in the end the namespace may run where people want it, with its rights",
        while_true: |_, truth| !truth.is_settled(),
        then: |_, truth| truth.is_settled() || truth.is_out_of_time,
    }]
}
