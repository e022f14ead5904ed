//! The status of the ClusterRollout: the one lock of a cluster, and the only authority.

use crate::placement::displayed_as_on_the_wire;
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked for, what is in flight, and what the cluster is to equal. Only Interlock writes it, each time over the
/// version that it saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.lastVersion >= oldSelf.lastVersion").message("versions only grow"),
    validation = Rule::new("self.target.token >= oldSelf.target.token").message("tokens only grow"),
    validation = Rule::new(
        "self.target.token > oldSelf.target.token || (has(self.target.digest) == has(oldSelf.target.digest) \
         && (!has(self.target.digest) || self.target.digest == oldSelf.target.digest))"
    )
    .message("another target needs another token")
)]
pub struct ClusterRolloutStatus {
    /// The last number that a request got. It only grows.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub last_version: i64,
    /// The requests that have not ended or are not mirrored yet, and the history, by version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uid".to_owned()]))]
    pub requests: Vec<Requested>,
    /// The request that waits, once the agent is to check it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PreflightTarget")]
    pub preflight: Option<PreflightTarget>,
    /// The request in flight. There is room for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Active")]
    pub active: Option<Active>,
    /// What the cluster is to equal, in every phase.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub target: Target,
    /// The last version that was verified; absent: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Good")]
    pub last_good: Option<Good>,
    /// The digests of the bundles of which objects may be on the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 71)))]
    pub may_exist: Vec<String>,
    /// The digests of bundles that failed on this cluster, the newest 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["digest".to_owned()]))]
    pub bad: Vec<BadDigest>,
    /// The digests of bundles that left the history. Their BundleRevisions are deleted an hour later, if no record
    /// names them then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["digest".to_owned()]))]
    pub unnamed: Vec<Unnamed>,
    /// A rollback failed, and no request ended well since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_degraded: bool,
    /// Ready, Progressing, Degraded, Drifted, TargetReachable, FenceInForce.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// A request as the record has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requested {
    /// The uid of the ClusterUpdate, which decides.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// Its namespace, for reading.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name, for reading.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its number among the requests for the cluster: the newest has the highest.
    #[schemars(range(min = 1))]
    pub version: i64,
    /// The digest of its bundle; absent: the bundle could not be read, and the request is Rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 71))]
    pub digest: Option<String>,
    /// How far it is.
    #[serde(default)]
    pub phase: UpdatePhase,
    /// When the phase began, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// Why it is in that phase, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What a person does next; absent if nobody has to do anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub next: Option<String>,
}

/// How far a request is.
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
pub enum UpdatePhase {
    /// It has no number yet.
    #[default]
    Pending,
    /// It is valid, and waits.
    Queued,
    /// The agent brings the cluster to it.
    Applying,
    /// All its objects are on the cluster, and have to be healthy for a while.
    Verifying,
    /// The agent brings the cluster back to the last good version.
    RollingBack,
    /// It was not valid. Nothing was changed.
    Rejected,
    /// A newer valid request came before it started. Nothing was changed.
    Superseded,
    /// Somebody ended it before it started. Nothing was changed.
    Cancelled,
    /// It could not be started. Nothing was changed.
    Failed,
    /// The cluster is at it, and was healthy.
    Succeeded,
    /// The cluster is back at the last good version.
    RolledBack,
    /// The cluster could not be brought back, and is Degraded.
    RollbackFailed,
}
displayed_as_on_the_wire!(UpdatePhase {
    Pending,
    Queued,
    Applying,
    Verifying,
    RollingBack,
    Rejected,
    Superseded,
    Cancelled,
    Failed,
    Succeeded,
    RolledBack,
    RollbackFailed
});

impl UpdatePhase {
    /// All phases.
    pub const ALL: [UpdatePhase; 12] = [
        UpdatePhase::Pending,
        UpdatePhase::Queued,
        UpdatePhase::Applying,
        UpdatePhase::Verifying,
        UpdatePhase::RollingBack,
        UpdatePhase::Rejected,
        UpdatePhase::Superseded,
        UpdatePhase::Cancelled,
        UpdatePhase::Failed,
        UpdatePhase::Succeeded,
        UpdatePhase::RolledBack,
        UpdatePhase::RollbackFailed,
    ];

    /// Whether the agent is to change the cluster for it.
    pub fn is_active(self) -> bool {
        matches!(self, UpdatePhase::Applying | UpdatePhase::Verifying | UpdatePhase::RollingBack)
    }

    /// Whether it is the outcome of its request.
    pub fn is_terminal(self) -> bool {
        !self.is_active() && !matches!(self, UpdatePhase::Pending | UpdatePhase::Queued)
    }
}

/// The request that the agent is to check before it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreflightTarget {
    /// The uid of the ClusterUpdate.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// The digest of its bundle.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
    /// What is checked.
    #[serde(default)]
    pub mode: super::PreflightMode,
    /// Whether the request takes over what others have.
    #[serde(default)]
    pub force: bool,
}

/// The request in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Active {
    /// The uid of the ClusterUpdate.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// Its number.
    #[schemars(range(min = 1))]
    pub version: i64,
    /// The digest of its bundle.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
    /// Applying, Verifying or RollingBack.
    pub phase: UpdatePhase,
    /// When the phase, or the try of a rollback, began, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// When it started, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub started_at: Option<Time>,
    /// Until how many seconds after its start all objects have to be healthy.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86_400))]
    pub deadline_seconds: u32,
    /// How often the rollback was tried.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub tries: u32,
}

/// What a cluster is to equal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// It grows by one when the target changes. What an agent reports is about a token.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub token: i64,
    /// The digest of the bundle; absent: nothing of ours is to be on the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 71))]
    pub digest: Option<String>,
    /// For how many seconds all objects have to be healthy without a break.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86_400))]
    pub soak_seconds: u32,
    /// Fields and objects of others are taken over.
    #[serde(default)]
    pub force: bool,
    /// Namespaces, claims and definitions are pruned too.
    #[serde(default)]
    pub prune_data: bool,
}

/// A version that was verified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Good {
    /// The number of the request.
    #[schemars(range(min = 1))]
    pub version: i64,
    /// The digest of its bundle.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
    /// Whether it took over what others have: a rollback to it does the same.
    #[serde(default)]
    pub force: bool,
}

/// A bundle that failed on this cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BadDigest {
    /// The digest.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
    /// Why, in a sentence.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// When, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub at: Option<Time>,
}

/// A bundle that left the history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unnamed {
    /// The digest.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
    /// Since when, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub since: Option<Time>,
}

impl ClusterRolloutStatus {
    /// A request by its uid.
    pub fn request(&self, uid: &str) -> Option<&Requested> {
        self.requests.iter().find(|request| request.uid == uid)
    }

    /// The digests that a BundleRevision is kept for.
    pub fn names_digest(&self, digest: &str) -> bool {
        let of_target = self.target.digest.as_deref();
        let of_good = self.last_good.as_ref().map(|good| good.digest.as_str());
        let of_active = self.active.as_ref().map(|active| active.digest.as_str());
        let of_requests = self.requests.iter().filter_map(|request| request.digest.as_deref());
        let one = [of_target, of_good, of_active].into_iter().flatten();
        let all = one.chain(of_requests).chain(self.may_exist.iter().map(String::as_str));
        all.into_iter().any(|known| known == digest)
    }
}
