//! What a pod's status is to say of its process.

use super::decide::Restart;
use super::describe::without_effect;
use super::outside::{Ending, Known, Started};
use crate::syncer::marks::uid;
use interlock_kernel::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// That a pod says what means nothing to a process.
pub(super) const FIELD_WITHOUT_EFFECT: &str = "FieldWithoutEffect";
/// The first wait before a restart; each is twice the one before.
const FIRST_BACK_OFF_SECONDS: u64 = 10;
/// The longest.
const LONGEST_BACK_OFF_SECONDS: u64 = 300;
/// One that ran for so long starts afresh.
const STEADY: SignedDuration = SignedDuration::from_secs(600);

/// A process of a pod that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) run: Started,
    pub(super) ending: Ending,
    pub(super) finished: Timestamp,
    /// How often the pod was started before this one.
    pub(super) restarts: u64,
}

impl Ended {
    /// What is known of an end, out of what the machine says and what was reported before.
    pub(super) fn of(pod: &Object, known: Known, now: Timestamp) -> Option<Ended> {
        let Known::Gone { run, ending, finished } = known else { return None };
        let reported = || reported_end(pod, run);
        let finished = finished.or_else(reported).unwrap_or(now);
        Some(Ended { run, ending, finished, restarts: restarts(pod, run) })
    }

    fn is_success(&self) -> bool {
        self.ending == Ending::Code(0)
    }

    /// What follows, and how long it is until then.
    pub(super) fn restart(&self, pod: &Object, now: Timestamp) -> (Restart, Duration) {
        let is_over = match pod.data["spec"]["restartPolicy"].as_str() {
            Some("Never") => true,
            Some("OnFailure") => self.is_success(),
            _ => false,
        };
        if is_over {
            return (Restart::Never, Duration::ZERO);
        }
        let waited = Duration::try_from(now.duration_since(self.finished)).unwrap_or_default();
        match self.back_off().saturating_sub(waited) {
            Duration::ZERO => (Restart::Now, Duration::ZERO),
            left => (Restart::Later, left),
        }
    }

    /// How long it waits after this end. The first restart is at once.
    fn back_off(&self) -> Duration {
        if self.restarts == 0 || self.finished.duration_since(self.run.since) > STEADY {
            return Duration::ZERO;
        }
        let doublings = u32::try_from(self.restarts - 1).unwrap_or(u32::MAX).min(16);
        let seconds = FIRST_BACK_OFF_SECONDS << doublings;
        Duration::from_secs(seconds.min(LONGEST_BACK_OFF_SECONDS))
    }

    fn as_state(&self, pod: &Object) -> Value {
        let (code, signal, reason) = match self.ending {
            Ending::Code(0) => (0, None, "Completed"),
            Ending::Code(code) => (code, None, "Error"),
            Ending::Signal(signal) => (128 + signal, Some(signal), "Error"),
            Ending::Unknown => (137, None, "ContainerStatusUnknown"),
        };
        let mut terminated = json!({
            "exitCode": code,
            "reason": reason,
            "startedAt": seconds(self.run.since),
            "finishedAt": seconds(self.finished),
            "containerID": container_id(pod, self.run),
        });
        if let Some(signal) = signal {
            terminated["signal"] = json!(signal);
        }
        json!({"terminated": terminated})
    }
}

/// The status that is true of a pod; None: there is nothing to say.
pub(super) fn expected(pod: &Object, known: Known, now: Timestamp) -> Option<Value> {
    match known {
        Known::Nothing => None,
        Known::Lives(run) | Known::Stopping(run) | Known::Killed(run) => {
            let mut container = container(pod, restarts(pod, run));
            container["ready"] = json!(true);
            container["started"] = json!(true);
            container["containerID"] = json!(container_id(pod, run));
            container["state"] = json!({"running": {"startedAt": seconds(run.since)}});
            if let Some(last) = last_end(pod, run) {
                container["lastState"] = last;
            }
            Some(status(pod, ("Running", true, now), container))
        }
        Known::Gone { run, .. } => {
            let ended = Ended::of(pod, known, now)?;
            let mut container = container(pod, ended.restarts);
            container["containerID"] = json!(container_id(pod, run));
            container["started"] = json!(false);
            if ended.restart(pod, now).0 == Restart::Never {
                container["state"] = ended.as_state(pod);
                let phase = if ended.is_success() { "Succeeded" } else { "Failed" };
                return Some(status(pod, (phase, false, now), container));
            }
            let wait = ended.back_off().as_secs();
            let message = format!("it ended, and starts again {wait} s after that");
            container["state"] =
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
            container["lastState"] = ended.as_state(pod);
            Some(status(pod, ("Running", false, now), container))
        }
    }
}

/// The status of a pod that was never started and cannot be.
pub(super) fn waiting(pod: &Object, (reason, message): (&str, &str), now: Timestamp) -> Value {
    let restarts = pod.data["status"]["containerStatuses"][0]["restartCount"].as_u64();
    let mut container = container(pod, restarts.unwrap_or(0));
    container["state"] = json!({"waiting": {"reason": reason, "message": message}});
    let mut status = status(pod, ("Pending", false, now), container);
    status["reason"] = json!(reason);
    status["message"] = json!(message);
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

fn status(
    pod: &Object,
    (phase, is_ready, now): (&str, bool, Timestamp),
    container: Value,
) -> Value {
    let condition = |(kind, holds): (&str, bool)| {
        let word = if holds { "True" } else { "False" };
        let known = pod.data["status"]["conditions"].as_array().into_iter().flatten();
        let mut same = known.filter(|known| known["type"] == kind && known["status"] == word);
        let since = same.next().and_then(|known| known["lastTransitionTime"].as_str());
        let since = since.map_or_else(|| seconds(now), str::to_owned);
        json!({"type": kind, "status": word, "lastTransitionTime": since})
    };
    let is_started = phase != "Pending";
    let conditions = [
        ("PodScheduled", true),
        ("Initialized", is_started),
        ("ContainersReady", is_ready),
        ("Ready", is_ready),
    ];
    let mut conditions: Vec<Value> = conditions.map(condition).to_vec();
    if let Some(words) = without_effect(&pod.data["spec"]) {
        let mut told = condition(("interlock.dev/FieldWithoutEffect", true));
        told["reason"] = json!(FIELD_WITHOUT_EFFECT);
        told["message"] = json!(words);
        conditions.push(told);
    }
    let begun = container["state"]["running"]["startedAt"].as_str().map(str::to_owned);
    let known = pod.data["status"]["startTime"].as_str().map(str::to_owned);
    let mut status = json!({
        "phase": phase,
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

fn container_id(pod: &Object, run: Started) -> String {
    format!("process://{}/{}-{}", uid(pod), run.since.as_millisecond(), run.pid)
}

/// A time as the API writes it: whole seconds.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
