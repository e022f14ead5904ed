//! A stand-in of what the hub and the planes do, for worlds in which only the DPUs run what ships: it gives the node,
//! revokes it and returns it as the protocol says, and asks for attachments and deletes them whenever it likes.

use super::people::Around;
use super::start::{DPUS, NODE, PORT, RACK, claim, node};
use super::truth::read_status;
use super::{Device, TENANTS};
use crate::kinds::{DPU_ATTACHMENT, DPU_REPORT, PHYSICAL_NODE, TENANT};
use interlock_api::nodes::{
    DpuAttachmentSpec, DpuName, DpuReportStatus, NodePhase, PhysicalNodeStatus, Ref,
};
use interlock_kernel::metadata::{is_deleting, uid_of};
use interlock_kernel::{Name, Object, read_part};
use interlock_world::{Move, Servers};
use serde_json::{Value, json};

/// What happens, who does it, and whether it must happen in the end.
pub(super) const MOVES: [(&str, &str, bool); 6] = [
    ("Admit", "hub", true),
    ("Return", "hub", true),
    ("Give", "hub", false),
    ("Revoke", "hub", false),
    ("Attach", "plane", true),
    ("EndAttachment", "plane", true),
];
const ADMIT: usize = 0;
const RETURN: usize = 1;
const GIVE: usize = 2;
const REVOKE: usize = 3;
const ATTACH: usize = 4;
const END_ATTACHMENT: usize = 5;

/// The claim that a tenant is given the node for.
fn claim_ref(tenant: usize) -> Ref {
    Ref::new(&*claim(tenant).name, format!("claim-of-{}", TENANTS[tenant]))
}

/// The number of the network of a tenant.
pub(super) fn vni(tenant: usize) -> u32 {
    5000 + tenant as u32
}

/// What the hub adds to what people make: a network for each tenant, a report for each DPU.
pub(super) fn admitted(servers: &Servers, hub: u32, tenants: usize, dpus: usize) -> u32 {
    let mut hub = hub;
    for (tenant, name) in TENANTS.iter().enumerate().take(tenants) {
        let change = json!({"status": {"vni": vni(tenant)}});
        hub = servers.change(hub, &TENANT, &Name::cluster_wide(name), &change);
    }
    for dpu in DPUS.iter().take(dpus) {
        let report = json!({"spec": {"rack": RACK, "dpu": dpu}});
        let name = Name::cluster_wide(&DpuName::new(RACK, *dpu).to_string());
        hub = servers.put(hub, &DPU_REPORT, &name, report);
    }
    hub
}

impl Around<'_, '_> {
    /// What the stand-in can do now; its moves are numbered from `first` on.
    pub(super) fn stand_in(&self, first: usize, next: &mut Vec<Move<Device>>) {
        let Some(object) = self.node() else { return };
        let status = read_status(&object);
        let labels: Vec<String> =
            DPUS.map(|dpu| DpuName::new(RACK, dpu).label_key()).into_iter().collect();
        let labels: Value =
            labels.iter().take(self.dpus()).map(|key| (key.clone(), json!(PORT))).collect();
        if object.metadata.labels.is_none() {
            let labelled = json!({"metadata": {"labels": labels}});
            next.push(self.changed(first + ADMIT, &labelled));
            return;
        }
        let uid = uid_of(&object).to_owned();
        match status.phase {
            NodePhase::Releasing if self.is_clean(&uid, status.floor) => {
                let change = json!({"phase": "Available", "assignment": null});
                next.push(self.changed(first + RETURN, &json!({"status": change})));
            }
            NodePhase::Available if status.epoch < self.system.size.epochs as i64 => {
                let given = self.tenants_here().map(|tenant| self.given(tenant, status.epoch + 1));
                next.extend(given.map(|change| self.changed(first + GIVE, &change)));
            }
            NodePhase::Bound => {
                let change = json!({"phase": "Releasing", "floor": status.epoch});
                next.push(self.changed(first + REVOKE, &json!({"status": change})));
            }
            _ => {}
        }
        self.attachments(first, &uid, &status, next);
    }

    fn changed(&self, name: usize, change: &Value) -> Move<Device> {
        let hub = self.scene.contents[0];
        self.at_hub(
            name,
            self.scene.servers.change(hub, &PHYSICAL_NODE, &node(), change),
            self.left,
        )
    }

    fn given(&self, tenant: usize, epoch: i64) -> Value {
        let name = TENANTS[tenant];
        let uid =
            self.scene.servers.uid(self.scene.contents[0], &TENANT, &Name::cluster_wide(name));
        json!({"status": {"phase": "Bound", "epoch": epoch, "assignment": {
            "tenant": {"name": name, "uid": uid},
            "claim": claim_ref(tenant),
            "epoch": epoch,
            "vni": vni(tenant),
        }}})
    }

    /// Whether all DPUs have reported that they are clean of a node up to a floor.
    fn is_clean(&self, uid: &str, floor: i64) -> bool {
        DPUS.iter().take(self.dpus()).all(|dpu| {
            let name = Name::cluster_wide(&DpuName::new(RACK, *dpu).to_string());
            let report = self.scene.hub().get(&DPU_REPORT, &name);
            let status = report.and_then(|it| read_part::<DpuReportStatus>(&it, "status").ok());
            let status = status.flatten().unwrap_or_default();
            status.port(PORT).is_some_and(|port| port.is_clean_of(uid, floor))
        })
    }

    fn attachments(
        &self,
        first: usize,
        uid: &str,
        status: &PhysicalNodeStatus,
        next: &mut Vec<Move<Device>>,
    ) {
        for tenant in self.tenants_here() {
            let plane = self.scene.contents[1 + tenant];
            let there: Vec<Object> = self.scene.cluster(tenant).list(&DPU_ATTACHMENT);
            for attachment in there.iter().filter(|it| !is_deleting(it)) {
                let name = Name::of(attachment);
                let gone = self.scene.servers.remove(plane, &DPU_ATTACHMENT, &name);
                let spec = read_part::<DpuAttachmentSpec>(attachment, "spec").ok().flatten();
                let is_over = spec.is_none_or(|it| it.epoch <= status.floor || it.node.uid != uid);
                if is_over {
                    next.push(self.on_plane(first + END_ATTACHMENT, tenant, gone, self.left));
                }
            }
            let given = status.assignment.as_ref();
            let is_given = given.is_some_and(|it| it.claim == claim_ref(tenant));
            if !is_given || !status.phase.is_assigned() {
                continue;
            }
            for dpu in DPUS.iter().take(self.dpus()) {
                let spec = DpuAttachmentSpec {
                    node: Ref::new(NODE, uid),
                    rack: RACK.to_owned(),
                    dpu: (*dpu).to_owned(),
                    claim: claim_ref(tenant),
                    epoch: status.epoch,
                    addresses: Vec::new(),
                };
                let name = Name::cluster_wide(&spec.object_name());
                if self.scene.cluster(tenant).get(&DPU_ATTACHMENT, &name).is_none() {
                    let object = json!({"metadata": {"labels": spec.labels()}, "spec": spec});
                    let plane = self.scene.servers.put(plane, &DPU_ATTACHMENT, &name, object);
                    next.push(self.on_plane(first + ATTACH, tenant, plane, self.left));
                }
            }
        }
    }
}
