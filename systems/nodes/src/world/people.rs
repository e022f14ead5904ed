//! What people, tenants and faults do.

use super::device::{Device, Disk};
use super::start::{DPUS, NODE, PORT, RACK, claim, elsewhere, fence, node, wired};
use super::truth::read_status;
use super::{Nodes, cluster, hub};
use crate::kinds::{DPU_ATTACHMENT, DPU_REPORT, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE};
use interlock_api::nodes::condition::CONFIGURATION_CONSISTENT;
use interlock_api::nodes::{
    DpuAttachmentSpec, DpuName, DpuReportStatus, NodeClaimStatus, NodePhase, PhysicalNodeStatus,
    Ref,
};
use interlock_kernel::conditions::Condition;
use interlock_kernel::metadata::{is_deleting, uid_of};
use interlock_kernel::{Name, Object, read_part};
use interlock_world::{CLUSTERS, Chance, Move, Scene};
use serde_json::{Value, json};

/// What may still happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) deletes: u32,
    pub(super) reclaims: u32,
    pub(super) vanishes: u32,
    pub(super) forged: u32,
    pub(super) lost: u32,
    pub(super) reboots: u32,
    pub(super) replaced: u32,
    pub(super) fences: u32,
    pub(super) gone: u32,
    pub(super) back: u32,
    pub(super) rewired: u32,
    pub(super) cluster: u32,
    pub(super) restores: u32,
}

impl Left {
    pub(super) fn pack(self) -> Chance {
        self.deletes
            | self.reclaims << 2
            | self.vanishes << 3
            | self.forged << 4
            | self.lost << 6
            | self.reboots << 7
            | self.replaced << 9
            | self.fences << 10
            | self.gone << 11
            | self.back << 12
            | self.rewired << 13
            | self.cluster << 14
            | self.restores << 15
    }

    pub(super) fn unpack(chance: Chance) -> Left {
        Left {
            deletes: chance & 3,
            reclaims: chance >> 2 & 1,
            vanishes: chance >> 3 & 1,
            forged: chance >> 4 & 3,
            lost: chance >> 6 & 1,
            reboots: chance >> 7 & 3,
            replaced: chance >> 9 & 1,
            fences: chance >> 10 & 1,
            gone: chance >> 11 & 1,
            back: chance >> 12 & 1,
            rewired: chance >> 13 & 1,
            cluster: chance >> 14 & 1,
            restores: chance >> 15 & 1,
        }
    }
}

/// What happens, who does it, and whether it must happen in the end.
const MOVES: [(&str, &str, bool); 15] = [
    ("DeleteClaim", "tenant", false),
    ("Reclaim", "platform", false),
    ("ClaimVanishes", "tenant", false),
    ("Forge", "tenant", false),
    ("Tamper", "tenant", false),
    ("Recreate", "tenant", false),
    ("LoseRecord", "disk", false),
    ("Reboot", "power", false),
    ("Replace", "somebody", false),
    ("CreateNode", "somebody", true),
    ("PowerOff", "power", false),
    ("Fence", "platform", true),
    ("PowerOn", "power", false),
    ("Rewire", "platform", false),
    ("Restore", "platform", false),
];
const DELETE_CLAIM: usize = 0;
const RECLAIM: usize = 1;
const CLAIM_VANISHES: usize = 2;
const FORGE: usize = 3;
const TAMPER: usize = 4;
const RECREATE: usize = 5;
const LOSE_RECORD: usize = 6;
const REBOOT: usize = 7;
const REPLACE: usize = 8;
const CREATE_NODE: usize = 9;
const POWER_OFF: usize = 10;
const FENCE: usize = 11;
const POWER_ON: usize = 12;
const REWIRE: usize = 13;
const RESTORE: usize = 14;

pub(super) fn moves() -> Vec<(&'static str, &'static str, bool)> {
    [&MOVES[..], &cluster::MOVES[..], &hub::MOVES[..]].concat()
}

/// What can happen now.
pub(super) fn next(system: &Nodes, scene: &Scene<'_, Nodes>) -> Vec<Move<Device>> {
    let left = Left::unpack(scene.chance);
    let around = Around { system, scene, left };
    let mut next = Vec::new();
    if system.size.hub == 1 {
        around.stand_in(MOVES.len() + cluster::MOVES.len(), &mut next);
    } else {
        around.claims(&mut next);
    }
    around.tenants(&mut next);
    around.platform(&mut next);
    around.cluster(MOVES.len(), &mut next);
    around.devices(&mut next);
    next
}

/// The status of the node in a backup: it was in the pool, and was never given to anybody.
fn restored(status: &PhysicalNodeStatus) -> Value {
    let kept: Vec<&Condition> =
        status.conditions.iter().filter(|it| it.type_ == CONFIGURATION_CONSISTENT).collect();
    json!({"phase": "Available", "epoch": 0, "floor": 0, "assignment": null, "cluster": null,
        "fenced": null, "undrainedBy": null, "conditions": kept})
}

/// The scene, and what may still happen in it.
pub(super) struct Around<'a, 'b> {
    pub(super) system: &'a Nodes,
    pub(super) scene: &'a Scene<'b, Nodes>,
    pub(super) left: Left,
}

impl Around<'_, '_> {
    /// A move that leaves everything as it is, and this less to happen.
    fn to(&self, name: usize, left: Left) -> Move<Device> {
        let servers = self.scene.contents;
        let machines = [const { None }; CLUSTERS];
        Move { name, servers, machines, chance: left.pack(), restarts: None }
    }

    pub(super) fn on_plane(
        &self,
        name: usize,
        tenant: usize,
        plane: u32,
        left: Left,
    ) -> Move<Device> {
        let mut found = self.to(name, left);
        found.servers[1 + tenant] = plane;
        found
    }

    pub(super) fn at_hub(&self, name: usize, hub: u32, left: Left) -> Move<Device> {
        let mut found = self.to(name, left);
        found.servers[0] = hub;
        found
    }

    pub(super) fn tenants_here(&self) -> std::ops::Range<usize> {
        0..self.system.size.tenants as usize
    }

    pub(super) fn dpus(&self) -> usize {
        self.system.size.dpus as usize
    }

    pub(super) fn node(&self) -> Option<Object> {
        self.scene.hub().get(&PHYSICAL_NODE, &node())
    }

    fn status(&self) -> PhysicalNodeStatus {
        self.node().map(|it| read_status(&it)).unwrap_or_default()
    }

    /// Claims are deleted, or vanish: somebody takes off the finalizer that keeps them.
    fn claims(&self, next: &mut Vec<Move<Device>>) {
        let (left, servers) = (self.left, self.scene.servers);
        for tenant in self.tenants_here() {
            let plane = self.scene.contents[1 + tenant];
            let Some(there) = self.scene.cluster(tenant).get(&NODE_CLAIM, &claim(tenant)) else {
                continue;
            };
            if left.deletes > 0 && !is_deleting(&there) {
                let left = Left { deletes: left.deletes - 1, ..left };
                let gone = servers.remove(plane, &NODE_CLAIM, &claim(tenant));
                next.push(self.on_plane(DELETE_CLAIM, tenant, gone, left));
            }
            if left.vanishes > 0 {
                let left = Left { vanishes: 0, ..left };
                let stripped = json!({"metadata": {"finalizers": null}});
                let plane = servers.change(plane, &NODE_CLAIM, &claim(tenant), &stripped);
                let gone = servers.remove(plane, &NODE_CLAIM, &claim(tenant));
                next.push(self.on_plane(CLAIM_VANISHES, tenant, gone, left));
            }
        }
    }

    /// A tenant writes whatever it likes to its own control plane.
    fn tenants(&self, next: &mut Vec<Move<Device>>) {
        if self.left.forged == 0 {
            return;
        }
        let left = Left { forged: self.left.forged - 1, ..self.left };
        for tenant in self.tenants_here() {
            let plane = self.scene.contents[1 + tenant];
            for forged in self.forged(tenant) {
                let name = Name::cluster_wide(&forged.object_name());
                let there = self.scene.cluster(tenant).get(&DPU_ATTACHMENT, &name);
                let object = json!({
                    "metadata": {"labels": forged.labels()},
                    "spec": forged,
                });
                match there {
                    None => {
                        let plane = self.scene.servers.put(plane, &DPU_ATTACHMENT, &name, object);
                        next.push(self.on_plane(FORGE, tenant, plane, left));
                    }
                    Some(_) => {
                        let plane = self.recreated(plane, &name, object);
                        next.push(self.on_plane(RECREATE, tenant, plane, left));
                    }
                }
            }
            if let Some(plane) = self.tampered(tenant, plane) {
                next.push(self.on_plane(TAMPER, tenant, plane, left));
            }
        }
    }

    /// What a tenant forges: for the epoch that is given, and for the next one, in the name of whoever has the node,
    /// or in its own.
    fn forged(&self, tenant: usize) -> Vec<DpuAttachmentSpec> {
        let Some(node) = self.node() else { return Vec::new() };
        let status = read_status(&node);
        let own =
            self.scene.servers.uid(self.scene.contents[1 + tenant], &NODE_CLAIM, &claim(tenant));
        let own = Ref::new(&*claim(tenant).name, own);
        let given = status.assignment.map_or_else(|| own.clone(), |given| given.claim);
        let forge = |epoch: i64, claim: &Ref| DpuAttachmentSpec {
            node: Ref::new(NODE, uid_of(&node)),
            rack: RACK.to_owned(),
            dpu: DPUS[0].to_owned(),
            claim: claim.clone(),
            epoch,
            addresses: Vec::new(),
        };
        let mut forged = vec![forge(status.epoch.max(1), &given), forge(status.epoch + 1, &own)];
        forged.dedup();
        forged
    }

    /// The same attachment again, with another uid.
    fn recreated(&self, plane: u32, name: &Name, object: Value) -> u32 {
        let servers = self.scene.servers;
        let stripped = json!({"metadata": {"finalizers": null}});
        let plane = servers.change(plane, &DPU_ATTACHMENT, name, &stripped);
        let plane = servers.remove(plane, &DPU_ATTACHMENT, name);
        servers.put(plane, &DPU_ATTACHMENT, name, object)
    }

    /// The status of the claim without its entries.
    fn tampered(&self, tenant: usize, plane: u32) -> Option<u32> {
        let object = self.scene.cluster(tenant).get(&NODE_CLAIM, &claim(tenant))?;
        let status = read_part::<NodeClaimStatus>(&object, "status").ok().flatten()?;
        (!status.nodes.is_empty()).then(|| {
            let emptied = json!({"status": {"nodes": null}});
            self.scene.servers.change(plane, &NODE_CLAIM, &claim(tenant), &emptied)
        })
    }

    /// The platform reclaims, fences and, by force, replaces.
    fn platform(&self, next: &mut Vec<Move<Device>>) {
        let (left, servers, hub) = (self.left, self.scene.servers, self.scene.contents[0]);
        let Some(there) = self.node() else {
            let hub = servers.put(hub, &PHYSICAL_NODE, &node(), wired(self.system.size.dpus));
            next.push(self.at_hub(CREATE_NODE, hub, left));
            return;
        };
        let status = self.status();
        if left.reclaims > 0 && status.phase.is_assigned() {
            let change = json!({"spec": {"reclaimEpoch": status.epoch}});
            let hub = servers.change(hub, &PHYSICAL_NODE, &node(), &change);
            next.push(self.at_hub(RECLAIM, hub, Left { reclaims: 0, ..left }));
        }
        if left.replaced > 0 {
            let stripped = json!({"metadata": {"finalizers": null}});
            let hub = servers.change(hub, &PHYSICAL_NODE, &node(), &stripped);
            let hub = servers.remove(hub, &PHYSICAL_NODE, &node());
            next.push(self.at_hub(REPLACE, hub, Left { replaced: 0, ..left }));
        }
        if left.rewired > 0 && status.assignment.is_none() {
            for change in [json!({"dpus": elsewhere()}), json!({"rack": "r2"})] {
                let change = json!({"spec": change});
                let hub = servers.change(hub, &PHYSICAL_NODE, &node(), &change);
                next.push(self.at_hub(REWIRE, hub, Left { rewired: 0, ..left }));
            }
        }
        if left.restores > 0 && status.epoch > 0 && self.is_reported(uid_of(&there)) {
            let change = json!({"status": restored(&status)});
            let hub = servers.change(hub, &PHYSICAL_NODE, &node(), &change);
            next.push(self.at_hub(RESTORE, hub, Left { restores: 0, ..left }));
        }
        let off = (0..self.dpus()).find(|dpu| !self.scene.machines[*dpu].is_on());
        // A DPU that may come back is seen off at any time; one that does not is fenced once somebody waits for it.
        let is_seen = status.phase == NodePhase::Releasing
            || (self.system.size.back == 1 && status.phase.is_assigned());
        if let Some(dpu) = off.filter(|_| left.fences > 0 && is_seen) {
            let declared = fence(uid_of(&there), &status, dpu);
            let hub = servers.put(hub, &NODE_FENCE, &Name::cluster_wide("fence"), declared);
            next.push(self.at_hub(FENCE, hub, Left { fences: 0, ..left }));
        }
    }

    /// Whether each DPU has reported what it has: controllers are started after a restore once they all have.
    fn is_reported(&self, uid: &str) -> bool {
        (0..self.dpus()).all(|dpu| {
            let device = &*self.scene.machines[dpu];
            let name = Name::cluster_wide(&DpuName::new(RACK, DPUS[dpu]).to_string());
            let report = self.scene.hub().get(&DPU_REPORT, &name);
            let status = report.and_then(|it| read_part::<DpuReportStatus>(&it, "status").ok());
            let status = status.flatten().unwrap_or_default();
            let port = status
                .port(PORT)
                .filter(|port| port.node.as_ref().is_some_and(|node| node.uid == uid));
            let open = device.open().next().map(|(_, entry)| entry.tag.epoch);
            port.is_some_and(|port| {
                let applied = port.applied.as_ref().map(|applied| applied.epoch);
                applied == open && device.record(PORT) == Some((uid, port.floor))
            })
        })
    }

    /// What DPUs lose.
    fn devices(&self, next: &mut Vec<Move<Device>>) {
        let left = self.left;
        for dpu in 0..self.dpus() {
            let device = &*self.scene.machines[dpu];
            if !device.is_on() {
                if left.back > 0 {
                    let mut found = self.to(POWER_ON, Left { back: 0, ..left });
                    found.machines[dpu] = Some(device.powered_on());
                    next.push(found);
                }
                continue;
            }
            let mut to = |name: usize, device: Device, left: Left, restarts: Option<usize>| {
                let mut found = self.to(name, left);
                found.machines[dpu] = Some(device);
                found.restarts = restarts;
                next.push(found);
            };
            if left.lost > 0 && device.record(PORT).is_some() {
                let left = Left { lost: 0, ..left };
                to(LOSE_RECORD, device.without_record(PORT), left, None);
            }
            if left.reboots > 0 {
                let left = Left { reboots: left.reboots - 1, ..left };
                for disk in [Disk::Kept, Disk::Old, Disk::Empty] {
                    to(REBOOT, device.restarted(disk), left, Some(dpu));
                }
            }
            if left.gone > 0 {
                to(POWER_OFF, device.powered_off(), Left { gone: 0, ..left }, Some(dpu));
            }
        }
    }
}
