//! The kinds that identities read and write.

use interlock_api::identities as irsa;
use interlock_kernel::{GroupVersion, Kind};

const CORE: GroupVersion = GroupVersion::new("", "v1");
const IRSA: GroupVersion = GroupVersion::new(irsa::GROUP, irsa::VERSION);
const OWN: GroupVersion = GroupVersion::new(interlock_api::GROUP, interlock_api::VERSION);

/// An identity, as a tenant declares it.
pub const ACCOUNT: Kind = Kind::namespaced(IRSA, "IamRoleServiceAccount", "iamroleserviceaccounts");
/// A policy of the cloud account.
pub const POLICY: Kind = Kind::namespaced(IRSA, "Policy", "policies");
/// A role of the cloud account.
pub const ROLE: Kind = Kind::namespaced(IRSA, "Role", "roles");
/// What pods run as.
pub const SERVICE_ACCOUNT: Kind = Kind::namespaced(CORE, "ServiceAccount", "serviceaccounts");
/// A namespace.
pub const NAMESPACE: Kind = Kind::cluster_wide(CORE, "Namespace", "namespaces");
/// Which cluster owns a namespace.
pub const GRANT: Kind = Kind::cluster_wide(OWN, "Grant", "grants");
/// A cluster.
pub const CLUSTER: Kind = Kind::cluster_wide(OWN, "WorkloadCluster", "workloadclusters");
