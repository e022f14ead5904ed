//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Merges a patch into an object: `null` removes, objects merge, everything else replaces. The
/// recursion is as deep as the patch, which the decoder limits.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_objects(target, patch),
        // What comes in new is rid of its nulls, also inside lists: this is upstream's reading of
        // the RFC.
        (target, patch) => *target = without_nulls(patch),
    }
}

fn merge_objects(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        if change.is_null() {
            target.remove(key);
            continue;
        }
        match target.get_mut(key) {
            Some(current) => merge(current, change),
            None => {
                target.insert(key.clone(), without_nulls(change));
            }
        }
    }
}

/// A copy without the fields that are `null`. Elements of lists stay, or the others would move.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (mut target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            merge(&mut target, &patch);
            assert_eq!(target, expected, "{patch}");
        }
    }

    #[test]
    fn nulls_inside_new_lists_go_but_elements_stay() {
        let mut target = json!({});
        merge(&mut target, &json!({"a": [null, {"b": null, "c": 1}]}));
        assert_eq!(target, json!({"a": [null, {"c": 1}]}));
    }
}
