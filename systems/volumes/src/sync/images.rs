//! Images: VolumeSnapshots that a source or a destination took.

use super::repository::Flaw;
use super::task::Task;
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::{annotation, is_owned_by, label, name_of, owner_reference, uid_of};
use crate::outside::{Content, Mover, Reason};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, ANNOTATION_SYNC_ID, HOLD_PREFIX,
    LABEL_DO_NOT_DELETE,
};
use interlock_kernel::{Address, Index, Kind, Looks, Name, Object, Place, View, Write};
use kube_core::DynamicObject;
use serde_json::json;

/// What the storage says first of an image whose class is not there.
pub(crate) const CLASS_MISSING: &str = "ClassMissing";

/// Nobody takes an image.
pub(crate) const NOT_BEGUN: &str = "ImageNotBegun";

/// Images by the uid of what they were taken for.
pub(crate) const IMAGES_BY_OWNER: Index = Index {
    name: "by-owner",
    kind: SNAPSHOT_KIND,
    values: |snapshot| {
        let owners = snapshot.metadata.owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect()
    },
};

/// Images by their own uid.
pub(crate) const IMAGES_BY_UID: Index = Index {
    name: "by-uid",
    kind: SNAPSHOT_KIND,
    values: |snapshot| snapshot.metadata.uid.iter().cloned().collect(),
};

/// What the handle of an image on the disk begins with; the rest is its uid.
pub(crate) const IMAGE_PREFIX: &str = "snapshot-";

/// The images of an object, the oldest first.
pub(crate) fn images_of(owner_uid: &str, view: &dyn View) -> Vec<Object> {
    owned(&view.find(Place::CLUSTER, &IMAGES_BY_OWNER, owner_uid), owner_uid)
}

/// The list that has all images of an object.
pub(crate) fn list_of(task: &Task) -> (Place, Kind, Option<String>) {
    (Place::CLUSTER, SNAPSHOT_KIND, Some(task.namespace().to_owned()))
}

/// The images of an object as they were last listed afresh, or else as the cache has them.
pub(crate) fn seen(task: &Task, view: &dyn View, looks: &Looks<Mover>) -> Vec<Object> {
    match looks.lists.get(&list_of(task)) {
        Some(fresh) => owned(fresh, task.uid()),
        None => images_of(task.uid(), view),
    }
}

/// Those of these images that are an object's, the oldest first.
pub(crate) fn owned(images: &[Object], owner_uid: &str) -> Vec<Object> {
    let ours = images.iter().filter(|image| is_owned_by(image, owner_uid));
    let mut images: Vec<Object> = ours.cloned().collect();
    images.sort_by_key(|image| {
        let created = image.metadata.creation_timestamp.as_ref().map(|created| created.0);
        // The names of images that were taken within one second count up.
        (created, name_of(image).len(), name_of(image).to_owned())
    });
    images
}

pub(crate) fn is_ready(image: &DynamicObject) -> bool {
    image.data["status"]["readyToUse"] == true
}

/// Why an image could not be taken so far. What the storage says begins with the reason.
pub(crate) fn flaw_of(image: &DynamicObject) -> Option<Flaw> {
    let said = image.data["status"]["error"]["message"].as_str()?;
    let word = said.split_once(": ").map(|(word, _)| word);
    let mut known = Reason::ALL.iter().map(|reason| reason.word()).chain([CLASS_MISSING]);
    let reason = known.find(|known| word == Some(*known)).unwrap_or(Reason::SnapshotFailed.word());
    Some(Flaw::new(reason, format!("image {} cannot be taken: {said}", name_of(image))))
}

/// What is said of an image that no storage has laid a hand on.
pub(crate) fn neglected(image: &DynamicObject) -> Option<Flaw> {
    let is_touched = !image.data["status"].is_null()
        || image.metadata.finalizers.iter().flatten().any(|it| !it.starts_with(HOLD_PREFIX));
    let class = image.data["spec"]["volumeSnapshotClassName"].as_str();
    let class = class.map_or("the default class".to_owned(), |class| format!("class {class}"));
    let what = format!(
        "nobody has begun to take image {}: its claim has no volume yet, or the driver of {class} \
         does not run here; see `kubectl get volumesnapshotclass,pvc`",
        name_of(image)
    );
    (!is_touched).then(|| Flaw::new(NOT_BEGUN, what))
}

/// Whether an image waits for a class that nobody asks for any more: it would wait for ever.
pub(crate) fn waits_for_another_class(image: &DynamicObject, class: Option<&str>) -> bool {
    let named = image.data["spec"]["volumeSnapshotClassName"].as_str();
    let is_missing = flaw_of(image).is_some_and(|flaw| flaw.reason == CLASS_MISSING);
    is_missing && !is_ready(image) && named != class
}

/// Who holds an image, by uid.
pub(crate) fn holders(image: &DynamicObject) -> impl Iterator<Item = &str> {
    let finalizers = image.metadata.finalizers.iter().flatten();
    finalizers.filter_map(|finalizer| finalizer.strip_prefix(HOLD_PREFIX))
}

pub(crate) fn is_held(image: &DynamicObject) -> bool {
    holders(image).next().is_some()
}

/// Whether a person wants to keep it, in VolSync's way.
pub(crate) fn is_kept(image: &DynamicObject) -> bool {
    label(image, LABEL_DO_NOT_DELETE).is_some()
}

/// What is in an image; None: the storage did not say.
pub(crate) fn content_of(image: &DynamicObject) -> Option<Content> {
    let number = |key| annotation(image, key).and_then(|text| text.parse().ok());
    Some(Content {
        files: number(ANNOTATION_FILES)?,
        bytes: number(ANNOTATION_BYTES).unwrap_or_default(),
        digest: annotation(image, ANNOTATION_DIGEST).unwrap_or_default().to_owned(),
    })
}

/// The handle of an image on the disk.
pub(crate) fn handle_of(image: &DynamicObject) -> String {
    format!("{IMAGE_PREFIX}{}", uid_of(image))
}

/// The handle of the volume of a claim, once it has one.
pub(crate) fn volume_of(claim: &DynamicObject) -> Option<&str> {
    let is_bound = claim.data["status"]["phase"] == "Bound";
    claim.data["spec"]["volumeName"].as_str().filter(|name| is_bound && !name.is_empty())
}

/// The claim that an image is of.
pub(crate) fn claim_of(image: &DynamicObject) -> &str {
    let source = &image.data["spec"]["source"]["persistentVolumeClaimName"];
    source.as_str().unwrap_or_default()
}

pub(crate) fn sync_of(image: &DynamicObject) -> &str {
    annotation(image, ANNOTATION_SYNC_ID).unwrap_or_default()
}

/// What an image is taken for.
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

/// Has an image taken.
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

/// Whether an image is one of an object's, as opposed to a namesake.
pub(crate) fn is_of(image: &DynamicObject, owner_uid: &str, sync: &str) -> bool {
    is_owned_by(image, owner_uid) && sync_of(image) == sync
}

pub(crate) fn claim_address(namespace: &str, name: &str) -> Address {
    Address::new(Place::CLUSTER, &CLAIM, Name::within(namespace, name))
}
