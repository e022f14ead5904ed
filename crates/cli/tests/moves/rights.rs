//! Everybody has an account of their own, and may do there what they do and no more.
//!
//! All tests of moves run with the accounts and roles of `interlock manifests`; a fleet ends only if
//! nobody was refused anything. Here is what they must be refused.

use super::fleet::{Fleet, GROUP};
use super::harness::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the hub answers to somebody.
fn answer(mut client: Client, method: &str, path: &str, body: &Value) -> u16 {
    let body = Some(body).filter(|body| !body.is_null());
    client.call(method, path, body).expect("the hub answers").status
}

/// Who has reported something, and what, at the hub or on a cluster.
fn told(fleet: &Fleet, cluster: &str) -> BTreeSet<(String, String)> {
    let events = fleet.get(&format!("{cluster}/apis/events.k8s.io/v1/events"));
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let word = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events.iter().map(|e| (word(e, "reportingController"), word(e, "reason"))).collect()
}

#[test]
fn a_syncer_may_do_its_own_work_and_nothing_of_its_neighbours() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let uid = fleet.place("shop", "west", &numbers);
    let grant = fleet.writes_on("shop", &uid, "west");
    let name = grant["metadata"]["name"].as_str().expect("it has one");
    let with_token = |token: &str| fleet.client().with_token(Some(token));
    let at_hub = fleet.token("", "interlock-syncer-west");
    let there = fleet.token("/clusters/west", "interlock-syncer");
    let here = grant["metadata"]["name"].as_str().expect("the same as its namespace there");
    let nothing = Value::Null;
    let status = json!({"status": {"grants": 7}});
    let force = json!({"metadata": {"name": "mine"}, "spec": {}});
    let own = |path: &str| format!("{GROUP}/{path}");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/interlock-system/leases";
    let refused = [
        ("PATCH", own("workloadclusters/east/status"), &status),
        ("PATCH", own("workloadclusters/west"), &json!({"spec": {"drain": true}})),
        ("POST", own("grants"), &json!({"metadata": {"name": "mine"}})),
        ("PATCH", own(&format!("grants/{name}")), &json!({"spec": {"target": null}})),
        ("DELETE", own(&format!("grants/{name}")), &nothing),
        ("POST", own("forcereleases"), &force),
        ("PATCH", own("placements/any/status"), &status),
        ("GET", format!("{leases}/interlock-syncer-east"), &nothing),
        ("PUT", format!("{leases}/interlock-controllers"), &force),
        ("POST", leases.to_owned(), &force),
        ("DELETE", "/api/v1/namespaces/shop".to_owned(), &nothing),
        ("POST", "/api/v1/namespaces/shop/secrets".to_owned(), &force),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(), &nothing),
    ];
    for (method, path, body) in &refused {
        assert_eq!(answer(with_token(&at_hub), method, path, body), 403, "{method} {path}");
    }
    // What it is on its own cluster is worth nothing on another, and nothing at the hub.
    for path in [format!("/clusters/east/api/v1/namespaces/{here}"), own("grants")] {
        assert_eq!(answer(with_token(&there), "GET", &path, &nothing), 401, "{path}");
        let (method, path) = ("PATCH", path.as_str());
        assert_eq!(answer(with_token(&there), method, path, &json!({})), 401, "{method} {path}");
    }
    // This RBAC cannot say: whose grant it is. docs/deploying.md tells so.
    let any = own(&format!("grants/{name}/status"));
    let east = fleet.token("", "interlock-syncer-east");
    assert_eq!(answer(with_token(&east), "PATCH", &any, &json!({"status": {}})), 200);
    fleet.end(&["shop"]);
}

#[test]
fn everybody_can_tell_what_they_did() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let uid = fleet.place("shop", "west", &numbers);
    fleet.writes_on("shop", &uid, "west");
    fleet.place_on("shop", "east");
    fleet.writes_on("shop", &uid, "east");
    let told = told(&fleet, "");
    for (who, what) in [("scheduler", "Granted"), ("scheduler", "Revoking"), ("syncer", "Started")]
    {
        let event = (format!("interlock.dev/placement-{who}"), what.to_owned());
        assert!(told.contains(&event), "no {event:?} in {told:?}");
    }
    fleet.end(&["shop"]);
}
