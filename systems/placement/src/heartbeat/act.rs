//! A sign of life as one write.

use super::Heartbeat;
use super::decide::{Decision, Told, Why};
use super::observe::Scene;
use crate::kinds::WORKLOAD_CLUSTER;
use interlock_kernel::{Nothing, Part, Place, Step, Write};
use jiff::Timestamp;
use serde_json::json;

pub(super) fn act(heartbeat: &Heartbeat, scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Nothing(Why::Replaced) => {
            Step::rest(format!("another cluster is called {} now", heartbeat.cluster))
        }
        Decision::CountIn(at_most) => Step::Wait { because: "it counted lately".into(), at_most },
        Decision::Count(told) => count(heartbeat, scene, told),
    }
}

fn count(heartbeat: &Heartbeat, scene: &Scene, told: Told) -> Step<Nothing> {
    let sequence = scene.status.heartbeat.as_ref().map_or(0, |beat| beat.sequence);
    // Whole seconds are what the wire has.
    let now = Timestamp::from_second(scene.now.as_second()).unwrap_or(scene.now);
    let mut status = json!({
        "heartbeat": {"sequence": sequence.saturating_add(1), "sentAt": now.to_string()},
        "syncer": heartbeat.syncer,
    });
    match told {
        Told::Syncer => {}
        Told::SyncerAndClasses => status["storageClasses"] = json!(scene.classes),
    }
    let change = json!({"status": status});
    let write = Write::patch(Place::HUB, &WORKLOAD_CLUSTER, &scene.cluster, (Part::Status, change));
    Step::write(write, "the hub is to know that this cluster is served")
}
