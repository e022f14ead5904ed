//! What a service keeps when it changes, and what it loses with its type.

use super::read::{at, fill, fill_zero, list, list_mut, number, object_mut, text};
use serde_json::{Value, json};

/// Keeps what was allocated, and drops what the new type has no use for.
pub(super) fn prepare_update(old: &Value, new: &mut Value) {
    keep_allocated(old, new);
    drop_with_type(old, new);
}

/// The list of addresses follows the single one.
pub(super) fn fill_cluster_addresses(object: &mut Value) {
    let address = text(object, "spec.clusterIP").to_owned();
    if address.is_empty() || !list(object, "spec.clusterIPs").is_empty() {
        return;
    }
    let is_selecting = at(object, "spec.selector").as_object().is_some_and(|it| !it.is_empty());
    if let Some(spec) = object_mut(object, "spec") {
        // Nothing is to be allocated for one without an address: it is of the family of the cluster.
        if address == "None" && is_selecting {
            fill(spec, "ipFamilies", json!(["IPv4"]));
            fill(spec, "ipFamilyPolicy", "SingleStack");
        }
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
}

/// A client that sends a service without its addresses and node ports does not mean to give them
/// up.
fn keep_allocated(old: &Value, new: &mut Value) {
    let needs_address = |service: &Value| text(service, "spec.type") != "ExternalName";
    if !needs_address(old) || !needs_address(new) {
        return;
    }
    let address = text(old, "spec.clusterIP");
    let Some(spec) = object_mut(new, "spec") else { return };
    if spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().is_empty()
        && !address.is_empty()
    {
        spec.insert("clusterIP".to_owned(), json!(address));
        if let Some(addresses) = old.get("spec").and_then(|spec| spec.get("clusterIPs")) {
            fill(spec, "clusterIPs", addresses.clone());
        }
    }
    for field in ["ipFamilies", "ipFamilyPolicy"] {
        if let Some(value) = old.get("spec").and_then(|spec| spec.get(field)) {
            fill(spec, field, value.clone());
        }
    }
    fill_cluster_addresses(new);
    let needs_node_port = matches!(text(new, "spec.type"), "NodePort" | "LoadBalancer");
    if !needs_node_port || !matches!(text(old, "spec.type"), "NodePort" | "LoadBalancer") {
        return;
    }
    let used: Vec<i64> =
        list(new, "spec.ports").iter().map(|port| number(port, "nodePort")).collect();
    for port in list_mut(new, "spec.ports") {
        let is_same = |other: &&Value| text(other, "name") == text(port, "name");
        let before = list(old, "spec.ports").iter().find(is_same);
        let before = before.map_or(0, |port| number(port, "nodePort"));
        if let Some(port) = port.as_object_mut().filter(|_| before > 0 && !used.contains(&before)) {
            fill_zero(port, "nodePort", before);
        }
    }
}

/// A client that changes the type does not have to clear what came with the old one. What it
/// changed itself stays, for the checks to refuse.
fn drop_with_type(old: &Value, new: &mut Value) {
    let needs_node_port = |service: &Value| is_of(service, &["NodePort", "LoadBalancer"]);
    let is_balanced = |service: &Value| is_of(service, &["LoadBalancer"]);
    if needs_node_port(old) && !needs_node_port(new) {
        for port in list_mut(new, "spec.ports") {
            let node_port = number(port, "nodePort");
            let was_there =
                list(old, "spec.ports").iter().any(|one| number(one, "nodePort") == node_port);
            if let Some(port) = port.as_object_mut().filter(|_| was_there) {
                port.remove("nodePort");
            }
        }
        drop_if_same(old, new, &["externalTrafficPolicy", "healthCheckNodePort"]);
    }
    if is_balanced(old) && !is_balanced(new) {
        drop_if_same(old, new, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    let is_external = |service: &Value| is_of(service, &["ExternalName"]);
    if !is_external(old) && is_external(new) {
        let addresses =
            ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];
        drop_if_same(old, new, &addresses);
    }
}

fn is_of(service: &Value, types: &[&str]) -> bool {
    types.contains(&text(service, "spec.type"))
}

fn drop_if_same(old: &Value, new: &mut Value, fields: &[&str]) {
    let Some(spec) = object_mut(new, "spec") else { return };
    for field in fields {
        if spec.get(*field) == at(old, "spec").get(field) {
            spec.remove(*field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_keeps_its_address_and_its_node_ports() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"], "ports": [{"name": "a", "port": 80, "nodePort": 3000}]}});
        let mut new = json!({"spec": {"type": "NodePort", "ports": [{"name": "a", "port": 81}]}});
        prepare_update(&old, &mut new);
        assert_eq!(new["spec"]["clusterIP"], "10.0.0.1");
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.1"]));
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 3000);
    }

    #[test]
    fn a_service_that_is_no_longer_open_to_the_outside_loses_its_node_ports() {
        let old = json!({"spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "nodePort": 3000}]}});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ClusterIP");
        prepare_update(&old, &mut new);
        assert_eq!(new, json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}));
    }
}
