//! People send requests one after the other, and may cancel the first of them.

use super::truth::Truth;
use super::{CLUSTER, DEADLINE, HOME, Rollouts, START_DEADLINE};
use crate::kinds::CLUSTER_UPDATE;
use interlock_kernel::Name;
use interlock_world::{Move, Scene};
use serde_json::{Value, json};

pub(super) const MOST_REQUESTS: usize = 3;

/// What people do.
pub(super) const MOVES: [(&str, &str, bool); 2] =
    [("Submit", "people", true), ("Cancel", "people", false)];

/// That somebody cancelled the first request.
pub(super) const IS_CANCELLED: u32 = 1 << 2;

/// How many requests were sent: the two lowest bits.
pub(super) fn sent(chance: u32) -> usize {
    (chance & 3) as usize
}

/// The name of a request.
pub(super) fn name(request: usize) -> &'static str {
    ["one", "two", "three"][request]
}

/// A request, by its number. The third has the content of the second.
fn update(request: usize) -> Value {
    let version = request.min(1);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"version": version.to_string()},
        "metadata": {"name": "app", "namespace": HOME}});
    json!({
        "metadata": {"creationTimestamp": format!("1970-01-01T00:00:0{request}Z")},
        "spec": {
            "cluster": CLUSTER, "source": {"inline": [object]}, "soakSeconds": 0,
            "deadlineSeconds": DEADLINE, "startDeadlineSeconds": START_DEADLINE,
        },
    })
}

pub(super) fn next(system: &Rollouts, scene: &Scene<'_, Rollouts>, truth: &Truth) -> Vec<Move<()>> {
    let (servers, hub, count) = (scene.servers, scene.contents[0], sent(scene.chance));
    let at = |request| Name::within(HOME, name(request));
    let mut next = Vec::new();
    // The clock waits for all of them.
    if count < system.requests {
        let hub = servers.put(hub, &CLUSTER_UPDATE, &at(count), update(count));
        next.push(Move { chance: scene.chance + 1, ..scene.at_hub(0, hub) });
    }
    let is_open = truth.requests[0].as_ref().is_some_and(|first| !first.is_over());
    if system.cancels && scene.chance & IS_CANCELLED == 0 && is_open {
        let cancel = json!({"spec": {"cancel": true}});
        let hub = servers.change(hub, &CLUSTER_UPDATE, &at(0), &cancel);
        next.push(Move { chance: scene.chance | IS_CANCELLED, ..scene.at_hub(1, hub) });
    }
    next
}
