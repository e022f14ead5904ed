//! The Rack: which DPUs are in it, and how long is too long.

use crate::placement::displayed_as_on_the_wire;
use interlock_kernel::conditions::Condition;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The desired state of the rack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Rack",
    plural = "racks",
    category = "interlock",
    status = "RackStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Rack lists the DPUs that machines of it are wired through, and how long the release of a machine may take before a person has to act.",
    printcolumn(name = "DPUs", type_ = "string", json_path = ".spec.dpus[*].name", description = "The first DPU of it"),
    printcolumn(
        name = "Power",
        type_ = "string",
        json_path = ".spec.fencing.power",
        description = "Who confirms that a machine is off"
    ),
    printcolumn(name = "After", type_ = "integer", json_path = ".spec.fencing.afterSeconds", priority = 1),
    printcolumn(name = "Drain", type_ = "integer", json_path = ".spec.fencing.drainSeconds", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 31 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name of a Rack has at most 31 characters, which are a-z, 0-9 and -: it is part of a label"),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct RackSpec {
    /// The DPUs of the rack.
    #[serde(default)]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub dpus: Vec<RackDpu>,
    /// When the release of a machine is reported as blocked, and who confirms that its power is off.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub fencing: Fencing,
}

/// A DPU of the rack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct RackDpu {
    /// The name of the DPU, which no other DPU of the rack has.
    #[schemars(length(min = 1, max = 31), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The address of the DPU in the network between DPUs.
    #[schemars(with = "String", length(min = 2, max = 45))]
    #[x_kube(validation = Rule::new("isIP(self)").message("the vtep of a DPU is an IP address, as in 10.0.0.1 or fd00::1"))]
    pub vtep: IpAddr,
}

/// When the release of a machine is reported as blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fencing {
    /// After how many seconds without a report a DPU blocks a release, and says so.
    #[serde(default = "Fencing::after_seconds")]
    #[schemars(range(min = 1, max = 604_800))]
    pub after_seconds: u32,
    /// After how many seconds a cluster that is not drained blocks a release, and says so.
    #[serde(default = "Fencing::drain_seconds")]
    #[schemars(range(min = 1, max = 604_800))]
    pub drain_seconds: u32,
    /// Who confirms that a DPU is off. Manual: a person, with a NodeFence. Command: the command of the platform, which
    /// also switches it off.
    #[serde(default)]
    pub power: PowerControl,
}

impl Fencing {
    fn after_seconds() -> u32 {
        600
    }

    fn drain_seconds() -> u32 {
        3600
    }
}

impl Default for Fencing {
    fn default() -> Self {
        Self {
            after_seconds: Self::after_seconds(),
            drain_seconds: Self::drain_seconds(),
            power: PowerControl::default(),
        }
    }
}

/// Who confirms that a DPU is off.
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
pub enum PowerControl {
    /// A person, with a NodeFence.
    #[default]
    Manual,
    /// The command of the platform.
    Command,
}
displayed_as_on_the_wire!(PowerControl { Manual, Command });

/// The observed state of the rack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct RackStatus {
    /// InUse, while the Rack is being deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

impl RackSpec {
    /// A DPU by its name.
    pub fn dpu(&self, name: &str) -> Option<&RackDpu> {
        self.dpus.iter().find(|dpu| dpu.name == name)
    }
}
