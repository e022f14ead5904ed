//! What may not change: comparing the old object with the new one.

use crate::status::{FieldError, Path};
use serde_json::Value;

/// What upstream says about a change that may not be.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// Whether two values mean the same: what is not there, null, an empty list and an empty object do
/// not differ. Objects are no deeper than the decoder lets them be.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let has_all = |one: &serde_json::Map<String, Value>,
                           other: &serde_json::Map<String, Value>| {
                one.iter().all(|(key, value)| same(value, other.get(key).unwrap_or(&Value::Null)))
            };
            has_all(left, right)
                && right.iter().all(|(key, value)| left.contains_key(key) || is_empty(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right || (is_empty(left) && is_empty(right)),
    }
}

/// Whether nothing is there. An object whose fields are all empty is not empty: upstream tells a
/// pointer to nothing from no pointer.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Refuses a change of a field. A text that is gone and one that is empty are the same.
pub(crate) fn unchanged(old: &Value, new: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is_blank = |value: &Value| value.is_null() || value.as_str() == Some("");
    if same(old, new) || (is_blank(old) && is_blank(new)) {
        return;
    }
    errors.push(FieldError::invalid(path, new, IMMUTABLE));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_empty_and_what_is_not_there_do_not_differ() {
        assert!(same(&json!({"a": 1, "b": [], "c": null}), &json!({"a": 1, "d": {}})));
        assert!(same(&json!(null), &json!({})));
        assert!(!same(&json!({"a": 1}), &json!({})));
        assert!(!same(&json!({"a": 0}), &json!({})));
        assert!(!same(&json!([1, 2]), &json!([2, 1])));
    }
}
