//! The Tenant: who gets machines, and where its control plane is.

use crate::placement::{SecretKey, displayed_as_on_the_wire};
use interlock_kernel::conditions::Condition;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The desired state of the tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Tenant",
    plural = "tenants",
    category = "interlock",
    status = "TenantStatus",
    derive = "PartialEq",
    doc = "A Tenant asks for machines with NodeClaims in its own control plane. Its machines are in one network, which no other tenant ever had or gets.",
    printcolumn(
        name = "Plane",
        type_ = "string",
        json_path = ".spec.plane.logicalCluster",
        description = "The logical cluster that is the control plane of the tenant"
    ),
    printcolumn(name = "Quota", type_ = "integer", json_path = ".spec.nodeQuota", description = "Most nodes at once"),
    printcolumn(name = "VNI", type_ = "integer", json_path = ".status.vni", description = "The number of its network"),
    printcolumn(
        name = "Orphans",
        type_ = "string",
        json_path = ".spec.orphanPolicy",
        description = "What happens to a node whose claim vanished",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("the name of a Tenant has at most 63 characters: it is the value of a label"),
    validation = Rule::new(
        "!has(oldSelf.status) || oldSelf.status == null || !has(oldSelf.status.vni) \
         || (has(self.status) && self.status != null && has(self.status.vni))"
    )
    .message("the network of a tenant cannot be taken away: a late call could join two tenants"),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct TenantSpec {
    /// The control plane of the tenant: exactly one of logicalCluster and kubeconfigSecret. Immutable: in another
    /// control plane each claim of a bound node would be missing.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("a Tenant has one control plane: create another Tenant"))]
    pub plane: Plane,
    /// The most nodes that the tenant has at once; absent: as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 0, max = 100_000))]
    pub node_quota: Option<u32>,
    /// What happens to a node whose claim is gone although Interlock did not release it. Hold: the node stays bound,
    /// and says so. Release: it is taken back.
    #[serde(default)]
    pub orphan_policy: OrphanPolicy,
}

/// Where the control plane of a tenant is: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Plane {
    /// A logical cluster of the same API server, by its name.
    LogicalCluster(#[schemars(length(min = 1, max = 253))] String),
    /// A Secret at the hub that holds the kubeconfig of another API server.
    KubeconfigSecret(SecretKey),
}

/// What happens to a node whose claim vanished without our finalizer.
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
pub enum OrphanPolicy {
    /// The node stays bound.
    #[default]
    Hold,
    /// The node is taken back.
    Release,
}
displayed_as_on_the_wire!(OrphanPolicy { Hold, Release });

/// The observed state of the tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(oldSelf.vni) || (has(self.vni) && self.vni == oldSelf.vni)")
        .message("a tenant has one network for ever: a late call could join two tenants")
)]
pub struct TenantStatus {
    /// The number of the network of the tenant. It is won by creating the Lease `vni-<number>`, which is never
    /// deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 4096, max = 16_777_215))]
    pub vni: Option<u32>,
    /// The addresses of the DPUs that hold nodes of the tenant now, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 4096), inner(length(max = 45)))]
    pub vteps: Vec<IpAddr>,
    /// InUse, while the Tenant is being deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

impl Tenant {
    /// The status, or that of a Tenant that no controller has handled yet.
    pub fn status_or_default(&self) -> TenantStatus {
        self.status.clone().unwrap_or_default()
    }
}
