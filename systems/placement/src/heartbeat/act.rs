//! A heartbeat as one write.

use super::Heartbeat;
use super::decide::{Decision, Reported, Why};
use super::observe::Scene;
use crate::kinds::WORKLOAD_CLUSTER;
use interlock_kernel::{Nothing, Place, Step, Write};
use jiff::Timestamp;
use serde_json::json;

pub(super) fn act(heartbeat: &Heartbeat, scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Nothing(Why::Replaced) => {
            Step::rest(format!("another WorkloadCluster has the name {} now", heartbeat.cluster))
        }
        Decision::CountIn(at_most) => {
            Step::Wait { because: "the grants were counted recently".into(), at_most }
        }
        Decision::Count(told) => count(heartbeat, scene, told),
    }
}

fn count(heartbeat: &Heartbeat, scene: &Scene, told: Reported) -> Step<Nothing> {
    let sequence = scene.status.heartbeat.as_ref().map_or(0, |beat| beat.sequence);
    // Whole seconds are what the wire has.
    let now = Timestamp::from_second(scene.now.as_second()).unwrap_or(scene.now);
    let mut status = json!({
        "heartbeat": {"sequence": sequence.saturating_add(1), "sentAt": now.to_string()},
        "syncer": heartbeat.syncer,
    });
    match told {
        Reported::Syncer => {}
        Reported::SyncerAndClasses => status["storageClasses"] = json!(scene.classes),
    }
    let change = json!({"status": status});
    let write = Write::patch_status(Place::HUB, &WORKLOAD_CLUSTER, &scene.cluster, change);
    Step::write(write, "the heartbeat is due")
}
