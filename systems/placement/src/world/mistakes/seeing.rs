//! A view that shows other objects than there are, for mistakes in `observe`.

use interlock_kernel::{Index, Kind, Name, Object, Place, View};

/// An object as somebody sees it who makes a mistake; None: it is not there.
pub(super) type AsIf<'a> = &'a dyn Fn(Place, &Kind, &Name, Option<Object>) -> Option<Object>;

/// A view, and what is seen instead. What is filed under an index is seen as it is.
pub(super) struct Seeing<'a> {
    pub(super) view: &'a dyn View,
    pub(super) as_if: AsIf<'a>,
}

impl View for Seeing<'_> {
    fn now(&self) -> jiff::Timestamp {
        self.view.now()
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        (self.as_if)(place, kind, name, self.view.get(place, kind, name))
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let all = self.view.list(place, kind, namespace).into_iter();
        all.filter_map(|it| (self.as_if)(place, kind, &Name::of(&it), Some(it.clone()))).collect()
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.view.find(place, index, value)
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.view.count(place, index, value)
    }
}
