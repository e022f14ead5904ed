//! All that the server has, at one revision, and whether it is whole.

use crate::harness::Client;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The name of the custom kind's definition.
pub(crate) const DEFINITION: &str = "widgets.crash.example.com";
const ROOT: &str = "root";

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) resource: &'static str,
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) version: u64,
    /// Which write made it; 0 for those that nobody here wrote.
    pub(crate) sequence: u64,
    pub(crate) is_deleting: bool,
}

/// Everything, at one revision.
pub(crate) struct Listing {
    pub(crate) revision: u64,
    pub(crate) objects: HashMap<Address, Found>,
}

impl Address {
    pub(crate) fn new(resource: &'static str, cluster: &str, namespace: &str, name: &str) -> Self {
        let [cluster, namespace, name] = [cluster, namespace, name].map(str::to_owned);
        Address { resource, cluster, namespace, name }
    }

    /// Of an object in an answer, which names its cluster only if all were asked for.
    pub(crate) fn of(resource: &'static str, object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cluster = metadata["annotations"]["kcp.io/cluster"].as_str().unwrap_or(ROOT);
        Address {
            resource,
            cluster: cluster.to_owned(),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        }
    }

    pub(crate) fn api_version(&self) -> &'static str {
        match self.resource {
            "widgets" => "crash.example.com/v1",
            "logicalclusters" => "interlock.dev/v1alpha1",
            _ => "v1",
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.resource {
            "widgets" => "Widget",
            "logicalclusters" => "LogicalCluster",
            "namespaces" => "Namespace",
            "configmaps" => "ConfigMap",
            other => panic!("nobody writes {other}"),
        }
    }

    pub(crate) fn collection(&self) -> String {
        let cluster = match self.cluster.as_str() {
            ROOT => String::new(),
            name => format!("/clusters/{name}"),
        };
        let group = match self.api_version() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        let namespace = match self.namespace.as_str() {
            "" => String::new(),
            name => format!("/namespaces/{name}"),
        };
        format!("{cluster}{group}{namespace}/{}", self.resource)
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

impl Found {
    pub(crate) fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let sequence = metadata["annotations"]["sequence"].as_str();
        Found {
            version: crate::harness::version(object),
            sequence: sequence.map_or(0, |text| text.parse().expect("we wrote a number")),
            is_deleting: !metadata["deletionTimestamp"].is_null(),
        }
    }
}

/// Where all objects of a resource are listed.
pub(crate) const EVERYTHING: [(&str, &str); 5] = [
    ("configmaps", "/clusters/*/api/v1/configmaps"),
    ("serviceaccounts", "/clusters/*/api/v1/serviceaccounts"),
    ("namespaces", "/clusters/*/api/v1/namespaces"),
    ("widgets", "/apis/crash.example.com/v1/widgets"),
    ("logicalclusters", "/apis/interlock.dev/v1alpha1/logicalclusters"),
];

impl Listing {
    /// Reads everything.
    pub(crate) fn read(client: &mut Client) -> Listing {
        let mut listing = Listing { revision: 0, objects: HashMap::new() };
        for (resource, path) in EVERYTHING {
            let path = match listing.revision {
                0 => path.to_owned(),
                at => format!("{path}?resourceVersion={at}&resourceVersionMatch=Exact"),
            };
            let list = client.must("GET", &path, None);
            listing.revision = crate::harness::version(&list);
            for object in list["items"].as_array().expect("a list has items") {
                let twice =
                    listing.objects.insert(Address::of(resource, object), Found::of(object));
                assert!(twice.is_none(), "{object} is listed twice");
            }
        }
        listing
    }

    fn get(
        &self,
        resource: &'static str,
        cluster: &str,
        namespace: &str,
        name: &str,
    ) -> Option<&Found> {
        self.objects.get(&Address::new(resource, cluster, namespace, name))
    }

    /// Nothing is half there: what comes into being together is there together, and nothing is left
    /// of what is gone.
    pub(crate) fn check_whole(&self) {
        for (at, found) in &self.objects {
            let is_cluster_going = at.cluster != ROOT && {
                let cluster = self.get("logicalclusters", ROOT, "", &at.cluster);
                cluster.unwrap_or_else(|| panic!("{at:?} is in no cluster")).is_deleting
            };
            // What is being emptied may lack anything.
            if found.is_deleting || is_cluster_going {
                continue;
            }
            match at.resource {
                "namespaces" => self.check_namespace(&at.cluster, &at.name),
                "logicalclusters" => {
                    let namespace = self.get("namespaces", &at.name, "", "default");
                    assert!(namespace.is_some(), "{at:?} has no namespace");
                    self.check_namespace(&at.name, "default");
                }
                _ if at.namespace.is_empty() => {}
                _ => {
                    let namespace = self.get("namespaces", &at.cluster, "", &at.namespace);
                    assert!(namespace.is_some(), "{at:?} is in no namespace");
                }
            }
        }
    }

    fn check_namespace(&self, cluster: &str, name: &str) {
        for (resource, inside) in
            [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")]
        {
            let found = self.get(resource, cluster, name, inside);
            assert!(found.is_some(), "the namespace {name} of {cluster} has no {inside}");
        }
    }
}

/// The definition of the custom kind.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "crash.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"padding": {"type": "string"}}},
                }}},
            }],
        },
    })
}
