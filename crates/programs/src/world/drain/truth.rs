//! What is true of namespaces, clusters and their updates, in the words of the promises.

use super::ends::{decided, said};
use super::{CLUSTER_NAMES, CLUSTER_UIDS, Machine, SPACES, cluster, grant, request};
use interlock_api::placement::{GrantStatus, Phase};
use interlock_api::rollouts::{ClusterUpdateStatus, UpdatePhase};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Name, read_part};
use interlock_placement::kinds::{GRANT, WORKLOAD_CLUSTER};
use interlock_rollouts::kinds::CLUSTER_UPDATE;
use interlock_world::{CLUSTERS, Scene, System};
use serde_json::Value;
use std::collections::BTreeSet;

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    spaces: Vec<Space>,
    pub(super) clusters: [Cluster; CLUSTERS],
}

/// A placed namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Space {
    phase: Phase,
    owner: Option<usize>,
    epoch: i64,
    /// The clusters on which it runs.
    runs: BTreeSet<usize>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    /// Who asks for it to be drained.
    asked: BTreeSet<String>,
    /// To whom it says that it is drained.
    told: BTreeSet<String>,
    pub(super) update: Option<Update>,
}

/// The update of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Update {
    /// What the record says of it; None: it has no number yet.
    entry: Option<UpdatePhase>,
    /// What it says itself.
    shown: UpdatePhase,
    /// Whether the agent has found nothing wrong with it.
    pub(super) is_checked: bool,
    is_in_flight: bool,
}

impl Space {
    /// Whether its owner runs it, and keeps it.
    fn is_settled(&self) -> bool {
        let owner = self.owner.filter(|_| self.phase == Phase::Granted);
        owner.is_some_and(|owner| self.runs.contains(&owner))
    }

    /// Whether a cluster has it, or may start it.
    fn is_on(&self, c: usize) -> bool {
        self.runs.contains(&c) || self.phase.is_held() && self.owner == Some(c)
    }
}

impl Cluster {
    /// Whether somebody relies on it to be empty.
    fn is_drained(&self) -> bool {
        !self.asked.is_disjoint(&self.told)
    }

    /// Whether its update has begun and has not ended.
    fn is_updated(&self) -> bool {
        self.update.as_ref().is_some_and(|update| update.is_in_flight)
    }
}

impl Update {
    /// Whether it has an outcome, and says so.
    fn is_over(&self) -> bool {
        self.shown.is_terminal() && self.entry.is_none_or(UpdatePhase::is_terminal)
    }
}

impl Truth {
    /// With so many placed namespaces.
    pub(in crate::world) fn read<S: System<Machine = Machine>>(
        scene: &Scene<'_, S>,
        spaces: usize,
    ) -> Truth {
        Truth {
            spaces: (0..spaces).map(|space| space_of(scene, space)).collect(),
            clusters: std::array::from_fn(|c| cluster_of(scene, c)),
        }
    }

    pub(in crate::world) fn is_empty(&self, c: usize) -> bool {
        !self.spaces.iter().any(|space| space.is_on(c))
    }

    pub(in crate::world) fn is_drained(&self, c: usize) -> bool {
        self.clusters[c].is_drained()
    }

    /// Whether a cluster says to this one who asked that it is drained.
    pub(in crate::world) fn is_drained_for(&self, c: usize, requester: &str) -> bool {
        let Cluster { asked, told, .. } = &self.clusters[c];
        asked.contains(requester) && told.contains(requester)
    }

    /// Whether somebody needs a cluster empty.
    pub(in crate::world) fn is_asked(&self, c: usize) -> bool {
        !self.clusters[c].asked.is_empty()
    }

    pub(in crate::world) fn is_updated(&self, c: usize) -> bool {
        self.clusters[c].is_updated()
    }

    pub(in crate::world) fn all_run(&self) -> bool {
        self.spaces.iter().all(Space::is_settled)
    }

    pub(in crate::world) fn no_update_waits(&self) -> bool {
        self.updates().all(Update::is_over)
    }

    pub(in crate::world) fn nobody_drains(&self) -> bool {
        self.clusters.iter().all(|cluster| cluster.asked.is_empty())
    }

    /// Whether each cluster is to be drained, and has a namespace that no other one takes.
    pub(in crate::world) fn is_stuck(&self) -> bool {
        let has_one =
            |c: usize| self.spaces.iter().any(|space| space.is_settled() && space.owner == Some(c));
        (0..CLUSTERS).all(|c| self.is_asked(c) && has_one(c))
    }

    /// Whether an update waited too long.
    pub(in crate::world) fn has_one_failed(&self) -> bool {
        self.updates().any(|update| update.entry == Some(UpdatePhase::Failed))
    }

    fn updates(&self) -> impl Iterator<Item = &Update> {
        self.clusters.iter().filter_map(|cluster| cluster.update.as_ref())
    }

    pub(in crate::world) fn show(&self) -> Vec<(&'static str, String)> {
        let mut shown = Vec::new();
        for (name, space) in SPACES.into_iter().zip(&self.spaces) {
            let owner = space.owner.map_or("none", |c| CLUSTER_NAMES[c]);
            let runs: Vec<&str> = space.runs.iter().map(|c| CLUSTER_NAMES[*c]).collect();
            let said = format!(
                "{}, owner {owner}, epoch {}, runs on {}",
                space.phase,
                space.epoch,
                if runs.is_empty() { "none".to_owned() } else { runs.join(", ") },
            );
            shown.push((name, said));
        }
        for (name, cluster) in CLUSTER_NAMES.into_iter().zip(&self.clusters) {
            let update = match &cluster.update {
                None => "none".to_owned(),
                Some(update) => match update.entry {
                    None => "no number".to_owned(),
                    Some(phase) => format!("{phase} (shows {})", update.shown),
                },
            };
            let said =
                format!("update {update}, drains {:?}, drained {:?}", cluster.asked, cluster.told);
            shown.push((name, said));
        }
        shown
    }
}

fn space_of<S: System<Machine = Machine>>(scene: &Scene<'_, S>, space: usize) -> Space {
    let name = grant(space);
    let found = scene.hub().get(&GRANT, &Name::cluster_wide(&name));
    let status = found.and_then(|grant| read_part::<GrantStatus>(&grant, "status").ok().flatten());
    let status = status.unwrap_or_default();
    let uid = status.owner.map(|owner| owner.uid);
    let owner = uid.and_then(|uid| CLUSTER_UIDS.iter().position(|known| *known == uid));
    let runs = (0..CLUSTERS).filter(|c| scene.machines[*c].runs.contains(&name)).collect();
    Space { phase: status.phase, owner, epoch: status.epoch, runs }
}

fn cluster_of<S: System>(scene: &Scene<'_, S>, c: usize) -> Cluster {
    let part = |part| scene.hub().part(&WORKLOAD_CLUSTER, &cluster(c), part);
    let (spec, status) = (part("spec"), part("status"));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let asked = spec["drains"].as_array().into_iter().flatten();
    let told = status["drained"].as_array().into_iter().flatten();
    Cluster {
        asked: asked.filter_map(|drain| text(&drain["requester"])).collect(),
        told: told.filter_map(text).collect(),
        update: update_of(scene, c),
    }
}

fn update_of<S: System>(scene: &Scene<'_, S>, c: usize) -> Option<Update> {
    let found = scene.hub().get(&CLUSTER_UPDATE, &request(c))?;
    let uid = uid_of(&found);
    let (decided, said) = (decided(scene, c), said(scene, c));
    let shown = read_part::<ClusterUpdateStatus>(&found, "status").ok().flatten();
    Some(Update {
        entry: decided.request(uid).map(|entry| entry.phase),
        shown: shown.unwrap_or_default().phase,
        is_checked: said.preflight.is_some_and(|answer| answer.uid == uid),
        is_in_flight: decided.active.is_some_and(|active| active.uid == uid),
    })
}
