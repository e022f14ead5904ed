//! The ForceRelease: a person declares that the owner of a namespace is gone.

use super::{Ref, displayed_as_on_the_wire};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The declaration. The spec is immutable: it names one grant, one owner and one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "ForceRelease",
    plural = "forcereleases",
    shortname = "force",
    category = "interlock",
    status = "ForceReleaseStatus",
    derive = "PartialEq",
    doc = "A ForceRelease declares that the owner of a grant is gone, so that another cluster may take over from the last complete snapshots. It takes effect only for the grant, owner and epoch that it names.",
    printcolumn(name = "Grant", type_ = "string", json_path = ".spec.grant.name"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner.name"),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".spec.epoch"),
    printcolumn(name = "Attestation", type_ = "string", json_path = ".spec.attestation"),
    printcolumn(name = "Outcome", type_ = "string", json_path = ".status.outcome"),
    printcolumn(name = "Because", type_ = "string", json_path = ".status.because", priority = 1),
    printcolumn(name = "Requester", type_ = "string", json_path = ".spec.requester", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self == oldSelf")
        .message("a ForceRelease cannot be edited; create another one")
)]
pub struct ForceReleaseSpec {
    /// The Grant to release.
    pub grant: Ref,
    /// The WorkloadCluster to declare gone; it must own the Grant.
    pub owner: Ref,
    /// The epoch of the Grant; the ForceRelease is refused if the Grant has another epoch.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The state of the owner. PoweredOff: its machines are off. StorageFenced: it cannot reach its
    /// storage. AcceptDivergence: the state is unknown, and two clusters may write.
    pub attestation: Attestation,
    /// The reason, for the record: at least ten characters.
    #[schemars(length(min = 10, max = 1024))]
    pub reason: String,
    /// The person who requested the release.
    #[schemars(length(min = 1, max = 253))]
    pub requester: String,
}

/// The state of a cluster that sends no heartbeat. It must be true when the ForceRelease is created.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Attestation {
    /// The machines of the owner are off.
    PoweredOff,
    /// The owner cannot reach its storage.
    StorageFenced,
    /// The state is unknown, and two clusters may write.
    AcceptDivergence,
}
displayed_as_on_the_wire!(Attestation { PoweredOff, StorageFenced, AcceptDivergence });

/// The outcome of a ForceRelease: Pending, Applied or Refused.
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
pub enum ForceOutcome {
    /// The ForceRelease has no outcome yet.
    #[default]
    Pending,
    /// The Grant is fenced.
    Applied,
    /// The Grant does not match the ForceRelease.
    Refused,
}
displayed_as_on_the_wire!(ForceOutcome { Pending, Applied, Refused });

/// The observed state of the ForceRelease.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("oldSelf.outcome == 'Pending' || self.outcome == oldSelf.outcome")
        .message("the outcome is final")
)]
pub struct ForceReleaseStatus {
    /// Pending, Applied or Refused; Applied and Refused are final.
    #[serde(default)]
    pub outcome: ForceOutcome,
    /// Why the ForceRelease was refused, or what was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub because: Option<String>,
}

impl ForceRelease {
    /// The status, or that of one which no controller has handled yet.
    pub fn status_or_default(&self) -> ForceReleaseStatus {
        self.status.clone().unwrap_or_default()
    }
}
