//! The RolloutReport: what the agent of a cluster found and did, about one token.

use super::Ref;
use crate::placement::displayed_as_on_the_wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which cluster it is about.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema,
)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "RolloutReport",
    plural = "rolloutreports",
    shortname = "rr",
    category = "interlock",
    status = "RolloutReportStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A RolloutReport is what the agent of a cluster says of the target of the ClusterRollout of the same name. The hub makes it, and only the agent writes its status.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster.name"),
    printcolumn(
        name = "Token",
        type_ = "integer",
        json_path = ".status.token",
        description = "The target that it is about"
    ),
    printcolumn(name = "Verdict", type_ = "string", json_path = ".status.verdict"),
    printcolumn(name = "Wave", type_ = "integer", json_path = ".status.wave"),
    printcolumn(name = "Objects", type_ = "integer", json_path = ".status.objects.wanted"),
    printcolumn(name = "Applied", type_ = "integer", json_path = ".status.objects.applied"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.objects.current"),
    printcolumn(name = "Fence", type_ = "string", json_path = ".status.fence.mode"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self == oldSelf").message("a RolloutReport is of one cluster")
)]
pub struct RolloutReportSpec {
    /// The WorkloadCluster.
    pub cluster: Ref,
}

/// What the agent says. Every word of it is about its token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct RolloutReportStatus {
    /// The token of the target that it is about.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub token: i64,
    /// The fence on the cluster; absent: the agent has not looked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FenceReport")]
    pub fence: Option<FenceReport>,
    /// The wave that is being applied.
    #[serde(default)]
    pub wave: i32,
    /// How far the cluster is.
    #[serde(default)]
    pub verdict: Verdict,
    /// Since when all objects are healthy without a break, by the clock of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub healthy_since: Option<Time>,
    /// How many objects there are, and how far they are.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub objects: ObjectCounts,
    /// Objects that are not healthy yet, the first 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub not_ready: Vec<FailedObject>,
    /// Objects that were refused or failed, the first 20. They do not get well by waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub failed: Vec<FailedObject>,
    /// Objects that are not in the target, and that are kept for their data; the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 640)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub kept: Vec<String>,
    /// Objects that differ from the target after it was verified, the first 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 640)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub drifted: Vec<String>,
    /// Objects that the agent writes next, the first 200: those of the present wave that differ from the target, or
    /// those that are pruned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 640)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub pending: Vec<String>,
    /// When the agent wrote this, by its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub observed_at: Option<Time>,
    /// The answer about the request that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PreflightReport")]
    pub preflight: Option<PreflightReport>,
}

/// The fence on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FenceReport {
    /// The token of the fence: writes under lower ones are refused.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub token: i64,
    /// How the cluster refuses them.
    #[serde(default)]
    pub mode: FenceMode,
    /// When every API server had refused a probe, by the clock of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub proven_at: Option<Time>,
}

/// How a cluster refuses writes under older tokens.
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
pub enum FenceMode {
    /// It does not.
    #[default]
    None,
    /// Each API server was seen to refuse them, and what they took before has settled.
    Probed,
    /// The check and the commit are one.
    Exact,
}
displayed_as_on_the_wire!(FenceMode { None, Probed, Exact });

/// How far a cluster is with its target.
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
pub enum Verdict {
    /// Objects are still to be applied or pruned.
    #[default]
    Applying,
    /// The objects equal the target, and all others are gone or kept.
    Applied,
    /// They were all healthy for as long as the target says.
    Soaked,
}
displayed_as_on_the_wire!(Verdict { Applying, Applied, Soaked });

/// How many objects there are, and how far they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// In the target.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub wanted: u32,
    /// Of these, on the cluster as they are wanted.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub applied: u32,
    /// Of these, healthy.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub current: u32,
    /// Not in the target, and still to be pruned.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub to_prune: u32,
}

/// An object, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedObject {
    /// The object, as in apps/Deployment/shop/web.
    #[schemars(length(min = 1, max = 640))]
    pub id: String,
    /// In one word.
    #[schemars(length(min = 1, max = 64))]
    pub code: String,
    /// In a sentence.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The answer about a request that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreflightReport {
    /// The uid of the ClusterUpdate.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// The digest that was checked.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
    /// What would fail, the first 20. Empty: the request may start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub failures: Vec<FailedObject>,
}

impl RolloutReport {
    /// The status, or that of a report that its agent has not written yet.
    pub fn status_or_default(&self) -> RolloutReportStatus {
        self.status.clone().unwrap_or_default()
    }
}
