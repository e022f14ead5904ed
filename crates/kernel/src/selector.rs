//! Which objects of a kind a watch is for: the server leaves the others out.

use crate::metadata::{label, name_of};
use kube_core::DynamicObject;
use std::borrow::Cow;
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
    Labelled(Cow<'static, str>),
    /// Those that have this label with this value.
    LabelledAs {
        /// The label.
        key: Cow<'static, str>,
        /// Its value.
        value: Arc<str>,
    },
}

impl Selector {
    /// Those that have a label, whose name may be made at run time.
    pub fn labelled(key: impl Into<Cow<'static, str>>) -> Selector {
        Selector::Labelled(key.into())
    }

    /// Those that have a label with a value.
    pub fn labelled_as(key: impl Into<Cow<'static, str>>, value: &str) -> Selector {
        Selector::LabelledAs { key: key.into(), value: Arc::from(value) }
    }

    /// Whether an object is one of them.
    pub fn selects(&self, object: &DynamicObject) -> bool {
        match self {
            Selector::All => true,
            Selector::Named(name) => name_of(object) == &**name,
            Selector::Labelled(key) => label(object, key).is_some(),
            Selector::LabelledAs { key, value } => label(object, key) == Some(&**value),
        }
    }

    /// As the parameter `labelSelector` has it.
    pub fn labels(&self) -> Option<String> {
        match self {
            Selector::Labelled(key) => Some(key.clone().into_owned()),
            Selector::LabelledAs { key, value } => Some(format!("{key}={value}")),
            Selector::All | Selector::Named(_) => None,
        }
    }

    /// As the parameter `fieldSelector` has it.
    pub fn fields(&self) -> Option<String> {
        match self {
            Selector::Named(name) => Some(format!("metadata.name={name}")),
            Selector::All | Selector::Labelled(_) | Selector::LabelledAs { .. } => None,
        }
    }
}
