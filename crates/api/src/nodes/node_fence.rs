//! The NodeFence: a person declares what the fleet cannot see of a machine or a DPU.

use super::{DpuName, Ref};
use crate::placement::displayed_as_on_the_wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The declaration. The spec is immutable: it names one node, one epoch and one phase of the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "NodeFence",
    plural = "nodefences",
    shortname = "nf",
    category = "interlock",
    status = "NodeFenceStatus",
    derive = "PartialEq",
    doc = "A NodeFence declares that a DPU or a machine is off, or that work on a machine may be lost, so that the machine can be released. It takes effect only for the node, epoch and phase that it names.",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node.name"),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".spec.epoch"),
    printcolumn(name = "DPU", type_ = "string", json_path = ".spec.dpu.dpu"),
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
    validation = Rule::new("self == oldSelf").message("a NodeFence cannot be edited; create another one"),
    validation = Rule::new("(self.attestation == 'DpuPoweredOff') == has(self.dpu)")
        .message("DpuPoweredOff names a dpu; MachinePoweredOff and AcceptUndrained name none")
)]
pub struct NodeFenceSpec {
    /// The PhysicalNode.
    pub node: Ref,
    /// The epoch of the node; the NodeFence is refused if the node has another epoch.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The status.phaseSince of the node. Nobody knows it before the phase began, so the attestation is not older.
    pub phase_since: Time,
    /// The DPU that is off; absent: the attestation is about the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpu: Option<DpuName>,
    /// What is true when the NodeFence is created. DpuPoweredOff: the DPU is off. MachinePoweredOff: the machine is
    /// off. AcceptUndrained: the state of the machine is unknown, and work on it may be lost.
    pub attestation: NodeAttestation,
    /// The reason, for the record: at least ten characters.
    #[schemars(length(min = 10, max = 1024))]
    pub reason: String,
    /// The person who requested it.
    #[schemars(length(min = 1, max = 253))]
    pub requester: String,
}

/// What a person saw. It must be true when the NodeFence is created.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NodeAttestation {
    /// The DPU is off.
    DpuPoweredOff,
    /// The machine is off.
    MachinePoweredOff,
    /// The state of the machine is unknown, and work on it may be lost.
    AcceptUndrained,
}
displayed_as_on_the_wire!(NodeAttestation { DpuPoweredOff, MachinePoweredOff, AcceptUndrained });

/// The outcome of a NodeFence: Pending, Applied or Refused.
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
pub enum NodeFenceOutcome {
    /// The NodeFence has no outcome yet.
    #[default]
    Pending,
    /// The node was released on this word.
    Applied,
    /// The node does not match the NodeFence.
    Refused,
}
displayed_as_on_the_wire!(NodeFenceOutcome { Pending, Applied, Refused });

/// The observed state of the NodeFence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("oldSelf.outcome == 'Pending' || self.outcome == oldSelf.outcome")
        .message("the outcome is final")
)]
pub struct NodeFenceStatus {
    /// Pending, Applied or Refused; Applied and Refused are final.
    #[serde(default)]
    pub outcome: NodeFenceOutcome,
    /// Why the NodeFence was refused, or what was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 4096))]
    pub because: Option<String>,
}

impl NodeFence {
    /// The status, or that of one which no controller has handled yet.
    pub fn status_or_default(&self) -> NodeFenceStatus {
        self.status.clone().unwrap_or_default()
    }
}
