//! Whether two objects are the same, as far as a manifest says.

use super::ANNOTATION_PRUNE;
use interlock_api::rollouts::ANNOTATION_TOKEN;
use kube_core::DynamicObject;
use serde_json::Value;

/// Whether an object has all that a manifest states. Lists have to be the same item by item: what the server fills in, or
/// merges by key, is settled by a dry run.
pub(super) fn contains(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            there.get(key).map_or(is_nothing(wanted), |there| contains(there, wanted))
        }),
        (Value::Array(there), Value::Array(wanted)) => {
            let mut pairs = there.iter().zip(wanted);
            there.len() == wanted.len() && pairs.all(|(there, wanted)| contains(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

/// What a server leaves out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// An object as JSON.
pub(super) fn json(object: &DynamicObject) -> Value {
    // An object that came as JSON has a form in JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// Whether a write would leave an object as it is: the token and the mark alone are no reason to write, or each change of
/// the target would touch each object.
pub(super) fn is_same(there: &DynamicObject, would_be: &DynamicObject) -> bool {
    stripped(there) == stripped(would_be)
}

fn stripped(object: &DynamicObject) -> Value {
    let mut object = json(object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let metadata = &mut object["metadata"];
    if let Some(fields) = metadata.as_object_mut() {
        for key in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"] {
            fields.remove(key);
        }
    }
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|key, _| key != ANNOTATION_TOKEN && key != ANNOTATION_PRUNE);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_contains_what_a_manifest_states_and_may_have_more() {
        let there = json!({"spec": {"a": 1, "b": [{"x": 1, "y": 2}], "c": "d"}});
        for (wanted, is_there) in [
            (json!({}), true),
            (json!({"spec": {"a": 1}}), true),
            (json!({"spec": {"a": 2}}), false),
            (json!({"spec": {"b": [{"x": 1}]}}), true),
            (json!({"spec": {"b": [{"x": 2}]}}), false),
            (json!({"spec": {"b": []}}), false),
            (json!({"spec": {"e": 1}}), false),
            // What is empty is left out by servers.
            (json!({"spec": {"e": null, "f": {}, "g": [], "h": {"i": null}}}), true),
            (json!({"spec": {"e": {"f": 0}}}), false),
        ] {
            assert_eq!(contains(&there, &wanted), is_there, "{wanted}");
        }
    }

    #[test]
    fn the_token_alone_is_no_difference() {
        let object = |token: &str, data: &str| -> DynamicObject {
            let metadata = json!({"name": "a", "resourceVersion": token,
                "annotations": {ANNOTATION_TOKEN: token, "other": "x"}});
            serde_json::from_value(json!({"metadata": metadata, "data": data})).expect("an object")
        };
        assert!(is_same(&object("1", "a"), &object("2", "a")));
        assert!(!is_same(&object("1", "a"), &object("1", "b")));
    }
}
