//! The kinds that nodes reads and writes, and where they are.

use interlock_api::{GROUP, VERSION};
use interlock_kernel::{GroupVersion, Kind, Place};

const OWN: GroupVersion = GroupVersion::new(GROUP, VERSION);
const COORDINATION: GroupVersion = GroupVersion::new("coordination.k8s.io", "v1");

/// The control plane of one tenant: each controller that needs one runs once for each tenant.
pub const TENANT_PLANE: Place = Place("tenant");

/// Who gets machines.
pub const TENANT: Kind = Kind::cluster_wide(OWN, "Tenant", "tenants");
/// Which DPUs are in a rack.
pub const RACK: Kind = Kind::cluster_wide(OWN, "Rack", "racks");
/// A machine, and whose it is.
pub const PHYSICAL_NODE: Kind = Kind::cluster_wide(OWN, "PhysicalNode", "physicalnodes");
/// A person declares a DPU or a machine off.
pub const NODE_FENCE: Kind = Kind::cluster_wide(OWN, "NodeFence", "nodefences");
/// What a DPU read back.
pub const DPU_REPORT: Kind = Kind::cluster_wide(OWN, "DpuReport", "dpureports");
/// A tenant asks for machines.
pub const NODE_CLAIM: Kind = Kind::cluster_wide(OWN, "NodeClaim", "nodeclaims");
/// A tenant asks a DPU to open a port.
pub const DPU_ATTACHMENT: Kind = Kind::cluster_wide(OWN, "DpuAttachment", "dpuattachments");
/// A cluster that namespaces can run on.
pub const WORKLOAD_CLUSTER: Kind = Kind::cluster_wide(OWN, "WorkloadCluster", "workloadclusters");
/// A Lease: the right to a network, or the heartbeat of a DPU.
pub const LEASE: Kind = Kind::namespaced(COORDINATION, "Lease", "leases");

/// Where the Leases are.
pub const LEASE_NAMESPACE: &str = "interlock-system";
