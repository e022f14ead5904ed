//! The ClusterRollout: the record of a cluster, and how its updates are handled.

use super::{ClusterRolloutStatus, Ref};
use crate::placement::displayed_as_on_the_wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the updates of a cluster are handled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "ClusterRollout",
    plural = "clusterrollouts",
    shortname = "cr",
    category = "interlock",
    status = "ClusterRolloutStatus",
    derive = "PartialEq",
    doc = "A ClusterRollout is the record of the updates of one cluster: what it is to run, and which request is in flight. Its status decides, and nothing else does: back it up.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster.name"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cluster is at its last good version, and no request is in flight"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.active.phase",
        description = "The phase of the request in flight; empty: none"
    ),
    printcolumn(
        name = "Active",
        type_ = "integer",
        json_path = ".status.active.version",
        description = "The version in flight"
    ),
    printcolumn(
        name = "Good",
        type_ = "integer",
        json_path = ".status.lastGood.version",
        description = "The last version that was verified"
    ),
    printcolumn(
        name = "Reachable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"TargetReachable\")].status",
        description = "Whether the agent of the cluster sent a heartbeat recently"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why the cluster is not ready"
    ),
    printcolumn(name = "Token", type_ = "integer", json_path = ".status.target.token", priority = 1),
    printcolumn(
        name = "Fence",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"FenceInForce\")].reason",
        priority = 1
    ),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Drifted\")].status",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new(
        "!has(oldSelf.status) || oldSelf.status == null || (has(self.status) && self.status != null)"
    )
    .message("the status of a ClusterRollout cannot be taken away: its tokens would be used again"),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct ClusterRolloutSpec {
    /// The WorkloadCluster that the record is of.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("a ClusterRollout is of one cluster: another cluster has another record"))]
    pub cluster: Ref,
    /// No further request starts; one in flight goes on.
    #[serde(default)]
    pub paused: bool,
    /// Selects the namespaces whose requests are taken. Empty: all namespaces.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub allowed_namespaces: LabelSelector,
    /// What happens to objects that others changed while no request is in flight. Repair: they are put right. Report:
    /// they are only named.
    #[serde(default)]
    pub drift: DriftPolicy,
    /// How many requests that have ended are kept in the record, beside the last good one.
    #[serde(default = "ClusterRolloutSpec::keep_history")]
    #[schemars(range(min = 1, max = 50))]
    pub keep_history: u32,
    /// How a request is rolled back.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub rollback: Rollback,
    /// What happens to the objects of a request that fails while no version was ever good. Remove: they are deleted.
    /// Keep: they stay, and the cluster is Degraded.
    #[serde(default)]
    pub first_install_failure: FirstInstallFailure,
    /// Whether requests start on a cluster that cannot refuse late writes of older ones. Required: none starts.
    /// BestEffort: they start, and late writes are found and removed.
    #[serde(default)]
    pub fence: FencePolicy,
    /// After how many seconds a write that an API server took before the fence is in its store, or never will be.
    #[serde(default = "ClusterRolloutSpec::settle_seconds")]
    #[schemars(range(min = 0, max = 3_600))]
    pub settle_seconds: u32,
}

impl ClusterRolloutSpec {
    /// The record of a cluster with all defaults.
    pub fn new(cluster: Ref) -> Self {
        Self {
            cluster,
            paused: false,
            allowed_namespaces: LabelSelector::default(),
            drift: DriftPolicy::default(),
            keep_history: Self::keep_history(),
            rollback: Rollback::default(),
            first_install_failure: FirstInstallFailure::default(),
            fence: FencePolicy::default(),
            settle_seconds: Self::settle_seconds(),
        }
    }

    fn keep_history() -> u32 {
        10
    }

    fn settle_seconds() -> u32 {
        75
    }
}

/// How a request is rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// How often it is tried.
    #[serde(default = "Rollback::tries")]
    #[schemars(range(min = 1, max = 100))]
    pub tries: u32,
    /// How many seconds a try may take.
    #[serde(default = "Rollback::deadline_seconds")]
    #[schemars(range(min = 1, max = 86_400))]
    pub deadline_seconds: u32,
}

impl Rollback {
    fn tries() -> u32 {
        3
    }

    fn deadline_seconds() -> u32 {
        600
    }
}

impl Default for Rollback {
    fn default() -> Self {
        Self { tries: Self::tries(), deadline_seconds: Self::deadline_seconds() }
    }
}

/// What happens to objects that others changed.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum DriftPolicy {
    /// They are put right.
    #[default]
    Repair,
    /// They are only named.
    Report,
}
displayed_as_on_the_wire!(DriftPolicy { Repair, Report });

/// What happens to the objects of a failed request while no version was ever good.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum FirstInstallFailure {
    /// They are deleted.
    #[default]
    Remove,
    /// They stay, and the cluster is Degraded.
    Keep,
}
displayed_as_on_the_wire!(FirstInstallFailure { Remove, Keep });

/// Whether requests start on a cluster that cannot refuse late writes.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum FencePolicy {
    /// None starts.
    #[default]
    Required,
    /// They start, and late writes are found and removed.
    BestEffort,
}
displayed_as_on_the_wire!(FencePolicy { Required, BestEffort });

impl ClusterRollout {
    /// The status, or that of a record that nothing was written to yet.
    pub fn status_or_default(&self) -> ClusterRolloutStatus {
        self.status.clone().unwrap_or_default()
    }
}
