//! The little that is read off any object.

use kube_core::DynamicObject;
use serde_json::{Value, json};

pub(crate) fn uid_of(object: &DynamicObject) -> &str {
    object.metadata.uid.as_deref().unwrap_or_default()
}

pub(crate) fn name_of(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

pub(crate) fn namespace_of(object: &DynamicObject) -> &str {
    object.metadata.namespace.as_deref().unwrap_or_default()
}

pub(crate) fn is_going(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

pub(crate) fn annotation<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn label<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn has_finalizer(object: &DynamicObject, finalizer: &str) -> bool {
    object.metadata.finalizers.iter().flatten().any(|known| known == finalizer)
}

/// The finalizers of an object with one more.
pub(crate) fn finalizers_with(object: &DynamicObject, finalizer: &str) -> Vec<String> {
    let known = object.metadata.finalizers.iter().flatten().filter(|known| *known != finalizer);
    known.cloned().chain([finalizer.to_owned()]).collect()
}

/// The finalizers of an object with one less.
pub(crate) fn finalizers_without(object: &DynamicObject, finalizer: &str) -> Vec<String> {
    let known = object.metadata.finalizers.iter().flatten();
    known.filter(|known| *known != finalizer).cloned().collect()
}

/// A reference to the owner of an object that is to go with it.
pub(crate) fn owner_reference(kind: &interlock_kernel::Kind, owner: &DynamicObject) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "name": name_of(owner), "uid": uid_of(owner), "controller": true,
    })
}

/// Whether one object owns the other.
pub(crate) fn is_owned_by(object: &DynamicObject, owner_uid: &str) -> bool {
    object.metadata.owner_references.iter().flatten().any(|owner| owner.uid == owner_uid)
}
