//! The annotation in which `kubectl apply` without the server keeps what it applied.
//!
//! While people move from one way of applying to the other, both must agree: a server-side apply by
//! kubectl takes over what the annotation says was kubectl's, and brings the annotation up to date.

use super::compare::Difference;
use super::element::write_json;
use super::fieldset::Set;
use super::owned::owned_fields;
use super::typed::Type;
use super::{Write, metadata_field};
use serde_json::Value;

/// The annotation's name.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field manager whose applies count; others opt out by their name.
const KUBECTL: &str = "kubectl";
/// How much all annotations of an object may take.
const ANNOTATIONS_MAX_BYTES: usize = 256 << 10;

/// The configuration in the annotation, if this write is kubectl's and there is one of its version.
pub(super) fn last_applied(write: &Write<'_>, live: &Value) -> Option<Value> {
    if write.manager != KUBECTL {
        return None;
    }
    let text = metadata_field(live, "annotations")?.get(LAST_APPLIED)?.as_str()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    (applied.get("apiVersion")?.as_str()? == write.api_version).then_some(applied)
}

/// The fields that a former `kubectl apply` set and that still have its values: kubectl may take
/// them over.
pub(super) fn still_as_applied<'a>(
    write: &Write<'a>,
    last_applied: &'a Value,
    live: &'a Value,
) -> Set<'a> {
    let Ok(mut set) = owned_fields(Type::Resource(write.shape), last_applied) else {
        return Set::default();
    };
    let difference = Difference::between(write.shape, last_applied, live);
    set.subtract(&difference.modified);
    set.subtract(&difference.added);
    set.subtract(&difference.removed);
    set
}

/// Brings the annotation up to date, if this write is kubectl's and the object has one.
pub(super) fn update(write: &Write<'_>, object: &mut Value, applied: &Value) {
    if write.manager != KUBECTL {
        return;
    }
    let annotations =
        object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    let Some(Value::Object(annotations)) = annotations else { return };
    if !matches!(annotations.get(LAST_APPLIED), Some(Value::String(text)) if !text.is_empty()) {
        return;
    }
    annotations.insert(LAST_APPLIED.to_owned(), Value::String(without_annotation(applied)));
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > ANNOTATIONS_MAX_BYTES {
        annotations.remove(LAST_APPLIED);
    }
}

/// The configuration as a line of JSON, as kubectl writes it.
fn without_annotation(applied: &Value) -> String {
    let mut applied = applied.clone();
    if let Some(Value::Object(metadata)) = applied.get_mut("metadata") {
        match metadata.get_mut("annotations") {
            Some(Value::Object(annotations)) => {
                annotations.remove(LAST_APPLIED);
            }
            Some(_) => {
                metadata.remove("annotations");
            }
            None => {}
        }
    }
    let mut line = String::new();
    write_json(&mut line, &applied);
    line.push('\n');
    line
}
