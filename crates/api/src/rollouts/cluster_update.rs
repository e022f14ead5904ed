//! The ClusterUpdate: somebody asks for a version of what runs on a cluster.

use super::UpdatePhase;
use crate::placement::displayed_as_on_the_wire;
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What is asked for. It cannot be edited, but for spec.cancel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "ClusterUpdate",
    plural = "clusterupdates",
    shortname = "cu",
    category = "interlock",
    namespaced,
    status = "ClusterUpdateStatus",
    derive = "PartialEq",
    doc = "A ClusterUpdate asks for a bundle of manifests on a cluster. One ClusterUpdate is applied at a time, the newest valid one next, and every one ends: see status.phase and status.reason.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(
        name = "Version",
        type_ = "integer",
        json_path = ".status.version",
        description = "Its number among the requests for the cluster"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.reason",
        description = "Why, in one word"
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = ".status.phaseSince",
        description = "Time in the current phase"
    ),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new(
        "self.cluster == oldSelf.cluster && self.deadlineSeconds == oldSelf.deadlineSeconds \
         && self.soakSeconds == oldSelf.soakSeconds && self.startDeadlineSeconds == oldSelf.startDeadlineSeconds \
         && self.preflight == oldSelf.preflight && self.drainFirst == oldSelf.drainFirst \
         && self.preempt == oldSelf.preempt && self.retryBad == oldSelf.retryBad \
         && self.force == oldSelf.force && self.pruneData == oldSelf.pruneData"
    )
    .message("a ClusterUpdate cannot be edited, but for spec.cancel: create another one")
)]
pub struct ClusterUpdateSpec {
    /// The WorkloadCluster.
    #[schemars(length(min = 1, max = 253))]
    pub cluster: String,
    /// The bundle: exactly one of inline, configMap, packed and revision. It is read once, when the request gets its
    /// number; what changes in it later is not applied.
    #[x_kube(validation = Rule::new(
        "has(self.inline) == has(oldSelf.inline) && has(self.configMap) == has(oldSelf.configMap) \
         && has(self.packed) == has(oldSelf.packed) && has(self.revision) == has(oldSelf.revision) \
         && (!has(self.configMap) || self.configMap == oldSelf.configMap) \
         && (!has(self.packed) || self.packed == oldSelf.packed) \
         && (!has(self.revision) || self.revision == oldSelf.revision)"
    ).message("a ClusterUpdate cannot be edited, but for spec.cancel: create another one"))]
    pub source: Source,
    /// From the start until all objects are healthy, in seconds; then it is rolled back.
    #[serde(default = "ClusterUpdateSpec::deadline_seconds")]
    #[schemars(range(min = 1, max = 86_400))]
    pub deadline_seconds: u32,
    /// For how many seconds all objects have to be healthy without a break.
    #[serde(default = "ClusterUpdateSpec::soak_seconds")]
    #[schemars(range(min = 0, max = 86_400))]
    pub soak_seconds: u32,
    /// From its number until its start, in seconds: the queue, the preflight and the drain. Then it fails.
    #[serde(default = "ClusterUpdateSpec::start_deadline_seconds")]
    #[schemars(range(min = 1, max = 604_800))]
    pub start_deadline_seconds: u32,
    /// What is checked before the start. Schema: kinds, rights and namespaces. DryRun: a dry run of each object that
    /// would change, too.
    #[serde(default)]
    pub preflight: PreflightMode,
    /// Placed namespaces move away from the cluster first.
    #[serde(default)]
    pub drain_first: bool,
    /// A request that is in flight is rolled back first, and not awaited.
    #[serde(default)]
    pub preempt: bool,
    /// The bundle is applied although it failed on this cluster before.
    #[serde(default)]
    pub retry_bad: bool,
    /// Fields of other field managers are taken over, and objects of others too.
    #[serde(default)]
    pub force: bool,
    /// Namespaces, PersistentVolumeClaims and CustomResourceDefinitions that are not in the bundle are deleted as
    /// well. Otherwise they are kept, and named in status.kept.
    #[serde(default)]
    pub prune_data: bool,
    /// Set this to end the request: one in flight is rolled back. To delete the request means the same.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self || !oldSelf")
        .message("a ClusterUpdate that was cancelled stays so: create another one"))]
    pub cancel: bool,
}

impl ClusterUpdateSpec {
    /// A request with all defaults.
    pub fn new(cluster: impl Into<String>, source: Source) -> Self {
        Self {
            cluster: cluster.into(),
            source,
            deadline_seconds: Self::deadline_seconds(),
            soak_seconds: Self::soak_seconds(),
            start_deadline_seconds: Self::start_deadline_seconds(),
            preflight: PreflightMode::default(),
            drain_first: false,
            preempt: false,
            retry_bad: false,
            force: false,
            prune_data: false,
            cancel: false,
        }
    }

    pub(super) fn deadline_seconds() -> u32 {
        600
    }

    pub(super) fn soak_seconds() -> u32 {
        30
    }

    pub(super) fn start_deadline_seconds() -> u32 {
        3600
    }
}

/// Where a bundle is: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// The objects themselves, 512 KiB at most.
    Inline(#[schemars(length(min = 1, max = 1_000))] Vec<RawObject>),
    /// A ConfigMap beside the request; each of its entries is a file of YAML or JSON.
    ConfigMap(ConfigMapSource),
    /// Secrets beside the request, as the command line packs them.
    Packed(PackedSource),
    /// The digest of a bundle in the history of the same cluster.
    Revision(
        #[schemars(length(min = 71, max = 71), regex(pattern = r"^sha256-[0-9a-f]{64}$"))] String,
    ),
}

/// A ConfigMap beside the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A bundle that was packed into Secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackedSource {
    /// The digest of the bundle in its canonical form: sha256- and 64 hexadecimal digits.
    #[schemars(length(min = 71, max = 71), regex(pattern = r"^sha256-[0-9a-f]{64}$"))]
    pub digest: String,
    /// The Secrets, in order. Each holds a part of the canonical form under the key part, compressed by zstd.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 253)))]
    pub secrets: Vec<String>,
}

/// An object as a person wrote it: it comes back as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawObject(pub Map<String, Value>);

impl JsonSchema for RawObject {
    fn schema_name() -> Cow<'static, str> {
        "RawObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// What is checked before a request starts.
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
pub enum PreflightMode {
    /// Kinds, rights and namespaces.
    #[default]
    Schema,
    /// A dry run of each object that would change, too.
    DryRun,
}
displayed_as_on_the_wire!(PreflightMode { Schema, DryRun });

/// The observed state of the request: what the record of its cluster says of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new(
        "!(oldSelf.phase in ['Rejected', 'Superseded', 'Cancelled', 'Failed', 'Succeeded', 'RolledBack', \
         'RollbackFailed']) || self.phase == oldSelf.phase"
    )
    .message("the outcome of a ClusterUpdate is final: create another one")
)]
pub struct ClusterUpdateStatus {
    /// Pending and Queued: it waits. Applying, Verifying and RollingBack: it is in flight. All others are final.
    #[serde(default)]
    pub phase: UpdatePhase,
    /// When the phase began, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// Its number among the requests for the cluster; absent: it has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 1))]
    pub version: Option<i64>,
    /// The digest of its bundle; absent: the bundle could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 71))]
    pub digest: Option<String>,
    /// Why it is in that phase, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What a person does next, a command where there is one; absent if nobody has to do anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub next: Option<String>,
    /// How many objects the agent has applied and found healthy; absent: it is not in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "super::ObjectCounts")]
    pub objects: Option<super::ObjectCounts>,
    /// Objects that are not healthy yet, and why; the first 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub not_ready: Vec<super::FailedObject>,
    /// Objects that are not in the bundle, and that were kept for their data; the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 640)))]
    pub kept: Vec<String>,
    /// Complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

impl ClusterUpdate {
    /// The status, or that of a request that no controller has handled yet.
    pub fn status_or_default(&self) -> ClusterUpdateStatus {
        self.status.clone().unwrap_or_default()
    }
}
