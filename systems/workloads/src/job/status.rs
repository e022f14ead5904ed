//! The status of a Job: read, and written.

use super::indexes::Indexes;
use crate::status;
use interlock_kernel::Object;
use interlock_kernel::conditions::Finding;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The Job is to succeed: enough pods have.
const CRITERIA_MET: &str = "SuccessCriteriaMet";
/// The Job is to fail.
const FAILURE_TARGET: &str = "FailureTarget";
const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const SUSPENDED: &str = "Suspended";

/// What a status says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Status {
    /// Whether it says since when the Job runs.
    pub has_started: bool,
    /// Whether it says that the Job is suspended.
    pub is_suspended: bool,
    /// How many pods have ended how.
    pub ends: Ends,
    /// How many pods there are.
    pub now: Now,
    /// How the Job is to end, once that is known.
    pub verdict: Option<Verdict>,
    /// Whether it has ended: all its pods have.
    pub is_finished: bool,
}

/// How many pods have ended, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Ends {
    /// How many have succeeded, and are counted for good.
    pub succeeded: u32,
    /// How many have failed, and are counted for good.
    pub failed: u32,
    /// The uids of those that have succeeded, and may still hold our finalizer.
    pub new_succeeded: BTreeSet<String>,
    /// The uids of those that have failed, and may still hold our finalizer.
    pub new_failed: BTreeSet<String>,
    /// The indexes of an indexed Job that have succeeded.
    pub indexes: Indexes,
}

impl Ends {
    /// How many have failed, counted for good or not.
    pub fn all_failed(&self) -> u32 {
        let new = u32::try_from(self.new_failed.len()).unwrap_or(u32::MAX);
        self.failed.saturating_add(new)
    }

    /// How many have succeeded, counted for good or not, where a Job has no indexes.
    pub fn all_succeeded(&self) -> u32 {
        let new = u32::try_from(self.new_succeeded.len()).unwrap_or(u32::MAX);
        self.succeeded.saturating_add(new)
    }
}

/// How many pods there are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Now {
    /// Those that run or will.
    pub active: u32,
    /// Those of them that are ready.
    pub ready: u32,
    /// Those that are being deleted.
    pub terminating: u32,
}

/// How a Job is to end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Verdict {
    /// Enough pods have succeeded.
    Succeeds,
    /// It fails.
    Fails {
        /// Why, in one word.
        reason: String,
        /// Why, in a sentence.
        message: String,
    },
}

impl Status {
    /// As the Job has it.
    pub(super) fn read(job: &Object) -> Status {
        let status = &job.data["status"];
        let count = |field: &str| status[field].as_u64().and_then(|it| u32::try_from(it).ok());
        let uids = |field: &str| -> BTreeSet<String> {
            let all = status["uncountedTerminatedPods"][field].as_array().into_iter().flatten();
            all.filter_map(|uid| uid.as_str().map(str::to_owned)).collect()
        };
        let conditions = status::conditions_of(job);
        let holds =
            |kind: &str| conditions.iter().find(|it| it["type"] == kind && it["status"] == "True");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let verdict = match holds(FAILURE_TARGET).or_else(|| holds(FAILED)) {
            Some(failed) => Some(Verdict::Fails {
                reason: text(&failed["reason"]),
                message: text(&failed["message"]),
            }),
            None => holds(CRITERIA_MET).or_else(|| holds(COMPLETE)).map(|_| Verdict::Succeeds),
        };
        Status {
            has_started: !status["startTime"].is_null(),
            is_suspended: holds(SUSPENDED).is_some(),
            ends: Ends {
                succeeded: count("succeeded").unwrap_or(0),
                failed: count("failed").unwrap_or(0),
                new_succeeded: uids("succeeded"),
                new_failed: uids("failed"),
                indexes: Indexes::read(status["completedIndexes"].as_str().unwrap_or_default()),
            },
            now: Now {
                active: count("active").unwrap_or(0),
                ready: count("ready").unwrap_or(0),
                terminating: count("terminating").unwrap_or(0),
            },
            verdict,
            is_finished: holds(COMPLETE).or_else(|| holds(FAILED)).is_some(),
        }
    }
}

/// When a Job ended; None: it has not, or does not say when.
pub(super) fn finished_at(job: &Object) -> Option<Timestamp> {
    let conditions = status::conditions_of(job);
    let is_end =
        |it: &&Value| (it["type"] == COMPLETE || it["type"] == FAILED) && it["status"] == "True";
    conditions.iter().find(is_end)?["lastTransitionTime"].as_str()?.parse().ok()
}

/// Whether a Job has ended, and if so, whether it succeeded.
pub fn outcome(job: &Object) -> Option<bool> {
    let status = Status::read(job);
    status.is_finished.then(|| status.verdict == Some(Verdict::Succeeds))
}

impl Ends {
    /// As a patch of the status.
    pub(super) fn patch(&self, is_indexed: bool) -> Value {
        let mut change = json!({
            "succeeded": self.succeeded, "failed": self.failed,
            "uncountedTerminatedPods": {
                "succeeded": self.new_succeeded, "failed": self.new_failed,
            },
        });
        if is_indexed {
            change["completedIndexes"] = json!(self.indexes.to_string());
        }
        change
    }
}

impl Now {
    /// As a patch of the status.
    pub(super) fn patch(self) -> Value {
        json!({"active": self.active, "ready": self.ready, "terminating": self.terminating})
    }
}

/// The condition with one more finding, as a patch of the status.
fn condition(job: &Object, finding: &Finding, now: Timestamp) -> Value {
    let mut conditions = status::with(&status::conditions_of(job), finding, now);
    if let Some(found) = conditions.iter_mut().find(|it| it["type"] == finding.kind) {
        found["lastProbeTime"] = status::time(now);
    }
    json!({"conditions": conditions})
}

/// Since when a Job runs.
pub(super) fn started(job: &Object, now: Timestamp) -> Value {
    let is_resumed = Status::read(job).is_suspended;
    let mut change = if is_resumed {
        condition(job, &Finding::fails(SUSPENDED, "JobResumed", "Job resumed"), now)
    } else {
        json!({})
    };
    change["startTime"] = status::time(now);
    change
}

/// That a Job is suspended. It runs afresh when it is resumed.
pub(super) fn suspended(job: &Object, now: Timestamp) -> Value {
    let finding = Finding::holds(SUSPENDED, "JobSuspended", "Job suspended");
    let mut change = condition(job, &finding, now);
    change["startTime"] = Value::Null;
    change
}

/// How a Job is to end.
pub(super) fn concluded(job: &Object, verdict: &Verdict, now: Timestamp) -> Value {
    match verdict {
        Verdict::Succeeds => condition(job, &enough(CRITERIA_MET), now),
        Verdict::Fails { reason, message } => failing(job, FAILURE_TARGET, reason, message, now),
    }
}

/// How a Job ended, once all its pods have.
pub(super) fn finished(job: &Object, verdict: &Verdict, now: Timestamp) -> Value {
    match verdict {
        Verdict::Succeeds => {
            let mut change = condition(job, &enough(COMPLETE), now);
            change["completionTime"] = status::time(now);
            change
        }
        Verdict::Fails { reason, message } => failing(job, FAILED, reason, message, now),
    }
}

fn enough(kind: &'static str) -> Finding {
    Finding::holds(kind, "CompletionsReached", "Reached expected number of succeeded pods")
}

/// The reason of a failure is kept in the first condition, and read from there for the last one.
fn failing(job: &Object, kind: &'static str, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut change = condition(job, &Finding::holds(kind, "", message), now);
    let conditions = change["conditions"].as_array_mut().into_iter().flatten();
    for found in conditions.filter(|it| it["type"] == kind) {
        found["reason"] = json!(reason);
    }
    change
}
