//! Checks of workloads.

use super::checks::{amount, amount_or_percent, at_most_all, by_rule, not_negative, one_of};
use super::pod;
use crate::behaviour::read::{at, entries, is_set, list, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

const NO_MATCH: &str = "`selector` does not match template `labels`";

pub(super) fn validate(kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let spec = at(object, "spec");
    match kind {
        "Deployment" => deployment(spec, errors),
        "ReplicaSet" => {
            let root = Path::Root;
            not_negative(spec, &["replicas", "minReadySeconds"], &root.field("spec"), errors);
            selected_template(spec, "deployment", "ReplicaSet", errors);
        }
        "StatefulSet" => stateful_set(spec, errors),
        "DaemonSet" => daemon_set(spec, errors),
        "ControllerRevision" => {
            let root = Path::Root;
            not_negative(object, &["revision"], &root, errors);
            if !is_set(object, "data") {
                errors.push(FieldError::required("data", "data is mandatory"));
            }
        }
        _ => {}
    }
}

/// The selector, and the template it must match. `selected` and `named` are what upstream calls the
/// kind in two of its sentences.
fn selected_template(spec: &Value, selected: &str, named: &str, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let chosen = at(spec, "selector");
    let selector_path = path.field("selector");
    if chosen.is_null() {
        errors.push(FieldError::required(selector_path, ""));
    } else {
        selector::validate(chosen, &selector_path, errors);
        if selector::is_empty(chosen) {
            let detail = format!("empty selector is invalid for {selected}");
            errors.push(FieldError::invalid(selector_path, chosen, detail));
        }
    }
    let template_path = path.field("template");
    if selector::shown(chosen).is_err() {
        errors.push(FieldError::invalid(selector_path, chosen, "invalid label selector"));
    } else if !chosen.is_null() {
        let labels = at(spec, "template.metadata.labels");
        if !selector::matches(chosen, labels) {
            let metadata = template_path.field("metadata");
            errors.push(FieldError::invalid(metadata.field("labels"), labels, NO_MATCH));
        }
    }
    pod::template(at(spec, "template"), &template_path, errors);
    always_restarted(spec, named, errors);
}

fn always_restarted(spec: &Value, named: &str, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let template_path = path.field("template");
    let pod_path = template_path.field("spec");
    let policy = at(spec, "template.spec.restartPolicy");
    if policy != "Always" {
        let field = pod_path.field("restartPolicy");
        errors.push(FieldError::not_supported(field, policy, &["Always"]));
    }
    if is_set(spec, "template.spec.activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {named} is not Supported");
        errors.push(FieldError::forbidden(pod_path.field("activeDeadlineSeconds"), detail));
    }
}

fn deployment(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    not_negative(spec, &["replicas"], &path, errors);
    selected_template(spec, "deployment", "ReplicaSet", errors);
    let strategy = path.field("strategy");
    match text(spec, "strategy.type") {
        "Recreate" if is_set(spec, "strategy.rollingUpdate") => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(strategy.field("rollingUpdate"), detail));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            rolling(at(spec, "strategy.rollingUpdate"), &strategy.field("rollingUpdate"), errors);
        }
        _ => errors.push(FieldError::not_supported(
            strategy,
            at(spec, "strategy"),
            &["Recreate", "RollingUpdate"],
        )),
    }
    not_negative(spec, &["minReadySeconds", "revisionHistoryLimit"], &path, errors);
    let deadline = at(spec, "progressDeadlineSeconds");
    not_negative(spec, &["progressDeadlineSeconds"], &path, errors);
    let ready = at(spec, "minReadySeconds").as_i64().unwrap_or(0);
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(path.field("progressDeadlineSeconds"), deadline, detail));
    }
}

fn rolling(rolling: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (unavailable, surge) = (at(rolling, "maxUnavailable"), at(rolling, "maxSurge"));
    let unavailable_path = path.field("maxUnavailable");
    amount_or_percent(unavailable, &unavailable_path, errors);
    amount_or_percent(surge, &path.field("maxSurge"), errors);
    if amount(unavailable) == 0 && amount(surge) == 0 {
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(unavailable_path, unavailable, detail));
    }
    at_most_all(unavailable, &unavailable_path, errors);
}

fn stateful_set(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let policy = at(spec, "podManagementPolicy");
    match policy.as_str().unwrap_or_default() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(FieldError::required(path.field("podManagementPolicy"), "")),
        _ => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid(path.field("podManagementPolicy"), policy, detail));
        }
    }
    let strategy = path.field("updateStrategy");
    match text(spec, "updateStrategy.type") {
        "" => errors.push(FieldError::required(strategy, "")),
        "RollingUpdate" => {
            let rolling_path = strategy.field("rollingUpdate");
            let rolling = at(spec, "updateStrategy.rollingUpdate");
            not_negative(rolling, &["partition"], &rolling_path, errors);
        }
        "OnDelete" if is_set(spec, "updateStrategy.rollingUpdate") => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let rolling = at(spec, "updateStrategy.rollingUpdate");
            errors.push(FieldError::invalid(strategy.field("rollingUpdate"), rolling, detail));
        }
        "OnDelete" => {}
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid(strategy, at(spec, "updateStrategy"), detail));
        }
    }
    not_negative(spec, &["replicas", "minReadySeconds"], &path, errors);
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        by_rule(service, name::dns1123_label, &path.field("serviceName"), errors);
    }
    selected_template(&with_claimed_volumes(spec), "statefulset", "StatefulSet", errors);
}

/// The template as its pods will be: with a volume for each claim that is made for them.
fn with_claimed_volumes(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let claimed: Vec<Value> = list(&spec, "volumeClaimTemplates")
        .iter()
        .map(|claim| text(claim, "metadata.name"))
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    if claimed.is_empty() {
        return spec;
    }
    let mut volumes = claimed;
    for volume in list(&spec, "template.spec.volumes") {
        if !volumes.iter().any(|claimed| text(claimed, "name") == text(volume, "name")) {
            volumes.push(volume.clone());
        }
    }
    if let Some(pod) = crate::behaviour::read::object_mut(&mut spec, "template.spec") {
        pod.insert("volumes".to_owned(), Value::Array(volumes));
    }
    spec
}

fn daemon_set(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    selected_template(spec, "daemonset", "DaemonSet", errors);
    not_negative(spec, &["minReadySeconds", "revisionHistoryLimit"], &path, errors);
    let strategy = path.field("updateStrategy");
    let kinds = ["RollingUpdate", "OnDelete"];
    if !kinds.contains(&text(spec, "updateStrategy.type")) {
        errors.push(FieldError::not_supported(strategy, at(spec, "updateStrategy"), &kinds));
    }
    let rolling = at(spec, "updateStrategy.rollingUpdate");
    if text(spec, "updateStrategy.type") == "RollingUpdate" && rolling.is_object() {
        let rolling_path = strategy.field("rollingUpdate");
        for field in ["maxUnavailable", "maxSurge"] {
            amount_or_percent(at(rolling, field), &rolling_path.field(field), errors);
            at_most_all(at(rolling, field), &rolling_path.field(field), errors);
        }
        let (unavailable, surge) = (at(rolling, "maxUnavailable"), at(rolling, "maxSurge"));
        let (has_unavailable, has_surge) = (amount(unavailable) != 0, amount(surge) != 0);
        if has_unavailable && has_surge {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(rolling_path.field("maxSurge"), surge, detail));
        }
        if !has_unavailable && !has_surge {
            let detail = "cannot be 0 when maxSurge is 0";
            let field = rolling_path.field("maxUnavailable");
            errors.push(FieldError::invalid(field, unavailable, detail));
        }
    }
}

pub(super) fn replication_controller(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let spec = at(object, "spec");
    not_negative(spec, &["minReadySeconds", "replicas"], &path, errors);
    if entries(spec, "selector").next().is_none() {
        errors.push(FieldError::required(path.field("selector"), ""));
    }
    let template_path = path.field("template");
    if !is_set(spec, "template") {
        errors.push(FieldError::required(template_path, ""));
        return;
    }
    let labels = at(spec, "template.metadata.labels");
    if !selector::matches(&json!({"matchLabels": at(spec, "selector")}), labels) {
        let metadata = template_path.field("metadata");
        errors.push(FieldError::invalid(metadata.field("labels"), labels, NO_MATCH));
    }
    pod::template(at(spec, "template"), &template_path, errors);
    let pod_path = template_path.field("spec");
    one_of(
        at(spec, "template.spec.restartPolicy"),
        &["Always"],
        &pod_path.field("restartPolicy"),
        errors,
    );
}
