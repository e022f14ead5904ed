//! The Placement: which namespaces go where, and how they move.

use super::{OnUnreachable, VolumePolicy};
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What is wished.
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
    doc = "Says which placed namespaces go to which clusters, and how they move. Where several match a namespace, the first by name counts.",
    printcolumn(
        name = "Unreachable",
        type_ = "string",
        json_path = ".spec.onUnreachable",
        description = "What is done when an owner is not heard of"
    ),
    printcolumn(
        name = "Transport",
        type_ = "string",
        json_path = ".spec.volumes.transport",
        description = "How data travels"
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].status",
        description = "Whether the rules can be followed as they are written"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct PlacementSpec {
    /// Which namespaces this is for, by their labels. Empty: all that are labelled
    /// interlock.dev/placed.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub namespace_selector: LabelSelector,
    /// Which clusters they may run on, by the labels of the WorkloadClusters. Empty: all.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub cluster_selector: LabelSelector,
    /// What to do when the cluster that owns such a namespace is not heard of.
    #[serde(default)]
    pub on_unreachable: OnUnreachable,
    /// How the volumes of such a namespace move.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub volumes: VolumePolicy,
}

/// What is known about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct PlacementStatus {
    /// Accepted: whether the rules can be followed as they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
