//! Checks of the core group's plain kinds.

use super::checks::{by_rule, config_key, quantity, too_long};
use super::{endpoints, pod, scheduling, service, volumes, workloads};
use crate::behaviour::read::{at, entries, is_set, list, text};
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

/// The largest ConfigMap or Secret.
const DATA_LIMIT_BYTES: usize = 1024 * 1024;

const REDACTED: &str = "<secret contents redacted>";

pub(super) fn validate(kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    match kind {
        "ConfigMap" => config_map(object, errors),
        "Secret" => secret(object, errors),
        "Namespace" => {
            for finalizer in list(object, "spec.finalizers") {
                let path = root.field("spec");
                let path = path.field("finalizers");
                by_rule(
                    finalizer.as_str().unwrap_or_default(),
                    name::qualified_name,
                    &path,
                    errors,
                );
            }
        }
        "Pod" => pod::spec(at(object, "spec"), &root.field("spec"), errors),
        "PodTemplate" => pod::template(at(object, "template"), &root.field("template"), errors),
        "ReplicationController" => workloads::replication_controller(object, errors),
        "Service" => service::validate(object, errors),
        "PersistentVolume" => volumes::volume(object, errors),
        "PersistentVolumeClaim" => {
            volumes::claim_spec(at(object, "spec"), &root.field("spec"), errors);
        }
        "ResourceQuota" => {
            let spec = root.field("spec");
            amounts(object, "spec.hard", &spec.field("hard"), errors);
        }
        "LimitRange" => limit_range(object, errors),
        "Endpoints" => endpoints::validate(object, errors),
        "Node" => {
            let path = root.field("spec");
            scheduling::taints(at(object, "spec"), &path.field("taints"), errors);
        }
        _ => {}
    }
}

/// Quantities by the names of resources.
pub(super) fn amounts(
    object: &Value,
    at_path: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (resource, value) in entries(object, at_path) {
        quantity(value, &path.key(resource), errors);
    }
}

fn config_map(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let mut size = 0;
    for field in ["data", "binaryData"] {
        let path = root.field(field);
        for (key, value) in entries(object, field) {
            by_rule(key, config_key, &path.key(key), errors);
            if field == "data" && at(object, "binaryData").get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(path.key(key), &json!(key), detail));
            }
            let content = value.as_str().unwrap_or_default();
            size += if field == "data" { content.len() } else { decoded_length(content) };
        }
    }
    if size > DATA_LIMIT_BYTES {
        // Upstream names the whole object by an empty path.
        errors.push(too_long("", DATA_LIMIT_BYTES));
    }
}

/// How many bytes a base64 text stands for.
fn decoded_length(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits * 3 / 4
}

fn secret(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("data");
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        by_rule(key, config_key, &path.key(key), errors);
        size += decoded_length(value.as_str().unwrap_or_default());
    }
    if size > DATA_LIMIT_BYTES {
        errors.push(too_long(path, DATA_LIMIT_BYTES));
    }
    let has = |key: &str| at(object, "data").get(key).is_some();
    let mut need = |key: &str| errors.push(FieldError::required(path.key(key), ""));
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let account = at(object, "metadata.annotations").get(key).and_then(Value::as_str);
            if account.unwrap_or_default().is_empty() {
                let metadata = root.field("metadata");
                let annotations = metadata.field("annotations");
                errors.push(FieldError::required(annotations.key(key), ""));
            }
        }
        "kubernetes.io/dockercfg" => docker_config(object, ".dockercfg", &path, errors),
        "kubernetes.io/dockerconfigjson" => {
            docker_config(object, ".dockerconfigjson", &path, errors);
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth" => {
            let key = at(object, "data").get("ssh-privatekey").and_then(Value::as_str);
            if key.unwrap_or_default().is_empty() {
                need("ssh-privatekey");
            }
        }
        "kubernetes.io/tls" => {
            ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).for_each(need);
        }
        _ => {}
    }
}

fn docker_config(object: &Value, key: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(value) = at(object, "data").get(key) else {
        errors.push(FieldError::required(path.key(key), ""));
        return;
    };
    let bytes = decode_base64(value.as_str().unwrap_or_default());
    if let Err(problem) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        let detail = problem.to_string();
        errors.push(FieldError::invalid(path.key(key), &json!(REDACTED), detail));
    }
}

/// The bytes that a base64 text stands for; what is no digit is passed over, since the schema has
/// looked.
fn decode_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(decoded_length(text));
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

fn limit_range(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let spec = root.field("spec");
    let path = spec.field("limits");
    for (index, item) in list(object, "spec.limits").iter().enumerate() {
        let path = path.index(index);
        for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            amounts(item, field, &path.field(field), errors);
        }
        by_rule(text(item, "type"), name::qualified_name, &path.field("type"), errors);
        if text(item, "type") == "Pod" {
            for field in ["default", "defaultRequest"] {
                if is_set(item, field) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(path.field(field), detail));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(decode_base64("eyJhIjoxfQ=="), b"{\"a\":1}");
        assert_eq!(decoded_length("eyJhIjoxfQ=="), 7);
        assert!(decode_base64("").is_empty());
    }
}
