//! What is seen of a VolumeSnapshot, of its content, of its source and of the disk.

use super::decide::{Class, Content, Facts, Made, Source};
use crate::kinds::{CLAIM, CONTENT, SNAPSHOT_CLASS, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    annotation, cluster_wide, has_finalizer, is_deleting, namespace_of, part, text, uid_of,
};
use crate::outside::{Content as Contents, Disk, DiskQuestion, Failure, Made as Answer};
use crate::storage::{back_off, handle_of, is_just_reported, is_local};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, LOCAL_CLASS, LOCAL_DRIVER,
};
use interlock_kernel::{Address, Looks, Name, Object, Place, View};
use jiff::Timestamp;
use std::time::Duration;

/// Our finalizer on a VolumeSnapshot.
pub(super) const PROTECTION: &str =
    "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
/// Our finalizer on its content.
pub(super) const CONTENT_PROTECTION: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

/// Everything that a step about one image sees.
pub(super) struct Scene<'a> {
    pub(super) view: &'a dyn View,
    pub(super) looks: &'a Looks<Disk>,
    pub(super) snapshot: Object,
    pub(super) content: Option<Object>,
    pub(super) class: Option<Object>,
    /// The volume of the claim that it is taken of.
    pub(super) volume: Option<Object>,
}

impl<'a> Scene<'a> {
    pub(super) fn of(name: &Name, view: &'a dyn View, looks: &'a Looks<Disk>) -> Option<Scene<'a>> {
        let snapshot = view.get(Place::CLUSTER, &SNAPSHOT_KIND, name)?;
        let content = Name::cluster_wide(&content_name(&snapshot));
        let content = view.get(Place::CLUSTER, &CONTENT, &content);
        let class = text(&snapshot.data, &["spec", "volumeSnapshotClassName"]);
        let class = view.get(Place::CLUSTER, &SNAPSHOT_CLASS, &Name::cluster_wide(class));
        let claim = text(&snapshot.data, &["spec", "source", "persistentVolumeClaimName"]);
        let claim = Name::within(namespace_of(&snapshot), claim);
        let volume = view.get(Place::CLUSTER, &CLAIM, &claim).and_then(|claim| {
            let named = Name::cluster_wide(text(&claim.data, &["spec", "volumeName"]));
            let volume = view.get(Place::CLUSTER, &VOLUME, &named)?;
            // A volume that was handed on is not the claim's any more.
            let owner = text(&volume.data, &["spec", "claimRef", "uid"]);
            (owner == uid_of(&claim)).then_some(volume)
        });
        Some(Scene { view, looks, content, class, volume, snapshot })
    }

    /// The name of its image on the disk.
    pub(super) fn handle(&self) -> String {
        format!("snapshot-{}", uid_of(&self.snapshot))
    }

    /// The name of the volume on the disk that it is taken of: as its content says, once there is
    /// one, whatever becomes of the claim.
    pub(super) fn source_handle(&self) -> &str {
        match (&self.content, &self.volume) {
            (Some(content), _) => text(&content.data, &["spec", "source", "volumeHandle"]),
            (None, Some(volume)) => handle_of(volume),
            (None, None) => "",
        }
    }

    pub(super) fn content_address(&self) -> Address {
        cluster_wide(&CONTENT, &content_name(&self.snapshot))
    }

    pub(super) fn facts(&self) -> Facts {
        let snapshot = &self.snapshot;
        let others = snapshot.metadata.finalizers.iter().flatten();
        Facts {
            is_deleting: is_deleting(snapshot),
            is_protected: has_finalizer(snapshot, PROTECTION),
            is_held: others.into_iter().any(|finalizer| finalizer != PROTECTION),
            is_ready: snapshot.data["status"]["readyToUse"] == true,
            is_described: self.is_described(),
            class: self.class_seen(),
            source: self.source(),
            content: self.content_seen(),
            made: self.made(),
        }
    }

    pub(super) fn contents(&self) -> Option<&Contents> {
        match self.answer()? {
            Answer::Whole(contents) => Some(contents),
            Answer::Missing | Answer::Making(_) | Answer::Failed(_) => None,
        }
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        match self.answer()? {
            Answer::Failed(failure) => Some(failure),
            Answer::Missing | Answer::Making(_) | Answer::Whole(_) => None,
        }
    }

    /// How long it is not tried again; None: it is time.
    pub(super) fn pause(&self) -> Option<Duration> {
        let first = self.snapshot.metadata.creation_timestamp.as_ref()?.0;
        back_off(first, self.error_time()?, self.view.now())
    }

    /// The sentence of a failure in its status.
    pub(super) fn sentence(failure: &Failure) -> String {
        format!("{}: {}", failure.reason.word(), failure.message)
    }

    fn error_time(&self) -> Option<Timestamp> {
        text(&self.snapshot.data, &["status", "error", "time"]).parse().ok()
    }

    fn answer(&self) -> Option<&Answer> {
        self.looks.answers.get(&DiskQuestion::Image(self.handle()))
    }

    fn is_described(&self) -> bool {
        let Some(contents) = self.contents() else { return false };
        let says = |key: &str, value: &str| annotation(&self.snapshot, key) == Some(value);
        says(ANNOTATION_DIGEST, &contents.digest)
            && says(ANNOTATION_FILES, &contents.files.to_string())
            && says(ANNOTATION_BYTES, &contents.bytes.to_string())
    }

    fn class_seen(&self) -> Class {
        if let Some(content) = &self.content {
            let is_ours = text(&content.data, &["spec", "driver"]) == LOCAL_DRIVER;
            return if is_ours { Class::Local } else { Class::Foreign };
        }
        let named = text(&self.snapshot.data, &["spec", "volumeSnapshotClassName"]);
        match &self.class {
            Some(class) if text(&class.data, &["driver"]) == LOCAL_DRIVER => Class::Local,
            Some(_) => Class::Foreign,
            None if named == LOCAL_CLASS && is_deleting(&self.snapshot) => Class::Local,
            // What was described was taken by us, whatever became of its class, volume and content
            // since.
            None if annotation(&self.snapshot, ANNOTATION_DIGEST).is_some() => Class::Local,
            None if named == LOCAL_CLASS => Class::Missing,
            // Without a class, whoever has the volume takes its images; and nobody else would say
            // that there is no class of that name.
            None if self.volume.as_deref().is_some_and(is_local) => match named.is_empty() {
                true => Class::Local,
                false => Class::Missing,
            },
            None => Class::Foreign,
        }
    }

    fn source(&self) -> Source {
        let source = part(&self.snapshot.data, &["spec", "source"]);
        let claim = text(source, &["persistentVolumeClaimName"]);
        if claim.is_empty() {
            return Source::NotSupported;
        }
        if self.volume.as_deref().is_some_and(is_local) {
            return Source::Volume;
        }
        let name = Name::within(namespace_of(&self.snapshot), claim);
        match self.view.get(Place::CLUSTER, &CLAIM, &name) {
            Some(_) => Source::NotBound,
            None => Source::Missing,
        }
    }

    fn content_seen(&self) -> Content {
        match (&self.content, self.looks.objects.get(&self.content_address())) {
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
        match self.answer() {
            None => Made::NotAsked,
            Some(Answer::Missing) if self.pause().is_some() => Made::MissingForNow,
            Some(Answer::Missing) => Made::Missing,
            Some(Answer::Making(_)) => Made::Making,
            Some(Answer::Whole(_)) => Made::Whole,
            Some(Answer::Failed(failure)) => {
                let said = text(&self.snapshot.data, &["status", "error", "message"]);
                let is_reported = said == Scene::sentence(failure)
                    && is_just_reported(self.error_time(), self.view.now());
                Made::Failed { is_reported }
            }
        }
    }
}

fn content_name(snapshot: &Object) -> String {
    format!("snapcontent-{}", uid_of(snapshot))
}
