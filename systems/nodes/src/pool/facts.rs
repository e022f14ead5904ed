//! What is known of a machine.

use crate::power::PowerState;
use interlock_api::nodes::{DpuName, FencedDpu, NodeAttestation, NodePhase, PowerControl, Ref};
use interlock_kernel::conditions::{Condition, Finding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The node, as the cache shows it.
    pub node: Option<Node>,
    /// The node, as the hub itself showed it in this step; None: it was not read.
    pub live: Option<Live>,
    /// The NodeFences that name it and have no outcome yet, by name.
    pub fences: Vec<Fence>,
}

/// What a live read of the node showed.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Live {
    /// There is none of that name.
    Gone,
    /// There is one.
    There(State),
}

/// What a NodeFence is compared with.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct State {
    /// The identity of the node.
    pub uid: String,
    /// The last epoch that was given.
    pub epoch: i64,
    /// Its phase.
    pub phase: NodePhase,
    /// Since when it is in that phase.
    pub phase_since: Option<Time>,
    /// The DPUs that have not reported that they are clean, and were not seen off.
    pub open: Vec<DpuName>,
    /// All its DPUs.
    pub dpus: Vec<DpuName>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What a NodeFence is compared with.
    pub state: State,
    /// For how many seconds it has been in its phase.
    pub age_seconds: i64,
    /// The highest epoch that is revoked.
    pub floor: i64,
    /// Whether a controller has handled it before.
    pub has_status: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it has our finalizer.
    pub has_finalizer: bool,
    /// Whether its labels are not those of its spec.
    pub has_other_labels: bool,
    /// Whether it is to be held outside of the pool.
    pub is_quarantined: bool,
    /// The epoch up to which people end all.
    pub reclaim_epoch: i64,
    /// Whether its DPUs are those of its rack, and its ports its own: the condition.
    pub wiring: Finding,
    /// Its DPUs, and what they report.
    pub dpus: Vec<Dpu>,
    /// The highest floor that any DPU reports of it.
    pub reported_floor: i64,
    /// The highest epoch, given or revoked, that any DPU reports of it.
    pub reported_epoch: i64,
    /// The DPUs that were seen off.
    pub fenced: Vec<FencedDpu>,
    /// The NodeFence that ended its drain.
    pub undrained_by: Option<Ref>,
    /// The cluster on it.
    pub cluster: Option<Cluster>,
    /// The clusters that name it at its epoch, and whose machines are of one tenant, by name.
    pub named_by: Vec<Ref>,
    /// The clusters that are asked to drain for it, and are not to be, by name.
    pub drained_in_vain: Vec<String>,
    /// After how many seconds a DPU that has not reported is reported as blocking.
    pub after_seconds: i64,
    /// After how many seconds a cluster that is not drained is reported as blocking.
    pub drain_seconds: i64,
    /// Who confirms that a DPU is off.
    pub power: PowerControl,
    /// What its conditions say.
    pub said: Vec<Condition>,
}

/// A DPU of the node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Dpu {
    /// Which.
    pub name: DpuName,
    /// Whether it is in the rack, and there is no DpuReport of it.
    pub lacks_report: bool,
    /// Whether it reports, of this node, that the port is closed and that it refuses each epoch up to the last one.
    pub is_clean: bool,
    /// Whether it reports that the port is open for the assignment.
    pub is_programmed: bool,
    /// What the platform's command answered in this step.
    pub power: Option<PowerState>,
}

/// The cluster on a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Cluster {
    /// Which.
    pub reference: Ref,
    /// The cluster, as the cache shows it.
    pub cached: OnCluster,
    /// The cluster, as the hub itself showed it in this step; None: it was not read.
    pub live: Option<OnCluster>,
    /// How many grants it holds.
    pub grants: i32,
}

/// What a cluster says of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum OnCluster {
    /// There is no such cluster, or it does not name the node at its epoch.
    NotOnIt,
    /// It names the node, and is not asked to drain for it.
    OnIt,
    /// It is asked to drain for the node.
    Draining,
    /// It is drained for the node, at its present generation.
    Drained,
}

/// A NodeFence without an outcome.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Fence {
    /// Which.
    pub reference: Ref,
    /// The node that it names.
    pub node: Ref,
    /// The epoch that it names.
    pub epoch: i64,
    /// The phase that it names.
    pub phase_since: Time,
    /// The DPU that it names.
    pub dpu: Option<DpuName>,
    /// What a person saw.
    pub attestation: NodeAttestation,
}

impl State {
    /// Whether it is the same node, in the same phase of the same epoch.
    pub(super) fn is_in_the_phase_of(&self, other: &State) -> bool {
        let key = |state: &State| (state.epoch, state.phase, state.phase_since.clone());
        self.uid == other.uid && key(self) == key(other)
    }
}

impl Node {
    /// The DPUs that may still have it programmed.
    pub(super) fn open_dpus(&self) -> impl Iterator<Item = &Dpu> {
        let is_fenced = |dpu: &Dpu| {
            self.fenced
                .iter()
                .any(|fenced| fenced.dpu == dpu.name && fenced.epoch == self.state.epoch)
        };
        self.dpus.iter().filter(move |dpu| !dpu.is_clean && !is_fenced(dpu))
    }

    /// The phase of this node once it is clean.
    pub(super) fn clean_phase(&self) -> NodePhase {
        if self.is_quarantined { NodePhase::Quarantined } else { NodePhase::Available }
    }

    /// Whether a NodeFence took effect.
    pub(super) fn has_used(&self, fence: &Fence) -> bool {
        let is_it = |by: &Ref| by.is_same(&fence.reference);
        let has_fenced = self.fenced.iter().any(|fenced| fenced.by.as_ref().is_some_and(is_it));
        has_fenced || self.undrained_by.as_ref().is_some_and(is_it)
    }
}
