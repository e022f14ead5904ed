//! Checks of the small groups: storage, leases, budgets, priorities, autoscaling, runtimes.

use super::checks::{amount_or_percent, at_most_all, by_rule, none_or_one_of, too_long};
use super::core::amounts;
use crate::behaviour::read::{at, entries, integer, is_set, number, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

/// The highest priority that is not the system's.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
const PARAMETERS_LIMIT: usize = 512;
const PARAMETERS_LIMIT_BYTES: usize = 256 * 1024;

pub(super) fn validate(group: &str, kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    match (group, kind) {
        ("storage.k8s.io", "StorageClass") => storage_class(object, errors),
        ("storage.k8s.io", "VolumeAttachment") => volume_attachment(at(object, "spec"), errors),
        ("coordination.k8s.io", "Lease") => lease(at(object, "spec"), errors),
        ("policy", "PodDisruptionBudget") => budget(at(object, "spec"), errors),
        ("scheduling.k8s.io", "PriorityClass") => priority_class(object, errors),
        ("node.k8s.io", "RuntimeClass") => runtime_class(object, errors),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(at(object, "spec"), errors),
        _ => {}
    }
}

fn storage_class(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    match text(object, "provisioner") {
        "" => errors.push(FieldError::required("provisioner", "")),
        provisioner => {
            let lower = provisioner.to_lowercase();
            by_rule(&lower, name::qualified_name, &root.field("provisioner"), errors);
        }
    }
    let path = root.field("parameters");
    if entries(object, "parameters").count() > PARAMETERS_LIMIT {
        errors.push(too_long(path, PARAMETERS_LIMIT));
    }
    let mut size = 0;
    for (key, value) in entries(object, "parameters") {
        if key.is_empty() {
            errors.push(FieldError::invalid(path, &json!(""), "field can not be empty."));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > PARAMETERS_LIMIT_BYTES {
        errors.push(too_long(path, PARAMETERS_LIMIT_BYTES));
    }
    let policies = ["Delete", "Retain"];
    none_or_one_of(at(object, "reclaimPolicy"), &policies, &root.field("reclaimPolicy"), errors);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    let mode_path = root.field("volumeBindingMode");
    match at(object, "volumeBindingMode") {
        Value::Null => errors.push(FieldError::required(mode_path, "")),
        mode => none_or_one_of(mode, &modes, &mode_path, errors),
    }
}

fn volume_attachment(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    for field in ["attacher", "nodeName"] {
        if text(spec, field).is_empty() {
            errors.push(FieldError::required(path.field(field), ""));
        }
    }
    let source = path.field("source");
    let is_named = is_set(spec, "source.persistentVolumeName");
    let is_inline = is_set(spec, "source.inlineVolumeSpec");
    if !is_named && !is_inline {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::required(source, detail));
    }
    if is_named && is_inline {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::forbidden(source, detail));
    }
    if is_named && text(spec, "source.persistentVolumeName").is_empty() {
        let field = source.field("persistentVolumeName");
        errors.push(FieldError::required(field, "must specify non empty persistentVolumeName"));
    }
}

fn lease(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    for (field, least, detail) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        if integer(spec, field).is_some_and(|number| number < least) {
            errors.push(FieldError::invalid(path.field(field), at(spec, field), detail));
        }
    }
    if !text(spec, "preferredHolder").is_empty() && text(spec, "strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(path.field("preferredHolder"), detail));
    }
}

fn budget(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    if is_set(spec, "minAvailable") && is_set(spec, "maxUnavailable") {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(path, spec, detail));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        amount_or_percent(at(spec, field), &path.field(field), errors);
        at_most_all(at(spec, field), &path.field(field), errors);
    }
    selector::validate(at(spec, "selector"), &path.field("selector"), errors);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    let policy_path = path.field("unhealthyPodEvictionPolicy");
    none_or_one_of(at(spec, "unhealthyPodEvictionPolicy"), &policies, &policy_path, errors);
}

fn priority_class(object: &Value, errors: &mut Vec<FieldError>) {
    let given = text(object, "metadata.name");
    let is_system = given.starts_with("system-");
    let is_known = matches!(given, "system-node-critical" | "system-cluster-critical");
    if is_system && !is_known {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: \
             {given} is not a known system priority class"
        );
        errors.push(FieldError::forbidden("metadata.name", detail));
    }
    if !is_system && number(object, "value") > HIGHEST_PRIORITY {
        let detail =
            format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}");
        errors.push(FieldError::forbidden("value", detail));
    }
    let policies = ["PreemptLowerPriority", "Never"];
    let root = Path::Root;
    let policy_path = root.field("preemptionPolicy");
    none_or_one_of(at(object, "preemptionPolicy"), &policies, &policy_path, errors);
}

fn runtime_class(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    by_rule(text(object, "handler"), name::dns1123_label, &root.field("handler"), errors);
    let overhead = root.field("overhead");
    amounts(object, "overhead.podFixed", &overhead.field("limits"), errors);
    let scheduling = root.field("scheduling");
    let labels = at(object, "scheduling.nodeSelector");
    selector::validate_labels(labels, &scheduling.field("nodeSelector"), errors);
}

fn autoscaler(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let most = number(spec, "maxReplicas");
    let minimum = integer(spec, "minReplicas");
    if minimum.is_some_and(|minimum| minimum < 1) {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(path.field("minReplicas"), &json!(minimum), detail));
    }
    if most < 1 {
        let detail = "must be greater than 0";
        errors.push(FieldError::invalid(path.field("maxReplicas"), &json!(most), detail));
    }
    if minimum.is_some_and(|minimum| most < minimum) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(path.field("maxReplicas"), &json!(most), detail));
    }
    let target = path.field("scaleTargetRef");
    for field in ["kind", "name"] {
        match text(at(spec, "scaleTargetRef"), field) {
            "" => errors.push(FieldError::required(target.field(field), "")),
            given => by_rule(given, name::path_segment, &target.field(field), errors),
        }
    }
}
