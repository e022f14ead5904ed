//! How jobs are shown.

use super::{AGE, CONTAINERS, Cells, Heading, IMAGES, NAME, Printer, age, boolean_column};
use super::{containers, has_condition, integer_column, name, shown_selector, text_column, wide};
use crate::age as ages;
use crate::behaviour::read::{at, integer, is_set, list, number, text};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match kind {
        "Job" => (&JOB, job),
        "CronJob" => (&CRON_JOB, cron_job),
        _ => return None,
    };
    Some(Printer { headings, cells })
}

static JOB: [Heading; 8] = [
    NAME,
    text_column("Status", "Status of the job."),
    text_column("Completions", ".status.succeeded"),
    text_column("Duration", "How long the job took, or has been running."),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", ".spec.selector"),
];

fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = number(object, "status.succeeded");
    let completions =
        match (integer(object, "spec.completions"), number(object, "spec.parallelism")) {
            (Some(completions), _) => format!("{succeeded}/{completions}"),
            (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            (None, _) => format!("{succeeded}/1"),
        };
    let [names, images] = containers(object, "spec.template.spec.containers");
    vec![
        name(object),
        json!(job_status(object)),
        json!(completions),
        json!(job_duration(object, now)),
        age(object, now),
        names,
        images,
        shown_selector(at(object, "spec.selector")),
    ]
}

fn job_status(object: &Value) -> &'static str {
    if has_condition(object, "Complete", "True") {
        return "Complete";
    }
    if has_condition(object, "Failed", "True") {
        return "Failed";
    }
    if is_set(object, "metadata.deletionTimestamp") {
        return "Terminating";
    }
    ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
        .into_iter()
        .find(|condition| has_condition(object, condition, "True"))
        .unwrap_or("Running")
}

fn job_duration(object: &Value, now: Timestamp) -> String {
    let Some(start) = ages::moment(at(object, "status.startTime")) else { return String::new() };
    let end = ages::moment(at(object, "status.completionTime")).unwrap_or(now);
    ages::human_seconds(ages::seconds_between(start, end))
}

static CRON_JOB: [Heading; 10] = [
    NAME,
    text_column("Schedule", ".spec.schedule"),
    text_column("Timezone", ".spec.timeZone"),
    boolean_column("Suspend", ".spec.suspend"),
    integer_column("Active", ".status.active"),
    text_column("Last Schedule", ".status.lastScheduleTime"),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", ".spec.jobTemplate.spec.selector"),
];

fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let last = at(object, "status.lastScheduleTime");
    let suspend = match at(object, "spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let zone = at(object, "spec.timeZone").as_str().unwrap_or("<none>");
    let [names, images] = containers(object, "spec.jobTemplate.spec.template.spec.containers");
    vec![
        name(object),
        json!(text(object, "spec.schedule")),
        json!(zone),
        json!(suspend),
        json!(list(object, "status.active").len()),
        json!(if last.is_null() { "<none>".to_owned() } else { ages::since(last, now) }),
        age(object, now),
        names,
        images,
        shown_selector(at(object, "spec.jobTemplate.spec.selector")),
    ]
}
