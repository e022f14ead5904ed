//! The kinds that workloads read and write.

use interlock_kernel::{GroupVersion, Kind};

const CORE: GroupVersion = GroupVersion::new("", "v1");
const APPS: GroupVersion = GroupVersion::new("apps", "v1");
const BATCH: GroupVersion = GroupVersion::new("batch", "v1");
const POLICY: GroupVersion = GroupVersion::new("policy", "v1");
const DISCOVERY: GroupVersion = GroupVersion::new("discovery.k8s.io", "v1");

/// A namespace.
pub const NAMESPACE: Kind = Kind::cluster_wide(CORE, "Namespace", "namespaces");
/// A node.
pub const NODE: Kind = Kind::cluster_wide(CORE, "Node", "nodes");
/// A pod.
pub const POD: Kind = Kind::namespaced(CORE, "Pod", "pods");
/// A service.
pub const SERVICE: Kind = Kind::namespaced(CORE, "Service", "services");
/// A claim.
pub const CLAIM: Kind = Kind::namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims");
/// A Deployment.
pub const DEPLOYMENT: Kind = Kind::namespaced(APPS, "Deployment", "deployments");
/// A ReplicaSet.
pub const REPLICA_SET: Kind = Kind::namespaced(APPS, "ReplicaSet", "replicasets");
/// A StatefulSet.
pub const STATEFUL_SET: Kind = Kind::namespaced(APPS, "StatefulSet", "statefulsets");
/// A DaemonSet.
pub const DAEMON_SET: Kind = Kind::namespaced(APPS, "DaemonSet", "daemonsets");
/// A revision of a StatefulSet or a DaemonSet.
pub const CONTROLLER_REVISION: Kind =
    Kind::namespaced(APPS, "ControllerRevision", "controllerrevisions");
/// A Job.
pub const JOB: Kind = Kind::namespaced(BATCH, "Job", "jobs");
/// A CronJob.
pub const CRON_JOB: Kind = Kind::namespaced(BATCH, "CronJob", "cronjobs");
/// A part of the endpoints of a Service.
pub const ENDPOINT_SLICE: Kind = Kind::namespaced(DISCOVERY, "EndpointSlice", "endpointslices");
/// How many pods stay healthy while others are evicted.
pub const BUDGET: Kind = Kind::namespaced(POLICY, "PodDisruptionBudget", "poddisruptionbudgets");
