//! What the server decides on a write, whatever the client sent: status, generation, selectors.

use super::certificates;
use super::immutable::same;
use super::read::{at, ensured, fill, is_true, list, list_mut, number, object_mut, text};
use super::service;
use crate::resource::Resource;
use interlock_quantity::Quantity;
use serde_json::{Map, Value, json};

/// Which endpoint of an object is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The object itself: its status stays.
    Main,
    /// Its `/status`: all but the status stays.
    Status,
}

/// The annotation in which a DaemonSet counts the changes of its template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Makes a new object what the server wants it to be. The object has its uid by now.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    if resource.is_custom() {
        if resource.has_status {
            remove(object, "status");
        }
        return;
    }
    let (group, kind) = (&*resource.group, &*resource.kind);
    if let Some(status) = first_status(group, kind, object) {
        put(object, "status", status);
    } else if resource.has_status && (group, kind) != ("", "Node") {
        // The kubelet makes its Node with a status; all others start without one.
        remove(object, "status");
    }
    match (group, kind) {
        ("", "Namespace") => add_namespace_finalizer(object),
        ("", "Secret") => take_string_data(object),
        ("", "ServiceAccount") => keep_secret_names(object),
        ("", "PersistentVolumeClaim") => match_data_sources(object),
        ("apps", "DaemonSet") => count_template(object, 1),
        _ => {}
    }
}

/// What a new object gets that belongs to nobody: its owners are noted before.
pub(crate) fn complete_create(resource: &Resource, object: &mut Value) {
    match (&*resource.group, &*resource.kind) {
        ("", "Service") => service::fill_cluster_addresses(object),
        ("batch", "Job") => generate_job_selector(object),
        _ => {}
    }
}

/// Makes a changed object what the server wants it to be.
pub(crate) fn prepare_update(
    resource: &Resource,
    old: &Value,
    new: &mut Value,
    endpoint: Endpoint,
) {
    match endpoint {
        Endpoint::Main => prepare_main(resource, old, new),
        Endpoint::Status => prepare_status(resource, old, new),
    }
}

fn prepare_main(resource: &Resource, old: &Value, new: &mut Value) {
    if resource.has_status {
        copy(old, new, "status");
    }
    if resource.is_custom() {
        return;
    }
    match (&*resource.group, &*resource.kind) {
        ("", "Namespace") => {
            let finalizers = at(old, "spec.finalizers").clone();
            if let Some(spec) = ensured(new, "spec") {
                spec.insert("finalizers".to_owned(), finalizers);
            }
        }
        ("", "Secret") => take_string_data(new),
        ("", "ServiceAccount") => keep_secret_names(new),
        ("", "Service") => service::prepare_update(old, new),
        ("", "PersistentVolumeClaim") => match_data_sources(new),
        ("apps", "DaemonSet") => {
            let is_changed = !same(at(old, "spec.template"), at(new, "spec.template"));
            let count = at(old, "metadata.annotations").get(TEMPLATE_GENERATION);
            let count = count.and_then(Value::as_str).and_then(|count| count.parse().ok());
            count_template(new, count.unwrap_or(1_i64).saturating_add(i64::from(is_changed)));
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => copy(old, new, "spec"),
        _ => {}
    }
}

fn prepare_status(resource: &Resource, old: &Value, new: &mut Value) {
    let status = new.get("status").cloned();
    let metadata = new.get("metadata").cloned();
    let managed = metadata.as_ref().and_then(|metadata| metadata.get("managedFields")).cloned();
    *new = old.clone();
    match status {
        Some(status) => put(new, "status", status),
        None => remove(new, "status"),
    }
    let (group, kind) = (&*resource.group, &*resource.kind);
    if (group, kind) == ("certificates.k8s.io", "CertificateSigningRequest") {
        certificates::keep_approvals(old, new);
    }
    let keeps_metadata = resource.is_custom()
        || matches!(
            (group, kind),
            ("storage.k8s.io", "VolumeAttachment")
                | ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
                | ("networking.k8s.io", "ServiceCIDR")
                | ("apiextensions.k8s.io", _)
        );
    if keeps_metadata {
        let Some(metadata) = ensured(new, "metadata") else { return };
        match managed {
            Some(managed) => metadata.insert("managedFields".to_owned(), managed),
            None => metadata.remove("managedFields"),
        };
        return;
    }
    let Some(mut metadata) = metadata else { return };
    let kept: &[&str] = match (group, kind) {
        ("apps", "Deployment") => &["labels"],
        ("", "Pod") => &["ownerReferences"],
        _ => &[],
    };
    for field in kept {
        copy(at(old, "metadata"), &mut metadata, field);
    }
    put(new, "metadata", metadata);
    if (group, kind) == ("", "Pod") && text(new, "status.qosClass").is_empty() {
        let class = text(old, "status.qosClass").to_owned();
        if let Some(status) = object_mut(new, "status").filter(|_| !class.is_empty()) {
            status.insert("qosClass".to_owned(), json!(class));
        }
    }
}

/// What makes a built-in kind's generation move.
enum Generation {
    /// It has none.
    None,
    /// It is 1 and stays so.
    Fixed,
    /// A change of these fields, or of the labels or annotations where they count too.
    Fields(&'static [&'static str]),
    /// Any change beside the metadata.
    Everything,
}

fn generation(group: &str, kind: &str) -> Generation {
    match (group, kind) {
        ("apps", "Deployment") => Generation::Fields(&["spec", "metadata.annotations"]),
        ("", "PodTemplate") => Generation::Fields(&["template"]),
        ("", "Pod" | "ReplicationController")
        | ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job" | "CronJob")
        | ("policy", "PodDisruptionBudget")
        | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy" | "ServiceCIDR")
        | ("storage.k8s.io", "CSIDriver")
        | ("apiextensions.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
        | ("snapshot.storage.k8s.io", "VolumeSnapshot" | "VolumeSnapshotContent") => {
            Generation::Fields(&["spec"])
        }
        ("admissionregistration.k8s.io", _) => Generation::Fields(&["spec", "webhooks"]),
        ("discovery.k8s.io", "EndpointSlice") | ("snapshot.storage.k8s.io", _) => {
            Generation::Everything
        }
        ("scheduling.k8s.io", "PriorityClass") => Generation::Fixed,
        _ => Generation::None,
    }
}

/// Sets `metadata.generation`: 1 for a new object, one more when what is wanted has changed.
pub(crate) fn bump_generation(resource: &Resource, old: Option<&Value>, new: &mut Value) {
    let rule = if resource.is_custom() {
        Generation::Everything
    } else {
        generation(&resource.group, &resource.kind)
    };
    let Some(old) = old else {
        let is_counted = !matches!(rule, Generation::None);
        // Upstream forgot it for this one: its first change makes it 1.
        let is_late = !resource.is_custom() && &*resource.kind == "CSIDriver";
        if let Some(metadata) = ensured(new, "metadata").filter(|_| is_counted && !is_late) {
            metadata.insert("generation".to_owned(), json!(1));
        }
        return;
    };
    let is_changed = match rule {
        Generation::None | Generation::Fixed => false,
        Generation::Fields(fields) => {
            fields.iter().any(|field| !same(at(old, field), at(new, field)))
        }
        Generation::Everything => is_changed_beside_metadata(resource, old, new),
    };
    let generation = number(old, "metadata.generation").saturating_add(i64::from(is_changed));
    let Some(metadata) = ensured(new, "metadata") else { return };
    if generation > 0 {
        metadata.insert("generation".to_owned(), json!(generation));
    } else {
        metadata.remove("generation");
    }
}

fn is_changed_beside_metadata(resource: &Resource, old: &Value, new: &Value) -> bool {
    let nothing = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&nothing), new.as_object().unwrap_or(&nothing));
    let is_counted = |field: &str| {
        !matches!(field, "metadata" | "apiVersion" | "kind")
            && (field != "status" || !resource.has_status)
    };
    // Custom kinds have no rule about what is empty: any difference counts.
    let is_same = |left: &Value, right: &Value| match resource.is_custom() {
        true => left == right,
        false => same(left, right),
    };
    old.keys().chain(new.keys()).filter(|field| is_counted(field)).any(|field| {
        match (old.get(field), new.get(field)) {
            (Some(left), Some(right)) => !is_same(left, right),
            (None, Some(only)) | (Some(only), None) => {
                resource.is_custom() || !same(only, &Value::Null)
            }
            (None, None) => false,
        }
    })
}

/// The status of a new object as Go writes it: numbers that are not left out when they are 0, and
/// so on. None for kinds without one, and for those that others care for.
fn first_status(group: &str, kind: &str, object: &Value) -> Option<Value> {
    Some(match (group, kind) {
        ("", "Namespace") => json!({"phase": "Active"}),
        ("", "Pod") => json!({"phase": "Pending", "qosClass": quality(object)}),
        ("", "PersistentVolume" | "PersistentVolumeClaim") => json!({"phase": "Pending"}),
        ("", "Service") | ("networking.k8s.io", "Ingress") => json!({"loadBalancer": {}}),
        ("", "ReplicationController") | ("apps", "ReplicaSet") => json!({"replicas": 0}),
        ("apps", "StatefulSet") => json!({"replicas": 0, "availableReplicas": 0}),
        ("apps", "DaemonSet") => json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0,
            "numberReady": 0,
        }),
        ("", "ResourceQuota")
        | ("apps", "Deployment")
        | ("batch", "Job" | "CronJob")
        | ("certificates.k8s.io", "CertificateSigningRequest")
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("resource.k8s.io", "ResourceClaim")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => json!({}),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            json!({"currentMetrics": null, "desiredReplicas": 0})
        }
        ("policy", "PodDisruptionBudget") => json!({
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
        }),
        ("storage.k8s.io", "VolumeAttachment") => json!({"attached": false}),
        _ => return None,
    })
}

/// The quality of service class of a pod, from the requests and limits of its containers.
fn quality(object: &Value) -> &'static str {
    let mut has_any = false;
    let mut is_guaranteed = true;
    for container in
        ["spec.containers", "spec.initContainers"].iter().flat_map(|path| list(object, path))
    {
        for resource in ["cpu", "memory"] {
            let amount = |path: &str| {
                let value = at(container, path).get(resource)?;
                Quantity::from_value(value).ok().filter(|amount| !amount.is_zero())
            };
            let (request, limit) = (amount("resources.requests"), amount("resources.limits"));
            has_any |= request.is_some() || limit.is_some();
            is_guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (has_any, is_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn add_namespace_finalizer(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill(spec, "finalizers", Vec::<Value>::new());
    let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut) else { return };
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push(json!("kubernetes"));
    }
}

/// What was sent as plain text is stored like all other data. It is never shown again.
fn take_string_data(object: &mut Value) {
    let Some(secret) = object.as_object_mut() else { return };
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    if plain.is_empty() {
        return;
    }
    let Some(data) = ensured(object, "data") else { return };
    for (key, value) in plain {
        if let Value::String(text) = value {
            data.insert(key, json!(base64(text.as_bytes())));
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let digit = ALPHABET[(group >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A ServiceAccount refers to its secrets by name alone.
fn keep_secret_names(object: &mut Value) {
    for secret in list_mut(object, "secrets") {
        let name = text(secret, "name").to_owned();
        if secret.is_object() {
            *secret = json!({"name": name});
        }
    }
}

/// The older and the newer field for what a claim starts from say the same.
fn match_data_sources(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    let is_set = |spec: &Map<String, Value>, field: &str| {
        spec.get(field).is_some_and(|source| !source.is_null())
    };
    match (is_set(spec, "dataSource"), is_set(spec, "dataSourceRef")) {
        (true, false) => {
            let source = spec.get("dataSource").cloned().unwrap_or_default();
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (false, true) => {
            let source = spec.get("dataSourceRef").cloned().unwrap_or_default();
            if text(&source, "namespace").is_empty() {
                spec.insert("dataSource".to_owned(), source);
            }
        }
        (true, true) | (false, false) => {}
    }
}

fn count_template(object: &mut Value, count: i64) {
    if let Some(annotations) = ensured(object, "metadata.annotations") {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(count.to_string()));
    }
}

/// A job selects its pods by its own uid, unless the client takes that upon itself.
fn generate_job_selector(object: &mut Value) {
    if is_true(object, "spec.manualSelector") {
        return;
    }
    let name = text(object, "metadata.name").to_owned();
    let uid = text(object, "metadata.uid").to_owned();
    if let Some(labels) = ensured(object, "spec.template.metadata.labels") {
        for key in ["job-name", "batch.kubernetes.io/job-name"] {
            fill(labels, key, name.as_str());
        }
        for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
            fill(labels, key, uid.as_str());
        }
    }
    if let Some(labels) = ensured(object, "spec.selector.matchLabels") {
        fill(labels, "batch.kubernetes.io/controller-uid", uid);
    }
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(field);
    }
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    match from.get(field) {
        Some(value) => put(to, field, value.clone()),
        None => remove(to, field),
    }
}
