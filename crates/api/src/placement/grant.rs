//! The Grant: the single record that says which cluster may use the volumes of a namespace.

use super::{OnUnreachable, Ref, VolumePolicy, displayed_as_on_the_wire};
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of the grant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Grant",
    plural = "grants",
    shortname = "gr",
    category = "interlock",
    status = "GrantStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Grant names the cluster that may use the volumes of one namespace. Only the Grant decides; labels are copies of it.",
    printcolumn(
        name = "Namespace",
        type_ = "string",
        json_path = ".spec.namespace.name",
        description = "The namespace at the hub"
    ),
    printcolumn(
        name = "Owner",
        type_ = "string",
        json_path = ".status.owner.name",
        description = "The cluster that may use the volumes, or the last owner"
    ),
    printcolumn(
        name = "Epoch",
        type_ = "integer",
        json_path = ".status.epoch",
        description = "Number of grants so far"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "The phase of the grant"
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = ".status.phaseSince",
        description = "Time in the current phase"
    ),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.target.name",
        description = "The desired cluster"
    ),
    printcolumn(
        name = "Running",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Running\")].status",
        description = "Whether the owner runs the workloads",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new(
        "!has(oldSelf.status) || oldSelf.status == null || (has(self.status) && self.status != null)"
    )
        .message("the status of a grant cannot be taken away: its epoch would be used again"),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct GrantSpec {
    /// The namespace at the hub. Immutable: a namespace that is created again under the same name has
    /// another Grant.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("a grant is for one namespace and no other"))]
    pub namespace: Ref,
    /// The desired cluster, resolved; absent while no cluster fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Ref>,
    /// What to do when the owner sends no heartbeat; copied from the Placement.
    #[serde(default)]
    pub on_unreachable: OnUnreachable,
    /// How the volumes move; copied from the Placement.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub volumes: VolumePolicy,
    /// Whether the owner starts the workloads only when the cloud roles of the namespace trust it; copied
    /// from the Placement. Absent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub await_rights: Option<bool>,
}

/// The observed state of the grant. A Grant without a status is Unassigned at epoch 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.epoch >= oldSelf.epoch").message("the epoch of a grant cannot fall"),
    validation = Rule::new(
        "self.epoch > oldSelf.epoch \
         || (has(self.owner) ? self.owner.uid : '') == (has(oldSelf.owner) ? oldSelf.owner.uid : '')"
    )
    .message("another owner needs another epoch")
)]
pub struct GrantStatus {
    /// Unassigned: the grant has no owner. Granted: the owner may use the volumes. Revoking: the owner has
    /// to stop and to hand over. Released: the owner has stopped, and every claim has its snapshot.
    /// Fenced: the owner was declared gone. Deleting: the namespace is being deleted.
    #[serde(default)]
    pub phase: Phase,
    /// When the phase began, by the clock of the controller that wrote it; written together with the
    /// phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// The owner, or the last owner. It changes only with the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub owner: Option<Ref>,
    /// Starts at 0 and increases by one with each grant.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The last ForceRelease that fenced the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub fenced_by: Option<Ref>,
    /// The highest epoch that was ended by force; absent: none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub fenced_epoch: Option<i64>,
    /// Why the grant is being revoked: Move, Drain or Deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RevokedBecause")]
    pub because: Option<RevokedBecause>,
    /// The claims of the namespace, and their state at the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uid".to_owned()]))]
    pub claims: Vec<Claim>,
    /// The snapshots that the owner starts from; after a release, those that the next owner starts from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub pins: Vec<Pin>,
    /// The clusters that have data of the namespace. The Grant is deleted only when this list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub copies: Vec<DataCopy>,
    /// The cloud roles of the namespace, and whom they trust. The owner starts the workloads only when each
    /// of them is Ready for the epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uid".to_owned()]))]
    pub rights: Vec<RoleRights>,
    /// Placed, Running, Stopped, DataSynced, Filled, OwnerUnreachable, Fenced, DataLossBound,
    /// Diverged, AtMostOneGivenUp, RightsReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// The phase of a Grant.
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
pub enum Phase {
    /// The grant has no owner.
    #[default]
    Unassigned,
    /// The owner may use the volumes.
    Granted,
    /// The owner has to stop and to hand over.
    Revoking,
    /// The owner has stopped, and every claim has its snapshot.
    Released,
    /// The owner was declared gone.
    Fenced,
    /// The namespace is being deleted.
    Deleting,
}
displayed_as_on_the_wire!(Phase { Unassigned, Granted, Revoking, Released, Fenced, Deleting });

impl Phase {
    /// Whether a cluster has it: its owner may run it, or has not given it back yet.
    pub fn is_held(self) -> bool {
        matches!(self, Phase::Granted | Phase::Revoking)
    }
}

/// Why a Grant is being revoked.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum RevokedBecause {
    /// Another cluster is desired.
    Move,
    /// Its cluster is being drained.
    Drain,
    /// Its namespace is being deleted.
    Deletion,
}
displayed_as_on_the_wire!(RevokedBecause { Move, Drain, Deletion });

/// A cloud role of the namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleRights {
    /// The uid of the Role.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// The name of the Role.
    pub name: String,
    /// The epoch that the state is about.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Waiting: the cloud role does not trust the owner of the epoch yet. Ready: the cloud role trusts the
    /// owner of the epoch, and no earlier one. Fenced: the epoch was ended by force, and the sessions of
    /// its owner are denied.
    #[serde(default)]
    pub state: RightsState,
    /// Why it waits, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// Whom a cloud role trusts, seen from the Grant.
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
pub enum RightsState {
    /// The cloud role does not trust the owner of the epoch yet.
    #[default]
    Waiting,
    /// The cloud role trusts the owner of the epoch, and no earlier one.
    Ready,
    /// The epoch was ended by force, and the sessions of its owner are denied.
    Fenced,
}
displayed_as_on_the_wire!(RightsState { Waiting, Ready, Fenced });

/// A claim of the namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The name of the claim.
    pub name: String,
    /// The uid of the claim at the hub.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// The state of the volume at the owner: Waiting, Filling or Filled.
    #[serde(default)]
    pub fill: Fill,
    /// The last complete snapshot of the claim; a forced release starts from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pin")]
    pub last_snapshot: Option<Pin>,
    /// The progress of the copy while the claim fills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Progress")]
    pub progress: Option<Progress>,
}

/// The progress of the copy of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The number of copied bytes.
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// The total number of bytes, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub of_bytes: Option<i64>,
    /// The time of this progress, by the clock of the owner.
    pub at: Time,
}

/// The state of the volume of a claim at the owner.
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
pub enum Fill {
    /// No data was copied yet.
    #[default]
    Waiting,
    /// Data is being copied.
    Filling,
    /// All data is copied and equals the pin.
    Filled,
}
displayed_as_on_the_wire!(Fill { Waiting, Filling, Filled });

/// A snapshot of a claim that a Grant holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The name of the claim.
    pub claim: String,
    /// The uid of the claim at the hub.
    #[serde(rename = "claimUID")]
    pub claim_uid: String,
    /// The epoch that the snapshot was taken in.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// When the snapshot was taken.
    pub taken: Time,
    /// The number of files in the snapshot.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub files: i64,
    /// The number of bytes in the snapshot.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// The digest over names and contents; the copied data must have the same digest.
    #[serde(default)]
    pub digest: String,
    /// Where the snapshot is: exactly one of volumeSnapshot, restic, inPlace and fresh.
    pub snapshot: Snapshot,
}

/// Where a snapshot is: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Snapshot {
    /// A VolumeSnapshot on a cluster.
    VolumeSnapshot {
        /// The cluster.
        cluster: Ref,
        /// The namespace of the VolumeSnapshot.
        namespace: String,
        /// The name of the VolumeSnapshot.
        name: String,
        /// The uid of the VolumeSnapshot.
        uid: String,
    },
    /// A snapshot in a restic repository.
    Restic {
        /// The Secret of the repository, in the namespace.
        secret: String,
        /// The ID of the snapshot in the repository.
        #[serde(rename = "snapshotID")]
        snapshot_id: String,
    },
    /// The volume itself, left in place; it can be used on that cluster only.
    InPlace {
        /// The cluster.
        cluster: Ref,
        /// The name of the volume.
        volume: String,
    },
    /// A claim that was never used: it starts with an empty volume.
    Fresh {},
}

/// Data of the namespace on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataCopy {
    /// The cluster.
    pub cluster: Ref,
    /// The epoch in which the data was written.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Live: the copy of the owner. Superseded: closed, and another cluster has all of its data.
    /// Unclosed: its owner was declared gone and has sent no heartbeat since. Diverged: it has writes
    /// after its last snapshot; only a person may delete it.
    pub state: CopyState,
}

/// The state of a copy.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CopyState {
    /// The copy of the owner.
    Live,
    /// Closed, and another cluster has all of its data.
    Superseded,
    /// Its owner was declared gone and has sent no heartbeat since.
    Unclosed,
    /// It has writes after its last snapshot.
    Diverged,
}
displayed_as_on_the_wire!(CopyState { Live, Superseded, Unclosed, Diverged });

impl GrantSpec {
    /// Whether the owner waits for the cloud roles of the namespace.
    pub fn awaits_rights(&self) -> bool {
        self.await_rights.unwrap_or(true)
    }
}

impl Grant {
    /// The status, or that of a Grant which nobody has touched yet: Unassigned at epoch 0.
    pub fn status_or_default(&self) -> GrantStatus {
        self.status.clone().unwrap_or_default()
    }
}
