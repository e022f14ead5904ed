//! The `Scale` of an object: what clients read below `/scale`, and what admission is shown of a write to it.

use crate::object;
use crate::resource::Scale;
use crate::selector::LabelSelector;
use serde_json::{Map, Value, json};

/// An object's `Scale`.
pub(crate) fn scale_of(object: &Value, paths: &Scale) -> Value {
    let number = |path: &[_]| object::at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let metadata = object::metadata(object);
    let mut kept = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept,
        "spec": {"replicas": number(&paths.spec_replicas)},
        "status": {"replicas": number(&paths.status_replicas)},
    });
    let selector = paths.label_selector.as_ref().and_then(|path| object::at(object, path));
    let selector = match selector {
        Some(Value::String(text)) => Some(text.clone()),
        // Built-in workloads have the selector itself.
        Some(selector @ Value::Object(_)) => {
            let is_whole =
                selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
            let selector =
                if is_whole { selector.clone() } else { json!({"matchLabels": selector}) };
            LabelSelector::from_object(&selector).ok().map(|text| text.to_string())
        }
        Some(_) | None => None,
    };
    if let Some(selector) = selector {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}
