//! The kinds that rollouts reads and writes at the hub.

use interlock_api::{GROUP, VERSION};
use interlock_kernel::{GroupVersion, Kind};

const OWN: GroupVersion = GroupVersion::new(GROUP, VERSION);
const CORE: GroupVersion = GroupVersion::new("", "v1");

/// A cluster that is updated.
pub const WORKLOAD_CLUSTER: Kind = Kind::cluster_wide(OWN, "WorkloadCluster", "workloadclusters");
/// Somebody asks for a version of what runs on a cluster.
pub const CLUSTER_UPDATE: Kind = Kind::namespaced(OWN, "ClusterUpdate", "clusterupdates");
/// The record of a cluster.
pub const CLUSTER_ROLLOUT: Kind = Kind::cluster_wide(OWN, "ClusterRollout", "clusterrollouts");
/// What the agent of a cluster says of its target.
pub const ROLLOUT_REPORT: Kind = Kind::cluster_wide(OWN, "RolloutReport", "rolloutreports");
/// A part of a bundle.
pub const BUNDLE_REVISION: Kind = Kind::cluster_wide(OWN, "BundleRevision", "bundlerevisions");
/// One request for many clusters.
pub const FLEET_UPDATE: Kind = Kind::namespaced(OWN, "FleetUpdate", "fleetupdates");
/// Where people ask.
pub const NAMESPACE: Kind = Kind::cluster_wide(CORE, "Namespace", "namespaces");
/// A bundle as files.
pub const CONFIG_MAP: Kind = Kind::namespaced(CORE, "ConfigMap", "configmaps");
/// A part of a packed bundle.
pub const SECRET: Kind = Kind::namespaced(CORE, "Secret", "secrets");
