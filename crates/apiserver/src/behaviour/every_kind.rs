//! For tests: each built-in kind, and random objects that have the fields these kinds look at.

use crate::resource::Resource;
use crate::schema::{Node, Schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) const EVERY_KIND: [(&str, &str); 56] = [
    ("", "Namespace"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "Event"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "Service"),
    ("", "Endpoints"),
    ("", "ReplicationController"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Node"),
    ("", "ResourceQuota"),
    ("", "LimitRange"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotContent"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("coordination.k8s.io", "Lease"),
    ("coordination.k8s.io", "LeaseCandidate"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("events.k8s.io", "Event"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
];

/// A built-in kind whose schema takes anything.
pub(crate) fn built_in(group: &str, kind: &str) -> Resource {
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    let cluster_wide = [
        "Namespace",
        "Node",
        "PersistentVolume",
        "StorageClass",
        "ClusterRole",
        "PriorityClass",
        "ClusterRoleBinding",
        "CSIDriver",
        "CSINode",
        "RuntimeClass",
        "IngressClass",
        "VolumeAttachment",
        "VolumeAttributesClass",
    ];
    let without_status = ["ConfigMap", "Secret", "Lease", "StorageClass", "Role", "NetworkPolicy"];
    let mut schema = Schema::default();
    schema.add(Node::default());
    Resource {
        group: group.into(),
        version: version.into(),
        storage_version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: format!("{}s", kind.to_lowercase()).into(),
        singular: kind.to_lowercase().into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        is_namespaced: !cluster_wide.contains(&kind),
        has_status: !without_status.contains(&kind),
        scale: None,
        identity: "-".into(),
        schema: Arc::new(schema),
        columns: Vec::new(),
        selectable: Vec::new(),
        deprecation: None,
    }
}

/// A small generator of odd objects. The same seed gives the same objects.
pub(crate) struct Noise(u64);

const FIELDS: [&str; 100] = [
    "metadata",
    "spec",
    "status",
    "template",
    "jobTemplate",
    "name",
    "namespace",
    "labels",
    "annotations",
    "ownerReferences",
    "creationTimestamp",
    "deletionTimestamp",
    "containers",
    "initContainers",
    "volumes",
    "ports",
    "env",
    "resources",
    "limits",
    "requests",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "type",
    "data",
    "binaryData",
    "stringData",
    "immutable",
    "replicas",
    "image",
    "port",
    "targetPort",
    "protocol",
    "conditions",
    "phase",
    "capacity",
    "storage",
    "accessModes",
    "strategy",
    "rollingUpdate",
    "maxSurge",
    "maxUnavailable",
    "schedule",
    "completions",
    "parallelism",
    "livenessProbe",
    "httpGet",
    "volumeMounts",
    "mountPath",
    "secret",
    "configMap",
    "projected",
    "sources",
    "hard",
    "used",
    "rules",
    "host",
    "http",
    "paths",
    "path",
    "backend",
    "service",
    "tls",
    "subsets",
    "addresses",
    "ip",
    "webhooks",
    "policyTypes",
    "egress",
    "ingress",
    "metrics",
    "resource",
    "target",
    "count",
    "series",
    "involvedObject",
    "regarding",
    "eventTime",
    "lastObservedTime",
    "source",
    "state",
    "terminated",
    "waiting",
    "containerStatuses",
    "initContainerStatuses",
    "lastState",
    "restartCount",
    "clusterIP",
    "clusterIPs",
    "externalIPs",
    "claimRef",
    "volumeMode",
    "value",
    "behavior",
    "scaleUp",
    "limited",
    "queuing",
];

const TEXTS: [&str; 24] = [
    "",
    "a",
    "-a-",
    "A b",
    "Ready",
    "True",
    "25%",
    "100m",
    "1Gi",
    "-1",
    "TCP",
    "UDP",
    "Always",
    "RollingUpdate",
    "ClusterIP",
    "None",
    "LoadBalancer",
    "* * * * *",
    "2024-01-01T00:00:00Z",
    "nginx:latest",
    "é/ü",
    "Container",
    "kubernetes.io/tls",
    "x.y/z",
];

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// An object that has metadata, a spec and a status more often than not.
    pub(crate) fn object(&mut self) -> Value {
        let mut object = Map::new();
        for field in ["metadata", "spec", "status"] {
            object.insert(field.to_owned(), self.value(5));
        }
        for _ in 0..self.below(6) {
            let field = self.field();
            object.insert(field, self.value(4));
        }
        Value::Object(object)
    }

    fn field(&mut self) -> String {
        FIELDS[usize::try_from(self.below(100)).expect("small")].to_owned()
    }

    fn value(&mut self, depth: u64) -> Value {
        if depth == 0 {
            return self.scalar();
        }
        match self.below(8) {
            0 | 1 => self.scalar(),
            2 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let mut object = Map::new();
                for _ in 0..self.below(6) {
                    let field = self.field();
                    // Lists of objects are what most code looks into.
                    let is_list = self.below(4) == 0;
                    let inner = self.value(depth - 1);
                    object.insert(field, if is_list { json!([inner]) } else { inner });
                }
                Value::Object(object)
            }
        }
    }

    fn scalar(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(i64::from_ne_bytes(self.below(u64::MAX).to_ne_bytes())),
            3 => json!(self.below(70_000)),
            4 => json!(-1.5),
            _ => json!(TEXTS[usize::try_from(self.below(24)).expect("small")]),
        }
    }
}
