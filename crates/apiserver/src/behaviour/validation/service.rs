//! Checks of services.

use super::checks::{by_rule, one_of, port, port_number};
use crate::behaviour::read::{at, is_set, list, number, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let spec = at(object, "spec");
    let kind = text(spec, "type");
    let is_headless = is_headless(spec);
    let ports = list(spec, "ports");
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(FieldError::required(path.field("ports"), ""));
    }
    let addresses = path.field("clusterIPs");
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(addresses.index(0), &json!("None"), detail));
        }
        "ExternalName" => external_name(spec, &path, errors),
        _ => {}
    }
    service_ports(spec, &path.field("ports"), errors);
    selector::validate_labels(at(spec, "selector"), &path.field("selector"), errors);
    let affinity = path.field("sessionAffinity");
    one_of(at(spec, "sessionAffinity"), &["ClientIP", "None"], &affinity, errors);
    one_of(at(spec, "type"), &TYPES, &path.field("type"), errors);
    if is_set(spec, "allocateLoadBalancerNodePorts") && kind != "LoadBalancer" {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(path.field("allocateLoadBalancerNodePorts"), detail));
    }
    let affinity_seconds = at(spec, "sessionAffinityConfig.clientIP.timeoutSeconds");
    if affinity_seconds.as_i64().is_some_and(|seconds| !(1..=86_400).contains(&seconds)) {
        let config = path.field("sessionAffinityConfig");
        let client = config.field("clientIP");
        let field = client.field("timeoutSeconds");
        let detail = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(field, affinity_seconds, detail));
    }
}

pub(super) fn is_headless(spec: &Value) -> bool {
    match list(spec, "clusterIPs") {
        [] => text(spec, "clusterIP") == "None",
        [only] => only == "None",
        _ => false,
    }
}

fn external_name(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if at(spec, field).as_array().map_or(is_set(spec, field), |list| !list.is_empty()) {
            let detail = "may not be set for ExternalName services";
            errors.push(FieldError::forbidden(path.field(field), detail));
        }
    }
    let field = path.field("externalName");
    match text(spec, "externalName").trim_end_matches('.') {
        "" => errors.push(FieldError::required(field, "")),
        host => by_rule(host, name::dns1123_subdomain, &field, errors),
    }
}

fn service_ports(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let ports = list(spec, "ports");
    let (mut names, mut node_ports, mut numbers) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, one) in ports.iter().enumerate() {
        let path = path.index(index);
        match text(one, "name") {
            "" if ports.len() > 1 => errors.push(FieldError::required(path.field("name"), "")),
            "" => {}
            given => {
                by_rule(given, name::dns1123_label, &path.field("name"), errors);
                if !names.insert(given) {
                    errors.push(FieldError::duplicate(path.field("name"), &json!(given)));
                }
            }
        }
        port_number(at(one, "port"), &path.field("port"), errors);
        one_of(at(one, "protocol"), &PROTOCOLS, &path.field("protocol"), errors);
        port(at(one, "targetPort"), &path.field("targetPort"), errors);
        let node_port = number(one, "nodePort");
        if node_port != 0 && text(spec, "type") == "ClusterIP" {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(path.field("nodePort"), detail));
        }
        let protocol = text(one, "protocol");
        if node_port != 0 && !node_ports.insert((protocol, node_port)) {
            errors.push(FieldError::duplicate(path.field("nodePort"), &json!(node_port)));
        }
        if !numbers.insert((protocol, number(one, "port"))) {
            let value = json!({"protocol": protocol, "port": number(one, "port")});
            errors.push(FieldError::duplicate(path, &value));
        }
    }
}
