//! What is true of machines, beside what `fleet/drain` says of namespaces and clusters.

use super::ends::{fence_name, status_of};
use super::start::{NODE_UIDS, NODES};
use super::{Machines, drain};
use interlock_api::nodes::condition::{NETWORK_READY, RELEASE_BLOCKED};
use interlock_api::nodes::{NodePhase, PhysicalNodeStatus};
use interlock_api::placement::WorkloadClusterSpec;
use interlock_kernel::conditions::is_true;
use interlock_kernel::read_part;
use interlock_nodes::kinds::NODE_FENCE;
use interlock_placement::kinds::WORKLOAD_CLUSTER;
use interlock_world::Scene;
use serde_json::json;

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    pub(super) placed: drain::truth::Truth,
    pub(super) nodes: Vec<Node>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    phase: NodePhase,
    epoch: i64,
    floor: i64,
    /// All its DPUs have it programmed, as it says.
    is_ready: bool,
    /// It says that a person has to act.
    is_blocked: bool,
    /// A person fenced it in this phase.
    is_fenced: bool,
    /// The cluster on it, as it says; None: none.
    cluster: Option<usize>,
    /// That cluster names it at its epoch.
    is_named: bool,
    /// Who asks that cluster to be drained for it.
    requester: String,
}

impl Node {
    fn is_ending(&self) -> bool {
        matches!(self.phase, NodePhase::Draining | NodePhase::Releasing)
    }

    /// Whether it waits for its end, and nobody needs to act.
    fn waits(&self, system: &Machines) -> bool {
        self.is_ending() && (system.fences || !self.is_blocked)
    }

    /// Whether its epoch may end: the cluster on it is empty and says so to it, or does not name it; or a person has
    /// fenced it.
    fn may_end(&self, placed: &drain::truth::Truth) -> bool {
        let Some(c) = self.cluster.filter(|_| self.is_named) else { return true };
        self.is_fenced || placed.is_empty(c) && placed.is_drained_for(c, &self.requester)
    }
}

impl Truth {
    pub(super) fn read(system: &Machines, scene: &Scene<'_, Machines>) -> Truth {
        let nodes = system.nodes.iter().enumerate();
        Truth {
            placed: drain::truth::Truth::read(scene, system.spaces),
            nodes: nodes.map(|(n, c)| node_of(scene, n, *c)).collect(),
        }
    }

    /// Whether each machine is its tenant's in its first epoch, is ready, and has its cluster on it.
    pub(super) fn all_are_in_use(&self) -> bool {
        self.nodes.iter().all(|node| {
            let is_bound = node.phase == NodePhase::Bound && node.epoch == 1;
            is_bound && node.is_ready && node.cluster.is_some() && node.is_named
        })
    }

    /// Whether a step to another state ends no epoch but of machines that may lose it.
    pub(super) fn allows(&self, after: &Truth) -> bool {
        let pairs = self.nodes.iter().zip(&after.nodes);
        let mut ended = pairs.filter(|(old, new)| new.floor > old.floor);
        ended.all(|(old, _)| old.may_end(&self.placed))
    }

    /// Whether every machine that is taken back is in the pool, or says that a person has to act.
    pub(super) fn no_reclaim_waits(&self, system: &Machines) -> bool {
        !self.nodes.iter().any(|node| node.waits(system))
    }

    /// Whether nobody needs a cluster empty, but for machines that say that a person has to act.
    pub(super) fn no_drain_waits(&self, system: &Machines) -> bool {
        let is_blocked = |node: &Node| node.is_ending() && !node.waits(system);
        self.placed.nobody_drains() || self.nodes.iter().any(is_blocked)
    }

    /// Whether a machine says that a person has to act.
    pub(super) fn is_one_blocked(&self) -> bool {
        self.nodes.iter().any(|node| node.phase == NodePhase::Draining && node.is_blocked)
    }

    /// Whether the first epoch of every machine has ended, and none waits.
    pub(super) fn all_are_returned(&self) -> bool {
        self.nodes.iter().all(|node| node.floor >= 1 && !node.is_ending())
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        let mut shown = self.placed.show();
        for (name, node) in NODES.into_iter().zip(&self.nodes) {
            let is_on_it = node.cluster.filter(|_| node.is_named);
            let cluster = is_on_it.map_or("none", |c| drain::CLUSTER_NAMES[c]);
            let said = format!(
                "{}, epoch {}, floor {}, cluster {cluster}{}{}",
                node.phase,
                node.epoch,
                node.floor,
                if node.is_blocked { ", blocked" } else { "" },
                if node.is_fenced { ", fenced" } else { "" },
            );
            shown.push((name, said));
        }
        shown
    }
}

fn node_of(scene: &Scene<'_, Machines>, n: usize, c: usize) -> Node {
    let status = status_of(scene, n);
    let spec = scene.hub().get(&WORKLOAD_CLUSTER, &drain::cluster(c));
    let spec: Option<WorkloadClusterSpec> =
        spec.and_then(|cluster| read_part(&cluster, "spec").ok().flatten());
    let mut machines = spec.iter().flat_map(|spec| &spec.machines);
    Node {
        phase: status.phase,
        epoch: status.epoch,
        floor: status.floor,
        is_ready: is_true(&status.conditions, NETWORK_READY),
        is_blocked: is_true(&status.conditions, RELEASE_BLOCKED),
        is_fenced: is_fenced(scene, n, &status),
        cluster: status.cluster.as_ref().map(|_| c),
        is_named: machines.any(|it| it.node.uid == NODE_UIDS[n] && it.epoch == status.epoch),
        requester: format!("nodes/{}/{}", NODE_UIDS[n], status.epoch),
    }
}

/// Whether a person declared that the work on a machine is given up, in the phase that it is in.
fn is_fenced(scene: &Scene<'_, Machines>, n: usize, status: &PhysicalNodeStatus) -> bool {
    let fence = scene.hub().part(&NODE_FENCE, &fence_name(n), "spec");
    fence["epoch"] == status.epoch && fence["phaseSince"] == json!(status.phase_since)
}
