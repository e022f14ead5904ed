//! What one decision about a heartbeat rests on.

use super::decide::{Facts, Issuer};
use super::{Discovery, Heartbeat, VOLUME_SNAPSHOT_CLASS, WhoIssues};
use crate::kinds::{STORAGE_CLASS, WORKLOAD_CLUSTER};
use interlock_api::placement::{StorageClass, WorkloadClusterStatus};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{LiveReads, Name, Object, Place, View, read_part};
use jiff::Timestamp;
use std::time::Duration;

/// The longest URL of an issuer that a WorkloadCluster can have: a longer one would have the whole
/// heartbeat refused.
const LONGEST_ISSUER: usize = 2048;
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) cluster: Object,
    pub(super) status: WorkloadClusterStatus,
    pub(super) classes: Vec<StorageClass>,
    /// Who issues the tokens of the cluster, as it said just now.
    pub(super) issuer: Option<String>,
}

/// Reads what a step is about; the error says why there is nothing to decide.
pub(super) fn observe(
    heartbeat: &Heartbeat,
    view: &dyn View,
    live_reads: &LiveReads<Discovery>,
) -> Result<(Facts, Scene), String> {
    let name = &heartbeat.cluster;
    let cluster = view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(&name.name));
    let cluster = cluster.ok_or_else(|| {
        format!("cluster {name} is not in the cache; only a live read can show that it is gone")
    })?;
    let status = read_part(&cluster, "status");
    let status = status.map_err(|flaw| format!("the cluster cannot be read: {flaw}"))?;
    let status: WorkloadClusterStatus = status.unwrap_or_default();
    let classes = classes(heartbeat, view);
    let answer = live_reads.answers.get(&WhoIssues);
    let issuer = answer.and_then(|answer| answer.clone()).filter(|url| is_issuer(url));
    let counted = status.heartbeat.as_ref().and_then(|beat| beat.sent_at.as_ref());
    let ago = counted.and_then(|at| Duration::try_from(view.now().duration_since(at.0)).ok());
    let facts = Facts {
        is_ours: uid_of(&cluster) == heartbeat.cluster.uid,
        is_syncer_known: status.syncer.as_ref() == Some(&heartbeat.syncer),
        are_classes_known: is_same(&status.storage_classes, &classes),
        issuer: match (answer, &issuer) {
            (None, _) => Issuer::NotAsked,
            (Some(_), None) => Issuer::NotSaid,
            (Some(_), found) if *found == status.issuer => Issuer::Known,
            (Some(_), Some(_)) => Issuer::New,
        },
        is_issuer_published: status.issuer.is_some(),
        sequence: status.heartbeat.as_ref().map_or(0, |beat| beat.sequence),
        counted_ago: ago,
        period: heartbeat.period,
    };
    Ok((facts, Scene { now: view.now(), cluster, status, classes, issuer }))
}

fn is_issuer(url: &str) -> bool {
    !url.is_empty() && url.chars().count() <= LONGEST_ISSUER
}

/// How much room is free is somebody else's to say.
fn is_same(known: &[StorageClass], found: &[StorageClass]) -> bool {
    let said = |class: &StorageClass| StorageClass { free_bytes: None, ..class.clone() };
    known.iter().map(said).eq(found.iter().map(said))
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
