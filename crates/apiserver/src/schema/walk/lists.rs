//! Lists whose elements are told apart: none may stand twice, and each finds its earlier self.

use super::MAX_REPORTED;
use crate::schema::{Form, ListKind, Shape};
use crate::status::{FieldError, Path};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Says which elements of sets and keyed lists stand twice.
pub(super) fn find_duplicates(
    value: &Value,
    shape: Shape<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if errors.len() >= MAX_REPORTED {
        return;
    }
    match (&shape.node().form, value) {
        (Form::Object(object), Value::Object(fields)) => {
            for (name, value) in fields {
                if let Some(field) = object.fields.get(name.as_str()) {
                    find_duplicates(value, shape.at(field.node), &path.field(name), errors);
                }
            }
        }
        (Form::Map(map), Value::Object(fields)) => {
            for (key, value) in fields {
                find_duplicates(value, shape.at(map.values), &path.key(key), errors);
            }
        }
        (Form::List(list), Value::Array(items)) => {
            match &list.kind {
                ListKind::Atomic => {}
                ListKind::Set => twice(items.iter().map(Value::clone), path, errors),
                ListKind::Keyed(keys) => {
                    let stranger =
                        items.iter().position(|item| !item.is_null() && !item.is_object());
                    if let Some(index) = stranger {
                        errors.push(FieldError::invalid(
                            path.index(index),
                            &items[index],
                            "must be an object for an array of list-type map",
                        ));
                        return;
                    }
                    twice(items.iter().map(|item| key_of(item, keys)), path, errors);
                }
            }
            for (index, item) in items.iter().enumerate() {
                find_duplicates(item, shape.at(list.items), &path.index(index), errors);
            }
        }
        _ => {}
    }
}

/// The second appearance of each value is an error; a third one is not told again.
fn twice(values: impl Iterator<Item = Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 && errors.len() < MAX_REPORTED {
            errors.push(FieldError::duplicate(path.index(index), &value));
        }
    }
}

/// The fields that tell an element apart.
fn key_of(item: &Value, keys: &[Arc<str>]) -> Value {
    let mut key = Map::new();
    for name in keys {
        if let Some(value) = item.get(&**name) {
            key.insert(name.to_string(), value.clone());
        }
    }
    Value::Object(key)
}

/// The elements of a keyed list by their keys; nothing for other lists, whose elements have no
/// earlier selves.
pub(crate) fn old_items<'v>(old: Option<&'v Value>, kind: &ListKind) -> HashMap<String, &'v Value> {
    let (ListKind::Keyed(keys), Some(Value::Array(items))) = (kind, old) else {
        return HashMap::new();
    };
    items.iter().map(|item| (key_of(item, keys).to_string(), item)).collect()
}

/// The earlier self of an element.
pub(crate) fn correlate<'v>(
    item: &Value,
    kind: &ListKind,
    old: &HashMap<String, &'v Value>,
) -> Option<&'v Value> {
    let ListKind::Keyed(keys) = kind else { return None };
    if old.is_empty() {
        return None;
    }
    old.get(&key_of(item, keys).to_string()).copied()
}
