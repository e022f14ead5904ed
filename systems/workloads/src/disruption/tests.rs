//! The rules about a PodDisruptionBudget, one by one.

use super::*;
use crate::recorded::judged_again;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Name, Write};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const SUBJECT: &str = "eu/shop";

fn budget(spec: &Value) -> Value {
    let object = json!({
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shop", "namespace": "eu", "uid": "uid-budget", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "shop"}}},
    });
    patched(object, &json!({"spec": spec}))
}

fn owner(kind: &str, name: &str) -> Value {
    let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}"),
        "controller": true}])
}

fn workload(kind: &str, name: &str, replicas: u32) -> Value {
    json!({"kind": kind, "spec": {"replicas": replicas},
        "metadata": {"name": name, "namespace": "eu", "uid": format!("uid-{name}")}})
}

/// A ReplicaSet of the Deployment `shop`; its own size is not what counts.
fn set(name: &str) -> Value {
    let of = json!({"metadata": {"ownerReferences": owner("Deployment", "shop")}});
    patched(workload("ReplicaSet", name, 1), &of)
}

fn pod(name: &str, patch: &Value) -> Value {
    let object = json!({
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "eu", "uid": format!("uid-{name}"),
            "creationTimestamp": "1970-01-01T00:00:00Z", "labels": {"app": "shop"},
            "ownerReferences": owner("ReplicaSet", "set")},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    patched(object, patch)
}

fn ready(name: &str) -> Value {
    pod(name, &json!({}))
}

fn unready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
}

fn of(kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": owner(kind, name)}})
}

fn bare() -> Value {
    json!({"metadata": {"ownerReferences": null}})
}

/// The Deployment of three, with its ReplicaSet and its pods.
fn shop() -> Vec<Value> {
    let pods = ["a", "b", "c"].map(ready);
    [vec![workload("Deployment", "shop", 3), set("set")], pods.to_vec()].concat()
}

fn name(name: &str) -> Name {
    Name::within("eu", name)
}

fn shown(objects: impl IntoIterator<Item = Value>) -> TestServers {
    TestServers::of(&Disruptions).with(objects)
}

fn settle(cluster: &mut TestServers) -> Run<Nothing> {
    cluster.settle(&Disruptions, &mut NoMachine, SUBJECT)
}

fn found(cluster: &TestServers) -> Value {
    cluster.json(Place::CLUSTER, &BUDGET, &name("shop"))
}

/// Those expected, healthy, desired and allowed to be evicted.
fn counts(cluster: &TestServers) -> [u64; 4] {
    let status = found(cluster)["status"].clone();
    ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"]
        .map(|key| status[key].as_u64().unwrap_or_else(|| panic!("no {key}: {status:#}")))
}

fn reason(cluster: &TestServers) -> String {
    let found = found(cluster);
    let said = condition(&found, DISRUPTION_ALLOWED);
    let text = |key: &str| said[key].as_str().unwrap_or_default();
    format!("{} {}", text("status"), text("reason"))
}

/// The counts for a Deployment of three ready pods, of which `a` may be unlike the others.
fn counts_of(spec: &Value, first: &Value) -> [u64; 4] {
    let mut cluster = shown(shop().into_iter().chain([budget(spec), pod("a", first)]));
    settle(&mut cluster);
    counts(&cluster)
}

/// Notes a pod as evicted so many seconds ago, as the API server does.
fn evict(cluster: &mut TestServers, pod: &str, seconds_ago: i64) {
    let at: Timestamp = cluster.view().now() - SignedDuration::from_secs(seconds_ago);
    let noted = json!({"status": {"disruptedPods": {pod: format!("{at:.0}")}}});
    cluster.change(Place::CLUSTER, &BUDGET, &name("shop"), &noted);
}

fn disrupted(cluster: &TestServers) -> Vec<String> {
    let noted = found(cluster)["status"]["disruptedPods"].clone();
    noted.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[test]
fn what_may_be_evicted_is_what_is_healthy_above_what_must_be() {
    let as_it_is = json!({});
    for (spec, wanted) in [
        (json!({"minAvailable": 2}), [3, 3, 2, 1]),
        (json!({"minAvailable": 0}), [3, 3, 0, 3]),
        (json!({"minAvailable": 5}), [3, 3, 5, 0]),
        (json!({"minAvailable": "50%"}), [3, 3, 2, 1]),
        (json!({"minAvailable": "100%"}), [3, 3, 3, 0]),
        (json!({"maxUnavailable": 1}), [3, 3, 2, 1]),
        (json!({"maxUnavailable": 7}), [3, 3, 0, 3]),
        (json!({"maxUnavailable": "34%"}), [3, 3, 1, 2]),
        (json!({"maxUnavailable": "0%"}), [3, 3, 3, 0]),
        (json!({}), [0, 3, 0, 0]),
    ] {
        assert_eq!(counts_of(&spec, &as_it_is), wanted, "{spec}");
    }
}

#[test]
fn a_pod_that_is_not_ready_or_is_being_deleted_is_not_healthy() {
    let deleted =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
    let least = json!({"minAvailable": 2});
    for first in [unready(), json!({"status": {"conditions": null}}), deleted] {
        assert_eq!(counts_of(&least, &first), [3, 2, 2, 0], "{first}");
    }
}

#[test]
fn the_condition_says_whether_a_pod_may_be_evicted_and_of_which_generation_that_is() {
    let mut cluster = shown(shop().into_iter().chain([budget(&json!({"minAvailable": 2}))]));
    let run = settle(&mut cluster);
    assert_eq!(run.writes.len(), 1, "all of it is one write");
    let [Write::Patch { seen, .. }] = &run.writes[..] else { panic!("{run:?}") };
    assert!(!seen.resource_version.is_empty(), "the API server writes the same status");
    assert_eq!(reason(&cluster), "True SufficientPods");
    let status = found(&cluster)["status"].clone();
    assert_eq!(
        (&status["observedGeneration"], status["conditions"].as_array().map(Vec::len)),
        (&json!(2), Some(1))
    );
    assert_eq!(status["conditions"][0]["observedGeneration"], 2, "{status:#}");
    let message = "3 of 3 pods are healthy, and 2 must be";
    assert_eq!(status["conditions"][0]["message"], message);

    cluster.change(Place::CLUSTER, &POD, &name("a"), &unready());
    settle(&mut cluster);
    assert_eq!(reason(&cluster), "False InsufficientPods");
    assert!(settle(&mut cluster).writes.is_empty(), "at rest nothing is written");
}

#[test]
fn the_scale_is_that_of_the_workloads_and_not_the_number_of_pods() {
    let most = budget(&json!({"maxUnavailable": 1}));
    // Two pods of one Deployment by two ReplicaSets, and one of a StatefulSet.
    let second = json!({"metadata": {"ownerReferences": owner("ReplicaSet", "other")}});
    let objects = vec![
        most.clone(),
        workload("Deployment", "shop", 4),
        set("set"),
        set("other"),
        workload("StatefulSet", "db", 2),
        ready("a"),
        pod("b", &second),
        pod("c", &of("StatefulSet", "db")),
    ];
    let mut cluster = shown(objects);
    settle(&mut cluster);
    assert_eq!(counts(&cluster), [6, 3, 5, 0]);

    let alone = [most, workload("ReplicaSet", "set", 2), ready("a"), ready("b")];
    let mut cluster = shown(alone);
    settle(&mut cluster);
    assert_eq!(counts(&cluster), [2, 2, 1, 1]);
    let more = json!({"spec": {"replicas": 5}});
    cluster.change(Place::CLUSTER, &REPLICA_SET, &name("set"), &more);
    settle(&mut cluster);
    assert_eq!(counts(&cluster), [5, 2, 4, 0]);
}

#[test]
fn without_a_scale_no_pod_may_be_evicted_and_the_condition_says_why() {
    let share = json!({"maxUnavailable": 1});
    for (patch, word) in [
        (of("Job", "once"), "Job once controls pod a"),
        (of("ReplicaSet", "gone"), "does not show ReplicaSet gone"),
    ] {
        let mut cluster = shown(shop().into_iter().chain([budget(&share)]));
        settle(&mut cluster);
        assert_eq!(counts(&cluster), [3, 3, 2, 1]);
        cluster.change(Place::CLUSTER, &POD, &name("a"), &patch);
        settle(&mut cluster);
        assert_eq!(counts(&cluster), [3, 3, 2, 0], "the rest is what it was: {word}");
        assert_eq!(reason(&cluster), "False SyncFailed");
        let found = found(&cluster);
        let message = condition(&found, DISRUPTION_ALLOWED)["message"].as_str();
        assert!(message.is_some_and(|text| text.contains(word)), "{message:?}");
    }
    // A number of pods needs no scale.
    assert_eq!(counts_of(&json!({"minAvailable": 2}), &of("Job", "once")), [3, 3, 2, 1]);
}

#[test]
fn what_cannot_be_read_allows_nothing_and_is_named() {
    let rule = json!({"matchExpressions": [{"key": "app", "operator": "Maybe"}]});
    for (spec, word) in [
        (json!({"minAvailable": "two"}), "spec.minAvailable: \"two\""),
        (json!({"maxUnavailable": -1}), "spec.maxUnavailable: -1"),
        (json!({"minAvailable": 1, "selector": rule}), "spec.selector: \"Maybe\""),
    ] {
        let mut cluster = shown(shop().into_iter().chain([budget(&spec)]));
        settle(&mut cluster);
        assert_eq!((counts(&cluster)[3], reason(&cluster).as_str()), (0, "False SyncFailed"));
        let found = found(&cluster);
        let message = condition(&found, DISRUPTION_ALLOWED)["message"].as_str();
        assert!(message.is_some_and(|text| text.starts_with(word)), "{message:?}");
    }
}

#[test]
fn pods_without_a_controller_count_only_where_a_number_is_asked_for() {
    let spec = json!({"maxUnavailable": 1});
    assert_eq!(counts_of(&json!({"minAvailable": 2}), &bare()), [3, 3, 2, 1]);
    let mut cluster = shown(shop().into_iter().chain([budget(&spec), pod("d", &bare())]));
    settle(&mut cluster);
    assert_eq!(counts(&cluster), [3, 4, 2, 2], "as upstream: healthy, and not expected");
    let found = found(&cluster);
    let message = condition(&found, DISRUPTION_ALLOWED)["message"].as_str();
    assert!(message.is_some_and(|text| text.contains("1 pods have no controller")), "{message:?}");

    let mut alone = shown([budget(&spec), pod("d", &bare())]);
    settle(&mut alone);
    assert_eq!(counts(&alone), [0, 1, 0, 0], "nothing is expected, so nothing is allowed");
}

#[test]
fn an_empty_selector_selects_every_pod_of_the_namespace_and_none_selects_nothing() {
    let other = pod("d", &json!({"metadata": {"labels": {"app": "other"}}}));
    let elsewhere = pod("e", &json!({"metadata": {"namespace": "us"}}));
    let selecting = |selector: Value| {
        let mut budget = budget(&json!({"minAvailable": 1}));
        budget["spec"]["selector"] = selector;
        let all = shop().into_iter().chain([other.clone(), elsewhere.clone(), budget]);
        let mut cluster = shown(all);
        settle(&mut cluster);
        counts(&cluster)
    };
    assert_eq!(selecting(json!({})), [4, 4, 1, 3]);
    assert_eq!(selecting(Value::Null), [0, 0, 1, 0]);
    assert_eq!(selecting(json!({"matchLabels": {"app": "none"}})), [0, 0, 1, 0]);
}

#[test]
fn a_pod_that_the_api_server_evicts_is_not_healthy_until_its_time_is_over() {
    let mut cluster = shown(shop().into_iter().chain([budget(&json!({"minAvailable": 2}))]));
    settle(&mut cluster);
    evict(&mut cluster, "a", 20);
    let run = settle(&mut cluster);
    assert_eq!((counts(&cluster), run.waits_seconds), ([3, 2, 2, 0], Some(100)));
    assert_eq!(disrupted(&cluster), ["a"]);
    cluster.pass(99);
    assert_eq!(settle(&mut cluster).waits_seconds, Some(1));
    // Nobody deleted it: it was not evicted after all.
    cluster.pass(1);
    let run = settle(&mut cluster);
    assert_eq!((counts(&cluster), run.waits_seconds), ([3, 3, 2, 1], None));
    assert!(disrupted(&cluster).is_empty());
}

#[test]
fn a_pod_that_is_being_deleted_is_noted_no_more() {
    let mut cluster = shown(shop().into_iter().chain([budget(&json!({"minAvailable": 2}))]));
    evict(&mut cluster, "a", 1);
    evict(&mut cluster, "b", 1);
    settle(&mut cluster);
    assert_eq!((disrupted(&cluster).len(), counts(&cluster)), (2, [3, 1, 2, 0]));
    let deleted =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
    cluster.change(Place::CLUSTER, &POD, &name("a"), &deleted);
    let unselected = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.change(Place::CLUSTER, &POD, &name("b"), &unselected);
    settle(&mut cluster);
    assert!(disrupted(&cluster).is_empty());
    assert_eq!(counts(&cluster), [2, 1, 2, 0]);
}

#[test]
fn the_next_pod_of_the_same_name_is_not_the_one_that_was_evicted() {
    let mut cluster = shown(shop().into_iter().chain([budget(&json!({"minAvailable": 2}))]));
    evict(&mut cluster, "a", 30);
    settle(&mut cluster);
    assert_eq!(counts(&cluster), [3, 2, 2, 0]);
    let now = cluster.view().now();
    let next = json!({"metadata": {"uid": "uid-next", "creationTimestamp": format!("{now:.0}")}});
    cluster.put(Place::CLUSTER, pod("a", &next));
    settle(&mut cluster);
    assert_eq!((counts(&cluster), disrupted(&cluster).len()), ([3, 3, 2, 1], 0));
}

#[test]
fn a_pod_that_the_cache_does_not_show_is_noted_until_a_live_list_shows_that_it_is_gone() {
    let mut cluster = shown(shop().into_iter().chain([budget(&json!({"minAvailable": 2}))]));
    settle(&mut cluster);
    evict(&mut cluster, "a", 20);
    settle(&mut cluster);
    let live = cluster.list(Place::CLUSTER, &POD, Some("eu"));
    cluster.delete(Place::CLUSTER, &POD, &name("a"));
    let step = cluster.view().step_with(&Disruptions, SUBJECT, &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    // The cache was behind, and shows the pod a moment later.
    let mut reads = LiveReads::default();
    reads.lists.insert((Place::CLUSTER, POD, Some("eu".to_owned())), live);
    let Step::Act(effect) = cluster.view().step_with(&Disruptions, SUBJECT, &reads) else {
        panic!("the pods that are expected are fewer")
    };
    let written = format!("{effect:?}");
    assert!(!written.contains("disruptedPods"), "{written}");
    // It is gone.
    settle(&mut cluster);
    assert!(disrupted(&cluster).is_empty());
    assert_eq!(counts(&cluster), [2, 2, 2, 0]);
}

#[test]
fn a_time_that_cannot_be_read_is_over() {
    let mut cluster = shown(shop().into_iter().chain([budget(&json!({"minAvailable": 2}))]));
    let noted = json!({"status": {"disruptedPods": {"a": "soon", "b": null, "c": 7}}});
    cluster.change(Place::CLUSTER, &BUDGET, &name("shop"), &noted);
    settle(&mut cluster);
    assert!(disrupted(&cluster).is_empty());
    assert_eq!(counts(&cluster), [3, 3, 2, 1]);
}

#[test]
fn a_budget_that_is_being_deleted_is_left_alone() {
    let leaving =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
    let budget = patched(budget(&json!({"minAvailable": 2})), &leaving);
    let mut cluster = shown(shop().into_iter().chain([budget]));
    assert!(settle(&mut cluster).writes.is_empty());
}

#[test]
fn a_pod_and_a_workload_wake_every_budget_of_their_namespace() {
    let mut other = budget(&json!({"minAvailable": 1}));
    other["metadata"]["name"] = json!("other");
    other["metadata"]["uid"] = json!("uid-other");
    let mut elsewhere = budget(&json!({"minAvailable": 1}));
    elsewhere["metadata"]["namespace"] = json!("us");
    let all = [budget(&json!({"minAvailable": 2})), other, elsewhere];
    let cluster = shown(shop().into_iter().chain(all));
    for (kind, name) in [(&POD, "a"), (&DEPLOYMENT, "shop"), (&REPLICA_SET, "set")] {
        let object = cluster.get(Place::CLUSTER, kind, &Name::within("eu", name)).expect(name);
        let watch = Watch::all(Place::CLUSTER, kind);
        let woken = Disruptions.subjects(&watch, &object, &cluster.view());
        assert_eq!(woken, [Subject::from("eu/other"), Subject::from("eu/shop")], "{name}");
    }
}

#[test]
fn broken_objects_do_not_break_it() {
    let spec = json!({"maxUnavailable": "50%"});
    let mut cluster = shown(shop().into_iter().chain([budget(&spec)]));
    settle(&mut cluster);
    evict(&mut cluster, "a", 20);
    let objects: Vec<Value> = shop().into_iter().chain([found(&cluster)]).collect();
    survives(&Disruptions, &NoMachine, &objects);
    judged_again(&Disruptions, &objects);
}
