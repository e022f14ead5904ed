//! How a namespace moves: what a Placement says and its Grants take over.

use super::displayed_as_on_the_wire;
use crate::Period;
use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to do when the owner of a namespace is not heard of. Hold: nothing, until it answers or a
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

/// How the data of a volume travels. Copy: straight from cluster to cluster. Restic: through a
/// restic repository, which must be named.
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
    /// Straight from cluster to cluster.
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
    /// How the data travels: Copy, straight from cluster to cluster, or Restic, through a repository.
    #[serde(default)]
    pub transport: Transport,
    /// The Secret in the namespace itself that says where the restic repository is and how to open it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub repository: Option<String>,
    /// Which storage class takes the place of which on another cluster. A class that is not named
    /// here keeps its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage_classes: BTreeMap<String, String>,
    /// How long the volumes of the cluster before are kept once the new owner runs, as in 168h or
    /// 1h30m.
    #[serde(default = "VolumePolicy::a_week")]
    pub keep_superseded: Period,
    /// Whether the files that arrived are compared with those that left before anything starts.
    #[serde(default = "VolumePolicy::yes")]
    pub verify_on_arrival: bool,
    /// When to copy in the background, as a cron schedule, so that the last copy of a move is short.
    /// Without it only moves copy.
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
