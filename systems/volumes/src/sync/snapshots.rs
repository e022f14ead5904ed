//! Snapshots: VolumeSnapshots that a source or a destination took.

use super::repository::Unhealthy;
use super::task::Task;
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::{annotation, is_owned_by, label, name_of, owner_reference, uid_of};
use crate::outside::{Content, Mover, Reason};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, ANNOTATION_SYNC_ID, HOLD_PREFIX,
    LABEL_DO_NOT_DELETE,
};
use interlock_kernel::{Address, Index, Kind, LiveReads, Name, Object, Place, View, Write};
use kube_core::DynamicObject;
use serde_json::json;

/// What the storage says first of a snapshot whose class is not there.
pub(crate) const CLASS_MISSING: &str = "ClassMissing";

/// Nobody takes a snapshot.
pub(crate) const NOT_BEGUN: &str = "SnapshotNotBegun";

/// Snapshots by the uid of what they were taken for.
pub(crate) const SNAPSHOTS_BY_OWNER: Index = Index {
    name: "by-owner",
    kind: SNAPSHOT_KIND,
    values: |snapshot| {
        let owners = snapshot.metadata.owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect()
    },
};

/// What the handle of a snapshot on the disk begins with; the rest is its uid.
pub(crate) const SNAPSHOT_PREFIX: &str = "snapshot-";

/// The snapshots of an object, the oldest first.
pub(crate) fn snapshots_of(owner_uid: &str, view: &dyn View) -> Vec<Object> {
    owned(&view.find(Place::CLUSTER, &SNAPSHOTS_BY_OWNER, owner_uid), owner_uid)
}

/// The list that has all snapshots of an object.
pub(crate) fn list_of(task: &Task) -> (Place, Kind, Option<String>) {
    (Place::CLUSTER, SNAPSHOT_KIND, Some(task.namespace().to_owned()))
}

/// The snapshots of an object as they were last listed afresh, or else as the cache has them.
pub(crate) fn seen(task: &Task, view: &dyn View, live_reads: &LiveReads<Mover>) -> Vec<Object> {
    match live_reads.lists.get(&list_of(task)) {
        Some(fresh) => owned(fresh, task.uid()),
        None => snapshots_of(task.uid(), view),
    }
}

/// Those of these snapshots that are an object's, the oldest first.
pub(crate) fn owned(snapshots: &[Object], owner_uid: &str) -> Vec<Object> {
    let ours = snapshots.iter().filter(|snapshot| is_owned_by(snapshot, owner_uid));
    let mut snapshots: Vec<Object> = ours.cloned().collect();
    snapshots.sort_by_key(|snapshot| {
        let created = snapshot.metadata.creation_timestamp.as_ref().map(|created| created.0);
        // The names of snapshots that were taken within one second count up.
        (created, name_of(snapshot).len(), name_of(snapshot).to_owned())
    });
    snapshots
}

pub(crate) fn is_ready(snapshot: &DynamicObject) -> bool {
    snapshot.data["status"]["readyToUse"] == true
}

/// Why a snapshot could not be taken so far. What the storage says begins with the reason.
pub(crate) fn flaw_of(snapshot: &DynamicObject) -> Option<Unhealthy> {
    let said = snapshot.data["status"]["error"]["message"].as_str()?;
    let word = said.split_once(": ").map(|(word, _)| word);
    let mut known = Reason::ALL.iter().map(|reason| reason.word()).chain([CLASS_MISSING]);
    let reason = known.find(|known| word == Some(*known)).unwrap_or(Reason::SnapshotFailed.word());
    Some(Unhealthy::new(reason, format!("snapshot {} cannot be taken: {said}", name_of(snapshot))))
}

/// What is said of a snapshot that no storage has laid a hand on.
pub(crate) fn neglected(snapshot: &DynamicObject) -> Option<Unhealthy> {
    let is_touched = !snapshot.data["status"].is_null()
        || snapshot.metadata.finalizers.iter().flatten().any(|it| !it.starts_with(HOLD_PREFIX));
    let class = snapshot.data["spec"]["volumeSnapshotClassName"].as_str();
    let class = class.map_or("the default class".to_owned(), |class| format!("class {class}"));
    let what = format!(
        "no driver has begun to take snapshot {}: the claim has no volume yet, or the driver of \
         {class} does not run on this cluster; see `kubectl get volumesnapshotclass,pvc`",
        name_of(snapshot)
    );
    (!is_touched).then(|| Unhealthy::new(NOT_BEGUN, what))
}

/// Whether a snapshot waits for a class that nobody asks for any more: it would wait for ever.
pub(crate) fn waits_for_another_class(snapshot: &DynamicObject, class: Option<&str>) -> bool {
    let named = snapshot.data["spec"]["volumeSnapshotClassName"].as_str();
    let is_missing = flaw_of(snapshot).is_some_and(|flaw| flaw.reason == CLASS_MISSING);
    is_missing && !is_ready(snapshot) && named != class
}

/// Who holds a snapshot, by uid.
pub(crate) fn holders(snapshot: &DynamicObject) -> impl Iterator<Item = &str> {
    let finalizers = snapshot.metadata.finalizers.iter().flatten();
    finalizers.filter_map(|finalizer| finalizer.strip_prefix(HOLD_PREFIX))
}

pub(crate) fn is_held(snapshot: &DynamicObject) -> bool {
    holders(snapshot).next().is_some()
}

/// Whether a person wants to keep it, in VolSync's way.
pub(crate) fn is_kept(snapshot: &DynamicObject) -> bool {
    label(snapshot, LABEL_DO_NOT_DELETE).is_some()
}

/// What is in a snapshot; None: the storage did not say.
pub(crate) fn content_of(snapshot: &DynamicObject) -> Option<Content> {
    let number = |key| annotation(snapshot, key).and_then(|text| text.parse().ok());
    Some(Content {
        files: number(ANNOTATION_FILES)?,
        bytes: number(ANNOTATION_BYTES).unwrap_or_default(),
        digest: annotation(snapshot, ANNOTATION_DIGEST).unwrap_or_default().to_owned(),
    })
}

/// The handle of a snapshot on the disk.
pub(crate) fn handle_of(snapshot: &DynamicObject) -> String {
    format!("{SNAPSHOT_PREFIX}{}", uid_of(snapshot))
}

/// The handle of the volume of a claim, once it has one.
pub(crate) fn volume_of(claim: &DynamicObject) -> Option<&str> {
    let is_bound = claim.data["status"]["phase"] == "Bound";
    claim.data["spec"]["volumeName"].as_str().filter(|name| is_bound && !name.is_empty())
}

/// The claim that a snapshot is of.
pub(crate) fn claim_of(snapshot: &DynamicObject) -> &str {
    let source = &snapshot.data["spec"]["source"]["persistentVolumeClaimName"];
    source.as_str().unwrap_or_default()
}

pub(crate) fn sync_of(snapshot: &DynamicObject) -> &str {
    annotation(snapshot, ANNOTATION_SYNC_ID).unwrap_or_default()
}

/// What a snapshot is taken for.
pub(crate) struct Taken<'a> {
    pub(crate) owner: (&'a Kind, &'a DynamicObject),
    pub(crate) name: &'a str,
    pub(crate) sync: &'a str,
    pub(crate) claim: &'a str,
    pub(crate) class: Option<&'a str>,
}

pub(crate) fn address_of(namespace: &str, name: &str) -> Address {
    Address::new(Place::CLUSTER, &SNAPSHOT_KIND, Name::within(namespace, name))
}

/// Has a snapshot taken.
pub(crate) fn take(namespace: &str, taken: &Taken<'_>) -> Write {
    let mut spec = json!({"source": {"persistentVolumeClaimName": taken.claim}});
    if let Some(class) = taken.class {
        spec["volumeSnapshotClassName"] = json!(class);
    }
    let (kind, owner) = taken.owner;
    Write::Create {
        address: address_of(namespace, taken.name),
        object: json!({
            "metadata": {
                "annotations": { ANNOTATION_SYNC_ID: taken.sync },
                "ownerReferences": [owner_reference(kind, owner)],
            },
            "spec": spec,
        }),
    }
}

/// Whether a snapshot is one of an object's, as opposed to a namesake.
pub(crate) fn is_of(snapshot: &DynamicObject, owner_uid: &str, sync: &str) -> bool {
    is_owned_by(snapshot, owner_uid) && sync_of(snapshot) == sync
}

pub(crate) fn claim_address(namespace: &str, name: &str) -> Address {
    Address::new(Place::CLUSTER, &CLAIM, Name::within(namespace, name))
}
