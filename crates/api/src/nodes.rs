//! Which tenant a machine is for: the kinds of the system nodes.
//!
//! The status of a [`PhysicalNode`] is the single record that decides: the epoch of its assignment, and the floor of
//! what is revoked. A [`NodeClaim`] and a [`DpuAttachment`] are in the control plane of a tenant, and so say what the
//! tenant wants, and prove nothing.

#![allow(
    unreachable_pub,
    reason = "the derived schemas hold a copy of each struct inside of a function, with its pub"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "every printer column has a type, and several have the same"
)]

pub mod condition;
mod dpu_attachment;
mod dpu_report;
pub mod event;
mod node_claim;
mod node_fence;
mod physical_node;
mod rack;
mod tenant;

pub use crate::placement::Ref;
pub use dpu_attachment::{DpuAttachment, DpuAttachmentSpec, DpuAttachmentStatus};
pub use dpu_report::{Applied, DpuReport, DpuReportSpec, DpuReportStatus, PortReport};
pub use node_claim::{
    EntryState, NodeAddresses, NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeEntry, NodeSelector,
};
pub use node_fence::{
    NodeAttestation, NodeFence, NodeFenceOutcome, NodeFenceSpec, NodeFenceStatus,
};
pub use physical_node::{
    Assignment, FencedDpu, NodeDpu, NodePhase, PhysicalNode, PhysicalNodeSpec, PhysicalNodeStatus,
    Quarantine,
};
pub use rack::{Fencing, PowerControl, Rack, RackDpu, RackSpec, RackStatus};
pub use tenant::{OrphanPolicy, Plane, Tenant, TenantSpec, TenantStatus};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// On a NodeClaim: it stays while a node is bound to it.
pub const FINALIZER_NODE_RELEASE: &str = "interlock.dev/node-release";
/// On a PhysicalNode: it stays while a DPU may have it programmed. On a Tenant and a Rack: they stay while a node is
/// theirs.
pub const FINALIZER_NODE_IN_USE: &str = "interlock.dev/node-in-use";
/// On a DpuAttachment: it stays while its DPU may have it programmed.
pub const FINALIZER_DPU_CLEAN: &str = "interlock.dev/dpu-clean";

/// On a PhysicalNode: the rack of the node.
pub const LABEL_RACK: &str = "interlock.dev/rack";
/// On a PhysicalNode that is assigned: the tenant, by name.
pub const LABEL_TENANT: &str = "interlock.dev/tenant";
/// On a DpuAttachment: the node, by name.
pub const LABEL_NODE: &str = "interlock.dev/node";
/// On a DpuAttachment: the DPU, as [`DpuName`] is shown, `<rack>.<dpu>`.
pub const LABEL_DPU: &str = "interlock.dev/dpu";
/// On a DpuAttachment: the uid of the NodeClaim.
pub const LABEL_CLAIM_UID: &str = "interlock.dev/claim-uid";
/// The prefix of every [`DpuName::label_key`].
pub const DPU_LABEL_PREFIX: &str = "dpu.interlock.dev/";

/// The lowest number of a tenant's network: lower ones are left to people.
pub const FIRST_VNI: u32 = 4096;
/// The highest number of a network: a VXLAN has 24 bits for it.
pub const LAST_VNI: u32 = 16_777_215;

/// A DPU by its rack and its name in the rack.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct DpuName {
    /// The rack.
    #[schemars(length(min = 1, max = 31))]
    pub rack: String,
    /// The name of the DPU in the rack.
    #[schemars(length(min = 1, max = 31))]
    pub dpu: String,
}

impl DpuName {
    /// A DPU of a rack.
    pub fn new(rack: impl Into<String>, dpu: impl Into<String>) -> Self {
        Self { rack: rack.into(), dpu: dpu.into() }
    }

    /// The label of the PhysicalNodes that have a port of this DPU; its value is the port.
    pub fn label_key(&self) -> String {
        format!("{DPU_LABEL_PREFIX}{self}")
    }

    /// The name of its Lease, by which its agent shows that it runs. For display and deadlines only.
    pub fn lease(&self) -> String {
        format!("dpu-{self}")
    }
}

/// `<rack>.<dpu>`: the name of its DpuReport. Neither part has a dot in it, so no two DPUs share a name.
impl fmt::Display for DpuName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.rack, self.dpu)
    }
}

/// The name of the DpuAttachment of a node at a DPU for an epoch: `<node>.<dpu>.<epoch>`. An epoch has its own, so
/// that the late deletion of an old one cannot name a new one.
pub fn attachment_name(node: &str, dpu: &str, epoch: i64) -> String {
    format!("{node}.{dpu}.{epoch}")
}

/// The name of the Lease that is the right to the network with a number. It is never deleted: a number that could be
/// given again would let a late call join two tenants.
pub fn vni_lease(vni: u32) -> String {
    format!("vni-{vni}")
}
