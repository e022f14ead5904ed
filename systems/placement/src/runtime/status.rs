//! What a pod's status is to say of its processes.

mod container;

pub(super) use container::{Container, Ended, container_id};

use super::address::HOST;
use super::decide::{Health, Report};
use super::describe::{Problem, without_effect};
use super::outside::Known;
use super::parts::{Containers, Part, init_names};
use interlock_kernel::Object;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// That a pod says what means nothing to a process.
pub(super) const FIELD_WITHOUT_EFFECT: &str = "FieldWithoutEffect";

/// When a status is written, and what is said of the pod in it beside its process.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) now: Timestamp,
    /// The address of the pod.
    pub(super) address: Ipv4Addr,
}

/// A pod, and what the machine knows of its containers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodSeen<'a> {
    pub(super) pod: &'a Object,
    pub(super) containers: &'a Containers,
}

/// What is said of a pod, and of the container that it is at.
struct Said {
    phase: Phase,
    container: Value,
}

impl<'a> PodSeen<'a> {
    /// The container that the pod is at.
    pub(super) fn container(&self) -> Container<'a> {
        self.part(self.containers.at())
    }

    fn part(&self, part: Part) -> Container<'a> {
        Container { pod: self.pod, part }
    }

    /// The status that says this of the pod; None: there is no such process to say it of.
    pub(super) fn reporting(&self, report: Report, at: &At) -> Option<Value> {
        let (part, now) = (self.containers.at(), at.now);
        let container = self.part(part);
        let said = match (report, self.containers.known(part)) {
            (
                Report::Running(health),
                Known::Lives(run) | Known::Stopping { run, .. } | Known::Killed(run),
            ) => Said {
                phase: Phase::Running { is_ready: health.is_ready },
                container: container.running(run, health),
            },
            (
                Report::Initializing,
                Known::Lives(run) | Known::Stopping { run, .. } | Known::Killed(run),
            ) => {
                let health = Health { is_started: true, is_ready: false };
                Said { phase: Phase::Initializing, container: container.running(run, health) }
            }
            (Report::Initializing, Known::Nothing) => {
                Said { phase: Phase::Initializing, container: container.initializing() }
            }
            (Report::StartsAgain(wait_seconds), Known::Gone { run, ending, finished }) => {
                let ended = Ended::of(container, run, ending, finished);
                let phase = match part {
                    Part::Init(_) => Phase::Initializing,
                    Part::Main => Phase::Running { is_ready: false },
                };
                Said { phase, container: ended.starts_again(container, wait_seconds, now) }
            }
            (Report::Succeeded, Known::Gone { run, ending, finished }) => {
                let ended = Ended::of(container, run, ending, finished);
                Said { phase: Phase::Succeeded, container: ended.over(container, now) }
            }
            (Report::Failed, Known::Gone { run, ending, finished }) => {
                let ended = Ended::of(container, run, ending, finished);
                Said { phase: Phase::Failed, container: ended.over(container, now) }
            }
            (
                Report::Running(_)
                | Report::Initializing
                | Report::StartsAgain(_)
                | Report::Succeeded
                | Report::Failed,
                _,
            ) => return None,
        };
        Some(with_addresses(self.status(said, now), at))
    }

    /// The status of a pod whose next container cannot be started.
    pub(super) fn waiting(&self, problem: &Problem, now: Timestamp) -> Value {
        let (reason, message) = (problem.reason(), problem.to_string());
        let container = self.container().blocked(problem);
        let mut status = self.status(Said { phase: Phase::Pending, container }, now);
        status["reason"] = json!(reason);
        status["message"] = json!(message);
        // A pod for which there is no node was not scheduled; of any other one it is said that it is not ready.
        let kind = match problem {
            Problem::Unschedulable => "PodScheduled",
            Problem::NotSupported(_) | Problem::Missing(_) => "Ready",
        };
        let conditions = status["conditions"].as_array_mut().into_iter().flatten();
        for condition in conditions.filter(|condition| condition["type"] == kind) {
            condition["status"] = json!("False");
            condition["lastTransitionTime"] = json!(since(self.pod, kind, "False", now));
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
        }
        if *problem == Problem::Unschedulable {
            status["containerStatuses"] = Value::Null;
            status["initContainerStatuses"] = Value::Null;
        }
        status
    }

    fn status(&self, said: Said, now: Timestamp) -> Value {
        let Said { phase, container } = said;
        let mut conditions = self.conditions(phase, now);
        if let Some(words) = without_effect(&self.pod.data["spec"]) {
            let mut told = self.condition("interlock.dev/FieldWithoutEffect", true, now);
            told["reason"] = json!(FIELD_WITHOUT_EFFECT);
            told["message"] = json!(words);
            conditions.push(told);
        }
        let inits = self.inits(&container, now);
        let main = match self.containers.at() {
            Part::Init(_) => self.part(Part::Main).initializing(),
            Part::Main => container,
        };
        let begun = inits.first().and_then(begun).or_else(|| begun(&main));
        let known = self.pod.data["status"]["startTime"].as_str().map(str::to_owned);
        let mut status = json!({
            "phase": phase.name(),
            "reason": null,
            "message": null,
            "conditions": conditions,
            "containerStatuses": [main],
        });
        if !inits.is_empty() {
            status["initContainerStatuses"] = json!(inits);
        }
        if let Some(start) = known.or(begun) {
            status["startTime"] = json!(start);
        }
        status
    }

    /// What is said of the init containers, if the pod is at this container.
    fn inits(&self, current: &Value, now: Timestamp) -> Vec<Value> {
        let at = self.containers.at();
        let said = |number: usize, known: &Known| {
            let init = self.part(Part::Init(number));
            match at {
                Part::Init(reached) if number == reached => current.clone(),
                Part::Init(reached) if number > reached => init.initializing(),
                Part::Init(_) | Part::Main => init.done(*known, now),
            }
        };
        let inits = self.containers.inits.iter().enumerate();
        inits.map(|(number, known)| said(number, known)).collect()
    }

    fn condition(&self, kind: &str, holds: bool, now: Timestamp) -> Value {
        let word = if holds { "True" } else { "False" };
        let since = since(self.pod, kind, word, now);
        json!({"type": kind, "status": word, "lastTransitionTime": since})
    }

    fn conditions(&self, phase: Phase, now: Timestamp) -> Vec<Value> {
        let names = init_names(self.pod);
        let incomplete = match self.containers.at() {
            Part::Init(reached) => names.get(reached..).unwrap_or_default(),
            Part::Main => &[],
        };
        let is_initialized = match names.is_empty() {
            true => phase != Phase::Pending,
            false => incomplete.is_empty(),
        };
        let is_ready = phase == Phase::Running { is_ready: true };
        let mut conditions: Vec<Value> = [
            ("PodScheduled", true),
            ("Initialized", is_initialized),
            ("ContainersReady", is_ready),
            ("Ready", is_ready),
        ]
        .map(|(kind, holds)| self.condition(kind, holds, now))
        .to_vec();
        if !incomplete.is_empty() {
            let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
            conditions[1]["reason"] = json!("ContainersNotInitialized");
            conditions[1]["message"] = json!(message);
        }
        if let Some((reason, message)) = phase.why_not_ready(Part::Main.name(self.pod)) {
            for condition in &mut conditions[2..] {
                condition["reason"] = json!(reason);
                condition["message"] = json!(message);
            }
        }
        conditions
    }
}

/// A pod that ran has an address, and keeps it.
fn with_addresses(mut status: Value, at: &At) -> Value {
    let (own, host) = (at.address.to_string(), HOST.to_string());
    status["podIPs"] = json!([{"ip": own}]);
    status["podIP"] = json!(own);
    status["hostIPs"] = json!([{"ip": host}]);
    status["hostIP"] = json!(host);
    status
}

/// When a container began that runs or has ended.
fn begun(container: &Value) -> Option<String> {
    let state = &container["state"];
    let ended = &state["terminated"]["startedAt"];
    let begun = state["running"]["startedAt"].as_str().or(ended.as_str());
    begun.map(str::to_owned)
}

/// The phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Something keeps it from being started.
    Pending,
    /// Its init containers are not done, or its container is about to start after them.
    Initializing,
    Running {
        is_ready: bool,
    },
    Succeeded,
    Failed,
}

impl Phase {
    /// Why a pod with this container is not ready, as kubelet says it.
    fn why_not_ready(self, name: &str) -> Option<(&'static str, String)> {
        let unready = || format!("containers with unready status: [{name}]");
        match self {
            Phase::Pending | Phase::Running { is_ready: true } => None,
            Phase::Initializing | Phase::Running { is_ready: false } => {
                Some(("ContainersNotReady", unready()))
            }
            Phase::Succeeded => Some(("PodCompleted", String::new())),
            Phase::Failed => Some(("PodFailed", String::new())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Phase::Pending | Phase::Initializing => "Pending",
            Phase::Running { .. } => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
        }
    }
}

/// Since when a condition of a pod is so.
fn since(pod: &Object, kind: &str, word: &str, now: Timestamp) -> String {
    let known = pod.data["status"]["conditions"].as_array().into_iter().flatten();
    let mut same = known.filter(|known| known["type"] == kind && known["status"] == word);
    let since = same.next().and_then(|known| known["lastTransitionTime"].as_str());
    since.map_or_else(|| seconds(now), str::to_owned)
}

/// A time as the API writes it: whole seconds.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
