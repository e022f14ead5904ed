//! What the applier promises.

use super::truth::Object;
use super::{LAST, Rollout, Truth};
use interlock_api::rollouts::Verdict;
use interlock_world::{Goal, Promise, Rule};

pub(super) fn promises() -> Vec<Promise<Rollout>> {
    vec![
        Promise {
            name: "IdleIsGood",
            sentence: "while the report says that the target is verified, exactly the target is on the cluster",
            holds: |_, truth| !truth.is_verified() || truth.is_target(),
        },
        Promise {
            name: "VerifiedIsHealthy",
            sentence: "while the report says so, each controller has seen what is there and has done it",
            holds: |_, truth| {
                let mut ours = truth.objects.iter().flatten().filter(|it| it.is_ours);
                !truth.is_verified() || truth.token == 1 || ours.all(|it| it.is_seen)
            },
        },
        Promise {
            name: "OnlyOurs",
            sentence: "an object that somebody else made is neither changed nor deleted",
            holds: |_, truth| {
                let theirs = |object: &Object| !object.is_ours && object.value == 9;
                !truth.has_theirs || truth.objects[1].as_ref().is_some_and(theirs)
            },
        },
        Promise {
            name: "FenceIsNotAhead",
            sentence: "the fence is raised to tokens that the record has given, and to no other",
            holds: |_, truth| truth.fence <= truth.token,
        },
    ]
}

/// The token of the write that changed an object; None: it was not the applier's.
fn writer(before: Option<&Object>, after: Option<&Object>) -> Option<i64> {
    match (before, after) {
        (Some(before), None) => before.is_ours.then_some(before.mark),
        (_, None) => None,
        (before, Some(after)) => {
            // What its controller reports is no write of ours.
            let is_same =
                before.is_some_and(|it| Object { is_seen: after.is_seen, ..*it } == *after);
            (after.is_ours && !is_same).then_some(match before {
                Some(before) if before.mark != after.mark => after.mark,
                Some(_) | None => after.token,
            })
        }
    }
}

fn writers(before: &Truth, after: &Truth) -> impl Iterator<Item = i64> {
    let pairs = before.objects.iter().zip(&after.objects);
    let writers = pairs.filter_map(|(old, new)| writer(old.as_ref(), new.as_ref()));
    writers.collect::<Vec<i64>>().into_iter()
}

pub(super) fn rules() -> Vec<Rule<Rollout>> {
    vec![
        Rule {
            name: "NoLateWrite",
            sentence: "once the fence has settled, which an exact one has at once, what changes on the cluster was \
                       written under its token, or above it",
            allows: |_, before, after| {
                !before.is_settled || writers(before, after).all(|token| token >= before.fence)
            },
        },
        Rule {
            name: "OrderedWrites",
            sentence: "once the fence has settled, writes take effect in the order of their tokens",
            allows: |_, before, after| {
                !before.is_settled || writers(before, after).all(|token| token >= before.top)
            },
        },
        Rule {
            name: "FenceGrows",
            sentence: "the fence never falls",
            allows: |_, before, after| after.fence >= before.fence,
        },
    ]
}

pub(super) fn reachable() -> Vec<Promise<Rollout>> {
    vec![
        Promise {
            name: "SecondIsVerified",
            sentence: "the second version is verified",
            holds: |_, truth| truth.token == 2 && truth.is_verified(),
        },
        Promise {
            name: "RolledBack",
            sentence: "the cluster is brought back, and that is verified",
            holds: |_, truth| truth.token == LAST && truth.is_verified(),
        },
        Promise {
            name: "HalfWay",
            sentence: "the target changes while objects of the one before are on the cluster, and not all of them",
            holds: |_, truth| {
                let under = |token| truth.objects.iter().flatten().any(|it| it.stamp() == token);
                truth.token == LAST && under(2) && truth.verdict == Verdict::Applying
            },
        },
    ]
}

pub(super) fn goals() -> Vec<Goal<Rollout>> {
    vec![Goal {
        name: "TargetIsVerified",
        sentence: "the last target is verified in the end, whatever the applier was at before",
        while_true: |_, truth| !(truth.token == LAST && truth.is_verified()),
        then: |_, truth| truth.token == LAST && truth.is_verified(),
    }]
}
