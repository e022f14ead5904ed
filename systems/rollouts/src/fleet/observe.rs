//! Objects to facts.

use super::decide::{Child, Cluster, Facts, LAST_PARTITION};
use crate::filed::{UPDATES_BY_FLEET, drained_for};
use crate::kinds::{FLEET_UPDATE, WORKLOAD_CLUSTER};
use crate::selector::is_selected;
use interlock_api::placement::WorkloadClusterStatus;
use interlock_api::placement::condition::{REACHABLE, READY};
use interlock_api::rollouts::{
    ClusterUpdateSpec, ClusterUpdateStatus, FleetUpdateSpec, FleetUpdateStatus,
};
use interlock_kernel::metadata::{is_deleting, name_of, uid_of};
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Place, Seen, View, conditions, read_part,
};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that a decision is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) fleet: Object,
    pub(super) spec: FleetUpdateSpec,
    pub(super) status: FleetUpdateStatus,
    /// Its ClusterUpdates.
    pub(super) children: Vec<Object>,
}

/// Reads what a step is about; the error says why there is nothing to decide.
pub(super) fn observe(
    subject: &str,
    view: &dyn View,
    live: &LiveReads<Nothing>,
) -> Result<(Facts, Scene), String> {
    let (namespace, name) =
        subject.split_once('/').ok_or("the subject is no namespace and name")?;
    let name = Name::within(namespace, name);
    let fleet = view.get(Place::HUB, &FLEET_UPDATE, &name);
    let fleet = fleet.ok_or("the cache shows no such FleetUpdate")?;
    let spec: FleetUpdateSpec =
        read_part(&fleet, "spec")?.ok_or_else(|| "spec is missing".to_owned())?;
    let status: FleetUpdateStatus = read_part(&fleet, "status")?.unwrap_or_default();
    let children = view.find(Place::HUB, &UPDATES_BY_FLEET, uid_of(&fleet));
    let listed = live.lists.get(&(Place::HUB, WORKLOAD_CLUSTER, None));
    let read = live.objects.get(&Address::new(Place::HUB, &FLEET_UPDATE, name));
    let read = read.and_then(Option::as_ref);
    // The clusters were read after the request, and the request is still as it was: what had ended then is not counted.
    let is_same = |it: &Object| Seen::of(it) == Seen::of(&fleet);
    let is_live = listed.map(|_| read.is_some_and(is_same));
    let clusters = match listed {
        Some(clusters) => clusters.clone(),
        None => view.list(Place::HUB, &WORKLOAD_CLUSTER, None),
    };
    let around = Around { spec: &spec, status: &status, children: &children };
    let mut clusters: Vec<Cluster> =
        clusters.iter().filter_map(|cluster| around.cluster(cluster)).collect();
    clusters.extend(around.without_cluster(&clusters));
    clusters.sort_by(|one, other| (one.partition, &one.name).cmp(&(other.partition, &other.name)));
    let names = spec.partitions.iter().map(|partition| partition.name.clone());
    let facts = Facts {
        phase: status.phase,
        is_live,
        is_cancelled: spec.cancel || is_deleting(&fleet),
        max_unavailable: spec.max_unavailable as usize,
        on_failure: spec.on_failure,
        on_unreachable: spec.on_unreachable,
        partitions: ["canary".to_owned()].into_iter().chain(names).collect(),
        clusters,
        said: without_times(&status),
    };
    Ok((facts, Scene { now: view.now(), fleet, spec, status, children }))
}

/// A status without what follows from the rest of it, and from the clock.
pub(super) fn without_times(status: &FleetUpdateStatus) -> FleetUpdateStatus {
    FleetUpdateStatus { phase_since: None, conditions: Vec::new(), ..status.clone() }
}

struct Around<'a> {
    spec: &'a FleetUpdateSpec,
    status: &'a FleetUpdateStatus,
    children: &'a [Object],
}

impl Around<'_> {
    /// A cluster that the request is for; None: it is for others.
    fn cluster(&self, object: &DynamicObject) -> Option<Cluster> {
        let name = name_of(object);
        let labels = object.metadata.labels.as_ref();
        let child = self.child(name);
        let is_wanted = is_selected(&self.spec.selector, labels) && !is_deleting(object);
        // A cluster that was chosen before stays one of the request's, whatever its labels say now.
        if !is_wanted && child == Child::None {
            return None;
        }
        let status: WorkloadClusterStatus =
            read_part(object, "status").ok().flatten().unwrap_or_default();
        let mut partitions = self.spec.partitions.iter();
        let is_canary = self.spec.canary.as_ref().is_some_and(|canary| is_selected(canary, labels));
        let partition = match is_canary {
            true => 0,
            false => partitions
                .position(|partition| is_selected(&partition.selector, labels))
                .map_or(LAST_PARTITION, |place| place + 1),
        };
        Some(Cluster {
            name: name.to_owned(),
            partition,
            is_ready: conditions::is_true(&status.conditions, READY),
            is_reachable: conditions::is_true(&status.conditions, REACHABLE),
            has_drain: self.has_drain(name, &drained_for(object)),
            child,
        })
    }

    /// Those that were chosen, and are gone since.
    fn without_cluster(&self, there: &[Cluster]) -> Vec<Cluster> {
        let of_children = self.children.iter().filter_map(|child| cluster_of(child));
        let chosen = self.status.children.iter().map(|child| child.cluster.clone());
        let mut names: Vec<String> = of_children.chain(chosen).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !there.iter().any(|cluster| cluster.name == *name));
        let gone = names.into_iter().map(|name| Cluster {
            child: self.child(&name),
            partition: LAST_PARTITION,
            is_ready: false,
            is_reachable: false,
            has_drain: false,
            name,
        });
        gone.collect()
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Object> {
        self.children.iter().filter(move |child| cluster_of(child).as_deref() == Some(name))
    }

    /// Whether a cluster is drained for the request. Where the status names the cluster and the cache does not show its
    /// ClusterUpdate, nobody can say whose a drain is: it counts.
    fn has_drain(&self, name: &str, drained_for: &[String]) -> bool {
        let uids = self.uids_of(name);
        let is_named = self.status.children.iter().any(|child| child.cluster == name);
        match uids.is_empty() {
            true => is_named && !drained_for.is_empty(),
            false => drained_for.iter().any(|uid| uids.contains(&uid.as_str())),
        }
    }

    fn uids_of<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.of(name).map(|child| uid_of(child)).collect()
    }

    fn child(&self, name: &str) -> Child {
        let chosen = self.status.children.iter().find(|child| child.cluster == name);
        // Its outcome is known: somebody may have deleted it since, or the cache does not show that it has ended.
        if let Some(child) = chosen.filter(|child| child.phase.is_terminal()) {
            return Child::Ended { phase: child.phase, reason: child.reason.clone() };
        }
        let Some(update) = self.of(name).next() else {
            return if chosen.is_some() { Child::Chosen } else { Child::None };
        };
        let status: ClusterUpdateStatus =
            read_part(update, "status").ok().flatten().unwrap_or_default();
        match status.phase.is_terminal() {
            true => Child::Ended { phase: status.phase, reason: status.reason },
            false => {
                let spec: Option<ClusterUpdateSpec> = read_part(update, "spec").ok().flatten();
                let is_cancelled = spec.is_none_or(|spec| spec.cancel) || is_deleting(update);
                let uid = uid_of(update).to_owned();
                Child::InFlight { uid, phase: status.phase, is_cancelled }
            }
        }
    }
}

fn cluster_of(child: &DynamicObject) -> Option<String> {
    child.data["spec"]["cluster"].as_str().map(str::to_owned)
}
