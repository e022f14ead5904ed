//! What is done about a Deployment: one write to it, or to one of its ReplicaSets.

use super::decide::{Decision, Why};
use super::observe::{Fresh, Scene};
use super::sizes::Plan;
use super::standing::{CONDITIONS, PROGRESSING, Status};
use super::{ANNOTATION_REVISION, ANNOTATION_SIZES};
use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};
use crate::owned::{adopting, owner_reference, releasing};
use crate::status::{conditions_of, is_said, time, with, without};
use crate::template::{LABEL_GRANT, LABEL_TEMPLATE_HASH, put, with_hash};
use interlock_kernel::metadata::{label, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, Event, Importance, Nothing, Object, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let deployment = &scene.deployment;
    match decision {
        Decision::Rest(why) => Step::rest(because(why)),
        Decision::Wait(why, at_most) => Step::Wait { because: because(why).to_owned(), at_most },
        Decision::ReadDeployment => Step::LiveRead {
            reads: vec![Read::Object(scene.address.clone())],
            because: "a ReplicaSet is written only if the Deployment has not changed".to_owned(),
        },
        Decision::ReadSizes => Step::LiveRead {
            reads: vec![list(scene, REPLICA_SET), list(scene, POD)],
            because: "the next sizes rest on what the last ones came to".to_owned(),
        },
        Decision::Adopt(place) => on_set(scene, place, |set| {
            let change = adopting(&DEPLOYMENT, deployment, set);
            Step::write(patch(set, change), "it has no controller, and is selected")
        }),
        Decision::Release(place) => on_set(scene, place, |set| {
            let change = releasing(deployment, set);
            Step::write(patch(set, change), "its labels are selected no more")
        }),
        Decision::Create { revision } => create(scene, revision),
        Decision::Carry { set: place, size, revision } => on_set(scene, place, |set| {
            let notes = scene.notes.on(scene.new == Some(place));
            carry(scene, set, Carried { notes, size, revision })
        }),
        Decision::NoteRevision(revision) => {
            let noted = json!({ANNOTATION_REVISION: revision.to_string()});
            note(deployment, &noted, "the template has another ReplicaSet")
        }
        Decision::Plan(plan) => plan_sizes(deployment, &plan),
        Decision::DeleteOld(place) => on_set(scene, place, |set| {
            let write = Write::delete_seen(Place::CLUSTER, &REPLICA_SET, set);
            Step::write(write, "there are more ReplicaSets of the past than are kept")
        }),
        Decision::Report(status) => report(scene, &status),
    }
}

fn because(why: Why) -> &'static str {
    match why {
        Why::Complete => "all pods are of the template, and available",
        Why::Changing => "the pods are not as far",
        Why::Paused => "the Deployment is paused",
        Why::Terminating => "the Deployment is being deleted",
        Why::Invalid => "what the Deployment asks for cannot be read",
        Why::CacheIsBehind => "the cache is behind a live read",
    }
}

fn list(scene: &Scene, kind: interlock_kernel::Kind) -> Read<Nothing> {
    let namespace = Some(namespace_of(&scene.deployment).to_owned());
    Read::List { place: Place::CLUSTER, kind, namespace }
}

fn on_set(
    scene: &Scene,
    place: usize,
    write: impl FnOnce(&Object) -> Step<Nothing>,
) -> Step<Nothing> {
    scene.sets.get(place).map_or_else(|| Step::rest("there is no such ReplicaSet"), write)
}

fn patch(set: &Object, change: Value) -> Write {
    Write::patch(Place::CLUSTER, &REPLICA_SET, set, change)
}

fn note(deployment: &Object, annotations: &Value, because: &str) -> Step<Nothing> {
    let change = json!({"metadata": {"annotations": annotations}});
    Step::write(Write::patch(Place::CLUSTER, &DEPLOYMENT, deployment, change), because)
}

fn plan_sizes(deployment: &Object, plan: &Plan) -> Step<Nothing> {
    let text = json!(plan).to_string();
    note(deployment, &json!({ANNOTATION_SIZES: text}), "the last sizes are carried out")
}

fn create(scene: &Scene, revision: u64) -> Step<Nothing> {
    let (deployment, Fresh { hash, name }) = (&scene.deployment, scene.fresh());
    let said = &deployment.data["spec"];
    let template = with_hash(&said["template"], &hash);
    let mut labels = template["metadata"]["labels"].clone();
    // What a syncer made is known by this label, and so is what is made of it.
    if let Some(grant) = label(deployment, LABEL_GRANT) {
        put(&mut labels, LABEL_GRANT, grant);
    }
    let mut selector = said["selector"].clone();
    put(&mut selector["matchLabels"], LABEL_TEMPLATE_HASH, &hash);
    let mut annotations = scene.notes.on(true);
    annotations.insert(ANNOTATION_REVISION.to_owned(), revision.to_string());
    let object = json!({
        "metadata": {
            "labels": labels, "annotations": annotations,
            "ownerReferences": [owner_reference(&DEPLOYMENT, deployment)],
        },
        "spec": {
            "replicas": 0, "minReadySeconds": scene.notes.min_ready_seconds,
            "selector": selector, "template": template,
        },
    });
    let address = Address::new(Place::CLUSTER, &REPLICA_SET, name);
    Step::write(Write::Create { address, object }, "the template has no ReplicaSet")
}

/// What is written on a ReplicaSet.
struct Carried {
    notes: BTreeMap<String, String>,
    size: Option<u32>,
    revision: Option<u64>,
}

fn carry(scene: &Scene, set: &Object, carried: Carried) -> Step<Nothing> {
    let Carried { notes: mut annotations, size, revision } = carried;
    if let Some(revision) = revision {
        annotations.insert(ANNOTATION_REVISION.to_owned(), revision.to_string());
    }
    let mut change = json!({
        "metadata": {"annotations": annotations},
        "spec": {"minReadySeconds": scene.notes.min_ready_seconds},
    });
    let because = match (size, revision) {
        (Some(_), _) => "the plan gives the ReplicaSet another size",
        (None, Some(_)) => "the template is that of an older ReplicaSet",
        (None, None) => "the Deployment says something else of the ReplicaSet",
    };
    let Some(size) = size else { return Step::write(patch(set, change), because) };
    change["spec"]["replicas"] = json!(size);
    let before = set.data["spec"]["replicas"].as_u64().unwrap_or(0);
    let said = format!("scaled ReplicaSet {} from {before} to {size}", name_of(set));
    let about = scene.address.clone();
    let uid = uid_of(&scene.deployment).to_owned();
    let (importance, reason) = (Importance::Normal, "ScalingReplicaSet");
    let scaled = Event { about, uid, importance, reason, note: said };
    Step::write(patch(set, change), because).telling(scaled)
}

fn report(scene: &Scene, status: &Status) -> Step<Nothing> {
    let deployment = &scene.deployment;
    let known = conditions_of(deployment);
    let mut conditions = known.clone();
    for kind in CONDITIONS {
        let Some(finding) = status.findings.iter().find(|finding| finding.kind == kind) else {
            conditions = without(&conditions, kind);
            continue;
        };
        conditions = with(&conditions, finding, scene.now);
        let is_news = !is_said(&known, finding) || kind == PROGRESSING && status.is_progress;
        let found = conditions.iter_mut().find(|condition| condition["type"] == kind);
        if let Some(found) = found.filter(|_| is_news) {
            found["lastUpdateTime"] = time(scene.now);
        }
    }
    let pods = status.pods;
    let change = json!({"status": {
        "observedGeneration": status.generation,
        "replicas": pods.all,
        "updatedReplicas": pods.updated,
        "readyReplicas": pods.ready,
        "availableReplicas": pods.available,
        "unavailableReplicas": pods.unavailable,
        "conditions": conditions,
    }});
    let write = Write::patch_status(Place::CLUSTER, &DEPLOYMENT, deployment, change);
    Step::write(write, "the status is what the pods show")
}
