//! What placement promises of what moves leave behind: volumes are kept until their successors settled,
//! or for a person; and labels follow the grant.

use super::Namespaces;
use super::truth::{Life, Truth, Volume};
use interlock_api::placement::{CopyState, Phase};
use interlock_world::{CLUSTERS, Goal, Promise, Rule};

/// The seed's own, as its author meant them.
pub(super) fn promises(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    if !system.has_labels() {
        return Vec::new();
    }
    vec![
        Promise {
            name: "Inv_NSAtMostOneCluster",
            sentence: "the namespace is assigned to at most one cluster",
            holds: |_, truth| truth.labelled[0] <= 1,
        },
        Promise {
            name: "Inv_PVCAtMostOneCluster",
            sentence: "the claim is assigned to at most one cluster",
            holds: |_, truth| truth.labelled[1] <= 1,
        },
    ]
}

pub(super) fn rule() -> Rule<Namespaces> {
    Rule {
        name: "VolumesOutliveMoves",
        sentence: "a volume is deleted only after a later epoch has settled, or with its \
            namespace, and never if it is alone in having something; unless a person gave it up",
        allows: |_, from, to| {
            let has_ended = from.grant.as_ref().is_none_or(|it| it.phase == Phase::Deleting);
            let is_ending = has_ended || from.ends.namespace == Life::Deleting;
            let may_go =
                |volume: &Volume| is_ending || volume.epoch < from.settled && !volume.is_alone;
            (0..CLUSTERS).all(|c| {
                let left = &to.clusters[c].volumes;
                let mut gone =
                    from.clusters[c].volumes.iter().filter(|(name, _)| !left.contains_key(*name));
                let is_given_up = from.ends.forgotten[c] || to.clusters[c].is_off;
                gone.all(|(_, volume)| is_given_up || may_go(volume))
            })
        },
    }
}

/// The copies that a cluster has which is not the owner.
fn copies(truth: &Truth, cluster: usize) -> Vec<CopyState> {
    let granted = truth.grant.as_ref().filter(|grant| grant.phase == Phase::Granted);
    let others = granted.filter(|grant| grant.owner != Some(cluster));
    let copies = others.map(|grant| grant.copies.clone()).unwrap_or_default();
    let own = copies.into_iter().filter(|(place, ..)| *place == cluster);
    own.map(|(.., state)| state).collect()
}

fn has_settled(truth: &Truth) -> bool {
    truth.epoch() > 0 && truth.settled == truth.epoch()
}

fn is_outlived(truth: &Truth, cluster: usize) -> bool {
    let copies = copies(truth, cluster);
    has_settled(truth)
        && !copies.is_empty()
        && copies.iter().all(|state| *state == CopyState::Superseded)
}

pub(super) fn reachable(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    let mut reachable: Vec<Promise<Namespaces>> = Vec::new();
    if system.later && system.moves > 0 && !system.unfit {
        reachable.push(Promise {
            name: "OldCopiesGoInTime",
            sentence: "nothing is left where a namespace was before",
            holds: |_, truth| {
                let before = &truth.clusters[0];
                let is_listed = truth.names(0);
                has_settled(truth)
                    && truth.owner() == Some(1)
                    && !before.is_here
                    && !is_listed
                    && before.volumes.is_empty()
            },
        });
    }
    if system.later && system.force && system.claims > 0 {
        reachable.push(Promise {
            name: "DivergedStays",
            sentence: "what is alone in having something is there after its successor has settled",
            holds: |_, truth| {
                let mut volumes = truth.clusters.iter().flat_map(|c| c.volumes.values());
                volumes.any(|volume| volume.is_alone && volume.epoch < truth.settled)
            },
        });
    }
    reachable
}

pub(super) fn goals(system: &Namespaces) -> Vec<Goal<Namespaces>> {
    let mut goals: Vec<Goal<Namespaces>> = Vec::new();
    if system.later && system.moves > 0 {
        goals.push(Goal {
            name: "OldCopiesGo",
            sentence: "a superseded copy whose successor has settled goes",
            while_true: |_, truth| is_outlived(truth, 0),
            then: |_, _| false,
        });
    }
    if system.has_labels() {
        goals.push(Goal {
            name: "LabelsFollow",
            sentence: "in the end the labels say what the grant says",
            while_true: |_, truth| !truth.are_labels_right,
            then: |_, truth| truth.clusters.iter().any(|cluster| cluster.is_off),
        });
    }
    goals
}
