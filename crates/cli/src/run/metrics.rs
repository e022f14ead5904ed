//! What is counted of volumes, under VolSync's names, and of cloud identities.

use interlock_api::identities::condition as words;
use interlock_identities::kinds::{ACCOUNT, POLICY, ROLE};
use interlock_kernel::Object;
use interlock_kernel::conditions::{Condition, find, is_true};
use interlock_shell::Metrics;
use interlock_volumes::kinds::{DESTINATION, SOURCE};
use interlock_volumes::measure::{Measured, measure};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A family of metrics: name, kind, what it says, and the lines of one object.
type Family = (&'static str, &'static str, &'static str, fn(&Measured) -> Vec<(&'static str, f64)>);

const FAMILIES: [Family; 3] = [
    (
        "volsync_missed_intervals_total",
        "counter",
        "Intervals of a schedule that passed without a sync.",
        |measured| vec![("", measured.missed_intervals as f64)],
    ),
    (
        "volsync_volume_out_of_sync",
        "gauge",
        "1 if the last requested sync is not done yet.",
        |measured| vec![("", f64::from(u8::from(measured.is_out_of_sync)))],
    ),
    ("volsync_sync_duration_seconds", "summary", "Duration of syncs in seconds.", |measured| {
        let seconds = measured.milliseconds as f64 / 1000.0;
        vec![("_sum", seconds), ("_count", measured.syncs as f64)]
    }),
];

/// All that a program counts: its controllers, the syncs of its clusters, and how far identities are.
pub(crate) fn page(metrics: &Metrics, now: Timestamp) -> String {
    metrics.render() + &volumes(metrics, now) + &identities(metrics)
}

/// All of it, as Prometheus reads it.
fn volumes(metrics: &Metrics, now: Timestamp) -> String {
    let mut all = Vec::new();
    for kind in [SOURCE, DESTINATION] {
        for (cluster, objects) in metrics.objects(&kind) {
            for object in objects {
                let Some(measured) = measure(&kind, &object, now) else { continue };
                let metadata = &object.metadata;
                let labels = format!(
                    "cluster=\"{cluster}\",obj_name=\"{}\",obj_namespace=\"{}\",role=\"{}\",method=\"{}\"",
                    metadata.name.as_deref().unwrap_or_default(),
                    metadata.namespace.as_deref().unwrap_or_default(),
                    measured.role,
                    measured.method,
                );
                all.push((labels, measured));
            }
        }
    }
    let mut text = String::new();
    for (name, kind, help, lines) in FAMILIES {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, measured) in &all {
            for (part, value) in lines(measured) {
                let _ = writeln!(text, "{name}{part}{{{labels}}} {value}");
            }
        }
    }
    text
}

/// How many objects of identities are ready, on their way or stalled, and why.
fn identities(metrics: &Metrics) -> String {
    let name = "interlock_identities_objects";
    let mut text = format!("# HELP {name} Objects of cloud identities.\n# TYPE {name} gauge\n");
    for kind in [ACCOUNT, POLICY, ROLE] {
        let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for (_, objects) in metrics.objects(&kind) {
            for object in &objects {
                *counts.entry(standing(object)).or_default() += 1;
            }
        }
        for ((state, reason), count) in counts {
            let kind = &kind.kind;
            let labels = format!("kind=\"{kind}\",state=\"{state}\",reason=\"{reason}\"");
            let _ = writeln!(text, "{name}{{{labels}}} {count}");
        }
    }
    text
}

/// The state of an object, and its reason.
fn standing(object: &Object) -> (&'static str, String) {
    let conditions = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
    let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
    let reason =
        |kind: &str| find(&conditions, kind).map(|it| it.reason.clone()).unwrap_or_default();
    match [words::READY, words::STALLED, words::RECONCILING].map(|kind| is_true(&conditions, kind))
    {
        [true, ..] => ("Ready", reason(words::READY)),
        [_, true, _] => ("Stalled", reason(words::STALLED)),
        [_, _, true] => ("Reconciling", reason(words::RECONCILING)),
        _ => ("Unknown", String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn an_object_is_ready_stalled_on_its_way_or_unknown() {
        let object = |conditions: serde_json::Value| -> Object {
            let object = json!({"apiVersion": "v1", "kind": "Role", "metadata": {"name": "x"},
                "status": {"conditions": conditions}});
            Arc::new(serde_json::from_value(object).unwrap())
        };
        let is = |kind: &str, status: &str, reason: &str| {
            json!({"type": kind, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let stalled = json!([is("Ready", "False", "x"), is("Stalled", "True", "Conflict")]);
        assert_eq!(standing(&object(stalled)), ("Stalled", "Conflict".to_owned()));
        let ready = json!([is("Ready", "True", "AsDeclared"), is("Stalled", "False", "x")]);
        assert_eq!(standing(&object(ready)), ("Ready", "AsDeclared".to_owned()));
        let going = json!([is("Reconciling", "True", "Throttled")]);
        assert_eq!(standing(&object(going)), ("Reconciling", "Throttled".to_owned()));
        assert_eq!(standing(&object(json!(null))), ("Unknown", String::new()));
    }
}
