//! Each row of what a request says.

use super::*;
use crate::testing::{RECORD, answer, cluster, request, shown, update};
use interlock_kernel::testing::{NoMachine, TestServers};
use serde_json::{Value, json};

fn entry(phase: &str) -> Value {
    json!({"uid": "uid-v1", "namespace": "shop", "name": "v1", "version": 1, "digest": "d", "phase": phase,
        "phaseSince": "1970-01-12T13:46:40Z", "reason": "Valid", "message": "the request is valid"})
}

fn record(phase: &str) -> Value {
    let active = matches!(phase, "Applying" | "Verifying" | "RollingBack");
    let active = json!({"uid": "uid-v1", "version": 1, "digest": "d", "phase": phase})
        .as_object()
        .filter(|_| active)
        .cloned();
    json!({"kind": "ClusterRollout", "metadata": {"name": RECORD, "uid": "r"},
        "spec": {"cluster": {"name": "west", "uid": "uid-west"}},
        "status": {"requests": [entry(phase)], "lastVersion": 1, "active": active, "target": {"token": 1}}})
}

fn held() -> Value {
    json!({"metadata": {"finalizers": ["interlock.dev/rollout"]}})
}

fn hub(objects: Vec<Value>) -> TestServers {
    TestServers::of(&Mirror).with(objects)
}

fn settle(hub: &mut TestServers) {
    hub.settle(&Mirror, &mut NoMachine, "shop/v1");
}

fn finalizers(hub: &TestServers) -> usize {
    let found = hub.json(Place::HUB, &CLUSTER_UPDATE, &request("v1"));
    found["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_request_says_what_its_record_says() {
    let mut hub =
        hub(vec![update("v1", "1", held()), record("Queued"), cluster("west", json!({}))]);
    settle(&mut hub);
    let said = shown(&hub, "v1");
    assert_eq!(
        (said.phase, said.version, said.digest.as_deref()),
        (UpdatePhase::Queued, Some(1), Some("d"))
    );
    assert_eq!((said.reason.as_str(), said.message.as_str()), ("Valid", "the request is valid"));
    assert_eq!(said.conditions[0].status, "False");
    assert_eq!(finalizers(&hub), 1);
}

#[test]
fn a_request_in_flight_says_what_the_agent_says_about_its_token() {
    let mut hub = hub(vec![
        update("v1", "1", held()),
        record("Applying"),
        cluster("west", json!({})),
        json!({"kind": "RolloutReport", "metadata": {"name": RECORD}, "spec": {"cluster": {"name": "west", "uid": "uid-west"}}}),
    ]);
    let not_ready = json!([{"id": "/Pod/shop/web", "code": "InProgress", "message": "pulls"}]);
    answer(
        &mut hub,
        json!({"objects": {"wanted": 3, "applied": 2, "current": 1, "toPrune": 0}, "notReady": not_ready}),
    );
    settle(&mut hub);
    let said = shown(&hub, "v1");
    assert_eq!(said.objects.map(|objects| (objects.wanted, objects.current)), Some((3, 1)));
    assert_eq!(said.not_ready[0].code, "InProgress");
    answer(&mut hub, json!({"token": 0, "notReady": []}));
    settle(&mut hub);
    assert_eq!(shown(&hub, "v1").not_ready.len(), 1, "that is about another target");
}

#[test]
fn a_request_is_let_go_once_it_says_its_outcome_and_says_nothing_else_ever_after() {
    let mut hub =
        hub(vec![update("v1", "1", held()), record("Succeeded"), cluster("west", json!({}))]);
    settle(&mut hub);
    let said = shown(&hub, "v1");
    assert_eq!((said.phase, finalizers(&hub)), (UpdatePhase::Succeeded, 0));
    assert_eq!(said.conditions[0].status, "True");
    let mut hub = hub.with([record("RolledBack")]);
    settle(&mut hub);
    assert_eq!(shown(&hub, "v1").phase, UpdatePhase::Succeeded);
}

#[test]
fn a_request_for_a_cluster_that_there_is_not_is_refused() {
    let mut there_is_none = hub(vec![update("v1", "1", json!({}))]);
    settle(&mut there_is_none);
    let said = shown(&there_is_none, "v1");
    assert_eq!((said.phase, said.reason.as_str()), (UpdatePhase::Rejected, "UnknownCluster"));
    assert!(said.message.contains("no WorkloadCluster west"));
    let mut there_is_one = hub(vec![update("v1", "1", json!({})), cluster("west", json!({}))]);
    settle(&mut there_is_one);
    assert_eq!(shown(&there_is_one, "v1").phase, UpdatePhase::Pending);
}

#[test]
fn a_request_that_the_conductor_holds_is_left_to_it() {
    let mut recorded = hub(vec![update("v1", "1", held()), record("Succeeded")]);
    recorded.change(
        Place::HUB,
        &CLUSTER_ROLLOUT,
        &Name::cluster_wide(RECORD),
        &json!({"status": {"requests": null}}),
    );
    settle(&mut recorded);
    assert_eq!((shown(&recorded, "v1").phase, finalizers(&recorded)), (UpdatePhase::Pending, 1));
    let mut lost = hub(vec![update("v1", "1", held())]);
    settle(&mut lost);
    assert_eq!((shown(&lost, "v1").phase, finalizers(&lost)), (UpdatePhase::Rejected, 0));
}
