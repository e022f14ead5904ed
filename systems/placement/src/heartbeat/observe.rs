//! What one decision about a sign of life rests on.

use super::decide::{Cluster, Facts};
use super::{Heartbeat, VOLUME_SNAPSHOT_CLASS};
use crate::kinds::{STORAGE_CLASS, WORKLOAD_CLUSTER};
use crate::record::{name_of, uid_of};
use interlock_api::placement::{StorageClass, WorkloadClusterStatus};
use interlock_kernel::{Name, Object, Place, View, read_part};
use jiff::Timestamp;
use std::time::Duration;

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// Everything that a step sees.
pub(super) struct Scene<'a> {
    pub(super) heartbeat: &'a Heartbeat,
    pub(super) now: Timestamp,
    pub(super) cluster: Option<Object>,
    pub(super) status: WorkloadClusterStatus,
    pub(super) classes: Vec<StorageClass>,
}

impl<'a> Scene<'a> {
    /// What is seen; or, in words, what cannot be read.
    pub(super) fn of(heartbeat: &'a Heartbeat, view: &dyn View) -> Result<Scene<'a>, String> {
        let name = Name::cluster_wide(&heartbeat.cluster.name);
        let cluster = view.get(Place::HUB, &WORKLOAD_CLUSTER, &name);
        let status = match &cluster {
            Some(cluster) => read_part(cluster, "status"),
            None => Ok(None),
        };
        let status = status.map_err(|flaw| format!("the cluster cannot be read: {flaw}"))?;
        let status: WorkloadClusterStatus = status.unwrap_or_default();
        let classes = classes(heartbeat, view);
        Ok(Scene { heartbeat, now: view.now(), cluster, status, classes })
    }

    pub(super) fn facts(&self) -> Facts {
        let cluster = match &self.cluster {
            None => Cluster::Unknown,
            Some(cluster) if uid_of(cluster) == self.heartbeat.cluster.uid => Cluster::Ours,
            Some(_) => Cluster::Replaced,
        };
        let counted = self.status.heartbeat.as_ref().and_then(|beat| beat.sent_at.as_ref());
        let ago = counted.and_then(|at| Duration::try_from(self.now.duration_since(at.0)).ok());
        Facts {
            cluster,
            is_introduced: self.status.syncer.as_ref() == Some(&self.heartbeat.syncer)
                && self.is_same_classes(),
            counted_ago: ago,
            period: self.heartbeat.period,
        }
    }

    /// How much room is free is somebody else's to say.
    pub(super) fn is_same_classes(&self) -> bool {
        let said = |class: &StorageClass| StorageClass { free_bytes: None, ..class.clone() };
        self.status.storage_classes.iter().map(said).eq(self.classes.iter().map(said))
    }
}

fn classes(heartbeat: &Heartbeat, view: &dyn View) -> Vec<StorageClass> {
    let snapshots = match heartbeat.sees_snapshot_classes {
        true => view.list(Place::CLUSTER, &VOLUME_SNAPSHOT_CLASS, None),
        false => Vec::new(),
    };
    let classes = view.list(Place::CLUSTER, &STORAGE_CLASS, None);
    let class = |class: &Object| {
        let provisioner = class.data["provisioner"].as_str().unwrap_or_default();
        let annotations = class.metadata.annotations.as_ref();
        let is_default = annotations.and_then(|annotations| annotations.get(IS_DEFAULT));
        StorageClass {
            name: name_of(class).to_owned(),
            provisioner: provisioner.to_owned(),
            is_default: is_default.is_some_and(|value| value == "true"),
            can_snapshot: snapshots.iter().any(|known| known.data["driver"] == provisioner),
            free_bytes: None,
        }
    };
    classes.iter().map(class).collect()
}
