//! Which kinds of objects are carried down, and in which order.

use crate::kinds::{
    CLAIM, CONFIG_MAP, DEPLOYMENT, POD, SECRET, SERVICE, SERVICE_ACCOUNT, STATEFUL_SET,
};
use interlock_kernel::{GroupVersion, Kind};

/// A job.
pub const JOB: Kind = Kind::namespaced(GroupVersion::new("batch", "v1"), "Job", "jobs");
/// What a deployment makes its pods with.
pub const REPLICA_SET: Kind =
    Kind::namespaced(GroupVersion::new("apps", "v1"), "ReplicaSet", "replicasets");
/// A way in from outside.
pub const INGRESS: Kind =
    Kind::namespaced(GroupVersion::new("networking.k8s.io", "v1"), "Ingress", "ingresses");

/// Kinds that make pods, besides those that are carried down anyway.
const FURTHER_MAKERS: [(&str, &str); 4] = [
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("batch", "CronJob"),
    ("", "ReplicationController"),
];

/// Kinds that each cluster makes for itself, or that have a way of their own.
const NEVER: [(&str, &str); 8] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("", "Namespace"),
    ("", "PersistentVolumeClaim"),
    ("coordination.k8s.io", "Lease"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"),
];

/// The kinds that one syncer carries.
#[derive(Debug, Clone)]
pub struct Kinds {
    config: Vec<Kind>,
    claim: Kind,
    workloads: Vec<Kind>,
}

impl Kinds {
    /// The usual ones, and further ones. Those that must never be carried are left out.
    pub fn with(further: Vec<Kind>) -> Kinds {
        let mut config = vec![SECRET, CONFIG_MAP, SERVICE_ACCOUNT, SERVICE, INGRESS];
        let mut workloads = vec![DEPLOYMENT, STATEFUL_SET, JOB];
        for kind in further {
            let is_known = |known: &Kind| known.group == kind.group && known.kind == kind.kind;
            if !kind.is_namespaced || is_known(&POD) || is_never(&kind) {
                continue;
            }
            let known = config.iter().chain(&workloads).any(is_known);
            match (known, is_maker(&kind)) {
                (true, _) => {}
                (false, true) => workloads.push(kind),
                (false, false) => config.push(kind),
            }
        }
        workloads.push(POD);
        Kinds { config, claim: CLAIM, workloads }
    }

    /// What is applied, in the order in which it is: what others need comes first.
    pub fn applied(&self) -> impl DoubleEndedIterator<Item = &Kind> {
        self.config.iter().chain(&self.workloads)
    }

    /// The same and claims, which have a way of their own down to the cluster.
    pub fn carried(&self) -> impl DoubleEndedIterator<Item = &Kind> {
        self.config.iter().chain([&self.claim]).chain(&self.workloads)
    }

    /// What runs on a cluster, in the order in which it is stopped: first what makes pods.
    pub fn running(&self) -> Vec<Kind> {
        let mut running: Vec<Kind> =
            self.workloads.iter().filter(|k| **k != POD).cloned().collect();
        if !running.contains(&REPLICA_SET) {
            running.push(REPLICA_SET);
        }
        running.push(POD);
        running
    }

    /// Whether objects of this kind run something.
    pub fn is_workload(&self, kind: &Kind) -> bool {
        self.workloads.contains(kind)
    }

    /// Whether an object of this group and kind is carried down itself.
    pub fn carries(&self, group: &str, kind: &str) -> bool {
        self.applied().any(|known| known.group == group && known.kind == kind)
    }
}

fn is_maker(kind: &Kind) -> bool {
    FURTHER_MAKERS.iter().any(|(group, name)| kind.group == *group && kind.kind == *name)
}

fn is_never(kind: &Kind) -> bool {
    kind.group == interlock_api::GROUP
        || NEVER.iter().any(|(group, name)| kind.group == *group && kind.kind == *name)
}
