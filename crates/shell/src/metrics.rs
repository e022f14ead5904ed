//! What the shell counts, as Prometheus reads it.

use crate::cache::Cache;
use crate::once::{Ended, News};
use crate::server::{Remembered, Server};
use interlock_kernel::{Kind, Object, Selector};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The upper bounds of the buckets of a step's time, in milliseconds.
const BUCKETS: [u64; 10] = [1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000];

/// All that is counted in a process.
#[derive(Debug, Default)]
pub struct Metrics {
    controllers: Mutex<BTreeMap<&'static str, Arc<Counts>>>,
    servers: Mutex<BTreeMap<String, Remembered>>,
    more: Mutex<Vec<More>>,
}

/// What somebody else counts, as Prometheus reads it.
#[derive(Clone)]
struct More(Arc<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for More {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("More")
    }
}

/// What is counted of all runners of one controller together.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    steps: [AtomicU64; ENDS.len()],
    step_buckets: [AtomicU64; BUCKETS.len()],
    step_microseconds: AtomicU64,
    retries: AtomicU64,
    queue: AtomicI64,
    runners: AtomicI64,
    /// By reason.
    events: Mutex<BTreeMap<&'static str, u64>>,
    events_dropped: AtomicU64,
}

/// How steps end, in the order in which they are counted.
const ENDS: [&str; 11] = [
    "rest",
    "wait",
    "done",
    "conflict",
    "refused",
    "unknown",
    "unreachable",
    "broken",
    "not_leading",
    "crashed",
    "no_change",
];

fn end(ended: &Ended) -> usize {
    match ended {
        Ended::Rests => 0,
        Ended::Waits(_) => 1,
        Ended::Acted { news: News::Seen | News::Coming, .. } => 2,
        Ended::WriteConflict(_) => 3,
        Ended::Refused(_) => 4,
        Ended::Unknown(_) => 5,
        Ended::Unreachable(_) => 6,
        Ended::Broken(_) => 7,
        Ended::NotLeading => 8,
        Ended::Crashed => 9,
        Ended::Acted { news: News::NoneAtAll, .. } => 10,
    }
}

impl Counts {
    pub(crate) fn stepped(&self, ended: &Ended, took: Duration) {
        self.steps[end(ended)].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.step_microseconds.fetch_add(micros, Ordering::Relaxed);
        for (bound, count) in BUCKETS.iter().zip(&self.step_buckets) {
            if took <= Duration::from_millis(*bound) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn queued(&self, more: i64) {
        self.queue.fetch_add(more, Ordering::Relaxed);
    }

    /// A runner began, or has ended.
    pub(crate) fn runs(&self, more: i64) {
        self.runners.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn told(&self, reason: &'static str, is_taken: bool) {
        if !is_taken {
            self.events_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        *self.events().entry(reason).or_default() += 1;
    }

    fn events(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics {
    pub(crate) fn counts(&self, controller: &'static str) -> Arc<Counts> {
        let mut controllers = self.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(controllers.entry(controller).or_default())
    }

    /// Shows what a driver counts, too.
    pub fn also(&self, part: impl Fn() -> String + Send + Sync + 'static) {
        self.more.lock().unwrap_or_else(PoisonError::into_inner).push(More(Arc::new(part)));
    }

    pub(crate) fn knows(&self, server: &Server) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|_, server| server.server().is_some());
        servers.insert(server.name().to_owned(), server.remembered());
    }

    /// The objects of a kind in the caches of all servers, by the name of the server: for those who
    /// count what is in them.
    pub fn objects(&self, kind: &Kind) -> Vec<(String, Vec<Object>)> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of = |(name, server): (String, Remembered)| {
            let caches = server.server()?.caches();
            let is_whole =
                |cache: &&Arc<Cache>| cache.kind() == kind && *cache.selector() == Selector::All;
            let cache = caches.iter().find(is_whole)?;
            let objects = cache.objects().list(None);
            Some((name, objects))
        };
        servers.into_iter().filter_map(of).collect()
    }

    /// All of it, as Prometheus reads it.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let controllers = self.controllers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        family(&mut text, "steps_total", "counter", "Steps by result.");
        for (controller, counts) in &controllers {
            for (end, count) in ENDS.iter().zip(&counts.steps) {
                let labels = format!("controller=\"{controller}\",end=\"{end}\"");
                line(&mut text, "steps_total", &labels, count.load(Ordering::Relaxed));
            }
        }
        family(&mut text, "step_seconds", "histogram", "Duration of steps in seconds.");
        for (controller, counts) in &controllers {
            step_seconds(&mut text, controller, counts);
        }
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        type Of = fn(&Counts) -> &AtomicU64;
        let counters: [(&str, &str, Of); 2] = [
            ("retries_total", "Steps that were requeued.", |c| &c.retries),
            ("events_dropped_total", "Events that were dropped because the queue was full.", |c| {
                &c.events_dropped
            }),
        ];
        for (name, help, of) in counters {
            family(&mut text, name, "counter", help);
            for (controller, counts) in &controllers {
                line(&mut text, name, &format!("controller=\"{controller}\""), count(of(counts)));
            }
        }
        family(&mut text, "events_total", "counter", "Events that were sent, by reason.");
        for (controller, counts) in &controllers {
            for (reason, count) in counts.events().iter() {
                let labels = format!("controller=\"{controller}\",reason=\"{reason}\"");
                line(&mut text, "events_total", &labels, count);
            }
        }
        family(&mut text, "queue_subjects", "gauge", "Subjects in the work queue.");
        for (controller, counts) in &controllers {
            let queue = counts.queue.load(Ordering::Relaxed).max(0);
            line(&mut text, "queue_subjects", &format!("controller=\"{controller}\""), queue);
        }
        family(&mut text, "runners", "gauge", "Running controllers.");
        for (controller, counts) in &controllers {
            let runners = counts.runners.load(Ordering::Relaxed);
            line(&mut text, "runners", &format!("controller=\"{controller}\""), runners);
        }
        self.render_caches(&mut text);
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner).clone();
        more.iter().for_each(|More(part)| text += &part());
        text
    }

    fn render_caches(&self, text: &mut String) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        family(text, "cache_objects", "gauge", "Objects in caches.");
        for (name, server) in &servers {
            let Some(server) = server.server() else { continue };
            // Caches of one kind with different selectors are one line.
            let mut by_kind: BTreeMap<Kind, usize> = BTreeMap::new();
            for cache in server.caches() {
                *by_kind.entry(cache.kind().clone()).or_default() += cache.objects().len();
            }
            for (kind, objects) in by_kind {
                let labels = format!("server=\"{name}\",kind=\"{kind}\",group=\"{}\"", kind.group);
                line(text, "cache_objects", &labels, objects);
            }
        }
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP interlock_shell_{name} {help}");
    let _ = writeln!(text, "# TYPE interlock_shell_{name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "interlock_shell_{name}{{{labels}}} {value}");
}

fn step_seconds(text: &mut String, controller: &str, counts: &Counts) {
    for (bound, count) in BUCKETS.iter().zip(&counts.step_buckets) {
        let seconds = *bound as f64 / 1000.0;
        let labels = format!("controller=\"{controller}\",le=\"{seconds}\"");
        line(text, "step_seconds_bucket", &labels, count.load(Ordering::Relaxed));
    }
    let steps: u64 = counts.steps.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    let labels = format!("controller=\"{controller}\"");
    line(text, "step_seconds_bucket", &format!("{labels},le=\"+Inf\""), steps);
    let seconds = counts.step_microseconds.load(Ordering::Relaxed) as f64 / 1e6;
    line(text, "step_seconds_sum", &labels, seconds);
    line(text, "step_seconds_count", &labels, steps);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_can_be_read() {
        let metrics = Metrics::default();
        let counts = metrics.counts("placement/scheduler");
        counts.stepped(&Ended::Rests, Duration::from_millis(3));
        counts.queued(2);
        counts.told("Granted", true);
        counts.told("Granted", false);
        metrics.also(|| "calls_total 7\n".to_owned());
        let text = metrics.render();
        for expected in [
            "interlock_shell_steps_total{controller=\"placement/scheduler\",end=\"rest\"} 1",
            "step_seconds_bucket{controller=\"placement/scheduler\",le=\"0.001\"} 0",
            "step_seconds_bucket{controller=\"placement/scheduler\",le=\"0.005\"} 1",
            "step_seconds_count{controller=\"placement/scheduler\"} 1",
            "events_total{controller=\"placement/scheduler\",reason=\"Granted\"} 1",
            "events_dropped_total{controller=\"placement/scheduler\"} 1",
            "\ncalls_total 7\n",
            "interlock_shell_queue_subjects{controller=\"placement/scheduler\"} 2",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
