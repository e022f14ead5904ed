//! What placement promises of what goes: namespaces and clusters that are deleted, come again under
//! their names, or are stripped and given up by people.

use super::Namespaces;
use super::promises::promise;
use super::truth::{Life, Truth};
use interlock_api::placement::CopyState;
use interlock_world::{CLUSTERS, Goal, Promise};

/// Whether a cluster is gone from the hub, and nobody but the hub let it go.
pub(super) fn is_let_go(truth: &Truth, cluster: usize) -> bool {
    truth.ends.clusters[cluster] == Life::Gone && !truth.ends.stripped[cluster]
}

/// Whether the cluster that people want is not there to stay, or is needed empty.
pub(super) fn is_awaited(truth: &Truth) -> bool {
    let takes_it = |desired: usize| {
        truth.ends.clusters[desired] == Life::There && !truth.drains[desired].is_asked_for()
    };
    truth.desired.is_none_or(|desired| !takes_it(desired)) && truth.ends.namespace == Life::There
}

/// Whether the owner's cluster is not at the hub any more: only a person can say that it has stopped.
pub(super) fn is_owner_gone(truth: &Truth) -> bool {
    let owner = truth.owner().filter(|_| truth.is_held());
    owner.is_some_and(|owner| truth.ends.clusters[owner] == Life::Gone)
}

/// Whether nothing is left of a namespace that was deleted, or a person has to say what happens to it.
pub(super) fn are_over(truth: &Truth) -> bool {
    let is_gone = truth.ends.namespace == Life::Gone && truth.grant.is_none();
    // Nobody else has the data of a cluster that was declared gone and had made no snapshot.
    let is_data_gone =
        |truth: &Truth| !truth.is_held() && !truth.lost.is_empty() && truth.pinned.is_none();
    let is_over =
        |truth: &Truth| waits_for_a_person(truth) || is_owner_gone(truth) || is_data_gone(truth);
    is_gone && truth.again.is_none() || truth.each().any(is_over)
}

/// Whether the grant names data that may be nowhere else, or a cluster that nobody can ask.
fn waits_for_a_person(truth: &Truth) -> bool {
    let is_alone = |state: CopyState| matches!(state, CopyState::Diverged | CopyState::Unclosed);
    truth.ends.namespace != Life::There
        && truth.grant.as_ref().is_some_and(|grant| {
            grant.copies.iter().any(|(c, _, state)| is_alone(*state) || truth.clusters[*c].is_off)
        })
}

/// Whether some grant has to do with a cluster.
fn has_something(truth: &Truth, cluster: usize) -> bool {
    truth.each().any(|truth| truth.names(cluster))
}

pub(super) fn promises(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    let mut promises = vec![
        promise(
            "HeldIsFound",
            "a cluster that holds an object at the hub holds its namespace too, by which it is found",
            |_, truth| truth.each().all(|truth| !truth.is_held_unseen),
        ),
        promise(
            "CopiesAreListed",
            "the grant lists every cluster that has anything of its namespace, unless a person gave that up",
            |_, truth| {
                truth.each().all(|truth| {
                    let is_listed = |c: usize| truth.names(c) || truth.ends.forgotten[c];
                    (0..CLUSTERS).all(|c| !truth.clusters[c].is_here || is_listed(c))
                })
            },
        ),
    ];
    if !system.has_ends() {
        return promises;
    }
    promises.extend([
        promise(
            "NamespaceStays",
            "a namespace is at the hub while a cluster has anything of it, unless a person said \
             otherwise",
            |_, truth| {
                truth.each().all(|truth| {
                    let is_excused = |c: usize| truth.ends.is_stripped || truth.ends.forgotten[c];
                    let has_it = |c: usize| truth.clusters[c].is_here && !is_excused(c);
                    truth.ends.namespace != Life::Gone || !(0..CLUSTERS).any(has_it)
                })
            },
        ),
        promise(
            "ClusterStays",
            "a cluster is at the hub while it has a namespace or data of one, unless a person said \
             otherwise",
            |_, truth| (0..CLUSTERS).all(|c| !is_let_go(truth, c) || !has_something(truth, c)),
        ),
        promise(
            "OwnersCopyStays",
            "the copy of an owner is not forgotten, whoever asks for it",
            |_, truth| {
                truth.each().all(|truth| {
                    let held = truth.grant.as_ref().filter(|grant| grant.phase.is_held());
                    held.is_none_or(|grant| {
                        let is_its = |(c, _, state): &(usize, i64, CopyState)| {
                            Some(*c) == grant.owner && *state == CopyState::Live
                        };
                        grant.copies.iter().any(is_its)
                    })
                })
            },
        ),
        promise(
            "NothingInherited",
            "what is on a cluster for a namespace is of that one, not of another of its name",
            |_, truth| truth.each().all(|truth| truth.clusters.iter().all(|c| !c.inherits)),
        ),
    ]);
    promises
}

pub(super) fn reachable(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    let mut reachable = Vec::new();
    if system.deletes == 1 {
        reachable.push(promise(
            "NamespaceIsDeleted",
            "a namespace that was granted is deleted, and nothing is left of it",
            |_, truth| {
                let is_here = truth.clusters.iter().any(|cluster| cluster.is_here);
                are_over(truth) && !is_here && !truth.ends.is_stripped
            },
        ));
    }
    if system.deletes == 2 {
        reachable.push(promise(
            "MadeAgain",
            "a namespace that was made again under its name runs, and the first is all gone",
            |_, truth| {
                let runs = truth.again.as_ref().is_some_and(|again| again.is_as_desired());
                runs && truth.grant.is_none() && !truth.ends.is_stripped
            },
        ));
    }
    // A move alone leaves a copy behind, which keeps its cluster until it may go.
    let is_emptied = system.deletes > 0 || system.moves > 0 && (system.later || system.forget);
    if system.retire > 0 && is_emptied {
        reachable.push(promise(
            "ClusterTerminating",
            "a cluster that has nothing any more is let go",
            |_, truth| {
                let went = (0..CLUSTERS).any(|c| is_let_go(truth, c));
                went && truth.epoch() > 0
            },
        ));
    }
    reachable
}

fn is_cluster_empty(truth: &Truth, cluster: usize) -> bool {
    truth.ends.clusters[cluster] == Life::Deleting && !has_something(truth, cluster)
}

fn has_cluster_gone(truth: &Truth, cluster: usize) -> bool {
    truth.ends.clusters[cluster] == Life::Gone
}

pub(super) fn goals(system: &Namespaces) -> Vec<Goal<Namespaces>> {
    let mut goals: Vec<Goal<Namespaces>> = Vec::new();
    if system.deletes > 0 {
        goals.push(Goal {
            name: "DeletedGoes",
            sentence: "a namespace that is deleted goes, unless data of it waits for a person",
            while_true: |_, truth| {
                truth.ends.namespace == Life::Deleting && !waits_for_a_person(truth)
            },
            then: |_, _| false,
        });
        goals.push(Goal {
            name: "OldGrantEnds",
            sentence: "the grant of a namespace that is gone ends, unless data waits for a person",
            while_true: |_, truth| {
                let is_gone = truth.ends.namespace == Life::Gone;
                is_gone && truth.grant.is_some() && !waits_for_a_person(truth)
            },
            then: |_, _| false,
        });
    }
    if system.retire > 0 {
        goals.push(Goal {
            name: "DeletedClusterTerminating",
            sentence: "a cluster that is deleted goes, once it has no namespace and no data",
            while_true: |_, truth| is_cluster_empty(truth, 0),
            then: |_, truth| has_cluster_gone(truth, 0),
        });
    }
    if system.retire > 1 {
        goals.push(Goal {
            name: "SecondClusterTerminating",
            sentence: "so does the second",
            while_true: |_, truth| is_cluster_empty(truth, 1),
            then: |_, truth| has_cluster_gone(truth, 1),
        });
    }
    goals
}
