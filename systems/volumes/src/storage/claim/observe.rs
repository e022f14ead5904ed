//! What is seen of a claim, of its volume, of its snapshot and of the disk.

use super::decide::{Class, Facts, Made, Obstacle, Pods, Snapshot, Source, Volume};
use super::finding;
use crate::filed::{
    PODS_BY_CLAIM, SNAPSHOTS_BY_HOLDER, VOLUMES_BY_CLAIM, has_ended, mounted, source_of,
};
use crate::kinds::{CLAIM, CONTENT, POD, SNAPSHOT_KIND, STORAGE_CLASS, VOLUME};
use crate::objects::{
    HEALTHY, annotation, bytes, cluster_wide, conditions, has_finalizer, is_deleting, is_same,
    name_of, namespace_of, part, text, uid_of,
};
use crate::outside::{Disk, DiskQuestion, Failure, Made as Answer};
use crate::storage::{back_off, handle_for, is_just_reported, is_local};
use interlock_api::names::{
    ANNOTATION_DIGEST, ANNOTATION_SNAPSHOT, LOCAL_CLASS, LOCAL_DRIVER, hold_finalizer,
};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, View};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

/// The finalizer of claims that pods may use.
pub(super) const PROTECTION: &str = "kubernetes.io/pvc-protection";
/// On a claim: it has its volume for good.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The reason of a claim that asks for more than its volume has.
pub(super) const EXPANSION: &str = "ExpansionNotSupported";
const IS_DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The objects that a step about one claim is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) claim: Object,
    /// The class that makes its volume, or would.
    pub(super) class: Option<Object>,
    /// The volume that it names, or that names it.
    pub(super) volume: Option<Object>,
    /// The snapshot that it is made of.
    pub(super) snapshot: Option<Object>,
    /// The same on the disk, once it is known there.
    pub(super) on_disk: Option<OnDisk>,
    /// The snapshots that it holds.
    pub(super) held: Vec<Object>,
    /// Why its volume could not be made.
    pub(super) failure: Option<Failure>,
    /// How long it is not tried again; None: it is time.
    pub(super) pause: Option<Duration>,
}

/// A snapshot on the disk.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) handle: String,
    pub(super) digest: String,
}

/// Reads what a step is about.
pub(super) fn observe(
    name: &Name,
    view: &dyn View,
    live_reads: &LiveReads<Disk>,
) -> Observed<Facts, Scene> {
    let Some(claim) = view.get(Place::CLUSTER, &CLAIM, name) else {
        return Observed::nothing(
            "the claim is not in the cache; only a live read can show that it is gone",
        );
    };
    let snapshot = snapshot_of(&claim, view);
    let failure = match live_reads.answers.get(&DiskQuestion::Volume(handle_for(&claim))) {
        Some(Answer::Failed(failure)) => Some(failure.clone()),
        Some(Answer::Missing | Answer::Making(_) | Answer::Whole(_)) | None => None,
    };
    let scene = Scene {
        now: view.now(),
        class: class_of(&claim, view),
        volume: volume_of(&claim, view),
        on_disk: snapshot.as_ref().and_then(|snapshot| on_disk(snapshot, view)),
        held: held(&claim, view, live_reads),
        pause: pause_of(&claim, view.now()),
        failure,
        snapshot,
        claim,
    };
    Observed::Seen { facts: Reading { scene: &scene, view, live_reads }.facts(), scene }
}

impl Scene {
    pub(super) fn handle(&self) -> String {
        handle_for(&self.claim)
    }

    /// The bytes that it asks for.
    pub(super) fn capacity(&self) -> u64 {
        let size = part(&self.claim.data, &["spec", "resources", "requests", "storage"]);
        bytes(size).unwrap_or(0)
    }

    /// The PersistentVolume of the volume that is made for it.
    pub(super) fn record(&self) -> Address {
        cluster_wide(&VOLUME, &self.handle())
    }

    /// What happens to its volume after it: as its class says, and else it is deleted.
    pub(super) fn reclaim_policy(&self) -> &str {
        let policy = self.class.as_deref().map(|class| text(&class.data, &["reclaimPolicy"]));
        policy.filter(|policy| !policy.is_empty()).unwrap_or("Delete")
    }

    /// What it asks for that is not to be had, in words.
    pub(super) fn unsupported(&self) -> Option<String> {
        let spec = &self.claim.data["spec"];
        if text(spec, &["volumeMode"]) == "Block" {
            return Some("volumeMode Block; use Filesystem".to_owned());
        }
        if spec["selector"].is_object() {
            return Some(
                "a selector; volumes are created and not selected, so remove spec.selector"
                    .to_owned(),
            );
        }
        match source_of(&self.claim) {
            Some(("", kind, _)) => {
                Some(format!("a {kind} as source; take a VolumeSnapshot of it and use that"))
            }
            Some(_) | None => None,
        }
    }

    /// The bytes that its snapshot needs.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        let snapshot = self.snapshot.as_deref();
        let size = snapshot.map(|found| part(&found.data, &["status", "restoreSize"]));
        size.and_then(bytes).unwrap_or(0)
    }

    /// What it says of itself once it is bound to this volume.
    pub(super) fn bound_status(&self, volume: &DynamicObject) -> Value {
        json!({
            "phase": "Bound",
            "accessModes": volume.data["spec"]["accessModes"],
            "capacity": {"storage": part(&volume.data, &["spec", "capacity", "storage"])},
        })
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
        let scene = self.scene;
        let claim = &scene.claim;
        Facts {
            is_deleting: is_deleting(claim),
            is_protected: has_finalizer(claim, PROTECTION),
            pods: self.pods(),
            volume: self.volume(),
            is_reported: self.is_reported(),
            was_bound: annotation(claim, BIND_COMPLETED).is_some(),
            wants_more: self.wants_more(),
            class: self.class(),
            is_unsupported: scene.unsupported().is_some(),
            source: self.source(),
            has_hold: !scene.held.is_empty(),
            made: self.made(),
            has_record: self.live_reads.objects.get(&scene.record()).map(Option::is_some),
            said: Obstacle::ALL.into_iter().find(|obstacle| {
                conditions::is_said(claim, &finding::of_obstacle(scene, *obstacle))
            }),
        }
    }

    fn pods(&self) -> Pods {
        let claim = &self.scene.claim;
        let name = Name::of(claim).to_string();
        if self.view.count(Place::CLUSTER, &PODS_BY_CLAIM, &name) > 0 {
            return Pods::Some;
        }
        let namespace = namespace_of(claim).to_owned();
        match self.live_reads.lists.get(&(Place::CLUSTER, POD, Some(namespace))) {
            None => Pods::NoneSeen,
            Some(pods) => {
                let is_mounted =
                    pods.iter().any(|pod| !has_ended(pod) && mounted(pod).contains(&name));
                if is_mounted { Pods::Some } else { Pods::None }
            }
        }
    }

    fn volume(&self) -> Volume {
        let claim = &self.scene.claim;
        let named = text(&claim.data, &["spec", "volumeName"]);
        let Some(volume) = &self.scene.volume else {
            return if named.is_empty() { Volume::None } else { self.read_volume(named) };
        };
        if !is_local(volume) {
            return Volume::Foreign;
        }
        let owner = part(&volume.data, &["spec", "claimRef"]);
        match (named.is_empty(), text(owner, &["uid"]) == uid_of(claim)) {
            (true, _) => Volume::Offered,
            (false, true) => Volume::Mine,
            (false, false) if owner.is_null() && !is_deleting(volume) => Volume::Free,
            (false, false) => self.read_volume(named),
        }
    }

    /// A volume is lost only when the server itself says so.
    fn read_volume(&self, named: &str) -> Volume {
        match self.live_reads.objects.get(&cluster_wide(&VOLUME, named)) {
            None => Volume::NotSeen,
            Some(None) => Volume::Lost,
            Some(Some(found)) => {
                let owner = text(&found.data, &["spec", "claimRef", "uid"]);
                if owner.is_empty() || owner == uid_of(&self.scene.claim) {
                    Volume::Behind
                } else {
                    Volume::Lost
                }
            }
        }
    }

    fn is_reported(&self) -> bool {
        let Scene { claim, volume, .. } = self.scene;
        let status = &claim.data["status"];
        match volume {
            Some(volume) if text(&volume.data, &["spec", "claimRef", "uid"]) == uid_of(claim) => {
                let wanted = self.scene.bound_status(volume);
                let says = |key: &str| status[key] == wanted[key];
                let is_healthy = conditions::find(claim, HEALTHY)
                    .is_none_or(|condition| condition["reason"] == EXPANSION);
                ["phase", "accessModes", "capacity"].into_iter().all(says)
                    && annotation(claim, BIND_COMPLETED).is_some()
                    && is_healthy
            }
            Some(_) | None => text(status, &["phase"]) == "Lost",
        }
    }

    fn wants_more(&self) -> bool {
        let volume = self.scene.volume.as_deref();
        let has = volume.map(|volume| part(&volume.data, &["spec", "capacity", "storage"]));
        has.and_then(bytes).is_some_and(|has| has < self.scene.capacity())
    }

    fn class(&self) -> Class {
        let named = &self.scene.claim.data["spec"]["storageClassName"];
        match (&self.scene.class, named.as_str()) {
            (Some(class), _) if text(&class.data, &["provisioner"]) != LOCAL_DRIVER => {
                Class::Foreign
            }
            (Some(_), Some(_)) => Class::Local,
            (Some(_), None) => Class::Default,
            (None, Some(LOCAL_CLASS)) => Class::Missing,
            (None, _) => Class::Foreign,
        }
    }

    fn source(&self) -> Source {
        match source_of(&self.scene.claim) {
            None => Source::Empty,
            // What cannot be a source is distinguished before anything is made.
            Some(("", ..)) => Source::Empty,
            Some((group, kind, _)) if is_snapshot(group, kind) => Source::Snapshot(self.snapshot()),
            Some(_) => Source::Populator,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let Scene { claim, snapshot, on_disk, .. } = self.scene;
        let Some(snapshot) = snapshot else { return Snapshot::Missing };
        // Whoever asks for one snapshot by its uid gets no namesake of it.
        let meant = annotation(claim, ANNOTATION_SNAPSHOT);
        if meant.is_some_and(|meant| !is_same(snapshot, meant)) {
            return Snapshot::Missing;
        }
        if is_deleting(snapshot) {
            return Snapshot::Dying;
        }
        let is_ready = snapshot.data["status"]["readyToUse"] == true;
        if !is_ready || on_disk.is_none() {
            return Snapshot::NotReady;
        }
        let is_too_large = self.scene.snapshot_bytes() > self.scene.capacity();
        if is_too_large { Snapshot::TooLarge } else { Snapshot::Ready }
    }

    fn made(&self) -> Made {
        let Scene { claim, pause, .. } = self.scene;
        match self.live_reads.answers.get(&DiskQuestion::Volume(self.scene.handle())) {
            None => Made::NotAsked,
            Some(Answer::Missing) if pause.is_some() => Made::MissingForNow,
            Some(Answer::Missing) => Made::Missing,
            Some(Answer::Making(_)) => Made::Making,
            Some(Answer::Whole(_)) => Made::Whole,
            Some(Answer::Failed(failure)) => {
                let condition = conditions::find(claim, HEALTHY);
                let last = condition.and_then(|found| conditions::time(found, "lastProbeTime"));
                let is_reported = conditions::is_said(claim, &finding::of_failure(failure))
                    && is_just_reported(last, self.scene.now);
                Made::Failed { is_reported }
            }
        }
    }
}

fn is_snapshot(group: &str, kind: &str) -> bool {
    group == SNAPSHOT_KIND.group && kind == SNAPSHOT_KIND.kind
}

/// Where the snapshot is that a claim is made of; None: it is made of none.
pub(super) fn snapshot_address(claim: &DynamicObject) -> Option<Address> {
    let (group, kind, source) = source_of(claim)?;
    let name = Name::within(namespace_of(claim), source);
    is_snapshot(group, kind).then(|| Address::new(Place::CLUSTER, &SNAPSHOT_KIND, name))
}

/// The snapshot that a claim is made of.
fn snapshot_of(claim: &DynamicObject, view: &dyn View) -> Option<Object> {
    let Address { place, kind, name } = snapshot_address(claim)?;
    view.get(place, &kind, &name)
}

/// The snapshots that a claim holds: none but the one that it is made of, which may have been read live.
/// A claim that a populator fills has its hold from the populator, which drops it when PVC' is gone.
fn held(claim: &DynamicObject, view: &dyn View, live_reads: &LiveReads<Disk>) -> Vec<Object> {
    let uid = uid_of(claim);
    let Some(snapshot) = snapshot_address(claim) else { return Vec::new() };
    let Some(live) = live_reads.objects.get(&snapshot) else {
        return view.find(Place::CLUSTER, &SNAPSHOTS_BY_HOLDER, uid);
    };
    let is_held = |snapshot: &&Object| has_finalizer(snapshot, &hold_finalizer(uid));
    live.iter().filter(is_held).cloned().collect()
}

/// A snapshot on the disk, once its name and its digest are known.
fn on_disk(snapshot: &DynamicObject, view: &dyn View) -> Option<OnDisk> {
    let content = text(&snapshot.data, &["status", "boundVolumeSnapshotContentName"]);
    let content = view.get(Place::CLUSTER, &CONTENT, &Name::cluster_wide(content))?;
    let handle = text(&content.data, &["status", "snapshotHandle"]);
    let is_ours = text(&content.data, &["spec", "driver"]) == LOCAL_DRIVER
        && text(&content.data, &["spec", "volumeSnapshotRef", "uid"]) == uid_of(snapshot);
    let digest = annotation(snapshot, ANNOTATION_DIGEST)?;
    let found = || OnDisk { handle: handle.to_owned(), digest: digest.to_owned() };
    (is_ours && !handle.is_empty()).then(found)
}

/// How long after a failure there is no further attempt; None: it is time.
fn pause_of(claim: &DynamicObject, now: Timestamp) -> Option<Duration> {
    let condition = conditions::find(claim, HEALTHY)?;
    let first = conditions::time(condition, "lastTransitionTime")?;
    let last = conditions::time(condition, "lastProbeTime")?;
    back_off(first, last, now).filter(|_| condition["status"] == "False")
}

fn class_of(claim: &DynamicObject, view: &dyn View) -> Option<Object> {
    if let Some(named) = claim.data["spec"]["storageClassName"].as_str() {
        return view.get(Place::CLUSTER, &STORAGE_CLASS, &Name::cluster_wide(named));
    }
    let classes = view.list(Place::CLUSTER, &STORAGE_CLASS, None);
    // Of several defaults the newest counts, as in Kubernetes.
    classes.into_iter().filter(|class| annotation(class, IS_DEFAULT_CLASS) == Some("true")).max_by(
        |a, b| {
            let age = |class: &Object| class.metadata.creation_timestamp.as_ref().map(|t| t.0);
            age(a).cmp(&age(b)).then_with(|| name_of(b).cmp(name_of(a)))
        },
    )
}

fn volume_of(claim: &DynamicObject, view: &dyn View) -> Option<Object> {
    let named = text(&claim.data, &["spec", "volumeName"]);
    if !named.is_empty() {
        return view.get(Place::CLUSTER, &VOLUME, &Name::cluster_wide(named));
    }
    let mut offered = view.find(Place::CLUSTER, &VOLUMES_BY_CLAIM, uid_of(claim)).into_iter();
    offered.find(|volume| {
        is_local(volume)
            && !is_deleting(volume)
            && text(&volume.data, &["status", "phase"]) != "Released"
    })
}
