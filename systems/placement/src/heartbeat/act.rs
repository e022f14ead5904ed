//! A sign of life as one write.

use super::decide::{Decision, Why};
use super::observe::Scene;
use crate::kinds::WORKLOAD_CLUSTER;
use interlock_kernel::{Nothing, Part, Place, Step, Write};
use jiff::Timestamp;
use serde_json::json;

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Nothing> {
    let name = &scene.heartbeat.cluster;
    match decision {
        Decision::Nothing(Why::NotInTheCache) => {
            Step::rest(format!("cluster {name} is not in the cache, which proves nothing"))
        }
        Decision::Nothing(Why::Replaced) => {
            Step::rest(format!("another cluster is called {name} now"))
        }
        Decision::CountIn(at_most) => Step::Wait { because: "it counted lately".into(), at_most },
        Decision::Count => count(scene),
    }
}

fn count(scene: &Scene<'_>) -> Step<Nothing> {
    let Some(cluster) = &scene.cluster else { return Step::rest("there is no cluster") };
    let sequence = scene.status.heartbeat.as_ref().map_or(0, |beat| beat.sequence);
    // Whole seconds are what the wire has.
    let now = Timestamp::from_second(scene.now.as_second()).unwrap_or(scene.now);
    let mut status = json!({
        "heartbeat": {"sequence": sequence.saturating_add(1), "sentAt": now.to_string()},
        "syncer": scene.heartbeat.syncer,
    });
    if !scene.is_same_classes() {
        status["storageClasses"] = json!(scene.classes);
    }
    let change = json!({"status": status});
    let write = Write::patch(Place::HUB, &WORKLOAD_CLUSTER, cluster, (Part::Status, change));
    Step::write(write, "the hub is to know that this cluster is served")
}
