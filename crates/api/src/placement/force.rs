//! The ForceRelease: a person declares that the owner of a namespace is gone.

use super::{Ref, displayed_as_on_the_wire};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is declared. It cannot be edited: it is about one grant, one owner and one epoch.
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
    doc = "Declares, once, that the owner of a grant is gone, so that another cluster may take over from the last complete images. It takes effect only for the grant, owner and epoch that it names.",
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
    /// The Grant that it is about.
    pub grant: Ref,
    /// The WorkloadCluster that is declared gone; it must own the Grant.
    pub owner: Ref,
    /// The epoch of the Grant; another one means that the Grant has changed hands since.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// What is known about the owner. PoweredOff: its machines are off. StorageFenced: it cannot
    /// reach its storage. AcceptDivergence: nothing is known, and two clusters may write.
    pub attestation: Attestation,
    /// Why, for those who read it later: at least ten characters.
    #[schemars(length(min = 10, max = 1024))]
    pub reason: String,
    /// Who asks for it.
    #[schemars(length(min = 1, max = 253))]
    pub requester: String,
}

/// What a person knows about a cluster that is not heard of. It must be true when the ForceRelease
/// is created; later does not matter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Attestation {
    /// Its machines are off.
    PoweredOff,
    /// It cannot reach its storage.
    StorageFenced,
    /// Nothing is known, and two clusters may write.
    AcceptDivergence,
}
displayed_as_on_the_wire!(Attestation { PoweredOff, StorageFenced, AcceptDivergence });

/// What became of a ForceRelease: Pending, Applied or Refused.
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
    /// Not answered yet.
    #[default]
    Pending,
    /// The Grant is fenced by it.
    Applied,
    /// The Grant is not what it names.
    Refused,
}
displayed_as_on_the_wire!(ForceOutcome { Pending, Applied, Refused });

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("oldSelf.outcome == 'Pending' || self.outcome == oldSelf.outcome")
        .message("the outcome is final")
)]
pub struct ForceReleaseStatus {
    /// Pending, until it is Applied or Refused; both are final.
    #[serde(default)]
    pub outcome: ForceOutcome,
    /// Why it was refused, or what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub because: Option<String>,
}

impl ForceRelease {
    /// The status, or that of one which nobody has looked at yet.
    pub fn status_or_default(&self) -> ForceReleaseStatus {
        self.status.clone().unwrap_or_default()
    }
}
