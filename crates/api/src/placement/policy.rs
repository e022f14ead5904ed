//! How a namespace moves: what a Placement says and its Grants take over.

use super::displayed_as_on_the_wire;
use crate::Period;
use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to do when the owner of a namespace sends no heartbeat. Hold: wait until the owner answers or a
/// ForceRelease declares it gone. TakeOverAfterLease: not supported yet, treated as Hold.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum OnUnreachable {
    /// Wait until it answers, or until a person declares it gone.
    #[default]
    Hold,
    /// Not supported yet, treated as `Hold`.
    TakeOverAfterLease,
}
displayed_as_on_the_wire!(OnUnreachable { Hold, TakeOverAfterLease });

/// How the data of a volume is moved. Copy: directly from cluster to cluster. Restic: through a restic
/// repository, which must be named.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Transport {
    /// Directly from cluster to cluster.
    #[default]
    Copy,
    /// Through a restic repository.
    Restic,
}
displayed_as_on_the_wire!(Transport { Copy, Restic });

/// How volumes move, and how long the old ones are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.transport) || self.transport != 'Restic' || has(self.repository)")
        .message("transport Restic needs a repository")
)]
pub struct VolumePolicy {
    /// How the data is moved: Copy, directly from cluster to cluster, or Restic, through a repository.
    #[serde(default)]
    pub transport: Transport,
    /// The Secret in the namespace with the address and the password of the restic repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub repository: Option<String>,
    /// Maps storage classes to their names on other clusters. A class that is not listed keeps its
    /// name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage_classes: BTreeMap<String, String>,
    /// How long the volumes of the previous owner are kept once the new owner runs, such as 168h or
    /// 1h30m.
    #[serde(default = "VolumePolicy::a_week")]
    pub keep_superseded: Period,
    /// Whether the copied files are compared with the original files before the pods start.
    #[serde(default = "VolumePolicy::yes")]
    pub verify_on_arrival: bool,
    /// A cron schedule for background copies, which make the last copy of a move short. If not set, data
    /// is copied only by moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub sync_schedule: Option<String>,
}

impl VolumePolicy {
    fn a_week() -> Period {
        Period::hours(168)
    }

    fn yes() -> bool {
        true
    }
}

impl Default for VolumePolicy {
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            repository: None,
            storage_classes: BTreeMap::new(),
            keep_superseded: Self::a_week(),
            verify_on_arrival: Self::yes(),
            sync_schedule: None,
        }
    }
}
