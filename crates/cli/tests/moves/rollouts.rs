//! Updates of clusters as they are run: many at once, drains, refusals, agents that are away, and many clusters. Agents are
//! processes of their own, and what runs is read from the clusters themselves.
//!
//! How far a request gets is decided by the test: a gate is a pod that nobody can start, so nothing after it happens until
//! the test says that it has completed.

mod away;
mod drains;
mod fleets;
mod killed;
mod late;
mod many;
mod refusals;

use super::fleet::{Fleet, GROUP, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const UPDATES: &str = "/apis/interlock.dev/v1alpha1/namespaces/default/clusterupdates";
/// The phases in which a request has ended.
const OUTCOMES: [&str; 7] =
    ["Rejected", "Superseded", "Cancelled", "Failed", "Succeeded", "RolledBack", "RollbackFailed"];

/// A request for a cluster.
struct Asked<'a> {
    name: &'a str,
    cluster: &'a str,
    objects: Vec<Value>,
    /// More of its spec, over what is here by default.
    how: Value,
}

impl Asked<'_> {
    /// The request as an object: no soak, and a deadline that no test reaches.
    fn object(&self) -> Value {
        let mut spec = json!({"cluster": self.cluster, "soakSeconds": 0, "deadlineSeconds": 600,
            "source": {"inline": self.objects}});
        for (key, value) in self.how.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterUpdate",
            "metadata": {"name": self.name, "namespace": "default"}, "spec": spec})
    }

    fn submit(&self, fleet: &Fleet) {
        fleet.client().must("POST", UPDATES, Some(&self.object()));
    }
}

/// A request for west.
fn asked(name: &str, objects: Vec<Value>) -> Asked<'_> {
    Asked { name, cluster: "west", objects, how: Value::Null }
}

/// Asks west for objects, and waits until they are its last good version.
fn succeeds(fleet: &Fleet, name: &str, objects: Vec<Value>) {
    asked(name, objects).submit(fleet);
    ends_as(fleet, name, "Succeeded");
}

/// Waits until a request has ended, which must be like this; its status.
fn ends_as(fleet: &Fleet, name: &str, phase: &str) -> Value {
    let status = until_one_of(fleet, name, &OUTCOMES);
    assert_eq!(status["phase"], phase, "{name}: {}", fleet.story(&status));
    status
}

/// Waits until a request is in one of these phases; its status.
fn until_one_of(fleet: &Fleet, name: &str, phases: &[&str]) -> Value {
    until(&format!("the request {name} is one of {phases:?}"), || {
        let status = fleet.get(&format!("{UPDATES}/{name}"))["status"].clone();
        match status["phase"].as_str().is_some_and(|phase| phases.contains(&phase)) {
            true => Ok(status),
            false => Err(story(fleet, &status)),
        }
    })
}

/// What was seen, with the records of all clusters and what their agents report.
fn story(fleet: &Fleet, seen: &Value) -> String {
    let of = |plural: &str| -> Vec<Value> {
        let found = fleet.get(&format!("{GROUP}/{plural}"));
        let items = found["items"].as_array().into_iter().flatten();
        items.map(|it| json!([it["metadata"]["name"], it["status"]])).collect()
    };
    let clusters = of("workloadclusters");
    fleet.story(&json!([seen, of("clusterrollouts"), of("rolloutreports"), clusters]))
}

/// A ConfigMap that says of which version it is.
fn map(name: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"version": version}})
}

/// A pod that never starts: it counts as healthy once [`open`] says that it has completed. It has a command, for a pod
/// without one counts as failed once no node has taken it for a while.
fn gate(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingGates": [{"name": "example.com/never"}],
            "containers": [{"name": "a", "image": "none", "command": ["true"]}]}})
}

/// The same object in a wave of its own: what is in later ones waits until it is healthy.
fn in_wave(mut object: Value, wave: u32) -> Value {
    object["metadata"]["annotations"] = json!({"interlock.dev/wave": wave.to_string()});
    object
}

/// Lets what waits for a gate go on.
fn open(fleet: &Fleet, gate: &str) {
    let path = on_west(&format!("pods/{gate}/status"));
    fleet.client().must("PATCH", &path, Some(&json!({"status": {"phase": "Succeeded"}})));
}

/// Holds an object of west, so that who deletes it has to wait; or lets it go.
fn hold(fleet: &Fleet, map: &str, is_held: bool) {
    let finalizers = if is_held { json!(["example.com/hold"]) } else { Value::Null };
    let change = json!({"metadata": {"finalizers": finalizers}});
    fleet.client().must("PATCH", &on_west(&format!("configmaps/{map}")), Some(&change));
}

/// Nobody wants a request any more.
fn cancel(fleet: &Fleet, name: &str) {
    let path = format!("{UPDATES}/{name}");
    fleet.client().must("PATCH", &path, Some(&json!({"spec": {"cancel": true}})));
}

/// Where something of namespace default of west is.
fn on_west(what: &str) -> String {
    format!("/clusters/west/api/v1/namespaces/default/{what}")
}

/// Waits until something of namespace default of west is there.
fn until_there(fleet: &Fleet, what: &str) {
    until(&format!("{what} is on west"), || match fleet.get(&on_west(what)).is_null() {
        true => Err(story(fleet, &Value::Null)),
        false => Ok(()),
    });
}

/// The versions of the ConfigMaps of west that are the rollouts', by name.
fn maps(fleet: &Fleet) -> BTreeMap<String, String> {
    let found = fleet.get(&on_west("configmaps?labelSelector=interlock.dev/rollout"));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = found["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|it| (word(&it["metadata"]["name"]), word(&it["data"]["version"]))).collect()
}

/// The ConfigMaps of west that are the rollouts' are exactly these, each with its version.
fn has_exactly(fleet: &Fleet, wanted: &[(&str, &str)]) {
    let owned = |(name, version): &(&str, &str)| ((*name).to_owned(), (*version).to_owned());
    let wanted: BTreeMap<String, String> = wanted.iter().map(owned).collect();
    assert_eq!(maps(fleet), wanted, "{}", story(fleet, &Value::Null));
}

/// The one of some kind that is about west, or null.
fn about_west(fleet: &Fleet, plural: &str) -> Value {
    let found = fleet.get(&format!("{GROUP}/{plural}"));
    let mut items = found["items"].as_array().into_iter().flatten();
    items.find(|it| it["spec"]["cluster"]["name"] == "west").cloned().unwrap_or_default()
}

/// The token of the target of west.
fn token(fleet: &Fleet) -> i64 {
    about_west(fleet, "clusterrollouts")["status"]["target"]["token"].as_i64().unwrap_or_default()
}
