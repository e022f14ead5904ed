//! Defaults of the small groups: storage, network, scheduling, autoscaling, admission.

use super::core::is_empty_list;
use crate::behaviour::read::{at, ensured, fill, fill_zero, list, list_mut, object_mut};
use serde_json::{Map, Value, json};

pub(super) fn fill_in(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("storage.k8s.io", "StorageClass") => {
            let Some(class) = object.as_object_mut() else { return };
            fill(class, "reclaimPolicy", "Delete");
            fill(class, "volumeBindingMode", "Immediate");
        }
        ("storage.k8s.io", "CSIDriver") => csi_driver(object),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("networking.k8s.io", "IngressClass") => {
            if let Some(parameters) = object_mut(object, "spec.parameters") {
                fill(parameters, "scope", "Cluster");
            }
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            for port in list_mut(object, "ports").iter_mut().filter_map(Value::as_object_mut) {
                fill(port, "name", "");
                fill(port, "protocol", "TCP");
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            let Some(class) = object.as_object_mut() else { return };
            fill(class, "preemptionPolicy", "PreemptLowerPriority");
        }
        ("admissionregistration.k8s.io", kind) => admission(kind, object),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => {
            if let Some(spec) = ensured(object, "spec") {
                fill_zero(spec, "matchingPrecedence", 1_000);
            }
        }
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => priority_level(object),
        _ => {}
    }
}

fn csi_driver(object: &mut Value) {
    let has_no_modes = is_empty_list(object, "spec.volumeLifecycleModes");
    let Some(spec) = ensured(object, "spec") else { return };
    fill(spec, "attachRequired", true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        fill(spec, field, false);
    }
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if has_no_modes {
        spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
    }
}

fn network_policy(object: &mut Value) {
    let has_no_types = is_empty_list(object, "spec.policyTypes");
    let has_egress = !list(object, "spec.egress").is_empty();
    if let Some(spec) = ensured(object, "spec").filter(|_| has_no_types) {
        let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
    for direction in ["spec.ingress", "spec.egress"] {
        let rules = list_mut(object, direction).iter_mut();
        for port in rules.flat_map(|rule| list_mut(rule, "ports")).filter_map(Value::as_object_mut)
        {
            fill(port, "protocol", "TCP");
        }
    }
}

/// An autoscaler in the form that is stored, whichever version it came in.
pub(super) fn autoscaler(object: &mut Value) {
    let has_no_metrics = is_empty_list(object, "spec.metrics");
    let Some(spec) = ensured(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if has_no_metrics {
        let cpu = json!([{
            "type": "Resource",
            "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            },
        }]);
        spec.insert("metrics".to_owned(), cpu);
    }
    if !spec.get("behavior").is_some_and(Value::is_object) {
        return;
    }
    let quarter =
        |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    if let Some(up) = ensured(object, "spec.behavior.scaleUp") {
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(up, "policies", vec![quarter("Pods", 4), quarter("Percent", 100)]);
    }
    if let Some(down) = ensured(object, "spec.behavior.scaleDown") {
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", vec![quarter("Percent", 100)]);
    }
}

fn admission(kind: &str, object: &mut Value) {
    let is_mutating = kind == "MutatingWebhookConfiguration";
    if is_mutating || kind == "ValidatingWebhookConfiguration" {
        for webhook in list_mut(object, "webhooks") {
            fill_in_webhook(webhook, is_mutating);
        }
        return;
    }
    if let Some(spec) = object_mut(object, "spec").filter(|_| !kind.ends_with("Binding")) {
        fill(spec, "failurePolicy", "Fail");
    }
    for field in ["matchConstraints", "matchResources"] {
        let path = format!("spec.{field}");
        if at(object, &path).is_object() {
            fill_in_matching(object, &path);
        }
    }
}

fn fill_in_matching(object: &mut Value, path: &str) {
    let Some(matching) = object_mut(object, path) else { return };
    fill(matching, "matchPolicy", "Equivalent");
    fill(matching, "namespaceSelector", Map::new());
    fill(matching, "objectSelector", Map::new());
    for field in ["resourceRules", "excludeResourceRules"] {
        for rule in list_mut(object, &format!("{path}.{field}")) {
            fill_in_scope(rule);
        }
    }
}

fn fill_in_scope(rule: &mut Value) {
    if let Some(rule) = rule.as_object_mut() {
        fill(rule, "scope", "*");
    }
}

fn fill_in_webhook(webhook: &mut Value, is_mutating: bool) {
    let Some(object) = webhook.as_object_mut() else { return };
    fill(object, "failurePolicy", "Fail");
    fill(object, "matchPolicy", "Equivalent");
    fill(object, "namespaceSelector", Map::new());
    fill(object, "objectSelector", Map::new());
    fill(object, "timeoutSeconds", 10);
    if is_mutating {
        fill(object, "reinvocationPolicy", "Never");
    }
    list_mut(webhook, "rules").iter_mut().for_each(fill_in_scope);
    if let Some(service) = object_mut(webhook, "clientConfig.service") {
        fill(service, "port", 443);
    }
}

fn priority_level(object: &mut Value) {
    if let Some(exempt) = object_mut(object, "spec.exempt") {
        fill(exempt, "nominalConcurrencyShares", 0);
        fill(exempt, "lendablePercent", 0);
    }
    if let Some(limited) = object_mut(object, "spec.limited") {
        fill(limited, "nominalConcurrencyShares", 30);
        fill(limited, "lendablePercent", 0);
    }
    if let Some(queuing) = object_mut(object, "spec.limited.limitResponse.queuing") {
        fill_zero(queuing, "handSize", 8);
        fill_zero(queuing, "queues", 64);
        fill_zero(queuing, "queueLengthLimit", 50);
    }
}
