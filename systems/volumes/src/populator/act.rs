//! A decision about a claim that is filled as one step.

use super::decide::{Decision, Obstacle, Policy, Why};
use super::finding::of_obstacle;
use super::observe::{ANNOTATION_TOUCHED, SELECTED_NODE, Scene, note_for, prime_name, volumes};
use crate::kinds::{CLAIM, SNAPSHOT_KIND, VOLUME};
use crate::objects::{
    annotation, beside, change, change_status, conditions, name_of, namespace_of, put_finalizer_on,
    take_finalizer_off, tells, text, uid_of, warns,
};
use interlock_api::names::{
    ANNOTATION_POPULATES, ANNOTATION_RECLAIM, ANNOTATION_SNAPSHOT, FINALIZER_POPULATE,
    LABEL_PRIME_FOR, hold_finalizer,
};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Nothing, Object, Place, Read, Step, Write};
use serde_json::{Value, json};

const RECLAIM_POLICY: &str = "persistentVolumeReclaimPolicy";

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let claim = &scene.claim;
    match decision {
        Decision::Nothing(why) => Step::rest(resting(scene, why)),
        Decision::Say(obstacle) => say(scene, obstacle),
        Decision::LiveRead => Step::LiveRead {
            reads: scene.truth.iter().cloned().map(Read::Object).collect(),
            because: "the next action needs a live read".to_owned(),
        },
        Decision::ReadSnapshot => {
            let (place, kind, namespace) = scene.snapshots();
            let reads = vec![Read::List { place, kind, namespace }];
            let because = "the snapshot is not in the cache; only a live read can show that it is \
                gone"
                .to_owned();
            Step::LiveRead { reads, because }
        }
        Decision::ReadVolume => {
            let (place, kind, namespace) = volumes();
            let reads = vec![Read::List { place, kind, namespace }];
            let because =
                "a volume that was filled for the claim may not be in the cache yet".to_owned();
            Step::LiveRead { reads, because }
        }
        Decision::Mark => Step::write(
            put_finalizer_on(&CLAIM, claim, FINALIZER_POPULATE),
            "the objects created for the claim are deleted before the claim",
        ),
        Decision::Pin => pin(scene),
        Decision::Hold => on(scene.snapshot.as_ref(), |snapshot| {
            let write = put_finalizer_on(&SNAPSHOT_KIND, snapshot, &hold(claim));
            Step::write(write, format!("claim {} is filled from the snapshot", name_of(claim)))
        }),
        Decision::Pour => on(scene.snapshot.as_ref(), |snapshot| pour(claim, snapshot)),
        Decision::Keep { policy } => {
            on(scene.volume.as_ref(), |volume| keep(claim, volume, policy))
        }
        Decision::HandOver => on(scene.volume.as_ref(), |volume| hand_over(claim, volume)),
        Decision::DeletePrime => on(scene.prime.as_ref(), |prime| {
            let write = Write::delete_seen(Place::CLUSTER, &CLAIM, prime);
            Step::write(
                write,
                format!("claim {} does not need the snapshot any more", name_of(claim)),
            )
        }),
        Decision::Settle { policy } => on(scene.volume.as_ref(), |volume| settle(volume, policy)),
        Decision::DropHold => on(scene.held.first(), |snapshot| {
            let write = take_finalizer_off(&SNAPSHOT_KIND, snapshot, &hold(claim));
            Step::write(
                write,
                format!("claim {} does not need the snapshot any more", name_of(claim)),
            )
        }),
        Decision::Touch => on(scene.snapshot.as_ref(), |snapshot| {
            let note = json!({"metadata": {"annotations": {ANNOTATION_TOUCHED: uid_of(claim)}}});
            let because = "the claim is being deleted; a hold that is being written for it is \
                refused";
            Step::write(change(&SNAPSHOT_KIND, snapshot, note), because)
        }),
        Decision::Unpin => {
            let note = json!({"metadata": {"annotations": {ANNOTATION_SNAPSHOT: null}}});
            let text = "the snapshot is gone; the next snapshot is chosen";
            let event = warns(&CLAIM, claim, "VolSyncPopulatorError", text);
            Step::write(change(&CLAIM, claim, note), text).telling(event)
        }
        Decision::UnmarkFilled => {
            let event = tells(&CLAIM, claim, "VolSyncPopulatorFinished", "it is filled");
            let because = "the claim is filled, and all temporary objects are deleted";
            Step::write(unmarked(claim), because).telling(event)
        }
        Decision::UnmarkDeleted => {
            Step::write(unmarked(claim), "all objects created for the claim are deleted")
        }
    }
}

fn on(object: Option<&Object>, act: impl FnOnce(&Object) -> Step<Nothing>) -> Step<Nothing> {
    match object {
        Some(object) => act(object),
        None => Step::rest("the object does not exist any more"),
    }
}

fn hold(claim: &Object) -> String {
    hold_finalizer(uid_of(claim))
}

fn resting(scene: &Scene, why: Why) -> String {
    let because = match why {
        Why::Finished => "it is filled",
        Why::Leaving => "the object is being deleted and has no finalizer of Interlock",
        Why::WaitsForPod => "the volume is created when the first pod uses the claim",
        Why::DestinationLeaving => "the ReplicationDestination is being deleted",
        Why::SnapshotNotReady => "the snapshot is not complete yet",
        Why::Pouring => "the storage fills the volume from the snapshot",
        Why::PrimeTerminating => "the temporary claim is being deleted",
        Why::VolumeTerminating => "the filled volume does not exist or is being deleted",
        Why::Binding => "the storage binds the claim",
        Why::PrimeNotLost => "the temporary claim still has the volume",
        Why::Said(obstacle) => return note_of(&of_obstacle(scene, obstacle).0),
    };
    because.to_owned()
}

fn pin(scene: &Scene) -> Step<Nothing> {
    on(scene.latest.as_ref(), |snapshot| {
        let note = json!({"metadata": {"annotations": {ANNOTATION_SNAPSHOT: uid_of(snapshot)}}});
        let because =
            format!("snapshot {} is the latest; the claim is pinned to it", name_of(snapshot));
        Step::write(change(&CLAIM, &scene.claim, note), because)
    })
}

fn pour(claim: &Object, snapshot: &Object) -> Step<Nothing> {
    let name = prime_name(claim);
    let spec = &claim.data["spec"];
    let mut annotations = json!({ANNOTATION_SNAPSHOT: uid_of(snapshot)});
    if let Some(node) = annotation(claim, SELECTED_NODE) {
        annotations[SELECTED_NODE] = json!(node);
    }
    let mut wanted = json!({
        "accessModes": spec["accessModes"],
        "resources": spec["resources"],
        "dataSource": {
            "apiGroup": SNAPSHOT_KIND.group, "kind": SNAPSHOT_KIND.kind, "name": name_of(snapshot),
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
    let note = format!("{name} is filled from snapshot {}", name_of(snapshot));
    let event = tells(&CLAIM, claim, "VolSyncPopulatorPVCCreated", note.clone());
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
    Step::write(
        change(&VOLUME, volume, kept),
        "the volume is retained while it is handed over to the claim",
    )
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
    let because = format!("the volume is filled and reserved for claim {}", name_of(claim));
    Step::write(change(&VOLUME, volume, handed), because)
}

/// Gives a volume back its policy. Whatever happens to it is the storage's business then.
pub(super) fn settle(volume: &Object, policy: Policy) -> Step<Nothing> {
    let policy = policy_of(volume, policy);
    let settled = json!({
        "metadata": {"annotations": {ANNOTATION_POPULATES: null, ANNOTATION_RECLAIM: null}},
        "spec": {RECLAIM_POLICY: policy},
    });
    Step::write(change(&VOLUME, volume, settled), "the volume is handed over")
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
    let event = warns(&CLAIM, claim, event, note.clone());
    let write = change_status(&CLAIM, claim, json!({"conditions": found}));
    Step::write(write, note).telling(event)
}

fn note_of(finding: &Finding) -> String {
    format!("{}: {}", finding.reason, finding.message)
}
