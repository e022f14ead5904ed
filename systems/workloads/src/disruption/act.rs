//! What is done about a PodDisruptionBudget: a write of its status.

use super::DISRUPTION_ALLOWED;
use super::decide::{Condition, Decision, Status, Why};
use super::observe::Scene;
use crate::kinds::{BUDGET, POD};
use crate::status::{conditions_of, with};
use interlock_kernel::conditions::Finding;
use interlock_kernel::metadata::namespace_of;
use interlock_kernel::{Nothing, Object, Place, Read, Step, Write};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(why) => Step::rest(because(why)),
        Decision::WaitForDeletion(at_most) => {
            Step::Wait { because: "a pod that was evicted is not deleted yet".to_owned(), at_most }
        }
        Decision::ReadPods => {
            let namespace = Some(namespace_of(&scene.budget).to_owned());
            Step::LiveRead {
                reads: vec![Read::List { place: Place::CLUSTER, kind: POD, namespace }],
                because: "the cache does not show a pod that was evicted".to_owned(),
            }
        }
        Decision::Report(status) => report(scene, &status),
    }
}

fn because(why: Why) -> &'static str {
    match why {
        Why::Terminating => "the PodDisruptionBudget is being deleted",
        Why::Reported => "the status is what the pods show",
    }
}

fn report(scene: &Scene, status: &Status) -> Step<Nothing> {
    let budget = &scene.budget;
    let mut change = json!({
        "expectedPods": status.expected,
        "currentHealthy": status.healthy,
        "desiredHealthy": status.desired,
        "disruptionsAllowed": status.allowed,
        "observedGeneration": status.generation,
        "conditions": conditions(budget, status.condition.as_ref(), scene.now),
    });
    let noted = budget.data["status"]["disruptedPods"].as_object().into_iter().flatten();
    let dropped = noted.filter(|(name, _)| !status.disrupted.contains(*name));
    let dropped: Map<String, Value> =
        dropped.map(|(name, _)| (name.clone(), Value::Null)).collect();
    if !dropped.is_empty() {
        change["disruptedPods"] = Value::Object(dropped);
    }
    let write = Write::patch_status(Place::CLUSTER, &BUDGET, budget, json!({"status": change}));
    Step::write(write, "the pods show another status")
}

/// The conditions of a budget with this one, which has a generation of its own, unlike those of other workloads.
fn conditions(budget: &Object, condition: Option<&Condition>, now: Timestamp) -> Vec<Value> {
    let known = conditions_of(budget);
    let Some(Condition { reason, message, generation }) = condition else { return known };
    let finding = match reason.allows() {
        true => Finding::holds(DISRUPTION_ALLOWED, reason.word(), message.clone()),
        false => Finding::fails(DISRUPTION_ALLOWED, reason.word(), message.clone()),
    };
    let mut all = with(&known, &finding, now);
    for own in all.iter_mut().filter(|it| it["type"] == DISRUPTION_ALLOWED) {
        own["observedGeneration"] = json!(generation);
    }
    all
}
