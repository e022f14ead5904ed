//! Evictions: a pod is deleted if the PodDisruptionBudget that selects it allows it.
//!
//! Upstream first takes one from the budget and then deletes the pod. Here it is one transaction: a deletion that
//! fails takes nothing, and no two evictions take the same one.

use super::subresources::{posted, success};
use crate::admission;
use crate::behaviour::read::{at, entries, list, number, text};
use crate::brought::Brought;
use crate::call::{Call, decode_body};
use crate::http::{self, Body};
use crate::object;
use crate::request::{DeleteOptions, WriteKind};
use crate::selector::LabelSelector;
use crate::status::{Cause, Status};
use crate::storage::{self, Owner};
use ::http::Response;
use interlock_store::{Guard, KeyRange, Operation, Transaction, Versioned};
use serde_json::{Value, json};

/// A budget whose controller has not yet seen so many evictions allows no more of them, as upstream has it.
const MOST_DISRUPTED: usize = 2_000;
/// When to ask again while the controller of a budget has not yet seen its last change.
const RETRY_SECONDS: u32 = 10;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// The condition that says whether a budget allows any more evictions.
const ALLOWED: &str = "DisruptionAllowed";

/// Deletes a pod, for those who may evict but not delete.
pub(super) async fn evict(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    call.take_options(&brought, WriteKind::Create)?;
    let eviction = decode_body(&brought.content_type, &brought.body, false)?.value;
    let options = |eviction: &Value| match eviction.get("deleteOptions") {
        Some(options) if options.is_object() => DeleteOptions::from_body(options),
        _ => brought.query.delete_options(),
    };
    call.dry_run |= options(&eviction)?.dry_run;
    let posted = posted("policy/v1", "Eviction", &eviction);
    let eviction = admission::mutate_posted(&mut call, posted).await?;
    if object::name(&eviction) != call.name {
        let why = "name in URL does not match name in Eviction object";
        return Err(Status::bad_request(why));
    }
    let mut options = options(&eviction)?;
    options.dry_run |= call.dry_run;
    call.dry_run = options.dry_run;
    call.delete_with(&options).await?;
    Ok(http::json(201, &success()))
}

impl Call {
    /// Whether the call deletes a pod only as far as its budget allows it.
    pub(super) fn is_eviction(&self) -> bool {
        self.subresource == "eviction"
    }
}

/// What is committed along with the eviction of a pod; a refusal if its budget does not allow it.
pub(super) async fn charge(call: &Call, pod: &Value) -> Result<Transaction, Status> {
    if needs_no_budget(pod) {
        return Ok(Transaction::default());
    }
    let budgets = budgets_of(call, pod).await?;
    let Some((stored, others)) = budgets.split_first() else { return Ok(Transaction::default()) };
    if !others.is_empty() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                   does not support.";
        return Err(Status::new(500, "", why));
    }
    let guard = Guard::At(stored.key.clone(), stored.modified);
    let mut budget = object::decode(stored);
    if is_spared(pod, &budget) {
        return Ok(Transaction { guards: vec![guard], ..Transaction::default() });
    }
    check(&budget)?;
    take_one(&mut budget, &call.name, &call.now_text());
    Ok(Transaction::one(guard, Operation::Put(stored.key.clone(), object::encode(&budget))))
}

/// Whether a pod serves nobody: it has ended, has not begun, or is being deleted.
fn needs_no_budget(pod: &Value) -> bool {
    matches!(text(pod, "status.phase"), "Succeeded" | "Failed" | "Pending")
        || object::is_deleting(pod)
}

/// The budgets that select a pod.
async fn budgets_of(call: &Call, pod: &Value) -> Result<Vec<Versioned>, Status> {
    let table = storage::table_of("policy", "poddisruptionbudgets", "-");
    let prefix = storage::prefix(Owner::Cluster(&call.cluster.id), Some(&call.namespace));
    let range = KeyRange::prefix(table, prefix.as_str());
    let page = call.server.storage().range(range, None, usize::MAX).await;
    let mut budgets = page.map_err(storage::read_refused)?.items;
    budgets.retain(|stored| selects(&object::decode(stored), pod));
    Ok(budgets)
}

/// Whether a budget is for a pod. An empty selector selects every pod of the namespace, an absent one selects none.
fn selects(budget: &Value, pod: &Value) -> bool {
    let selector = at(budget, "spec.selector");
    let labels = at(pod, "metadata.labels");
    selector.is_object()
        && LabelSelector::from_object(selector)
            .is_ok_and(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str)))
}

/// Whether a pod may go although the budget is used up: one that is not ready takes nothing from those that are.
fn is_spared(pod: &Value, budget: &Value) -> bool {
    let conditions = list(pod, "status.conditions").iter();
    let mut ready = conditions.filter(|condition| text(condition, "type") == "Ready");
    if ready.any(|condition| text(condition, "status") == "True") {
        return false;
    }
    let desired = number(budget, "status.desiredHealthy");
    text(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow"
        || (desired > 0 && number(budget, "status.currentHealthy") >= desired)
}

/// Whether a budget allows one more eviction; if not, a refusal in upstream's words.
fn check(budget: &Value) -> Result<(), Status> {
    let name = object::name(budget);
    let refused = |message: String| {
        let mut status = Status::new(429, "TooManyRequests", REFUSED);
        status.details.causes.push(Cause {
            reason: "DisruptionBudget",
            message,
            field: String::new(),
        });
        status
    };
    let forbidden = |why: &str| Err(Status::forbidden("policy", "poddisruptionbudget", name, why));
    if number(budget, "status.observedGeneration") < number(budget, "metadata.generation") {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        let mut status = refused(why);
        status.retry_after_seconds = Some(RETRY_SECONDS);
        return Err(status);
    }
    let allowed = number(budget, "status.disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if entries(budget, "status.disruptedPods").count() > MOST_DISRUPTED {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed > 0 {
        return Ok(());
    }
    let mut conditions = list(budget, "status.conditions").iter();
    let failed = conditions.find(|condition| {
        text(condition, "type") == ALLOWED && text(condition, "reason") == "SyncFailed"
    });
    Err(refused(match failed {
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {}",
            text(condition, "message")
        ),
        None => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number(budget, "status.desiredHealthy"),
            number(budget, "status.currentHealthy")
        ),
    }))
}

/// Takes one eviction from a budget. Its controller counts the pod as gone from then on, until it sees that it is.
fn take_one(budget: &mut Value, pod: &str, now: &str) {
    let left = number(budget, "status.disruptionsAllowed") - 1;
    object::put_at(budget, &["status", "disruptionsAllowed"], json!(left));
    object::put_at(budget, &["status", "disruptedPods", pod], json!(now));
    if left > 0 {
        return;
    }
    let condition = json!({
        "type": ALLOWED, "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": number(budget, "status.observedGeneration"),
        "lastTransitionTime": now,
    });
    set_condition(budget, condition);
}

/// Says of a pod why it is deleted: controllers tell a disruption from a failure by it.
pub(super) fn say_why(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    set_condition(pod, condition);
}

/// Puts a condition into a status in the place of the one of its type. If its status was the same, its time stays.
fn set_condition(object: &mut Value, mut condition: Value) {
    let mut conditions = list(object, "status.conditions").to_vec();
    match conditions.iter_mut().find(|held| held["type"] == condition["type"]) {
        Some(held) => {
            if held["status"] == condition["status"] {
                condition["lastTransitionTime"] = held["lastTransitionTime"].clone();
            }
            *held = condition;
        }
        None => conditions.push(condition),
    }
    object::put_at(object, &["status", "conditions"], json!(conditions));
}
