//! The FleetUpdate: one request for many clusters.

use super::{ClusterUpdateSpec, PreflightMode, Source, UpdatePhase};
use crate::placement::displayed_as_on_the_wire;
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is asked for, where, and in which order. It cannot be edited, but for spec.cancel and spec.maxUnavailable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "FleetUpdate",
    plural = "fleetupdates",
    shortname = "fu",
    category = "interlock",
    namespaced,
    status = "FleetUpdateStatus",
    derive = "PartialEq",
    doc = "A FleetUpdate asks for a bundle of manifests on many clusters: the canary first, then one partition after the other. It makes a ClusterUpdate for each cluster.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.reason",
        description = "Why, in one word"
    ),
    printcolumn(
        name = "Partition",
        type_ = "string",
        json_path = ".status.partition",
        description = "The partition that is being updated"
    ),
    printcolumn(
        name = "Clusters",
        type_ = "integer",
        json_path = ".status.clusters",
        description = "Number of selected clusters"
    ),
    printcolumn(name = "Succeeded", type_ = "integer", json_path = ".status.succeeded"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.failed"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new(
        "self.deadlineSeconds == oldSelf.deadlineSeconds && self.soakSeconds == oldSelf.soakSeconds \
         && self.startDeadlineSeconds == oldSelf.startDeadlineSeconds && self.preflight == oldSelf.preflight \
         && self.drainFirst == oldSelf.drainFirst && self.preempt == oldSelf.preempt \
         && self.retryBad == oldSelf.retryBad && self.force == oldSelf.force && self.pruneData == oldSelf.pruneData"
    )
    .message("a FleetUpdate cannot be edited, but for cancel, selectors, policies and maxUnavailable: create another one")
)]
pub struct FleetUpdateSpec {
    /// The bundle: exactly one of inline, configMap and packed.
    #[x_kube(validation = Rule::new("!has(self.revision)")
        .message("a revision is in the history of one cluster: a FleetUpdate needs inline, configMap or packed"))]
    #[x_kube(validation = Rule::new(
        "has(self.inline) == has(oldSelf.inline) && has(self.configMap) == has(oldSelf.configMap) \
         && has(self.packed) == has(oldSelf.packed) \
         && (!has(self.configMap) || self.configMap == oldSelf.configMap) \
         && (!has(self.packed) || self.packed == oldSelf.packed)"
    ).message("the source of a FleetUpdate cannot be edited: create another one"))]
    pub source: Source,
    /// From the start on a cluster until all objects are healthy there, in seconds.
    #[serde(default = "ClusterUpdateSpec::deadline_seconds")]
    #[schemars(range(min = 1, max = 86_400))]
    pub deadline_seconds: u32,
    /// For how many seconds all objects have to be healthy without a break.
    #[serde(default = "ClusterUpdateSpec::soak_seconds")]
    #[schemars(range(min = 0, max = 86_400))]
    pub soak_seconds: u32,
    /// From the number of a ClusterUpdate until its start, in seconds.
    #[serde(default = "ClusterUpdateSpec::start_deadline_seconds")]
    #[schemars(range(min = 1, max = 604_800))]
    pub start_deadline_seconds: u32,
    /// What is checked before the start on a cluster.
    #[serde(default)]
    pub preflight: PreflightMode,
    /// Placed namespaces move away from a cluster first.
    #[serde(default)]
    pub drain_first: bool,
    /// A request that is in flight on a cluster is rolled back first.
    #[serde(default)]
    pub preempt: bool,
    /// The bundle is applied although it failed on a cluster before.
    #[serde(default)]
    pub retry_bad: bool,
    /// Fields and objects of others are taken over.
    #[serde(default)]
    pub force: bool,
    /// Namespaces, PersistentVolumeClaims and CustomResourceDefinitions that are not in the bundle are deleted too.
    #[serde(default)]
    pub prune_data: bool,
    /// Set this to end the request: its ClusterUpdates are cancelled. To delete the request means the same.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self || !oldSelf")
        .message("a FleetUpdate that was cancelled stays so: create another one"))]
    pub cancel: bool,
    /// Selects WorkloadClusters by their labels. Empty: all clusters.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub selector: LabelSelector,
    /// Of these clusters, those that come first, as a partition of their own; absent: there is no canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelSelector")]
    pub canary: Option<LabelSelector>,
    /// The partitions, in order. A cluster belongs to the first one that selects it, and those that none selects come
    /// last, together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub partitions: Vec<Partition>,
    /// The most clusters that may be in flight, drained or not Ready at once.
    #[serde(default = "FleetUpdateSpec::max_unavailable")]
    #[schemars(range(min = 1, max = 1_000))]
    pub max_unavailable: u32,
    /// What happens when a cluster fails. Pause: no further cluster starts. Continue: the others go on.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// What happens to a cluster whose agent sends no heartbeat. Wait: its turn waits. Skip: it is left out. Fail: it
    /// counts as failed.
    #[serde(default)]
    pub on_unreachable: OnClusterUnreachable,
}

impl FleetUpdateSpec {
    /// A request for all clusters with all defaults.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            deadline_seconds: ClusterUpdateSpec::deadline_seconds(),
            soak_seconds: ClusterUpdateSpec::soak_seconds(),
            start_deadline_seconds: ClusterUpdateSpec::start_deadline_seconds(),
            preflight: PreflightMode::default(),
            drain_first: false,
            preempt: false,
            retry_bad: false,
            force: false,
            prune_data: false,
            cancel: false,
            selector: LabelSelector::default(),
            canary: None,
            partitions: Vec::new(),
            max_unavailable: Self::max_unavailable(),
            on_failure: OnFailure::default(),
            on_unreachable: OnClusterUnreachable::default(),
        }
    }

    fn max_unavailable() -> u32 {
        1
    }

    /// The request for one of the clusters.
    pub fn update_of(&self, cluster: &str) -> ClusterUpdateSpec {
        ClusterUpdateSpec {
            cluster: cluster.to_owned(),
            source: self.source.clone(),
            deadline_seconds: self.deadline_seconds,
            soak_seconds: self.soak_seconds,
            start_deadline_seconds: self.start_deadline_seconds,
            preflight: self.preflight,
            drain_first: self.drain_first,
            preempt: self.preempt,
            retry_bad: self.retry_bad,
            force: self.force,
            prune_data: self.prune_data,
            cancel: false,
        }
    }
}

/// Clusters that are updated together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Selects WorkloadClusters by their labels.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub selector: LabelSelector,
}

/// What happens when a cluster fails.
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
pub enum OnFailure {
    /// No further cluster starts.
    #[default]
    Pause,
    /// The others go on.
    Continue,
}
displayed_as_on_the_wire!(OnFailure { Pause, Continue });

/// What happens to a cluster whose agent sends no heartbeat.
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
pub enum OnClusterUnreachable {
    /// Its turn waits.
    #[default]
    Wait,
    /// It is left out.
    Skip,
    /// It counts as failed.
    Fail,
}
displayed_as_on_the_wire!(OnClusterUnreachable { Wait, Skip, Fail });

/// The observed state of the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new(
        "!(oldSelf.phase in ['Succeeded', 'Failed', 'Cancelled']) || self.phase == oldSelf.phase"
    )
    .message("the outcome of a FleetUpdate is final: create another one")
)]
pub struct FleetUpdateStatus {
    /// Progressing: clusters are left. Paused: a cluster failed, and no further one starts. Succeeded, Failed and
    /// Cancelled: every cluster has ended.
    #[serde(default)]
    pub phase: FleetPhase,
    /// When the phase began, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// The partition that is being updated; absent: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 63))]
    pub partition: Option<String>,
    /// How many clusters are selected.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub clusters: u32,
    /// How many of them ended well.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub succeeded: u32,
    /// How many of them failed.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub failed: u32,
    /// How many of them were left out.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub skipped: u32,
    /// The clusters that were chosen and have not ended, and the first 100 that failed. A cluster is chosen here before
    /// its ClusterUpdate is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1_100))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["cluster".to_owned()]))]
    pub children: Vec<FleetChild>,
    /// Ready, Progressing, Degraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// How far a fleet request is.
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
pub enum FleetPhase {
    /// Clusters are left.
    #[default]
    Progressing,
    /// A cluster failed, and no further one starts.
    Paused,
    /// Every cluster ended well, or was left out.
    Succeeded,
    /// Every cluster has ended, and some failed.
    Failed,
    /// Somebody ended it.
    Cancelled,
}
impl FleetPhase {
    /// Whether it is the outcome of its request.
    pub fn is_terminal(self) -> bool {
        matches!(self, FleetPhase::Succeeded | FleetPhase::Failed | FleetPhase::Cancelled)
    }
}
displayed_as_on_the_wire!(FleetPhase { Progressing, Paused, Succeeded, Failed, Cancelled });

/// A cluster of a fleet request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetChild {
    /// The WorkloadCluster.
    #[schemars(length(min = 1, max = 253))]
    pub cluster: String,
    /// The phase of its ClusterUpdate.
    #[serde(default)]
    pub phase: UpdatePhase,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub reason: String,
}

impl FleetUpdate {
    /// The status, or that of a request that no controller has handled yet.
    pub fn status_or_default(&self) -> FleetUpdateStatus {
        self.status.clone().unwrap_or_default()
    }
}
