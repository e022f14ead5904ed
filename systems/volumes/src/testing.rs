//! A disk that can fail, forget and take its time, and objects for the tests of the rooms.

use crate::kinds::{CLAIM, SNAPSHOT_KIND, VOLUME};
use crate::outside::{Content, Disk, DiskAction, DiskQuestion, Failure, Made, Progress, Reason};
use crate::storage::{Claims, Snapshots, Volumes};
use interlock_kernel::testing::{Machine, TestServers, patched};
use interlock_kernel::{Controller, Kind, Name, Outside, Place};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A disk in memory. What is begun is done when [`TestDisk::finish`] says so.
#[derive(Debug, Default, Clone)]
pub(crate) struct TestDisk {
    pub(crate) things: BTreeMap<String, Thing>,
    /// Why the next things cannot be made.
    pub(crate) fails: Option<Failure>,
}

/// A volume or a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Thing {
    Making(Content),
    Whole(Content),
    Failed(Failure),
}

impl TestDisk {
    /// A disk with a whole volume or snapshot, and these words in it.
    pub(crate) fn with(mut self, handle: &str, words: &str) -> TestDisk {
        self.things.insert(handle.to_owned(), Thing::Whole(content(words)));
        self
    }

    /// The words in something that is whole.
    pub(crate) fn words(&self, handle: &str) -> Option<&str> {
        match self.things.get(handle)? {
            Thing::Whole(content) => Some(&content.digest),
            Thing::Making(_) | Thing::Failed(_) => None,
        }
    }

    /// Whatever is being made is whole; whether there was any.
    pub(crate) fn finish(&mut self) -> bool {
        let mut is_news = false;
        for thing in self.things.values_mut() {
            if let Thing::Making(content) = thing {
                *thing = Thing::Whole(content.clone());
                is_news = true;
            }
        }
        is_news
    }

    /// The process dies: what it was making is gone, and why anything failed is forgotten.
    pub(crate) fn die(&mut self) {
        self.things.retain(|_, thing| matches!(thing, Thing::Whole(_)));
    }

    fn begin(&mut self, handle: &str, content: Option<Content>) {
        if matches!(self.things.get(handle), Some(Thing::Making(_) | Thing::Whole(_))) {
            return;
        }
        let missing = Failure {
            reason: Reason::SourceMissing,
            message: "what it is to be made of is not there".to_owned(),
        };
        let thing = match (&self.fails, content) {
            (Some(failure), _) => Thing::Failed(failure.clone()),
            (None, Some(content)) => Thing::Making(content),
            (None, None) => Thing::Failed(missing),
        };
        self.things.insert(handle.to_owned(), thing);
    }

    fn whole(&self, handle: &str) -> Option<Content> {
        match self.things.get(handle)? {
            Thing::Whole(content) => Some(content.clone()),
            Thing::Making(_) | Thing::Failed(_) => None,
        }
    }
}

/// What is in something with these words in it: one file for each.
pub(crate) fn content(words: &str) -> Content {
    let files = words.split_whitespace().count() as u64;
    Content { files, bytes: words.len() as u64, digest: words.to_owned() }
}

/// A full disk.
pub(crate) fn full() -> Failure {
    let message = "needs 12 GiB, and 1 GiB is free; make room".to_owned();
    Failure { reason: Reason::TargetFull, message }
}

impl Machine<Disk> for TestDisk {
    fn ask(&self, question: &DiskQuestion) -> Made {
        let (DiskQuestion::Volume(handle) | DiskQuestion::Snapshot(handle)) = question;
        match self.things.get(handle) {
            None => Made::Missing,
            Some(Thing::Making(_)) => Made::Making(Progress::default()),
            Some(Thing::Whole(content)) => Made::Whole(content.clone()),
            Some(Thing::Failed(failure)) => Made::Failed(failure.clone()),
        }
    }

    fn perform(&mut self, action: &DiskAction) -> bool {
        match action {
            DiskAction::MakeVolume { handle, from: None, .. } => {
                self.begin(handle, Some(Content::default()));
            }
            DiskAction::MakeVolume { handle, from: Some((snapshot, digest)), .. } => {
                let whole = self.whole(snapshot).filter(|content| content.digest == *digest);
                self.begin(handle, whole);
            }
            DiskAction::TakeSnapshot { handle, volume } => {
                let whole = self.whole(volume);
                self.begin(handle, whole);
            }
            DiskAction::Forget(DiskQuestion::Volume(handle) | DiskQuestion::Snapshot(handle)) => {
                if matches!(self.things.get(handle), Some(Thing::Failed(_))) {
                    self.things.remove(handle);
                }
            }
            DiskAction::DeleteVolume(handle) | DiskAction::DeleteSnapshot(handle) => {
                self.things.remove(handle);
            }
        }
        true
    }
}

/// Lets a controller take all the steps that it wants to take; how many effects there were.
pub(crate) fn calm<C: Controller>(
    world: &mut TestServers,
    controller: &C,
    machine: &mut dyn Machine<C::Outside>,
) -> usize
where
    C::Outside: Outside,
{
    let mut effects = 0;
    for subject in world.subjects(controller) {
        let run = world.settle(controller, machine, &subject);
        effects += run.writes.len() + run.actions.len();
    }
    effects
}

/// A world with what the storage watches.
pub(crate) fn world_of_storage() -> TestServers {
    let mut world = TestServers::of(&Claims as &dyn Controller<Outside = Disk>);
    world.show(&Snapshots as &dyn Controller<Outside = Disk>);
    world.show(&Volumes as &dyn Controller<Outside = Disk>);
    world
}

/// Lets the storage take all the steps that it wants to take; how many effects there were.
pub(crate) fn calm_storage(world: &mut TestServers, disk: &mut TestDisk) -> usize {
    calm(world, &Claims, disk) + calm(world, &Snapshots, disk) + calm(world, &Volumes, disk)
}

/// A claim of 1 GiB in namespace `shop`, of local storage; its uid is `uid-<name>`.
pub(crate) fn claim(name: &str, patch: Value) -> Value {
    let claim = json!({
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "namespace": "shop", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": "1970-01-12T13:00:00Z",
        },
        "spec": {
            "storageClassName": "interlock-local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    });
    patched(claim, &patch)
}

/// The class of local storage.
pub(crate) fn class() -> Value {
    json!({
        "kind": "StorageClass",
        "metadata": {"name": "interlock-local", "uid": "uid-class"},
        "provisioner": "local.interlock.dev",
    })
}

/// A VolumeSnapshot in namespace `shop` of claim `source`; its uid is `uid-<name>`.
pub(crate) fn snapshot(name: &str, patch: Value) -> Value {
    let snapshot = json!({
        "kind": "VolumeSnapshot",
        "metadata": {
            "namespace": "shop", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": "1970-01-12T13:46:40Z",
        },
        "spec": {
            "volumeSnapshotClassName": "interlock-local",
            "source": {"persistentVolumeClaimName": "source"},
        },
    });
    patched(snapshot, &patch)
}

/// The same, ready, with these words in it, and its content.
pub(crate) fn ready_snapshot(name: &str, words: &str, patch: Value) -> [Value; 2] {
    let uid = format!("uid-{name}");
    let size = words.len().to_string();
    let content = json!({
        "kind": "VolumeSnapshotContent",
        "metadata": {
            "name": format!("snapcontent-{uid}"), "uid": format!("uid-snapcontent-{uid}"),
            "finalizers": ["snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"],
        },
        "spec": {
            "driver": "local.interlock.dev", "deletionPolicy": "Delete",
            "source": {"volumeHandle": "pvc-uid-source"},
            "volumeSnapshotRef": {"namespace": "shop", "name": name, "uid": uid},
        },
        "status": {"readyToUse": true, "snapshotHandle": format!("snapshot-{uid}")},
    });
    let ready = json!({
        "metadata": {
            "annotations": {
                "interlock.dev/digest": words, "interlock.dev/bytes": size,
                "interlock.dev/files": words.split_whitespace().count().to_string(),
            },
            "finalizers": ["snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"],
        },
        "status": {
            "readyToUse": true, "restoreSize": size,
            "boundVolumeSnapshotContentName": format!("snapcontent-{uid}"),
        },
    });
    [patched(snapshot(name, ready), &patch), content]
}

/// A destination in namespace `shop` with a latest snapshot, by name; the uid is `uid-<snapshot>`.
pub(crate) fn destination(latest: Option<&str>, patch: Value) -> Value {
    let mut destination = json!({
        "kind": "ReplicationDestination",
        "metadata": {"namespace": "shop", "name": "restore", "uid": "uid-restore"},
        "spec": {"restic": {"copyMethod": "Snapshot"}},
    });
    if let Some(latest) = latest {
        destination["metadata"]["annotations"] =
            json!({"interlock.dev/latest-image-uid": format!("uid-{latest}")});
        destination["status"] = json!({"latestImage": {
            "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": latest,
        }});
    }
    patched(destination, &patch)
}

/// Makes a claim one that is filled from the destination.
pub(crate) fn from_destination() -> Value {
    json!({"spec": {"dataSourceRef": {
        "apiGroup": "volsync.backube", "kind": "ReplicationDestination", "name": "restore",
    }}})
}

/// Makes a claim one that is made of a snapshot.
pub(crate) fn from_snapshot(name: &str) -> Value {
    json!({"spec": {"dataSource": {
        "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": name,
    }}})
}

fn json_of(world: &TestServers, kind: &Kind, name: &Name) -> Value {
    world.json(Place::CLUSTER, kind, name)
}

/// A claim of namespace `shop`.
pub(crate) fn claim_of(world: &TestServers, name: &str) -> Value {
    json_of(world, &CLAIM, &Name::within("shop", name))
}

/// A snapshot of namespace `shop`.
pub(crate) fn snapshot_of(world: &TestServers, name: &str) -> Value {
    json_of(world, &SNAPSHOT_KIND, &Name::within("shop", name))
}

/// A volume.
pub(crate) fn volume_of(world: &TestServers, name: &str) -> Value {
    json_of(world, &VOLUME, &Name::cluster_wide(name))
}
