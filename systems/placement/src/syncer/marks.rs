//! The marks that the syncer leaves on objects, and how they are read.
//!
//! Every object that it makes on a cluster carries the label [`LABEL_GRANT`] with the name of the
//! grant: an object without it is somebody else's, and is never changed nor deleted on its own.

use kube_core::DynamicObject;
use serde_json::{Value, json};

/// On every object that the syncer made on a cluster: the name of the grant.
pub const LABEL_GRANT: &str = interlock_api::names::ANNOTATION_GRANT;
/// On an object on a cluster: which object at the hub it was made from, and a digest of what it
/// said: `<uid>/<digest>`.
pub const ANNOTATION_FROM: &str = "interlock.dev/from";
/// On a claim on a cluster: the epoch that left it, and the volume that it left:
/// `<epoch>@<volume>`.
pub const ANNOTATION_LAST: &str = "interlock.dev/last";
/// On a pod that is a process: it stays until its process is seen gone, even if somebody deletes it
/// by force.
pub const FINALIZER_PROCESS: &str = "interlock.dev/process";

/// An annotation of an object.
pub fn annotation<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A label of an object.
pub fn label<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The identity of an object.
pub fn uid(object: &DynamicObject) -> &str {
    object.metadata.uid.as_deref().unwrap_or_default()
}

/// The name of an object.
pub fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// Whether it was told to go.
pub fn is_going(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Whether the syncer made it for this grant.
pub fn is_ours(object: &DynamicObject, grant: &str) -> bool {
    label(object, LABEL_GRANT) == Some(grant)
}

/// The uid of the object at the hub that this one was made from.
pub fn from_uid(object: &DynamicObject) -> Option<&str> {
    annotation(object, ANNOTATION_FROM)?.split_once('/').map(|(uid, _)| uid)
}

/// Whether a finalizer is on it.
pub fn has_finalizer(object: &DynamicObject, finalizer: &str) -> bool {
    let finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|known| known == finalizer)
}

/// The patch that puts a finalizer on.
pub fn put_finalizer(object: &DynamicObject, finalizer: &str) -> Value {
    let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
    finalizers.push(finalizer.to_owned());
    json!({"metadata": {"finalizers": finalizers}})
}

/// The patch that takes a finalizer off.
pub fn take_finalizer_off(object: &DynamicObject, finalizer: &str) -> Value {
    let finalizers = object.metadata.finalizers.iter().flatten();
    let others: Vec<&String> = finalizers.filter(|known| *known != finalizer).collect();
    json!({"metadata": {"finalizers": others}})
}
