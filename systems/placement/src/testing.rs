//! A hub in memory, for the tests of the rooms: caches that are never behind, and writes that are
//! refused as an API server would refuse them.

use crate::kinds;
use interlock_kernel::{
    Controller, Deed, Effect, Event, Index, Kind, Looks, Name, Nothing, Object, Objects, Part,
    Place, Read, Step, Subject, View, Write,
};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More steps than any of the tests needs: one that takes them all does not come to rest.
const STEPS: usize = 60;

/// The hub.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    objects: BTreeMap<Kind, Objects>,
    version: u64,
}

/// What happened until a controller came to rest.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) writes: Vec<Write>,
    pub(crate) events: Vec<Event>,
    pub(crate) rests: String,
    pub(crate) waits_seconds: Option<u64>,
}

impl View for World {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        assert_eq!(place, Place::HUB);
        self.objects.get(kind)?.get(name).cloned()
    }

    fn list(&self, _: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.objects.get(kind).map(|objects| objects.list(namespace)).unwrap_or_default()
    }

    fn find(&self, _: Place, index: &Index, value: &str) -> Vec<Object> {
        let objects = self.objects.get(&index.kind);
        objects.map(|objects| objects.find(index.name, value)).unwrap_or_default()
    }

    fn count(&self, _: Place, index: &Index, value: &str) -> usize {
        self.objects.get(&index.kind).map_or(0, |objects| objects.count(index.name, value))
    }
}

impl World {
    /// A hub with what a controller watches, filed as it asks, and these objects.
    pub(crate) fn of(
        controller: &dyn Controller<Outside = Nothing>,
        objects: impl IntoIterator<Item = Value>,
    ) -> World {
        World::of_all(&[controller], objects)
    }

    /// The same, for several controllers.
    pub(crate) fn of_all(
        controllers: &[&dyn Controller<Outside = Nothing>],
        objects: impl IntoIterator<Item = Value>,
    ) -> World {
        let now = Timestamp::from_second(1_000_000).expect("a time");
        let mut world = World { now, objects: BTreeMap::new(), version: 1 };
        for watch in controllers.iter().flat_map(|controller| controller.watches()) {
            let cache = world.objects.entry(watch.kind.clone()).or_default();
            watch.indexes.iter().for_each(|index| cache.file_by(index));
        }
        objects.into_iter().for_each(|object| world.put(object));
        world
    }

    /// Puts an object there, or a newer version of it. One that no server would show is left out.
    pub(crate) fn put(&mut self, mut object: Value) {
        let Some(kind) = kind_of(&object) else { return };
        if !object["metadata"].is_object() {
            return;
        }
        self.version += 1;
        object["apiVersion"] = json!(kind.api_version());
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let Ok(object) = serde_json::from_value::<DynamicObject>(object) else { return };
        // A controller that does not watch a kind is not shown it.
        if let Some(cache) = self.objects.get_mut(&kind) {
            cache.put(Arc::new(object));
        }
    }

    /// Changes an object by a merge patch, as a person would.
    pub(crate) fn change(&mut self, kind: &Kind, name: Name, patch: &Value) {
        let mut object = self.json(kind, &name);
        merge(&mut object, patch);
        self.put(object);
    }

    pub(crate) fn grant(&self, name: &str) -> Value {
        self.json(&kinds::GRANT, &Name::cluster_wide(name))
    }

    pub(crate) fn json(&self, kind: &Kind, name: &Name) -> Value {
        self.get(Place::HUB, kind, name)
            .map(|object| serde_json::to_value(&*object).expect("an object"))
            .unwrap_or(Value::Null)
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).expect("a time");
    }

    /// All that a controller would be asked about after a start.
    pub(crate) fn subjects<C>(&self, controller: &C) -> BTreeSet<Subject>
    where
        C: Controller<Outside = Nothing> + ?Sized,
    {
        let mut subjects = BTreeSet::new();
        for watch in controller.watches() {
            for object in self.list(watch.place, &watch.kind, None) {
                subjects.extend(controller.subjects(&watch, &object, self));
            }
        }
        subjects
    }

    /// One step, with the looks that it asks for answered.
    pub(crate) fn step<C>(&self, controller: &C, subject: &str) -> Step<Nothing>
    where
        C: Controller<Outside = Nothing> + ?Sized,
    {
        let subject = Subject::from(subject);
        let mut looks = Looks::default();
        for _ in 0..4 {
            match controller.step(&subject, self, &looks) {
                Step::Look { reads, .. } => {
                    reads.into_iter().for_each(|read| self.look(read, &mut looks));
                }
                step => return step,
            }
        }
        panic!("it looks again and again at {subject}");
    }

    fn look(&self, read: Read<Nothing>, looks: &mut Looks<Nothing>) {
        match read {
            Read::Object(address) => {
                let found = self.get(address.place, &address.kind, &address.name);
                looks.objects.insert(address, found);
            }
            Read::List { place, kind, namespace } => {
                let found = self.list(place, &kind, namespace.as_deref());
                looks.lists.insert((place, kind, namespace), found);
            }
            Read::Ask(nothing) => match nothing {},
        }
    }

    /// Steps until there is nothing to do; every write is applied and must carry its guards.
    pub(crate) fn settle<C>(&mut self, controller: &C, subject: &str) -> Run
    where
        C: Controller<Outside = Nothing> + ?Sized,
    {
        let mut run = Run::default();
        for _ in 0..STEPS {
            match self.step(controller, subject) {
                Step::Rest { because } => return Run { rests: because, ..run },
                Step::Wait { because, at_most } => {
                    let waits_seconds = Some(at_most.as_secs());
                    return Run { rests: because, waits_seconds, ..run };
                }
                Step::Look { .. } => unreachable!("looks are answered"),
                Step::Act(effect) => {
                    let Effect { deed, because, event } = *effect;
                    assert!(!because.is_empty(), "an effect says why");
                    let Deed::Write(write) = deed;
                    assert!(self.apply(&write), "refused: {write:?}");
                    run.writes.push(write);
                    run.events.extend(event);
                }
            }
        }
        panic!("it does not come to rest: {run:#?}");
    }

    /// Applies a write as an API server would; false: it is refused.
    pub(crate) fn apply(&mut self, write: &Write) -> bool {
        let Some(_) = self.objects.get(&write.address().kind) else { return false };
        match write {
            Write::Create { address, object } => {
                let mut object = object.clone();
                if self.get(address.place, &address.kind, &address.name).is_some() {
                    return true;
                }
                let name = &address.name.name;
                object["apiVersion"] = json!(address.kind.api_version());
                object["kind"] = json!(address.kind.kind);
                object["metadata"]["name"] = json!(&**name);
                object["metadata"]["uid"] = json!(format!("uid-{name}"));
                self.put(object);
            }
            Write::Patch { address, seen, part, change } => {
                let mut object = self.json(&address.kind, &address.name);
                let metadata = &object["metadata"];
                assert!(!seen.uid.is_empty() && !seen.resource_version.is_empty(), "guards");
                if metadata["uid"] != seen.uid
                    || metadata["resourceVersion"] != seen.resource_version
                {
                    return false;
                }
                let keys: Vec<&String> =
                    change.as_object().into_iter().flatten().map(|(k, _)| k).collect();
                let is_status = keys == ["status"];
                assert_eq!(is_status, *part == Part::Status, "{change} goes to its own part");
                merge(&mut object, change);
                self.put(object.clone());
                if object["metadata"]["deletionTimestamp"].is_string() {
                    self.remove_if_free(&address.kind, &address.name);
                }
            }
            Write::Delete { address, uid, .. } => {
                let mut object = self.json(&address.kind, &address.name);
                if object["metadata"]["uid"] != *uid {
                    return false;
                }
                object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
                self.put(object);
                self.remove_if_free(&address.kind, &address.name);
            }
            Write::Apply { .. } => panic!("nothing is applied at the hub"),
        }
        true
    }

    fn remove_if_free(&mut self, kind: &Kind, name: &Name) {
        let finalizers = self.json(kind, name)["metadata"]["finalizers"].clone();
        let is_free = finalizers.as_array().is_none_or(Vec::is_empty);
        let is_full = *kind == kinds::NAMESPACE
            && !self.list(Place::HUB, &kinds::CLAIM, Some(&name.name)).is_empty();
        if let Some(cache) = self.objects.get_mut(kind).filter(|_| is_free && !is_full) {
            cache.remove(name);
        }
        // A namespace that is being deleted goes after the last object in it.
        let namespace = name.namespace.as_ref().map(|namespace| Name::cluster_wide(namespace));
        let is_going = |namespace: &Name| {
            let object = self.json(&kinds::NAMESPACE, namespace);
            object["metadata"]["deletionTimestamp"].is_string()
        };
        if let Some(namespace) = namespace.filter(is_going) {
            self.remove_if_free(&kinds::NAMESPACE, &namespace);
        }
    }
}

fn kind_of(object: &Value) -> Option<Kind> {
    let all = [
        kinds::NAMESPACE,
        kinds::CLAIM,
        kinds::WORKLOAD_CLUSTER,
        kinds::PLACEMENT,
        kinds::GRANT,
        kinds::FORCE_RELEASE,
    ];
    all.into_iter().find(|kind| object["kind"] == *kind.kind)
}

/// A JSON merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
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

fn with(mut object: Value, patch: &Value) -> Value {
    merge(&mut object, patch);
    object
}

/// A namespace that asks to be placed.
pub(crate) fn namespace(name: &str, patch: Value) -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "generation": 1,
            "labels": {"interlock.dev/placed": "true"},
        },
    });
    with(object, &patch)
}

/// A claim that is held and asks for no class.
pub(crate) fn claim(namespace: &str, name: &str, patch: Value) -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "finalizers": ["interlock.dev/claim"],
        },
        "spec": {},
    });
    with(object, &patch)
}

/// A cluster that is ready.
pub(crate) fn cluster(name: &str, patch: Value) -> Value {
    let condition = |kind| {
        json!({
            "type": kind, "status": "True", "reason": "Heard", "message": "",
            "lastTransitionTime": "2001-01-01T00:00:00Z",
        })
    };
    let object = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"),
            "finalizers": ["interlock.dev/live-grants"],
        },
        "spec": {"connection": {"logicalCluster": name}},
        "status": {"conditions": [condition("Ready"), condition("Reachable")]},
    });
    with(object, &patch)
}

/// The conditions of a cluster that is not heard of.
pub(crate) fn unreachable() -> Value {
    let condition = |kind| {
        json!({
            "type": kind, "status": "False", "reason": "Silent", "message": "",
            "lastTransitionTime": "2001-02-03T04:05:06Z",
        })
    };
    json!({"status": {"conditions": [condition("Ready"), condition("Reachable")]}})
}

/// The grant of a namespace that nobody has.
pub(crate) fn grant(namespace: &str, patch: Value) -> Value {
    let name = grant_of(namespace);
    let object = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Grant",
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"namespace": {"name": namespace, "uid": format!("uid-{namespace}")}},
    });
    with(object, &patch)
}

/// The same, owned by a cluster which is the target too.
pub(crate) fn granted(namespace: &str, owner: &str, patch: Value) -> Value {
    let object = grant(
        namespace,
        json!({
            "spec": {"target": reference(owner)},
            "status": {
                "phase": "Granted", "owner": reference(owner), "epoch": 7,
                "copies": [{"cluster": reference(owner), "epoch": 7, "state": "Live"}],
            },
        }),
    );
    with(object, &patch)
}

/// The name of the grant of a namespace of these tests.
pub(crate) fn grant_of(namespace: &str) -> String {
    interlock_api::names::grant_name(namespace, &format!("uid-{namespace}"))
}

pub(crate) fn reference(name: &str) -> Value {
    json!({"name": name, "uid": format!("uid-{name}")})
}

/// A pin with an image of this form.
pub(crate) fn pin(claim: &str, image: &Value) -> Value {
    json!({
        "claim": claim, "claimUID": format!("uid-{claim}"), "epoch": 6,
        "taken": "1970-01-12T13:00:00Z", "bytes": 1000, "image": image,
    })
}

/// A claim as a grant lists it.
pub(crate) fn listed(claim: &str, fill: &str) -> Value {
    json!({"name": claim, "uid": format!("uid-{claim}"), "fill": fill})
}

/// The condition of an object in JSON.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|c| c["type"] == kind));
    found.unwrap_or(&Value::Null)
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).expect("small")).expect("small")
    }
}

/// Spoils one place of an object: what is there becomes something that nobody would write.
pub(crate) fn spoil(object: &mut Value, dice: &mut Dice) {
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
pub(crate) fn survives<C>(controller: &C, objects: &[Value])
where
    C: Controller<Outside = Nothing>,
{
    for seed in 1..3000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut spoiled = objects.to_vec();
        for _ in 0..=dice.below(3) {
            let place = dice.below(spoiled.len());
            spoil(&mut spoiled[place], &mut dice);
        }
        let world = World::of(controller, spoiled);
        for subject in world.subjects(controller) {
            drop(world.step(controller, &subject));
        }
    }
}

#[test]
fn a_merge_patch_follows_the_examples_of_its_standard() {
    let examples = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ];
    for (mut target, patch, wanted) in examples {
        merge(&mut target, &patch);
        assert_eq!(target, wanted);
    }
}
