//! One API server in memory.

use super::patch::merge;
use crate::{DryRun, Index, Kind, Name, Object, Objects, Part, Refusal, Write};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One API server in memory: it takes writes and refuses them as a real one does.
#[derive(Debug, Default)]
pub struct Server {
    /// Where uids tell of the server that gave them, its name.
    name: Option<String>,
    objects: BTreeMap<Kind, Objects>,
    version: u64,
}

#[allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "this is for tests")]
impl Server {
    /// A server among several: no two of their objects have the same uid, even if they have one
    /// name. On a server without a name the uid follows from the name of the object.
    pub fn named(name: &str) -> Server {
        Server { name: Some(name.to_owned()), ..Server::default() }
    }

    /// Serves a kind, filed by these indexes. Other kinds are served from their first object on.
    pub fn serve(&mut self, kind: &Kind, indexes: &[Index]) {
        let objects = self.objects.entry(kind.clone()).or_default();
        indexes.iter().for_each(|index| objects.file_by(index));
    }

    /// The kinds that it serves.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.objects.keys()
    }

    /// An object.
    pub fn get(&self, kind: &Kind, name: &Name) -> Option<Object> {
        self.objects.get(kind)?.get(name)
    }

    /// An object in JSON; null: there is none.
    pub fn json(&self, kind: &Kind, name: &Name) -> Value {
        let found = self.get(kind, name).map(|object| serde_json::to_value(&*object).unwrap());
        found.unwrap_or_default()
    }

    /// The objects of a kind, in one namespace or in all.
    pub fn list(&self, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.objects.get(kind).map(|objects| objects.list(namespace)).unwrap_or_default()
    }

    /// The objects that an index files under a value, whether or not they are filed.
    pub fn find(&self, index: &Index, value: &str) -> Vec<Object> {
        let mut found = self.list(&index.kind, None);
        found.retain(|object| (index.values)(object).iter().any(|of| of == value));
        found
    }

    /// Puts an object there, or a newer version of it; None: no server would show such an object.
    pub fn put(&mut self, kind: &Kind, mut object: Value) -> Option<Object> {
        if !object["metadata"].is_object() {
            return None;
        }
        self.version += 1;
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(serde_json::from_value::<DynamicObject>(object).ok()?);
        self.objects.entry(kind.clone()).or_default().put(Arc::clone(&object));
        Some(object)
    }

    /// Makes an object of a name, with a uid unless it has one.
    pub fn make(&mut self, kind: &Kind, name: &Name, mut object: Value) -> Object {
        let object_name = &name.name;
        object["metadata"]["name"] = json!(&**object_name);
        if let Some(namespace) = &name.namespace {
            object["metadata"]["namespace"] = json!(&**namespace);
        }
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(match &self.name {
                Some(server) => format!("uid-{server}-{:08}", self.version + 1),
                None => format!("uid-{object_name}"),
            });
        }
        self.put(kind, object).unwrap()
    }

    /// Changes an object by a merge patch, as a person would.
    pub fn change(&mut self, kind: &Kind, name: &Name, patch: &Value) {
        let mut object = self.json(kind, name);
        merge(&mut object, patch);
        self.put(kind, object);
    }

    /// Deletes an object as a person would: one with finalizers is only marked, and a namespace
    /// goes after what is in it.
    pub fn delete(&mut self, kind: &Kind, name: &Name, now: Timestamp) {
        let object = self.json(kind, name);
        if object.is_null() {
            return;
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            let now = Timestamp::from_second(now.as_second()).unwrap().to_string();
            self.change(kind, name, &json!({"metadata": {"deletionTimestamp": now}}));
        }
        if kind.kind == "Namespace" {
            for (kind, name) in self.within(&name.name) {
                self.delete(&kind, &name, now);
            }
        }
        self.sweep(kind, name);
    }

    fn within(&self, namespace: &str) -> Vec<(Kind, Name)> {
        let namespaced = self.objects.iter().filter(|(kind, _)| kind.is_namespaced);
        let of = |(kind, objects): (&Kind, &Objects)| {
            let found = objects.list(Some(namespace));
            found.iter().map(|object| (kind.clone(), Name::of(object))).collect::<Vec<_>>()
        };
        namespaced.flat_map(of).collect()
    }

    /// Removes an object that was deleted and has no finalizer and no contents any more.
    pub fn sweep(&mut self, kind: &Kind, name: &Name) {
        let object = self.json(kind, name);
        let metadata = &object["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        let is_full = kind.kind == "Namespace" && !self.within(&name.name).is_empty();
        if !metadata["deletionTimestamp"].is_string() || is_held || is_full {
            return;
        }
        if let Some(objects) = self.objects.get_mut(kind) {
            objects.remove(name);
        }
        let of = self.kinds().find(|kind| kind.kind == "Namespace").cloned();
        if let Some((of, namespace)) = of.zip(name.namespace.as_ref()) {
            self.sweep(&of, &Name::cluster_wide(namespace));
        }
    }

    /// An object as it would be after an apply. Like the apply itself, it is as if it were forced.
    pub fn dry_run(&self, asked: &DryRun) -> Result<Object, Refusal> {
        let DryRun { address, object, uid, resource_version, .. } = asked;
        let mut found = self.json(&address.kind, &address.name);
        let there = &found["metadata"];
        let is_other = |key: &str, seen: &Option<String>| {
            seen.as_ref().is_some_and(|seen| there[key] != **seen)
        };
        if is_other("uid", uid) || is_other("resourceVersion", resource_version) {
            return Err(refusal(409, "Conflict", "the object is another one, or has changed"));
        }
        if found.is_null() {
            found = json!({"metadata": {"name": &*address.name.name}});
            if let Some(namespace) = &address.name.namespace {
                found["metadata"]["namespace"] = json!(&**namespace);
            }
        }
        merge(&mut found, object);
        found["apiVersion"] = json!(address.kind.api_version());
        found["kind"] = json!(address.kind.kind);
        let read = serde_json::from_value::<DynamicObject>(found);
        read.map(Arc::new).map_err(|error| refusal(400, "BadRequest", &error.to_string()))
    }

    /// Takes a write, or says why it refuses it.
    pub fn apply(&mut self, write: &Write, now: Timestamp) -> Result<(), String> {
        let address = write.address();
        let (kind, name) = (&address.kind, &address.name);
        let found = self.json(kind, name);
        let there = &found["metadata"];
        let is_uid = |uid: &str| match there["uid"] == *uid {
            true => Ok(()),
            false => Err(format!("{kind} {name} is {}, not {uid}", there["uid"])),
        };
        let is_version = |version: &str| match there["resourceVersion"] == *version {
            true => Ok(()),
            false => {
                Err(format!("{kind} {name} is at {}, not {version}", there["resourceVersion"]))
            }
        };
        match write {
            // Whoever finds that it is there has lost nothing: it looks and decides again.
            Write::Create { object, .. } => {
                if found.is_null() {
                    self.make(kind, name, object.clone());
                }
            }
            Write::Patch { seen, part, change, .. } => {
                is_uid(&seen.uid)?;
                is_version(&seen.resource_version)?;
                let is_status = change.as_object().unwrap().keys().eq(["status"]);
                assert_eq!(is_status, *part == Part::Status, "{change} goes to its own part");
                self.change(kind, name, change);
                self.sweep(kind, name);
            }
            // Whose fields are whose is not kept: every apply is as if it were forced.
            Write::Apply { uid, resource_version, object, .. } => {
                uid.as_deref().map_or(Ok(()), is_uid)?;
                resource_version.as_deref().map_or(Ok(()), is_version)?;
                match found.is_null() {
                    true => drop(self.make(kind, name, object.clone())),
                    false => self.change(kind, name, object),
                }
            }
            Write::Delete { uid, resource_version, .. } => {
                is_uid(uid)?;
                resource_version.as_deref().map_or(Ok(()), is_version)?;
                self.delete(kind, name, now);
            }
        }
        Ok(())
    }
}

pub(super) fn refusal(code: u16, reason: &str, message: &str) -> Refusal {
    Refusal { code, reason: reason.to_owned(), message: message.to_owned() }
}
