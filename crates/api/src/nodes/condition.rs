//! The types of the conditions that nodes writes.

/// PhysicalNode: each DPU of its spec is in its rack, and no older node has the same port.
pub const CONFIGURATION_CONSISTENT: &str = "ConfigurationConsistent";
/// PhysicalNode: all its DPUs have it programmed for its assignment. NodeClaim: so is each node of it.
pub const NETWORK_READY: &str = "NetworkReady";
/// PhysicalNode: its release takes longer than its rack allows; the message says who has not reported, and since when.
pub const RELEASE_BLOCKED: &str = "ReleaseBlocked";
/// PhysicalNode: the NodeClaim that it is bound to is in the control plane of its tenant.
pub const CLAIM_PRESENT: &str = "ClaimPresent";

/// NodeClaim: it can be served as it is written.
pub const ACCEPTED: &str = "Accepted";
/// NodeClaim: as many nodes as it asks for are bound to it; the message says why others do not fit.
pub const BOUND: &str = "Bound";

/// DpuAttachment: the DPU has it programmed.
pub const PROGRAMMED: &str = "Programmed";
/// DpuAttachment: its epoch is over; it is never programmed again.
pub const SUPERSEDED: &str = "Superseded";

/// DpuReport: the driver of the DPU reads and opens ports.
pub const READY: &str = "Ready";

/// Tenant and Rack: nodes are theirs; the message names them. Only while the object is being deleted.
pub const IN_USE: &str = "InUse";
