//! Whether an object does what its spec says: the rules of kstatus, in the order in which kstatus asks.
//!
//! First what any object may say: that it is being deleted, that its controller has not seen its latest generation,
//! that it is reconciling or stalled. Then the rules of the built-in kinds. A kind that nobody knows counts by its
//! condition Ready; where it has none, it counts as current, and the soak is all there is.

mod others;
#[cfg(test)]
mod tests;
mod workloads;

use jiff::Timestamp;
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How an object is, in the words of kstatus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    /// Its controller has done what the spec says.
    Current,
    /// Its controller is at work, or has not seen it yet.
    InProgress,
    /// Its controller could not do what the spec says.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It cannot be read.
    Unknown,
}

/// How an object is, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Health {
    /// How it is.
    pub state: State,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

impl Health {
    /// Whether its controller has done what the spec says.
    pub fn is_current(&self) -> bool {
        self.state == State::Current
    }

    fn current(message: impl Into<String>) -> Health {
        Health { state: State::Current, reason: "Current".to_owned(), message: message.into() }
    }

    fn in_progress(reason: &str, message: impl Into<String>) -> Health {
        let (reason, message) = (reason.to_owned(), message.into());
        Health { state: State::InProgress, reason, message }
    }

    fn failed(reason: &str, message: impl Into<String>) -> Health {
        Health { state: State::Failed, reason: reason.to_owned(), message: message.into() }
    }

    fn unknown(message: impl Into<String>) -> Health {
        let message = message.into();
        Health { state: State::Unknown, reason: "Unreadable".to_owned(), message }
    }
}

/// How an object is. The time decides only how long a pod has to be scheduled.
pub fn health(object: &DynamicObject, now: Timestamp) -> Health {
    if object.metadata.deletion_timestamp.is_some() {
        let message = "the object is being deleted".to_owned();
        return Health { state: State::Terminating, reason: "Terminating".to_owned(), message };
    }
    let seen = Status { object, data: &object.data };
    let known = unobserved(&seen).or_else(|| standard(&seen)).or_else(|| of_kind(&seen, now));
    let known = known.or_else(|| ready(&seen));
    known.unwrap_or_else(|| Health::current("the object says nothing of its health"))
}

/// The controller has not seen the latest generation. An object whose controller notes no generation is not asked.
fn unobserved(seen: &Status<'_>) -> Option<Health> {
    let observed = seen.data["status"].get("observedGeneration")?;
    let generation = seen.object.metadata.generation?;
    let Some(observed) = observed.as_i64() else {
        return Some(Health::unknown("status.observedGeneration is not a number"));
    };
    let message =
        format!("the generation is {generation}, and the controller has seen {observed} last");
    (observed != generation).then(|| Health::in_progress("LatestGenerationNotObserved", message))
}

/// The two conditions that kstatus has for every kind.
fn standard(seen: &Status<'_>) -> Option<Health> {
    seen.conditions().find_map(|condition| match condition.kind {
        "Reconciling" if condition.is("True") => {
            Some(Health::in_progress(condition.reason, condition.message))
        }
        "Stalled" if condition.is("True") => {
            Some(Health::failed(condition.reason, condition.message))
        }
        _ => None,
    })
}

/// The rules of a built-in kind; None: it has none.
fn of_kind(seen: &Status<'_>, now: Timestamp) -> Option<Health> {
    let types = seen.object.types.as_ref()?;
    let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
    Some(match (group, types.kind.as_str()) {
        ("apps" | "extensions", "Deployment") => workloads::deployment(seen),
        ("apps" | "extensions", "ReplicaSet") => workloads::replica_set(seen),
        ("apps" | "extensions", "DaemonSet") => workloads::daemon_set(seen),
        ("apps", "StatefulSet") => workloads::stateful_set(seen),
        ("batch", "Job") => others::job(seen),
        ("", "Pod") => others::pod(seen, now),
        ("", "PersistentVolumeClaim") => others::claim(seen),
        ("", "Service") => others::service(seen),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => others::definition(seen),
        // Its controller notes the generation that it has seen, and nothing else.
        ("policy", "PodDisruptionBudget") => {
            Health::current("the disruptions that are allowed were worked out")
        }
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") => {
            Health::current("objects of this kind are always ready")
        }
        _ => return None,
    })
}

/// The condition Ready of a kind that nobody knows.
fn ready(seen: &Status<'_>) -> Option<Health> {
    let ready = seen.conditions().find(|condition| condition.kind == "Ready")?;
    match ready.status {
        "True" => Some(Health::current("the condition Ready holds")),
        "False" => Some(Health::in_progress(ready.reason, ready.message)),
        "Unknown" => Some(Health::in_progress("Unknown", ready.message)),
        _ => None,
    }
}

/// What is read of an object.
struct Status<'a> {
    object: &'a DynamicObject,
    data: &'a Value,
}

/// A condition; what is missing reads as empty.
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Condition<'_> {
    fn is(&self, status: &str) -> bool {
        self.status == status
    }
}

impl<'a> Status<'a> {
    fn conditions(&self) -> impl Iterator<Item = Condition<'a>> {
        let all = self.data["status"]["conditions"].as_array().into_iter().flatten();
        all.map(|condition| {
            let word = |key: &str| condition[key].as_str().unwrap_or_default();
            let (kind, status) = (word("type"), word("status"));
            Condition { kind, status, reason: word("reason"), message: word("message") }
        })
    }

    /// A number of the spec; None: it does not say.
    fn spec(&self, key: &str) -> Option<i64> {
        self.data["spec"][key].as_i64()
    }

    /// A number of the status; one that it does not say is 0.
    fn count(&self, key: &str) -> i64 {
        self.data["status"][key].as_i64().unwrap_or(0)
    }

    /// A word of the status; empty: it does not say.
    fn word(&self, key: &str) -> &'a str {
        self.data["status"][key].as_str().unwrap_or_default()
    }
}

/// So many of so many are so: the first row of which there are too few.
fn too_few(rows: &[(&str, &str, i64, i64)]) -> Option<Health> {
    let row = rows.iter().find(|(_, _, are, of)| are < of)?;
    let (reason, word, are, of) = row;
    Some(Health::in_progress(reason, format!("{word}: {are}/{of}")))
}

/// More replicas than the spec asks for.
fn extra(there: i64, wanted: i64) -> Option<Health> {
    let message = || format!("pods to be terminated: {}", there.saturating_sub(wanted));
    (there > wanted).then(|| Health::in_progress("ExtraPods", message()))
}
