//! The WorkloadCluster: a place where namespaces can run.

use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wished of it.
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
    doc = "A cluster that namespaces can run on. Its labels say where it is and what it is like; Placements select by them.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether new grants may go there"
    ),
    printcolumn(
        name = "Reachable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Reachable\")].status",
        description = "Whether its syncer was heard of lately"
    ),
    printcolumn(
        name = "Grants",
        type_ = "integer",
        json_path = ".status.grants",
        description = "How many namespaces it owns"
    ),
    printcolumn(
        name = "Unschedulable",
        type_ = "boolean",
        json_path = ".spec.unschedulable",
        description = "Whether new grants are kept away"
    ),
    printcolumn(
        name = "Drain",
        type_ = "boolean",
        json_path = ".spec.drain",
        description = "Whether what it owns moves away"
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
    /// Keeps new grants away; what runs there stays.
    #[serde(default)]
    pub unschedulable: bool,
    /// Moves away what fits elsewhere, and keeps new grants away.
    #[serde(default)]
    pub drain: bool,
    /// Further kinds of namespaced objects that are carried down to this cluster, besides Secrets,
    /// ConfigMaps, ServiceAccounts, Services, claims, Pods, Deployments and StatefulSets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["group".to_owned(), "plural".to_owned()]))]
    pub resources: Vec<FurtherKind>,
}

/// How a cluster is reached: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Connection {
    /// A logical cluster of the same API server, by its name.
    LogicalCluster(#[schemars(length(min = 1, max = 253))] String),
    /// A Secret at the hub that holds the kubeconfig of another API server.
    KubeconfigSecret(SecretKey),
    /// Not at all from the hub: its syncer runs in the cluster, and comes to the hub.
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

/// What is known about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct WorkloadClusterStatus {
    /// The syncer that serves the cluster, as it introduces itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Syncer")]
    pub syncer: Option<Syncer>,
    /// The sign of life of the syncer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Heartbeat")]
    pub heartbeat: Option<Heartbeat>,
    /// The storage classes of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub storage_classes: Vec<StorageClass>,
    /// How many namespaces the cluster owns.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub grants: i32,
    /// Ready, Reachable and RuntimeReady; when it is being deleted, also what it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// Who serves a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Syncer {
    /// Which instance it is; another one after each start.
    pub instance: String,
    /// The version it was built as.
    pub version: String,
    /// The boot of the machine that it runs on; another one after each restart of the machine.
    #[serde(rename = "bootID")]
    pub boot_id: String,
}

/// A sign of life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// Counted up by the syncer; that it changes is the sign of life.
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// When the syncer counted last, by its own clock: it alone reads it, to know when to count next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub sent_at: Option<Time>,
    /// The sequence that receivedAt was noted for; when it differs from sequence, a new sign of life
    /// has not been noted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub received_sequence: Option<i64>,
    /// When the hub saw the sequence change, by the clock of the hub alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub received_at: Option<Time>,
}

/// A storage class, as far as moves need to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// Its name.
    pub name: String,
    /// Who makes its volumes.
    #[serde(default)]
    pub provisioner: String,
    /// Whether claims that name no class get this one.
    #[serde(default)]
    pub is_default: bool,
    /// Whether its volumes can be snapshotted; a class that cannot takes part in no move.
    #[serde(default)]
    pub can_snapshot: bool,
    /// How many bytes are free for new volumes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub free_bytes: Option<i64>,
}
