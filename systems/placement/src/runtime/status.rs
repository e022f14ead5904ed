//! What a pod's status is to say of its process.

use super::address::HOST;
use super::decide::{Health, Report};
use super::describe::{Problem, without_effect};
use super::outside::{Ending, Known, Started};
use interlock_kernel::Object;
use interlock_kernel::metadata::uid_of;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// That a pod says what means nothing to a process.
pub(super) const FIELD_WITHOUT_EFFECT: &str = "FieldWithoutEffect";

/// The exit code of what never ran, as containerd gives it.
const NOT_EXECUTED: i32 = 128;

/// When a status is written, and what is said of the pod in it beside its process.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) now: Timestamp,
    /// The address of the pod.
    pub(super) address: Ipv4Addr,
}

/// A process of a pod that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) run: Started,
    pub(super) ending: Ending,
    /// When, if anybody saw it.
    pub(super) finished: Option<Timestamp>,
    /// How often the pod was started before this one.
    pub(super) restarts: u64,
}

impl Ended {
    /// What is known of an end, out of what the machine says and what was reported before.
    pub(super) fn of(
        pod: &Object,
        run: Started,
        ending: Ending,
        finished: Option<Timestamp>,
    ) -> Ended {
        let finished = finished.or_else(|| reported_end(pod, run));
        Ended { run, ending, finished, restarts: restarts(pod, run) }
    }

    pub(super) fn is_success(&self) -> bool {
        self.ending == Ending::Code(0)
    }

    /// The status of a pod whose process starts again so many seconds after this end. As kubelet has it, a container
    /// that starts again at once is in no loop yet; and one that never ran waits from the first time on.
    fn starts_again(&self, pod: &Object, wait_seconds: u64, now: Timestamp) -> Value {
        let mut container = self.container(pod);
        let message = format!("the container ended; it restarts {wait_seconds} s after it ended");
        let waiting = match (wait_seconds, self.ending) {
            (0, Ending::NotExecuted(number)) => {
                Some(("RunContainerError", why_not_executed(pod, number)))
            }
            (0, Ending::Code(_) | Ending::Signal(_) | Ending::Unknown) => None,
            (1.., _) => Some(("CrashLoopBackOff", message)),
        };
        match waiting {
            None => container["state"] = self.as_state(pod, now),
            Some((reason, message)) => {
                container["state"] = json!({"waiting": {"reason": reason, "message": message}});
                container["lastState"] = self.as_state(pod, now);
            }
        }
        status(pod, Phase::Running { is_ready: false }, container, now)
    }

    /// The status of a pod that is over with this end.
    fn is_over(&self, pod: &Object, phase: Phase, now: Timestamp) -> Value {
        let mut container = self.container(pod);
        container["state"] = self.as_state(pod, now);
        status(pod, phase, container, now)
    }

    fn container(&self, pod: &Object) -> Value {
        let mut container = container(pod, self.restarts);
        container["containerID"] = json!(container_id(pod, self.run));
        container["started"] = json!(false);
        container
    }

    fn as_state(&self, pod: &Object, now: Timestamp) -> Value {
        let (code, signal, reason) = match self.ending {
            Ending::Code(0) => (0, None, "Completed"),
            Ending::Code(code) => (code, None, "Error"),
            Ending::Signal(signal) => (128 + signal, Some(signal), "Error"),
            Ending::NotExecuted(_) => (NOT_EXECUTED, None, "StartError"),
            Ending::Unknown => (137, None, "ContainerStatusUnknown"),
        };
        let mut terminated = json!({
            "exitCode": code,
            "reason": reason,
            "startedAt": seconds(self.run.since),
            "finishedAt": seconds(self.finished.unwrap_or(now)),
            "containerID": container_id(pod, self.run),
        });
        if let Some(signal) = signal {
            terminated["signal"] = json!(signal);
        }
        if let Ending::NotExecuted(number) = self.ending {
            terminated["message"] = json!(why_not_executed(pod, number));
        }
        json!({"terminated": terminated})
    }
}

/// Why the command of a pod was not executed, out of the number that the operating system has for it.
pub(super) fn why_not_executed(pod: &Object, number: i32) -> String {
    let program = pod.data["spec"]["containers"][0]["command"][0].as_str().unwrap_or_default();
    format!("cannot execute {program:?}: {}", std::io::Error::from_raw_os_error(number))
}

/// The status that says this of the process of a pod; None: there is no such process to say it of.
pub(super) fn reporting(pod: &Object, known: Known, report: Report, at: &At) -> Option<Value> {
    let now = at.now;
    let status = match (report, known) {
        (
            Report::Running(health),
            Known::Lives(run) | Known::Stopping { run, .. } | Known::Killed(run),
        ) => running(pod, run, health, now),
        (Report::StartsAgain(seconds), Known::Gone { run, ending, finished }) => {
            Ended::of(pod, run, ending, finished).starts_again(pod, seconds, now)
        }
        (Report::Succeeded, Known::Gone { run, ending, finished }) => {
            Ended::of(pod, run, ending, finished).is_over(pod, Phase::Succeeded, now)
        }
        (Report::Failed, Known::Gone { run, ending, finished }) => {
            Ended::of(pod, run, ending, finished).is_over(pod, Phase::Failed, now)
        }
        (Report::Running(_) | Report::StartsAgain(_) | Report::Succeeded | Report::Failed, _) => {
            return None;
        }
    };
    Some(with_addresses(status, at))
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

fn running(pod: &Object, run: Started, health: Health, now: Timestamp) -> Value {
    let mut container = container(pod, restarts(pod, run));
    container["ready"] = json!(health.is_ready);
    container["started"] = json!(health.is_started);
    container["containerID"] = json!(container_id(pod, run));
    container["state"] = json!({"running": {"startedAt": seconds(run.since)}});
    if let Some(last) = last_end(pod, run) {
        container["lastState"] = last;
    }
    status(pod, Phase::Running { is_ready: health.is_ready }, container, now)
}

/// The status of a pod that was never started and cannot be.
pub(super) fn waiting(pod: &Object, problem: &Problem, now: Timestamp) -> Value {
    let (reason, message) = (problem.reason(), problem.to_string());
    let said = &pod.data["status"]["containerStatuses"][0];
    let mut container = container(pod, said["restartCount"].as_u64().unwrap_or(0));
    container["state"] = json!({"waiting": {"reason": reason, "message": message}});
    let mut status = status(pod, Phase::Pending, container, now);
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
        condition["lastTransitionTime"] = json!(since(pod, kind, "False", now));
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
    }
    if *problem == Problem::Unschedulable {
        status["containerStatuses"] = Value::Null;
    }
    status
}

fn container(pod: &Object, restarts: u64) -> Value {
    let described = &pod.data["spec"]["containers"][0];
    json!({
        "name": described["name"].as_str().unwrap_or_default(),
        "image": described["image"].as_str().unwrap_or_default(),
        "imageID": "",
        "ready": false,
        "restartCount": restarts,
    })
}

/// The phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pending,
    Running { is_ready: bool },
    Succeeded,
    Failed,
}

impl Phase {
    /// Why a pod is not ready, as kubelet says it.
    fn why_not_ready(self, container: &Value) -> Option<(&'static str, String)> {
        let name = container["name"].as_str().unwrap_or_default();
        let unready = || format!("containers with unready status: [{name}]");
        match self {
            Phase::Pending | Phase::Running { is_ready: true } => None,
            Phase::Running { is_ready: false } => Some(("ContainersNotReady", unready())),
            Phase::Succeeded => Some(("PodCompleted", String::new())),
            Phase::Failed => Some(("PodFailed", String::new())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
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

fn status(pod: &Object, phase: Phase, container: Value, now: Timestamp) -> Value {
    let condition = |(kind, holds): (&str, bool)| {
        let word = if holds { "True" } else { "False" };
        json!({"type": kind, "status": word, "lastTransitionTime": since(pod, kind, word, now)})
    };
    let is_ready = phase == Phase::Running { is_ready: true };
    let conditions = [
        ("PodScheduled", true),
        ("Initialized", phase != Phase::Pending),
        ("ContainersReady", is_ready),
        ("Ready", is_ready),
    ];
    let mut conditions: Vec<Value> = conditions.map(condition).to_vec();
    if let Some((reason, message)) = phase.why_not_ready(&container) {
        for condition in &mut conditions[2..] {
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
        }
    }
    if let Some(words) = without_effect(&pod.data["spec"]) {
        let mut told = condition(("interlock.dev/FieldWithoutEffect", true));
        told["reason"] = json!(FIELD_WITHOUT_EFFECT);
        told["message"] = json!(words);
        conditions.push(told);
    }
    let begun = container["state"]["running"]["startedAt"].as_str().map(str::to_owned);
    let known = pod.data["status"]["startTime"].as_str().map(str::to_owned);
    let mut status = json!({
        "phase": phase.name(),
        "reason": null,
        "message": null,
        "conditions": conditions,
        "containerStatuses": [container],
    });
    if let Some(start) = known.or(begun) {
        status["startTime"] = json!(start);
    }
    status
}

/// How often the pod was started before this run.
fn restarts(pod: &Object, run: Started) -> u64 {
    let reported = &pod.data["status"]["containerStatuses"][0];
    let count = reported["restartCount"].as_u64().unwrap_or(0);
    match reported["containerID"].as_str() {
        None | Some("") => count,
        Some(known) if known == container_id(pod, run) => count,
        Some(_) => count.saturating_add(1),
    }
}

/// When a run ended, if that was reported.
fn reported_end(pod: &Object, run: Started) -> Option<Timestamp> {
    let reported = &pod.data["status"]["containerStatuses"][0];
    let ends = [&reported["state"]["terminated"], &reported["lastState"]["terminated"]];
    let its = ends.into_iter().find(|end| end["containerID"] == container_id(pod, run));
    its?["finishedAt"].as_str()?.parse().ok()
}

/// How the run before this one ended, if that was reported.
fn last_end(pod: &Object, run: Started) -> Option<Value> {
    let reported = &pod.data["status"]["containerStatuses"][0];
    let id = container_id(pod, run);
    let ends = [&reported["state"], &reported["lastState"]];
    let is_before = |end: &&Value| {
        end["terminated"].is_object() && end["terminated"]["containerID"] != id.as_str()
    };
    ends.into_iter().find(is_before).cloned()
}

pub(super) fn container_id(pod: &Object, run: Started) -> String {
    format!("process://{}/{}-{}", uid_of(pod), run.since.as_millisecond(), run.pid)
}

/// A time as the API writes it: whole seconds.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
