//! The PhysicalNode: a machine, and the single record that says whose it is.

use super::{DpuName, Ref};
use crate::placement::displayed_as_on_the_wire;
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "PhysicalNode",
    plural = "physicalnodes",
    shortname = "pn",
    category = "interlock",
    status = "PhysicalNodeStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A PhysicalNode is a machine that is wired through one or more DPUs of its rack. Its status says whose it is, and nothing else does: back it up.",
    printcolumn(name = "Rack", type_ = "string", json_path = ".spec.rack", description = "The rack of the machine"),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Whether the machine is in the pool or has an owner"
    ),
    printcolumn(
        name = "Tenant",
        type_ = "string",
        json_path = ".status.assignment.tenant.name",
        description = "The tenant that the machine is assigned to"
    ),
    printcolumn(
        name = "Epoch",
        type_ = "integer",
        json_path = ".status.epoch",
        description = "Number of assignments so far"
    ),
    printcolumn(
        name = "Network",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"NetworkReady\")].status",
        description = "Whether all DPUs of the machine have it programmed"
    ),
    printcolumn(
        name = "Blocked",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ReleaseBlocked\")].reason",
        description = "Why the machine cannot return to the pool"
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = ".status.phaseSince",
        description = "Time in the current phase"
    ),
    printcolumn(name = "Floor", type_ = "integer", json_path = ".status.floor", priority = 1),
    printcolumn(name = "Claim", type_ = "string", json_path = ".status.assignment.claim.name", priority = 1),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".status.cluster.name", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("the name of a PhysicalNode has at most 63 characters: it is the value of a label"),
    validation = Rule::new(
        "!has(oldSelf.status) || oldSelf.status == null || (has(self.status) && self.status != null)"
    )
    .message("the status of a PhysicalNode cannot be taken away: its epochs would be used again"),
    validation = Rule::new(
        "!has(oldSelf.status) || oldSelf.status == null || !has(oldSelf.status.assignment) \
         || (self.spec.rack == oldSelf.spec.rack && self.spec.dpus == oldSelf.spec.dpus)"
    )
    .message(Message::Expression(
        "'spec.rack and spec.dpus are frozen while the node is assigned to tenant ' \
         + oldSelf.status.assignment.tenant.name + '; reclaim the node first: set spec.reclaimEpoch to ' \
         + string(oldSelf.status.assignment.epoch)".to_owned()
    )),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.dpus.all(d, d.rack == self.rack)").message(Message::Expression(
        "'not in rack ' + self.rack + ': ' \
         + self.dpus.filter(d, d.rack != self.rack).map(d, d.rack + '/' + d.dpu).join(', ') \
         + '; a node of rack ' + self.rack + ' is wired through DPUs of that rack only'".to_owned()
    ))
)]
pub struct PhysicalNodeSpec {
    /// The rack of the machine.
    #[schemars(length(min = 1, max = 31))]
    pub rack: String,
    /// The DPUs that the machine is wired through, one port of each. Frozen while the machine is assigned.
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["rack".to_owned(), "dpu".to_owned()]))]
    pub dpus: Vec<NodeDpu>,
    /// Releases the machine, and holds it outside of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Quarantine")]
    pub quarantine: Option<Quarantine>,
    /// Ends every epoch up to this one. It is a number, so that it cannot hit the next owner; it only grows.
    #[serde(default)]
    #[schemars(range(min = 0))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("spec.reclaimEpoch only grows"))]
    pub reclaim_epoch: i64,
}

/// A port of a DPU.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct NodeDpu {
    /// The rack of the DPU: the rack of the machine.
    #[schemars(length(min = 1, max = 31))]
    pub rack: String,
    /// The name of the DPU in the rack.
    #[schemars(length(min = 1, max = 31))]
    pub dpu: String,
    /// The port of the DPU that the machine is wired to.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub port: String,
    /// The MAC address of the machine at this port, in lower case, as in 02:00:00:00:00:01.
    #[schemars(
        length(min = 17, max = 17),
        regex(pattern = r"^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$")
    )]
    pub mac: String,
}

impl NodeDpu {
    /// The DPU.
    pub fn name(&self) -> DpuName {
        DpuName::new(self.rack.as_str(), self.dpu.as_str())
    }
}

/// Why a machine is held outside of the pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quarantine {
    /// The reason, for whoever finds it.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
}

/// The observed state of the machine. A machine without a status was never seen clean.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.epoch >= oldSelf.epoch && self.floor >= oldSelf.floor")
        .message("epoch and floor of a PhysicalNode cannot fall"),
    validation = Rule::new("self.floor <= self.epoch").message("the floor is at most the epoch"),
    validation = Rule::new(
        "self.epoch > oldSelf.epoch || !has(self.assignment) \
         || (has(oldSelf.assignment) && self.assignment == oldSelf.assignment)"
    )
    .message("another assignment needs another epoch"),
    validation = Rule::new(
        "(self.phase != 'Bound' && self.phase != 'Draining') \
         || (has(self.assignment) && self.assignment.epoch == self.epoch && self.floor < self.epoch)"
    )
    .message("a node is Bound or Draining at its last epoch, above its floor, and for its assignment"),
    validation = Rule::new(
        "(self.phase != 'Available' && self.phase != 'Quarantined') \
         || (!has(self.assignment) && self.floor == self.epoch)"
    )
    .message("a node outside of Bound, Draining and Releasing has no assignment, and all its epochs are revoked")
)]
pub struct PhysicalNodeStatus {
    /// Releasing: not all DPUs have reported yet that they are clean. Available: the node is in the pool. Bound: the
    /// node is its tenant's. Draining: the node is its tenant's, and is released once its cluster is drained.
    /// Quarantined: the node is held outside of the pool.
    #[serde(default)]
    pub phase: NodePhase,
    /// When the phase began, by the clock of the controller that wrote it; written together with the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub phase_since: Option<Time>,
    /// The last epoch that was given. It only grows.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The highest epoch that is revoked. It only grows, and is at most the epoch.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub floor: i64,
    /// Whose the machine is, or was last while its DPUs are not known clean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Assignment")]
    pub assignment: Option<Assignment>,
    /// The WorkloadCluster that runs on the machine: the first one that named it at its epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub cluster: Option<Ref>,
    /// The DPUs whose power was seen off after the floor was raised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub fenced: Vec<FencedDpu>,
    /// The NodeFence that ended the wait for a cluster to be drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub undrained_by: Option<Ref>,
    /// ConfigurationConsistent, NetworkReady, ReleaseBlocked, ClaimPresent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// The phase of a machine.
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
pub enum NodePhase {
    /// All its epochs are revoked, and not all its DPUs are known clean. A new machine begins so.
    #[default]
    Releasing,
    /// It is in the pool.
    Available,
    /// It is its tenant's.
    Bound,
    /// It is its tenant's, and a revocation waits for a cluster to be drained.
    Draining,
    /// It is held outside of the pool.
    Quarantined,
}
displayed_as_on_the_wire!(NodePhase { Releasing, Available, Bound, Draining, Quarantined });

impl NodePhase {
    /// Whether its DPUs may have it programmed for its assignment: its last epoch is above its floor.
    pub fn is_assigned(self) -> bool {
        matches!(self, NodePhase::Bound | NodePhase::Draining)
    }

    /// Whether all its DPUs are known clean.
    pub fn is_clean(self) -> bool {
        matches!(self, NodePhase::Available | NodePhase::Quarantined)
    }
}

/// Whose a machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// The tenant.
    pub tenant: Ref,
    /// The NodeClaim in the control plane of the tenant.
    pub claim: Ref,
    /// The epoch that was given with it.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// The network of the tenant.
    #[schemars(range(min = 4096, max = 16_777_215))]
    pub vni: u32,
}

/// A DPU whose power was seen off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FencedDpu {
    /// The DPU.
    pub dpu: DpuName,
    /// The epoch of the node: the floor was raised to it before the power was seen off.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The NodeFence that says so; absent: the command of the platform does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ref")]
    pub by: Option<Ref>,
}

impl PhysicalNode {
    /// The status, or that of a machine that no controller has handled yet: Releasing at epoch 0.
    pub fn status_or_default(&self) -> PhysicalNodeStatus {
        self.status.clone().unwrap_or_default()
    }
}

impl PhysicalNodeSpec {
    /// The port at a DPU.
    pub fn at(&self, dpu: &DpuName) -> Option<&NodeDpu> {
        self.dpus.iter().find(|one| one.rack == dpu.rack && one.dpu == dpu.dpu)
    }
}
