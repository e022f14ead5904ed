//! A decision about a claim that is filled as one step.

use super::decide::{Decision, Obstacle, Why};
use super::observe::{ANNOTATION_TOUCHED, Orphan, SELECTED_NODE, Scene, note_for, prime_name};
use crate::filed::source_of;
use crate::kinds::{CLAIM, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    HEALTHY, annotation, beside, change, change_status, conditions, name_of, namespace_of,
    put_finalizer_on, take_finalizer_off, tells, text, uid_of,
};
use crate::quantity::readable;
use interlock_api::names::{
    ANNOTATION_IMAGE, ANNOTATION_POPULATES, ANNOTATION_RECLAIM, FINALIZER_POPULATE,
    LABEL_PRIME_FOR, hold_finalizer,
};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Event, Importance, Nothing, Object, Place, Read, Step, Write};
use serde_json::{Value, json};

const RECLAIM_POLICY: &str = "persistentVolumeReclaimPolicy";

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Nothing> {
    let claim = &scene.claim;
    match decision {
        Decision::Nothing(why) => Step::rest(resting(why)),
        Decision::Say(obstacle) => say(scene, obstacle),
        Decision::Look => Step::Look {
            reads: scene.truth(),
            because: "what is done next must not rest on old news".to_owned(),
        },
        Decision::LookForImage => {
            let (place, kind, namespace) = scene.images();
            let reads = vec![Read::List { place, kind, namespace }];
            let because = "its image is not in the cache, which proves nothing".to_owned();
            Step::Look { reads, because }
        }
        Decision::Mark => Step::write(
            put_finalizer_on(&CLAIM, claim, FINALIZER_POPULATE),
            "what is made for it is undone before it goes",
        ),
        Decision::Pin => pin(scene),
        Decision::Hold => on(&scene.image, |image| {
            let write = put_finalizer_on(&SNAPSHOT_KIND, image, &hold(claim));
            Step::write(write, format!("claim {} is filled from it", name_of(claim)))
        }),
        Decision::Pour => pour(scene),
        Decision::Keep => on(&scene.volume, |volume| keep(scene, volume)),
        Decision::HandOver => on(&scene.volume, |volume| hand_over(claim, volume)),
        Decision::DeletePrime => on(&scene.prime, |prime| {
            let write = Write::delete(Place::CLUSTER, &CLAIM, prime);
            Step::write(write, format!("claim {} does not need it any more", name_of(claim)))
        }),
        Decision::Settle => on(&scene.volume, settle),
        Decision::DropHold => on(&scene.held.first().cloned(), |image| {
            let write = take_finalizer_off(&SNAPSHOT_KIND, image, &hold(claim));
            Step::write(write, format!("claim {} does not need it any more", name_of(claim)))
        }),
        Decision::Touch => on(&scene.image, |image| {
            let note = json!({"metadata": {"annotations": {ANNOTATION_TOUCHED: uid_of(claim)}}});
            let because = "a hold that may be on its way for a claim that goes is refused";
            Step::write(change(&SNAPSHOT_KIND, image, note), because)
        }),
        Decision::Unpin => {
            let note = json!({"metadata": {"annotations": {ANNOTATION_IMAGE: null}}});
            let text = "its image is gone; the next one is chosen";
            let event = told(claim, (Importance::Warning, "VolSyncPopulatorError"), text);
            Step::write(change(&CLAIM, claim, note), text).telling(event)
        }
        Decision::Unmark => unmark(claim),
    }
}

/// The last step about a volume whose claim is gone.
pub(super) fn orphan(orphan: &Orphan) -> Step<Nothing> {
    if orphan.is_fresh {
        return settle(&orphan.volume);
    }
    let because = "the claim that it is for is not in the cache, which proves nothing".to_owned();
    Step::Look { reads: orphan.truth.clone(), because }
}

fn on(object: &Option<Object>, act: impl FnOnce(&Object) -> Step<Nothing>) -> Step<Nothing> {
    match object {
        Some(object) => act(object),
        None => Step::rest("it was about an object that is not there"),
    }
}

fn hold(claim: &Object) -> String {
    hold_finalizer(uid_of(claim))
}

fn told(claim: &Object, kind: (Importance, &'static str), note: impl Into<String>) -> Event {
    tells(&CLAIM, claim, kind, note)
}

fn resting(why: Why) -> &'static str {
    match why {
        Why::Finished => "it is filled",
        Why::Leaving => "it goes, and nothing of ours is on it",
        Why::WaitsForPod => "its volume is made where its first pod goes",
        Why::DestinationLeaving => "its destination is being deleted",
        Why::ImageNotReady => "its image is not whole yet",
        Why::Pouring => "the storage pours its image",
        Why::PrimeGoing => "the claim that its image was poured into goes",
        Why::VolumeGoing => "the volume that its image was poured into is not here, or goes",
        Why::Binding => "the storage binds it",
        Why::PrimeNotLost => "the claim that its image was poured into still has its volume",
    }
}

fn pin(scene: &Scene<'_>) -> Step<Nothing> {
    on(&scene.latest, |image| {
        let note = json!({"metadata": {"annotations": {ANNOTATION_IMAGE: uid_of(image)}}});
        let because =
            format!("image {} is the latest, and it is this one for good", name_of(image));
        Step::write(change(&CLAIM, &scene.claim, note), because)
    })
}

fn pour(scene: &Scene<'_>) -> Step<Nothing> {
    let (claim, Some(image)) = (&scene.claim, &scene.image) else {
        return Step::rest("its image is not here");
    };
    let name = prime_name(claim);
    let spec = &claim.data["spec"];
    let mut annotations = json!({ANNOTATION_IMAGE: uid_of(image)});
    if let Some(node) = annotation(claim, SELECTED_NODE) {
        annotations[SELECTED_NODE] = json!(node);
    }
    let mut wanted = json!({
        "accessModes": spec["accessModes"],
        "resources": spec["resources"],
        "dataSource": {
            "apiGroup": SNAPSHOT_KIND.group, "kind": SNAPSHOT_KIND.kind, "name": name_of(image),
        },
    });
    for field in ["storageClassName", "volumeMode"] {
        if let Some(value) = spec.get(field) {
            wanted[field] = value.clone();
        }
    }
    let object = json!({
        "metadata": {
            "labels": {LABEL_PRIME_FOR: uid_of(claim)},
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "name": name_of(claim), "uid": uid_of(claim), "controller": true,
            }],
        },
        "spec": wanted,
    });
    let note = format!("image {} is poured into {name}", name_of(image));
    let event = told(claim, (Importance::Normal, "VolSyncPopulatorPVCCreated"), note.clone());
    let write = Write::Create { address: beside(claim, &CLAIM, &name), object };
    Step::write(write, note).telling(event)
}

fn keep(scene: &Scene<'_>, volume: &Object) -> Step<Nothing> {
    let policy = text(&volume.data, &["spec", RECLAIM_POLICY]);
    let before = annotation(volume, ANNOTATION_RECLAIM).unwrap_or(policy);
    let notes = json!({ANNOTATION_POPULATES: note_for(&scene.claim), ANNOTATION_RECLAIM: before});
    let kept = json!({
        "metadata": {"annotations": notes},
        "spec": {RECLAIM_POLICY: "Retain"},
    });
    Step::write(change(&VOLUME, volume, kept), "it stays while it changes hands")
}

fn hand_over(claim: &Object, volume: &Object) -> Step<Nothing> {
    let heir = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "resourceVersion": null,
    });
    let handed = json!({"spec": {"claimRef": heir}});
    let because = format!("it is filled, and for claim {}", name_of(claim));
    Step::write(change(&VOLUME, volume, handed), because)
}

/// Gives a volume back its policy. Whatever is to become of it is the storage's business then.
fn settle(volume: &Object) -> Step<Nothing> {
    let policy = annotation(volume, ANNOTATION_RECLAIM).unwrap_or("Delete");
    let settled = json!({
        "metadata": {"annotations": {ANNOTATION_POPULATES: null, ANNOTATION_RECLAIM: null}},
        "spec": {RECLAIM_POLICY: policy},
    });
    Step::write(change(&VOLUME, volume, settled), "it does not change hands any more")
}

fn unmark(claim: &Object) -> Step<Nothing> {
    let write = take_finalizer_off(&CLAIM, claim, FINALIZER_POPULATE);
    if crate::objects::is_deleting(claim) {
        return Step::write(write, "nothing is left of what was made for it");
    }
    let event = told(claim, (Importance::Normal, "VolSyncPopulatorFinished"), "it is filled");
    Step::write(write, "it is filled, and nothing is left of what was needed").telling(event)
}

fn obstacle_of(scene: &Scene<'_>, obstacle: Obstacle) -> (Finding, &'static str) {
    const ERROR: &str = "VolSyncPopulatorError";
    let source = source_of(&scene.claim).map(|(_, _, name)| name).unwrap_or_default();
    let (reason, event, message) = match obstacle {
        Obstacle::DestinationMissing => (
            "DestinationMissing",
            "VolSyncPopulatorReplicationDestinationMissing",
            format!("there is no ReplicationDestination {source}; create it, and this goes on"),
        ),
        Obstacle::NoLatestImage => (
            "NoLatestImage",
            "VolSyncPopulatorReplicationDestinationNoLatestImage",
            format!(
                "ReplicationDestination {source} has no image yet; see `kubectl describe \
                 replicationdestination {source}`"
            ),
        ),
        Obstacle::DestinationMakesNone => (
            "CopyMethodDirect",
            ERROR,
            format!(
                "ReplicationDestination {source} makes no images; set its copyMethod to Snapshot"
            ),
        ),
        Obstacle::ClassMissing => {
            let class = text(&scene.claim.data, &["spec", "storageClassName"]);
            ("ClassMissing", ERROR, format!("there is no StorageClass {class}; create it"))
        }
        Obstacle::ImageEmpty => {
            let image = scene.image.as_deref().map(name_of).unwrap_or_default();
            let message = format!(
                "image {image} of ReplicationDestination {source} has nothing in it; if that is \
                 meant, annotate the claim: interlock.dev/allow-empty=true"
            );
            ("ImageEmpty", ERROR, message)
        }
        Obstacle::SizeMismatch => {
            let (needs, asks) = (readable(scene.image_bytes()), readable(scene.capacity()));
            let message =
                format!("needs {needs}, and asks for {asks}; make the claim again, larger");
            ("SizeMismatch", ERROR, message)
        }
        Obstacle::PouringFails => {
            let (reason, message) = scene.failure().unwrap_or_default();
            ("PouringFails", ERROR, format!("{reason}: {message}"))
        }
        Obstacle::NameTaken => {
            let name = prime_name(&scene.claim);
            ("NameTaken", ERROR, format!("a claim {name} of somebody else is in the way"))
        }
    };
    (Finding::fails(HEALTHY, reason, message), event)
}

/// Says it once; what it waits for is an object, whose change brings the next step.
fn say(scene: &Scene<'_>, obstacle: Obstacle) -> Step<Nothing> {
    let claim = &scene.claim;
    let (finding, event) = obstacle_of(scene, obstacle);
    let note = format!("{}: {}", finding.reason, finding.message);
    if conditions::is_said(claim, &finding) {
        return Step::rest(note);
    }
    let found: Vec<Value> = conditions::with(claim, &finding, scene.view.now());
    let event = told(claim, (Importance::Warning, event), note.clone());
    let write = change_status(&CLAIM, claim, json!({"conditions": found}));
    Step::write(write, note).telling(event)
}
