//! The objects that the world begins with, and those that people make.

use super::size::Size;
use super::{Nodes, TENANTS, hub};
use crate::kinds::{LEASE_NAMESPACE, NODE_CLAIM, PHYSICAL_NODE, RACK as RACKS, TENANT};
use crate::world::device::Device;
use interlock_api::nodes::PhysicalNodeStatus;
use interlock_kernel::{GroupVersion, Kind, Name};
use interlock_world::{CLUSTERS, Chance, Servers};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The one node.
pub(super) const NODE: &str = "n1";
/// Its rack.
pub(super) const RACK: &str = "r1";
/// The DPUs of the rack, by machine.
pub(super) const DPUS: [&str; CLUSTERS] = ["d1", "d2"];
/// The port of each DPU that the node is wired to.
pub(super) const PORT: &str = "p1";

const NAMESPACE: Kind = Kind::cluster_wide(GroupVersion::new("", "v1"), "Namespace", "namespaces");

pub(super) fn node() -> Name {
    Name::cluster_wide(NODE)
}

/// The claim of a tenant.
pub(super) fn claim(tenant: usize) -> Name {
    Name::cluster_wide(["claim-a", "claim-b"][tenant])
}

/// The node as a person makes it.
pub(super) fn wired(dpus: u64) -> Value {
    let dpus = DPUS.iter().zip(1..).take(dpus as usize);
    let wire = |(dpu, number): (&&str, u8)| json!({"rack": RACK, "dpu": dpu, "port": PORT, "mac": format!("02:00:00:00:00:0{number}")});
    json!({"spec": {"rack": RACK, "dpus": dpus.map(wire).collect::<Vec<Value>>()}})
}

/// The wiring of the node once somebody got it wrong: its DPU is one of another rack.
pub(super) fn elsewhere() -> Value {
    json!([{"rack": "r2", "dpu": DPUS[0], "port": PORT, "mac": "02:00:00:00:00:01"}])
}

/// What a person declares who saw that a DPU is off.
pub(super) fn fence(uid: &str, status: &PhysicalNodeStatus, dpu: usize) -> Value {
    json!({"spec": {
        "node": {"name": NODE, "uid": uid},
        "epoch": status.epoch,
        "phaseSince": status.phase_since,
        "dpu": {"rack": RACK, "dpu": DPUS[dpu]},
        "attestation": "DpuPoweredOff",
        "reason": "the rack is without power",
        "requester": "operator",
    }})
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("it is a time")
}

pub(super) fn initial(
    system: &Nodes,
    servers: &Servers,
) -> ([u32; 1 + CLUSTERS], [Device; CLUSTERS], Chance) {
    let Size { tenants, dpus, .. } = system.size;
    let hub = servers.empty();
    let hub = servers.put(hub, &NAMESPACE, &Name::cluster_wide(LEASE_NAMESPACE), json!({}));
    let vtep =
        |(name, number): (&&str, u8)| json!({"name": name, "vtep": format!("10.0.0.{number}")});
    let all: Vec<Value> = DPUS.iter().zip(1..).take(dpus as usize).map(vtep).collect();
    let rack = json!({"spec": {"dpus": all}});
    let mut hub = servers.put(hub, &RACKS, &Name::cluster_wide(RACK), rack);
    let mut planes = [servers.empty(), servers.empty()];
    for (tenant, name) in TENANTS.iter().enumerate().take(tenants as usize) {
        let object = json!({"spec": {"plane": {"logicalCluster": format!("plane-{name}")}}});
        hub = servers.put(hub, &TENANT, &Name::cluster_wide(name), object);
        let plane = servers.empty_marked(name);
        planes[tenant] = match system.size.hub {
            0 => servers.put(plane, &NODE_CLAIM, &claim(tenant), json!({"spec": {"count": 1}})),
            _ => plane,
        };
    }
    let mut hub = servers.put(hub, &PHYSICAL_NODE, &node(), wired(dpus));
    if system.size.hub == 1 {
        hub = hub::admitted(servers, hub, tenants as usize, dpus as usize);
    }
    let device = |dpu: usize| match (dpu as u64) < dpus {
        true => Device::with_ports([PORT]).forgetting(system.forgets),
        false => Device::default(),
    };
    ([hub, planes[0], planes[1]], [device(0), device(1)], system.size.left().pack())
}
