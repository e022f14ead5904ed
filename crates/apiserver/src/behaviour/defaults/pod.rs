//! Defaults of pods and of the pod templates inside workloads.

use crate::behaviour::read::{at, ensured, fill, fill_zero, is_true, list_mut, object_mut, text};
use serde_json::{Map, Value, json};

/// The mode of files that are made from secrets and the like: octal 644.
const FILE_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3_600;

/// A pod has a few defaults that templates do not have.
pub(super) fn fill_in_pod(object: &mut Value) {
    fill_in_template(object, "spec");
    for path in ["spec.containers", "spec.initContainers"] {
        for container in list_mut(object, path) {
            request_limits(container);
        }
    }
    let uses_host_network = is_true(object, "spec.hostNetwork");
    if let Some(spec) = object_mut(object, "spec") {
        fill(spec, "enableServiceLinks", true);
    }
    if !uses_host_network {
        return;
    }
    for path in ["spec.containers", "spec.initContainers"] {
        for port in list_mut(object, path).iter_mut().flat_map(|one| list_mut(one, "ports")) {
            let inner = at(port, "containerPort").clone();
            if let Some(port) = port.as_object_mut().filter(|_| inner.is_number()) {
                fill_zero(port, "hostPort", inner);
            }
        }
    }
}

/// Fills in the pod spec at a path, if the object around it is there.
pub(super) fn fill_in_template(object: &mut Value, path: &str) {
    let Some(spec) = ensured(object, path) else { return };
    fill_zero(spec, "dnsPolicy", "ClusterFirst");
    fill_zero(spec, "restartPolicy", "Always");
    fill_zero(spec, "schedulerName", "default-scheduler");
    fill(spec, "securityContext", Map::new());
    fill(spec, "terminationGracePeriodSeconds", 30);
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            fill_in_container(container);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        fill_in_volume(volume);
    }
}

fn fill_in_container(container: &mut Value) {
    let policy = pull_policy(text(container, "image"));
    let Some(object) = container.as_object_mut() else { return };
    fill_zero(object, "imagePullPolicy", policy);
    fill_zero(object, "terminationMessagePath", "/dev/termination-log");
    fill_zero(object, "terminationMessagePolicy", "File");
    fill(object, "resources", Map::new());
    for port in list_mut(container, "ports").iter_mut().filter_map(Value::as_object_mut) {
        fill_zero(port, "protocol", "TCP");
    }
    for variable in list_mut(container, "env") {
        if let Some(field) = object_mut(variable, "valueFrom.fieldRef") {
            fill_zero(field, "apiVersion", "v1");
        }
        if let Some(key) = object_mut(variable, "valueFrom.fileKeyRef") {
            fill(key, "optional", false);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        fill_in_probe(container, probe);
    }
    for action in ["lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet"] {
        fill_in_http(container, action);
    }
}

fn fill_in_probe(container: &mut Value, name: &str) {
    let Some(probe) = object_mut(container, name) else { return };
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        fill_zero(probe, field, value);
    }
    if let Some(Value::Object(grpc)) = probe.get_mut("grpc") {
        fill(grpc, "service", "");
    }
    fill_in_http(container, &format!("{name}.httpGet"));
}

fn fill_in_http(container: &mut Value, path: &str) {
    let Some(http) = object_mut(container, path) else { return };
    fill_zero(http, "path", "/");
    fill_zero(http, "scheme", "HTTP");
}

/// `latest` may be another image tomorrow and is always pulled; so is an image that names no tag.
fn pull_policy(image: &str) -> &'static str {
    let (tagged, has_digest) =
        image.split_once('@').map_or((image, false), |(tagged, _)| (tagged, true));
    let last = tagged.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, "latest")) => "Always",
        None if !has_digest => "Always",
        Some(_) | None => "IfNotPresent",
    }
}

/// What is limited but not requested is requested up to its limit.
fn request_limits(container: &mut Value) {
    let Some(limits) = at(container, "resources.limits").as_object().cloned() else { return };
    let Some(requests) = ensured(container, "resources.requests") else { return };
    for (resource, limit) in limits {
        fill(requests, &resource, limit);
    }
    if requests.is_empty() {
        let resources = object_mut(container, "resources");
        resources.and_then(|resources| resources.remove("requests"));
    }
}

fn fill_in_volume(volume: &mut Value) {
    let Some(object) = volume.as_object_mut() else { return };
    if object.iter().all(|(field, value)| field == "name" || value.is_null()) {
        object.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(Value::Object(source)) = object.get_mut(source) {
            fill(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(Value::Object(path)) = object.get_mut("hostPath") {
        fill(path, "type", "");
    }
    if let Some(Value::Object(disk)) = object.get_mut("iscsi") {
        fill_zero(disk, "iscsiInterface", "default");
    }
    if let Some(Value::Object(image)) = object.get_mut("image") {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = pull_policy(reference);
        fill_zero(image, "pullPolicy", policy);
    }
    fill_in_files(list_mut(volume, "downwardAPI.items"));
    for source in list_mut(volume, "projected.sources") {
        fill_in_files(list_mut(source, "downwardAPI.items"));
        if let Some(token) = object_mut(source, "serviceAccountToken") {
            fill(token, "expirationSeconds", TOKEN_SECONDS);
        }
    }
    if let Some(claim) = object_mut(volume, "ephemeral.volumeClaimTemplate.spec") {
        fill(claim, "volumeMode", "Filesystem");
        fill(claim, "resources", Map::new());
    }
}

fn fill_in_files(files: &mut [Value]) {
    for file in files {
        if let Some(field) = object_mut(file, "fieldRef") {
            fill_zero(field, "apiVersion", "v1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pulled_always_if_it_is_the_latest() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1", "IfNotPresent"),
            ("host:5000/nginx", "Always"),
            ("host:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("nginx:latest@sha256:abc", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
