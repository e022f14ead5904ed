//! What a pod is to the controller that made it.

use interlock_kernel::metadata::{is_deleting, name_of, uid_of};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// A pod, as far as a decision depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Pod {
    /// Its identity.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// What can be expected of it.
    pub state: State,
    /// Whether it can be used.
    pub readiness: Readiness,
}

/// What can be expected of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum State {
    /// It runs, or will.
    Active,
    /// It ended well, and does not start again.
    Succeeded,
    /// It failed, and does not start again.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// Whether a pod can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Readiness {
    /// It is not ready.
    Unready,
    /// It is ready, and available after this time if it stays so.
    Ready(Duration),
    /// It has been ready for as long as its controller asks for.
    Available,
}

impl Pod {
    /// A pod whose controller has this `minReadySeconds`, at this time.
    pub fn of(pod: &DynamicObject, min_ready_seconds: i64, now: Timestamp) -> Pod {
        Pod {
            uid: uid_of(pod).to_owned(),
            name: name_of(pod).to_owned(),
            state: state_of(pod),
            readiness: readiness_of(pod, min_ready_seconds, now),
        }
    }

    /// Whether it counts among the pods that its controller wants: one that ended or is being deleted
    /// does not.
    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Whether it counts and is ready.
    pub fn is_ready(&self) -> bool {
        self.is_active() && self.readiness != Readiness::Unready
    }

    /// Whether it counts and is available.
    pub fn is_available(&self) -> bool {
        self.is_active() && self.readiness == Readiness::Available
    }
}

/// The shortest time after which one more of these pods is available if it stays ready.
pub fn next_available(pods: &[Pod]) -> Option<Duration> {
    let waiting = pods.iter().filter(|pod| pod.is_active()).filter_map(|pod| match pod.readiness {
        Readiness::Ready(left) => Some(left),
        Readiness::Unready | Readiness::Available => None,
    });
    waiting.min()
}

/// What can be expected of a pod.
pub fn state_of(pod: &DynamicObject) -> State {
    if is_deleting(pod) {
        return State::Terminating;
    }
    match pod.data["status"]["phase"].as_str() {
        Some("Succeeded") => State::Succeeded,
        Some("Failed") => State::Failed,
        _ => State::Active,
    }
}

/// Whether a pod can be used, with this `minReadySeconds`, at this time.
pub fn readiness_of(pod: &DynamicObject, min_ready_seconds: i64, now: Timestamp) -> Readiness {
    let Some(ready) = condition(&pod.data, "Ready").filter(|it| it["status"] == "True") else {
        return Readiness::Unready;
    };
    if min_ready_seconds <= 0 {
        return Readiness::Available;
    }
    // One that does not say since when it is ready is ready from now on.
    let since = ready["lastTransitionTime"].as_str().and_then(|text| text.parse().ok());
    let since: Timestamp = since.unwrap_or(now);
    let left = since.as_second().saturating_add(min_ready_seconds).saturating_sub(now.as_second());
    match u64::try_from(left) {
        Ok(left) if left > 0 => Readiness::Ready(Duration::from_secs(left)),
        Ok(_) | Err(_) => Readiness::Available,
    }
}

/// A condition in the status of an object.
pub fn condition<'a>(data: &'a Value, kind: &str) -> Option<&'a Value> {
    data["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_000;

    fn pod(status: Value) -> DynamicObject {
        let object = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "uid": "u"}, "status": status});
        serde_json::from_value(object).expect("a pod")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    fn ready_since(seconds: i64) -> DynamicObject {
        let since = at(seconds).to_string();
        pod(json!({"phase": "Running", "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True", "lastTransitionTime": since}]}))
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_for_long_enough() {
        let of = |since, least| Pod::of(&ready_since(since), least, at(NOW)).readiness;
        assert_eq!(of(NOW, 0), Readiness::Available);
        assert_eq!(of(NOW - 4, 10), Readiness::Ready(Duration::from_secs(6)));
        assert_eq!(of(NOW - 10, 10), Readiness::Available);
        assert_eq!(of(NOW, i64::MIN), Readiness::Available);
        assert_eq!(
            of(NOW - 1, i64::MAX),
            Readiness::Ready(Duration::from_secs(i64::MAX as u64 - NOW as u64))
        );
        let unready = pod(json!({"conditions": [{"type": "Ready", "status": "False"}]}));
        assert_eq!(readiness_of(&unready, 0, at(NOW)), Readiness::Unready);
        assert_eq!(readiness_of(&pod(json!({})), 0, at(NOW)), Readiness::Unready);
    }

    #[test]
    fn a_pod_that_ended_or_is_being_deleted_does_not_count() {
        let ready = json!({"type": "Ready", "status": "True"});
        for (phase, state) in [
            ("Pending", State::Active),
            ("Running", State::Active),
            ("Succeeded", State::Succeeded),
            ("Failed", State::Failed),
        ] {
            let mut pod = pod(json!({"phase": phase, "conditions": [ready]}));
            let fact = Pod::of(&pod, 0, at(NOW));
            assert_eq!((fact.state, fact.is_ready()), (state, state == State::Active), "{phase}");
            pod.metadata.deletion_timestamp =
                serde_json::from_value(json!("2026-01-01T00:00:00Z")).expect("a time");
            assert_eq!(Pod::of(&pod, 0, at(NOW)).state, State::Terminating);
            assert!(!Pod::of(&pod, 0, at(NOW)).is_available());
        }
    }

    #[test]
    fn the_next_to_be_available_is_known() {
        let pods =
            [NOW - 1, NOW - 5, NOW - 50].map(|since| Pod::of(&ready_since(since), 9, at(NOW)));
        assert_eq!(next_available(&pods), Some(Duration::from_secs(4)));
        assert_eq!(next_available(&pods[2..]), None);
    }
}
