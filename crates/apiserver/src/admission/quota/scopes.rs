//! Scopes: which pods a quota is about.

use crate::behaviour::read::{at, is_set, list, text};
use crate::resource::Resource;
use serde_json::Value;

/// Whether a quota is about an object. One with scopes is about pods only.
pub(super) fn takes(quota: &Value, resource: &Resource, object: &Value) -> bool {
    let scopes = list(quota, "spec.scopes");
    let selected = list(quota, "spec.scopeSelector.matchExpressions");
    if scopes.is_empty() && selected.is_empty() {
        return true;
    }
    if !resource.group.is_empty() || &*resource.plural != "pods" {
        return false;
    }
    scopes.iter().all(|scope| is_in(scope.as_str().unwrap_or_default(), object))
        && selected.iter().all(|selector| is_selected(selector, object))
}

fn is_in(scope: &str, pod: &Value) -> bool {
    match scope {
        "Terminating" => is_set(pod, "spec.activeDeadlineSeconds"),
        "NotTerminating" => !is_set(pod, "spec.activeDeadlineSeconds"),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => !text(pod, "spec.priorityClassName").is_empty(),
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

fn is_selected(selector: &Value, pod: &Value) -> bool {
    let scope = text(selector, "scopeName");
    if scope != "PriorityClass" {
        return is_in(scope, pod);
    }
    let class = text(pod, "spec.priorityClassName");
    let is_named = list(selector, "values").iter().any(|value| value == class);
    match text(selector, "operator") {
        "In" => is_named,
        "NotIn" => !is_named,
        "Exists" => !class.is_empty(),
        "DoesNotExist" => class.is_empty(),
        _ => false,
    }
}

/// Whether no container says how much processor time or memory it wants.
fn is_best_effort(pod: &Value) -> bool {
    let mut containers =
        list(pod, "spec.containers").iter().chain(list(pod, "spec.initContainers"));
    let says = |of: &Value| {
        ["requests", "limits"].iter().any(|which| {
            let amounts = at(of, "resources").get(*which);
            ["cpu", "memory"].iter().any(|name| amounts.is_some_and(|all| all.get(*name).is_some()))
        })
    };
    !containers.any(says) && !says(at(pod, "spec"))
}

fn reaches_other_namespaces(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|which| {
        let affinity = at(pod, "spec.affinity").get(*which).unwrap_or(&Value::Null);
        let required = list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .map(|term| at(term, "podAffinityTerm"));
        required
            .chain(preferred)
            .any(|term| !list(term, "namespaces").is_empty() || is_set(term, "namespaceSelector"))
    })
}
