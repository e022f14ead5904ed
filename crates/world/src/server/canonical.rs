//! The canonical form of an object: by it, what means the same is one version.

use serde_json::{Value, json};

/// One form for all objects that mean the same. Finalizers and conditions are sets, and what is
/// empty is absent: that order and those empty fields are all that is dropped.
pub(super) fn canonical(object: &mut Value) {
    if let Some(all) = object["metadata"]["finalizers"].as_array_mut() {
        all.sort_by_cached_key(Value::to_string);
    }
    if let Some(all) = object["status"]["conditions"].as_array_mut() {
        all.sort_by_cached_key(|condition| condition["type"].to_string());
    }
    prune(&mut object["metadata"], &["finalizers", "labels", "annotations"]);
    prune(&mut object["status"], &["conditions"]);
    let Some(fields) = object.as_object_mut() else { return };
    fields.retain(|key, value| key != "status" || !is_empty(value));
}

/// Another form of a canonical object, which means the same: the other order, and the empty fields. A world that shows
/// objects so has the same states, unless a controller decides by what the canonical form drops.
pub(super) fn otherwise(object: &mut Value) {
    for (part, key) in [("metadata", "finalizers"), ("status", "conditions")] {
        let found = object.get_mut(part).and_then(|part| part.get_mut(key));
        if let Some(all) = found.and_then(Value::as_array_mut) {
            all.reverse();
        }
    }
    let has_status = object.get("spec").is_some();
    let Some(fields) = object.as_object_mut() else { return };
    if has_status {
        let status = fields.entry("status").or_insert_with(|| json!({}));
        fill(status, &[("conditions", json!([]))]);
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    fill(metadata, &[("finalizers", json!([])), ("labels", json!({})), ("annotations", json!({}))]);
}

/// Adds what is missing.
fn fill(part: &mut Value, defaults: &[(&str, Value)]) {
    let Some(fields) = part.as_object_mut() else { return };
    for (key, value) in defaults {
        if fields.get(*key).is_none_or(Value::is_null) {
            fields.insert((*key).to_owned(), value.clone());
        }
    }
}

fn prune(part: &mut Value, keys: &[&str]) {
    let Some(fields) = part.as_object_mut() else { return };
    fields.retain(|key, value| !keys.contains(&key.as_str()) || !is_empty(value));
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
