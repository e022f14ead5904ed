//! The reasons of the events that nodes writes.

/// A node got an epoch for a claim.
pub const NODE_ASSIGNED: &str = "NodeAssigned";
/// The epoch of a node is over, or is to be over once its cluster is drained.
pub const NODE_REVOKED: &str = "NodeRevoked";
/// All DPUs of a node are clean, and it is in the pool again.
pub const NODE_RETURNED: &str = "NodeReturned";
/// A DPU has a node programmed.
pub const DPU_PROGRAMMED: &str = "DpuProgrammed";
/// A DPU has nothing of a node any more.
pub const DPU_CLEAN: &str = "DpuClean";
/// A node cannot return: a DPU has not reported, or a cluster is not drained.
pub const RELEASE_BLOCKED: &str = "ReleaseBlocked";
/// A NodeFence took effect.
pub const NODE_FENCED: &str = "NodeFenced";
/// A NodeFence names another state than the node has.
pub const FENCE_REFUSED: &str = "FenceRefused";
/// The DPUs of a node do not exist, or a port of it is another node's.
pub const CONFIGURATION_INCONSISTENT: &str = "ConfigurationInconsistent";
/// A DpuAttachment is forged, stale or misplaced.
pub const ATTACHMENT_REFUSED: &str = "AttachmentRefused";
/// The claim of a bound node is not in the control plane of its tenant.
pub const CLAIM_MISSING: &str = "ClaimMissing";
/// A DPU lost the record of a port.
pub const RECORD_LOST: &str = "RecordLost";
