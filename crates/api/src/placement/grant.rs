//! The Grant: the single record that says which cluster may use the volumes of a namespace.

use super::{OnUnreachable, Ref, VolumePolicy, displayed_as_on_the_wire};
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wished.
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
    doc = "Says which cluster may use the volumes of one namespace. It is the only record that decides; labels only mirror it.",
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
        description = "The cluster that may use its volumes, or the last one that might"
    ),
    printcolumn(
        name = "Epoch",
        type_ = "integer",
        json_path = ".status.epoch",
        description = "How often it was granted"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "What is true of the owner now"
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = ".status.phaseSince",
        description = "How long it has been in that phase"
    ),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.target.name",
        description = "The cluster that is wished"
    ),
    printcolumn(
        name = "Running",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Running\")].status",
        description = "Whether the owner runs its workloads",
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
    /// The namespace at the hub. It cannot be changed: a namespace made again under its name has
    /// another Grant.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("a grant is for one namespace and no other"))]
    pub namespace: Ref,
    /// The cluster that is wished, resolved; nothing while no cluster fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Ref>,
    /// What to do when the owner is not heard of; taken over from the Placement.
    #[serde(default)]
    pub on_unreachable: OnUnreachable,
    /// How the volumes move; taken over from the Placement.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub volumes: VolumePolicy,
}

/// What is true. A Grant without it is Unassigned at epoch 0.
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
    /// Unassigned: nobody has it yet. Granted: the owner may use the volumes. Revoking: the owner has
    /// to stop and to hand over. Released: the owner has stopped, and every claim has its image.
    /// Fenced: the owner was declared gone. Deleting: the namespace goes.
    #[serde(default)]
    pub phase: Phase,
    /// Since when it is in that phase, by the clock of whoever brought it there; written together
    /// with the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// The cluster that has it, or had it last. It changes only with the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub owner: Option<Ref>,
    /// From 0, one more at each grant, never used again.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The ForceRelease that fenced it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub fenced_by: Option<Ref>,
    /// Why it is being revoked: Move, Drain or Deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RevokedBecause")]
    pub because: Option<RevokedBecause>,
    /// The claims of the namespace, and how far they are at the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uid".to_owned()]))]
    pub claims: Vec<Claim>,
    /// The images that the owner starts from; after a release, those that the next one starts from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub pins: Vec<Pin>,
    /// Where data of this namespace still is. The Grant goes only when this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub copies: Vec<DataCopy>,
    /// Placed, Running, Stopped, DataSynced, Filled, OwnerUnreachable, Fenced, DataLossBound,
    /// Diverged, AtMostOneGivenUp.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// What is true of the owner of a Grant.
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
    /// Nobody has it yet.
    #[default]
    Unassigned,
    /// The owner may use the volumes.
    Granted,
    /// The owner has to stop and to hand over.
    Revoking,
    /// The owner has stopped, and every claim has its image.
    Released,
    /// The owner was declared gone.
    Fenced,
    /// The namespace goes.
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
    /// Another cluster is wished.
    Move,
    /// Its cluster is being drained.
    Drain,
    /// Its namespace is being deleted.
    Deletion,
}
displayed_as_on_the_wire!(RevokedBecause { Move, Drain, Deletion });

/// A claim of the namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The name of the claim.
    pub name: String,
    /// The uid of the claim at the hub.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// How far its volume at the owner is: Waiting, Filling or Filled.
    #[serde(default)]
    pub fill: Fill,
    /// The last complete image of it; what a forced release falls back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pin")]
    pub last_image: Option<Pin>,
    /// How far its data has come, while it fills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Progress")]
    pub progress: Option<Progress>,
}

/// How far the data of a claim has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// How many bytes have arrived.
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// How many there are in all, once they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub of_bytes: Option<i64>,
    /// When that was so, by the clock of the owner.
    pub at: Time,
}

/// How far the volume of a claim at the owner is.
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
    /// Nothing has arrived.
    #[default]
    Waiting,
    /// Data arrives.
    Filling,
    /// All of it is there and equals the pin.
    Filled,
}
displayed_as_on_the_wire!(Fill { Waiting, Filling, Filled });

/// An image of a claim that a Grant holds on to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The name of the claim.
    pub claim: String,
    /// The uid of the claim at the hub.
    #[serde(rename = "claimUID")]
    pub claim_uid: String,
    /// The epoch that the image was taken in.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// When it was taken.
    pub taken: Time,
    /// How many files are in it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub files: i64,
    /// How many bytes are in it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// The digest over names and contents; what arrives has to have the same.
    #[serde(default)]
    pub digest: String,
    /// Where it is: exactly one of volumeSnapshot, restic, inPlace and fresh.
    pub image: Image,
}

/// Where an image is: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Image {
    /// A VolumeSnapshot on a cluster.
    VolumeSnapshot {
        /// The cluster that it is on.
        cluster: Ref,
        /// Its namespace there.
        namespace: String,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// A snapshot in a restic repository.
    Restic {
        /// The Secret in the namespace that opens the repository.
        secret: String,
        /// The snapshot in the repository.
        #[serde(rename = "snapshotID")]
        snapshot_id: String,
    },
    /// The volume itself, left where it is; good on that cluster only.
    InPlace {
        /// The cluster that it is on.
        cluster: Ref,
        /// The volume there.
        volume: String,
    },
    /// A claim that was never used: an empty volume will do.
    Fresh {},
}

/// Data of the namespace on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataCopy {
    /// The cluster that it is on.
    pub cluster: Ref,
    /// The epoch that it was written in.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Live: the owner's. Superseded: closed, and another one has all of it. Unclosed: its owner was
    /// declared gone and has not been heard of since. Diverged: it was written after its last image;
    /// only a person gives it up.
    pub state: CopyState,
}

/// What a copy is worth.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CopyState {
    /// The owner's.
    Live,
    /// Closed, and another one has all of it.
    Superseded,
    /// Its owner was declared gone and has not been heard of since.
    Unclosed,
    /// It was written after its last image.
    Diverged,
}
displayed_as_on_the_wire!(CopyState { Live, Superseded, Unclosed, Diverged });

impl Grant {
    /// The status, or that of a Grant which nobody has touched yet: Unassigned at epoch 0.
    pub fn status_or_default(&self) -> GrantStatus {
        self.status.clone().unwrap_or_default()
    }
}
