//! The objects of nodes, for the tests of the rooms at the hub.

use interlock_kernel::testing::patched;
use serde_json::{Value, json};

/// Nodes of the tests have been in their phase since then: 1000 seconds before the tests begin.
pub(crate) const SINCE: &str = "1970-01-12T13:30:00Z";

pub(crate) fn reference(name: &str) -> Value {
    json!({"name": name, "uid": format!("uid-{name}")})
}

/// A condition as controllers write it.
pub(crate) fn said(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": SINCE})
}

/// A condition of a node whose wiring was compared, word for word.
pub(crate) fn consistent() -> Value {
    let mut condition = said("ConfigurationConsistent", "True", "Consistent");
    condition["message"] = json!("each DPU is in the rack, and each port is the node's own");
    condition
}

fn own(kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1}})
}

/// A tenant with a network.
pub(crate) fn tenant(patch: Value) -> Value {
    let spec = json!({"plane": {"logicalCluster": "red"}, "orphanPolicy": "Hold"});
    let mut object = own("Tenant", "red", &spec, &json!({"vni": 5000}));
    object["metadata"]["finalizers"] = json!(["interlock.dev/node-in-use"]);
    patched(object, &patch)
}

/// A rack with two DPUs.
pub(crate) fn rack(patch: Value) -> Value {
    let dpus = json!([{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]);
    let mut object = own("Rack", "r1", &json!({"dpus": dpus}), &json!({}));
    object["metadata"]["finalizers"] = json!(["interlock.dev/node-in-use"]);
    patched(object, &patch)
}

/// A node in the pool that had six epochs, wired through both DPUs of rack r1.
pub(crate) fn node(name: &str, patch: Value) -> Value {
    let port = |dpu: &str| json!({"rack": "r1", "dpu": dpu, "port": format!("p-{name}"), "mac": "02:00:00:00:00:01"});
    let spec = json!({"rack": "r1", "dpus": [port("d1"), port("d2")], "reclaimEpoch": 0});
    let status = json!({"phase": "Available", "phaseSince": SINCE, "epoch": 6, "floor": 6,
        "conditions": [consistent()]});
    let mut object = own("PhysicalNode", name, &spec, &status);
    object["metadata"]["finalizers"] = json!(["interlock.dev/node-in-use"]);
    object["metadata"]["creationTimestamp"] = json!(SINCE);
    object["metadata"]["labels"] = json!({"interlock.dev/rack": "r1",
        "dpu.interlock.dev/r1.d1": format!("p-{name}"), "dpu.interlock.dev/r1.d2": format!("p-{name}")});
    patched(object, &patch)
}

/// A node that claim `web` of tenant `red` has at epoch 7, never programmed.
pub(crate) fn bound(name: &str, patch: Value) -> Value {
    let assignment =
        json!({"tenant": reference("red"), "claim": reference("web"), "epoch": 7, "vni": 5000});
    let conditions = json!([consistent(), said("NetworkReady", "False", "Programming")]);
    let status = json!({"status": {"phase": "Bound", "epoch": 7, "assignment": assignment,
        "conditions": conditions}});
    patched(node(name, status), &patch)
}

/// The same, in use.
pub(crate) fn in_use(name: &str, patch: Value) -> Value {
    let conditions = json!([consistent(), said("NetworkReady", "True", "Programmed")]);
    patched(bound(name, json!({"status": {"conditions": conditions}})), &patch)
}

/// The same, revoked and not clean.
pub(crate) fn releasing(name: &str, patch: Value) -> Value {
    patched(bound(name, json!({"status": {"phase": "Releasing", "floor": 7}})), &patch)
}

/// A claim for one node, held by our finalizer.
pub(crate) fn claim(patch: Value) -> Value {
    let mut object = own("NodeClaim", "web", &json!({"count": 1}), &json!({}));
    object["metadata"]["finalizers"] = json!(["interlock.dev/node-release"]);
    patched(object, &patch)
}

/// An entry of a claim.
pub(crate) fn entry(name: &str, state: &str, epoch: i64) -> Value {
    let both = json!([{"rack": "r1", "dpu": "d1"}, {"rack": "r1", "dpu": "d2"}]);
    let mut entry = json!({"name": name, "uid": format!("uid-{name}"), "epoch": epoch, "state": state,
        "since": SINCE});
    if state != "Chosen" {
        entry["dpus"] = both;
        entry["vni"] = json!(5000);
    }
    entry
}

/// What a DPU reports of the port of a node.
pub(crate) fn report(dpu: &str, ports: Value) -> Value {
    let name = format!("r1.{dpu}");
    own(
        "DpuReport",
        &name,
        &json!({"rack": "r1", "dpu": dpu}),
        &json!({"bootID": "b", "ports": ports}),
    )
}

/// A port whose DPU refuses a node up to a floor, and has it closed.
pub(crate) fn clean(node: &str, floor: i64) -> Value {
    json!({"port": format!("p-{node}"), "node": reference(node), "floor": floor, "clean": true})
}

/// A port that is open for claim `web` at an epoch.
pub(crate) fn open(node: &str, epoch: i64) -> Value {
    json!({"port": format!("p-{node}"), "node": reference(node), "floor": epoch - 1, "clean": false,
        "applied": {"tenant": "uid-red", "claimUID": "uid-web", "epoch": epoch}})
}

/// A declaration that a DPU of a node is off.
pub(crate) fn fence(node: &str, patch: Value) -> Value {
    let spec = json!({"node": reference(node), "epoch": 7, "phaseSince": SINCE,
        "dpu": {"rack": "r1", "dpu": "d1"}, "attestation": "DpuPoweredOff",
        "reason": "the rack burnt down", "requester": "kim"});
    patched(own("NodeFence", "fence", &spec, &json!({})), &patch)
}

/// A cluster on a node at epoch 7.
pub(crate) fn cluster(node: &str, patch: Value) -> Value {
    let spec = json!({"connection": {"logicalCluster": "a"},
        "machines": [{"node": reference(node), "epoch": 7}]});
    patched(own("WorkloadCluster", "a", &spec, &json!({"grants": 3})), &patch)
}
