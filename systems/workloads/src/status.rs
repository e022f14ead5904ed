//! Conditions in the status of a workload: upstream's form, which has no field of ours.

use interlock_kernel::conditions::Finding;
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Value, json};

/// The condition that says that no pod is made of an object: it asks for what there is not here.
pub const NOT_SUPPORTED: &str = "interlock.dev/NotSupported";

/// The conditions of an object, as they are.
pub fn conditions_of(object: &DynamicObject) -> Vec<Value> {
    object.data["status"]["conditions"].as_array().cloned().unwrap_or_default()
}

/// A time as the wire has it: whole seconds.
pub fn time(now: Timestamp) -> Value {
    json!(format!("{now:.0}"))
}

/// The conditions with one more finding. One that holds as before keeps its time, and all of others
/// stay as they are.
pub fn with(conditions: &[Value], finding: &Finding, now: Timestamp) -> Vec<Value> {
    let is_it = |condition: &&Value| condition["type"] == finding.kind;
    let before = conditions.iter().find(is_it);
    let status = status_of(finding);
    let mut found = before.filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
    if found["status"] != status || found["lastTransitionTime"].is_null() {
        found["lastTransitionTime"] = time(now);
    }
    found["type"] = json!(finding.kind);
    found["status"] = json!(status);
    found["reason"] = json!(finding.reason);
    found["message"] = json!(sentence(finding));
    let mut all: Vec<Value> = conditions.to_vec();
    match all.iter_mut().find(|condition| condition["type"] == finding.kind) {
        Some(place) => *place = found,
        None => all.push(found),
    }
    all
}

/// The conditions without those of a kind.
pub fn without(conditions: &[Value], kind: &str) -> Vec<Value> {
    conditions.iter().filter(|condition| condition["type"] != kind).cloned().collect()
}

/// Whether the conditions say this already.
pub fn is_said(conditions: &[Value], finding: &Finding) -> bool {
    conditions.iter().any(|condition| {
        condition["type"] == finding.kind
            && condition["status"] == status_of(finding)
            && condition["reason"] == finding.reason
            && condition["message"] == sentence(finding)
    })
}

fn status_of(finding: &Finding) -> &'static str {
    match finding.holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    }
}

/// Upstream's conditions have no field for what a person does next, so the message says it.
fn sentence(finding: &Finding) -> String {
    match &finding.next {
        Some(next) => format!("{}; next: {next}", finding.message),
        None => finding.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time_and_the_fields_of_its_kind() {
        let other = json!({"type": "Other", "status": "Maybe"});
        let holds = Finding::holds("Available", "Enough", "two are available");
        let mut first = with(std::slice::from_ref(&other), &holds, at(1));
        first[1]["lastUpdateTime"] = json!("then");
        assert!(is_said(&first, &holds));
        let less = Finding::holds("Available", "Enough", "three are available");
        assert!(!is_said(&first, &less));
        let again = with(&first, &less, at(2));
        assert_eq!(again[0], other);
        assert_eq!(again[1]["lastTransitionTime"], "1970-01-01T00:00:01Z");
        assert_eq!(again[1]["lastUpdateTime"], "then");
        let fails = Finding::fails("Available", "TooFew", "none").next("start one".to_owned());
        let turned = with(&again, &fails, at(3));
        assert_eq!(turned[1]["lastTransitionTime"], "1970-01-01T00:00:03Z");
        assert_eq!(turned[1]["message"], "none; next: start one");
        assert_eq!(without(&turned, "Available"), [other]);
    }

    #[test]
    fn conditions_that_are_none_do_no_harm() {
        let finding = Finding::holds("Available", "Enough", "two");
        for junk in [json!(null), json!("x"), json!({"type": "Available"}), json!([1])] {
            assert!(is_said(&with(&[junk], &finding, at(1)), &finding));
        }
    }
}
