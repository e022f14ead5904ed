//! What is true, in the words of the promises.

use super::start::{DPUS, PORT, RACK, claim, node};
use super::{Nodes, cluster};
use crate::kinds::{DPU_ATTACHMENT, DPU_REPORT, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE, TENANT};
use crate::outside::Tag;
use crate::world::TENANTS;
use interlock_api::nodes::condition::NETWORK_READY;
use interlock_api::nodes::{
    Assignment, DpuName, DpuReportStatus, EntryState, NodeClaimStatus, NodeFenceSpec, NodePhase,
    PhysicalNodeSpec, PhysicalNodeStatus, TenantStatus,
};
use interlock_kernel::conditions::{Condition, find};
use interlock_kernel::metadata::{finalizers, is_deleting, uid_of};
use interlock_kernel::{Name, Object, read_part};
use interlock_world::{CLUSTERS, Objects, Scene};
use std::collections::BTreeMap;

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The node at the hub.
    pub(super) node: Option<Node>,
    /// What DPUs have open.
    pub(super) open: Vec<Open>,
    /// What DPUs have reported as clean.
    pub(super) clean: Vec<Clean>,
    /// The claims, by tenant.
    pub(super) claims: [Option<Claim>; CLUSTERS],
    /// The networks of the tenants.
    pub(super) vnis: [Option<u32>; CLUSTERS],
    /// How many attachments have our finalizer, and are being deleted.
    pub(super) held: usize,
    /// The uid of the node and the floor in the record of the port of each DPU.
    pub(super) records: [Option<(String, i64)>; CLUSTERS],
    /// Which DPUs have power.
    pub(super) is_on: [bool; CLUSTERS],
    /// The highest floor that was ever reported as clean.
    pub(super) past: Past,
}

/// The node at the hub.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) uid: String,
    pub(super) phase: NodePhase,
    pub(super) epoch: i64,
    pub(super) floor: i64,
    pub(super) assignment: Option<Assignment>,
    /// Its network was ready once since it was given: the tenant may have used it.
    pub(super) was_ready: bool,
    /// Something at the hub says that this epoch is to end.
    pub(super) is_ended: bool,
    /// All DPUs of its spec are in its rack.
    pub(super) is_consistent: bool,
    /// Its rack.
    pub(super) rack: String,
    /// The DPUs that its spec names.
    pub(super) dpus: Vec<DpuName>,
    /// Which DPUs were seen off after this floor was raised: by the node, or by a NodeFence that fits it.
    pub(super) seen_off: [bool; CLUSTERS],
    /// A cluster is on it.
    pub(super) has_cluster: bool,
    /// Its epoch may end as far as the cluster on it is concerned.
    pub(super) may_end: bool,
}

/// What a DPU has open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Open {
    pub(super) dpu: usize,
    pub(super) tag: Tag,
    pub(super) vni: u32,
}

/// A floor that a DPU has reported as clean.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Clean {
    pub(super) dpu: usize,
    pub(super) uid: String,
    pub(super) floor: i64,
}

/// A claim in the control plane of its tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) uid: String,
    pub(super) is_terminating: bool,
    pub(super) entries: Vec<Entry>,
}

/// A node in a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) uid: String,
    pub(super) epoch: i64,
    pub(super) state: EntryState,
}

/// The highest floor that each DPU ever reported as clean, of each node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Past(BTreeMap<(usize, String), i64>);

impl Past {
    /// After a step to a state in which this is reported.
    pub(super) fn after(&self, truth: &Truth) -> Past {
        let mut after = self.clone();
        for Clean { dpu, uid, floor } in &truth.clean {
            let known = after.0.entry((*dpu, uid.clone())).or_insert(*floor);
            *known = (*known).max(*floor);
        }
        after
    }

    fn floor(&self, dpu: usize, uid: &str) -> Option<i64> {
        self.0.get(&(dpu, uid.to_owned())).copied()
    }
}

pub(super) fn read_status(node: &Object) -> PhysicalNodeStatus {
    read_part(node, "status").ok().flatten().unwrap_or_default()
}

/// It is ready, or was interrupted since.
fn was_ready(conditions: &[Condition]) -> bool {
    let ready = find(conditions, NETWORK_READY);
    ready.is_some_and(|it| it.status == "True" || it.reason == "Interrupted")
}

/// Whether somebody saw a DPU off after the floor was raised.
fn is_seen_off(dpu: &DpuName, uid: &str, status: &PhysicalNodeStatus, hub: &Objects<'_>) -> bool {
    let is_recorded =
        status.fenced.iter().any(|fenced| fenced.dpu == *dpu && fenced.epoch == status.epoch);
    let fence = hub.get(&NODE_FENCE, &Name::cluster_wide("fence"));
    let fence = fence.and_then(|it| read_part::<NodeFenceSpec>(&it, "spec").ok().flatten());
    let is_declared = fence.is_some_and(|it| {
        it.node.uid == uid
            && it.epoch == status.epoch
            && Some(it.phase_since) == status.phase_since
            && it.dpu.as_ref() == Some(dpu)
    });
    status.phase == NodePhase::Releasing && (is_recorded || is_declared)
}

impl Node {
    fn of(object: &Object, hub: &Objects<'_>) -> Node {
        let status = read_status(object);
        let spec = read_part::<PhysicalNodeSpec>(object, "spec").ok().flatten();
        let spec = spec.unwrap_or_default();
        Node {
            uid: uid_of(object).to_owned(),
            phase: status.phase,
            epoch: status.epoch,
            floor: status.floor,
            was_ready: was_ready(&status.conditions),
            is_ended: spec.reclaim_epoch >= status.epoch.max(1)
                || spec.quarantine.is_some()
                || is_deleting(object),
            is_consistent: spec.dpus.iter().all(|dpu| dpu.rack == spec.rack),
            dpus: spec.dpus.iter().map(|dpu| dpu.name()).collect(),
            rack: spec.rack,
            has_cluster: status.cluster.is_some(),
            may_end: cluster::may_end(hub, uid_of(object), &status),
            seen_off: DPUS
                .map(|dpu| is_seen_off(&DpuName::new(RACK, dpu), uid_of(object), &status, hub)),
            assignment: status.assignment,
        }
    }

    /// Its assignment, while it is not revoked.
    pub(super) fn given(&self) -> Option<&Assignment> {
        self.assignment.as_ref().filter(|_| self.phase.is_assigned())
    }
}

impl Claim {
    fn of(object: &Object) -> Claim {
        let status = read_part::<NodeClaimStatus>(object, "status").ok().flatten();
        let entries = status.unwrap_or_default().nodes.into_iter();
        let entry = |it: interlock_api::nodes::NodeEntry| Entry {
            uid: it.uid,
            epoch: it.epoch,
            state: it.state,
        };
        Claim {
            uid: uid_of(object).to_owned(),
            is_terminating: is_deleting(object),
            entries: entries.map(entry).collect(),
        }
    }

    /// Whether it has this node at this epoch, or is about to.
    pub(super) fn lists(&self, uid: &str) -> bool {
        self.entries.iter().any(|entry| entry.uid == uid && !entry.state.is_over())
    }
}

impl Truth {
    pub(super) fn of(system: &Nodes, scene: &Scene<'_, Nodes>) -> Truth {
        let dpus = 0..system.size.dpus as usize;
        let tenants = 0..system.size.tenants as usize;
        let node_at = scene.hub().get(&PHYSICAL_NODE, &node());
        let mut truth = Truth {
            node: node_at.map(|object| Node::of(&object, &scene.hub())),
            open: Vec::new(),
            clean: Vec::new(),
            claims: [None, None],
            vnis: [None; CLUSTERS],
            held: 0,
            records: [None, None],
            is_on: [true; CLUSTERS],
            past: (*scene.past).clone(),
        };
        for dpu in dpus {
            truth.add_dpu(dpu, scene);
        }
        for tenant in tenants {
            truth.add_tenant(tenant, scene);
        }
        truth
    }

    fn add_dpu(&mut self, dpu: usize, scene: &Scene<'_, Nodes>) {
        let device = &*scene.machines[dpu];
        self.is_on[dpu] = device.is_on();
        let record = device.record(PORT);
        self.records[dpu] = record.map(|(node, floor)| (node.to_owned(), floor));
        self.open.extend(device.open().map(|(_, entry)| Open {
            dpu,
            tag: entry.tag.clone(),
            vni: entry.vni,
        }));
        let name = Name::cluster_wide(&DpuName::new(RACK, DPUS[dpu]).to_string());
        let report = scene.hub().get(&DPU_REPORT, &name);
        let status =
            report.and_then(|it| read_part::<DpuReportStatus>(&it, "status").ok().flatten());
        let status = status.unwrap_or_default();
        let port = status.port(PORT).filter(|port| port.clean);
        let clean = port.and_then(|port| Some((port.node.as_ref()?.uid.clone(), port.floor)));
        self.clean.extend(clean.map(|(uid, floor)| Clean { dpu, uid, floor }));
    }

    fn add_tenant(&mut self, tenant: usize, scene: &Scene<'_, Nodes>) {
        let plane = scene.cluster(tenant);
        self.claims[tenant] = plane.get(&NODE_CLAIM, &claim(tenant)).as_ref().map(Claim::of);
        let attachments = plane.list(&DPU_ATTACHMENT);
        let is_held = |it: &&Object| is_deleting(it) && finalizers(it).next().is_some();
        self.held += attachments.iter().filter(is_held).count();
        let Some(object) = scene.hub().get(&TENANT, &Name::cluster_wide(TENANTS[tenant])) else {
            return;
        };
        let status = read_part::<TenantStatus>(&object, "status").ok().flatten();
        self.vnis[tenant] = status.unwrap_or_default().vni;
    }

    /// The claim that the node is assigned to, if it is where its tenant has its claims.
    pub(super) fn claim_of(&self, assignment: &Assignment) -> Option<&Claim> {
        self.claims.iter().flatten().find(|claim| claim.uid == assignment.claim.uid)
    }

    /// Whether all DPUs with power have the node programmed for its assignment.
    pub(super) fn is_programmed(&self, system: &Nodes) -> bool {
        let Some(node) = &self.node else { return false };
        let Some(given) = node.given() else { return false };
        (0..system.size.dpus as usize).all(|dpu| {
            let mut open = self.open.iter().filter(|open| open.dpu == dpu);
            !self.is_on[dpu] || open.any(|open| open.is_for(node, given))
        })
    }

    /// The highest floor that a DPU ever reported as clean of a node.
    pub(super) fn reported(&self, dpu: usize, uid: &str) -> Option<i64> {
        let now = self.clean.iter().find(|it| it.dpu == dpu && it.uid == uid);
        now.map(|it| it.floor).max(self.past.floor(dpu, uid))
    }

    /// What is open for the node that is there now.
    pub(super) fn on_node(&self) -> impl Iterator<Item = (&Node, &Open)> {
        let node = self.node.iter();
        node.flat_map(|node| {
            self.open.iter().filter(|open| open.tag.node == node.uid).map(move |open| (node, open))
        })
    }

    /// What a DPU has ever reported as clean: of which node, and up to which floor.
    pub(super) fn reported_by(&self, dpu: usize) -> impl Iterator<Item = (&str, i64)> {
        let now = self.clean.iter().filter(move |it| it.dpu == dpu);
        let now = now.map(|it| (it.uid.as_str(), it.floor));
        let before = self.past.0.iter().filter(move |((of, _), _)| *of == dpu);
        now.chain(before.map(|((_, uid), floor)| (uid.as_str(), *floor)))
    }

    /// Whether the hub has forgotten an epoch at which the node is still programmed: it was restored from a backup.
    pub(super) fn is_forgotten(&self) -> bool {
        self.on_node().any(|(node, open)| open.tag.epoch > node.epoch)
    }

    pub(super) fn is_available(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.phase == NodePhase::Available)
    }

    /// Whether the node is in the pool, and all that is known beforehand is known.
    pub(super) fn is_ready_to_begin(&self, system: &Nodes) -> bool {
        let tenants = system.size.tenants as usize;
        self.is_available() && self.vnis.iter().take(tenants).all(Option::is_some)
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self, system: &Nodes) -> bool {
        let Some(node) = &self.node else { return true };
        let is_dead = self.is_on.contains(&false);
        let mut claims = self.claims.iter().flatten();
        let is_wanted = claims.clone().any(|claim| !claim.is_terminating);
        if claims.any(|claim| claim.is_terminating) && !is_dead {
            return false;
        }
        if self.held > 0 && !is_dead {
            return false;
        }
        match node.phase {
            NodePhase::Available => !is_wanted || !node.is_consistent,
            NodePhase::Bound => self.is_programmed(system),
            NodePhase::Quarantined => true,
            // A DPU that does not return is fenced, or the node stays as it is.
            NodePhase::Releasing | NodePhase::Draining => is_dead || !node.is_consistent,
        }
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        vec![
            ("node", format!("{:?}", self.node)),
            ("open", format!("{:?}", self.open)),
            ("clean", format!("{:?}", self.clean)),
            ("claims", format!("{:?}", self.claims)),
            ("vnis", format!("{:?}", self.vnis)),
        ]
    }
}

impl Open {
    /// Whether it is for this assignment of this node.
    pub(super) fn is_for(&self, node: &Node, given: &Assignment) -> bool {
        self.tag.node == node.uid
            && self.tag.tenant == given.tenant.uid
            && self.tag.claim == given.claim.uid
            && self.tag.epoch == given.epoch
            && self.vni == given.vni
    }
}
