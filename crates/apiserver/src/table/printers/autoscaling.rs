//! How autoscalers are shown.

use super::{AGE, Heading, NAME, Printer, age, name, quantity, text_column};
use crate::behaviour::read::{at, integer, is_set, list, number, text};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How many metrics are shown; the others are counted.
const SHOWN_METRICS: usize = 2;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    (kind == "HorizontalPodAutoscaler").then_some(Printer { headings: &HEADINGS, cells })
}

static HEADINGS: [Heading; 7] = [
    NAME,
    text_column("Reference", ".spec.scaleTargetRef"),
    text_column("Targets", ".spec.metrics"),
    text_column("MinPods", ".spec.minReplicas"),
    text_column("MaxPods", ".spec.maxReplicas"),
    text_column("Replicas", ".status.currentReplicas"),
    AGE,
];

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        text(object, "spec.scaleTargetRef.kind"),
        text(object, "spec.scaleTargetRef.name")
    );
    let minimum = integer(object, "spec.minReplicas");
    vec![
        name(object),
        json!(reference),
        json!(metrics(object)),
        json!(minimum.map_or_else(|| "<unset>".to_owned(), |minimum| minimum.to_string())),
        json!(number(object, "spec.maxReplicas")),
        json!(number(object, "status.currentReplicas")),
        age(object, now),
    ]
}

fn metrics(object: &Value) -> String {
    if let Some(target) = integer(object, "spec.targetCPUUtilizationPercentage") {
        let current = percent(at(object, "status.currentCPUUtilizationPercentage"), "<unknown>");
        return format!("cpu: {current}/{target}%");
    }
    let metrics = list(object, "spec.metrics");
    let current = list(object, "status.currentMetrics");
    let shown: Vec<String> = metrics
        .iter()
        .take(SHOWN_METRICS)
        .enumerate()
        .map(|(index, metric)| shown_metric(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    match metrics.len() {
        0 => "<none>".to_owned(),
        1..=SHOWN_METRICS => shown.join(", "),
        count => format!("{} + {} more...", shown.join(", "), count - SHOWN_METRICS),
    }
}

fn shown_metric(metric: &Value, status: &Value) -> String {
    match text(metric, "type") {
        "External" => by_value(at(metric, "external"), at(status, "external")),
        "Object" => by_value(at(metric, "object"), at(status, "object")),
        "Pods" => {
            let current = amount(at(status, "pods"), "current.averageValue");
            format!("{current}/{}", quantity(at(metric, "pods.target.averageValue")))
        }
        "Resource" => by_utilization(at(metric, "resource"), at(status, "resource")),
        "ContainerResource" => {
            by_utilization(at(metric, "containerResource"), at(status, "containerResource"))
        }
        _ => "<unknown type>".to_owned(),
    }
}

fn by_value(metric: &Value, status: &Value) -> String {
    let target = at(metric, "target.averageValue");
    if !target.is_null() {
        let current = at(status, "current.averageValue");
        let current = if current.is_null() { "<unknown>".to_owned() } else { quantity(current) };
        return format!("{current}/{} (avg)", quantity(target));
    }
    format!("{}/{}", amount(status, "current.value"), quantity(at(metric, "target.value")))
}

fn by_utilization(metric: &Value, status: &Value) -> String {
    let resource = text(metric, "name");
    let target = at(metric, "target.averageValue");
    if !target.is_null() {
        let current = amount(status, "current.averageValue");
        return format!("{resource}: {current}/{}", quantity(target));
    }
    let current = percent(at(status, "current.averageUtilization"), "<unknown>");
    let target = percent(at(metric, "target.averageUtilization"), "<auto>");
    format!("{resource}: {current}/{target}")
}

fn amount(status: &Value, path: &str) -> String {
    if status.is_null() || !is_set(status, "current") {
        return "<unknown>".to_owned();
    }
    quantity(at(status, path))
}

fn percent(value: &Value, instead: &str) -> String {
    value.as_i64().map_or_else(|| instead.to_owned(), |percent| format!("{percent}%"))
}
