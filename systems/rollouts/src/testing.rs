//! The objects of rollouts at the hub, for the tests of its rooms.

use crate::bundle::Bundle;
use crate::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, ROLLOUT_REPORT};
use interlock_api::rollouts::{ClusterRolloutStatus, ClusterUpdateStatus, UpdatePhase};
use interlock_kernel::testing::{TestServers, patched};
use interlock_kernel::{Name, Place, read_part};
use serde_json::{Value, json};

/// The name of the record of cluster west.
pub(crate) const RECORD: &str = "west-uidwest";
/// The time at which the tests begin.
pub(crate) const NOW: &str = "1970-01-12T13:46:40Z";

fn own(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1}})
}

/// A cluster whose agent sends heartbeats.
pub(crate) fn cluster(name: &str, patch: Value) -> Value {
    let said = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Heard", "message": "",
        "lastTransitionTime": NOW})
    };
    let mut object = own("WorkloadCluster", name, &json!({"connection": {"inCluster": {}}}));
    object["status"] = json!({"conditions": [said("Ready"), said("Reachable")]});
    patched(object, &patch)
}

/// A ConfigMap as an object of a bundle.
pub(crate) fn config(data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"},
        "data": {"version": data}})
}

/// The digest of a bundle with such a ConfigMap alone.
pub(crate) fn digest(data: &str) -> String {
    Bundle::from_objects([config(data)]).map(|it| it.digest().to_owned()).unwrap_or_default()
}

/// A request of namespace shop for cluster west.
pub(crate) fn update(name: &str, data: &str, patch: Value) -> Value {
    let spec = json!({"cluster": "west", "source": {"inline": [config(data)]}, "deadlineSeconds": 600,
        "soakSeconds": 30, "startDeadlineSeconds": 3600});
    let mut object = own("ClusterUpdate", name, &spec);
    object["metadata"]["namespace"] = json!("shop");
    object["metadata"]["creationTimestamp"] = json!(NOW);
    patched(object, &patch)
}

/// The request of a name.
pub(crate) fn request(name: &str) -> Name {
    Name::within("shop", name)
}

/// The status of the record.
pub(crate) fn record(hub: &TestServers) -> ClusterRolloutStatus {
    let found = hub.get(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide(RECORD));
    let status = found.and_then(|it| read_part(&it, "status").expect("it can be read"));
    status.unwrap_or_default()
}

/// How far a request is, and why, as its record has it.
pub(crate) fn phase(hub: &TestServers, name: &str) -> (UpdatePhase, String) {
    let record = record(hub);
    let entry = record.request(&format!("uid-{name}"));
    entry.map(|entry| (entry.phase, entry.reason.clone())).unwrap_or_default()
}

/// How far a request is, as it says itself.
pub(crate) fn shown(hub: &TestServers, name: &str) -> ClusterUpdateStatus {
    let found = hub.get(Place::HUB, &CLUSTER_UPDATE, &request(name));
    let status = found.and_then(|it| read_part(&it, "status").expect("it can be read"));
    status.unwrap_or_default()
}

/// The agent of the cluster says something about the token of the target.
pub(crate) fn answer(hub: &mut TestServers, status: Value) {
    let token = record(hub).target.token;
    let said = json!({"token": token, "fence": {"token": token, "mode": "Exact"}});
    let status = patched(said, &status);
    let name = Name::cluster_wide(RECORD);
    hub.change(Place::HUB, &ROLLOUT_REPORT, &name, &json!({"status": status}));
}

/// The agent has checked the request that waits.
pub(crate) fn check(hub: &mut TestServers, failures: Value) {
    let named = record(hub).preflight.expect("a request is named");
    let answer_of = json!({"uid": named.uid, "digest": named.digest, "failures": failures});
    answer(hub, json!({"preflight": answer_of}));
}
