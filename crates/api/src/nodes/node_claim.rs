//! The NodeClaim: a tenant asks for machines, in its own control plane.

use super::DpuName;
use crate::placement::displayed_as_on_the_wire;
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    shortname = "nc",
    category = "interlock",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A NodeClaim asks for machines. The machines are the tenant's until the NodeClaim is deleted, asks for fewer, or the platform takes one back.",
    printcolumn(
        name = "Count",
        type_ = "integer",
        json_path = ".spec.count",
        description = "How many are wanted"
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].status",
        description = "Whether the claim can be served as it is written"
    ),
    printcolumn(
        name = "Bound",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Bound\")].status",
        description = "Whether as many machines are bound as are wanted"
    ),
    printcolumn(
        name = "Network",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"NetworkReady\")].status",
        description = "Whether all of them are programmed in their DPUs"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Bound\")].reason",
        description = "Why machines are missing",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct NodeClaimSpec {
    /// How many machines.
    #[serde(default = "NodeClaimSpec::one")]
    #[schemars(range(min = 0, max = 512))]
    pub count: u32,
    /// Which machines.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub selector: NodeSelector,
    /// Only machines with these names; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub node_names: Vec<String>,
    /// The addresses that machines of the claim may send from, beside the link-local address of each. To change them
    /// closes the ports of that machine for a moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["node".to_owned()]))]
    pub addresses: Vec<NodeAddresses>,
}

/// The addresses of a machine in the network of its tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct NodeAddresses {
    /// The name of the machine.
    #[schemars(length(min = 1, max = 63))]
    pub node: String,
    /// The addresses.
    #[schemars(with = "Vec<String>", length(max = 16), inner(length(min = 2, max = 45)))]
    #[x_kube(validation = Rule::new("self.all(a, isIP(a))")
        .message("addresses are IP addresses, as in 10.0.0.1 or fd00::1"))]
    pub addresses: Vec<IpAddr>,
}

impl NodeClaimSpec {
    fn one() -> u32 {
        1
    }

    /// The addresses of a machine, in order.
    pub fn addresses_of(&self, node: &str) -> Vec<IpAddr> {
        let found = self.addresses.iter().find(|it| it.node == node);
        found.map(|it| it.addresses.clone()).unwrap_or_default()
    }
}

impl Default for NodeClaimSpec {
    fn default() -> Self {
        Self {
            count: Self::one(),
            selector: NodeSelector::default(),
            node_names: Vec::new(),
            addresses: Vec::new(),
        }
    }
}

/// Which machines fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// Those that have these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub labels: BTreeMap<String, String>,
    /// Those of this rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 31))]
    pub rack: Option<String>,
    /// Those that are wired through the DPU of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 31))]
    pub dpu: Option<String>,
}

/// The observed state of the claim; only Interlock writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct NodeClaimStatus {
    /// The machines of the claim, in the order in which they were chosen. A machine that was released stays for ten
    /// minutes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2048))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub nodes: Vec<NodeEntry>,
    /// Accepted, Bound and NetworkReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// A machine of the claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeEntry {
    /// The name of the machine.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The uid of its PhysicalNode, which decides.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// The epoch of the assignment; 0 while it is Chosen.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Chosen: it is to be bound. Bound: it is the tenant's. Releasing: it is revoked, and not clean yet. Released: it
    /// is the tenant's no more.
    #[serde(default)]
    pub state: EntryState,
    /// Since when it is in that state, by the clock of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub since: Option<Time>,
    /// The DPUs that the machine is wired through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub dpus: Vec<DpuName>,
    /// The network of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 4096, max = 16_777_215))]
    pub vni: Option<u32>,
}

/// How far a machine of a claim is.
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
pub enum EntryState {
    /// It is to be bound. The node knows nothing of it yet.
    #[default]
    Chosen,
    /// It is the tenant's.
    Bound,
    /// It is revoked, and not all its DPUs are known clean.
    Releasing,
    /// Nothing of it is the tenant's any more.
    Released,
}
displayed_as_on_the_wire!(EntryState { Chosen, Bound, Releasing, Released });

impl EntryState {
    /// Whether its epoch is over.
    pub fn is_over(self) -> bool {
        matches!(self, EntryState::Releasing | EntryState::Released)
    }
}

impl NodeClaim {
    /// The status, or that of a claim that no controller has handled yet.
    pub fn status_or_default(&self) -> NodeClaimStatus {
        self.status.clone().unwrap_or_default()
    }
}
