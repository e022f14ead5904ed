//! Which objects of a kind a watch is for: the server leaves the others out.

use crate::metadata::{label, name_of};
use kube_core::DynamicObject;
use std::sync::Arc;

/// Which objects of a kind. An object that stops being selected looks like one that was deleted: as
/// always, that it is not there proves nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Selector {
    /// All of them.
    #[default]
    All,
    /// The one of this name. Within a namespaced kind there is one in each namespace.
    Named(Arc<str>),
    /// Those that have this label, whatever its value is.
    Labelled(&'static str),
}

impl Selector {
    /// Whether an object is one of them.
    pub fn selects(&self, object: &DynamicObject) -> bool {
        match self {
            Selector::All => true,
            Selector::Named(name) => name_of(object) == &**name,
            Selector::Labelled(key) => label(object, key).is_some(),
        }
    }

    /// As the parameter `labelSelector` has it.
    pub fn labels(&self) -> Option<String> {
        match self {
            Selector::Labelled(key) => Some((*key).to_owned()),
            Selector::All | Selector::Named(_) => None,
        }
    }

    /// As the parameter `fieldSelector` has it.
    pub fn fields(&self) -> Option<String> {
        match self {
            Selector::Named(name) => Some(format!("metadata.name={name}")),
            Selector::All | Selector::Labelled(_) => None,
        }
    }
}
