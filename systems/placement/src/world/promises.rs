//! What placement promises: of every state, of every step, and in the end.

use super::truth::{Cluster, Life, Truth};
use super::{Namespaces, ends};
use interlock_api::placement::{CopyState, ForceOutcome, Phase};
use interlock_world::{CLUSTERS, Goal, Promise, Rule};

pub(super) fn promise(
    name: &'static str,
    sentence: &'static str,
    holds: fn(&Namespaces, &Truth) -> bool,
) -> Promise<Namespaces> {
    Promise { name, sentence, holds }
}

pub(super) fn promises() -> Vec<Promise<Namespaces>> {
    vec![
        promise("UsableByAtMostOne", "at most one cluster runs the namespace", |_, truth| {
            let runs =
                |truth: &Truth| truth.clusters.iter().filter(|c| !c.running.is_empty()).count();
            truth.each().all(|truth| runs(truth) <= 1)
        }),
        promise(
            "OnlyTheOwnerRuns",
            "whoever runs is the owner, in the present epoch",
            |_, truth| {
                let runs_rightly = |truth: &Truth, c: usize| {
                    let is_owner = truth.is_held() && truth.owner() == Some(c);
                    let mut running = truth.clusters[c].running.iter();
                    running.all(|epoch| is_owner && *epoch == truth.epoch())
                };
                truth.each().all(|truth| (0..CLUSTERS).all(|c| runs_rightly(truth, c)))
            },
        ),
        promise("ReleasedIsStill", "between two owners nobody runs", |_, truth| {
            let is_still = |truth: &Truth| truth.clusters.iter().all(|c| c.running.is_empty());
            truth.each().all(|truth| truth.is_held() || is_still(truth))
        }),
        promise("ClosedIsStill", "a closed epoch does not run", |_, truth| {
            let is_open = |c: &Cluster| c.running.iter().all(|epoch| *epoch > c.released);
            truth.each().all(|truth| truth.clusters.iter().all(is_open))
        }),
        promise(
            "NoLoss",
            "an owner that runs has every write that was made and not declared lost",
            |_, truth| {
                let volumes = truth.clusters.iter().filter_map(|cluster| cluster.volume.as_ref());
                volumes.into_iter().all(|volume| truth.must.is_subset(volume))
            },
        ),
        promise(
            "PinsHaveEveryWrite",
            "between two owners the pinned snapshots have every write not declared lost",
            |_, truth| {
                // What goes with its namespace is needed by nobody.
                truth.is_held()
                    || truth.ends.namespace != Life::There
                    || truth.must.is_empty()
                    || truth.pinned.as_ref().is_some_and(|pinned| truth.must.is_subset(pinned))
            },
        ),
        promise(
            "PermittedToAtMostOne",
            "at most one cluster with power has a permit that a pod could start by",
            |_, truth| {
                let may_start = |c: &&Cluster| !c.is_off && c.permitted > c.released;
                truth.each().all(|truth| truth.clusters.iter().filter(may_start).count() <= 1)
            },
        ),
    ]
}

pub(super) fn rules() -> Vec<Rule<Namespaces>> {
    vec![
        Rule {
            name: "EpochOnlyGrows",
            sentence: "no epoch is used twice, and each new owner has a new one",
            allows: |_, from, to| {
                let changes_hands = to.is_held() && from.owner() != to.owner();
                // A grant that ends takes its epochs with it.
                to.grant.is_none()
                    || to.epoch() >= from.epoch()
                        && (!changes_hands || to.epoch() == from.epoch() + 1)
            },
        },
        Rule {
            name: "ReleasedNeverFalls",
            sentence: "a closed epoch stays closed, for as long as anything of the namespace is there",
            allows: |_, from, to| {
                // Once another owner has all of its data, or the namespace has ended, the old copy may
                // go, and its notes with it.
                let is_ending = from.grant.as_ref().is_none_or(|it| it.phase == Phase::Deleting);
                let is_gone = |old: &Cluster, new: &Cluster| {
                    let may_go = to.epoch() > old.released || is_ending || new.is_off;
                    new.epoch == 0 && new.running.is_empty() && may_go
                };
                let mut pairs = from.clusters.iter().zip(&to.clusters);
                pairs.all(|(old, new)| new.released >= old.released || is_gone(old, new))
            },
        },
        Rule {
            name: "ForceIsExact",
            sentence: "a ForceRelease ends only the grant that it names, by owner and epoch",
            allows: |_, from, to| {
                let fenced = to.grant.as_ref().filter(|grant| grant.phase == Phase::Fenced);
                let was = from.grant.as_ref().map(|grant| grant.phase);
                let Some(fenced) = fenced.filter(|_| was != Some(Phase::Fenced)) else {
                    return true;
                };
                let is_named = |force: &super::truth::Force| {
                    force.owner == from.owner() && force.epoch == from.epoch()
                };
                fenced.owner == from.owner() && from.forces.iter().any(is_named)
            },
        },
        Rule {
            name: "RevokedForATarget",
            sentence: "nothing is stopped for a cluster that cannot take it",
            allows: |system, from, to| {
                let phase = |truth: &Truth| truth.grant.as_ref().map(|grant| grant.phase);
                let is_revoked =
                    phase(from) == Some(Phase::Granted) && phase(to) == Some(Phase::Revoking);
                let target = to.grant.as_ref().and_then(|grant| grant.target);
                // Where the cloud is the reason, it is one only for those who have roles there.
                let has_no_role = to.grant.as_ref().is_some_and(|grant| grant.rights.is_empty());
                let takes = |target| !system.is_unfit(target) || (system.rights && has_no_role);
                !is_revoked || target.is_some_and(takes)
            },
        },
        Rule {
            name: "InPlaceStays",
            sentence: "what is left in place on a cluster is granted to no other",
            allows: |_, from, to| {
                let Some(grant) = &to.grant else { return true };
                let is_granted = to.is_held() && from.epoch() != to.epoch();
                !is_granted || grant.in_place.iter().all(|cluster| grant.owner == Some(*cluster))
            },
        },
        Rule {
            name: "RefusedRightly",
            sentence: "a ForceRelease is refused only if it names something else than there is",
            allows: |_, from, to| {
                let is_right = |force: &super::truth::Force| {
                    force.owner != from.owner() || force.epoch != from.epoch() || !from.is_held()
                };
                to.forces.iter().zip(&from.forces).all(|(to, from)| {
                    let is_new = to.outcome != from.outcome;
                    !is_new || to.outcome != ForceOutcome::Refused || is_right(to)
                })
            },
        },
        Rule {
            name: "DivergedIsMarked",
            sentence: "a copy on which something ran after it was given up is never superseded",
            allows: |_, from, to| {
                let copies = |truth: &Truth| {
                    truth.grant.as_ref().map(|grant| grant.copies.clone()).unwrap_or_default()
                };
                let after = copies(to);
                copies(from).iter().all(|(cluster, epoch, state)| {
                    let settled = (*cluster, *epoch, CopyState::Superseded);
                    *state != CopyState::Unclosed
                        || from.clusters[*cluster].ran < *epoch
                        || !after.contains(&settled)
                })
            },
        },
    ]
}

pub(super) fn reachable(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    let mut reachable = Vec::new();
    if system.moves > 0 && system.makes_snapshots() && !system.unfit && !system.replace {
        reachable.push(promise(
            "MoveEnds",
            "a namespace comes to run on another cluster",
            |_, truth| truth.epoch() > 1 && truth.is_as_desired() && truth.owner() == Some(1),
        ));
    }
    if system.moves > 1 && system.claims > 0 && !system.unfit && !system.replace {
        reachable.push(promise(
            "DesiredComesBack",
            "a namespace stays in place when people want it back, and runs again",
            |_, truth| {
                let is_in_place = |c: usize| {
                    truth.grant.as_ref().is_some_and(|grant| grant.in_place.contains(&c))
                };
                truth.epoch() == 2 && truth.runs_on(Some(0)) && is_in_place(0)
            },
        ));
    }
    if system.force && system.claims > 0 {
        reachable.push(promise(
            "DivergedIsKnown",
            "a copy that is alone in having something is marked as such",
            |_, truth| {
                let copies = truth.grant.iter().flat_map(|grant| &grant.copies);
                let mut diverged = copies.filter(|(.., state)| *state == CopyState::Diverged);
                diverged.any(|(c, ..)| truth.clusters[*c].volumes.values().any(|it| it.is_alone))
            },
        ));
    }
    if system.force {
        reachable.push(promise(
            "ForceEnds",
            "a namespace runs again after its owner was declared gone",
            |_, truth| truth.is_as_desired() && !truth.forces.is_empty(),
        ));
    }
    reachable
}

pub(super) fn goals(system: &Namespaces) -> Vec<Goal<Namespaces>> {
    let answered: Goal<Namespaces> = Goal {
        name: "ForceIsAnswered",
        sentence: "a ForceRelease is answered",
        while_true: |_, truth| {
            truth.forces.iter().any(|force| force.outcome == ForceOutcome::Pending)
        },
        then: |_, _| false,
    };
    let revoked: Goal<Namespaces> = Goal {
        name: "RevokeEnds",
        sentence: "a revocation ends",
        while_true: |system, truth| {
            let ends = system.makes_snapshots() || truth.ends.namespace == Life::Deleting;
            ends && truth.grant.as_ref().is_some_and(|grant| grant.phase == Phase::Revoking)
        },
        then: |_, truth| truth.clusters.iter().any(|cluster| cluster.is_off),
    };
    let desired: Goal<Namespaces> = Goal {
        name: "DesiredIsMet",
        sentence: "the namespace runs where people want it, if they do not change their mind",
        while_true: |_, truth| {
            let last = truth.last();
            let is_off = |c: usize| truth.clusters[c].is_off && !ends::is_let_go(truth, c);
            let is_there = last.ends.namespace == Life::There;
            let is_held_up = ends::is_awaited(last) || ends::is_owner_gone(last);
            is_there && !is_held_up && !(0..CLUSTERS).any(is_off)
        },
        then: |_, truth| truth.last().is_as_desired() || truth.may_change,
    };
    let mut goals: Vec<Goal<Namespaces>> =
        system.makes_snapshots().then_some(desired).into_iter().collect();
    goals.push(Goal {
        name: "GrantRuns",
        sentence: "a grant runs, unless it is taken back",
        while_true: |_, truth| {
            let last = truth.last();
            let granted = last.grant.as_ref().filter(|grant| grant.phase == Phase::Granted);
            let has_power = |c: usize| !truth.clusters[c].is_off;
            let is_there = last.ends.namespace == Life::There && !ends::is_owner_gone(last);
            is_there && granted.and_then(|grant| grant.owner).is_some_and(has_power)
        },
        then: |_, truth| truth.last().runs_on(truth.last().owner()),
    });
    goals.extend((system.moves > 0 || system.deletes > 0).then_some(revoked));
    goals.extend(system.force.then_some(answered));
    goals
}
