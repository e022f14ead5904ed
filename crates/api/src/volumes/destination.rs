//! The ReplicationDestination: brings a snapshot back, and publishes the latest.

use super::{Amount, Anything, CopyMethod, CustomAuthority, External, MoverStatus, Trigger};
use interlock_kernel::conditions::Condition;
use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Time};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The desired state of the ReplicationDestination.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "volsync.backube",
    version = "v1alpha1",
    kind = "ReplicationDestination",
    plural = "replicationdestinations",
    namespaced,
    status = "ReplicationDestinationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A ReplicationDestination configures what is restored, when, how, and into which volume.",
    printcolumn(
        name = "Last sync",
        type_ = "string",
        format = "date-time",
        json_path = ".status.lastSyncTime"
    ),
    printcolumn(name = "Duration", type_ = "string", json_path = ".status.lastSyncDuration"),
    printcolumn(
        name = "Next sync",
        type_ = "string",
        format = "date-time",
        json_path = ".status.nextSyncTime"
    ),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct ReplicationDestinationSpec {
    /// When to sync. If not set: continuously.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Trigger")]
    pub trigger: Option<Trigger>,
    /// Replication by rsync over SSH; not supported by Interlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rsync: Option<Anything>,
    /// Replication by rsync over TLS; not supported by Interlock.
    #[serde(rename = "rsyncTLS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rsync_tls: Option<Anything>,
    /// Replication by rclone; not supported by Interlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rclone: Option<Anything>,
    /// Restore from a restic repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReplicationDestinationRestic")]
    pub restic: Option<ReplicationDestinationRestic>,
    /// Replication by an external provider, such as Interlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "External")]
    pub external: Option<External>,
    /// Whether new syncs are paused. A running sync is finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// A restore from a restic repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicationDestinationRestic {
    /// The copy method: Direct, None, Clone or Snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CopyMethod")]
    pub copy_method: Option<CopyMethod>,
    /// The size of the destination volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Amount")]
    pub capacity: Option<Amount>,
    /// The storage class of the destination volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub storage_class_name: Option<String>,
    /// The access modes of the destination volume.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub access_modes: Vec<String>,
    /// The VolumeSnapshotClass of snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub volume_snapshot_class_name: Option<String>,
    /// The claim to write to. If not set, a claim is created, and capacity and accessModes are required.
    #[serde(rename = "destinationPVC", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub destination_pvc: Option<String>,
    /// Whether a claim that was created for a sync is deleted after it.
    #[serde(rename = "cleanupTempPVC", default, skip_serializing_if = "std::ops::Not::not")]
    pub cleanup_temp_pvc: bool,
    /// The Secret with the address and the password of the repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// The certificate authority of the repository.
    #[serde(rename = "customCA", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CustomAuthority")]
    pub custom_ca: Option<CustomAuthority>,
    /// The size of the cache of VolSync's mover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Amount")]
    pub cache_capacity: Option<Amount>,
    /// The storage class of the cache of VolSync's mover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub cache_storage_class_name: Option<String>,
    /// The access modes of the cache of VolSync's mover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_access_modes: Vec<String>,
    /// Whether the cache of VolSync's mover is deleted after a sync.
    #[serde(rename = "cleanupCachePVC", default, skip_serializing_if = "std::ops::Not::not")]
    pub cleanup_cache_pvc: bool,
    /// The number of newest snapshots to skip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub previous: Option<i32>,
    /// Restore a snapshot that is not newer than this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub restore_as_of: Option<Time>,
    /// Whether files that are not in the snapshot are deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_file_deletion: bool,
    /// The security context of VolSync's movers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub mover_security_context: Option<Anything>,
    /// The service account of VolSync's movers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub mover_service_account: Option<String>,
    /// Further labels for the pods of VolSync's movers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mover_pod_labels: BTreeMap<String, String>,
    /// The resources of VolSync's movers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub mover_resources: Option<Anything>,
    /// The affinity of VolSync's movers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub mover_affinity: Option<Anything>,
    /// Further volumes for the pods of VolSync's movers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mover_volumes: Vec<Anything>,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicationDestinationStatus {
    /// When the last successful sync ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_sync_time: Option<Time>,
    /// When the running sync began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_sync_start_time: Option<Time>,
    /// The duration of the last sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub last_sync_duration: Option<String>,
    /// When the next scheduled sync begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub next_sync_time: Option<Time>,
    /// The last value of spec.trigger.manual whose sync is done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_manual_sync: String,
    /// The result of the last mover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MoverStatus")]
    pub latest_mover_status: Option<MoverStatus>,
    /// The latest complete snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TypedLocalObjectReference")]
    pub latest_image: Option<TypedLocalObjectReference>,
    /// The status that VolSync reports for rsync over SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rsync: Option<Anything>,
    /// The status that VolSync reports for rsync over TLS.
    #[serde(rename = "rsyncTLS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rsync_tls: Option<Anything>,
    /// The status of the external provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external: BTreeMap<String, String>,
    /// Synchronizing; interlock.dev/Accepted and interlock.dev/Healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<meta::Condition>")]
    pub conditions: Vec<Condition>,
}
