//! API servers in memory, for the tests of the rooms: caches that are never behind, and writes that
//! are refused as an API server would refuse them. The real server has tests of its own with every
//! controller; this is for the thousand small cases.

use crate::{
    Controller, Deed, Effect, Event, Index, Kind, Looks, Name, Nothing, Object, Objects, Outside,
    Part, Place, Read, Right, Selections, Step, Subject, View, Write,
};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More steps than any of the tests needs: one that takes them all does not come to rest.
const STEPS: usize = 60;

/// What is outside of the API in a test.
pub trait Machine<O: Outside> {
    /// Answers a question.
    fn ask(&self, question: &O::Question) -> O::Answer;
    /// Does something; false: it failed, and may or may not have been done.
    fn perform(&mut self, deed: &O::Deed) -> bool;
}

/// For controllers that live within the API.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMachine;

impl Machine<Nothing> for NoMachine {
    fn ask(&self, question: &Nothing) -> Nothing {
        match *question {}
    }

    fn perform(&mut self, deed: &Nothing) -> bool {
        match *deed {}
    }
}

/// The API servers.
#[derive(Debug)]
pub struct World {
    /// The time.
    pub now: Timestamp,
    objects: BTreeMap<(Place, Kind), Objects>,
    version: u64,
}

/// What happened until a controller came to rest.
#[derive(Debug)]
pub struct Run<O: Outside> {
    /// What it wrote.
    pub writes: Vec<Write>,
    /// What it did outside of the API.
    pub deeds: Vec<O::Deed>,
    /// What it told people.
    pub events: Vec<Event>,
    /// Why it came to rest.
    pub rests: String,
    /// How long it waits, if it does.
    pub waits_seconds: Option<u64>,
}

impl<O: Outside> Default for Run<O> {
    fn default() -> Self {
        Run {
            writes: Vec::new(),
            deeds: Vec::new(),
            events: Vec::new(),
            rests: String::new(),
            waits_seconds: None,
        }
    }
}

impl View for World {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.cache(place, kind)?.get(name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.cache(place, kind).map(|objects| objects.list(namespace)).unwrap_or_default()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let objects = self.cache(place, &index.kind);
        objects.map(|objects| objects.find(index.name, value)).unwrap_or_default()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.cache(place, &index.kind).map_or(0, |objects| objects.count(index.name, value))
    }
}

#[allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "this is for tests")]
impl World {
    /// A world with what a controller watches, filed as it asks.
    pub fn of<O: Outside>(controller: &dyn Controller<Outside = O>) -> World {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let mut world = World { now, objects: BTreeMap::new(), version: 1 };
        world.show(controller);
        world
    }

    /// Serves what one more controller watches. What was put there before must be put there again.
    pub fn show<O: Outside>(&mut self, controller: &dyn Controller<Outside = O>) {
        for watch in controller.watches() {
            let cache = self.objects.entry((watch.place, watch.kind.clone())).or_default();
            watch.indexes.iter().for_each(|index| cache.file_by(index));
        }
    }

    /// The same world with these objects, each at every place that serves its kind.
    #[must_use]
    pub fn with(mut self, objects: impl IntoIterator<Item = Value>) -> World {
        for object in objects {
            let places: BTreeSet<Place> = self.objects.keys().map(|(place, _)| *place).collect();
            places.into_iter().for_each(|place| self.put(place, object.clone()));
        }
        self
    }

    /// Puts an object there, or a newer version of it. One that no server would show is left out,
    /// and so is one of a kind that nobody watches.
    pub fn put(&mut self, place: Place, mut object: Value) {
        let Some(kind) = self.kind_of(place, &object) else { return };
        if !object["metadata"].is_object() {
            return;
        }
        self.version += 1;
        object["apiVersion"] = json!(kind.api_version());
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let Ok(object) = serde_json::from_value::<DynamicObject>(object) else { return };
        if let Some(cache) = self.objects.get_mut(&(place, kind)) {
            cache.put(Arc::new(object));
        }
    }

    /// Changes an object by a merge patch, as a person would.
    pub fn change(&mut self, place: Place, kind: &Kind, name: &Name, patch: &Value) {
        let mut object = self.json(place, kind, name);
        merge(&mut object, patch);
        self.put(place, object);
    }

    /// Deletes an object as a person would: one with finalizers is only marked.
    pub fn delete(&mut self, place: Place, kind: &Kind, name: &Name) {
        let object = self.json(place, kind, name);
        if !object.is_null() {
            let gone = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
            self.change(place, kind, name, &gone);
            self.remove_if_free(place, kind, name);
        }
    }

    /// An object in JSON; null: there is none.
    pub fn json(&self, place: Place, kind: &Kind, name: &Name) -> Value {
        self.get(place, kind, name)
            .map(|object| serde_json::to_value(&*object).unwrap())
            .unwrap_or(Value::Null)
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: i64) {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).unwrap();
    }

    /// All that a controller would be asked about after a start.
    pub fn subjects<C: Controller + ?Sized>(&self, controller: &C) -> BTreeSet<Subject> {
        let watches = controller.watches();
        let selections = Selections::of(&watches);
        let view = selections.narrow(self);
        let mut subjects = BTreeSet::new();
        for watch in watches {
            for object in view.list(watch.place, &watch.kind, None) {
                subjects.extend(controller.subjects(&watch, &object, &view));
            }
        }
        subjects
    }

    /// One step, with the looks that it asks for answered.
    pub fn step<C: Controller + ?Sized>(
        &self,
        controller: &C,
        machine: &dyn Machine<C::Outside>,
        subject: &str,
    ) -> Step<C::Outside> {
        let subject = Subject::from(subject);
        let selections = Selections::of(&controller.watches());
        let view = selections.narrow(self);
        let mut looks = Looks::default();
        for _ in 0..4 {
            match controller.step(&subject, &view, &looks) {
                Step::Look { reads, .. } => {
                    for read in reads {
                        assert_allowed(controller, Right::to_read(&read));
                        self.look(read, machine, &mut looks);
                    }
                }
                step => return step,
            }
        }
        panic!("it looks again and again at {subject}");
    }

    fn look<O: Outside>(&self, read: Read<O>, machine: &dyn Machine<O>, looks: &mut Looks<O>) {
        match read {
            Read::Object(address) => {
                let found = self.get(address.place, &address.kind, &address.name);
                looks.objects.insert(address, found);
            }
            Read::List { place, kind, namespace } => {
                let found = self.list(place, &kind, namespace.as_deref());
                looks.lists.insert((place, kind, namespace), found);
            }
            Read::Ask(question) => {
                let answer = machine.ask(&question);
                looks.answers.insert(question, answer);
            }
        }
    }

    /// Steps until there is nothing to do; every write is applied and must carry its guards.
    pub fn settle<C: Controller + ?Sized>(
        &mut self,
        controller: &C,
        machine: &mut dyn Machine<C::Outside>,
        subject: &str,
    ) -> Run<C::Outside> {
        let mut run = Run::default();
        for _ in 0..STEPS {
            match self.step(controller, machine, subject) {
                Step::Rest { because } => return Run { rests: because, ..run },
                Step::Wait { because, at_most } => {
                    let waits_seconds = Some(at_most.as_secs());
                    return Run { rests: because, waits_seconds, ..run };
                }
                Step::Look { .. } => unreachable!("looks are answered"),
                Step::Act(effect) => {
                    let Effect { deed, because, event } = *effect;
                    assert!(!because.is_empty(), "an effect says why");
                    match deed {
                        Deed::Write(write) => {
                            assert_allowed(controller, Right::to_write(&write));
                            assert!(self.apply(&write), "refused: {write:?}");
                            run.writes.push(write);
                        }
                        Deed::Outside(deed) => {
                            machine.perform(&deed);
                            run.deeds.push(deed);
                        }
                    }
                    run.events.extend(event);
                }
            }
        }
        panic!("it does not come to rest: {:#?} {:#?}", run.writes, run.deeds);
    }

    /// Applies a write as an API server would; false: it is refused.
    pub fn apply(&mut self, write: &Write) -> bool {
        let address = write.address();
        let (place, kind, name) = (address.place, &address.kind, &address.name);
        if self.cache(place, kind).is_none() {
            return false;
        }
        let found = self.json(place, kind, name);
        match write {
            Write::Create { object, .. } => {
                if found.is_null() {
                    self.put_new(place, kind, name, object.clone());
                }
            }
            Write::Patch { seen, part, change, .. } => {
                assert!(!seen.uid.is_empty() && !seen.resource_version.is_empty(), "guards");
                let metadata = &found["metadata"];
                if metadata["uid"] != seen.uid
                    || metadata["resourceVersion"] != seen.resource_version
                {
                    return false;
                }
                let keys: Vec<&String> =
                    change.as_object().into_iter().flatten().map(|(key, _)| key).collect();
                let is_status = keys == ["status"];
                assert_eq!(is_status, *part == Part::Status, "{change} goes to its own part");
                self.change(place, kind, name, change);
                if metadata["deletionTimestamp"].is_string() {
                    self.remove_if_free(place, kind, name);
                }
            }
            // Whose fields are whose is not kept: every apply is as if it were forced.
            Write::Apply { uid, resource_version, object, .. } => match (uid, found.is_null()) {
                (Some(uid), _) if found["metadata"]["uid"] != **uid => return false,
                _ if resource_version
                    .as_ref()
                    .is_some_and(|seen| found["metadata"]["resourceVersion"] != **seen) =>
                {
                    return false;
                }
                (_, true) => self.put_new(place, kind, name, object.clone()),
                (_, false) => self.change(place, kind, name, object),
            },
            Write::Delete { uid, resource_version, .. } => {
                let version = &found["metadata"]["resourceVersion"];
                let is_seen = resource_version.as_ref().is_none_or(|seen| *version == **seen);
                if found["metadata"]["uid"] != **uid || !is_seen {
                    return false;
                }
                self.delete(place, kind, name);
            }
        }
        true
    }

    fn put_new(&mut self, place: Place, kind: &Kind, name: &Name, mut object: Value) {
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
        object["metadata"]["name"] = json!(&*name.name);
        if let Some(namespace) = &name.namespace {
            object["metadata"]["namespace"] = json!(&**namespace);
        }
        object["metadata"]["uid"] = json!(format!("uid-{}", name.name));
        self.put(place, object);
    }

    fn remove_if_free(&mut self, place: Place, kind: &Kind, name: &Name) {
        let object = self.json(place, kind, name);
        let finalizers = object["metadata"]["finalizers"].as_array();
        let is_full = kind.kind == "Namespace"
            && self.objects.iter().any(|((at, of), cache)| {
                *at == place && of.is_namespaced && !cache.list(Some(&name.name)).is_empty()
            });
        let is_free = finalizers.is_none_or(Vec::is_empty) && !is_full;
        let key = (place, kind.clone());
        if let Some(cache) = self.objects.get_mut(&key).filter(|_| is_free) {
            cache.remove(name);
        }
        // A namespace that is being deleted goes after the last object in it.
        let Some(namespace) = name.namespace.as_ref().map(|name| Name::cluster_wide(name)) else {
            return;
        };
        let of = self.objects.keys().find(|(at, of)| *at == place && of.kind == "Namespace");
        if let Some((_, of)) = of.cloned()
            && self.json(place, &of, &namespace)["metadata"]["deletionTimestamp"].is_string()
        {
            self.remove_if_free(place, &of, &namespace);
        }
    }

    fn cache(&self, place: Place, kind: &Kind) -> Option<&Objects> {
        self.objects.get(&(place, kind.clone()))
    }

    fn kind_of(&self, place: Place, object: &Value) -> Option<Kind> {
        let mut served = self.objects.keys().filter(|(at, _)| *at == place);
        served.find(|(_, kind)| object["kind"] == *kind.kind).map(|(_, kind)| kind.clone())
    }
}

/// A controller that says what it may do does nothing else.
pub fn assert_allowed<C: Controller + ?Sized>(
    controller: &C,
    needed: impl IntoIterator<Item = Right>,
) {
    let rights = controller.rights();
    if rights.is_empty() {
        return;
    }
    let watched: Vec<Right> = controller.watches().iter().flat_map(Right::to_watch).collect();
    for right in needed {
        let is_allowed = rights.contains(&right) || watched.contains(&right);
        assert!(is_allowed, "{} does not say that it needs {right:?}", controller.name());
    }
}

/// A JSON merge patch (RFC 7386).
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(target)) => drop(target.remove(key)),
            (value, _) => merge(&mut target[key], value),
        }
    }
}

/// An object, changed by a merge patch.
#[must_use]
pub fn patched(mut object: Value, patch: &Value) -> Value {
    merge(&mut object, patch);
    object
}

/// The condition of an object in JSON; null: there is none.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|c| c["type"] == kind));
    found.unwrap_or(&Value::Null)
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).unwrap_or(0)
    }
}

/// Spoils one place of an object: what is there becomes something that nobody would write.
pub fn spoil(object: &mut Value, dice: &mut Dice) {
    let junk = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("\u{1F980}é".repeat(70)),
        json!([]),
        json!([null, {}]),
        json!({}),
        json!("9999-12-31T23:59:59Z"),
        json!("-9999-01-01T00:00:00Z"),
    ];
    let goes_deeper = dice.below(6) != 0;
    match object {
        Value::Object(members) if goes_deeper && !members.is_empty() => {
            let place = dice.below(members.len());
            if let Some((_, member)) = members.iter_mut().nth(place) {
                spoil(member, dice);
            }
        }
        Value::Array(items) if goes_deeper && !items.is_empty() => {
            let place = dice.below(items.len());
            spoil(&mut items[place], dice);
        }
        place => *place = junk[dice.below(junk.len())].clone(),
    }
}

/// Spoils objects in many ways, and lets a controller take its steps: it may do anything but panic.
pub fn survives<C: Controller>(
    controller: &C,
    machine: &dyn Machine<C::Outside>,
    objects: &[Value],
) {
    for seed in 1..3000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut spoiled = objects.to_vec();
        for _ in 0..=dice.below(3) {
            let place = dice.below(spoiled.len());
            spoil(&mut spoiled[place], &mut dice);
        }
        let world = World::of(controller as &dyn Controller<Outside = C::Outside>).with(spoiled);
        for subject in world.subjects(controller) {
            drop(world.step(controller, machine, &subject));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_follows_the_examples_of_its_standard() {
        let examples = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (mut target, patch, wanted) in examples {
            merge(&mut target, &patch);
            assert_eq!(target, wanted);
        }
    }
}
