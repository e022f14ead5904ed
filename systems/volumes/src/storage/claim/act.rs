//! A decision about a claim as one step.

use super::decide::{Decision, Why};
use super::finding::{of_failure, of_obstacle};
use super::observe::{BIND_COMPLETED, OnDisk, PROTECTION, Scene, snapshot_address};
use crate::kinds::{CLAIM, POD, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    HEALTHY, change, change_status, cluster_wide, conditions, finalizers_with, name_of,
    namespace_of, part, put_finalizer_on, take_finalizer_off, tells, text, uid_of, warns,
};
use crate::outside::{Disk, DiskAction, DiskQuestion};
use crate::storage::{REQUEUE_AFTER, back_off_for, live_read, on, wait};
use interlock_api::names::{LOCAL_DRIVER, hold_finalizer};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Object, Place, Read, Step, Write};
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
            "the claim stays until its volume is deleted or has a PersistentVolume",
        ),
        Decision::Hold => hold(scene),
        Decision::AskDisk => {
            live_read(vec![Read::Ask(volume())], "asking the disk for the state of the volume")
        }
        Decision::MakeEmpty => make(scene, None),
        Decision::MakeOfSnapshot => on(scene.on_disk.as_ref(), |from| make(scene, Some(from))),
        Decision::ReportFailure => {
            on(scene.failure.as_ref(), |failure| report(scene, &of_failure(failure)))
        }
        Decision::Forget => {
            let because = "the claim reports why its volume could not be created";
            Step::outside(DiskAction::Forget(volume()), because)
        }
        Decision::Record => record(scene),
        Decision::Take => take(scene),
        Decision::Bind { protects } => {
            on(scene.volume.as_ref(), |volume| bind(&scene.claim, volume, protects))
        }
        Decision::CompleteBinding => {
            let metadata = json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}});
            Step::write(
                change(&CLAIM, &scene.claim, metadata),
                "the claim and the volume name each other",
            )
        }
        Decision::ReportBound => on(scene.volume.as_ref(), |volume| report_bound(scene, volume)),
        Decision::ReadVolume => read_volume(scene),
        Decision::ReportLost => report_lost(scene),
        Decision::DropHold => drop_hold(scene),
        Decision::ReadPods => {
            let namespace = Some(namespace_of(&scene.claim).to_owned());
            let pods = Read::List { place: Place::CLUSTER, kind: POD, namespace };
            // A hold that the cache does not show yet would stay for ever once the claim is gone.
            let snapshot = snapshot_address(&scene.claim).map(Read::Object);
            let reads = [pods].into_iter().chain(snapshot).collect();
            live_read(
                reads,
                "a claim is deleted only when no pod mounts it and it holds no snapshot",
            )
        }
        Decision::ReadRecord => live_read(
            vec![Read::Object(scene.record())],
            "a volume without a PersistentVolume is deleted with its claim",
        ),
        Decision::Delete => Step::outside(
            DiskAction::DeleteVolume(scene.handle()),
            "the claim was deleted, and the volume was never bound to it",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&CLAIM, &scene.claim, PROTECTION),
            "no pod mounts the claim, and its volume is deleted or has a PersistentVolume",
        ),
    }
}

fn nothing(scene: &Scene, why: Why) -> Step<Disk> {
    match why {
        Why::Making => wait("the volume is being created", REQUEUE_AFTER),
        Why::BackingOff => back_off_for(
            scene.pause,
            "the volume could not be created; the storage tries again later",
        ),
        Why::NotOurs => Step::rest("another provisioner creates the volume"),
        Why::LeftToPopulator => Step::rest("the populator fills the claim"),
        Why::Bound => Step::rest("the claim has its volume"),
        Why::Lost => Step::rest("the claim lost its volume"),
        Why::WaitsForVolume => Step::rest("the claim names a volume that does not exist"),
        Why::CacheBehind => Step::rest("the live state differs from the cache"),
        Why::SnapshotNotReady => Step::rest("the snapshot is not complete yet"),
        Why::InUse => Step::rest("the claim is deleted once no pod mounts it"),
        Why::Leaving => Step::rest("the object is being deleted and has no finalizer of Interlock"),
        Why::Said(obstacle) => Step::rest(note_of(&of_obstacle(scene, obstacle))),
    }
}

fn note_of(finding: &Finding) -> String {
    format!("{}: {}", finding.reason, finding.message)
}

fn report(scene: &Scene, finding: &Finding) -> Step<Disk> {
    let found = conditions::with(&scene.claim, finding, scene.now);
    let note = note_of(finding);
    let event = warns(&CLAIM, &scene.claim, "ProvisioningFailed", note.clone());
    let write = change_status(&CLAIM, &scene.claim, json!({"conditions": found}));
    Step::write(write, note).telling(event)
}

fn take_default_class(scene: &Scene) -> Step<Disk> {
    on(scene.class.as_ref(), |class| {
        let spec = json!({"spec": {"storageClassName": name_of(class)}});
        let because = "the claim names no storage class; the default class is used";
        Step::write(change(&CLAIM, &scene.claim, spec), because)
    })
}

fn hold(scene: &Scene) -> Step<Disk> {
    on(scene.snapshot.as_ref(), |snapshot| {
        let finalizer = hold_finalizer(uid_of(&scene.claim));
        let because = format!("claim {} is filled from the snapshot", name_of(&scene.claim));
        Step::write(put_finalizer_on(&SNAPSHOT_KIND, snapshot, &finalizer), because)
    })
}

fn drop_hold(scene: &Scene) -> Step<Disk> {
    on(scene.held.first(), |snapshot| {
        let finalizer = hold_finalizer(uid_of(&scene.claim));
        let because =
            format!("claim {} does not need the snapshot any more", name_of(&scene.claim));
        Step::write(take_finalizer_off(&SNAPSHOT_KIND, snapshot, &finalizer), because)
    })
}

fn make(scene: &Scene, from: Option<&OnDisk>) -> Step<Disk> {
    let action = DiskAction::MakeVolume {
        handle: scene.handle(),
        namespace: namespace_of(&scene.claim).to_owned(),
        capacity: scene.capacity(),
        from: from.map(|from| (from.handle.clone(), from.digest.clone())),
    };
    Step::outside(action, "a claim needs the volume")
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
    let note = format!("volume {handle} is created");
    let event = tells(&CLAIM, claim, "ProvisioningSucceeded", note);
    let write = Write::Create { address: scene.record(), object };
    Step::write(write, "the volume is complete on the disk").telling(event)
}

fn take(scene: &Scene) -> Step<Disk> {
    on(scene.volume.as_ref(), |volume| {
        let spec = json!({"spec": {"claimRef": claim_reference(&scene.claim)}});
        Step::write(
            change(&VOLUME, volume, spec),
            "a claim names the volume, and the volume is not reserved",
        )
    })
}

fn bind(claim: &Object, volume: &Object, protects: bool) -> Step<Disk> {
    let mut metadata = json!({"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}});
    if protects {
        metadata["finalizers"] = json!(finalizers_with(claim, PROTECTION));
    }
    let spec = json!({"volumeName": name_of(volume)});
    let write = change(&CLAIM, claim, json!({"metadata": metadata, "spec": spec}));
    Step::write(write, format!("volume {} is reserved for this claim", name_of(volume)))
}

fn report_bound(scene: &Scene, volume: &Object) -> Step<Disk> {
    let mut status = scene.bound_status(volume);
    status["conditions"] = json!(conditions::without(&scene.claim, HEALTHY));
    Step::write(change_status(&CLAIM, &scene.claim, status), "the claim has its volume")
}

fn read_volume(scene: &Scene) -> Step<Disk> {
    let named = text(&scene.claim.data, &["spec", "volumeName"]);
    let because = "the volume has another claim or is gone; only a live read can show that";
    live_read(vec![Read::Object(cluster_wide(&VOLUME, named))], because)
}

fn report_lost(scene: &Scene) -> Step<Disk> {
    let lost = json!({"phase": "Lost"});
    let note = "the volume has another claim, or does not exist any more".to_owned();
    let event = warns(&CLAIM, &scene.claim, "ClaimLost", note);
    let because = "the volume does not name the claim";
    Step::write(change_status(&CLAIM, &scene.claim, lost), because).telling(event)
}
