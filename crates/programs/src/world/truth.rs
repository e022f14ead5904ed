//! What is true of a namespace, its data and its clusters, in the words of the promises.

use super::{CLUSTER_UIDS, Fleet, namespace};
use interlock_api::names::{
    ANNOTATION_CLUSTER, ANNOTATION_EPOCH, ANNOTATION_RELEASED, HOLD_PREFIX,
};
use interlock_api::placement::{GrantStatus, Phase, Pin, Snapshot};
use interlock_kernel::metadata::{is_deleting, uid_of};
use interlock_kernel::{Name, Object, read_part};
use interlock_placement::kinds::{GRANT, NAMESPACE, POD, SNAPSHOT};
use interlock_volumes::world::disks::TORN;
use interlock_world::{CLUSTERS, Promise, Scene};
use std::collections::BTreeSet;

/// The epochs whose writes are in something.
type Writes = BTreeSet<i64>;

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The cluster that people want it on.
    pub(super) desired: Option<usize>,
    pub(super) phase: Option<Phase>,
    pub(super) owner: Option<usize>,
    pub(super) epoch: i64,
    /// What the hub says of the pod.
    pub(super) pod_phase: String,
    pub(super) clusters: [Cluster; CLUSTERS],
    /// The epochs that wrote to the claim.
    pub(super) must: Writes,
    /// What is in all that the grant names for its claims.
    pub(super) pinned: Option<Writes>,
}

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    pub(super) epoch: i64,
    pub(super) released: i64,
    pub(super) running: BTreeSet<i64>,
    /// What is in the volume of the epoch that runs.
    pub(super) volume: Option<Writes>,
    pub(super) snapshots: Vec<TakenSnapshot>,
}

/// A snapshot on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TakenSnapshot {
    pub(super) is_terminating: bool,
    pub(super) is_ready: bool,
    pub(super) is_held: bool,
    /// What is in it on the disk.
    pub(super) data: Option<Writes>,
}

impl Truth {
    pub(super) fn is_held(&self) -> bool {
        self.phase.is_some_and(Phase::is_held)
    }

    /// Whether the namespace runs where people want it.
    pub(super) fn is_as_desired(&self) -> bool {
        let owner = self.owner.filter(|_| self.phase == Some(Phase::Granted));
        owner.is_some()
            && owner == self.desired
            && owner.is_some_and(|c| self.clusters[c].running.iter().eq([&self.epoch]))
            && self.pod_phase == "Running"
    }
}

fn note(object: Option<&Object>, key: &str) -> String {
    let notes = object.and_then(|object| object.metadata.annotations.as_ref());
    notes.and_then(|notes| notes.get(key)).cloned().unwrap_or_default()
}

fn place_of(uid: &str) -> Option<usize> {
    CLUSTER_UIDS.iter().position(|known| *known == uid)
}

pub(super) fn read(scene: &Scene<'_, Fleet>) -> Truth {
    let hub = scene.hub();
    let home = hub.get(&NAMESPACE, &namespace());
    let desired = note(home.as_ref(), ANNOTATION_CLUSTER);
    let grant = hub.get(&GRANT, &Name::cluster_wide(&super::grant()));
    let status: Option<GrantStatus> =
        grant.as_ref().and_then(|grant| read_part(grant, "status").ok().flatten());
    let pod = hub.part(&POD, &Name::within("shop", "pod"), "status");
    let wrote = scene.machines.iter().flat_map(|machine| machine.mounted.keys().copied());
    let owner = status.as_ref().and_then(|status| place_of(&status.owner.as_ref()?.uid));
    Truth {
        desired: super::CLUSTER_NAMES.iter().position(|name| *name == desired),
        phase: status.as_ref().map(|status| status.phase),
        owner,
        epoch: status.as_ref().map_or(0, |status| status.epoch),
        pod_phase: pod["phase"].as_str().unwrap_or_default().to_owned(),
        clusters: std::array::from_fn(|c| cluster(scene, c)),
        must: wrote.collect(),
        pinned: status.and_then(|status| pinned(scene, &status.pins)),
    }
}

fn pinned(scene: &Scene<'_, Fleet>, pins: &[Pin]) -> Option<Writes> {
    let content = |pin: &Pin| match &pin.snapshot {
        Snapshot::VolumeSnapshot { cluster, uid, .. } => {
            scene.machines[place_of(&cluster.uid)?].storage.snapshot(&format!("snapshot-{uid}"))
        }
        Snapshot::InPlace { cluster, volume } => {
            scene.machines[place_of(&cluster.uid)?].storage.volume(volume)
        }
        Snapshot::Restic { .. } | Snapshot::Fresh {} => None,
    };
    let found: Vec<Writes> = pins.iter().filter_map(content).collect();
    (!found.is_empty()).then(|| found.into_iter().flatten().collect())
}

fn cluster(scene: &Scene<'_, Fleet>, c: usize) -> Cluster {
    let machine = &scene.machines[c];
    let name = super::grant();
    let here = scene.cluster(c).get(&NAMESPACE, &Name::cluster_wide(&name));
    let number = |key: &str| note(here.as_ref(), key).parse().unwrap_or(0);
    let running = machine.processes.running(&name);
    let volume = running.iter().find_map(|epoch| {
        let handle = machine.mounted.get(epoch)?;
        Some(machine.storage.volume(handle).unwrap_or_default())
    });
    let snapshot = |snapshot: &Object| TakenSnapshot {
        is_terminating: is_deleting(snapshot),
        is_ready: snapshot.data["status"]["readyToUse"] == true,
        is_held: snapshot
            .metadata
            .finalizers
            .iter()
            .flatten()
            .any(|it| it.starts_with(HOLD_PREFIX)),
        data: machine.storage.snapshot(&format!("snapshot-{}", uid_of(snapshot))),
    };
    Cluster {
        epoch: number(ANNOTATION_EPOCH),
        released: number(ANNOTATION_RELEASED),
        volume,
        running,
        snapshots: scene.cluster(c).list(&SNAPSHOT).iter().map(snapshot).collect(),
    }
}

fn promise(
    name: &'static str,
    sentence: &'static str,
    holds: fn(&Fleet, &Truth) -> bool,
) -> Promise<Fleet> {
    Promise { name, sentence, holds }
}

pub(super) fn promises() -> Vec<Promise<Fleet>> {
    vec![
        promise("UsableByAtMostOne", "at most one cluster runs the namespace", |_, truth| {
            truth.clusters.iter().filter(|it| !it.running.is_empty()).count() <= 1
        }),
        promise(
            "OnlyTheOwnerRuns",
            "whoever runs is the owner, in the present epoch",
            |_, truth| {
                (0..CLUSTERS).all(|c| {
                    let is_owner = truth.is_held() && truth.owner == Some(c);
                    let mut running = truth.clusters[c].running.iter();
                    running.all(|epoch| is_owner && *epoch == truth.epoch)
                })
            },
        ),
        promise("ClosedIsStill", "a closed epoch does not run", |_, truth| {
            truth.clusters.iter().all(|c| c.running.iter().all(|epoch| *epoch > c.released))
        }),
        promise("NoLoss", "an owner that runs has every write that was made", |_, truth| {
            let volumes = truth.clusters.iter().filter_map(|cluster| cluster.volume.as_ref());
            volumes
                .into_iter()
                .all(|volume| truth.must.is_subset(volume) && !volume.contains(&TORN))
        }),
        promise(
            "PinsHaveEveryWrite",
            "between two owners the pinned snapshots have every write",
            |_, truth| {
                truth.is_held()
                    || truth.must.is_empty()
                    || truth.pinned.as_ref().is_some_and(|pinned| truth.must.is_subset(pinned))
            },
        ),
        promise(
            "HeldSnapshotStays",
            "a snapshot that is held is not deleted, and is on the disk",
            |_, truth| {
                let mut snapshots = truth.clusters.iter().flat_map(|cluster| &cluster.snapshots);
                snapshots.all(|snapshot| {
                    let is_there = !snapshot.is_ready || snapshot.data.is_some();
                    !snapshot.is_held || is_there && !snapshot.is_terminating
                })
            },
        ),
    ]
}

pub(super) fn moved() -> Promise<Fleet> {
    promise("Moved", "the namespace runs on cluster b, with what it wrote before", |_, truth| {
        truth.is_as_desired() && truth.owner == Some(1) && truth.must.len() > 1
    })
}
