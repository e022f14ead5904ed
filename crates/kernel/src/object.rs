//! An object as an API server showed it.

use crate::kind::Name;
use kube_core::DynamicObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// An object as an API server showed it, shared by all who look at it.
pub type Object = Arc<DynamicObject>;

/// Which version of which object a decision rests on. Every write to it carries both, so that a
/// write that rests on old news is refused, and one that meant a namesake too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The object's identity: the name may have been given to another since.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
}

impl Seen {
    /// The version of an object that was seen.
    pub fn of(object: &DynamicObject) -> Seen {
        Seen {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            resource_version: object.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

impl Name {
    /// The name of an object that was seen.
    pub fn of(object: &DynamicObject) -> Name {
        Name {
            namespace: object.metadata.namespace.as_deref().map(Arc::from),
            name: Arc::from(object.metadata.name.as_deref().unwrap_or_default()),
        }
    }
}

/// One part of an object (`spec`, `status`) as a type: None if it is not there, and an error, in
/// words, if it cannot be read. A broken object is a fact like any other.
pub fn read_part<T: DeserializeOwned>(
    object: &DynamicObject,
    part: &str,
) -> Result<Option<T>, String> {
    match object.data.get(part) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(value) => Option::<T>::deserialize(value).map_err(|error| format!("{part}: {error}")),
    }
}
