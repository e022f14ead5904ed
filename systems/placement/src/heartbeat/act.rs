//! A heartbeat as one write.

use super::decide::{Decision, Reported, Why};
use super::observe::Scene;
use super::{Discovery, Heartbeat, WhoIssues};
use crate::kinds::WORKLOAD_CLUSTER;
use interlock_kernel::{Place, Read, Step, Write};
use jiff::Timestamp;
use serde_json::json;

pub(super) fn act(heartbeat: &Heartbeat, scene: &Scene, decision: Decision) -> Step<Discovery> {
    match decision {
        Decision::Nothing(Why::Replaced) => {
            Step::rest(format!("another WorkloadCluster has the name {} now", heartbeat.cluster))
        }
        Decision::CountIn(at_most) => {
            Step::Wait { because: "the grants were counted recently".into(), at_most }
        }
        Decision::AskIssuer => Step::LiveRead {
            reads: vec![Read::Ask(WhoIssues)],
            because: "only the cluster can say who issues its tokens".into(),
        },
        Decision::Count(told) => count(heartbeat, scene, told),
    }
}

fn count(heartbeat: &Heartbeat, scene: &Scene, told: Reported) -> Step<Discovery> {
    let sequence = scene.status.heartbeat.as_ref().map_or(0, |beat| beat.sequence);
    // Whole seconds are what the wire has.
    let now = Timestamp::from_second(scene.now.as_second()).unwrap_or(scene.now);
    let mut status = json!({
        "heartbeat": {"sequence": sequence.saturating_add(1), "sentAt": now.to_string()},
        "syncer": heartbeat.syncer,
    });
    if told.are_classes_new {
        status["storageClasses"] = json!(scene.classes);
    }
    if told.is_issuer_new {
        status["issuer"] = json!(scene.issuer);
    }
    let change = json!({"status": status});
    let write = Write::patch_status(Place::HUB, &WORKLOAD_CLUSTER, &scene.cluster, change);
    Step::write(write, "the heartbeat is due")
}
