//! OpenAPI v3: an index, and one document for each group and version.
//!
//! `kubectl explain` reads the schemas; `kubectl apply` looks for the query parameters of the PATCH
//! operation, and for the patch strategies of fields. Documents are made on demand: the caller
//! keeps them by their hash.

mod built_in;
mod custom;
mod descriptions;
mod paths;
pub(crate) mod second;
mod wire;

#[cfg(test)]
mod tests;

use crate::discovery;
use crate::kinds::{TypeId, built_in};
use crate::resource::Resource;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Where the document of a group and version is, below `/openapi/v3/`: `api/v1`, `apis/apps/v1`.
pub(crate) fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// `/openapi/v3`: where each document is, with its hash, so that clients may keep it for ever.
///
/// The addresses begin with `/openapi/v3`. client-go then puts the path of its own server before
/// them, so the same index serves all logical clusters.
pub(crate) fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Value {
    let mut paths = Map::new();
    for (group, version, hash) in documents {
        let path = path(group, version);
        let address = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": address}));
    }
    json!({"paths": paths})
}

/// A hash of a document, for the index and the `ETag`.
pub(crate) fn hash(document: &Value) -> String {
    discovery::hash(document)
}

/// The document of one group and version, from those of the resources that are in it.
pub(crate) fn document(resources: &[Arc<Resource>], group: &str, version: &str) -> Value {
    let mut schemas = Schemas::default();
    let mut all_paths = Map::new();
    let served = resources.iter().filter(|r| &*r.group == group && &*r.version == version);
    for resource in served {
        let name = schemas.take_resource(resource);
        paths::add(&mut all_paths, resource, &name);
    }
    for operations in all_paths.values() {
        schemas.want_all_in(operations);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": all_paths,
        "components": {"schemas": schemas.finish()},
    })
}

/// The name of a resource's kind in the documents: `io.k8s.api.apps.v1.Deployment`, or for a custom
/// kind its group backwards, `example.com` as `com.example.v1.Foo`.
pub(crate) fn schema_name(resource: &Resource) -> String {
    if let Some(found) = built_in().of(resource) {
        return found.openapi_name.to_string();
    }
    let backwards: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", backwards.join("."), resource.version, resource.kind)
}

/// The schemas of one document, and the names of those that are still to be made.
#[derive(Default)]
struct Schemas {
    made: Map<String, Value>,
    wanted: BTreeSet<String>,
}

impl Schemas {
    /// Takes in a kind and its list, and returns the kind's name.
    fn take_resource(&mut self, resource: &Resource) -> String {
        let name = schema_name(resource);
        if resource.is_custom() {
            let schema = custom::whole_object(resource);
            self.want_all_in(&schema);
            self.made.insert(name.clone(), schema);
        } else {
            self.want(&name);
        }
        let has_list = discovery::Described::of(resource).verbs.contains(&"list");
        if has_list {
            self.want(LIST_META);
            self.made.insert(format!("{name}List"), list_of(resource, &name));
        }
        name
    }

    fn want(&mut self, name: &str) {
        if !self.made.contains_key(name) {
            self.wanted.insert(name.to_owned());
        }
    }

    /// Wants each type that is referred to in a part of the document.
    fn want_all_in(&mut self, part: &Value) {
        match part {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref")
                    && let Some(name) = reference.strip_prefix("#/components/schemas/")
                {
                    self.want(name);
                }
                object.values().for_each(|value| self.want_all_in(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.want_all_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Makes what is wanted, and what that wants, until nothing is.
    fn finish(mut self) -> Map<String, Value> {
        while let Some(name) = self.wanted.pop_first() {
            let schema = built_in::named(&name).unwrap_or_else(|| json!({"type": "object"}));
            self.made.insert(name, schema.clone());
            self.want_all_in(&schema);
        }
        self.made
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn list_of(resource: &Resource, name: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("A list of objects of the kind {}.", resource.kind),
        "properties": {
            "apiVersion": descriptions::put(json!({"type": "string"}), "", "apiVersion"),
            "kind": descriptions::put(json!({"type": "string"}), "", "kind"),
            "metadata": {
                "description": "What is known about the list, and where it goes on.",
                "allOf": [reference(LIST_META)],
            },
            "items": {
                "description": "The objects.", "type": "array", "items": reference(name),
            },
        },
        "required": ["items"],
        "x-kubernetes-group-version-kind": [{
            "group": &*resource.group,
            "version": &*resource.version,
            "kind": &*resource.list_kind,
        }],
    })
}

/// The last part of a type's name.
fn short_name(id: TypeId) -> &'static str {
    let name = &*built_in().tables().get(id).name;
    name.rsplit('.').next().unwrap_or(name)
}
