//! Defaults of workloads and jobs.

use super::core::claim_spec;
use super::pod::fill_in_template;
use crate::behaviour::read::{at, ensured, entries, fill, fill_zero, is_set, list_mut, object_mut};
use serde_json::{Map, Value};

const TEMPLATE: &str = "spec.template.spec";

pub(super) fn fill_in(kind: &str, object: &mut Value) {
    match kind {
        "Deployment" => deployment(object),
        "ReplicaSet" => {
            if let Some(spec) = ensured(object, "spec") {
                fill(spec, "replicas", 1);
            }
            fill_in_template(object, TEMPLATE);
        }
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => daemon_set(object),
        "Job" => {
            job_spec(object, "spec");
            take_template_labels(object);
        }
        "CronJob" => cron_job(object),
        _ => {}
    }
}

fn deployment(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    roll(object, "spec.strategy", [("maxUnavailable", "25%".into()), ("maxSurge", "25%".into())]);
    fill_in_template(object, TEMPLATE);
}

/// The strategy is a rolling update unless it says otherwise, with these bounds.
fn roll(object: &mut Value, path: &str, bounds: [(&str, Value); 2]) {
    let Some(strategy) = ensured(object, path) else { return };
    fill_zero(strategy, "type", "RollingUpdate");
    if strategy.get("type").and_then(Value::as_str) != Some("RollingUpdate") {
        return;
    }
    fill(strategy, "rollingUpdate", Map::new());
    let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate") else { return };
    for (field, bound) in bounds {
        fill(rolling, field, bound);
    }
}

fn stateful_set(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill_zero(spec, "podManagementPolicy", "OrderedReady");
    if let Some(policy) = ensured(object, "spec.persistentVolumeClaimRetentionPolicy") {
        fill_zero(policy, "whenDeleted", "Retain");
        fill_zero(policy, "whenScaled", "Retain");
    }
    let has_type =
        at(object, "spec.updateStrategy.type").as_str().is_some_and(|kind| !kind.is_empty());
    if let Some(strategy) = ensured(object, "spec.updateStrategy") {
        fill_zero(strategy, "type", "RollingUpdate");
        if !has_type {
            fill(strategy, "rollingUpdate", Map::new());
        }
        let is_rolling = strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate");
        if let Some(Value::Object(rolling)) =
            strategy.get_mut("rollingUpdate").filter(|_| is_rolling)
        {
            fill(rolling, "partition", 0);
        }
    }
    for claim in list_mut(object, "spec.volumeClaimTemplates") {
        if let Some(claim) = claim.as_object_mut() {
            fill_zero(claim, "apiVersion", "v1");
            fill_zero(claim, "kind", "PersistentVolumeClaim");
        }
        claim_spec(claim);
        if let Some(status) = ensured(claim, "status") {
            fill_zero(status, "phase", "Pending");
        }
    }
    fill_in_template(object, TEMPLATE);
}

fn daemon_set(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill(spec, "revisionHistoryLimit", 10);
    roll(object, "spec.updateStrategy", [("maxUnavailable", 1.into()), ("maxSurge", 0.into())]);
    fill_in_template(object, TEMPLATE);
}

fn job_spec(object: &mut Value, path: &str) {
    let is_given = |field: &str| is_set(object, &format!("{path}.{field}"));
    let backoff = if is_given("backoffLimitPerIndex") { i32::MAX } else { 6 };
    let replacement = if is_given("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    let has_count = is_given("completions") || is_given("parallelism");
    let Some(spec) = ensured(object, path) else { return };
    if !has_count {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", backoff);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
    fill_in_failure_policy(object, path);
    fill_in_template(object, &format!("{path}.template.spec"));
}

fn fill_in_failure_policy(object: &mut Value, path: &str) {
    for rule in list_mut(object, &format!("{path}.podFailurePolicy.rules")) {
        for pattern in list_mut(rule, "onPodConditions").iter_mut().filter_map(Value::as_object_mut)
        {
            fill_zero(pattern, "status", "True");
        }
    }
}

/// A job without labels has those of its pods.
fn take_template_labels(object: &mut Value) {
    let labels = at(object, "spec.template.metadata.labels").clone();
    let has_labels = entries(object, "metadata.labels").next().is_some();
    if has_labels || labels.as_object().is_none_or(|labels| labels.is_empty()) {
        return;
    }
    if let Some(metadata) = ensured(object, "metadata") {
        metadata.insert("labels".to_owned(), labels);
    }
}

/// Upstream does not run a job's own defaults for the template of one, only those of its pods.
fn cron_job(object: &mut Value) {
    let Some(spec) = ensured(object, "spec") else { return };
    fill_zero(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if object_mut(object, "spec.jobTemplate.spec").is_some() {
        fill_in_failure_policy(object, "spec.jobTemplate.spec");
        fill_in_template(object, "spec.jobTemplate.spec.template.spec");
    }
}
