//! The objects and the disk at the start, as the controllers themselves would have left them.

use super::disks::{Copied, Data, Storage, Thing};
use super::{HERE, Kind, SYNCING, Syncs, start};
use crate::kinds::{
    CLAIM, CONTENT, DESTINATION, NAMESPACE, SECRET, SNAPSHOT_KIND, SOURCE, STORAGE_CLASS, VOLUME,
};
use crate::sync::slots::SLOT_NAMESPACE;
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, ANNOTATION_LATEST_IMAGE_UID,
    ANNOTATION_SNAPSHOT, ANNOTATION_SYNC_ID, FINALIZER_POPULATE, FINALIZER_SNAPSHOTS, LOCAL_CLASS,
    LOCAL_DRIVER, PROVIDER_COPY, hold_finalizer,
};
use interlock_kernel::Name;
use interlock_world::Servers;
use serde_json::{Value, json};

/// The namespace that it is all about.
pub(super) const SHOP: &str = "shop";
/// A namespace that has nothing to do with it.
pub(super) const BANK: &str = "bank";
/// The claim that is to be filled; another one of this name is in the other namespace.
pub(super) const DATA: &str = "data";
/// The claim that a source reads, or that a destination writes.
pub(super) const TARGET: &str = "target";
/// The volume of that claim.
pub(super) const TARGET_VOLUME: &str = "target-volume";
/// The volume of the other namespace, and what is in it.
pub(super) const BANK_VOLUME: &str = "bank-volume";
pub(super) const BANK_WRITE: i64 = 100;
/// The snapshots that a destination has published at the start, one after the other.
const SNAPSHOTS: [&str; 2] = ["first", "second"];
/// The uid of the claim that is to be filled.
const CLAIM_UID: &str = "persistentvolumeclaim-data-0";

/// A cluster and its disk.
pub(super) struct Start<'a> {
    pub(super) servers: &'a Servers,
    pub(super) server: u32,
    pub(super) storage: Storage,
}

/// What there is at the start.
pub(super) fn first<'a>(system: &Syncs, servers: &'a Servers) -> Start<'a> {
    let storage = Storage { cluster: HERE.to_owned(), ..Storage::default() };
    let mut start = Start { servers, server: servers.empty(), storage };
    for name in [SHOP, BANK, SLOT_NAMESPACE] {
        start.put(&NAMESPACE, &Name::cluster_wide(name), json!({}));
    }
    let class = json!({"provisioner": LOCAL_DRIVER});
    start.put(&STORAGE_CLASS, &Name::cluster_wide(LOCAL_CLASS), class);
    start.bound(BANK, DATA, BANK_VOLUME, [BANK_WRITE].into());
    if !system.own {
        let is_source = system.kind != Kind::Destination;
        let data = if is_source { [1].into() } else { Data::new() };
        start.bound(SHOP, TARGET, TARGET_VOLUME, data);
    }
    if system.kind != Kind::Snapshots {
        let secret = json!({"data": {
            "RESTIC_REPOSITORY": "L3JlcG9zaXRvcnk=", "RESTIC_PASSWORD": "c2VjcmV0"}});
        start.put(&SECRET, &Name::within(SHOP, "backup"), secret);
    }
    match system.kind {
        Kind::Snapshots | Kind::Backups => start.source(system.kind),
        Kind::Destination => start.destination(system),
    }
    if system.claims > 0 {
        let mut claim = claim();
        if system.done == 2 {
            let pin = json!({ANNOTATION_SNAPSHOT: uid_of_snapshot(0)});
            claim["metadata"] = json!({"annotations": pin, "finalizers": [FINALIZER_POPULATE]});
        }
        start.put(&CLAIM, &Name::within(SHOP, DATA), claim);
    }
    start
}

/// A claim that is to be filled from the destination.
pub(super) fn claim() -> Value {
    json!({"spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL_CLASS,
        "resources": {"requests": {"storage": "1Gi"}},
        "dataSourceRef": {"apiGroup": DESTINATION.group, "kind": DESTINATION.kind,
            "name": SYNCING},
    }})
}

fn uid_of_snapshot(place: usize) -> String {
    format!("volumesnapshot-{}-0", SNAPSHOTS[place])
}

impl Start<'_> {
    fn put(&mut self, kind: &interlock_kernel::Kind, name: &Name, object: Value) {
        self.server = self.servers.put(self.server, kind, name, object);
    }

    /// A claim with its volume.
    fn bound(&mut self, namespace: &str, name: &str, volume: &str, data: Data) {
        let uid = format!("uid-{namespace}-{name}");
        let (modes, size) = (json!(["ReadWriteOnce"]), json!({"storage": "1Gi"}));
        let claim = json!({
            "metadata": {"uid": uid, "finalizers": ["kubernetes.io/pvc-protection"], "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"accessModes": modes, "storageClassName": LOCAL_CLASS, "volumeName": volume,
                "resources": {"requests": size}},
            "status": {"phase": "Bound", "accessModes": modes, "capacity": size},
        });
        self.put(&CLAIM, &Name::within(namespace, name), claim);
        let record = json!({
            "metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": LOCAL_DRIVER},
                "finalizers": ["kubernetes.io/pv-protection"]},
            "spec": {"accessModes": modes, "capacity": size, "storageClassName": LOCAL_CLASS,
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "namespace": namespace, "name": name, "uid": uid},
                "csi": {"driver": LOCAL_DRIVER, "volumeHandle": volume},
                "persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound"},
        });
        self.put(&VOLUME, &Name::cluster_wide(volume), record);
        self.storage.volumes.insert(volume.to_owned(), Thing::Whole(Copied { data, of: None }));
    }

    fn source(&mut self, kind: Kind) {
        let mut spec = json!({"sourcePVC": TARGET, "trigger": {"manual": "1"}});
        match kind {
            Kind::Snapshots => spec["external"] = json!({"provider": PROVIDER_COPY}),
            Kind::Backups | Kind::Destination => {
                spec["restic"] = json!({"repository": "backup", "copyMethod": "Snapshot"});
            }
        }
        let source = json!({"metadata": {"generation": 1}, "spec": spec});
        self.put(&SOURCE, &Name::within(SHOP, SYNCING), source);
    }

    fn destination(&mut self, system: &Syncs) {
        let mut restic = json!({"repository": "backup", "copyMethod": "Snapshot"});
        if system.own {
            restic["capacity"] = json!("1Gi");
            restic["accessModes"] = json!(["ReadWriteOnce"]);
            restic["storageClassName"] = json!(LOCAL_CLASS);
            restic["cleanupTempPVC"] = json!(true);
        } else {
            restic["destinationPVC"] = json!(TARGET);
        }
        let tag = system.done.max(1);
        for tag in 1..=i64::from(tag) {
            self.storage.repository.push((format!("r{tag}"), (1..=tag).collect()));
        }
        let spec = json!({"restic": restic, "trigger": {"manual": tag.to_string()}});
        let mut destination = json!({"metadata": {"generation": tag}, "spec": spec});
        for place in 0..system.done as usize {
            self.snapshot(system, place, &mut destination);
        }
        self.put(&DESTINATION, &Name::within(SHOP, SYNCING), destination);
    }

    /// A sync of the destination is done, and what it brought is published.
    fn snapshot(&mut self, system: &Syncs, place: usize, destination: &mut Value) {
        let (name, uid, tag) = (SNAPSHOTS[place], uid_of_snapshot(place), place as i64 + 1);
        let data: Data = (1..=tag).collect();
        let digest = ["1", "1-2"][place];
        let content = format!("snapcontent-{uid}");
        let claim = if system.own { format!("volsync-{SYNCING}-dest") } else { TARGET.to_owned() };
        let owner = json!({"apiVersion": DESTINATION.api_version(), "kind": DESTINATION.kind,
            "name": SYNCING, "uid": "replicationdestination-d-0", "controller": true});
        let (time, size) = (start().to_string(), data.len());
        let mut finalizers =
            vec!["snapshot.storage.kubernetes.io/volumesnapshot-bound-protection".to_owned()];
        if system.claims > 0 && place + 1 < system.done as usize {
            finalizers.push(hold_finalizer(CLAIM_UID));
        }
        let snapshot = json!({
            "metadata": {
                "finalizers": finalizers,
                "annotations": {ANNOTATION_SYNC_ID: name, ANNOTATION_DIGEST: digest,
                    ANNOTATION_FILES: size.to_string(), ANNOTATION_BYTES: size.to_string()},
                "ownerReferences": [owner]},
            "spec": {"source": {"persistentVolumeClaimName": claim}},
            "status": {"readyToUse": true, "boundVolumeSnapshotContentName": content,
                "restoreSize": size.to_string(), "creationTime": time},
        });
        self.put(&SNAPSHOT_KIND, &Name::within(SHOP, name), snapshot);
        let record = json!({
            "metadata": {"finalizers": [
                "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"]},
            "spec": {"deletionPolicy": "Delete", "driver": LOCAL_DRIVER,
                "source": {"volumeHandle": TARGET_VOLUME},
                "volumeSnapshotRef": {"apiVersion": SNAPSHOT_KIND.api_version(),
                    "kind": SNAPSHOT_KIND.kind, "namespace": SHOP, "name": name, "uid": uid}},
            "status": {"snapshotHandle": format!("snapshot-{uid}"), "readyToUse": true,
                "restoreSize": size, "creationTime": start().as_second() * 1_000_000_000},
        });
        self.put(&CONTENT, &Name::cluster_wide(&content), record);
        let of = Some(TARGET_VOLUME.to_owned());
        let whole = Thing::Whole(Copied { data: data.clone(), of });
        self.storage.snapshots.insert(format!("snapshot-{uid}"), whole);
        if !system.own {
            let target = Thing::Whole(Copied { data, of: None });
            self.storage.volumes.insert(TARGET_VOLUME.to_owned(), target);
        }
        destination["metadata"]["finalizers"] = json!([FINALIZER_SNAPSHOTS]);
        destination["metadata"]["annotations"] = json!({ANNOTATION_LATEST_IMAGE_UID: uid});
        destination["status"] = json!({
            "lastManualSync": tag.to_string(), "lastSyncTime": time,
            "latestImage": {"apiGroup": SNAPSHOT_KIND.group, "kind": SNAPSHOT_KIND.kind,
                "name": name},
            "external": {"syncID": name, "snapshot": name, "snapshotUID": uid, "digest": digest,
                "files": size.to_string(), "bytes": size.to_string()},
        });
    }
}
