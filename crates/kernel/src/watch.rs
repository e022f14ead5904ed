//! What a controller watches.

use crate::kind::{Kind, Place};
use crate::selector::Selector;
use crate::view::Index;
use kube_core::DynamicObject;

/// Objects that a controller must be shown.
#[derive(Debug, Clone)]
pub struct Watch {
    /// On which server.
    pub place: Place,
    /// Of which kind.
    pub kind: Kind,
    /// Which of them. The server leaves out the others, so that memory does not grow with them.
    pub selector: Selector,
    /// How they are filed.
    pub indexes: Vec<Index>,
    /// Whether a change from the first to the second is nobody's business here, such as a sign of
    /// life. It saves work and decides nothing: a shell may pass every change on.
    pub is_same: Option<fn(&DynamicObject, &DynamicObject) -> bool>,
}

impl Watch {
    /// All objects of a kind.
    pub fn all(place: Place, kind: &Kind) -> Watch {
        let (kind, selector) = (kind.clone(), Selector::All);
        Watch { place, kind, selector, indexes: Vec::new(), is_same: None }
    }

    /// The same, without those that are not selected.
    #[must_use]
    pub fn only(mut self, selector: Selector) -> Watch {
        self.selector = selector;
        self
    }

    /// The same, filed by an index too.
    #[must_use]
    pub fn by(mut self, index: &Index) -> Watch {
        self.indexes.push(index.clone());
        self
    }

    /// The same, without the changes that leave an object as it was for all that matters here.
    #[must_use]
    pub fn unless(mut self, is_same: fn(&DynamicObject, &DynamicObject) -> bool) -> Watch {
        self.is_same = Some(is_same);
        self
    }
}
