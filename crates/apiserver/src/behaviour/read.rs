//! Reading and filling objects that may be anything: what is not there reads as empty.

use serde_json::{Map, Value};

static NOTHING: Value = Value::Null;

/// The value at a dotted path of field names, `spec.template.spec`; null if it is not there.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let mut here = value;
    for name in path.split('.') {
        let Some(next) = here.get(name) else { return &NOTHING };
        here = next;
    }
    here
}

/// The text at a path, or the empty one.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The whole number at a path.
pub(crate) fn integer(value: &Value, path: &str) -> Option<i64> {
    at(value, path).as_i64()
}

/// The whole number at a path, or 0 as Go reads what is not there.
pub(crate) fn number(value: &Value, path: &str) -> i64 {
    integer(value, path).unwrap_or_default()
}

/// Whether `true` stands at a path.
pub(crate) fn is_true(value: &Value, path: &str) -> bool {
    at(value, path) == &Value::Bool(true)
}

/// Whether something other than null stands at a path.
pub(crate) fn is_set(value: &Value, path: &str) -> bool {
    !at(value, path).is_null()
}

/// The elements of the list at a path.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The entries of the object at a path.
pub(crate) fn entries<'a>(
    value: &'a Value,
    path: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
    at(value, path).as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// The object at a path if there is one.
pub(crate) fn object_mut<'a>(
    value: &'a mut Value,
    path: &str,
) -> Option<&'a mut Map<String, Value>> {
    let mut here = value;
    for name in path.split('.') {
        here = here.get_mut(name)?;
    }
    here.as_object_mut()
}

/// The object at a path, made if nothing is there. None if something else does.
pub(crate) fn ensured<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    let mut here = value.as_object_mut()?;
    for name in path.split('.') {
        let next = here.entry(name).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        here = next.as_object_mut()?;
    }
    Some(here)
}

/// The elements of the list at a path.
pub(crate) fn list_mut<'a>(value: &'a mut Value, path: &str) -> &'a mut [Value] {
    let mut here = value;
    for name in path.split('.') {
        let Some(next) = here.get_mut(name) else { return &mut [] };
        here = next;
    }
    here.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default()
}

/// Sets a field that is absent or null: upstream's pointers.
pub(crate) fn fill(object: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if object.get(name).is_none_or(Value::is_null) {
        object.insert(name.to_owned(), value.into());
    }
}

/// Sets a field that is absent, null, the empty text or 0: upstream's plain values.
pub(crate) fn fill_zero(object: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let is_zero = match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => false,
    };
    if is_zero {
        object.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_there_reads_as_empty() {
        let object = json!({"spec": {"replicas": 3, "name": "a", "list": [1]}});
        assert_eq!(number(&object, "spec.replicas"), 3);
        assert_eq!(text(&object, "spec.name"), "a");
        assert_eq!(text(&object, "spec.name.further"), "");
        assert_eq!(list(&object, "spec.list").len(), 1);
        assert!(list(&object, "spec.replicas").is_empty());
        assert!(entries(&object, "status").next().is_none());
    }

    #[test]
    fn an_object_is_made_where_nothing_stands_and_nowhere_else() {
        let mut object = json!({"spec": null, "status": 7});
        assert!(ensured(&mut object, "spec.template").is_some());
        assert!(ensured(&mut object, "status.phase").is_none());
        assert_eq!(object, json!({"spec": {"template": {}}, "status": 7}));
    }
}
