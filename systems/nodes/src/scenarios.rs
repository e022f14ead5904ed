//! The five scenarios of the seed, under their names: all rooms together, on servers and DPUs in memory. What the seed
//! calls a crash, a partition or a loss of power is a program that takes no step, or a DPU that starts anew.

mod fleet;

use crate::kinds::{DPU_ATTACHMENT, NODE_CLAIM, PHYSICAL_NODE};
use crate::world::device::Disk;
use fleet::{Fleet, Program, Tenant};
use interlock_kernel::Name;
use serde_json::json;

const T1: Tenant = Tenant("t1");
const T2: Tenant = Tenant("t2");

fn phase(fleet: &Fleet, node: &str) -> String {
    let node = fleet.hub.json(&PHYSICAL_NODE, &Name::cluster_wide(node));
    node["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

fn epoch(fleet: &Fleet, node: &str) -> i64 {
    let node = fleet.hub.json(&PHYSICAL_NODE, &Name::cluster_wide(node));
    node["status"]["epoch"].as_i64().unwrap_or_default()
}

/// A fleet whose nodes are in the pool: n1 and n2 behind d1, n3 behind d2, all in r1.
fn fleet() -> Fleet {
    let mut fleet = Fleet::new();
    fleet.settle();
    assert_eq!(["n1", "n2", "n3"].map(|node| phase(&fleet, node)), ["Available"; 3]);
    fleet
}

#[test]
fn scenario_1_normal_node_assignment() {
    let mut fleet = fleet();
    fleet.claim(T1, "web", "n1");
    fleet.settle();
    assert_eq!((&*phase(&fleet, "n1"), epoch(&fleet, "n1")), ("Bound", 1));
    let attachment = fleet.plane(T1).json(&DPU_ATTACHMENT, &Name::cluster_wide("n1.d1.1"));
    assert_eq!(
        attachment["spec"]["dpu"], "d1",
        "it is asked for in the rack and at the DPU of the node alone"
    );
    assert_eq!(fleet.plane(T1).list(&DPU_ATTACHMENT, None).len(), 1);
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"]);
    let claim = fleet.plane(T1).json(&NODE_CLAIM, &Name::cluster_wide("web"));
    assert_eq!(claim["status"]["nodes"][0]["state"], "Bound");
}

/// Both races of the seed's history are tried: a return while the node is still in hardware, and a DPU that reads the
/// attachment while it is being deleted.
#[test]
fn scenario_2_node_reassignment_between_tenants() {
    let mut fleet = fleet();
    fleet.claim(T1, "web", "n1");
    fleet.settle();
    // Race 1: the DPU does nothing, and the node does not return.
    fleet.stop(Program::Dpu("d1"));
    fleet.stop(Program::Attach("d1", T1));
    fleet.delete_claim(T1, "web");
    fleet.claim(T2, "db", "n1");
    fleet.settle();
    assert_eq!(phase(&fleet, "n1"), "Releasing");
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"], "and it is not the seed's deadlock:");
    // Race 2: only what serves the attachments of the first tenant goes on, with an attachment that is being deleted.
    fleet.restart_dpu("d1", Disk::Kept);
    fleet.start(Program::Attach("d1", T1));
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), [""; 0], "what is being deleted is not programmed again");
    assert_eq!(phase(&fleet, "n1"), "Releasing", "it is clean, and the DPU has not said so");
    fleet.start(Program::Dpu("d1"));
    fleet.settle();
    assert_eq!((&*phase(&fleet, "n1"), epoch(&fleet, "n1")), ("Bound", 2));
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t2 2"]);
    assert!(fleet.plane(T1).list(&NODE_CLAIM, None).is_empty());
    assert!(fleet.plane(T1).list(&DPU_ATTACHMENT, None).is_empty());
}

/// The seed's other reclaim cannot begin while the node is programmed; here it needs nobody but the DPU.
#[test]
fn scenario_2_while_the_plane_of_the_first_tenant_is_down() {
    let mut fleet = fleet();
    fleet.claim(T1, "web", "n1");
    fleet.settle();
    for program in [Program::Claims(T1), Program::Plane(T1), Program::Attach("d1", T1)] {
        fleet.stop(program);
    }
    let reclaim = json!({"spec": {"reclaimEpoch": 1}});
    fleet.hub.change(&PHYSICAL_NODE, &Name::cluster_wide("n1"), &reclaim);
    fleet.claim(T2, "db", "n1");
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t2 2"]);
}

#[test]
fn scenario_3_controller_crash_during_assignment() {
    let mut fleet = fleet();
    // The controller of the tenant's attachments dies with all that it had read.
    fleet.stop(Program::Plane(T1));
    fleet.claim(T1, "web", "n1");
    fleet.settle();
    assert_eq!(phase(&fleet, "n1"), "Bound");
    assert!(fleet.plane(T1).list(&DPU_ATTACHMENT, None).is_empty());
    assert_eq!(fleet.programmed("n1"), [""; 0]);
    // It lists when it starts, and keeps nothing between two steps.
    fleet.start(Program::Plane(T1));
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"]);
}

/// The same wherever a controller stops: after each single effect of the whole assignment.
#[test]
fn scenario_3_whichever_effect_was_the_last_before_the_crash() {
    let all = {
        let mut fleet = fleet();
        let before = fleet.effects;
        fleet.claim(T1, "web", "n1");
        fleet.settle();
        fleet.effects - before
    };
    for crashes_after in 0..all {
        let mut fleet = fleet();
        fleet.claim(T1, "web", "n1");
        fleet.settle_at_most(crashes_after);
        let crashed = [Program::Claims(T1), Program::Plane(T1)];
        crashed.iter().for_each(|program| fleet.stop(*program));
        fleet.settle();
        crashed.iter().for_each(|program| fleet.start(*program));
        fleet.settle();
        assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"], "after {crashes_after} of {all}");
    }
}

#[test]
fn scenario_4_multi_cluster_in_same_rack() {
    let mut fleet = fleet();
    fleet.claim(T1, "a-1", "n1");
    fleet.claim(T1, "a-2", "n2");
    fleet.claim(T2, "b", "n3");
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"]);
    assert_eq!(fleet.programmed("n2"), ["r1.d1 t1 1"]);
    assert_eq!(fleet.programmed("n3"), ["r1.d2 t2 1"]);
    // One of the two clusters behind d1 ends; the other does not notice.
    fleet.delete_claim(T1, "a-1");
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), [""; 0]);
    assert_eq!((&*phase(&fleet, "n1"), &*phase(&fleet, "n2")), ("Available", "Bound"));
    assert_eq!(fleet.programmed("n2"), ["r1.d1 t1 1"]);
    assert_eq!(fleet.programmed("n3"), ["r1.d2 t2 1"]);
}

#[test]
fn scenario_5_network_partition_during_reconciliation() {
    let mut fleet = fleet();
    fleet.stop(Program::Attach("d1", T1));
    fleet.claim(T1, "web", "n1");
    fleet.settle();
    assert_eq!(fleet.plane(T1).list(&DPU_ATTACHMENT, None).len(), 1);
    assert_eq!(fleet.programmed("n1"), [""; 0], "the DPU does not reach the plane of the tenant");
    fleet.start(Program::Attach("d1", T1));
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"]);
    // Once it is programmed, a partition changes nothing.
    fleet.stop(Program::Attach("d1", T1));
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"]);
    // Power goes and comes back meanwhile: nothing is programmed before both planes agree again.
    fleet.restart_dpu("d1", Disk::Empty);
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), [""; 0]);
    fleet.start(Program::Attach("d1", T1));
    fleet.settle();
    assert_eq!(fleet.programmed("n1"), ["r1.d1 t1 1"]);
}
