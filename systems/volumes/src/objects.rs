//! Objects of the cluster, read as they are: whoever wrote them, a missing field is only a fact.

use interlock_kernel::conditions::Finding;
use interlock_kernel::metadata;
pub(crate) use interlock_kernel::metadata::{
    annotation, finalizers_with, has_finalizer, is_deleting, is_owned_by, label, name_of,
    namespace_of, owner_reference, uid_of,
};
use interlock_kernel::{Address, Event, Importance, Kind, Name, Object, Place, Write};
use interlock_quantity::Quantity;
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Value, json};

/// The condition that says why something does not go on.
pub(crate) const HEALTHY: &str = "interlock.dev/Healthy";

/// A text somewhere in an object; empty if it is not there.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    let found = path.iter().try_fold(value, |value, key| value.get(key));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// A part of an object; null if it is not there.
pub(crate) fn part<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().try_fold(value, |value, key| value.get(key)).unwrap_or(&Value::Null)
}

/// The bytes of a size, rounded up; None: it is no size.
pub(crate) fn bytes(size: &Value) -> Option<u64> {
    Quantity::from_value(size).ok()?.bytes()
}

/// Whether an object is what a reference with this uid means.
pub(crate) fn is_same(object: &DynamicObject, uid: &str) -> bool {
    !uid.is_empty() && uid_of(object) == uid
}

/// An address on the cluster, in the namespace of an object.
pub(crate) fn beside(object: &DynamicObject, kind: &Kind, name: &str) -> Address {
    Address::new(Place::CLUSTER, kind, Name::within(namespace_of(object), name))
}

/// An address on the cluster as a whole.
pub(crate) fn cluster_wide(kind: &Kind, name: &str) -> Address {
    Address::new(Place::CLUSTER, kind, Name::cluster_wide(name))
}

/// A change of metadata or spec, over the version that was seen.
pub(crate) fn change(kind: &Kind, object: &Object, change: Value) -> Write {
    Write::patch(Place::CLUSTER, kind, object, change)
}

/// A change of the status, over the version that was seen.
pub(crate) fn change_status(kind: &Kind, object: &Object, status: Value) -> Write {
    let change = json!({ "status": status });
    Write::patch_status(Place::CLUSTER, kind, object, change)
}

/// The object with one finalizer more, over the version that was seen.
pub(crate) fn put_finalizer_on(kind: &Kind, object: &Object, finalizer: &str) -> Write {
    change(kind, object, metadata::put_finalizer(object, finalizer))
}

/// The object with one finalizer less, over the version that was seen.
pub(crate) fn take_finalizer_off(kind: &Kind, object: &Object, finalizer: &str) -> Write {
    change(kind, object, metadata::take_finalizer_off(object, finalizer))
}

/// What the owner of an object is informed.
pub(crate) fn tells(
    kind: &Kind,
    object: &Object,
    reason: &'static str,
    note: impl Into<String>,
) -> Event {
    let about = Address::new(Place::CLUSTER, kind, Name::of(object));
    let (uid, importance) = (uid_of(object).to_owned(), Importance::Normal);
    Event { about, uid, importance, reason, note: note.into() }
}

/// What the owner of an object is warned of.
pub(crate) fn warns(
    kind: &Kind,
    object: &Object,
    reason: &'static str,
    note: impl Into<String>,
) -> Event {
    Event { importance: Importance::Warning, ..tells(kind, object, reason, note) }
}

/// Conditions of a claim, which know when they were last looked into and nothing of generations.
pub(crate) mod conditions {
    use super::{DynamicObject, Finding, Timestamp, Value, json};

    fn all(object: &DynamicObject) -> impl Iterator<Item = &Value> {
        object.data["status"]["conditions"].as_array().into_iter().flatten()
    }

    fn status(finding: &Finding) -> &'static str {
        match finding.holds {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        }
    }

    pub(crate) fn find<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
        all(object).find(|condition| condition["type"] == kind)
    }

    /// Whether a finding is on an object, word for word.
    pub(crate) fn is_said(object: &DynamicObject, finding: &Finding) -> bool {
        find(object, finding.kind).is_some_and(|condition| {
            condition["status"] == status(finding)
                && condition["reason"] == finding.reason
                && condition["message"] == finding.message
        })
    }

    /// A time in a condition.
    pub(crate) fn time(condition: &Value, key: &str) -> Option<Timestamp> {
        condition[key].as_str()?.parse().ok()
    }

    /// The conditions of an object with a finding, looked into now.
    pub(crate) fn with(object: &DynamicObject, finding: &Finding, now: Timestamp) -> Vec<Value> {
        let before = find(object, finding.kind);
        let since = before
            .filter(|condition| {
                condition["status"] == status(finding) && condition["reason"] == finding.reason
            })
            .and_then(|condition| time(condition, "lastTransitionTime"));
        let mut found = without(object, finding.kind);
        found.push(json!({
            "type": finding.kind,
            "status": status(finding),
            "reason": finding.reason,
            "message": finding.message,
            "lastTransitionTime": since.unwrap_or(second(now)).to_string(),
            "lastProbeTime": second(now).to_string(),
        }));
        found
    }

    /// The conditions of an object but for one kind.
    pub(crate) fn without(object: &DynamicObject, kind: &str) -> Vec<Value> {
        all(object).filter(|condition| condition["type"] != kind).cloned().collect()
    }

    /// Times on the wire have whole seconds.
    pub(crate) fn second(time: Timestamp) -> Timestamp {
        Timestamp::from_second(time.as_second()).unwrap_or(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn claim(conditions: &Value) -> Object {
        let claim = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time_and_leaves_the_others_alone() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let object = claim(&json!([{"type": "Resizing", "status": "True"}]));
        let first =
            conditions::with(&object, &Finding::fails(HEALTHY, "TargetFull", "full"), at(60));
        let again = Finding::fails(HEALTHY, "TargetFull", "fuller");
        let object = claim(&json!(first));
        assert!(!conditions::is_said(&object, &again));
        let second = conditions::with(&object, &again, at(120));
        assert_eq!(second[0]["type"], "Resizing");
        assert_eq!(second[1]["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(second[1]["lastProbeTime"], "1970-01-01T00:02:00Z");
        assert!(conditions::is_said(&claim(&json!(second)), &again));
    }
}
