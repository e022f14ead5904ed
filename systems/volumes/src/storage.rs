//! Local storage: volumes and images as folders of the machine, bound as Kubernetes binds them.
//!
//! It makes the volumes of claims whose class has the provisioner `local.interlock.dev`, and takes
//! the images that are asked of them. A step is about one claim, one volume or one image; each does
//! one thing to one object, or to the disk.
//!
//! * `claim`: makes a volume for a claim, empty or of an image, and binds the two.
//! * `volume`: what becomes of a volume whose claim is gone.
//! * `image`: takes images, says when they are whole, and deletes them when nobody holds them.
//!
//! What is on the disk has the uid of a claim or of a VolumeSnapshot in its name, so that nothing
//! that was made again under an old name ever meets what is left of the one before.

pub mod claim;
pub mod image;
#[cfg(test)]
mod tests;
pub mod volume;

use crate::filed::{
    CLAIMS_BY_CLASS, CLAIMS_BY_SNAPSHOT, CLAIMS_BY_VOLUME, CONTENTS_BY_SNAPSHOT, PODS_BY_CLAIM,
    SNAPSHOTS_BY_HOLDER, SNAPSHOTS_BY_SOURCE, VOLUMES_BY_CLAIM, VOLUMES_BY_CLAIM_NAME, mounted,
};
use crate::kinds::{CLAIM, CONTENT, POD, SNAPSHOT_CLASS, SNAPSHOT_KIND, STORAGE_CLASS, VOLUME};
use crate::objects::{name_of, text, uid_of};
use crate::outside::{Disk, DiskDeed};
use interlock_api::names::LOCAL_DRIVER;
use interlock_kernel::{
    Controller, Deed, Effect, Looks, Name, Object, Place, Right, Step, Subject, Verb, View, Watch,
    Watcher,
};
use jiff::Timestamp;
use kube_core::DynamicObject;
use std::time::Duration;

/// How soon something that is being made is looked at again: its end is no news of the API.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// The shortest time between two attempts at something that failed.
const LEAST_BACK_OFF_SECONDS: i64 = 5;
/// The longest.
const MOST_BACK_OFF_SECONDS: i64 = 300;

/// The storage of one cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Storage;

/// A subject is one of these, with the name of an object behind a colon.
const OF_CLAIM: &str = "claim:";
const OF_VOLUME: &str = "volume:";
const OF_IMAGE: &str = "image:";

fn subject(of: &str, name: &str) -> Subject {
    Subject::from(format!("{of}{name}"))
}

fn about(of: &str, object: &Object) -> Subject {
    subject(of, &Name::of(object).to_string())
}

impl Watcher for Storage {
    fn name(&self) -> &'static str {
        "volumes/storage"
    }

    fn watches(&self) -> Vec<Watch> {
        let all = |kind| Watch::all(Place::CLUSTER, kind);
        vec![
            all(&CLAIM).by(&CLAIMS_BY_CLASS).by(&CLAIMS_BY_SNAPSHOT).by(&CLAIMS_BY_VOLUME),
            all(&VOLUME).by(&VOLUMES_BY_CLAIM).by(&VOLUMES_BY_CLAIM_NAME),
            all(&SNAPSHOT_KIND).by(&SNAPSHOTS_BY_HOLDER).by(&SNAPSHOTS_BY_SOURCE),
            all(&CONTENT).by(&CONTENTS_BY_SNAPSHOT),
            all(&STORAGE_CLASS),
            all(&SNAPSHOT_CLASS),
            all(&POD).by(&PODS_BY_CLAIM),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&CLAIM, &[Verb::Patch, Verb::PatchStatus]),
                (&VOLUME, &[Verb::Create, Verb::Patch, Verb::PatchStatus, Verb::Delete]),
                (&SNAPSHOT_KIND, &[Verb::Patch, Verb::PatchStatus]),
                (&CONTENT, &[Verb::Create, Verb::Patch, Verb::PatchStatus, Verb::Delete]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let name = Name::of(object).to_string();
        let find = |index, of: &str| -> Vec<Subject> {
            let found = view.find(Place::CLUSTER, index, &name);
            found.iter().map(|object| about(of, object)).collect()
        };
        if watch.kind == CLAIM {
            let mut subjects = vec![about(OF_CLAIM, object)];
            let found = view.find(Place::CLUSTER, &VOLUMES_BY_CLAIM, uid_of(object));
            subjects.extend(found.iter().map(|volume| about(OF_VOLUME, volume)));
            let named = text(&object.data, &["spec", "volumeName"]);
            if !named.is_empty() {
                subjects.push(subject(OF_VOLUME, named));
            }
            subjects.extend(find(&SNAPSHOTS_BY_SOURCE, OF_IMAGE));
            return subjects;
        }
        if watch.kind == VOLUME {
            let mut subjects = vec![about(OF_VOLUME, object)];
            let claim = &object.data["spec"]["claimRef"];
            let (namespace, claim) = (text(claim, &["namespace"]), text(claim, &["name"]));
            if !claim.is_empty() {
                subjects.push(subject(OF_CLAIM, &format!("{namespace}/{claim}")));
            }
            subjects.extend(find(&CLAIMS_BY_VOLUME, OF_CLAIM));
            return subjects;
        }
        if watch.kind == SNAPSHOT_KIND {
            let mut subjects = vec![about(OF_IMAGE, object)];
            subjects.extend(find(&CLAIMS_BY_SNAPSHOT, OF_CLAIM));
            return subjects;
        }
        if watch.kind == CONTENT {
            let of = part_of_snapshot(object);
            return vec![subject(OF_IMAGE, &of)];
        }
        if watch.kind == STORAGE_CLASS {
            let mut waiting = view.find(Place::CLUSTER, &CLAIMS_BY_CLASS, name_of(object));
            waiting.extend(view.find(Place::CLUSTER, &CLAIMS_BY_CLASS, ""));
            return waiting.iter().map(|claim| about(OF_CLAIM, claim)).collect();
        }
        if watch.kind == SNAPSHOT_CLASS {
            let images = view.list(Place::CLUSTER, &SNAPSHOT_KIND, None);
            return images.iter().map(|image| about(OF_IMAGE, image)).collect();
        }
        of_pod(object, view)
    }
}

impl Controller for Storage {
    type Outside = Disk;

    fn step(&self, subject: &Subject, view: &dyn View, looks: &Looks<Disk>) -> Step<Disk> {
        let name = |name: &str| match name.split_once('/') {
            Some((namespace, name)) => Name::within(namespace, name),
            None => Name::cluster_wide(name),
        };
        if let Some(claim) = subject.strip_prefix(OF_CLAIM) {
            return claim::step(&name(claim), view, looks);
        }
        if let Some(volume) = subject.strip_prefix(OF_VOLUME) {
            return volume::step(&name(volume), view, looks);
        }
        if let Some(image) = subject.strip_prefix(OF_IMAGE) {
            return image::step(&name(image), view, looks);
        }
        Step::rest("no such subject")
    }
}

fn part_of_snapshot(content: &DynamicObject) -> String {
    let of = &content.data["spec"]["volumeSnapshotRef"];
    format!("{}/{}", text(of, &["namespace"]), text(of, &["name"]))
}

/// A pod that ends lets go of its claims, and of volumes whose claims are gone already.
fn of_pod(pod: &Object, view: &dyn View) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for claim in mounted(pod) {
        let volumes = view.find(Place::CLUSTER, &VOLUMES_BY_CLAIM_NAME, &claim);
        subjects.extend(volumes.iter().map(|volume| about(OF_VOLUME, volume)));
        subjects.push(subject(OF_CLAIM, &claim));
    }
    subjects
}

/// Whether a volume is one of ours.
fn is_local(volume: &DynamicObject) -> bool {
    text(&volume.data, &["spec", "csi", "driver"]) == LOCAL_DRIVER
}

/// The name of a volume on the disk.
fn handle_of(volume: &DynamicObject) -> &str {
    text(&volume.data, &["spec", "csi", "volumeHandle"])
}

/// The name of the volume that is made for a claim: on the disk, and of the PersistentVolume.
fn handle_for(claim: &DynamicObject) -> String {
    format!("pvc-{}", uid_of(claim))
}

fn perform(deed: DiskDeed, because: &str) -> Step<Disk> {
    let because = because.to_owned();
    Step::Act(Box::new(Effect { deed: Deed::Outside(deed), because, event: None }))
}

fn wait(because: &str, at_most: Duration) -> Step<Disk> {
    Step::Wait { because: because.to_owned(), at_most }
}

/// How long until the next attempt at something that has failed since `first`, and last at `last`:
/// as long again as it has failed so far, within limits. None: it is time.
fn back_off(first: Timestamp, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let seconds = last.as_second().saturating_sub(first.as_second());
    let pause = seconds.clamp(LEAST_BACK_OFF_SECONDS, MOST_BACK_OFF_SECONDS);
    let left = last.as_second().saturating_add(pause).saturating_sub(now.as_second());
    let left = u64::try_from(left).ok().filter(|left| *left > 0)?;
    // A clock that was set back does not make anybody wait for longer than this.
    Some(Duration::from_secs(left.min(MOST_BACK_OFF_SECONDS as u64)))
}

/// Whether a failure that was reported then is the one that is seen now: no other attempt can have
/// been made since.
fn is_just_reported(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_some_and(|last| {
        now.as_second().saturating_sub(last.as_second()) < LEAST_BACK_OFF_SECONDS
    })
}
