//! A decision about a claim as one step.

use super::decide::{Decision, Obstacle, Why};
use super::observe::{BIND_COMPLETED, EXPANSION, PROTECTION, Scene};
use crate::filed::source_of;
use crate::kinds::{CLAIM, POD, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    HEALTHY, change, change_status, cluster_wide, conditions, finalizers_with, has_finalizer,
    name_of, namespace_of, part, put_finalizer_on, take_finalizer_off, tells, text, uid_of,
};
use crate::outside::{Disk, DiskDeed, DiskQuestion, Failure};
use crate::quantity;
use crate::storage::{LOOK_AGAIN, MOST_BACK_OFF_SECONDS, perform, wait};
use interlock_api::names::{LOCAL_DRIVER, hold_finalizer};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Importance, Object, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The finalizer of volumes that claims may use.
pub(in crate::storage) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Disk> {
    let handle = || scene.handle();
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Say(obstacle) => say(scene, &obstacle_of(scene, obstacle)),
        Decision::TakeDefaultClass => take_default_class(scene),
        Decision::Protect => Step::write(
            put_finalizer_on(&CLAIM, &scene.claim, PROTECTION),
            "a claim stays until what was made for it is gone or has a record",
        ),
        Decision::Hold => hold(scene),
        Decision::AskDisk => look(
            vec![Read::Ask(DiskQuestion::Volume(handle()))],
            "only the disk knows how far its volume is",
        ),
        Decision::Make => make(scene),
        Decision::ReportFailure => match scene.failure() {
            Some(failure) => report(scene, &failed(failure)),
            None => Step::rest("it did not fail"),
        },
        Decision::Forget => perform(
            DiskDeed::Forget(DiskQuestion::Volume(handle())),
            "the claim says why its volume could not be made",
        ),
        Decision::Record => record(scene),
        Decision::Take => take(scene),
        Decision::Bind => bind(scene),
        Decision::ReportBound => report_bound(scene),
        Decision::LookAtVolume => {
            let named = text(&scene.claim.data, &["spec", "volumeName"]);
            look(
                vec![Read::Object(cluster_wide(&VOLUME, named))],
                "its volume is another's or gone, and the cache may be behind",
            )
        }
        Decision::ReportLost => {
            let lost = json!({"phase": "Lost"});
            let note = "its volume is another's, or not there any more".to_owned();
            let event = tells(&CLAIM, &scene.claim, (Importance::Warning, "ClaimLost"), note);
            let because = "the volume that it names does not name it";
            Step::write(change_status(&CLAIM, &scene.claim, lost), because).telling(event)
        }
        Decision::DropHold => drop_hold(scene),
        Decision::LookForPods => {
            let namespace = Some(namespace_of(&scene.claim).to_owned());
            let read = Read::List { place: Place::CLUSTER, kind: POD, namespace };
            look(vec![read], "a claim goes only when no pod mounts it")
        }
        Decision::LookForRecord => look(
            vec![Read::Object(scene.record())],
            "a volume without a record goes with its claim, one with a record later",
        ),
        Decision::Delete => perform(
            DiskDeed::DeleteVolume(handle()),
            "its claim is deleted, and it was never bound to it",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&CLAIM, &scene.claim, PROTECTION),
            "no pod mounts it, and nothing is left that only the claim knows of",
        ),
    }
}

fn look(reads: Vec<Read<Disk>>, because: &str) -> Step<Disk> {
    Step::Look { reads, because: because.to_owned() }
}

fn nothing(scene: &Scene<'_>, why: Why) -> Step<Disk> {
    match why {
        Why::Making => wait("its volume is being made", LOOK_AGAIN),
        Why::BackingOff => {
            let pause = scene.pause().unwrap_or(Duration::from_secs(MOST_BACK_OFF_SECONDS as u64));
            wait("its volume could not be made, and is tried again later", pause)
        }
        Why::NotOurs => Step::rest("another storage makes its volume"),
        Why::LeftToPopulator => Step::rest("a populator fills it"),
        Why::Bound => Step::rest("it has its volume"),
        Why::Lost => Step::rest("it lost its volume"),
        Why::WaitsForVolume => Step::rest("it names a volume that is not there"),
        Why::CacheBehind => Step::rest("the server says something else than the cache"),
        Why::ImageNotReady => Step::rest("its image is not whole yet"),
        Why::InUse => Step::rest("it goes when no pod mounts it any more"),
        Why::Leaving => Step::rest("it goes, and nothing of ours is on it"),
    }
}

/// A failure as a condition of the claim.
pub(super) fn failed(failure: &Failure) -> Finding {
    Finding::fails(HEALTHY, failure.reason.word(), failure.message.clone())
}

fn obstacle_of(scene: &Scene<'_>, obstacle: Obstacle) -> Finding {
    let source = source_of(&scene.claim).map(|(_, _, name)| name).unwrap_or_default();
    let (reason, message) = match obstacle {
        Obstacle::ClassMissing => {
            let class = text(&scene.claim.data, &["spec", "storageClassName"]);
            (
                "ClassMissing",
                format!("there is no StorageClass {class}; create it, and this goes on"),
            )
        }
        Obstacle::NotSupported => {
            let what = scene.unsupported().unwrap_or_default();
            ("NotSupported", format!("local storage does not have {what}"))
        }
        Obstacle::SourceMissing => (
            "SourceMissing",
            format!("VolumeSnapshot {source} is not here; create it, and this goes on"),
        ),
        Obstacle::ImageGone => (
            "ImageGone",
            format!("VolumeSnapshot {source} is being deleted; make the claim of another"),
        ),
        Obstacle::Expansion => {
            let message = "local volumes do not grow; move the data to a claim that is larger";
            (EXPANSION, message.to_owned())
        }
        Obstacle::SizeMismatch => (
            "SizeMismatch",
            format!(
                "needs {}, and asks for {}; make the claim again with a larger request",
                quantity::readable(scene.image_bytes()),
                quantity::readable(scene.capacity())
            ),
        ),
    };
    Finding::fails(HEALTHY, reason, message)
}

/// Says it once; what it waits for is an object, whose change brings the next step.
fn say(scene: &Scene<'_>, finding: &Finding) -> Step<Disk> {
    if conditions::is_said(&scene.claim, finding) {
        return Step::rest(format!("{}: {}", finding.reason, finding.message));
    }
    report(scene, finding)
}

fn report(scene: &Scene<'_>, finding: &Finding) -> Step<Disk> {
    let found = conditions::with(&scene.claim, finding, scene.view.now());
    let note = format!("{}: {}", finding.reason, finding.message);
    let importance = (Importance::Warning, "ProvisioningFailed");
    let event = tells(&CLAIM, &scene.claim, importance, note.clone());
    let write = change_status(&CLAIM, &scene.claim, json!({"conditions": found}));
    Step::write(write, note).telling(event)
}

fn take_default_class(scene: &Scene<'_>) -> Step<Disk> {
    let Some(class) = &scene.class else { return Step::rest("there is no default class") };
    let spec = json!({"spec": {"storageClassName": name_of(class)}});
    Step::write(change(&CLAIM, &scene.claim, spec), "it names no class, and this is the default")
}

fn hold(scene: &Scene<'_>) -> Step<Disk> {
    let Some(snapshot) = &scene.snapshot else { return Step::rest("its image is not here") };
    let finalizer = hold_finalizer(uid_of(&scene.claim));
    let because = format!("claim {} is made of it", name_of(&scene.claim));
    Step::write(put_finalizer_on(&SNAPSHOT_KIND, snapshot, &finalizer), because)
}

fn drop_hold(scene: &Scene<'_>) -> Step<Disk> {
    let Some(snapshot) = scene.held.first() else { return Step::rest("it holds no image") };
    let finalizer = hold_finalizer(uid_of(&scene.claim));
    let because = format!("claim {} does not need it any more", name_of(&scene.claim));
    Step::write(take_finalizer_off(&SNAPSHOT_KIND, snapshot, &finalizer), because)
}

fn make(scene: &Scene<'_>) -> Step<Disk> {
    let deed = DiskDeed::MakeVolume {
        handle: scene.handle(),
        namespace: namespace_of(&scene.claim).to_owned(),
        capacity: scene.capacity(),
        from: scene.image(),
    };
    // What is to be made of an image is never made empty.
    if source_of(&scene.claim).is_some() && scene.image().is_none() {
        return Step::rest("its image is not known to be whole");
    }
    perform(deed, "a claim asks for it")
}

/// The claim as its volume refers to it.
fn claim_reference(claim: &Object) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
    })
}

fn record(scene: &Scene<'_>) -> Step<Disk> {
    let (claim, handle) = (&scene.claim, scene.handle());
    let class = scene.class.as_ref();
    let policy = class.map(|class| text(&class.data, &["reclaimPolicy"])).unwrap_or_default();
    let object = json!({
        "metadata": {
            "annotations": {PROVISIONED_BY: LOCAL_DRIVER},
            "finalizers": [VOLUME_PROTECTION],
        },
        "spec": {
            "accessModes": claim.data["spec"]["accessModes"],
            "capacity": {"storage": part(&claim.data, &["spec", "resources", "requests", "storage"])},
            "claimRef": claim_reference(claim),
            "csi": {"driver": LOCAL_DRIVER, "volumeHandle": handle},
            "persistentVolumeReclaimPolicy": if policy.is_empty() { "Delete" } else { policy },
            "storageClassName": text(&claim.data, &["spec", "storageClassName"]),
            "volumeMode": "Filesystem",
        },
    });
    let note = format!("volume {handle} is made");
    let event = tells(&CLAIM, claim, (Importance::Normal, "ProvisioningSucceeded"), note);
    let write = Write::Create { address: scene.record(), object };
    Step::write(write, "its volume is whole on the disk").telling(event)
}

fn take(scene: &Scene<'_>) -> Step<Disk> {
    let Some(volume) = &scene.volume else { return Step::rest("its volume is not here") };
    let spec = json!({"spec": {"claimRef": claim_reference(&scene.claim)}});
    Step::write(change(&VOLUME, volume, spec), "a claim names it, and it is for nobody")
}

fn bind(scene: &Scene<'_>) -> Step<Disk> {
    let (claim, Some(volume)) = (&scene.claim, &scene.volume) else {
        return Step::rest("its volume is not here");
    };
    let mut metadata = json!({"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}});
    if !has_finalizer(claim, PROTECTION) {
        metadata["finalizers"] = json!(finalizers_with(claim, PROTECTION));
    }
    let spec = json!({"volumeName": name_of(volume)});
    let write = change(&CLAIM, claim, json!({"metadata": metadata, "spec": spec}));
    Step::write(write, format!("volume {} is for this very claim", name_of(volume)))
}

fn report_bound(scene: &Scene<'_>) -> Step<Disk> {
    let (claim, Some(volume)) = (&scene.claim, &scene.volume) else {
        return Step::rest("its volume is not here");
    };
    if crate::objects::annotation(claim, BIND_COMPLETED).is_none() {
        let metadata = json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}});
        return Step::write(change(&CLAIM, claim, metadata), "each names the other");
    }
    let mut status = scene.bound_status(volume);
    status["conditions"] = json!(conditions::without(claim, HEALTHY));
    Step::write(change_status(&CLAIM, claim, status), "it has its volume")
}
