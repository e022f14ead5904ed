//! How pods are shown: readiness, the reason that matters most, restarts.

use super::{AGE, Heading, NAME, age, name, or, text_column, wide};
use crate::age as ages;
use crate::behaviour::read::{at, is_set, is_true, list, number, text};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) static HEADINGS: [Heading; 9] = [
    NAME,
    text_column("Ready", "How many of the pod's containers are ready."),
    text_column("Status", "The state of the pod and its containers in one word."),
    text_column("Restarts", "How often containers were started again, and when last."),
    AGE,
    wide("IP", ".status.podIP"),
    wide("Node", ".spec.nodeName"),
    wide("Nominated Node", ".status.nominatedNodeName"),
    wide("Readiness Gates", ".spec.readinessGates"),
];

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(object);
    let address = list(object, "status.podIPs")
        .first()
        .map_or_else(|| text(object, "status.podIP"), |first| text(first, "ip"));
    vec![
        name(object),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(summary.restarts.shown(now)),
        age(object, now),
        json!(or(address, "<none>")),
        json!(or(text(object, "spec.nodeName"), "<none>")),
        json!(or(text(object, "status.nominatedNodeName"), "<none>")),
        json!(readiness_gates(object)),
    ]
}

struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(number(status, "restartCount"));
        let finished = ages::moment(at(status, "lastState.terminated.finishedAt"));
        self.last = self.last.max(finished);
    }

    fn shown(&self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                let seconds = ages::seconds_between(last, now);
                format!("{} ({} ago)", self.count, ages::human_seconds(seconds))
            }
            Some(_) | None => self.count.to_string(),
        }
    }
}

impl Summary {
    fn of(object: &Value) -> Summary {
        let restartable: Vec<&str> = list(object, "spec.initContainers")
            .iter()
            .filter(|container| text(container, "restartPolicy") == "Always")
            .map(|container| text(container, "name"))
            .collect();
        let mut summary = Summary {
            ready: 0,
            total: list(object, "spec.containers").len() + restartable.len(),
            reason: first_reason(object),
            restarts: Restarts::default(),
        };
        let mut sidecar_restarts = Restarts::default();
        let is_initializing = summary.initialize(object, &restartable, &mut sidecar_restarts);
        if !is_initializing || super::has_condition(object, "Initialized", "True") {
            summary.restarts = sidecar_restarts;
            summary.run(object);
        }
        if is_set(object, "metadata.deletionTimestamp") {
            if text(object, "status.reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(text(object, "status.phase"), "Failed" | "Succeeded") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Goes through the init containers up to the first that is not done. Says whether there is
    /// one.
    fn initialize(
        &mut self,
        object: &Value,
        restartable: &[&str],
        sidecar_restarts: &mut Restarts,
    ) -> bool {
        for (index, status) in list(object, "status.initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let is_sidecar = restartable.contains(&text(status, "name"));
            if is_sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = at(status, "state.terminated");
            if !terminated.is_null() && number(terminated, "exitCode") == 0 {
                continue;
            }
            if is_sidecar && is_true(status, "started") {
                self.ready += usize::from(is_true(status, "ready"));
                continue;
            }
            let waiting = text(status, "state.waiting.reason");
            self.reason = if !terminated.is_null() {
                format!("Init:{}", end_reason(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", list(object, "spec.initContainers").len())
            };
            return true;
        }
        false
    }

    /// Goes through the containers, the last first, so that the first one's reason is shown.
    fn run(&mut self, object: &Value) {
        let mut is_running = false;
        let mut failure = None;
        for status in list(object, "status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "state.waiting.reason");
            let terminated = at(status, "state.terminated");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if !terminated.is_null() {
                self.reason = end_reason(terminated);
                if number(terminated, "exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if is_true(status, "ready") && is_set(status, "state.running") {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        // One container is done, but the pod as a whole may not be.
        let is_ready = list(object, "status.conditions")
            .iter()
            .any(|one| text(one, "type") == "Ready" && text(one, "status") == "True");
        if is_running && is_ready {
            self.reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            self.reason = failure;
        } else if is_running {
            self.reason = "NotReady".to_owned();
        }
    }
}

fn first_reason(object: &Value) -> String {
    let is_gated = list(object, "status.conditions").iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    if is_gated {
        return "SchedulingGated".to_owned();
    }
    or(text(object, "status.reason"), text(object, "status.phase")).to_owned()
}

fn end_reason(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn readiness_gates(object: &Value) -> String {
    let gates = list(object, "spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| super::has_condition(object, text(gate, "conditionType"), "True"))
        .count();
    format!("{open}/{}", gates.len())
}
