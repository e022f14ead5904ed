//! What a step may see.

use crate::kind::{Kind, Name, Place};
use crate::object::Object;
use jiff::Timestamp;
use kube_core::DynamicObject;

/// What a step may see: caches that were filled once, and may be old. That an object is not there
/// proves nothing; that one is there proves only that it was.
pub trait View {
    /// The time, on the clock of this process.
    fn now(&self) -> Timestamp;

    /// One object.
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object>;

    /// All objects of a kind, or those of one namespace, by name.
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object>;

    /// The objects that an index files under a value, by name.
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object>;

    /// The first few of them: where any will do, all would be too many.
    fn find_some(&self, place: Place, index: &Index, value: &str, at_most: usize) -> Vec<Object> {
        let mut found = self.find(place, index, value);
        found.truncate(at_most);
        found
    }

    /// How many objects an index files under a value.
    fn count(&self, place: Place, index: &Index, value: &str) -> usize;
}

impl<V: View + ?Sized> View for &V {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        (**self).get(place, kind, name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        (**self).list(place, kind, namespace)
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        (**self).find(place, index, value)
    }

    fn find_some(&self, place: Place, index: &Index, value: &str, at_most: usize) -> Vec<Object> {
        (**self).find_some(place, index, value, at_most)
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        (**self).count(place, index, value)
    }
}

/// Files the objects of a kind under values, so that a step need not look at all of them: what a
/// fleet of ten thousand costs is decided here.
#[derive(Debug, Clone)]
pub struct Index {
    /// Tells it from the other indexes of the kind.
    pub name: &'static str,
    /// The kind whose objects it files.
    pub kind: Kind,
    /// The values that an object is filed under.
    pub values: fn(&DynamicObject) -> Vec<String>,
}
