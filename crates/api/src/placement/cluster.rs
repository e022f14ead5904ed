//! The WorkloadCluster: a place where namespaces can run.

use super::Ref;
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "WorkloadCluster",
    plural = "workloadclusters",
    shortname = "wc",
    category = "interlock",
    status = "WorkloadClusterStatus",
    derive = "PartialEq",
    doc = "A WorkloadCluster is a cluster that namespaces can run on. Placements select clusters by their labels.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cluster accepts new grants"
    ),
    printcolumn(
        name = "Reachable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Reachable\")].status",
        description = "Whether the syncer sent a heartbeat recently"
    ),
    printcolumn(
        name = "Grants",
        type_ = "integer",
        json_path = ".status.grants",
        description = "Number of namespaces that the cluster owns"
    ),
    printcolumn(
        name = "Unschedulable",
        type_ = "boolean",
        json_path = ".spec.unschedulable",
        description = "Whether new grants are refused"
    ),
    printcolumn(
        name = "Drain",
        type_ = "boolean",
        json_path = ".spec.drain",
        description = "Whether the namespaces of the cluster move away"
    ),
    printcolumn(
        name = "Syncer",
        type_ = "string",
        json_path = ".status.syncer.version",
        description = "The version of the syncer",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct WorkloadClusterSpec {
    /// How the syncer reaches the cluster: exactly one of logicalCluster, kubeconfigSecret and
    /// inCluster.
    pub connection: Connection,
    /// No new grants are made to the cluster; its namespaces stay.
    #[serde(default)]
    pub unschedulable: bool,
    /// Namespaces that fit on another cluster move away, and no new grants are made to the cluster.
    #[serde(default)]
    pub drain: bool,
    /// Further kinds of namespaced objects that are copied to this cluster, in addition to Secrets,
    /// ConfigMaps, ServiceAccounts, Services, claims, Pods, Deployments and StatefulSets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["group".to_owned(), "plural".to_owned()]))]
    pub resources: Vec<FurtherKind>,
    /// The machines that the cluster runs on, each at the epoch that it was assigned with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub machines: Vec<Machine>,
    /// Who wants the cluster to be drained. While there is one, the namespaces of the cluster move away, and
    /// no new grants are made to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["requester".to_owned()]))]
    pub drains: Vec<Drain>,
}

/// A machine that a cluster runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The PhysicalNode.
    pub node: Ref,
    /// The epoch of its assignment: with another epoch it is not the machine of this cluster.
    #[schemars(range(min = 1))]
    pub epoch: i64,
}

/// A reason to drain a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// Who wants it, as in nodes/<uid>/<epoch>. Only the requester takes the entry away.
    #[schemars(length(min = 1, max = 253))]
    pub requester: String,
    /// Why, in a sentence.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
}

/// How a cluster is reached: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Connection {
    /// A logical cluster of the same API server, by its name.
    LogicalCluster(#[schemars(length(min = 1, max = 253))] String),
    /// A Secret at the hub that holds the kubeconfig of another API server.
    KubeconfigSecret(SecretKey),
    /// The hub does not connect to the cluster: the syncer runs in the cluster and connects to the hub.
    InCluster {},
}

/// One entry of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKey {
    /// The namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the Secret.
    #[serde(default = "SecretKey::kubeconfig")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

impl SecretKey {
    fn kubeconfig() -> String {
        "kubeconfig".to_owned()
    }
}

/// A kind of namespaced objects.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct FurtherKind {
    /// The API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version of the group, as in v1.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The kind, as in NetworkPolicy.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The plural name in paths, as in networkpolicies.
    #[schemars(length(min = 1, max = 63))]
    pub plural: String,
}

/// The observed state of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct WorkloadClusterStatus {
    /// The syncer that serves the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Syncer")]
    pub syncer: Option<Syncer>,
    /// The heartbeat of the syncer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Heartbeat")]
    pub heartbeat: Option<Heartbeat>,
    /// The storage classes of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub storage_classes: Vec<StorageClass>,
    /// The URL of the issuer of the service-account tokens of the cluster, as the cluster itself says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 2048))]
    pub issuer: Option<String>,
    /// Number of namespaces that the cluster owns.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub grants: i32,
    /// The requesters of spec.drains for whom the cluster is drained: no grant is held there, and none is to
    /// come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub drained: Vec<String>,
    /// Ready, Reachable, RuntimeReady, IssuerReady and Drained; while the cluster is being deleted, also what the deletion waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// Who serves a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Syncer {
    /// The instance of the syncer; it changes with each start.
    pub instance: String,
    /// The version of the syncer.
    pub version: String,
    /// The boot ID of the machine that the syncer runs on.
    #[serde(rename = "bootID")]
    pub boot_id: String,
}

/// A heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// A counter of the syncer; each change is a heartbeat.
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// When the syncer last increased the sequence, by its own clock; only the syncer uses this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub sent_at: Option<Time>,
    /// The sequence that receivedAt belongs to; if it differs from sequence, the hub has not yet seen
    /// the last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub received_sequence: Option<i64>,
    /// When the hub saw the sequence change, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub received_at: Option<Time>,
}

/// A storage class of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// The name of the storage class.
    pub name: String,
    /// The provisioner of the storage class.
    #[serde(default)]
    pub provisioner: String,
    /// Whether this is the default storage class.
    #[serde(default)]
    pub is_default: bool,
    /// Whether the class supports snapshots; data in other classes cannot be moved.
    #[serde(default)]
    pub can_snapshot: bool,
    /// The free bytes for new volumes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub free_bytes: Option<i64>,
}
