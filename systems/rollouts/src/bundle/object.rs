//! An object of a bundle: what it is, and its form without what only a server writes.

use super::flaw::{Flaw, FlawReason};
use interlock_api::rollouts::{ANNOTATION_CONTENT, ANNOTATION_ID, ANNOTATION_TOKEN, LABEL_ROLLOUT};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// What only a server writes into metadata.
const SERVERS: [&str; 7] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What an object is, whichever version of its group it is written in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectId {
    /// Empty for the core group.
    pub group: String,
    /// `Deployment`
    pub kind: String,
    /// Empty: it names none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// `apps/Deployment/shop/web`, `/Namespace//shop`.
impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

impl ObjectId {
    /// Reads what [`ObjectId`] shows; None: it is nothing of the kind.
    pub fn read(text: &str) -> Option<ObjectId> {
        let parts: Vec<&str> = text.split('/').collect();
        let [group, kind, namespace, name] = parts.as_slice() else { return None };
        if kind.is_empty() || name.is_empty() {
            return None;
        }
        let [group, kind, namespace, name] =
            [group, kind, namespace, name].map(|it| (*it).to_owned());
        Some(ObjectId { group, kind, namespace, name })
    }

    /// What an object is, or what is missing.
    pub fn of(object: &Value) -> Result<ObjectId, &'static str> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = word(&object["apiVersion"]);
        let group = match api_version.split_once('/') {
            Some((group, version)) if !group.is_empty() && !version.is_empty() => group.to_owned(),
            Some(_) => return Err("apiVersion is <version> or <group>/<version>"),
            None if api_version.is_empty() => return Err("apiVersion is missing"),
            None => String::new(),
        };
        let kind = word(&object["kind"]);
        if kind.is_empty() {
            return Err("kind is missing");
        }
        let metadata = &object["metadata"];
        let name = word(&metadata["name"]);
        if name.is_empty() {
            return Err(match metadata["generateName"].is_string() {
                true => "generateName makes another object each time; give it a metadata.name",
                false => "metadata.name is missing",
            });
        }
        let namespace = word(&metadata["namespace"]);
        if [&group, &kind, &namespace, &name].iter().any(|part| part.contains('/')) {
            return Err("no name of an object has a / in it");
        }
        Ok(ObjectId { group, kind, namespace, name })
    }
}

/// Where an object is.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) file: String,
    pub(super) line: usize,
}

/// An object, and where it was found.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) id: ObjectId,
    pub(super) object: Value,
    at: At,
}

impl Manifest {
    /// That it is the same object as one before.
    pub(super) fn duplicates(&self, first: &Manifest) -> Flaw {
        let At { file, line } = &first.at;
        let place =
            if file.is_empty() { format!("object {line}") } else { format!("{file}:{line}") };
        let words = format!("it is in the bundle already, at {place}: leave one of them out");
        Flaw::at(&self.at, FlawReason::Duplicate, &self.id.to_string(), words)
    }
}

/// Adds an object, or each item of a list.
pub(super) fn expand(object: Value, at: &At, found: &mut Vec<Manifest>, flaws: &mut Vec<Flaw>) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let is_list =
        kind == "List" || (kind.ends_with("List") && object["metadata"]["name"].is_null());
    if is_list && let Some(items) = object["items"].as_array() {
        // An item of a typed list need not say what it is.
        let of = kind.strip_suffix("List").unwrap_or_default();
        for item in items {
            let mut item = item.clone();
            if !of.is_empty()
                && let Some(fields) = item.as_object_mut()
            {
                fields.entry("apiVersion").or_insert_with(|| object["apiVersion"].clone());
                fields.entry("kind").or_insert_with(|| Value::from(of));
            }
            expand(item, at, found, flaws);
        }
        return;
    }
    let Value::Object(fields) = object else {
        let words = "it is no object: a manifest has apiVersion, kind and metadata";
        return flaws.push(Flaw::at(at, FlawReason::NotAnObject, "", words));
    };
    let mut object = Value::Object(fields);
    match ObjectId::of(&object) {
        Ok(id) => {
            clean(&mut object);
            found.push(Manifest { id, object, at: at.clone() });
        }
        Err(words) => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let called = if name.is_empty() { kind } else { format!("{kind} {name}") };
            flaws.push(Flaw::at(at, FlawReason::NotAnObject, called.trim(), words));
        }
    }
}

/// Takes out what only a server writes, and what a rollout wrote: an object that was exported is as it was.
fn clean(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fields.remove("status");
    let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|key, _| !SERVERS.contains(&key.as_str()));
    without(metadata, "labels", &[LABEL_ROLLOUT]);
    without(metadata, "annotations", &[ANNOTATION_ID, ANNOTATION_TOKEN, ANNOTATION_CONTENT]);
}

fn without(metadata: &mut Map<String, Value>, part: &str, keys: &[&str]) {
    let Some(fields) = metadata.get_mut(part).and_then(Value::as_object_mut) else { return };
    fields.retain(|key, _| !keys.contains(&key.as_str()));
    if fields.is_empty() {
        metadata.remove(part);
    }
}
