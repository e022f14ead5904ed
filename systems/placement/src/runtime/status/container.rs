//! What the status of a pod is to say of one of its containers.

use super::super::decide::Health;
use super::super::describe::Problem;
use super::super::outside::{Ending, Known, Started};
use super::super::parts::Part;
use super::seconds;
use interlock_kernel::Object;
use interlock_kernel::metadata::uid_of;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The exit code of what never ran, as containerd gives it.
const NOT_EXECUTED: i32 = 128;

/// A container of a pod.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Container<'a> {
    pub(in super::super) pod: &'a Object,
    pub(in super::super) part: Part,
}

impl Container<'_> {
    /// One that runs.
    pub(super) fn running(self, run: Started, health: Health) -> Value {
        let mut container = self.with(self.restarts(run));
        container["ready"] = json!(health.is_ready);
        container["started"] = json!(health.is_started);
        container["containerID"] = json!(container_id(self.pod, run));
        container["state"] = json!({"running": {"startedAt": seconds(run.since)}});
        if let Some(last) = self.last_end(run) {
            container["lastState"] = last;
        }
        container
    }

    /// One that waits until the init containers before it are done.
    pub(super) fn initializing(self) -> Value {
        let restarts = self.part.said(self.pod)["restartCount"].as_u64().unwrap_or(0);
        let mut container = self.with(restarts);
        container["started"] = json!(false);
        container["state"] = json!({"waiting": {"reason": "PodInitializing"}});
        container
    }

    /// One that cannot be started.
    pub(super) fn blocked(self, problem: &Problem) -> Value {
        let restarts = self.part.said(self.pod)["restartCount"].as_u64().unwrap_or(0);
        let mut container = self.with(restarts);
        let (reason, message) = (problem.reason(), problem.to_string());
        container["state"] = json!({"waiting": {"reason": reason, "message": message}});
        container
    }

    /// An init container that is done, after which another container was or is to be started.
    pub(super) fn done(self, known: Known, now: Timestamp) -> Value {
        let Known::Gone { run, ending, finished } = known else {
            // The machine lost its record, and the container of the pod was started: what was said of it holds.
            let said = self.part.said(self.pod);
            return if said.is_object() { said.clone() } else { self.initializing() };
        };
        let mut container = Ended::of(self, run, ending, finished).over(self, now);
        container["ready"] = json!(true);
        if let Some(last) = self.last_end(run) {
            container["lastState"] = last;
        }
        container
    }

    /// What is said of it in every state.
    fn with(self, restarts: u64) -> Value {
        let described = self.part.described(self.pod);
        json!({
            "name": described["name"].as_str().unwrap_or_default(),
            "image": described["image"].as_str().unwrap_or_default(),
            "imageID": "",
            "ready": false,
            "restartCount": restarts,
        })
    }

    /// Why its command was not executed, out of the number that the operating system has for it.
    pub(in super::super) fn why_not_executed(self, number: i32) -> String {
        let program = self.part.described(self.pod)["command"][0].as_str().unwrap_or_default();
        format!("cannot execute {program:?}: {}", std::io::Error::from_raw_os_error(number))
    }

    /// How often it was started before this run.
    fn restarts(self, run: Started) -> u64 {
        let reported = self.part.said(self.pod);
        let count = reported["restartCount"].as_u64().unwrap_or(0);
        match reported["containerID"].as_str() {
            None | Some("") => count,
            Some(known) if known == container_id(self.pod, run) => count,
            Some(_) => count.saturating_add(1),
        }
    }

    /// When a run ended, if that was reported.
    fn reported_end(self, run: Started) -> Option<Timestamp> {
        let reported = self.part.said(self.pod);
        let ends = [&reported["state"]["terminated"], &reported["lastState"]["terminated"]];
        let id = container_id(self.pod, run);
        let its = ends.into_iter().find(|end| end["containerID"] == id.as_str());
        its?["finishedAt"].as_str()?.parse().ok()
    }

    /// How the run before this one ended, if that was reported.
    fn last_end(self, run: Started) -> Option<Value> {
        let reported = self.part.said(self.pod);
        let id = container_id(self.pod, run);
        let ends = [&reported["state"], &reported["lastState"]];
        let is_before = |end: &&Value| {
            end["terminated"].is_object() && end["terminated"]["containerID"] != id.as_str()
        };
        ends.into_iter().find(is_before).cloned()
    }
}

/// A run of a container that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Ended {
    pub(in super::super) run: Started,
    pub(in super::super) ending: Ending,
    /// When, if anybody saw it.
    pub(in super::super) finished: Option<Timestamp>,
    /// How often the container was started before this one.
    pub(in super::super) restarts: u64,
}

impl Ended {
    /// What is known of an end, out of what the machine says and what was reported before.
    pub(in super::super) fn of(
        container: Container<'_>,
        run: Started,
        ending: Ending,
        finished: Option<Timestamp>,
    ) -> Ended {
        let finished = finished.or_else(|| container.reported_end(run));
        Ended { run, ending, finished, restarts: container.restarts(run) }
    }

    pub(in super::super) fn is_success(&self) -> bool {
        self.ending == Ending::Code(0)
    }

    /// A container that starts again so many seconds after this end. As kubelet has it, one that starts
    /// again at once is in no loop yet; and one that never ran waits from the first time on.
    pub(super) fn starts_again(
        &self,
        of: Container<'_>,
        wait_seconds: u64,
        now: Timestamp,
    ) -> Value {
        let message = format!("the container ended; it restarts {wait_seconds} s after it ended");
        let waiting = match (wait_seconds, self.ending) {
            (0, Ending::NotExecuted(number)) => {
                Some(("RunContainerError", of.why_not_executed(number)))
            }
            (0, Ending::Code(_) | Ending::Signal(_) | Ending::Unknown) => None,
            (1.., _) => Some(("CrashLoopBackOff", message)),
        };
        let mut container = self.over(of, now);
        if let Some((reason, message)) = waiting {
            container["lastState"] = container["state"].take();
            container["state"] = json!({"waiting": {"reason": reason, "message": message}});
        }
        container
    }

    /// A container that is over with this end.
    pub(super) fn over(&self, of: Container<'_>, now: Timestamp) -> Value {
        let mut container = of.with(self.restarts);
        container["containerID"] = json!(container_id(of.pod, self.run));
        container["started"] = json!(false);
        container["state"] = self.as_state(of, now);
        container
    }

    fn as_state(&self, of: Container<'_>, now: Timestamp) -> Value {
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
            "containerID": container_id(of.pod, self.run),
        });
        if let Some(signal) = signal {
            terminated["signal"] = json!(signal);
        }
        if let Ending::NotExecuted(number) = self.ending {
            terminated["message"] = json!(of.why_not_executed(number));
        }
        json!({"terminated": terminated})
    }
}

/// Names a run of a pod: no two runs of one machine have a number and a time in common.
pub(in super::super) fn container_id(pod: &Object, run: Started) -> String {
    format!("process://{}/{}-{}", uid_of(pod), run.since.as_millisecond(), run.pid)
}
