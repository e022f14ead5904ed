//! The kinds that volumes read and write, and the words that they are distinguished by.

use interlock_kernel::{GroupVersion, Kind};

const CORE: GroupVersion = GroupVersion::new("", "v1");
const STORAGE: GroupVersion = GroupVersion::new("storage.k8s.io", "v1");
const SNAPSHOT: GroupVersion = GroupVersion::new("snapshot.storage.k8s.io", "v1");
const COORDINATION: GroupVersion = GroupVersion::new("coordination.k8s.io", "v1");
const VOLSYNC: GroupVersion = GroupVersion::new("volsync.backube", "v1alpha1");

/// A namespace.
pub const NAMESPACE: Kind = Kind::cluster_wide(CORE, "Namespace", "namespaces");
/// A claim on a volume.
pub const CLAIM: Kind = Kind::namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims");
/// A volume.
pub const VOLUME: Kind = Kind::cluster_wide(CORE, "PersistentVolume", "persistentvolumes");
/// A pod.
pub const POD: Kind = Kind::namespaced(CORE, "Pod", "pods");
/// A secret.
pub const SECRET: Kind = Kind::namespaced(CORE, "Secret", "secrets");
/// Configuration that is no secret.
pub const CONFIG_MAP: Kind = Kind::namespaced(CORE, "ConfigMap", "configmaps");
/// How volumes are made.
pub const STORAGE_CLASS: Kind = Kind::cluster_wide(STORAGE, "StorageClass", "storageclasses");
/// A snapshot of a volume, as its owner sees it.
pub const SNAPSHOT_KIND: Kind = Kind::namespaced(SNAPSHOT, "VolumeSnapshot", "volumesnapshots");
/// A snapshot of a volume, as the storage sees it.
pub const CONTENT: Kind =
    Kind::cluster_wide(SNAPSHOT, "VolumeSnapshotContent", "volumesnapshotcontents");
/// How snapshots are made.
pub const SNAPSHOT_CLASS: Kind =
    Kind::cluster_wide(SNAPSHOT, "VolumeSnapshotClass", "volumesnapshotclasses");
/// A place at a repository.
pub const LEASE: Kind = Kind::namespaced(COORDINATION, "Lease", "leases");
/// Takes snapshots of a claim, on a trigger.
pub const SOURCE: Kind = Kind::namespaced(VOLSYNC, "ReplicationSource", "replicationsources");
/// Brings snapshots back, and publishes the latest.
pub const DESTINATION: Kind =
    Kind::namespaced(VOLSYNC, "ReplicationDestination", "replicationdestinations");
