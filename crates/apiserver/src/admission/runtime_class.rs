//! RuntimeClasses: what a class adds to the pods that name it.

use super::amounts::amounts;
use crate::behaviour::read::{at, entries, is_set, list, text};
use crate::call::Call;
use crate::object;
use crate::status::Status;
use crate::storage;
use interlock_store::{Guard, Key};
use serde_json::{Value, json};

/// Gives a new pod what its class says, and what must still be so when the pod is committed.
pub(crate) async fn fill_in(call: &Call, pod: &mut Value) -> Result<Option<Guard>, Status> {
    let is_pod = call.resource.group.is_empty() && &*call.resource.plural == "pods";
    if !is_pod || !call.subresource.is_empty() {
        return Ok(None);
    }
    let name = object::name(pod).to_owned();
    let refused = |why: String| Status::forbidden("", "pods", &name, why);
    let has_overhead = entries(pod, "spec.overhead").next().is_some();
    let unasked = || {
        let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                   Overhead";
        refused(why.to_owned())
    };
    let class = text(pod, "spec.runtimeClassName").to_owned();
    if class.is_empty() {
        return if has_overhead { Err(unasked()) } else { Ok(None) };
    }
    let table = storage::table_of("node.k8s.io", "runtimeclasses", "-");
    let key = Key::new(table, storage::row(&call.cluster.id, "", &class));
    let Some(versioned) = call.server.storage().get(&key).await? else {
        return Err(refused(format!("pod rejected: RuntimeClass {class:?} not found")));
    };
    let class = object::decode(&versioned);
    if is_set(&class, "overhead") {
        let fixed = at(&class, "overhead.podFixed");
        if has_overhead && amounts(fixed) != amounts(at(pod, "spec.overhead")) {
            let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return Err(refused(why.to_owned()));
        }
        if fixed.is_object() {
            object::put_at(pod, &["spec", "overhead"], fixed.clone());
        }
    } else if has_overhead {
        return Err(unasked());
    }
    schedule(&class, pod).map_err(refused)?;
    Ok(Some(Guard::At(key, versioned.modified)))
}

/// Where pods of the class can run.
fn schedule(class: &Value, pod: &mut Value) -> Result<(), String> {
    for (key, wanted) in entries(class, "scheduling.nodeSelector") {
        let given = at(pod, "spec.nodeSelector").get(key).cloned().unwrap_or(Value::Null);
        if !given.is_null() && given != *wanted {
            let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                 pod.spec.nodeSelector[{key}] = {}",
                shown(wanted),
                shown(&given)
            ));
        }
        object::put_at(pod, &["spec", "nodeSelector", key], wanted.clone());
    }
    let mut tolerations = list(pod, "spec.tolerations").to_vec();
    let before = tolerations.len();
    for toleration in list(class, "scheduling.tolerations") {
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
        }
    }
    if tolerations.len() > before {
        object::put_at(pod, &["spec", "tolerations"], json!(tolerations));
    }
    Ok(())
}
