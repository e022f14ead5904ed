//! Objects that requests are about, and ways to spoil them.

use super::requests::Random;
use serde_json::{Value, json};

/// A kind, and an object of it that is as it should be.
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    body: fn() -> Value,
}

const fn kind(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    body: fn() -> Value,
) -> Kind {
    Kind { group, plural, kind, has_status: false, has_scale: false, body }
}

impl Kind {
    const fn with_status(mut self) -> Kind {
        self.has_status = true;
        self
    }

    const fn with_scale(mut self) -> Kind {
        self.has_status = true;
        self.has_scale = true;
        self
    }

    /// Where its objects are in a namespace.
    pub(super) fn path(&self, namespace: &str) -> String {
        let root = if self.group.contains('/') { "/apis" } else { "/api" };
        format!("{root}/{}/namespaces/{namespace}/{}", self.group, self.plural)
    }

    /// An object as it should be.
    pub(super) fn object(&self, namespace: &str, name: &str) -> Value {
        let mut object = (self.body)();
        object["apiVersion"] = json!(self.group);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({"name": name, "namespace": namespace, "labels": {"app": name}});
        object
    }
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/a:1"}]},
    })
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "a"}})
}

pub(super) const KINDS: [Kind; 21] = [
    kind("v1", "configmaps", "ConfigMap", || json!({"data": {"a": "b"}})),
    kind("v1", "secrets", "Secret", || json!({"stringData": {"a": "b"}})),
    kind("v1", "services", "Service", || {
        json!({"spec": {"clusterIP": "None", "selector": {"app": "a"}, "ports": [{"port": 80}]}})
    })
    .with_status(),
    kind("v1", "pods", "Pod", || json!({"spec": template()["spec"]})).with_status(),
    kind("v1", "serviceaccounts", "ServiceAccount", || json!({})),
    kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim", || {
        json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }})
    })
    .with_status(),
    kind("v1", "limitranges", "LimitRange", || {
        json!({"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Gi"}}]}})
    }),
    kind("v1", "endpoints", "Endpoints", || {
        json!({"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]})
    }),
    kind("v1", "podtemplates", "PodTemplate", || json!({"template": template()})),
    kind("v1", "replicationcontrollers", "ReplicationController", || {
        json!({"spec": {"selector": {"app": "a"}, "template": template()}})
    })
    .with_scale(),
    kind("apps/v1", "deployments", "Deployment", || {
        json!({"spec": {"selector": selector(), "template": template()}})
    })
    .with_scale(),
    kind("apps/v1", "statefulsets", "StatefulSet", || {
        json!({"spec": {"serviceName": "a", "selector": selector(), "template": template()}})
    })
    .with_scale(),
    kind("apps/v1", "daemonsets", "DaemonSet", || {
        json!({"spec": {"selector": selector(), "template": template()}})
    })
    .with_status(),
    kind("batch/v1", "jobs", "Job", || {
        let mut template = template();
        template["spec"]["restartPolicy"] = json!("Never");
        json!({"spec": {"template": {"spec": template["spec"]}}})
    })
    .with_status(),
    kind("batch/v1", "cronjobs", "CronJob", || {
        let mut pod = template()["spec"].clone();
        pod["restartPolicy"] = json!("OnFailure");
        json!({"spec": {
            "schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}},
        }})
    })
    .with_status(),
    kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", || {
        json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}})
    }),
    kind("networking.k8s.io/v1", "ingresses", "Ingress", || {
        json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}})
    })
    .with_status(),
    kind("rbac.authorization.k8s.io/v1", "roles", "Role", || {
        json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    }),
    kind("coordination.k8s.io/v1", "leases", "Lease", || {
        json!({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 30}})
    }),
    kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", || {
        json!({"spec": {"minAvailable": 1, "selector": selector()}})
    })
    .with_status(),
    kind("example.com/v1", "widgets", "Widget", || json!({"spec": {"size": 3, "colour": "red"}}))
        .with_scale(),
];

/// A kind of our own, with a schema, rules, defaults and subresources.
pub(super) fn custom_kind() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 0, "maximum": 100},
                    "colour": {"type": "string", "enum": ["red", "green", "blue"]},
                    "replicas": {"type": "integer", "default": 1},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
                "x-kubernetes-validations": [
                    {"rule": "self.size != 13", "message": "unlucky"},
                    {"rule": "!has(self.colour) || self.colour != 'blue' || self.size > 1"},
                ],
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}},
            },
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    },
                },
            }],
        },
    })
}

/// Values that belong nowhere in particular.
fn odd(random: &mut Random) -> Value {
    random.one(&[
        json!(null),
        json!(""),
        json!("Not A Name!"),
        json!(-1),
        json!(70_000),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
        json!("a".repeat(300)),
        json!(["a", "a"]),
        json!({"unknown": "x"}),
    ])
}

/// Changes one thing about an object, anywhere in it: it may be right or wrong afterwards.
pub(super) fn spoil(object: &mut Value, random: &mut Random) {
    match random.below(12) {
        0 => object["metadata"]["name"] = odd(random),
        1 => object["metadata"]["labels"]["app"] = odd(random),
        2 => object["metadata"]["annotations"] = json!({"a": odd(random)}),
        3 => object["metadata"]["unknown"] = json!("x"),
        4 => object["unknown"] = odd(random),
        5 => {
            object["apiVersion"] =
                random.one(&[json!("v9"), json!(""), json!("apps/v1"), json!(null)])
        }
        6 => object["kind"] = random.one(&[json!("Thing"), json!(""), json!(null)]),
        7 => object["metadata"]["namespace"] = random.one(&[json!("elsewhere"), json!("")]),
        8 => {
            object["metadata"]["finalizers"] =
                random.one(&[json!(["example.com/a"]), json!(["a"]), json!("a")])
        }
        9 => {
            object["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": odd(random)}]);
        }
        _ => {
            let mut places = Vec::new();
            paths(object, "", &mut places);
            let inner: Vec<String> = places
                .into_iter()
                .filter(|place| {
                    !["/metadata", "/kind", "/apiVersion"].iter().any(|top| place.starts_with(top))
                })
                .collect();
            if !inner.is_empty() {
                let place = random.one(&inner);
                let value = odd(random);
                if let Some(found) = object.pointer_mut(&place) {
                    *found = value;
                }
            }
        }
    }
}

fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut add = |key: &str, inner: &Value| {
        let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(at.clone());
        paths(inner, &at, found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| add(key, inner)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, inner)| add(&place.to_string(), inner));
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}
