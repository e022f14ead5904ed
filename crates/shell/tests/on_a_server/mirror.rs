//! A small controller: every ConfigMap that is labelled so has a copy beside it. Three effects, one
//! a step: make the copy, fill it, note on the original what was copied.

use interlock_kernel::{
    Address, Controller, Event, GroupVersion, Importance, Kind, LiveReads, Name, Nothing, Object,
    Place, Step, Subject, View, Watch, Watcher, Write,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const CONFIG_MAP: Kind =
    Kind::namespaced(GroupVersion::new("", "v1"), "ConfigMap", "configmaps");
pub(crate) const SECRET: Kind = Kind::namespaced(GroupVersion::new("", "v1"), "Secret", "secrets");

/// The controller, and how many steps it took.
#[derive(Clone, Default)]
pub(crate) struct Mirror {
    pub(crate) steps: Arc<AtomicUsize>,
}

impl Watcher for Mirror {
    fn name(&self) -> &'static str {
        "test/mirror"
    }

    fn watches(&self) -> Vec<Watch> {
        // Secrets are of no use to it, but it must not run before it could see them.
        vec![Watch::all(Place::HUB, &CONFIG_MAP), Watch::all(Place::HUB, &SECRET)]
    }

    fn subjects(&self, _: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        let name = Name::of(object).to_string();
        let original = name.strip_suffix("-copy").unwrap_or(&name);
        vec![Subject::from(original)]
    }
}

impl Controller for Mirror {
    type Outside = Nothing;

    fn step(&self, subject: &Subject, view: &dyn View, _: &LiveReads<Nothing>) -> Step<Nothing> {
        self.steps.fetch_add(1, Ordering::SeqCst);
        let Some((namespace, name)) = subject.split_once('/') else { return Step::rest("no name") };
        let get = |name: &str| view.get(Place::HUB, &CONFIG_MAP, &Name::within(namespace, name));
        let Some(original) = get(name) else { return Step::rest("nothing is known of it") };
        let labels = original.metadata.labels.clone().unwrap_or_default();
        match labels.get("mirror").map(String::as_str) {
            Some("yes") => {}
            Some("panic") => panic!("this one is too much"),
            _ => return Step::rest("it wants no copy"),
        }
        let value = original.data["data"]["value"].as_str().unwrap_or_default();
        let copy_name = format!("{name}-copy");
        let address = Address::new(Place::HUB, &CONFIG_MAP, Name::within(namespace, &copy_name));
        let Some(copy) = get(&copy_name) else {
            return Step::write(Write::Create { address, object: json!({}) }, "there is no copy");
        };
        if copy.data["data"]["value"].as_str() != Some(value) {
            let change = json!({"data": {"value": value}});
            let write = Write::patch(Place::HUB, &CONFIG_MAP, &copy, change);
            return Step::write(write, "the copy is old").telling(copied(&original, address.place));
        }
        let notes = original.metadata.annotations.clone().unwrap_or_default();
        if notes.get("copied").map(String::as_str) != Some(value) {
            let change = json!({"metadata": {"annotations": {"copied": value}}});
            let write = Write::patch(Place::HUB, &CONFIG_MAP, &original, change);
            return Step::write(write, "the copy is right and nothing says so");
        }
        Step::rest("the copy is right")
    }
}

/// Notes on every ConfigMap of people that it has seen it, once, and then has nothing to do for this long.
#[derive(Clone)]
pub(crate) struct Noting {
    pub(crate) steps: Arc<AtomicUsize>,
    pub(crate) at_most: Duration,
}

impl Watcher for Noting {
    fn name(&self) -> &'static str {
        "test/noting"
    }

    fn watches(&self) -> Vec<Watch> {
        // Its own notes are no news.
        vec![Watch::all(Place::HUB, &CONFIG_MAP).unless(|before, after| before.data == after.data)]
    }

    fn subjects(&self, _: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        // Every namespace has one from the start.
        if object.metadata.name.as_deref() == Some("kube-root-ca.crt") {
            return Vec::new();
        }
        vec![Subject::from(Name::of(object).to_string().as_str())]
    }
}

impl Controller for Noting {
    type Outside = Nothing;

    fn step(&self, subject: &Subject, view: &dyn View, _: &LiveReads<Nothing>) -> Step<Nothing> {
        self.steps.fetch_add(1, Ordering::SeqCst);
        let Some((namespace, name)) = subject.split_once('/') else { return Step::rest("no name") };
        let seen = view.get(Place::HUB, &CONFIG_MAP, &Name::within(namespace, name));
        let Some(seen) = seen else { return Step::rest("nothing is known of it") };
        let notes = seen.metadata.annotations.clone().unwrap_or_default();
        if notes.contains_key("noted") {
            return Step::rest("it is noted");
        }
        let change = json!({"metadata": {"annotations": {"noted": "yes"}}});
        let write = Write::patch(Place::HUB, &CONFIG_MAP, &seen, change);
        Step::write(write, "nothing says that it was seen").then_waiting(Some(self.at_most))
    }
}

fn copied(original: &Object, place: Place) -> Event {
    Event {
        about: Address::new(place, &CONFIG_MAP, Name::of(original)),
        uid: original.metadata.uid.clone().unwrap_or_default(),
        importance: Importance::Normal,
        reason: "Copied",
        note: "the copy follows the original".to_owned(),
    }
}
