//! Metrics in Prometheus' text form: few, with few labels, and none of them per logical cluster.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// More combinations of labels than this are counted together: a client that found a way to make
/// labels must not make memory with it.
const MAX_SERIES: usize = 4096;
/// What is counted together.
const OTHER: &str = "other";

/// What has been counted since the start.
#[derive(Debug, Default)]
pub struct Metrics {
    counted: Mutex<Counted>,
    others: Mutex<Vec<Other>>,
}

/// What somebody else in this process counts, as text.
struct Other(Box<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Other")
    }
}

#[derive(Debug, Default)]
struct Counted {
    /// By verb, resource and code.
    requests: BTreeMap<(String, String, u16), u64>,
    /// By verb and resource.
    durations: BTreeMap<(String, String), Histogram>,
}

#[derive(Debug, Default)]
struct Histogram {
    /// How many took at most this long, and the last one for those that took longer; each counts by
    /// itself here.
    buckets: [u64; BUCKETS.len() + 1],
    seconds: f64,
}

impl Histogram {
    fn observe(&mut self, seconds: f64) {
        let place = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.buckets[place] += 1;
        self.seconds += seconds;
    }
}

impl Metrics {
    /// Counts a request. The resource must be one of a known set (`custom` for the kinds of
    /// tenants); watches are counted, but how long they last says nothing about the server.
    pub fn request(&self, verb: &str, resource: &str, code: u16, took: Duration) {
        let mut counted = self.lock();
        let key = (verb.to_owned(), resource.to_owned(), code);
        let is_new = !counted.requests.contains_key(&key);
        let key = if is_new && counted.requests.len() >= MAX_SERIES {
            (OTHER.to_owned(), OTHER.to_owned(), code / 100 * 100)
        } else {
            key
        };
        let (verb, resource) = (key.0.clone(), key.1.clone());
        *counted.requests.entry(key).or_default() += 1;
        if verb != "watch" {
            counted.durations.entry((verb, resource)).or_default().observe(took.as_secs_f64());
        }
    }

    /// Has what somebody else counts on the same page.
    pub fn add(&self, count: impl Fn() -> String + Send + Sync + 'static) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.push(Other(Box::new(count)));
    }

    /// Everything as text, with gauges of others: pairs of a name and a value. A name may carry
    /// labels, and one that ends in `_total` is a counter.
    pub fn render(&self, gauges: &[(&str, f64)]) -> String {
        let mut text = String::new();
        self.lock().render(&mut text);
        for (name, value) in gauges {
            let bare = name.split('{').next().unwrap_or_default();
            let kind = if bare.ends_with("_total") { "counter" } else { "gauge" };
            let heading = format!("# TYPE {bare} {kind}\n");
            if !text.contains(&heading) {
                text.push_str(&heading);
            }
            line(&mut text, format_args!("{name} {}", number(*value)));
        }
        if let Some(bytes) = resident_bytes() {
            text.push_str("# TYPE process_resident_memory_bytes gauge\n");
            line(&mut text, format_args!("process_resident_memory_bytes {bytes}"));
        }
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend(others.iter().map(|Other(count)| count()));
        text
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn render(&self, text: &mut String) {
        text.push_str("# HELP apiserver_request_total Requests by verb, resource and code.\n");
        text.push_str("# TYPE apiserver_request_total counter\n");
        for ((verb, resource, code), count) in &self.requests {
            let labels = format!("{},code=\"{code}\"", labels(verb, resource));
            line(text, format_args!("apiserver_request_total{{{labels}}} {count}"));
        }
        let name = "apiserver_request_duration_seconds";
        line(text, format_args!("# HELP {name} How long requests took, without watches."));
        line(text, format_args!("# TYPE {name} histogram"));
        for ((verb, resource), histogram) in &self.durations {
            let labels = labels(verb, resource);
            let mut count = 0;
            for (place, of_bucket) in histogram.buckets.iter().enumerate() {
                count += of_bucket;
                let bound = BUCKETS.get(place).map_or("+Inf".to_owned(), f64::to_string);
                line(text, format_args!("{name}_bucket{{{labels},le=\"{bound}\"}} {count}"));
            }
            line(text, format_args!("{name}_sum{{{labels}}} {}", number(histogram.seconds)));
            line(text, format_args!("{name}_count{{{labels}}} {count}"));
        }
    }
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a String takes everything");
}

fn labels(verb: &str, resource: &str) -> String {
    format!("verb=\"{}\",resource=\"{}\"", escaped(verb), escaped(resource))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    value.to_string()
}

/// Memory that the process really uses, where the system tells it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_verb_resource_and_code() {
        let metrics = Metrics::default();
        let milli = Duration::from_millis(1);
        metrics.request("get", "pods", 200, milli);
        metrics.request("get", "pods", 200, milli * 3);
        metrics.request("get", "pods", 404, milli * 60_000);
        metrics.request("watch", "pods", 200, milli * 60_000);
        let text = metrics.render(&[]);
        for line in [
            r#"apiserver_request_total{verb="get",resource="pods",code="200"} 2"#,
            r#"apiserver_request_total{verb="get",resource="pods",code="404"} 1"#,
            r#"apiserver_request_total{verb="watch",resource="pods",code="200"} 1"#,
            r#"apiserver_request_duration_seconds_bucket{verb="get",resource="pods",le="0.001"} 1"#,
            r#"apiserver_request_duration_seconds_bucket{verb="get",resource="pods",le="30"} 2"#,
            r#"apiserver_request_duration_seconds_bucket{verb="get",resource="pods",le="+Inf"} 3"#,
            r#"apiserver_request_duration_seconds_count{verb="get",resource="pods"} 3"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains(r#"seconds_count{verb="watch""#));
    }

    #[test]
    fn gauges_of_others_are_shown_with_their_type() {
        let text = Metrics::default().render(&[
            ("interlock_store_keys", 7.0),
            ("interlock_store_syncs_total", 1.5e9),
            ("in_flight{kind=\"read\"}", 1.0),
            ("in_flight{kind=\"write\"}", f64::NAN),
        ]);
        assert!(text.contains("# TYPE interlock_store_keys gauge\ninterlock_store_keys 7\n"));
        assert!(text.contains("# TYPE interlock_store_syncs_total counter\n"));
        assert!(text.contains("interlock_store_syncs_total 1500000000\n"));
        assert_eq!(text.matches("# TYPE in_flight gauge").count(), 1);
        assert!(text.contains("in_flight{kind=\"write\"} NaN\n"));
    }

    #[test]
    fn memory_is_reported_where_it_is_known() {
        let text = Metrics::default().render(&[]);
        assert_eq!(text.contains("process_resident_memory_bytes "), resident_bytes().is_some());
    }

    #[test]
    fn labels_cannot_be_made_without_end() {
        let metrics = Metrics::default();
        for number in 0..10_000 {
            metrics.request("get", &format!("r{number}"), 200, Duration::ZERO);
        }
        let counted = metrics.lock();
        assert_eq!(counted.requests.len(), MAX_SERIES + 1);
        assert_eq!(counted.requests.values().sum::<u64>(), 10_000);
        assert!(counted.durations.len() <= MAX_SERIES + 1);
    }

    #[test]
    fn labels_cannot_break_out_of_their_quotes() {
        let metrics = Metrics::default();
        metrics.request("get\"} 1\nfake", "a\\b", 200, Duration::ZERO);
        let text = metrics.render(&[]);
        assert!(text.contains(r#"{verb="get\"} 1\nfake",resource="a\\b",code="200"} 1"#), "{text}");
    }
}
