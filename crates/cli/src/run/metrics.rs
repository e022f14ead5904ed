//! What is counted of volumes, under VolSync's names.

use interlock_shell::Metrics;
use interlock_volumes::kinds::{DESTINATION, SOURCE};
use interlock_volumes::measure::{Measured, measure};
use jiff::Timestamp;
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

/// All that a program counts: its controllers, and the syncs of its clusters.
pub(crate) fn page(metrics: &Metrics, now: Timestamp) -> String {
    metrics.render() + &volumes(metrics, now)
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
