//! What is true, read off the objects.

use super::{Fleets, request};
use crate::filed::drained_for;
use crate::kinds::{CLUSTER_UPDATE, FLEET_UPDATE, WORKLOAD_CLUSTER};
use interlock_api::placement::WorkloadClusterStatus;
use interlock_api::placement::condition::READY;
use interlock_api::rollouts::{
    ClusterUpdateStatus, FleetPhase, FleetUpdateSpec, FleetUpdateStatus, OnFailure, UpdatePhase,
};
use interlock_kernel::{Name, Object, conditions, read_part};
use interlock_world::{Objects, Scene};

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// How far the request is, as it says itself.
    pub(super) phase: FleetPhase,
    pub(super) is_cancelled: bool,
    pub(super) on_failure: OnFailure,
    /// The clusters, by name; the last one is the canary.
    pub(super) clusters: Vec<Cluster>,
}

/// A cluster of the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    pub(super) is_ready: bool,
    /// Whether it is to be drained for a ClusterUpdate.
    pub(super) has_drain: bool,
    /// Whether the status of the request names it as one in flight.
    pub(super) is_chosen: bool,
    /// The phases of its ClusterUpdates.
    pub(super) updates: Vec<UpdatePhase>,
}

impl Cluster {
    pub(super) fn is_in_flight(&self) -> bool {
        self.updates.iter().any(|phase| !phase.is_terminal())
    }

    /// Whether its turn is over.
    pub(super) fn has_ended(&self) -> bool {
        !self.updates.is_empty() && !self.is_in_flight()
    }

    /// Whether its turn is over, and ended well.
    pub(super) fn is_well(&self) -> bool {
        self.has_ended() && self.updates.iter().all(|phase| *phase == UpdatePhase::Succeeded)
    }

    /// Whether it counts against the most that may be unavailable for the request itself.
    pub(super) fn is_out(&self) -> bool {
        let is_about_to = self.is_chosen && self.updates.is_empty();
        self.is_in_flight() || self.has_drain || is_about_to
    }
}

impl Truth {
    pub(super) fn of(system: &Fleets, scene: &Scene<'_, Fleets>) -> Truth {
        let hub = scene.hub();
        let found = hub.get(&FLEET_UPDATE, &request());
        let spec: Option<FleetUpdateSpec> = found.as_ref().and_then(|it| read(it, "spec"));
        let status: Option<FleetUpdateStatus> = found.as_ref().and_then(|it| read(it, "status"));
        let status = status.unwrap_or_default();
        let of_cluster = |name: &&str| cluster(hub, name, &status);
        Truth {
            phase: status.phase,
            is_cancelled: spec.as_ref().is_some_and(|spec| spec.cancel),
            on_failure: spec.map(|spec| spec.on_failure).unwrap_or_default(),
            clusters: system.names().iter().map(of_cluster).collect(),
        }
    }

    /// The clusters in flight.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.iter().filter(|cluster| cluster.is_in_flight())
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        let words = |cluster: &Cluster| {
            let phases: Vec<String> = cluster.updates.iter().map(ToString::to_string).collect();
            let mut words = if phases.is_empty() { "-".to_owned() } else { phases.join("+") };
            let said = [
                (cluster.is_chosen, " (chosen)"),
                (cluster.has_drain, " (drained)"),
                (!cluster.is_ready, " (not Ready)"),
            ];
            words.extend(said.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word));
            words
        };
        let clusters: Vec<String> = self.clusters.iter().map(words).collect();
        vec![("request", self.phase.to_string()), ("clusters", clusters.join(", "))]
    }
}

/// A part of an object; None: it is not there, or cannot be read.
fn read<T: serde::de::DeserializeOwned>(object: &Object, part: &str) -> Option<T> {
    read_part(object, part).ok().flatten()
}

/// The name of the cluster that a ClusterUpdate is for.
pub(super) fn cluster_of(update: &Object) -> &str {
    update.data["spec"]["cluster"].as_str().unwrap_or_default()
}

/// How far a ClusterUpdate is.
pub(super) fn phase_of(update: &Object) -> UpdatePhase {
    read::<ClusterUpdateStatus>(update, "status").unwrap_or_default().phase
}

fn cluster(hub: Objects<'_>, name: &str, said: &FleetUpdateStatus) -> Cluster {
    let found = hub.get(&WORKLOAD_CLUSTER, &Name::cluster_wide(name));
    let status: Option<WorkloadClusterStatus> = found.as_ref().and_then(|it| read(it, "status"));
    let mut chosen = said.children.iter().filter(|child| !child.phase.is_terminal());
    let updates = hub.list(&CLUSTER_UPDATE);
    let own = updates.iter().filter(|update| cluster_of(update) == name);
    Cluster {
        is_ready: status.is_some_and(|status| conditions::is_true(&status.conditions, READY)),
        has_drain: found.is_some_and(|it| !drained_for(&it).is_empty()),
        is_chosen: chosen.any(|child| child.cluster == name),
        updates: own.map(phase_of).collect(),
    }
}
