//! A decision about a claim that is filled as one step.

use super::decide::{Decision, Obstacle, Policy, Why};
use super::finding::of_obstacle;
use super::observe::{ANNOTATION_TOUCHED, SELECTED_NODE, Scene, note_for, prime_name, volumes};
use crate::kinds::{CLAIM, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    annotation, beside, change, change_status, conditions, name_of, namespace_of, put_finalizer_on,
    take_finalizer_off, tells, text, uid_of,
};
use interlock_api::names::{
    ANNOTATION_IMAGE, ANNOTATION_POPULATES, ANNOTATION_RECLAIM, FINALIZER_POPULATE,
    LABEL_PRIME_FOR, hold_finalizer,
};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Event, Importance, Nothing, Object, Place, Read, Step, Write};
use serde_json::{Value, json};

const RECLAIM_POLICY: &str = "persistentVolumeReclaimPolicy";

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let claim = &scene.claim;
    match decision {
        Decision::Nothing(why) => Step::rest(resting(scene, why)),
        Decision::Say(obstacle) => say(scene, obstacle),
        Decision::Look => Step::Look {
            reads: scene.truth.iter().cloned().map(Read::Object).collect(),
            because: "what is done next must not rest on old news".to_owned(),
        },
        Decision::LookForImage => {
            let (place, kind, namespace) = scene.images();
            let reads = vec![Read::List { place, kind, namespace }];
            let because = "its image is not in the cache, which proves nothing".to_owned();
            Step::Look { reads, because }
        }
        Decision::LookForVolume => {
            let (place, kind, namespace) = volumes();
            let reads = vec![Read::List { place, kind, namespace }];
            let because = "a volume that was poured for it may not be in the cache yet".to_owned();
            Step::Look { reads, because }
        }
        Decision::Mark => Step::write(
            put_finalizer_on(&CLAIM, claim, FINALIZER_POPULATE),
            "what is made for it is undone before it goes",
        ),
        Decision::Pin => pin(scene),
        Decision::Hold => on(scene.image.as_ref(), |image| {
            let write = put_finalizer_on(&SNAPSHOT_KIND, image, &hold(claim));
            Step::write(write, format!("claim {} is filled from it", name_of(claim)))
        }),
        Decision::Pour => on(scene.image.as_ref(), |image| pour(claim, image)),
        Decision::Keep { policy } => {
            on(scene.volume.as_ref(), |volume| keep(claim, volume, policy))
        }
        Decision::HandOver => on(scene.volume.as_ref(), |volume| hand_over(claim, volume)),
        Decision::DeletePrime => on(scene.prime.as_ref(), |prime| {
            let write = Write::delete_seen(Place::CLUSTER, &CLAIM, prime);
            Step::write(write, format!("claim {} does not need it any more", name_of(claim)))
        }),
        Decision::Settle { policy } => on(scene.volume.as_ref(), |volume| settle(volume, policy)),
        Decision::DropHold => on(scene.held.first(), |image| {
            let write = take_finalizer_off(&SNAPSHOT_KIND, image, &hold(claim));
            Step::write(write, format!("claim {} does not need it any more", name_of(claim)))
        }),
        Decision::Touch => on(scene.image.as_ref(), |image| {
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
        Decision::UnmarkFilled => {
            let event =
                told(claim, (Importance::Normal, "VolSyncPopulatorFinished"), "it is filled");
            let because = "it is filled, and nothing is left of what was needed";
            Step::write(unmarked(claim), because).telling(event)
        }
        Decision::UnmarkDeleted => {
            Step::write(unmarked(claim), "nothing is left of what was made for it")
        }
    }
}

fn on(object: Option<&Object>, act: impl FnOnce(&Object) -> Step<Nothing>) -> Step<Nothing> {
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

fn resting(scene: &Scene, why: Why) -> String {
    let because = match why {
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
        Why::Said(obstacle) => return note_of(&of_obstacle(scene, obstacle).0),
    };
    because.to_owned()
}

fn pin(scene: &Scene) -> Step<Nothing> {
    on(scene.latest.as_ref(), |image| {
        let note = json!({"metadata": {"annotations": {ANNOTATION_IMAGE: uid_of(image)}}});
        let because =
            format!("image {} is the latest, and it is this one for good", name_of(image));
        Step::write(change(&CLAIM, &scene.claim, note), because)
    })
}

fn pour(claim: &Object, image: &Object) -> Step<Nothing> {
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

fn keep(claim: &Object, volume: &Object, policy: Policy) -> Step<Nothing> {
    let before = policy_of(volume, policy);
    let notes = json!({ANNOTATION_POPULATES: note_for(claim), ANNOTATION_RECLAIM: before});
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
pub(super) fn settle(volume: &Object, policy: Policy) -> Step<Nothing> {
    let policy = policy_of(volume, policy);
    let settled = json!({
        "metadata": {"annotations": {ANNOTATION_POPULATES: null, ANNOTATION_RECLAIM: null}},
        "spec": {RECLAIM_POLICY: policy},
    });
    Step::write(change(&VOLUME, volume, settled), "it does not change hands any more")
}

fn policy_of(volume: &Object, policy: Policy) -> &str {
    match policy {
        Policy::Noted => annotation(volume, ANNOTATION_RECLAIM).unwrap_or_default(),
        Policy::Own => text(&volume.data, &["spec", RECLAIM_POLICY]),
        Policy::Delete => "Delete",
    }
}

fn unmarked(claim: &Object) -> Write {
    take_finalizer_off(&CLAIM, claim, FINALIZER_POPULATE)
}

fn say(scene: &Scene, obstacle: Obstacle) -> Step<Nothing> {
    let claim = &scene.claim;
    let (finding, event) = of_obstacle(scene, obstacle);
    let note = note_of(&finding);
    let found: Vec<Value> = conditions::with(claim, &finding, scene.now);
    let event = told(claim, (Importance::Warning, event), note.clone());
    let write = change_status(&CLAIM, claim, json!({"conditions": found}));
    Step::write(write, note).telling(event)
}

fn note_of(finding: &Finding) -> String {
    format!("{}: {}", finding.reason, finding.message)
}
