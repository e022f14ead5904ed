//! The status of objects on its way up, from the owner of the namespace only.

use super::compare::difference;
use super::observe::is_finished;
use crate::kinds::POD;
use crate::syncer::observe::StepInputs;
use interlock_kernel::Object;
use interlock_kernel::metadata::{has_finalizer, is_deleting};
use serde_json::{Value, json};

/// The reason of a pod whose namespace is between two clusters.
const MOVING: &str = "Moving";

/// What changes in the status at the hub, if that is not what is true here.
pub(super) fn news(hub: &Object, here: &Object) -> Option<Value> {
    let mut status = here.data.get("status").filter(|status| status.is_object())?.clone();
    // A pod here that nothing has handled yet has no more to say than that it waits.
    if status.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    translate_generation(&mut status, hub, here);
    let before = hub.data.get("status").unwrap_or(&Value::Null);
    difference(before, &status)
}

/// Generations are counted on each server for itself: what has been observed here means the
/// generation at the hub that it was made from, or the one before.
fn translate_generation(status: &mut Value, hub: &Object, here: &Object) {
    let Some(observed) = status.get("observedGeneration").and_then(Value::as_i64) else { return };
    let at_hub = hub.metadata.generation.unwrap_or_default();
    let is_current = here.metadata.generation.is_none_or(|generation| observed >= generation);
    status["observedGeneration"] = json!(if is_current { at_hub } else { (at_hub - 1).max(0) });
}

/// The next pod at the hub that is said to run, although its namespace leaves. People are reported before
/// the namespace is let go, while nobody else may speak for it.
pub(in crate::syncer) fn said_to_run(inputs: &StepInputs<'_>) -> Option<Object> {
    inputs.at_hub(&POD).into_iter().find(|pod| {
        has_finalizer(pod, &inputs.syncer.finalizer)
            && !is_deleting(pod)
            && !is_finished(pod)
            && pod.data["status"]["reason"] != MOVING
            && moving(pod).is_some()
    })
}

/// What changes in the status of a pod whose namespace is on its way.
pub(super) fn moving(pod: &Object) -> Option<Value> {
    let status = json!({
        "phase": "Pending",
        "reason": MOVING,
        "message": "the namespace is moving to another cluster; the pod starts again there",
    });
    let before = pod.data.get("status").unwrap_or(&Value::Null);
    difference(before, &status)
}
