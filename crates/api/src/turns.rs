//! Who may maintain a cluster: one MaintenanceTurn after the other.
#![allow(unreachable_pub, clippy::duplicated_attributes, reason = "the derived code has them")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On a WorkloadCluster, with the uid of the turn that has the cluster.
pub const TURN_FINALIZER_PREFIX: &str = "interlock.dev/turn-";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "MaintenanceTurn",
    plural = "maintenanceturns",
    shortname = "turn",
    category = "interlock",
    status = "MaintenanceTurnStatus",
    doc = "Asks for a cluster for maintenance. The turns of a cluster are opened one after the other, the oldest first; two are never open at once.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Since", type_ = "date", json_path = ".status.phaseSince"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct MaintenanceTurnSpec {
    /// The WorkloadCluster to maintain.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("a MaintenanceTurn is for one cluster: create another one"))]
    pub cluster: String,
    /// Set this when the maintenance is over: the next turn is opened then.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self || !oldSelf")
        .message("a MaintenanceTurn that is finished stays so: create another one"))]
    pub finished: bool,
}

/// How far the turn is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceTurnStatus {
    /// Waiting, Open or Done.
    #[serde(default)]
    pub phase: TurnPhase,
    /// Since when the turn is in that phase; written together with the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
}

/// The phase of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TurnPhase {
    /// Others are first, or there is no such cluster.
    #[default]
    Waiting,
    /// The owner of the turn may maintain the cluster.
    Open,
    /// The turn is over, for good.
    Done,
}
