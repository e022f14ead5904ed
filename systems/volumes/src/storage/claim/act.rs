//! A decision about a claim as one step.

use super::decide::{Decision, Why};
use super::finding::{of_failure, of_obstacle};
use super::observe::{BIND_COMPLETED, OnDisk, PROTECTION, Scene, image_address};
use crate::kinds::{CLAIM, POD, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    HEALTHY, change, change_status, cluster_wide, conditions, finalizers_with, name_of,
    namespace_of, part, put_finalizer_on, take_finalizer_off, tells, text, uid_of,
};
use crate::outside::{Disk, DiskDeed, DiskQuestion};
use crate::storage::{LOOK_AGAIN, back_off_for, look, on, perform, wait};
use interlock_api::names::{LOCAL_DRIVER, hold_finalizer};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Importance, Object, Place, Read, Step, Write};
use serde_json::{Value, json};

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The finalizer of volumes that claims may use.
pub(in crate::storage) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Disk> {
    let volume = || DiskQuestion::Volume(scene.handle());
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Say(obstacle) => report(scene, &of_obstacle(scene, obstacle)),
        Decision::TakeDefaultClass => take_default_class(scene),
        Decision::Protect => Step::write(
            put_finalizer_on(&CLAIM, &scene.claim, PROTECTION),
            "a claim stays until what was made for it is gone or has a record",
        ),
        Decision::Hold => hold(scene),
        Decision::AskDisk => {
            look(vec![Read::Ask(volume())], "only the disk knows how far its volume is")
        }
        Decision::MakeEmpty => make(scene, None),
        Decision::MakeOfImage => on(scene.image.as_ref(), |image| make(scene, Some(image))),
        Decision::ReportFailure => {
            on(scene.failure.as_ref(), |failure| report(scene, &of_failure(failure)))
        }
        Decision::Forget => {
            let because = "the claim says why its volume could not be made";
            perform(DiskDeed::Forget(volume()), because)
        }
        Decision::Record => record(scene),
        Decision::Take => take(scene),
        Decision::Bind { protects } => {
            on(scene.volume.as_ref(), |volume| bind(&scene.claim, volume, protects))
        }
        Decision::CompleteBinding => {
            let metadata = json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}});
            Step::write(change(&CLAIM, &scene.claim, metadata), "each names the other")
        }
        Decision::ReportBound => on(scene.volume.as_ref(), |volume| report_bound(scene, volume)),
        Decision::LookAtVolume => look_at_volume(scene),
        Decision::ReportLost => report_lost(scene),
        Decision::DropHold => drop_hold(scene),
        Decision::LookForPods => {
            let namespace = Some(namespace_of(&scene.claim).to_owned());
            let pods = Read::List { place: Place::CLUSTER, kind: POD, namespace };
            // A hold that the cache does not show yet would stay for ever once the claim is gone.
            let image = image_address(&scene.claim).map(Read::Object);
            let reads = [pods].into_iter().chain(image).collect();
            look(reads, "a claim goes only when no pod mounts it and it holds no image")
        }
        Decision::LookForRecord => look(
            vec![Read::Object(scene.record())],
            "a volume without a record goes with its claim, one with a record later",
        ),
        Decision::Delete => perform(
            DiskDeed::DeleteVolume(scene.handle()),
            "its claim is deleted, and it was never bound to it",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&CLAIM, &scene.claim, PROTECTION),
            "no pod mounts it, and nothing is left that only the claim knows of",
        ),
    }
}

fn nothing(scene: &Scene, why: Why) -> Step<Disk> {
    match why {
        Why::Making => wait("its volume is being made", LOOK_AGAIN),
        Why::BackingOff => {
            back_off_for(scene.pause, "its volume could not be made, and is tried again later")
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
        Why::Said(obstacle) => Step::rest(note_of(&of_obstacle(scene, obstacle))),
    }
}

fn note_of(finding: &Finding) -> String {
    format!("{}: {}", finding.reason, finding.message)
}

fn report(scene: &Scene, finding: &Finding) -> Step<Disk> {
    let found = conditions::with(&scene.claim, finding, scene.now);
    let note = note_of(finding);
    let importance = (Importance::Warning, "ProvisioningFailed");
    let event = tells(&CLAIM, &scene.claim, importance, note.clone());
    let write = change_status(&CLAIM, &scene.claim, json!({"conditions": found}));
    Step::write(write, note).telling(event)
}

fn take_default_class(scene: &Scene) -> Step<Disk> {
    on(scene.class.as_ref(), |class| {
        let spec = json!({"spec": {"storageClassName": name_of(class)}});
        let because = "it names no class, and this is the default";
        Step::write(change(&CLAIM, &scene.claim, spec), because)
    })
}

fn hold(scene: &Scene) -> Step<Disk> {
    on(scene.snapshot.as_ref(), |snapshot| {
        let finalizer = hold_finalizer(uid_of(&scene.claim));
        let because = format!("claim {} is made of it", name_of(&scene.claim));
        Step::write(put_finalizer_on(&SNAPSHOT_KIND, snapshot, &finalizer), because)
    })
}

fn drop_hold(scene: &Scene) -> Step<Disk> {
    on(scene.held.first(), |snapshot| {
        let finalizer = hold_finalizer(uid_of(&scene.claim));
        let because = format!("claim {} does not need it any more", name_of(&scene.claim));
        Step::write(take_finalizer_off(&SNAPSHOT_KIND, snapshot, &finalizer), because)
    })
}

fn make(scene: &Scene, image: Option<&OnDisk>) -> Step<Disk> {
    let deed = DiskDeed::MakeVolume {
        handle: scene.handle(),
        namespace: namespace_of(&scene.claim).to_owned(),
        capacity: scene.capacity(),
        from: image.map(|image| (image.handle.clone(), image.digest.clone())),
    };
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

fn record(scene: &Scene) -> Step<Disk> {
    let (claim, handle) = (&scene.claim, scene.handle());
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
            "persistentVolumeReclaimPolicy": scene.reclaim_policy(),
            "storageClassName": text(&claim.data, &["spec", "storageClassName"]),
            "volumeMode": "Filesystem",
        },
    });
    let note = format!("volume {handle} is made");
    let event = tells(&CLAIM, claim, (Importance::Normal, "ProvisioningSucceeded"), note);
    let write = Write::Create { address: scene.record(), object };
    Step::write(write, "its volume is whole on the disk").telling(event)
}

fn take(scene: &Scene) -> Step<Disk> {
    on(scene.volume.as_ref(), |volume| {
        let spec = json!({"spec": {"claimRef": claim_reference(&scene.claim)}});
        Step::write(change(&VOLUME, volume, spec), "a claim names it, and it is for nobody")
    })
}

fn bind(claim: &Object, volume: &Object, protects: bool) -> Step<Disk> {
    let mut metadata = json!({"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}});
    if protects {
        metadata["finalizers"] = json!(finalizers_with(claim, PROTECTION));
    }
    let spec = json!({"volumeName": name_of(volume)});
    let write = change(&CLAIM, claim, json!({"metadata": metadata, "spec": spec}));
    Step::write(write, format!("volume {} is for this very claim", name_of(volume)))
}

fn report_bound(scene: &Scene, volume: &Object) -> Step<Disk> {
    let mut status = scene.bound_status(volume);
    status["conditions"] = json!(conditions::without(&scene.claim, HEALTHY));
    Step::write(change_status(&CLAIM, &scene.claim, status), "it has its volume")
}

fn look_at_volume(scene: &Scene) -> Step<Disk> {
    let named = text(&scene.claim.data, &["spec", "volumeName"]);
    let because = "its volume is another's or gone, and the cache may be behind";
    look(vec![Read::Object(cluster_wide(&VOLUME, named))], because)
}

fn report_lost(scene: &Scene) -> Step<Disk> {
    let lost = json!({"phase": "Lost"});
    let note = "its volume is another's, or not there any more".to_owned();
    let event = tells(&CLAIM, &scene.claim, (Importance::Warning, "ClaimLost"), note);
    let because = "the volume that it names does not name it";
    Step::write(change_status(&CLAIM, &scene.claim, lost), because).telling(event)
}
