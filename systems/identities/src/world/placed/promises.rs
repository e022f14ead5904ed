//! What is promised.

use super::Placed;
use super::truth::{Truth, host};
use interlock_api::placement::{Phase, RightsState};
use interlock_world::{CLUSTERS, Goal, Promise};

/// What must hold in every state.
pub(super) fn promises() -> Vec<Promise<Placed>> {
    vec![
        Promise {
            name: "RightsFollowTheGrant",
            sentence: "from the permit of an epoch until its release, the role trusts its owner, and nobody else",
            holds: |system, truth| truth.of_rights(system).follow_the_grant(),
        },
        Promise {
            name: "ReadyIsTrue",
            sentence: "rights that are said to be ready for the present epoch are",
            holds: |system, truth| truth.of_rights(system).are_ready_if_said(),
        },
        Promise {
            name: "FencedHasNoRights",
            sentence: "where a forced epoch is said to have no rights, each session of it is denied",
            holds: |system, truth| truth.of_rights(system).fenced_have_none(),
        },
        Promise {
            name: "OwnerNotDenied",
            sentence: "no fence denies a session of the present owner",
            holds: |system, truth| truth.of_rights(system).owner_is_not_denied(),
        },
        Promise {
            name: "OneIssuer",
            sentence: "a role admits the owner of the epoch that its trust names, and no other cluster",
            holds: |system, truth| {
                truth.admits.iter().all(|(epoch, issuer)| {
                    let owner = system.owner(*epoch);
                    let is_its = *issuer == host(system, *epoch) || *issuer == truth.issuers[owner];
                    let mut others = (0..CLUSTERS).filter(|it| *it != owner);
                    is_its && others.all(|it| truth.issuers[it] != *issuer)
                })
            },
        },
        Promise {
            name: "OneRole",
            sentence: "a Role has one cloud role, wherever its namespace runs",
            holds: |_, truth| truth.made.len() <= 1,
        },
        Promise {
            name: "ListedFirst",
            sentence: "nothing is made in the cloud for a Role that the Grant does not list",
            holds: |_, truth| {
                let is_made = !truth.made.is_empty() || truth.is_creating;
                !is_made || !truth.rights.is_empty()
            },
        },
        Promise {
            name: "GoneIsClean",
            sentence: "when a Role is gone, nothing of it is in the cloud, and nothing can still land",
            holds: |_, truth| truth.is_own && (truth.role.is_some() || !truth.is_creating),
        },
        Promise {
            name: "NoProviderIsLeft",
            sentence: "when a cluster is gone, its OIDC provider is gone, and nothing can still land; and it is not gone before",
            holds: |_, truth| {
                let is_held = |uid: &String| {
                    truth.clusters.iter().any(|(of, is_held, _)| of == uid && *is_held)
                };
                truth.provided.iter().all(is_held)
            },
        },
        Promise {
            name: "GoneIsUnlisted",
            sentence: "when a Role is gone, the Grant does not list it; only a second process may do so for a while",
            holds: |system, truth| {
                let is_listed = truth.role.is_none() && !truth.rights.is_empty();
                system.size.processes > 1 || !is_listed
            },
        },
    ]
}

/// What must be possible.
pub(super) fn reachable(system: &Placed) -> Vec<Promise<Placed>> {
    let mut all: Vec<Promise<Placed>> = Vec::new();
    if system.size.managed == 1 {
        all.push(Promise {
            name: "IsProvided",
            sentence: "the cloud knows the issuer of the cluster",
            holds: |_, truth| truth.clusters.iter().any(|(_, _, is_ready)| *is_ready),
        });
        all.push(Promise {
            name: "ClusterIsGone",
            sentence: "the cluster is gone",
            holds: |_, truth| truth.clusters.is_empty(),
        });
        return all;
    }
    if system.size.shared == 0 {
        all.push(Promise {
            name: "LastRuns",
            sentence: "the owner of the last epoch runs",
            holds: |system, truth| {
                let is_last = truth.epoch == system.size.epochs as i64;
                is_last && truth.running.contains(&truth.epoch)
            },
        });
    }
    if system.size.forced > 0 && system.size.epochs > 1 {
        all.push(Promise {
            name: "IsFenced",
            sentence: "the sessions of a forced owner are denied",
            holds: |system: &Placed, truth: &Truth| {
                let is_denied = |(_, last): &(i64, i64)| truth.denies(*last);
                let sessions = truth.sessions.get(&truth.fenced_epoch);
                truth.of_rights(system).claimed() == truth.fenced_epoch
                    && sessions.is_some_and(is_denied)
            },
        });
    }
    if system.size.deletes == 1 {
        all.push(Promise {
            name: "IsDeleted",
            sentence: "the Role is gone",
            holds: |_, truth| truth.role.is_none(),
        });
    }
    all
}

/// What must happen in the end.
pub(super) fn goals(system: &Placed) -> Vec<Goal<Placed>> {
    if system.size.managed == 1 {
        return vec![Goal {
            name: "Provides",
            sentence: "the issuer of a cluster is ready in the end, or the cluster is gone",
            while_true: |_, truth| truth.clusters.iter().any(|(_, _, is_ready)| !is_ready),
            then: |_, truth| truth.is_out_of_time,
        }];
    }
    let mut goals = vec![Goal {
        name: "GrantRuns",
        sentence: "a granted epoch gets its rights and runs",
        while_true: |system: &Placed, truth: &Truth| {
            let runs = truth.running[system.owner(truth.epoch)] == truth.epoch;
            truth.phase == Phase::Granted && truth.is_declared() && !runs
        },
        then: |_, truth| truth.is_out_of_time,
    }];
    // A promise about what never happens would be empty.
    if system.size.forced > 0 && system.size.epochs > 1 {
        goals.push(Goal {
            name: "ForceEnds",
            sentence: "a forced release ends the rights of the old owner",
            while_true: |_, truth| {
                let is_known = truth.rights.contains(&(truth.epoch, RightsState::Fenced));
                truth.phase == Phase::Fenced && truth.is_declared() && !is_known
            },
            then: |_, truth| truth.is_out_of_time,
        });
    }
    if system.size.deletes == 1 {
        goals.push(Goal {
            name: "Deletes",
            sentence: "a Role that is deleted is gone in the end",
            while_true: |_, truth| truth.role == Some(true),
            then: |_, truth| truth.is_out_of_time,
        });
    }
    // One process alone lists nothing that is gone.
    if system.size.deletes == 1 && system.size.processes > 1 && system.size.flights > 0 {
        goals.push(Goal {
            name: "Unlists",
            sentence: "a Role that is gone is not listed in the end",
            while_true: |_, truth| truth.role.is_none() && !truth.rights.is_empty(),
            then: |_, _| false,
        });
    }
    goals
}
