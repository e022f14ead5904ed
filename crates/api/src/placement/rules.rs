//! The Placement: which namespaces go where, and how they move.

use super::{OnUnreachable, VolumePolicy};
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The desired state of the Placement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Placement",
    plural = "placements",
    shortname = "plc",
    category = "interlock",
    status = "PlacementStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Placement selects the clusters for placed namespaces, and configures how they move. If several Placements select a namespace, the first by name is used.",
    printcolumn(
        name = "Unreachable",
        type_ = "string",
        json_path = ".spec.onUnreachable",
        description = "The policy for owners that send no heartbeat"
    ),
    printcolumn(
        name = "Transport",
        type_ = "string",
        json_path = ".spec.volumes.transport",
        description = "How data is moved"
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].status",
        description = "Whether the Placement is accepted"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct PlacementSpec {
    /// Selects namespaces by their labels. Empty: all namespaces with the label
    /// interlock.dev/placed.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub namespace_selector: LabelSelector,
    /// Selects WorkloadClusters by their labels. Empty: all clusters.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub cluster_selector: LabelSelector,
    /// What to do when the cluster that owns such a namespace sends no heartbeat.
    #[serde(default)]
    pub on_unreachable: OnUnreachable,
    /// How the volumes of such a namespace move.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub volumes: VolumePolicy,
    /// Whether a cluster starts the workloads of such a namespace only when its cloud roles trust that
    /// cluster. Absent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub await_rights: Option<bool>,
}

/// The observed state of the Placement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct PlacementStatus {
    /// Accepted: whether the Placement is accepted as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
