//! What is seen of a VolumeSnapshot, of its content, of its source and of the disk.

use super::decide::{Class, Content, Facts, Made, Obstacle, Source};
use super::sentence;
use crate::kinds::{CLAIM, CONTENT, SNAPSHOT_CLASS, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    annotation, cluster_wide, has_finalizer, is_deleting, namespace_of, part, text, uid_of,
};
use crate::outside::{Content as Contents, Disk, DiskQuestion, Failure, Made as Answer};
use crate::storage::{back_off, is_just_reported, is_local};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, LOCAL_CLASS, LOCAL_DRIVER,
};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, View};
use jiff::Timestamp;
use kube_core::DynamicObject;
use std::time::Duration;

/// Our finalizer on a VolumeSnapshot.
pub(super) const PROTECTION: &str =
    "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
/// Our finalizer on its content.
pub(super) const CONTENT_PROTECTION: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

/// The objects that a step about one snapshot is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) snapshot: Object,
    pub(super) content: Option<Object>,
    pub(super) class: Option<Object>,
    /// The volume of the claim that it is taken of.
    pub(super) volume: Option<Object>,
    /// What is in it, once it is whole on the disk.
    pub(super) contents: Option<Contents>,
    /// Why it could not be taken.
    pub(super) failure: Option<Failure>,
    /// How long it is not tried again; None: it is time.
    pub(super) pause: Option<Duration>,
}

/// Reads what a step is about.
pub(super) fn observe(
    name: &Name,
    view: &dyn View,
    live_reads: &LiveReads<Disk>,
) -> Observed<Facts, Scene> {
    let Some(snapshot) = view.get(Place::CLUSTER, &SNAPSHOT_KIND, name) else {
        return Observed::nothing(
            "the snapshot is not in the cache; only a live read can show that it is gone",
        );
    };
    let answer = live_reads.answers.get(&DiskQuestion::Snapshot(handle_for(&snapshot)));
    let content = Name::cluster_wide(&content_name(&snapshot));
    let class = text(&snapshot.data, &["spec", "volumeSnapshotClassName"]);
    let scene = Scene {
        now: view.now(),
        content: view.get(Place::CLUSTER, &CONTENT, &content),
        class: view.get(Place::CLUSTER, &SNAPSHOT_CLASS, &Name::cluster_wide(class)),
        volume: volume_of(&snapshot, view),
        contents: match answer {
            Some(Answer::Whole(contents)) => Some(contents.clone()),
            Some(Answer::Missing | Answer::Making(_) | Answer::Failed(_)) | None => None,
        },
        failure: match answer {
            Some(Answer::Failed(failure)) => Some(failure.clone()),
            Some(Answer::Missing | Answer::Making(_) | Answer::Whole(_)) | None => None,
        },
        pause: pause_of(&snapshot, view.now()),
        snapshot,
    };
    Observed::Seen { facts: Reading { scene: &scene, view, live_reads }.facts(), scene }
}

impl Scene {
    /// The name of its snapshot on the disk.
    pub(super) fn handle(&self) -> String {
        handle_for(&self.snapshot)
    }

    /// What happens to its snapshot after it: as its class says, and else it is deleted.
    pub(super) fn deletion_policy(&self) -> &str {
        let policy = self.class.as_deref().map(|class| text(&class.data, &["deletionPolicy"]));
        policy.filter(|policy| !policy.is_empty()).unwrap_or("Delete")
    }

    pub(super) fn content_address(&self) -> Address {
        cluster_wide(&CONTENT, &content_name(&self.snapshot))
    }
}

/// What the facts are read from.
struct Reading<'a> {
    scene: &'a Scene,
    view: &'a dyn View,
    live_reads: &'a LiveReads<Disk>,
}

impl Reading<'_> {
    fn facts(&self) -> Facts {
        let snapshot = &self.scene.snapshot;
        let said = text(&snapshot.data, &["status", "error", "message"]);
        let mut finalizers = snapshot.metadata.finalizers.iter().flatten();
        Facts {
            is_deleting: is_deleting(snapshot),
            is_protected: has_finalizer(snapshot, PROTECTION),
            is_held: finalizers.any(|finalizer| finalizer != PROTECTION),
            is_ready: snapshot.data["status"]["readyToUse"] == true,
            is_described: self.is_described(),
            class: self.class(),
            source: self.source(),
            content: self.content(),
            made: self.made(),
            said: Obstacle::ALL
                .into_iter()
                .find(|obstacle| said == sentence::of_obstacle(snapshot, *obstacle)),
        }
    }

    fn is_described(&self) -> bool {
        let Some(contents) = &self.scene.contents else { return false };
        let says = |key: &str, value: &str| annotation(&self.scene.snapshot, key) == Some(value);
        says(ANNOTATION_DIGEST, &contents.digest)
            && says(ANNOTATION_FILES, &contents.files.to_string())
            && says(ANNOTATION_BYTES, &contents.bytes.to_string())
    }

    fn class(&self) -> Class {
        if let Some(content) = &self.scene.content {
            let is_ours = text(&content.data, &["spec", "driver"]) == LOCAL_DRIVER;
            return if is_ours { Class::Local } else { Class::Foreign };
        }
        let named = text(&self.scene.snapshot.data, &["spec", "volumeSnapshotClassName"]);
        match &self.scene.class {
            Some(class) if text(&class.data, &["driver"]) == LOCAL_DRIVER => Class::Local,
            Some(_) => Class::Foreign,
            None if named == LOCAL_CLASS && is_deleting(&self.scene.snapshot) => Class::Local,
            // What was described was taken by us, whatever became of its class, volume and content
            // since.
            None if annotation(&self.scene.snapshot, ANNOTATION_DIGEST).is_some() => Class::Local,
            None if named == LOCAL_CLASS => Class::Missing,
            // Without a class, whoever has the volume takes its snapshots; and nobody else would say
            // that there is no class of that name.
            None if self.scene.volume.as_deref().is_some_and(is_local) => match named.is_empty() {
                true => Class::Local,
                false => Class::Missing,
            },
            None => Class::Foreign,
        }
    }

    fn source(&self) -> Source {
        let source = part(&self.scene.snapshot.data, &["spec", "source"]);
        let claim = text(source, &["persistentVolumeClaimName"]);
        if claim.is_empty() {
            return Source::NotSupported;
        }
        if self.scene.volume.as_deref().is_some_and(is_local) {
            return Source::Volume;
        }
        let name = Name::within(namespace_of(&self.scene.snapshot), claim);
        match self.view.get(Place::CLUSTER, &CLAIM, &name) {
            Some(_) => Source::NotBound,
            None => Source::Missing,
        }
    }

    fn content(&self) -> Content {
        match (&self.scene.content, self.live_reads.objects.get(&self.scene.content_address())) {
            (Some(content), _) => {
                let is_ready = content.data["status"]["readyToUse"] == true;
                if text(&content.data, &["spec", "deletionPolicy"]) == "Retain" {
                    return Content::Kept { is_ready };
                }
                Content::There { is_ready, is_deleting: is_deleting(content) }
            }
            (None, None) => Content::NotSeen,
            (None, Some(None)) => Content::None,
            (None, Some(Some(_))) => Content::Behind,
        }
    }

    fn made(&self) -> Made {
        let Scene { snapshot, pause, .. } = self.scene;
        match self.live_reads.answers.get(&DiskQuestion::Snapshot(self.scene.handle())) {
            None => Made::NotAsked,
            Some(Answer::Missing) if pause.is_some() => Made::MissingForNow,
            Some(Answer::Missing) => Made::Missing,
            Some(Answer::Making(_)) => Made::Making,
            Some(Answer::Whole(_)) => Made::Whole,
            Some(Answer::Failed(failure)) => {
                let said = text(&snapshot.data, &["status", "error", "message"]);
                let is_reported = said == sentence::of_failure(failure)
                    && is_just_reported(error_time(snapshot), self.scene.now);
                Made::Failed { is_reported }
            }
        }
    }
}

/// The volume of the claim that a snapshot is taken of.
fn volume_of(snapshot: &DynamicObject, view: &dyn View) -> Option<Object> {
    let claim = text(&snapshot.data, &["spec", "source", "persistentVolumeClaimName"]);
    let claim = view.get(Place::CLUSTER, &CLAIM, &Name::within(namespace_of(snapshot), claim))?;
    let named = Name::cluster_wide(text(&claim.data, &["spec", "volumeName"]));
    let volume = view.get(Place::CLUSTER, &VOLUME, &named)?;
    // A volume that was handed on is not the claim's any more.
    let owner = text(&volume.data, &["spec", "claimRef", "uid"]);
    (owner == uid_of(&claim)).then_some(volume)
}

/// How long after a failure there is no further attempt; None: it is time.
fn pause_of(snapshot: &DynamicObject, now: Timestamp) -> Option<Duration> {
    let first = snapshot.metadata.creation_timestamp.as_ref()?.0;
    back_off(first, error_time(snapshot)?, now)
}

fn error_time(snapshot: &DynamicObject) -> Option<Timestamp> {
    text(&snapshot.data, &["status", "error", "time"]).parse().ok()
}

/// The name of a snapshot on the disk.
fn handle_for(snapshot: &DynamicObject) -> String {
    format!("snapshot-{}", uid_of(snapshot))
}

fn content_name(snapshot: &Object) -> String {
    format!("snapcontent-{}", uid_of(snapshot))
}
