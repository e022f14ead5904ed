//! Comparing what is wanted with what is there.

use serde_json::{Map, Value};

/// Whether everything that is wanted is there. A server fills in defaults and admission adds to
/// lists of objects; neither makes a difference.
pub fn contains(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (_, Value::Null) => true,
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        (Value::Object(there), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| contains(there.get(key).unwrap_or(&Value::Null), value)),
        (Value::Array(there), Value::Array(wanted)) if wanted.iter().all(Value::is_object) => {
            wanted.iter().all(|value| there.iter().any(|candidate| contains(candidate, value)))
        }
        (there, wanted) => there == wanted,
    }
}

/// The merge patch that makes one value of another; None if they are the same.
pub fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Some(before), Some(after)) = (from.as_object(), to.as_object()) else {
        return Some(to.clone());
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        let change = difference(before.get(key).unwrap_or(&Value::Null), value);
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    Some(Value::Object(patch))
}

/// A digest of a value that does not depend on the order of its fields. FNV-1a: it must give the
/// same in every version, and guards against nobody.
pub fn digest(value: &Value) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    feed(&mut hash, value);
    hash
}

fn feed(hash: &mut u64, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            feed_bytes(hash, b"{");
            for (key, value) in fields {
                feed_bytes(hash, key.as_bytes());
                feed_bytes(hash, &[0xff]);
                feed(hash, value);
            }
            feed_bytes(hash, b"}");
        }
        Value::Array(values) => {
            feed_bytes(hash, b"[");
            values.iter().for_each(|value| feed(hash, value));
            feed_bytes(hash, b"]");
        }
        Value::String(text) => {
            feed_bytes(hash, b"\"");
            feed_bytes(hash, text.as_bytes());
            feed_bytes(hash, &[0xff]);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            feed_bytes(hash, value.to_string().as_bytes());
            feed_bytes(hash, &[0xfe]);
        }
    }
}

fn feed_bytes(hash: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_server_adds_makes_no_difference() {
        let wanted = json!({"a": [{"name": "x", "v": 1}], "args": ["1", "2"], "e": {}});
        let there = json!({
            "a": [{"name": "w"}, {"name": "x", "v": 1, "more": true}], "args": ["1", "2"], "n": 5,
        });
        assert!(contains(&there, &wanted));
    }

    #[test]
    fn a_changed_value_and_a_changed_order_of_words_make_a_difference() {
        assert!(!contains(&json!({"a": 1}), &json!({"a": 2})));
        assert!(!contains(&json!({}), &json!({"a": 2})));
        assert!(!contains(&json!(["1", "2"]), &json!(["2", "1"])));
        assert!(!contains(&json!([{"name": "x"}]), &json!([{"name": "y"}])));
    }

    #[test]
    fn a_difference_takes_away_what_is_not_there_any_more() {
        let from = json!({"a": 1, "b": {"c": 1, "d": 2}, "l": [1]});
        let to = json!({"b": {"c": 1, "d": 3}, "l": [2]});
        let expected = json!({"a": null, "b": {"d": 3}, "l": [2]});
        assert_eq!(difference(&from, &to), Some(expected));
        assert_eq!(difference(&to, &to), None);
    }

    #[test]
    fn a_digest_depends_on_what_is_said_and_not_on_its_order() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":["x","y"]}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b":["x","y"],"a":1}"#).unwrap();
        assert_eq!(digest(&one), digest(&two));
        assert_ne!(digest(&one), digest(&json!({"a": 1, "b": ["xy"]})));
        assert_ne!(digest(&json!({"a": "1"})), digest(&json!({"a": 1})));
    }
}
