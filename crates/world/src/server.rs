//! API servers as numbers: every version of an object is kept once, a server is a sorted list of
//! such versions, and a write makes one server of another.
//!
//! A version stands for the content of an object. Two versions with equal content would match where a
//! real server would tell them apart. The lowest bit of the number mends that: it marks a version
//! that somebody saw and that was replaced since ([`old`]). A marked version never matches what a
//! server has now. The resourceVersion that controllers are shown is made of the content too: some
//! make names of it, and those must not depend on the order in which the world is explored.

mod canonical;

use crate::intern::Interner;
use canonical::{canonical, otherwise};
use interlock_kernel::{Kind, Name, Object, Part, Refusal, Write};
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// Where an object is on a server: its kind and name as a number.
pub(crate) type Slot = u32;
/// A version of an object; 0: there is no object.
pub(crate) type Version = u32;

/// The slots in which a server changed, with what was there before.
pub(crate) type Changed = Vec<(Slot, Version)>;

/// A version as it is remembered by somebody after it was replaced.
pub(crate) fn old(version: Version) -> Version {
    if version == 0 { 0 } else { version | 1 }
}

/// What is on one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Content {
    /// The objects that are there, by slot.
    pub(crate) objects: BTreeMap<Slot, Version>,
    /// How many objects of a name were there before: the next one gets a new uid.
    gone: BTreeMap<Slot, u32>,
    /// What the uids that this server gives out end with.
    mark: &'static str,
}

/// All servers of a world, in every content that was reached.
#[derive(Default)]
pub struct Servers {
    slots: Interner<(Kind, Name)>,
    contents: Interner<Content>,
    versions: RwLock<Versions>,
    /// The time at which objects are deleted.
    now: String,
    /// Whether an object that has a generation gets the next one when its spec changes.
    counts_generations: bool,
    /// Whether objects are shown as [`otherwise`] has them.
    shows_otherwise: bool,
}

#[derive(Default)]
struct Versions {
    numbers: HashMap<String, Version>,
    /// By version: the object as it is shown, and its slot.
    objects: Vec<(Option<Object>, Slot)>,
}

/// Why a server refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Refused {
    /// An object of that name is there already.
    Exists,
    /// The object is not there.
    NotFound,
    /// The object has changed since it was seen, or is another one.
    Conflict,
    /// The namespace is not there, or is being deleted.
    NoNamespace,
    /// A policy does not admit it.
    Forbidden,
}

impl Refused {
    /// As a server says it.
    pub(crate) fn said(self) -> Refusal {
        let (code, reason, message) = match self {
            Refused::Exists => (409, "AlreadyExists", "there is one of that name already"),
            Refused::NotFound => (404, "NotFound", "there is no such object"),
            Refused::Conflict => (409, "Conflict", "the object is another one, or has changed"),
            Refused::NoNamespace => (404, "NotFound", "there is no such namespace"),
            Refused::Forbidden => (403, "Forbidden", "a policy does not admit it"),
        };
        Refusal { code, reason: reason.to_owned(), message: message.to_owned() }
    }
}

impl Servers {
    pub(crate) fn new(now: String, counts_generations: bool) -> Servers {
        let nothing = vec![(None, 0), (None, 0)];
        let versions = RwLock::new(Versions { numbers: HashMap::new(), objects: nothing });
        Servers { versions, now, counts_generations, ..Servers::default() }
    }

    /// The same, showing what the canonical form drops.
    pub(crate) fn showing_otherwise(self) -> Servers {
        Servers { shows_otherwise: true, ..self }
    }

    pub(crate) fn slot(&self, kind: &Kind, name: &Name) -> Slot {
        self.slots.put((kind.clone(), name.clone()))
    }

    pub(crate) fn key(&self, slot: Slot) -> Arc<(Kind, Name)> {
        self.slots.get(slot)
    }

    pub(crate) fn content(&self, server: u32) -> Arc<Content> {
        self.contents.get(server)
    }

    /// How many versions of objects, and how many servers, there were.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let versions = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        (versions.objects.len() / 2 - 1, self.contents.len())
    }

    /// The object of a version.
    pub(crate) fn object(&self, version: Version) -> Option<Object> {
        let versions = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        versions.objects[version as usize].0.clone()
    }

    pub(crate) fn slot_of(&self, version: Version) -> Slot {
        let versions = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        versions.objects[version as usize].1
    }

    pub(crate) fn version_at(&self, server: u32, slot: Slot) -> Version {
        self.content(server).objects.get(&slot).copied().unwrap_or(0)
    }

    pub(crate) fn find(&self, server: u32, kind: &Kind, name: &Name) -> Version {
        let slot = self.slots.find(&(kind.clone(), name.clone()));
        slot.map_or(0, |slot| self.version_at(server, slot))
    }

    /// The objects of a kind, by name.
    pub(crate) fn list(&self, server: u32, kind: &Kind, namespace: Option<&str>) -> Vec<Version> {
        let content = self.content(server);
        let mut found: Vec<(Name, Version)> = Vec::new();
        for (slot, version) in &content.objects {
            let key = self.key(*slot);
            let is_within = namespace.is_none_or(|it| key.1.namespace.as_deref() == Some(it));
            if key.0 == *kind && is_within {
                found.push((key.1.clone(), *version));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, version)| version).collect()
    }

    /// The slots in which two servers differ, with what was there before.
    pub(crate) fn difference(&self, before: u32, after: u32) -> Changed {
        let (old, new) = (self.content(before), self.content(after));
        let mut slots: Vec<Slot> = old.objects.keys().chain(new.objects.keys()).copied().collect();
        slots.sort_unstable();
        slots.dedup();
        slots.retain(|slot| old.objects.get(slot) != new.objects.get(slot));
        slots.into_iter().map(|slot| (slot, old.objects.get(&slot).copied().unwrap_or(0))).collect()
    }

    /// A server with nothing on it.
    pub fn empty(&self) -> u32 {
        self.contents.put(Content::default())
    }

    /// A server with nothing on it, where objects have other uids than those of their names elsewhere.
    pub fn empty_marked(&self, mark: &'static str) -> u32 {
        self.contents.put(Content { mark, ..Content::default() })
    }

    /// The server after a person created an object or replaced one.
    pub fn put(&self, server: u32, kind: &Kind, name: &Name, object: Value) -> u32 {
        self.edit(server, |edit| edit.make(kind, name, object))
    }

    /// The server after a person changed an object by a merge patch.
    pub fn change(&self, server: u32, kind: &Kind, name: &Name, patch: &Value) -> u32 {
        self.edit(server, |edit| {
            edit.patch(self.slot(kind, name), patch);
            edit.sweep(self.slot(kind, name));
        })
    }

    /// The server after a person deleted an object.
    pub fn remove(&self, server: u32, kind: &Kind, name: &Name) -> u32 {
        let slot = self.slot(kind, name);
        if self.version_at(server, slot) == 0 {
            return server;
        }
        self.edit(server, |edit| edit.delete(slot))
    }

    /// The uid of an object; empty: there is none.
    pub fn uid(&self, server: u32, kind: &Kind, name: &Name) -> String {
        let found = self.object(self.find(server, kind, name));
        found.and_then(|object| object.metadata.uid.clone()).unwrap_or_default()
    }

    fn edit(&self, server: u32, change: impl FnOnce(&mut Edit<'_>)) -> u32 {
        let mut edit = Edit { servers: self, content: Content::clone(&self.content(server)) };
        change(&mut edit);
        self.contents.put(edit.content)
    }

    /// The server after a write of a controller, or why it refuses.
    pub(crate) fn apply(&self, server: u32, write: &Write) -> Result<u32, Refused> {
        Ok(self.contents.put(self.written(server, write)?.content))
    }

    /// The version of an object that a write would make.
    pub(crate) fn try_out(&self, server: u32, write: &Write) -> Result<Version, Refused> {
        let address = write.address();
        let slot = self.slot(&address.kind, &address.name);
        Ok(self.written(server, write)?.version(slot))
    }

    /// What a write makes of a server.
    fn written(&self, server: u32, write: &Write) -> Result<Edit<'_>, Refused> {
        let address = write.address();
        let (kind, name) = (&address.kind, &address.name);
        let slot = self.slot(kind, name);
        let mut edit = Edit { servers: self, content: Content::clone(&self.content(server)) };
        let there = self.object(self.version_at(server, slot));
        let uid = there.as_ref().and_then(|it| it.metadata.uid.as_ref());
        let version = there.as_ref().and_then(|it| it.metadata.resource_version.as_ref());
        match write {
            Write::Create { object, .. } => {
                if there.is_some() {
                    return Err(Refused::Exists);
                }
                edit.assert_namespace(name)?;
                edit.make(kind, name, object.clone());
            }
            Write::Patch { seen, part, change, .. } => {
                let uid = uid.ok_or(Refused::NotFound)?;
                if *uid != seen.uid || version != Some(&seen.resource_version) {
                    return Err(Refused::Conflict);
                }
                edit.patch(slot, &of_part(change, *part));
                edit.sweep(slot);
            }
            // Whose fields are whose is not kept: every apply is as if it were forced.
            Write::Apply { uid: wanted, resource_version, part, object, .. } => {
                let is_other = wanted.is_some() && wanted.as_ref() != uid;
                if is_other || resource_version.is_some() && resource_version.as_ref() != version {
                    return Err(Refused::Conflict);
                }
                if there.is_some() {
                    edit.patch(slot, &of_part(object, *part));
                } else {
                    edit.assert_namespace(name)?;
                    edit.make(kind, name, object.clone());
                }
            }
            Write::Delete { uid: wanted, resource_version, .. } => {
                if uid.ok_or(Refused::NotFound)? != wanted
                    || resource_version.is_some() && resource_version.as_ref() != version
                {
                    return Err(Refused::Conflict);
                }
                edit.delete(slot);
            }
        }
        Ok(edit)
    }

    fn json(&self, version: Version) -> Value {
        let Some(object) = self.object(version) else { return Value::Null };
        let mut object = serde_json::to_value(&*object).unwrap_or_default();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        object
    }

    /// The number of an object's content.
    fn version(&self, slot: Slot, mut object: Value) -> Version {
        canonical(&mut object);
        // The map behind a JSON object is sorted, so equal objects have equal text.
        let text = format!("{slot} {object}");
        let known = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = known.numbers.get(&text) {
            return *version;
        }
        drop(known);
        let mut versions = self.versions.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = versions.numbers.get(&text) {
            return *version;
        }
        let number = versions.objects.len() as Version;
        let content = hash(&object.to_string()) & !1;
        if self.shows_otherwise {
            otherwise(&mut object);
        }
        for mark in [0, 1] {
            object["metadata"]["resourceVersion"] = json!((content | mark).to_string());
            let shown = serde_json::from_value::<DynamicObject>(object.clone());
            let shown = shown.expect("what a person or a controller wrote is an object");
            versions.objects.push((Some(Arc::new(shown)), slot));
        }
        versions.numbers.insert(text, number);
        number
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The status has its own way into a server: what a write of one part says of the other is dropped.
fn of_part(change: &Value, part: Part) -> Value {
    let mut kept = change.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.retain(|key, _| (key == "status") == (part == Part::Status));
    }
    kept
}

/// The content of a server while it changes.
struct Edit<'a> {
    servers: &'a Servers,
    content: Content,
}

impl Edit<'_> {
    fn version(&self, slot: Slot) -> Version {
        self.content.objects.get(&slot).copied().unwrap_or(0)
    }

    fn make(&mut self, kind: &Kind, name: &Name, mut object: Value) {
        let slot = self.servers.slot(kind, name);
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(&*name.name);
        if let Some(namespace) = &name.namespace {
            metadata["namespace"] = json!(&**namespace);
        }
        if metadata["uid"].is_null() {
            let gone = self.content.gone.get(&slot).copied().unwrap_or(0);
            let kind = kind.kind.to_lowercase();
            let mark = self.content.mark;
            metadata["uid"] = json!(format!("{kind}-{}-{gone}{mark}", name.name));
        }
        let version = self.servers.version(slot, object);
        self.content.objects.insert(slot, version);
    }

    fn patch(&mut self, slot: Slot, patch: &Value) {
        let mut object = self.servers.json(self.version(slot));
        let spec = object.get("spec").cloned();
        merge(&mut object, patch);
        if self.servers.counts_generations
            && object.get("spec") != spec.as_ref()
            && let Some(generation) = object["metadata"]["generation"].as_i64()
        {
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let version = self.servers.version(slot, object);
        self.content.objects.insert(slot, version);
    }

    /// Nothing is made in a namespace that is not there, or is being deleted.
    fn assert_namespace(&self, name: &Name) -> Result<(), Refused> {
        let Some(namespace) = &name.namespace else { return Ok(()) };
        let home =
            self.namespace(namespace).and_then(|slot| self.servers.object(self.version(slot)));
        match home {
            Some(home) if home.metadata.deletion_timestamp.is_none() => Ok(()),
            _ => Err(Refused::NoNamespace),
        }
    }

    fn namespace(&self, name: &str) -> Option<Slot> {
        let is_it = |slot: &Slot| {
            let key = self.servers.key(*slot);
            key.0.kind == "Namespace" && &*key.1.name == name
        };
        self.content.objects.keys().copied().find(is_it)
    }

    fn within(&self, namespace: &str) -> Vec<Slot> {
        let is_within =
            |slot: &Slot| self.servers.key(*slot).1.namespace.as_deref() == Some(namespace);
        self.content.objects.keys().copied().filter(is_within).collect()
    }

    fn delete(&mut self, slot: Slot) {
        let gone = json!({"metadata": {"deletionTimestamp": self.servers.now}});
        self.patch(slot, &gone);
        let key = self.servers.key(slot);
        if key.0.kind == "Namespace" {
            for slot in self.within(&key.1.name) {
                self.delete(slot);
            }
        }
        self.sweep(slot);
    }

    /// What is being deleted is removed once nothing holds it, and a namespace with its last object.
    fn sweep(&mut self, slot: Slot) {
        let Some(object) = self.servers.object(self.version(slot)) else { return };
        let key = self.servers.key(slot);
        let is_held = object.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        let is_full = key.0.kind == "Namespace" && !self.within(&key.1.name).is_empty();
        if object.metadata.deletion_timestamp.is_none() || is_held || is_full {
            return;
        }
        self.content.objects.remove(&slot);
        *self.content.gone.entry(slot).or_default() += 1;
        if let Some(home) = key.1.namespace.as_deref().and_then(|name| self.namespace(name)) {
            self.sweep(home);
        }
    }
}

/// A JSON merge patch (RFC 7386).
pub(crate) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Some(fields) = into.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
            continue;
        }
        merge(fields.entry(key.clone()).or_insert(Value::Null), value);
    }
}

#[cfg(test)]
mod tests;
