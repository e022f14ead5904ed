//! What is seen of a machine: its record, its rack, the reports of its DPUs, its cluster and its NodeFences.

use super::facts::{Cluster, Dpu, Facts, Fence, Live, Node, OnCluster, State};
use super::wiring::{rack_of, wiring};
use crate::filed::{CLUSTERS_BY_NODE, FENCES_BY_NODE, drained_node, requester};
use crate::kinds::{DPU_REPORT, PHYSICAL_NODE, WORKLOAD_CLUSTER};
use crate::power::{IsOff, Power};
use crate::record::{NodeRecord, ref_to};
use crate::reported;
use interlock_api::nodes::{
    DpuReportStatus, FINALIZER_NODE_IN_USE, NodeDpu, NodeFenceOutcome, NodeFenceSpec,
    NodeFenceStatus, NodePhase, PortReport, RackSpec, Ref,
};
use interlock_api::placement::condition::DRAINED;
use interlock_api::placement::{WorkloadClusterSpec, WorkloadClusterStatus};
use interlock_kernel::conditions::find;
use interlock_kernel::metadata::{has_finalizer, name_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Object, Place, View, read_part};
use jiff::Timestamp;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    /// Where the node is.
    pub(super) address: Address,
    pub(super) node: Option<NodeRecord>,
    /// The NodeFences without an outcome.
    pub(super) fences: Vec<Object>,
    /// The cluster on the node, and those that name it.
    pub(super) clusters: Vec<Object>,
}

/// A WorkloadCluster, as far as a node is concerned.
struct Machines<'a> {
    cluster: Option<&'a Object>,
    /// The cluster that is meant.
    uid: &'a str,
}

/// Where a cluster is.
pub(super) fn cluster_at(name: &str) -> Address {
    Address::new(Place::HUB, &WORKLOAD_CLUSTER, Name::cluster_wide(name))
}

/// Reads what a step is about.
pub(super) fn observe(
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<Power>,
) -> Result<(Facts, Scene), String> {
    let address = Address::new(Place::HUB, &PHYSICAL_NODE, Name::cluster_wide(subject));
    let found = view.get(Place::HUB, &PHYSICAL_NODE, &address.name);
    let node = found.as_ref().map(NodeRecord::read).transpose()?;
    let mut fences = view.find(Place::HUB, &FENCES_BY_NODE, subject);
    fences.retain(|object| fence(object).is_some());
    let clusters = node.as_ref().map(|node| clusters(node, view)).unwrap_or_default();
    let live = match live_reads.objects.get(&address) {
        None => None,
        Some(None) => Some(Live::Gone),
        Some(Some(object)) => {
            let record = NodeRecord::read(object)?;
            Some(Live::There(state(&record, view)))
        }
    };
    let facts = Facts {
        node: node.as_ref().map(|node| facts_of(node, &clusters, view, live_reads)),
        live,
        fences: fences.iter().filter_map(fence).collect(),
    };
    Ok((facts, Scene { now: view.now(), address, node, fences, clusters }))
}

/// A NodeFence, if it has no outcome yet. One that cannot be read has none, and never gets one.
fn fence(object: &Object) -> Option<Fence> {
    let spec = read_part::<NodeFenceSpec>(object, "spec").ok().flatten()?;
    let status = read_part::<NodeFenceStatus>(object, "status").ok()?.unwrap_or_default();
    (status.outcome == NodeFenceOutcome::Pending).then(|| Fence {
        reference: ref_to(object),
        node: spec.node,
        epoch: spec.epoch,
        phase_since: spec.phase_since,
        dpu: spec.dpu,
        attestation: spec.attestation,
    })
}

/// The cluster on a node, and all that name the node, by name.
fn clusters(node: &NodeRecord, view: &dyn View) -> Vec<Object> {
    let mut found = view.find(Place::HUB, &CLUSTERS_BY_NODE, node.uid());
    let on_it = node.status.cluster.as_ref();
    found.extend(
        on_it.and_then(|it| view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(&it.name))),
    );
    found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    found.dedup_by(|a, b| a.metadata.name == b.metadata.name);
    found
}

fn report_of(dpu: &NodeDpu, view: &dyn View) -> Option<Object> {
    view.get(Place::HUB, &DPU_REPORT, &Name::cluster_wide(&dpu.name().to_string()))
}

fn status_of(report: &Object) -> DpuReportStatus {
    read_part::<DpuReportStatus>(report, "status").ok().flatten().unwrap_or_default()
}

fn port_of(dpu: &NodeDpu, view: &dyn View) -> Option<PortReport> {
    report_of(dpu, view).and_then(|report| status_of(&report).port(&dpu.port).cloned())
}

fn is_clean(node: &NodeRecord, dpu: &NodeDpu, view: &dyn View) -> bool {
    port_of(dpu, view).is_some_and(|port| port.is_clean_of(node.uid(), node.status.epoch))
}

fn is_programmed(node: &NodeRecord, dpu: &NodeDpu, view: &dyn View) -> bool {
    let Some((port, assigned)) = port_of(dpu, view).zip(node.assigned()) else { return false };
    let is_it = port.node.as_ref().is_some_and(|it| it.uid == node.uid());
    is_it
        && port.applied.is_some_and(|applied| {
            applied.epoch == assigned.epoch
                && applied.tenant == assigned.tenant.uid
                && applied.claim_uid == assigned.claim.uid
        })
}

fn state(node: &NodeRecord, view: &dyn View) -> State {
    let status = &node.status;
    let is_fenced = |dpu: &NodeDpu| {
        status.fenced.iter().any(|fenced| fenced.dpu == dpu.name() && fenced.epoch == status.epoch)
    };
    let is_open = |dpu: &&NodeDpu| !is_clean(node, dpu, view) && !is_fenced(dpu);
    State {
        uid: node.uid().to_owned(),
        epoch: status.epoch,
        phase: status.phase,
        phase_since: status.phase_since.clone(),
        open: node.spec.dpus.iter().filter(is_open).map(|dpu| dpu.name()).collect(),
        dpus: node.dpus(),
    }
}

fn facts_of(
    node: &NodeRecord,
    clusters: &[Object],
    view: &dyn View,
    live_reads: &LiveReads<Power>,
) -> Node {
    let (spec, status) = (&node.spec, &node.status);
    let rack = rack_of(node, view);
    let fencing = rack.as_ref().map(|rack| rack.fencing.clone()).unwrap_or_default();
    let since = status.phase_since.as_ref().map_or_else(|| view.now(), |since| since.0);
    let dpu = |dpu: &NodeDpu| Dpu {
        name: dpu.name(),
        lacks_report: is_in(rack.as_ref(), node, dpu) && report_of(dpu, view).is_none(),
        is_clean: is_clean(node, dpu, view),
        is_programmed: is_programmed(node, dpu, view),
        power: live_reads.answers.get(&IsOff(dpu.name())).cloned(),
    };
    let reported = reported::of(node, view);
    Node {
        name: node.name().to_owned(),
        state: state(node, view),
        age_seconds: view.now().as_second().saturating_sub(since.as_second()).max(0),
        floor: status.floor,
        has_status: node.has_status,
        is_terminating: node.is_terminating(),
        has_finalizer: has_finalizer(&node.object, FINALIZER_NODE_IN_USE),
        has_other_labels: !node.labels_to_change().is_empty(),
        is_quarantined: spec.quarantine.is_some(),
        reclaim_epoch: spec.reclaim_epoch,
        wiring: wiring(node, rack.as_ref(), view),
        dpus: spec.dpus.iter().map(dpu).collect(),
        reported_floor: reported.iter().map(|port| port.floor).max().unwrap_or(0),
        reported_epoch: reported
            .iter()
            .filter_map(|port| Some(port.applied.as_ref()?.epoch))
            .max()
            .unwrap_or(0),
        fenced: status.fenced.clone(),
        undrained_by: status.undrained_by.clone(),
        cluster: status.cluster.as_ref().map(|on_it| on_node(node, on_it, clusters, live_reads)),
        named_by: named_by(node, clusters, view),
        drained_in_vain: drained_in_vain(node, clusters),
        after_seconds: i64::from(fencing.after_seconds),
        drain_seconds: i64::from(fencing.drain_seconds),
        power: fencing.power,
        said: status.conditions.clone(),
    }
}

fn is_in(rack: Option<&RackSpec>, node: &NodeRecord, dpu: &NodeDpu) -> bool {
    dpu.rack == node.spec.rack && rack.is_some_and(|rack| rack.dpu(&dpu.dpu).is_some())
}

fn on_node(
    node: &NodeRecord,
    on_it: &Ref,
    clusters: &[Object],
    live_reads: &LiveReads<Power>,
) -> Cluster {
    let cached = clusters.iter().find(|cluster| name_of(cluster) == on_it.name);
    let seen = |cluster| Machines { cluster, uid: &on_it.uid }.of(node);
    let live = live_reads.objects.get(&cluster_at(&on_it.name));
    let status =
        cached.and_then(|it| read_part::<WorkloadClusterStatus>(it, "status").ok().flatten());
    Cluster {
        reference: on_it.clone(),
        cached: seen(cached),
        live: live.map(|live| seen(live.as_ref())),
        grants: status.map_or(0, |status| status.grants),
    }
}

fn spec_of(cluster: &Object) -> Option<WorkloadClusterSpec> {
    read_part::<WorkloadClusterSpec>(cluster, "spec").ok().flatten()
}

/// Whether a cluster names a node at the epoch of its assignment.
fn names(spec: &WorkloadClusterSpec, node: &NodeRecord) -> bool {
    spec.machines.iter().any(|it| it.node.uid == node.uid() && it.epoch == node.status.epoch)
}

impl Machines<'_> {
    /// What the cluster says of a node. One that cannot be read may be on it.
    fn of(&self, node: &NodeRecord) -> OnCluster {
        let Some(cluster) = self.cluster.filter(|cluster| uid_of(cluster) == self.uid) else {
            return OnCluster::NotOnIt;
        };
        let Some(spec) = spec_of(cluster) else { return OnCluster::OnIt };
        if !names(&spec, node) {
            return OnCluster::NotOnIt;
        }
        let ours = requester(node.uid(), node.status.epoch);
        if !spec.drains.iter().any(|drain| drain.requester == ours) {
            return OnCluster::OnIt;
        }
        let status = read_part::<WorkloadClusterStatus>(cluster, "status")
            .ok()
            .flatten()
            .unwrap_or_default();
        let condition = find(&status.conditions, DRAINED).filter(|it| it.status == "True");
        // A condition of an older generation may not know of a machine, or of this request.
        let is_now = condition.is_some_and(|it| {
            it.observed_generation.is_some()
                && it.observed_generation == cluster.metadata.generation
        });
        if is_now && status.drained.contains(&ours) {
            OnCluster::Drained
        } else {
            OnCluster::Draining
        }
    }
}

/// The clusters that name a node at its epoch. One with a machine of another tenant is not among them (C4).
fn named_by(node: &NodeRecord, clusters: &[Object], view: &dyn View) -> Vec<Ref> {
    let Some(assigned) = node.assigned() else { return Vec::new() };
    let is_other = |machine: &interlock_api::placement::Machine| {
        let found = view.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide(&machine.node.name));
        let found = found.filter(|found| uid_of(found) == machine.node.uid);
        let record = found.and_then(|found| NodeRecord::read(&found).ok());
        let tenant = record.as_ref().and_then(NodeRecord::assigned).map(|it| it.tenant.clone());
        tenant.is_some_and(|tenant| !tenant.is_same(&assigned.tenant))
    };
    let is_on_it = |cluster: &&Object| {
        spec_of(cluster)
            .is_some_and(|spec| names(&spec, node) && !spec.machines.iter().any(is_other))
    };
    clusters.iter().filter(is_on_it).map(|cluster| ref_to(cluster)).collect()
}

/// The clusters that are asked to drain for a node that is not Draining, or for another epoch of it.
fn drained_in_vain(node: &NodeRecord, clusters: &[Object]) -> Vec<String> {
    let ours = requester(node.uid(), node.status.epoch);
    let is_draining = node.status.phase == NodePhase::Draining;
    let is_in_vain = |cluster: &&Object| {
        let is_on_it = node.status.cluster.as_ref().is_some_and(|it| it.uid == uid_of(cluster));
        let drains = spec_of(cluster).map(|spec| spec.drains).unwrap_or_default();
        let mut of_node =
            drains.iter().filter(|it| drained_node(&it.requester) == Some(node.uid()));
        of_node.any(|it| !(is_draining && is_on_it && it.requester == ours))
    };
    clusters.iter().filter(is_in_vain).map(|cluster| name_of(cluster).to_owned()).collect()
}
