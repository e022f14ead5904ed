//! How kinds of the core group are shown.

use super::{AGE, CONTAINERS, Cells, Heading, IMAGES, NAME, Printer, SELECTOR, age, containers};
use super::{integer_column, joined, name, or, pod, quantity, text_column, wide};
use crate::age as ages;
use crate::behaviour::events;
use crate::behaviour::read::{at, entries, is_set, is_true, list, number, text};
use crate::behaviour::selector::shown_labels;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match kind {
        "Pod" => (&pod::HEADINGS, pod::cells),
        "PodTemplate" => (&POD_TEMPLATE, pod_template),
        "ReplicationController" => (&REPLICATION_CONTROLLER, replication_controller),
        "Service" => (&SERVICE, service),
        "Endpoints" => (&ENDPOINTS, endpoints),
        "Node" => (&NODE, node),
        "Event" => (&EVENT, event),
        "Namespace" => (&NAMESPACE, namespace),
        "Secret" => (&SECRET, secret),
        "ConfigMap" => (&CONFIG_MAP, config_map),
        "ServiceAccount" => (&SERVICE_ACCOUNT, service_account),
        "PersistentVolume" => (&VOLUME, volume),
        "PersistentVolumeClaim" => (&CLAIM, claim),
        "ResourceQuota" => (&QUOTA, quota),
        _ => return None,
    };
    Some(Printer { headings, cells })
}

/// Events have two groups and one look.
pub(super) fn event_printer(kind: &str) -> Option<Printer> {
    (kind == "Event").then_some(Printer { headings: &EVENT, cells: event })
}

static POD_TEMPLATE: [Heading; 4] = [
    NAME,
    text_column("Containers", "The names of the template's containers."),
    text_column("Images", "The images of the template's containers."),
    text_column("Pod Labels", "The labels of the template."),
];

fn pod_template(object: &Value, _now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "template.spec.containers");
    vec![name(object), names, images, json!(shown_labels(at(object, "template.metadata.labels")))]
}

static REPLICATION_CONTROLLER: [Heading; 8] = [
    NAME,
    integer_column("Desired", ".spec.replicas"),
    integer_column("Current", ".status.replicas"),
    integer_column("Ready", ".status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "spec.template.spec.containers");
    vec![
        name(object),
        json!(number(object, "spec.replicas")),
        json!(number(object, "status.replicas")),
        json!(number(object, "status.readyReplicas")),
        age(object, now),
        names,
        images,
        json!(shown_labels(at(object, "spec.selector"))),
    ]
}

static SERVICE: [Heading; 7] = [
    NAME,
    text_column("Type", ".spec.type"),
    text_column("Cluster-IP", ".spec.clusterIP"),
    text_column("External-IP", ".spec.externalIPs"),
    text_column("Port(s)", ".spec.ports"),
    AGE,
    SELECTOR,
];

fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    // Upstream fills the list from the single address and the other way round; either may be
    // missing here.
    let first = list(object, "spec.clusterIPs").first().and_then(Value::as_str).unwrap_or_default();
    let address = or(first, text(object, "spec.clusterIP"));
    let ports: Vec<String> = list(object, "spec.ports").iter().map(service_port).collect();
    vec![
        name(object),
        json!(text(object, "spec.type")),
        json!(or(address, "<none>")),
        json!(external_address(object)),
        json!(or(&ports.join(","), "<none>")),
        age(object, now),
        json!(shown_labels(at(object, "spec.selector"))),
    ]
}

fn service_port(port: &Value) -> String {
    let (number_, protocol) = (number(port, "port"), text(port, "protocol"));
    match number(port, "nodePort") {
        node_port if node_port > 0 => format!("{number_}:{node_port}/{protocol}"),
        _ => format!("{number_}/{protocol}"),
    }
}

fn external_address(object: &Value) -> String {
    let external = joined(object, "spec.externalIPs");
    match text(object, "spec.type") {
        "ClusterIP" | "NodePort" => or(&external, "<none>").to_owned(),
        "LoadBalancer" => {
            let balancer = balancer_addresses(object);
            match (balancer.is_empty(), external.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (true, false) => external,
                (false, true) => balancer,
                (false, false) => format!("{balancer},{external}"),
            }
        }
        "ExternalName" => text(object, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses of a load balancer, each once and in order.
pub(super) fn balancer_addresses(object: &Value) -> String {
    let addresses: BTreeSet<&str> = list(object, "status.loadBalancer.ingress")
        .iter()
        .map(|ingress| or(text(ingress, "ip"), text(ingress, "hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

static ENDPOINTS: [Heading; 3] = [NAME, text_column("Endpoints", ".subsets"), AGE];

fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let subsets = list(object, "subsets");
    let mut all = Vec::new();
    for subset in subsets {
        let addresses: Vec<&str> =
            list(subset, "addresses").iter().map(|address| text(address, "ip")).collect();
        let ports = list(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| (*address).to_owned()));
        }
        for port in ports {
            let port = number(port, "port");
            all.extend(addresses.iter().map(|address| host_and_port(address, port)));
        }
    }
    let shown = match (subsets.is_empty(), all.len()) {
        (true, _) => "<none>".to_owned(),
        (false, 0..=3) => all.join(","),
        (false, count) => format!("{} + {} more...", all[..3].join(","), count - 3),
    };
    vec![name(object), json!(shown), age(object, now)]
}

fn host_and_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

static NODE: [Heading; 10] = [
    NAME,
    text_column("Status", "The status of the node"),
    text_column("Roles", "The roles of the node"),
    AGE,
    text_column("Version", ".status.nodeInfo.kubeletVersion"),
    wide("Internal-IP", ".status.addresses"),
    wide("External-IP", ".status.addresses"),
    wide("OS-Image", ".status.nodeInfo.osImage"),
    wide("Kernel-Version", ".status.nodeInfo.kernelVersion"),
    wide("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion"),
];

fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    // Of several Ready conditions the last counts, as upstream gathers them in a map.
    let ready = list(object, "status.conditions").iter().rfind(|one| text(one, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if is_true(object, "spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = list(object, "status.addresses").iter().find(|one| text(one, "type") == kind);
        json!(found.map_or("<none>", |one| text(one, "address")))
    };
    let info = |field: &str| text(at(object, "status.nodeInfo"), field).to_owned();
    vec![
        name(object),
        json!(status),
        json!(or(&node_roles(object), "<none>")),
        age(object, now),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(or(&info("osImage"), "<unknown>")),
        json!(or(&info("kernelVersion"), "<unknown>")),
        json!(or(&info("containerRuntimeVersion"), "<unknown>")),
    ]
}

fn node_roles(object: &Value) -> String {
    let roles: BTreeSet<&str> = entries(object, "metadata.labels")
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => value.as_str().filter(|_| key == "kubernetes.io/role"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

static EVENT: [Heading; 10] = [
    text_column("Last Seen", ".lastTimestamp"),
    text_column("Type", ".type"),
    text_column("Reason", ".reason"),
    text_column("Object", ".involvedObject"),
    wide("Subobject", ".involvedObject.fieldPath"),
    wide("Source", ".source"),
    text_column("Message", ".message"),
    wide("First Seen", ".firstTimestamp"),
    wide("Count", ".count"),
    Heading {
        name: "Name",
        type_name: "string",
        format: "name",
        priority: 1,
        about: ".metadata.name",
    },
];

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    if events::is_newer(object) {
        let mut core = object.clone();
        events::from_events_v1(&mut core);
        return core_event(&core, now);
    }
    core_event(object, now)
}

fn core_event(object: &Value, now: Timestamp) -> Vec<Value> {
    let since = |path: &str| ages::since(at(object, path), now);
    let is_known = |path: &str| ages::moment(at(object, path)).is_some();
    let first =
        if is_known("firstTimestamp") { since("firstTimestamp") } else { since("eventTime") };
    let mut last = if is_known("lastTimestamp") { since("lastTimestamp") } else { first.clone() };
    let mut count = number(object, "count").max(1);
    if is_set(object, "series") {
        last = since("series.lastObservedTime");
        count = number(object, "series.count");
    }
    let kind = text(object, "involvedObject.kind").to_lowercase();
    let target = match text(object, "involvedObject.name") {
        "" => kind,
        about => format!("{kind}/{about}"),
    };
    let component = or(text(object, "source.component"), text(object, "reportingComponent"));
    let source = match or(text(object, "source.host"), text(object, "reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(last),
        json!(text(object, "type")),
        json!(text(object, "reason")),
        json!(target),
        json!(text(object, "involvedObject.fieldPath")),
        json!(source),
        json!(text(object, "message").trim()),
        json!(first),
        json!(count),
        name(object),
    ]
}

static NAMESPACE: [Heading; 3] = [NAME, text_column("Status", "The status of the namespace"), AGE];

fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "status.phase")), age(object, now)]
}

static SECRET: [Heading; 4] =
    [NAME, text_column("Type", ".type"), text_column("Data", ".data"), AGE];

fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = entries(object, "data").count();
    vec![name(object), json!(text(object, "type")), json!(count), age(object, now)]
}

static CONFIG_MAP: [Heading; 3] = [NAME, text_column("Data", ".data"), AGE];

fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = entries(object, "data").count() + entries(object, "binaryData").count();
    vec![name(object), json!(count), age(object, now)]
}

static SERVICE_ACCOUNT: [Heading; 2] = [NAME, AGE];

fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

static VOLUME: [Heading; 11] = [
    NAME,
    text_column("Capacity", ".spec.capacity"),
    text_column("Access Modes", ".spec.accessModes"),
    text_column("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
    text_column("Status", ".status.phase"),
    text_column("Claim", ".spec.claimRef"),
    text_column("StorageClass", "StorageClass of the pv"),
    text_column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
    text_column("Reason", ".status.reason"),
    AGE,
    wide("VolumeMode", ".spec.volumeMode"),
];

fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = if is_set(object, "spec.claimRef") {
        format!(
            "{}/{}",
            text(object, "spec.claimRef.namespace"),
            text(object, "spec.claimRef.name")
        )
    } else {
        String::new()
    };
    vec![
        name(object),
        json!(quantity(at(object, "spec.capacity.storage"))),
        json!(access_modes(at(object, "spec"))),
        json!(text(object, "spec.persistentVolumeReclaimPolicy")),
        json!(phase(object)),
        json!(claim),
        json!(storage_class(object)),
        json!(unset_or(at(object, "spec.volumeAttributesClassName"))),
        json!(text(object, "status.reason")),
        age(object, now),
        json!(unset_or(at(object, "spec.volumeMode"))),
    ]
}

static CLAIM: [Heading; 9] = [
    NAME,
    text_column("Status", ".status.phase"),
    text_column("Volume", ".spec.volumeName"),
    text_column("Capacity", ".status.capacity"),
    text_column("Access Modes", ".status.accessModes"),
    text_column("StorageClass", "StorageClass of the pvc"),
    text_column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
    AGE,
    wide("VolumeMode", ".spec.volumeMode"),
];

fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let volume = text(object, "spec.volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (quantity(at(object, "status.capacity.storage")), access_modes(at(object, "status")))
    };
    vec![
        name(object),
        json!(phase(object)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(storage_class(object)),
        json!(unset_or(at(object, "spec.volumeAttributesClassName"))),
        age(object, now),
        json!(unset_or(at(object, "spec.volumeMode"))),
    ]
}

fn phase(object: &Value) -> &str {
    if is_set(object, "metadata.deletionTimestamp") {
        return "Terminating";
    }
    text(object, "status.phase")
}

fn unset_or(value: &Value) -> &str {
    if value.is_null() { "<unset>" } else { value.as_str().unwrap_or_default() }
}

fn access_modes(part: &Value) -> String {
    let modes = list(part, "accessModes");
    let short: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| modes.iter().any(|one| one.as_str() == Some(mode)))
    .map(|(_, short)| short)
    .collect();
    short.join(",")
}

/// The class that an old annotation names goes before the field.
fn storage_class(object: &Value) -> &str {
    at(object, "metadata.annotations")
        .get("volume.beta.kubernetes.io/storage-class")
        .and_then(Value::as_str)
        .unwrap_or_else(|| text(object, "spec.storageClassName"))
}

static QUOTA: [Heading; 4] = [
    NAME,
    text_column("Request", "What is used and allowed of requests and counts."),
    text_column("Limit", "What is used and allowed of limits."),
    AGE,
];

fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(object, "status.hard") {
        let used = at(object, "status.used").get(resource).unwrap_or(&Value::Null);
        let shown = format!("{resource}: {}/{}", quantity(used), quantity(hard));
        if resource.starts_with("limits.") {
            limits.push(shown);
        } else {
            requests.push(shown);
        }
    }
    vec![name(object), json!(requests.join(", ")), json!(limits.join(", ")), age(object, now)]
}
