//! The ReplicationDestination: brings an image back, and publishes the latest.

use super::{Amount, Anything, CopyMethod, CustomAuthority, External, MoverStatus, Trigger};
use interlock_kernel::conditions::Condition;
use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Time};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is wished.
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
    doc = "Says what is brought back, when, how, and into which volume.",
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
    /// When to sync. Without it: always.
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
    /// Replication by somebody else, Interlock among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "External")]
    pub external: Option<External>,
    /// Whether no new sync begins. One that runs ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// A restore from a restic repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicationDestinationRestic {
    /// How an image of the volume comes about: Direct, None, Clone or Snapshot.
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
    /// The snapshot class of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub volume_snapshot_class_name: Option<String>,
    /// The claim that is written. Without it one is made, and capacity and accessModes are needed.
    #[serde(rename = "destinationPVC", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub destination_pvc: Option<String>,
    /// Whether a claim that was made for a sync goes after it.
    #[serde(rename = "cleanupTempPVC", default, skip_serializing_if = "std::ops::Not::not")]
    pub cleanup_temp_pvc: bool,
    /// The Secret that says where the repository is and how it is opened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Whom to believe who the repository is.
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
    /// Whether the cache of VolSync's mover goes after a sync.
    #[serde(rename = "cleanupCachePVC", default, skip_serializing_if = "std::ops::Not::not")]
    pub cleanup_cache_pvc: bool,
    /// How many of the newest snapshots are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub previous: Option<i32>,
    /// No snapshot younger than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub restore_as_of: Option<Time>,
    /// Whether files go that the snapshot does not have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_file_deletion: bool,
    /// Of the pods of VolSync's movers.
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
    /// What the pods of VolSync's movers may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub mover_resources: Option<Anything>,
    /// Where the pods of VolSync's movers run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub mover_affinity: Option<Anything>,
    /// Further volumes for the pods of VolSync's movers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mover_volumes: Vec<Anything>,
}

/// What is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicationDestinationStatus {
    /// When the last sync that went well was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_sync_time: Option<Time>,
    /// When the sync that runs began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_sync_start_time: Option<Time>,
    /// How long the last sync took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub last_sync_duration: Option<String>,
    /// When the next sync begins, for those with a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub next_sync_time: Option<Time>,
    /// The last word of spec.trigger.manual whose sync is done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_manual_sync: String,
    /// How the latest mover fared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MoverStatus")]
    pub latest_mover_status: Option<MoverStatus>,
    /// The latest image that is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TypedLocalObjectReference")]
    pub latest_image: Option<TypedLocalObjectReference>,
    /// What VolSync says of rsync over SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rsync: Option<Anything>,
    /// What VolSync says of rsync over TLS.
    #[serde(rename = "rsyncTLS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub rsync_tls: Option<Anything>,
    /// What an external provider has to say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external: BTreeMap<String, String>,
    /// Synchronizing; interlock.dev/Accepted and interlock.dev/Healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<meta::Condition>")]
    pub conditions: Vec<Condition>,
}
