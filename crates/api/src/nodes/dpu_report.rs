//! The DpuReport: what a DPU read back from its ports.

use super::{DpuName, Ref};
use interlock_kernel::conditions::Condition;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which DPU it is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "DpuReport",
    plural = "dpureports",
    shortname = "dr",
    category = "interlock",
    status = "DpuReportStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A DpuReport is what the agent of a DPU read back from the records and the hardware of its ports. The hub makes it, and only the agent of the DPU writes its status.",
    printcolumn(name = "Rack", type_ = "string", json_path = ".spec.rack"),
    printcolumn(name = "DPU", type_ = "string", json_path = ".spec.dpu"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the driver of the DPU reads and opens ports"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, in one word"
    ),
    printcolumn(name = "Boot", type_ = "string", json_path = ".status.bootID", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name == self.spec.rack + '.' + self.spec.dpu").message(Message::Expression(
        "'a DpuReport is named <rack>.<dpu>: name this one ' + self.spec.rack + '.' + self.spec.dpu".to_owned()
    )),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self == oldSelf").message("a DpuReport is of one DPU")
)]
pub struct DpuReportSpec {
    /// The rack of the DPU.
    #[schemars(length(min = 1, max = 31))]
    pub rack: String,
    /// The name of the DPU in the rack.
    #[schemars(length(min = 1, max = 31))]
    pub dpu: String,
}

/// What the DPU reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct DpuReportStatus {
    /// Which boot of the DPU the report is of.
    #[serde(rename = "bootID", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub boot_id: String,
    /// The networks that are on the DPU, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub vnis: Vec<u32>,
    /// The ports of the DPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["port".to_owned()]))]
    pub ports: Vec<PortReport>,
    /// Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// A port, as its DPU read it back: its record, and what passes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortReport {
    /// The port.
    #[schemars(length(min = 1, max = 63))]
    pub port: String,
    /// The PhysicalNode in the record of the port; absent: the record was lost, or never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub node: Option<Ref>,
    /// The floor in the record: the DPU opens nothing of that node at or under it, ever.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub floor: i64,
    /// Whether the port was closed when it was read. Together with node and floor this is true for ever of the epochs
    /// of that node up to the floor.
    #[serde(default)]
    pub clean: bool,
    /// What the port was open for when it was read, in this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Applied")]
    pub applied: Option<Applied>,
}

/// What a port is open for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The uid of the Tenant.
    #[schemars(length(max = 128))]
    pub tenant: String,
    /// The uid of the NodeClaim.
    #[serde(rename = "claimUID")]
    #[schemars(length(max = 128))]
    pub claim_uid: String,
    /// The epoch.
    #[schemars(range(min = 0))]
    pub epoch: i64,
}

impl DpuReport {
    /// The DPU that it is about.
    pub fn dpu_name(&self) -> DpuName {
        DpuName::new(self.spec.rack.as_str(), self.spec.dpu.as_str())
    }
}

impl DpuReportStatus {
    /// What is reported of a port.
    pub fn port(&self, name: &str) -> Option<&PortReport> {
        self.ports.iter().find(|port| port.port == name)
    }
}

impl PortReport {
    /// Whether the DPU refuses every epoch of this node up to this one, and has none of them open.
    pub fn is_clean_of(&self, node_uid: &str, epoch: i64) -> bool {
        self.clean
            && self.floor >= epoch
            && self.node.as_ref().is_some_and(|node| node.uid == node_uid)
    }
}
