//! Defaults of the core group.

use super::pod;
use crate::behaviour::events;
use crate::behaviour::read::{
    at, ensured, entries, fill, fill_zero, is_set, list, list_mut, number, object_mut, text,
};
use serde_json::{Map, Value, json};

const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn fill_in(kind: &str, object: &mut Value) {
    match kind {
        "Namespace" => namespace(object),
        "Secret" => {
            if let Some(secret) = object.as_object_mut() {
                fill_zero(secret, "type", "Opaque");
            }
        }
        "Event" => events::defaults(object),
        "Pod" => pod::fill_in_pod(object),
        "PodTemplate" => pod::fill_in_template(object, "template.spec"),
        "ReplicationController" => replication_controller(object),
        "Service" => service(object),
        "Endpoints" => {
            for port in
                list_mut(object, "subsets").iter_mut().flat_map(|one| list_mut(one, "ports"))
            {
                fill_protocol(port);
            }
        }
        "PersistentVolume" => volume(object),
        "PersistentVolumeClaim" => claim(object),
        "Node" => node(object),
        "LimitRange" => list_mut(object, "spec.limits").iter_mut().for_each(limit),
        _ => {}
    }
}

fn fill_protocol(port: &mut Value) {
    if let Some(port) = port.as_object_mut() {
        fill_zero(port, "protocol", "TCP");
    }
}

fn namespace(object: &mut Value) {
    let name = text(object, "metadata.name").to_owned();
    if !name.is_empty()
        && let Some(labels) = ensured(object, "metadata.labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
    ensured(object, "spec");
    if let Some(status) = ensured(object, "status") {
        fill_zero(status, "phase", "Active");
    }
}

fn replication_controller(object: &mut Value) {
    let labels = at(object, "spec.template.metadata.labels").clone();
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        if entries(object, "spec.selector").next().is_none()
            && let Some(spec) = object_mut(object, "spec")
        {
            spec.insert("selector".to_owned(), labels.clone());
        }
        if entries(object, "metadata.labels").next().is_none()
            && let Some(metadata) = ensured(object, "metadata")
        {
            metadata.insert("labels".to_owned(), labels);
        }
    }
    if let Some(spec) = object_mut(object, "spec") {
        fill(spec, "replicas", 1);
    }
    if is_set(object, "spec.template") {
        pod::fill_in_template(object, "spec.template.spec");
    }
}

fn service(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill_zero(spec, "sessionAffinity", "None");
    fill_zero(spec, "type", "ClusterIP");
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        Some("ClientIP") => {
            let config = spec.get("sessionAffinityConfig").unwrap_or(&Value::Null);
            if !is_set(config, "clientIP.timeoutSeconds") {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        Some(_) | None => {}
    }
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_balanced = kind == "LoadBalancer";
    let has_external =
        spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if is_balanced || kind == "NodePort" || (kind == "ClusterIP" && has_external) {
        fill_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    if is_balanced || kind == "NodePort" || kind == "ClusterIP" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_balanced {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
    for port in list_mut(object, "spec.ports") {
        fill_protocol(port);
        let outer = number(port, "port");
        if let Some(port) = port.as_object_mut() {
            fill_zero(port, "targetPort", outer);
        }
    }
    if is_balanced {
        for ingress in list_mut(object, "status.loadBalancer.ingress") {
            let has_address = !text(ingress, "ip").is_empty();
            if let Some(ingress) = ingress.as_object_mut().filter(|_| has_address) {
                fill(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn volume(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    if let Some(Value::Object(path)) = spec.get_mut("hostPath") {
        fill(path, "type", "");
    }
    if let Some(Value::Object(disk)) = spec.get_mut("iscsi") {
        fill_zero(disk, "iscsiInterface", "default");
    }
    if let Some(status) = ensured(object, "status") {
        fill_zero(status, "phase", "Pending");
    }
}

fn claim(object: &mut Value) {
    claim_spec(object);
    if let Some(status) = ensured(object, "status") {
        fill_zero(status, "phase", "Pending");
    }
}

/// The spec of a claim, also of one that is a template inside a StatefulSet.
pub(super) fn claim_spec(object: &mut Value) {
    if let Some(spec) = ensured(object, "spec") {
        fill(spec, "volumeMode", "Filesystem");
        fill(spec, "resources", Map::new());
    }
}

fn node(object: &mut Value) {
    let capacity = at(object, "status.capacity").clone();
    if capacity.is_object()
        && let Some(status) = object_mut(object, "status")
    {
        fill(status, "allocatable", capacity);
    }
}

fn limit(item: &mut Value) {
    if text(item, "type") != "Container" {
        return;
    }
    let amounts =
        |item: &Value, field: &str| at(item, field).as_object().cloned().unwrap_or_default();
    let (most, least) = (amounts(item, "max"), amounts(item, "min"));
    let mut default = amounts(item, "default");
    for (resource, amount) in most {
        default.entry(resource).or_insert(amount);
    }
    let mut request = amounts(item, "defaultRequest");
    for (resource, amount) in default.iter().chain(&least) {
        request.entry(resource.clone()).or_insert_with(|| amount.clone());
    }
    let Some(item) = item.as_object_mut() else { return };
    for (field, amounts) in [("default", default), ("defaultRequest", request)] {
        if !amounts.is_empty()
            && item.get(field).is_none_or(|given| given.is_object() || given.is_null())
        {
            item.insert(field.to_owned(), Value::Object(amounts));
        }
    }
}

/// Whether a list has nothing in it, or is not there.
pub(super) fn is_empty_list(object: &Value, path: &str) -> bool {
    matches!(at(object, path), Value::Null | Value::Array(_)) && list(object, path).is_empty()
}
