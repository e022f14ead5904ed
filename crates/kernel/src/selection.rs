//! Which objects of a kind a controller is shown: the server leaves the others out.

use crate::kind::{Kind, Name, Place};
use crate::object::Object;
use crate::selector::Selector;
use crate::view::{Index, View};
use crate::watch::Watch;
use jiff::Timestamp;

/// What a controller selects, of the kinds that it does not watch all of.
#[derive(Debug, Clone, Default)]
pub struct Selections(Vec<(Place, Kind, Selector)>);

impl Selections {
    /// What these watches select.
    pub fn of(watches: &[Watch]) -> Selections {
        let narrow = watches.iter().filter(|watch| watch.selector != Selector::All);
        let each = narrow.map(|watch| (watch.place, watch.kind.clone(), watch.selector.clone()));
        Selections(each.collect())
    }

    /// What is selected of a kind.
    pub fn at(&self, place: Place, kind: &Kind) -> &Selector {
        let found = self.0.iter().find(|(at, of, _)| *at == place && of == kind);
        found.map_or(&Selector::All, |(.., selector)| selector)
    }

    /// A view without what is not selected.
    pub fn narrow<V: View>(&self, view: V) -> Narrowed<'_, V> {
        Narrowed { view, selections: self }
    }
}

/// A view without what is not selected: what caches show may be more, as others share them.
#[derive(Debug)]
pub struct Narrowed<'a, V> {
    view: V,
    selections: &'a Selections,
}

impl<V: View> Narrowed<'_, V> {
    fn of(&self, place: Place, kind: &Kind, mut found: Vec<Object>) -> Vec<Object> {
        let selector = self.selections.at(place, kind);
        if *selector != Selector::All {
            found.retain(|object| selector.selects(object));
        }
        found
    }
}

impl<V: View> View for Narrowed<'_, V> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        let selector = self.selections.at(place, kind);
        self.view.get(place, kind, name).filter(|object| selector.selects(object))
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.of(place, kind, self.view.list(place, kind, namespace))
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.of(place, &index.kind, self.view.find(place, index, value))
    }

    fn find_some(&self, place: Place, index: &Index, value: &str, at_most: usize) -> Vec<Object> {
        if *self.selections.at(place, &index.kind) == Selector::All {
            return self.view.find_some(place, index, value, at_most);
        }
        let mut found = self.find(place, index, value);
        found.truncate(at_most);
        found
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        if *self.selections.at(place, &index.kind) == Selector::All {
            return self.view.count(place, index, value);
        }
        self.find(place, index, value).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, labels: &serde_json::Value) -> kube_core::DynamicObject {
        let text = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels}});
        serde_json::from_value(text).expect("it is an object")
    }

    #[test]
    fn a_selector_selects_what_the_server_would() {
        let (north, plain) =
            (object("north", &json!({"slot": "", "rack": "r1"})), object("east", &json!({})));
        for (selector, fields, labels, is_north, is_plain) in [
            (Selector::All, None, None, true, true),
            (Selector::Named("north".into()), Some("metadata.name=north"), None, true, false),
            (Selector::labelled("slot"), None, Some("slot"), true, false),
            (Selector::labelled(format!("sl{}", "ot")), None, Some("slot"), true, false),
            (Selector::labelled_as("rack", "r1"), None, Some("rack=r1"), true, false),
            (Selector::labelled_as("rack", "r2"), None, Some("rack=r2"), false, false),
            (Selector::labelled_as("slot", "r1"), None, Some("slot=r1"), false, false),
        ] {
            assert_eq!(selector.fields().as_deref(), fields);
            assert_eq!(selector.labels().as_deref(), labels);
            assert_eq!(selector.selects(&north), is_north, "{selector:?}");
            assert_eq!(selector.selects(&plain), is_plain, "{selector:?}");
        }
    }
}
