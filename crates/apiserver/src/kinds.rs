//! The built-in kinds: which there are, what they look like, what can be done to them.
//!
//! They are data, in the tables of `kinds/`: facts about Kubernetes 1.35, one table for each group
//! and version, made by `cargo xtask kinds`. A table is read line by line:
//!
//! ```text
//! group apps v1 io.k8s.api.apps.v1                     group (- for core), version, package
//! resource deployments deployment Deployment namespaced all short=deploy categories=all
//!                                                      plural, singular, kind, scope, verbs
//!   sub scale get,patch,update autoscaling/v1/Scale    a subresource, its verbs, what it serves
//! type DeploymentSpec                                  perhaps: kind (a whole object), atomic
//!   1 replicas int32?                                  the number in protobuf, the name, the type
//!   2 selector! meta-v1.LabelSelector?                 ! is required, ? is a pointer in Go
//!   2.19 configMap ConfigMapVolumeSource?              inlined by JSON, nested by protobuf
//! ```
//!
//! Types are scalars in lower case, `[list]`, `{map}`, `<list in a message of its own>`, or names,
//! of another table with its name before. What may follow: `atomic`, `granular`, `set`, `keys=a,b`
//! (list and map type); `patch=merge,retainKeys` or `patch=replace` and `mergekey=name` (strategic
//! merge patch); `written` (optional, yet in JSON when empty), `omitted` (required, yet left out
//! when empty), `omitzero` (left out if a zero struct); `default=` and JSON up to the end of the
//! line.

mod arena;
mod go_form;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use go_form::complete as complete_fields;
pub(crate) use table::{Merge, Scalar, Tables, TypeField, TypeId, TypeShape};

use crate::resource::{Resource, Scale};
use crate::schema::Schema;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use table::{Group, ResourceLine};

/// The tables, with the names by which they refer to each other.
const TABLES: &[(&str, &str)] = &[
    ("meta-v1", include_str!("../kinds/meta-v1.txt")),
    ("core-v1", include_str!("../kinds/core-v1.txt")),
    ("apps-v1", include_str!("../kinds/apps-v1.txt")),
    ("authentication-v1", include_str!("../kinds/authentication-v1.txt")),
    ("authorization-v1", include_str!("../kinds/authorization-v1.txt")),
    ("autoscaling-v1", include_str!("../kinds/autoscaling-v1.txt")),
    ("autoscaling-v2", include_str!("../kinds/autoscaling-v2.txt")),
    ("batch-v1", include_str!("../kinds/batch-v1.txt")),
    ("certificates-v1", include_str!("../kinds/certificates-v1.txt")),
    ("networking-v1", include_str!("../kinds/networking-v1.txt")),
    ("policy-v1", include_str!("../kinds/policy-v1.txt")),
    ("rbac-v1", include_str!("../kinds/rbac-v1.txt")),
    ("storage-v1", include_str!("../kinds/storage-v1.txt")),
    ("admissionregistration-v1", include_str!("../kinds/admissionregistration-v1.txt")),
    ("apiextensions-v1", include_str!("../kinds/apiextensions-v1.txt")),
    ("scheduling-v1", include_str!("../kinds/scheduling-v1.txt")),
    ("coordination-v1", include_str!("../kinds/coordination-v1.txt")),
    ("node-v1", include_str!("../kinds/node-v1.txt")),
    ("discovery-v1", include_str!("../kinds/discovery-v1.txt")),
    ("events-v1", include_str!("../kinds/events-v1.txt")),
    ("flowcontrol-v1", include_str!("../kinds/flowcontrol-v1.txt")),
    ("resource-v1", include_str!("../kinds/resource-v1.txt")),
    ("apiregistration-v1", include_str!("../kinds/apiregistration-v1.txt")),
    ("snapshot-v1", include_str!("../kinds/snapshot-v1.txt")),
];

/// The name that OpenAPI knows an object's metadata by.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All built-in kinds.
#[derive(Debug)]
pub(crate) struct Kinds {
    /// The resources, in upstream's order of groups.
    pub resources: Vec<Arc<Resource>>,
    all: Vec<BuiltIn>,
    by_plural: HashMap<(&'static str, &'static str, &'static str), usize>,
    object_meta: Arc<Schema>,
    tables: Tables,
}

/// One built-in resource and what can be done to it.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    /// What its objects look like.
    pub resource: Arc<Resource>,
    /// The name that OpenAPI knows the kind by: `io.k8s.api.apps.v1.Deployment`.
    pub openapi_name: Arc<str>,
    /// What can be done to it.
    pub verbs: Vec<&'static str>,
    /// What is below its objects: `status`, `scale`, `token`.
    pub subresources: Vec<Subresource>,
    /// What upstream's discovery gives as `storageVersionHash`; empty if it gives none.
    pub storage_version_hash: &'static str,
}

/// What is below an object.
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    /// `status`.
    pub name: &'static str,
    /// What can be done to it.
    pub verbs: Vec<&'static str>,
    /// The group of the kind that it takes and gives.
    pub group: &'static str,
    /// The version of that kind.
    pub version: &'static str,
    /// That kind: `Scale`, `TokenRequest`, or the kind of the object itself.
    pub kind: &'static str,
}

/// The built-in kinds, read when they are first asked for.
pub(crate) fn built_in() -> &'static Kinds {
    static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
        Kinds::read(TABLES).expect("the tables are part of the program, and a test reads them")
    });
    &KINDS
}

impl BuiltIn {
    /// Whether its objects are questions that are answered and never stored.
    pub(crate) fn is_virtual(&self) -> bool {
        self.verbs == ["create"]
    }
}

impl Kinds {
    /// The built-in resource of this name in a group and version.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&BuiltIn> {
        self.by_plural.get(&(group, version, plural)).map(|place| &self.all[*place])
    }

    /// The built-in resource whose objects are of this kind.
    #[cfg(test)]
    pub(crate) fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&BuiltIn> {
        self.all.iter().find(|built_in| {
            let resource = &built_in.resource;
            (&*resource.group, &*resource.version, &*resource.kind) == (group, version, kind)
        })
    }

    /// What belongs to a resource, if it is built in.
    pub(crate) fn of(&self, resource: &Resource) -> Option<&BuiltIn> {
        if resource.is_custom() {
            return None;
        }
        self.find(&resource.group, &resource.version, &resource.plural)
    }

    /// All of them, in upstream's order of groups.
    #[cfg(test)]
    pub(crate) fn all(&self) -> &[BuiltIn] {
        &self.all
    }

    /// What an object's metadata looks like, for kinds that do not say.
    pub(crate) fn object_meta(&self) -> &Arc<Schema> {
        &self.object_meta
    }

    /// Brings an object of a built-in kind into the form in which upstream's encoder would write
    /// it: structs that are no pointers are there though empty, empty optional values are not.
    pub(crate) fn as_upstream_writes(&self, openapi_name: &str, object: &mut Value) {
        if let (Some(id), Value::Object(object)) = (self.tables.find(openapi_name), object) {
            go_form::complete_deeply(&self.tables, id, object);
        }
    }

    /// An object of a built-in kind with nothing in it, as upstream's encoder would write it: what an object was before it
    /// was created, to whoever asks which fields are new.
    pub(crate) fn empty(&self, resource: &Resource) -> Option<Value> {
        let mut empty = Value::Object(Map::new());
        self.as_upstream_writes(&self.of(resource)?.openapi_name, &mut empty);
        Some(empty)
    }

    /// The tables that all of this is made from.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    fn read(texts: &[(&'static str, &'static str)]) -> Result<Kinds, String> {
        let tables = Tables::parse(texts)?;
        let object_meta = tables.find(OBJECT_META).ok_or("no ObjectMeta")?;
        let mut all = Vec::new();
        for group in &tables.groups {
            for line in &group.resources {
                all.push(built_in_resource(&tables, group, line)?);
            }
        }
        let mut by_plural = HashMap::new();
        let lines = tables.groups.iter().flat_map(|g| g.resources.iter().map(move |r| (g, r)));
        for (place, (group, line)) in lines.enumerate() {
            by_plural.insert((group.group, group.version, line.plural), place);
        }
        Ok(Kinds {
            resources: all.iter().map(|built_in| built_in.resource.clone()).collect(),
            all,
            by_plural,
            object_meta: Arc::new(arena::schema(&tables, object_meta)),
            tables,
        })
    }
}

fn built_in_resource(
    tables: &Tables,
    group: &Group,
    line: &ResourceLine,
) -> Result<BuiltIn, String> {
    let name = format!("{}.{}", group.package, line.kind);
    let id = tables.find(&name).ok_or_else(|| format!("no type {name}"))?;
    let has = |name: &str| line.subresources.iter().any(|sub| sub.name == name);
    let words = |list: &[&'static str]| list.iter().map(|word| Arc::from(*word)).collect();
    let resource = Resource {
        group: group.group.into(),
        version: group.version.into(),
        storage_version: storage_version(group).into(),
        kind: line.kind.into(),
        list_kind: format!("{}List", line.kind).into(),
        plural: line.plural.into(),
        singular: line.singular.into(),
        short_names: words(&line.short_names),
        categories: words(&line.categories),
        is_namespaced: line.is_namespaced,
        has_status: has("status"),
        scale: has("scale").then(scale_of_workloads),
        identity: "-".into(),
        schema: Arc::new(arena::schema(tables, id)),
        columns: Vec::new(),
        selectable: Vec::new(),
        deprecation: deprecation(group, line).map(Arc::from),
    };
    Ok(BuiltIn {
        resource: Arc::new(resource),
        openapi_name: tables.get(id).name.clone(),
        verbs: line.verbs.clone(),
        subresources: line.subresources.clone(),
        storage_version_hash: line.storage_version_hash,
    })
}

/// What upstream warns of whenever a kind is used.
fn deprecation(group: &Group, line: &ResourceLine) -> Option<&'static str> {
    (group.group.is_empty() && line.plural == "endpoints")
        .then_some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
}

/// Autoscalers are stored in one form, whichever version they come in.
fn storage_version(group: &Group) -> &'static str {
    if group.group == "autoscaling" { "v2" } else { group.version }
}

/// Every built-in kind that can be scaled has its numbers at the same places. The selector there is
/// an object (a plain map for ReplicationControllers), not a text as in custom kinds.
fn scale_of_workloads() -> Scale {
    Scale {
        spec_replicas: vec!["spec".into(), "replicas".into()],
        status_replicas: vec!["status".into(), "replicas".into()],
        label_selector: Some(vec!["spec".into(), "selector".into()]),
    }
}
