//! A WorkloadCluster on the node, and a stand-in of placement that drains it when it is asked to.

use super::device::Device;
use super::people::{Around, Left};
use super::start::NODE;
use super::truth::read_status;
use crate::filed::requester;
use crate::kinds::{NODE_FENCE, WORKLOAD_CLUSTER};
use interlock_api::nodes::{NodeFenceSpec, NodePhase, PhysicalNodeStatus};
use interlock_api::placement::{Machine, WorkloadClusterSpec, WorkloadClusterStatus};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Name, Object, read_part};
use interlock_world::{Move, Objects};
use serde_json::{Value, json};

/// What happens, who does it, and whether it must happen in the end.
pub(super) const MOVES: [(&str, &str, bool); 3] = [
    ("CreateCluster", "platform", false),
    ("Drain", "placement", true),
    ("FenceMachine", "platform", false),
];
const CREATE_CLUSTER: usize = 0;
const DRAIN: usize = 1;
const FENCE_MACHINE: usize = 2;

/// The one cluster. Nothing here raises its generation: what it says is of the present one.
const CLUSTER: &str = "work";

fn name() -> Name {
    Name::cluster_wide(CLUSTER)
}

fn fence_name() -> Name {
    Name::cluster_wide("undrained")
}

impl Around<'_, '_> {
    /// A cluster comes onto the node, is drained, or is given up by a person who fences the machine. These moves are
    /// numbered from `first` on.
    pub(super) fn cluster(&self, first: usize, next: &mut Vec<Move<Device>>) {
        let Some(object) = self.node().filter(|_| self.system.size.cluster == 1) else { return };
        let (servers, hub) = (self.scene.servers, self.scene.contents[0]);
        let (uid, status) = (uid_of(&object), read_status(&object));
        let there = self.scene.hub().get(&WORKLOAD_CLUSTER, &name());
        let Some(cluster) = there else {
            if status.phase == NodePhase::Bound && self.left.cluster > 0 {
                let cluster = on_node(uid, status.epoch);
                let hub = servers.put(hub, &WORKLOAD_CLUSTER, &name(), cluster);
                next.push(self.at_hub(
                    first + CREATE_CLUSTER,
                    hub,
                    Left { cluster: 0, ..self.left },
                ));
            }
            return;
        };
        let drains = spec(&cluster).map(|spec| spec.drains).unwrap_or_default();
        let asked: Vec<String> = drains.into_iter().map(|drain| drain.requester).collect();
        if asked != said(&cluster).drained {
            let change = json!({"status": {"drained": asked, "conditions": drained(&asked)}});
            let hub = servers.change(hub, &WORKLOAD_CLUSTER, &name(), &change);
            next.push(self.at_hub(first + DRAIN, hub, self.left));
        }
        if self.left.fences > 0 && status.phase == NodePhase::Draining {
            let hub = servers.put(hub, &NODE_FENCE, &fence_name(), fence(uid, &status));
            next.push(self.at_hub(first + FENCE_MACHINE, hub, Left { fences: 0, ..self.left }));
        }
    }
}

fn on_node(uid: &str, epoch: i64) -> Value {
    json!({
        "metadata": {"generation": 1},
        "spec": {
            "connection": {"logicalCluster": CLUSTER},
            "machines": [{"node": {"name": NODE, "uid": uid}, "epoch": epoch}],
        },
    })
}

/// The condition of a cluster that is drained for somebody; none: nobody asks for it.
fn drained(asked: &[String]) -> Value {
    match asked {
        [] => Value::Null,
        _ => json!([{"type": "Drained", "status": "True", "reason": "Drained", "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2023-11-14T22:13:20Z"}]),
    }
}

/// What a person declares who gives up the work on the machine.
fn fence(uid: &str, status: &PhysicalNodeStatus) -> Value {
    json!({"spec": {
        "node": {"name": NODE, "uid": uid},
        "epoch": status.epoch,
        "phaseSince": status.phase_since,
        "attestation": "AcceptUndrained",
        "reason": "nobody needs the work on it",
        "requester": "operator",
    }})
}

fn spec(cluster: &Object) -> Option<WorkloadClusterSpec> {
    read_part(cluster, "spec").ok().flatten()
}

fn said(cluster: &Object) -> WorkloadClusterStatus {
    read_part(cluster, "status").ok().flatten().unwrap_or_default()
}

/// Whether the epoch of the node may end: the cluster on it is drained for it or not on it, or a person has fenced
/// the machine in this phase.
pub(super) fn may_end(hub: &Objects<'_>, uid: &str, status: &PhysicalNodeStatus) -> bool {
    let Some(on_it) = &status.cluster else { return true };
    let there = hub.get(&WORKLOAD_CLUSTER, &Name::cluster_wide(&on_it.name));
    let there = there.filter(|cluster| uid_of(cluster) == on_it.uid);
    let names = |it: &Machine| it.node.uid == uid && it.epoch == status.epoch;
    let is_drained = there.is_none_or(|cluster| {
        let is_on_it = spec(&cluster).is_some_and(|spec| spec.machines.iter().any(names));
        !is_on_it || said(&cluster).drained.contains(&requester(uid, status.epoch))
    });
    let fence = hub.get(&NODE_FENCE, &fence_name());
    let fence = fence.and_then(|it| read_part::<NodeFenceSpec>(&it, "spec").ok().flatten());
    let is_fenced = fence.is_some_and(|it| {
        it.node.uid == uid
            && it.epoch == status.epoch
            && it.dpu.is_none()
            && Some(it.phase_since) == status.phase_since
    });
    is_drained || is_fenced
}
