//! Checks of jobs.

use super::checks::{none_or_one_of, not_negative, one_of};
use super::{cron, pod, time_zone};
use crate::behaviour::read::{at, integer, is_set, is_true, text};
use crate::behaviour::selector;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

/// A cron job's name is the beginning of its jobs' names.
const CRON_JOB_NAME_LIMIT_BYTES: usize = 52;

pub(super) fn validate(kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    match kind {
        "Job" => job(object, errors),
        "CronJob" => cron_job(object, errors),
        _ => {}
    }
}

fn job(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let spec = at(object, "spec");
    job_spec(spec, &path, errors);
    let chosen = at(spec, "selector");
    if chosen.is_null() {
        errors.push(FieldError::required(path.field("selector"), ""));
        return;
    }
    selector::validate(chosen, &path.field("selector"), errors);
    let labels = at(spec, "template.metadata.labels");
    if selector::shown(chosen).is_ok() && !selector::matches(chosen, labels) {
        let template = path.field("template");
        let metadata = template.field("metadata");
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(metadata.field("labels"), labels, detail));
    }
}

fn job_spec(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    not_negative(spec, &numbers, path, errors);
    let mode = at(spec, "completionMode");
    none_or_one_of(mode, &["NonIndexed", "Indexed"], &path.field("completionMode"), errors);
    if mode == "Indexed" {
        if integer(spec, "completions").is_none() {
            let detail = "when completion mode is Indexed";
            errors.push(FieldError::required(path.field("completions"), detail));
        }
    } else {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if is_set(spec, field) {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(path.field(field), at(spec, field), detail));
            }
        }
    }
    let template = path.field("template");
    pod::template(at(spec, "template"), &template, errors);
    let pod_path = template.field("spec");
    let field = pod_path.field("restartPolicy");
    match text(spec, "template.spec.restartPolicy") {
        "OnFailure" | "Never" => {}
        "Always" | "" => {
            errors.push(FieldError::required(field, "valid values: \"OnFailure\", \"Never\""));
        }
        policy => {
            let supported = ["OnFailure", "Never"];
            errors.push(FieldError::not_supported(field, &json!(policy), &supported));
        }
    }
}

fn cron_job(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let spec = at(object, "spec");
    let schedule = text(spec, "schedule");
    let schedule_path = path.field("schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required(schedule_path, ""));
    } else {
        if let Some(problem) = cron::problem(schedule) {
            errors.push(FieldError::invalid(schedule_path, &json!(schedule), problem));
        }
        if schedule.contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(schedule_path, &json!(schedule), detail));
        }
    }
    time_zone::validate(at(spec, "timeZone"), &path.field("timeZone"), errors);
    let policies = ["Allow", "Forbid", "Replace"];
    let policy_path = path.field("concurrencyPolicy");
    one_of(at(spec, "concurrencyPolicy"), &policies, &policy_path, errors);
    let template = path.field("jobTemplate");
    let job_path = template.field("spec");
    let job = at(spec, "jobTemplate.spec");
    job_spec(job, &job_path, errors);
    if is_set(job, "selector") {
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(job_path.field("selector"), at(job, "selector"), detail));
    }
    if is_true(job, "manualSelector") {
        let field = job_path.field("manualSelector");
        errors.push(FieldError::not_supported(field, &json!(true), &["nil", "false"]));
    }
    let numbers =
        ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    not_negative(spec, &numbers, &path, errors);
}

/// What is asked of the name of a new cron job.
pub(super) fn validate_new_cron_job(object: &Value) -> Vec<FieldError> {
    let name = text(object, "metadata.name");
    if name.len() <= CRON_JOB_NAME_LIMIT_BYTES {
        return Vec::new();
    }
    let detail = format!("must be no more than {CRON_JOB_NAME_LIMIT_BYTES} characters");
    vec![FieldError::invalid("metadata.name", &json!(name), detail)]
}
