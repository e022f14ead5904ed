//! The objects that the world begins with.

use super::Machines;
use crate::world::drain::{
    OPERATORS, OPERATORS_UID, SPACE_UIDS, SPACES, cluster, followed, registered,
};
use interlock_api::names::{LABEL_PLACED, PLACED_TRUE};
use interlock_api::nodes::DpuName;
use interlock_kernel::Name;
use interlock_nodes::kinds::{
    LEASE_NAMESPACE, NODE_CLAIM, PHYSICAL_NODE, RACK as RACKS, TENANT as TENANTS,
};
use interlock_placement::kinds::{NAMESPACE, WORKLOAD_CLUSTER};
use interlock_world::{CLUSTERS, Servers};
use serde_json::{Value, json};

pub(super) const TENANT: &str = "blue";
pub(super) const TENANT_UID: &str = "uid-blue";
/// The claim of the tenant.
pub(super) const CLAIM: &str = "machines";
pub(super) const RACK: &str = "r1";
const DPU: &str = "d1";
/// The machines.
pub(super) const NODES: [&str; 2] = ["n1", "n2"];
pub(super) const NODE_UIDS: [&str; 2] = ["uid-n1", "uid-n2"];
/// The machine that people give to cluster a: no node has this name yet.
pub(super) const ONE_MORE: &str = "n9";
/// The port of each machine.
pub(super) const PORTS: [&str; 2] = ["p1", "p2"];
/// The uid of the namespace of the Leases, which is not placed.
pub(super) const HOME_UID: &str = "5a1c9e3d";
/// After so many seconds a cluster that is not drained is reported as blocking.
pub(super) const DRAIN_SECONDS: i64 = 10;

pub(super) fn node(n: usize) -> Name {
    Name::cluster_wide(NODES[n])
}

/// The report of the DPU.
pub(super) fn report() -> Name {
    Name::cluster_wide(&DpuName::new(RACK, DPU).to_string())
}

/// A machine in the list of a cluster.
pub(super) fn machine(name: &str, uid: &str) -> Value {
    json!({"node": {"name": name, "uid": uid}, "epoch": 1})
}

/// The control plane of the tenant, with its claim.
pub(super) fn plane(system: &Machines, servers: &Servers) -> u32 {
    let claim = json!({"spec": {"count": system.nodes.len()}});
    servers.put(servers.empty_marked(TENANT), &NODE_CLAIM, &Name::cluster_wide(CLAIM), claim)
}

pub(super) fn hub(system: &Machines, servers: &Servers) -> u32 {
    let home = json!({"metadata": {"uid": HOME_UID}});
    let home_name = Name::cluster_wide(LEASE_NAMESPACE);
    let mut hub = servers.put(servers.empty(), &NAMESPACE, &home_name, home);
    let rack = json!({"spec": {"dpus": [{"name": DPU, "vtep": "10.0.0.1"}],
        "fencing": {"drainSeconds": DRAIN_SECONDS}}});
    hub = servers.put(hub, &RACKS, &Name::cluster_wide(RACK), rack);
    let tenant =
        json!({"metadata": {"uid": TENANT_UID}, "spec": {"plane": {"logicalCluster": "blue"}}});
    hub = servers.put(hub, &TENANTS, &Name::cluster_wide(TENANT), tenant);
    for n in 0..system.nodes.len() {
        let mac = format!("02:00:00:00:00:0{}", n + 1);
        let wire = json!({"rack": RACK, "dpu": DPU, "port": PORTS[n], "mac": mac});
        let object = json!({"metadata": {"uid": NODE_UIDS[n]},
            "spec": {"rack": RACK, "dpus": [wire]}});
        hub = servers.put(hub, &PHYSICAL_NODE, &node(n), object);
    }
    for c in 0..CLUSTERS {
        hub = on_machines(system, servers, registered(servers, hub, c), c);
    }
    for (name, uid) in SPACES.iter().zip(SPACE_UIDS).take(system.spaces) {
        let space = json!({"metadata": {"uid": uid, "labels": {LABEL_PLACED: PLACED_TRUE}}});
        hub = servers.put(hub, &NAMESPACE, &Name::cluster_wide(name), space);
    }
    if let Some(c) = system.updated {
        let home = json!({"metadata": {"uid": OPERATORS_UID}});
        hub = servers.put(hub, &NAMESPACE, &Name::cluster_wide(OPERATORS), home);
        hub = followed(servers, hub, c);
    }
    hub
}

/// The hub with the machines of a cluster: each is to be the tenant's in its first epoch.
fn on_machines(system: &Machines, servers: &Servers, hub: u32, c: usize) -> u32 {
    let mut machines = Vec::new();
    for (n, of) in system.nodes.iter().enumerate() {
        if *of == c {
            machines.push(machine(NODES[n], NODE_UIDS[n]));
        }
    }
    let mut spec = json!({"machines": machines});
    if system.is_alone && c == 1 {
        spec["unschedulable"] = json!(true);
    }
    let listed = json!({"metadata": {"generation": 1}, "spec": spec});
    servers.change(hub, &WORKLOAD_CLUSTER, &cluster(c), &listed)
}
