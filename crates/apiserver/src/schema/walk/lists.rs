//! Lists whose elements are distinguished: none may stand twice, and each finds its earlier self.

use super::MAX_REPORTED;
use crate::schema::{Form, ListKind, Shape};
use crate::status::{FieldError, Path};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Lists up to this length are compared each with each, which takes no memory.
const SHORT: usize = 32;

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
                ListKind::Set => twice(items, None, path, errors),
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
                    twice(items, Some(keys), path, errors);
                }
            }
            for (index, item) in items.iter().enumerate() {
                find_duplicates(item, shape.at(list.items), &path.index(index), errors);
            }
        }
        _ => {}
    }
}

/// The second appearance of each value is an error; a third one is not told again. Elements are reported
/// apart by their keys, or as a whole.
fn twice(
    items: &[Value],
    keys: Option<&[Arc<str>]>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let shown = |item: &Value| keys.map_or_else(|| item.clone(), |keys| key_of(item, keys));
    let is_same = |one: &Value, other: &Value| match keys {
        Some(keys) => has_same_keys(one, other, keys),
        None => one == other,
    };
    // A short list is compared with itself; a long one is written out, once for each element.
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut is_second = |index: usize, item: &Value| {
        if items.len() <= SHORT {
            return items[..index].iter().filter(|other| is_same(item, other)).count() == 1;
        }
        let times = times.entry(shown(item).to_string()).or_default();
        *times += 1;
        *times == 2
    };
    for (index, item) in items.iter().enumerate() {
        if is_second(index, item) && errors.len() < MAX_REPORTED {
            errors.push(FieldError::duplicate(path.index(index), &shown(item)));
        }
    }
}

fn has_same_keys(one: &Value, other: &Value, keys: &[Arc<str>]) -> bool {
    keys.iter().all(|name| one.get(&**name) == other.get(&**name))
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

/// The elements of a keyed list as they were; nothing for other lists, whose elements have no
/// earlier selves.
#[derive(Default)]
pub(crate) struct Earlier<'v> {
    items: &'v [Value],
    /// By their keys, if there are many.
    by_key: HashMap<String, &'v Value>,
}

/// The elements of a list as they were.
pub(crate) fn old_items<'v>(old: Option<&'v Value>, kind: &ListKind) -> Earlier<'v> {
    let (ListKind::Keyed(keys), Some(Value::Array(items))) = (kind, old) else {
        return Earlier::default();
    };
    let by_key = if items.len() <= SHORT {
        HashMap::new()
    } else {
        items.iter().map(|item| (key_of(item, keys).to_string(), item)).collect()
    };
    Earlier { items, by_key }
}

/// The earlier self of an element.
pub(crate) fn correlate<'v>(item: &Value, kind: &ListKind, old: &Earlier<'v>) -> Option<&'v Value> {
    let ListKind::Keyed(keys) = kind else { return None };
    if old.items.len() <= SHORT {
        return old.items.iter().rfind(|other| has_same_keys(item, other, keys));
    }
    old.by_key.get(&key_of(item, keys).to_string()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_lists_and_short_ones_are_judged_alike() {
        let keys = [Arc::from("name")];
        for length in [4, SHORT, SHORT + 1, 3 * SHORT] {
            let mut items: Vec<Value> = (0..length).map(|index| json!({"name": index})).collect();
            items[2] = json!({"name": 0, "other": 1});
            items[3] = json!({"name": 0});
            let mut errors = Vec::new();
            twice(&items, Some(&keys), &Path::Root, &mut errors);
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(told, [r#"[2]: Duplicate value: {"name":0}"#], "{length}");
            let kind = ListKind::Keyed(keys.to_vec());
            let all = json!(items);
            let earlier = old_items(Some(&all), &kind);
            assert_eq!(correlate(&json!({"name": 1}), &kind, &earlier), Some(&items[1]));
            assert_eq!(correlate(&json!({"name": 0}), &kind, &earlier), Some(&items[3]));
            assert_eq!(correlate(&json!({"name": "x"}), &kind, &earlier), None);
        }
    }
}
