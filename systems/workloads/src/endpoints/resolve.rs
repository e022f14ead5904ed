//! Which pods a Service selects, and at which ports they serve it.

use super::decide::{Candidate, Endpoint, Port};
use crate::pod::condition;
use interlock_kernel::metadata::{is_deleting, name_of, uid_of};
use kube_core::DynamicObject;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What a Service selects; None: it selects nothing, or is only a name for something elsewhere.
pub(super) fn selector_of(service: &DynamicObject) -> Option<BTreeMap<String, String>> {
    let spec = &service.data["spec"];
    if spec["type"] == "ExternalName" {
        return None;
    }
    let selector = BTreeMap::<String, String>::deserialize(&spec["selector"]).ok()?;
    (!selector.is_empty()).then_some(selector)
}

/// Whether these labels have all that is selected by.
pub(super) fn is_selected(
    selector: &BTreeMap<String, String>,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    selector.iter().all(|(key, value)| labels.is_some_and(|all| all.get(key) == Some(value)))
}

/// Whether a slice has an endpoint that is this pod.
pub(super) fn names_pod(slice: &DynamicObject, pod: &DynamicObject) -> bool {
    let endpoints = slice.data["endpoints"].as_array();
    endpoints.into_iter().flatten().any(|endpoint| endpoint["targetRef"]["uid"] == uid_of(pod))
}

/// A pod as an endpoint of a Service; None: it has no address, or has ended.
pub(super) fn candidate(service: &DynamicObject, pod: &DynamicObject) -> Option<Candidate> {
    let status = &pod.data["status"];
    if matches!(status["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let address: Ipv4Addr = status["podIP"].as_str()?.parse().ok()?;
    let is_serving = condition(&pod.data, "Ready").is_some_and(|ready| ready["status"] == "True");
    let is_terminating = is_deleting(pod);
    let publishes_all = service.data["spec"]["publishNotReadyAddresses"] == true;
    let spec = &pod.data["spec"];
    let is_named = spec["subdomain"] == name_of(service);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(Candidate {
        ports: ports_of(service, pod),
        endpoint: Endpoint {
            pod: name_of(pod).to_owned(),
            uid: uid_of(pod).to_owned(),
            address,
            is_ready: publishes_all || (is_serving && !is_terminating),
            is_serving,
            is_terminating,
            node: text(&spec["nodeName"]),
            hostname: text(&spec["hostname"]).filter(|_| is_named),
        },
    })
}

/// The ports of a Service at one pod. A port with a name that no container of the pod has is left out.
fn ports_of(service: &DynamicObject, pod: &DynamicObject) -> BTreeSet<Port> {
    let ports = service.data["spec"]["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| port_at(port, pod)).collect()
}

fn port_at(port: &Value, pod: &DynamicObject) -> Option<Port> {
    let text = |field: &str| port[field].as_str().unwrap_or_default();
    let protocol = Some(text("protocol")).filter(|word| !word.is_empty()).unwrap_or("TCP");
    let target = &port["targetPort"];
    let number = match target.as_str() {
        Some(name) => named_port(pod, name, protocol),
        // Upstream reads 0 as not given: the port of the Service itself.
        None => target.as_u64().filter(|number| *number > 0).or(port["port"].as_u64()),
    };
    Some(Port {
        name: text("name").to_owned(),
        protocol: protocol.to_owned(),
        number: u16::try_from(number?).ok()?,
        application: port["appProtocol"].as_str().map(str::to_owned),
    })
}

/// The number of a port that a container of a pod has by name.
fn named_port(pod: &DynamicObject, name: &str, protocol: &str) -> Option<u64> {
    let containers = pod.data["spec"]["containers"].as_array().into_iter().flatten();
    let ports = containers.flat_map(|it| it["ports"].as_array().into_iter().flatten());
    let is_it = |port: &&Value| {
        port["name"] == name && port["protocol"].as_str().unwrap_or("TCP") == protocol
    };
    ports.filter(is_it).find_map(|port| port["containerPort"].as_u64())
}
