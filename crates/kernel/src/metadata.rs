//! What the metadata of an object says, and the patches that change it.
//!
//! Whoever wrote an object, a missing field is only a fact: it reads as empty.

use crate::kind::Kind;
use kube_core::DynamicObject;
use serde_json::{Value, json};

/// The identity of an object; empty if it has none.
pub fn uid_of(object: &DynamicObject) -> &str {
    object.metadata.uid.as_deref().unwrap_or_default()
}

/// The name of an object; empty if it has none.
pub fn name_of(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// The namespace of an object; empty if it is in none.
pub fn namespace_of(object: &DynamicObject) -> &str {
    object.metadata.namespace.as_deref().unwrap_or_default()
}

/// An annotation of an object.
pub fn annotation<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A label of an object.
pub fn label<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Whether an object is of a kind.
pub fn is_of(object: &DynamicObject, kind: &Kind) -> bool {
    let types = object.types.as_ref();
    types.is_some_and(|it| it.kind == kind.kind && it.api_version == kind.api_version())
}

/// Whether somebody deleted it. It stays until nothing holds it.
pub fn is_deleting(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Whether one object owns the other.
pub fn is_owned_by(object: &DynamicObject, owner_uid: &str) -> bool {
    object.metadata.owner_references.iter().flatten().any(|owner| owner.uid == owner_uid)
}

/// A reference to the owner of an object that is to go with it.
pub fn owner_reference(kind: &Kind, owner: &DynamicObject) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "name": name_of(owner), "uid": uid_of(owner), "controller": true,
    })
}

/// The finalizers of an object.
pub fn finalizers(object: &DynamicObject) -> impl Iterator<Item = &str> {
    object.metadata.finalizers.iter().flatten().map(String::as_str)
}

/// Whether a finalizer is on an object.
pub fn has_finalizer(object: &DynamicObject, finalizer: &str) -> bool {
    finalizers(object).any(|known| known == finalizer)
}

/// The finalizers of an object with one more.
pub fn finalizers_with(object: &DynamicObject, finalizer: &str) -> Vec<String> {
    let others = finalizers(object).filter(|known| *known != finalizer);
    others.chain([finalizer]).map(str::to_owned).collect()
}

/// The finalizers of an object with one less.
pub fn finalizers_without(object: &DynamicObject, finalizer: &str) -> Vec<String> {
    finalizers(object).filter(|known| *known != finalizer).map(str::to_owned).collect()
}

/// The patch that puts a finalizer on an object.
pub fn put_finalizer(object: &DynamicObject, finalizer: &str) -> Value {
    json!({"metadata": {"finalizers": finalizers_with(object, finalizer)}})
}

/// The patch that takes a finalizer off an object.
pub fn take_finalizer_off(object: &DynamicObject, finalizer: &str) -> Value {
    json!({"metadata": {"finalizers": finalizers_without(object, finalizer)}})
}
