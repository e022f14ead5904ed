//! The status of objects on its way up, from the owner of the namespace only.

use super::compare::difference;
use super::next::is_finished;
use crate::kinds::POD;
use crate::syncer::marks::{from_uid, has_finalizer, is_going, is_ours, name, uid};
use crate::syncer::observe::Scene;
use interlock_kernel::{Kind, Name, Object, Part, Place, Write};
use serde_json::{Value, json};

/// The reason of a pod whose namespace is between two clusters.
const MOVING: &str = "Moving";

/// The next status that differs at the hub from what is true here.
pub(in crate::syncer) fn next(scene: &Scene<'_>) -> Option<Write> {
    scene.syncer.kinds.carried().find_map(|kind| {
        let hub = scene.at_hub(kind);
        hub.iter().find_map(|hub| upward(scene, kind, hub))
    })
}

fn upward(scene: &Scene<'_>, kind: &Kind, hub: &Object) -> Option<Write> {
    if !has_finalizer(hub, &scene.syncer.finalizer) {
        return None;
    }
    let here = scene.view.get(Place::CLUSTER, kind, &Name::within(scene.name, name(hub)))?;
    if !is_ours(&here, scene.name) || from_uid(&here) != Some(uid(hub)) {
        return None;
    }
    let mut status = here.data.get("status").filter(|status| status.is_object())?.clone();
    // A pod here that nothing has looked at yet has no more to say than that it waits.
    if status.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    translate_generation(&mut status, (hub, &here));
    let before = hub.data.get("status").unwrap_or(&Value::Null);
    let change = difference(before, &status)?;
    Some(Write::patch(Place::HUB, kind, hub, (Part::Status, json!({"status": change}))))
}

/// Generations are counted on each server for itself: what has been observed here means the
/// generation at the hub that it was made from, or the one before.
fn translate_generation(status: &mut Value, (hub, here): (&Object, &Object)) {
    let Some(observed) = status.get("observedGeneration").and_then(Value::as_i64) else { return };
    let at_hub = hub.metadata.generation.unwrap_or_default();
    let is_current = here.metadata.generation.is_none_or(|generation| observed >= generation);
    status["observedGeneration"] = json!(if is_current { at_hub } else { (at_hub - 1).max(0) });
}

/// The next pod at the hub that says it runs, although its namespace leaves. It is told before the
/// namespace is let go, while nobody else may speak for it.
pub(in crate::syncer) fn next_leaving(scene: &Scene<'_>) -> Option<Write> {
    let pods = scene.at_hub(&POD);
    let pod = pods.iter().find(|pod| {
        has_finalizer(pod, &scene.syncer.finalizer)
            && !is_going(pod)
            && !is_finished(pod)
            && pod.data["status"]["reason"] != MOVING
    })?;
    let status = json!({
        "phase": "Pending",
        "reason": MOVING,
        "message": "its namespace is on its way to a cluster; the pod starts again there",
    });
    let before = pod.data.get("status").unwrap_or(&Value::Null);
    let change = difference(before, &status)?;
    Some(Write::patch(Place::HUB, &POD, pod, (Part::Status, json!({"status": change}))))
}
