//! The objects of placement, for the tests of its rooms.

use crate::kinds::GRANT;
use interlock_kernel::testing::{TestServers, patched};
use interlock_kernel::{Name, Place};
use serde_json::{Value, json};

/// A grant as the hub has it; null: it has none.
pub(crate) fn grant_in(hub: &TestServers, name: &str) -> Value {
    hub.json(Place::HUB, &GRANT, &Name::cluster_wide(name))
}

/// A namespace that asks to be placed.
pub(crate) fn namespace(name: &str, patch: Value) -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "generation": 1,
            "labels": {"interlock.dev/placed": "true"},
        },
    });
    patched(object, &patch)
}

/// A claim that is held and asks for no class.
pub(crate) fn claim(namespace: &str, name: &str, patch: Value) -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "finalizers": ["interlock.dev/claim"],
        },
        "spec": {},
    });
    patched(object, &patch)
}

/// A cluster that is ready.
pub(crate) fn cluster(name: &str, patch: Value) -> Value {
    let condition = |kind| {
        json!({
            "type": kind, "status": "True", "reason": "Heard", "message": "",
            "lastTransitionTime": "2001-01-01T00:00:00Z",
        })
    };
    let object = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"),
            "finalizers": ["interlock.dev/live-grants"],
        },
        "spec": {"connection": {"logicalCluster": name}},
        "status": {"conditions": [condition("Ready"), condition("Reachable")]},
    });
    patched(object, &patch)
}

/// The conditions of a cluster that sends no heartbeat.
pub(crate) fn unreachable() -> Value {
    let condition = |kind| {
        json!({
            "type": kind, "status": "False", "reason": "Silent", "message": "",
            "lastTransitionTime": "2001-02-03T04:05:06Z",
        })
    };
    json!({"status": {"conditions": [condition("Ready"), condition("Reachable")]}})
}

/// The grant of a namespace that nobody has.
pub(crate) fn grant(namespace: &str, patch: Value) -> Value {
    let name = grant_of(namespace);
    let object = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Grant",
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"namespace": {"name": namespace, "uid": format!("uid-{namespace}")}},
    });
    patched(object, &patch)
}

/// The same, owned by a cluster which is the target too.
pub(crate) fn granted(namespace: &str, owner: &str, patch: Value) -> Value {
    let object = grant(
        namespace,
        json!({
            "spec": {"target": reference(owner)},
            "status": {
                "phase": "Granted", "owner": reference(owner), "epoch": 7,
                "copies": [{"cluster": reference(owner), "epoch": 7, "state": "Live"}],
            },
        }),
    );
    patched(object, &patch)
}

/// The name of the grant of a namespace of these tests.
pub(crate) fn grant_of(namespace: &str) -> String {
    interlock_api::names::grant_name(namespace, &format!("uid-{namespace}"))
}

pub(crate) fn reference(name: &str) -> Value {
    json!({"name": name, "uid": format!("uid-{name}")})
}

/// A pin with a snapshot of this form.
pub(crate) fn pin(claim: &str, snapshot: &Value) -> Value {
    json!({
        "claim": claim, "claimUID": format!("uid-{claim}"), "epoch": 6,
        "taken": "1970-01-12T13:00:00Z", "bytes": 1000, "snapshot": snapshot,
    })
}

/// A claim as a grant lists it.
pub(crate) fn listed(claim: &str, fill: &str) -> Value {
    json!({"name": claim, "uid": format!("uid-{claim}"), "fill": fill})
}

/// Panics if an invariant of a model can be broken by no state whatever although nobody said so, or
/// by some although it was said that none can.
pub(crate) fn assert_invariants_can_fail<M: interlock_checker::Model>(model: &M) {
    let mut rng = interlock_checker::Rng::new(2);
    let any = |_| model.arbitrary(&mut rng).unwrap();
    let states: Vec<M::State> = (0..1_000).map(any).collect();
    for invariant in model.invariants() {
        let can_fail = !states.iter().all(&invariant.holds);
        assert_eq!(can_fail, invariant.unbreakable.is_none(), "{}", invariant.name);
    }
}
