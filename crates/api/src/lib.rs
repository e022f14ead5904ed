//! The wire types of Interlock: its own kinds, and the keys it writes on other people's objects.
//!
//! * [`placement`]: which cluster runs a namespace. `WorkloadCluster`, `Placement`, `Grant`,
//!   `ForceRelease`.
//! * [`volumes`]: VolSync's kinds, which Interlock serves on workload clusters.
//!   `ReplicationSource`, `ReplicationDestination`.
//! * [`identities`]: irsa-operator's kinds, a cloud role for a service account.
//!   `IamRoleServiceAccount`, `Policy`, `Role`.
//! * [`nodes`]: which tenant a machine is for. `Tenant`, `Rack`, `PhysicalNode`, `NodeFence`, `DpuReport`,
//!   and in the control plane of a tenant `NodeClaim`, `DpuAttachment`.
//! * [`rollouts`]: what runs on a cluster, one update at a time. `ClusterUpdate`, `ClusterRollout`, `RolloutReport`,
//!   `BundleRevision`, `FleetUpdate`.
//! * [`turns`]: who may maintain a cluster. `MaintenanceTurn`.
//! * [`names`]: labels, annotations, finalizers and names that are made of others.
//! * [`manifest`]: the definitions as they are installed; `crates/api/crds` holds the same text for
//!   review.
//!
//! Nothing here decides anything. A rule that no writer may break is in the schema, so that the API
//! server refuses it from everybody; all other rules are the systems'.

pub mod identities;
pub mod manifest;
pub mod names;
pub mod nodes;
pub mod period;
pub mod placement;
pub mod rollouts;
pub mod turns;
pub mod volumes;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;

pub use period::Period;

/// The API group of all own kinds.
pub const GROUP: &str = "interlock.dev";

/// The version of all own kinds.
pub const VERSION: &str = "v1alpha1";

/// The definitions of all own kinds, in the order in which they are installed.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        placement::WorkloadCluster::crd(),
        placement::Placement::crd(),
        placement::Grant::crd(),
        placement::ForceRelease::crd(),
        turns::MaintenanceTurn::crd(),
        rollouts::ClusterUpdate::crd(),
        rollouts::ClusterRollout::crd(),
        rollouts::RolloutReport::crd(),
        rollouts::BundleRevision::crd(),
        rollouts::FleetUpdate::crd(),
    ]
}

/// The definitions of VolSync's kinds, for the clusters where workloads run.
pub fn volume_definitions() -> Vec<CustomResourceDefinition> {
    vec![volumes::ReplicationSource::crd(), volumes::ReplicationDestination::crd()]
}

/// The definitions of irsa-operator's kinds, for the hub.
pub fn identity_definitions() -> Vec<CustomResourceDefinition> {
    vec![
        identities::IamRoleServiceAccount::crd(),
        identities::Policy::crd(),
        identities::Role::crd(),
    ]
}

/// The definitions of the kinds of the system nodes, for the hub.
pub fn node_definitions() -> Vec<CustomResourceDefinition> {
    vec![
        nodes::Tenant::crd(),
        nodes::Rack::crd(),
        nodes::PhysicalNode::crd(),
        nodes::NodeFence::crd(),
        nodes::DpuReport::crd(),
    ]
}

/// The definitions of the kinds of the system nodes, for the control planes of tenants.
pub fn tenant_definitions() -> Vec<CustomResourceDefinition> {
    vec![nodes::NodeClaim::crd(), nodes::DpuAttachment::crd()]
}
