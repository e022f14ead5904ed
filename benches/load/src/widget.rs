//! The kind that is used: a custom resource of 2 KiB as it is sent, with a schema such as people write.

use bytes::Bytes;
use serde_json::{Value, json};

/// How many of them share the load: a logical cluster has a rate of writes that it may not pass.
pub const HOMES: usize = 8;
const BYTES: usize = 2048;

/// What the load is shared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Homes {
    /// Logical clusters, each with a namespace.
    Clusters,
    /// Namespaces of one cluster.
    Namespaces,
}

impl Homes {
    /// What the paths of one of them begin with.
    pub fn root(self, home: usize) -> String {
        match self {
            Homes::Clusters => format!("/clusters/bench-{home}"),
            Homes::Namespaces => String::new(),
        }
    }

    /// The namespace in one of them.
    pub fn namespace(self, home: usize) -> String {
        match self {
            Homes::Clusters => "default".to_owned(),
            Homes::Namespaces => format!("bench-{home}"),
        }
    }

    /// Where the objects of one of them are.
    pub fn path(self, home: usize) -> String {
        let (root, namespace) = (self.root(home), self.namespace(home));
        format!("{root}/apis/bench.interlock.dev/v1/namespaces/{namespace}/widgets")
    }
}

/// The definition of the kind.
pub fn definition() -> Value {
    let text = json!({"type": "string", "maxLength": 256});
    let part = json!({
        "type": "object", "required": ["name", "image"],
        "properties": {
            "name": text, "image": text,
            "cores": {"type": "integer", "minimum": 0},
            "arguments": {"type": "array", "items": text, "maxItems": 16},
        },
    });
    let condition = json!({
        "type": "object", "required": ["type", "status"],
        "properties": {"type": text, "status": text, "reason": text, "message": text},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bench.interlock.dev"},
        "spec": {
            "group": "bench.interlock.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "sequence": {"type": "integer"},
                        "owner": text,
                        "parts": {
                            "type": "array", "items": part, "maxItems": 32,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                        },
                    }},
                    "status": {"type": "object", "properties": {
                        "conditions": {
                            "type": "array", "items": condition, "maxItems": 16,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["type"],
                        },
                    }},
                }}},
            }],
        },
    })
}

/// An object that can be sent again and again with another number in it.
pub struct Widget {
    before: String,
    after: String,
}

impl Widget {
    /// One of a name; `resourceVersion` goes with it if one is named.
    pub fn new(name: &str, resource_version: &str) -> Self {
        let part = |index: usize| {
            json!({
                "name": format!("part-{index}"), "cores": index,
                "image": format!("registry.example.com/team/part-{index}:v1.2.3"),
                "arguments": ["--address=0.0.0.0:8080", "--level=info"],
            })
        };
        let mut object = json!({
            "apiVersion": "bench.interlock.dev/v1", "kind": "Widget",
            "metadata": {
                "name": name,
                "labels": {"app": "bench", "tier": "middle"},
                "annotations": {"bench.interlock.dev/filling": ""},
            },
            "spec": {"owner": "team-a", "parts": (0..10).map(part).collect::<Vec<_>>()},
        });
        if !resource_version.is_empty() {
            object["metadata"]["resourceVersion"] = json!(resource_version);
        }
        let room = BYTES.saturating_sub(object.to_string().len() + 24);
        object["metadata"]["annotations"]["bench.interlock.dev/filling"] = json!("x".repeat(room));
        object["spec"]["sequence"] = json!(777_777_777);
        let text = object.to_string();
        let (before, after) = text.split_once("777777777").expect("it was just put in");
        Widget { before: before.to_owned(), after: after.to_owned() }
    }

    /// The object with a number in it.
    pub fn body(&self, sequence: usize) -> Bytes {
        Bytes::from(format!("{}{sequence}{}", self.before, self.after))
    }
}
