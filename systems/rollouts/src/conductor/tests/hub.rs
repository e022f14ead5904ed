//! Requests from their creation to their end, with the objects that are written.

use super::Conductor;
use crate::bundle::{Bundle, PART_KEY, compressed, revisions};
use crate::kinds::{
    BUNDLE_REVISION, CLUSTER_ROLLOUT, CLUSTER_UPDATE, CONFIG_MAP, NAMESPACE, ROLLOUT_REPORT,
    SECRET, WORKLOAD_CLUSTER,
};
use crate::mirror::Mirror;
use crate::testing::{
    RECORD, answer, check, cluster, config, digest, phase, record, request, shown, update,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_api::rollouts::{MOST_BUNDLE_BYTES, UpdatePhase, part_name};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Name, Nothing, Place};
use serde_json::{Value, json};

use UpdatePhase::{
    Applying, Cancelled, Failed, Queued, Rejected, RollbackFailed, RolledBack, RollingBack,
    Succeeded, Superseded, Verifying,
};

fn hub(requests: Vec<Value>) -> TestServers {
    let hub = TestServers::of(&Conductor).with([cluster("west", json!({}))]);
    hub.with(requests)
}

fn settle(hub: &mut TestServers) -> Run<Nothing> {
    let run = hub.settle(&Conductor, &mut NoMachine, RECORD);
    mirror(hub);
    hub.settle(&Conductor, &mut NoMachine, RECORD);
    run
}

fn mirror(hub: &mut TestServers) {
    for subject in hub.subjects(&Mirror) {
        hub.settle(&Mirror, &mut NoMachine, &subject);
    }
}

fn token(hub: &TestServers) -> i64 {
    record(hub).target.token
}

/// A request that is in flight.
fn started(requests: Vec<Value>) -> TestServers {
    let mut hub = hub(requests);
    settle(&mut hub);
    check(&mut hub, json!([]));
    settle(&mut hub);
    hub
}

fn apply(hub: &mut TestServers, verdict: &str) {
    answer(hub, json!({"verdict": verdict, "failed": [], "notReady": [], "drifted": []}));
    settle(hub);
}

/// Version 1 is the last good one.
fn good() -> TestServers {
    let mut hub = started(vec![update("v1", "1", json!({}))]);
    apply(&mut hub, "Soaked");
    assert_eq!(phase(&hub, "v1").0, Succeeded);
    hub
}

/// Version 2 is in flight after it.
fn second(patch: Value) -> TestServers {
    let mut hub = good().with([update("v2", "2", patch)]);
    settle(&mut hub);
    check(&mut hub, json!([]));
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2").0, Applying);
    hub
}

#[test]
fn a_request_is_held_numbered_checked_applied_verified_and_ends() {
    let mut hub = hub(vec![update("v1", "1", json!({}))]);
    let run = settle(&mut hub);
    let kinds: Vec<&str> = run.writes.iter().map(|write| &*write.address().kind.kind).collect();
    let first =
        ["ClusterRollout", "RolloutReport", "ClusterUpdate", "BundleRevision", "ClusterRollout"];
    assert_eq!(kinds[..5], first, "{run:#?}");
    assert_eq!(phase(&hub, "v1"), (Queued, "Valid".to_owned()));
    let named = record(&hub).preflight.expect("the agent is to check it");
    assert_eq!((named.uid.as_str(), named.digest), ("uid-v1", digest("1")));
    assert_eq!(token(&hub), 0, "nothing has started");
    check(&mut hub, json!([]));
    let run = settle(&mut hub);
    assert!(run.events.iter().any(|event| event.reason == "Applying"));
    let status = record(&hub);
    assert_eq!((status.target.token, status.target.digest.clone()), (1, Some(digest("1"))));
    assert_eq!(status.may_exist, [digest("1")]);
    assert_eq!(shown(&hub, "v1").phase, Applying);
    apply(&mut hub, "Applied");
    assert_eq!(phase(&hub, "v1").0, Verifying);
    assert_eq!(token(&hub), 1);
    apply(&mut hub, "Soaked");
    let status = record(&hub);
    assert_eq!((phase(&hub, "v1").0, status.active, token(&hub)), (Succeeded, None, 1));
    assert_eq!(status.last_good.map(|good| (good.version, good.digest)), Some((1, digest("1"))));
    let v1 = hub.json(Place::HUB, &CLUSTER_UPDATE, &request("v1"));
    assert_eq!(v1["metadata"]["finalizers"], json!([]), "it is let go");
    let record = hub.json(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide(RECORD));
    for (kind, status) in [
        ("Ready", "True"),
        ("Progressing", "False"),
        ("Degraded", "False"),
        ("Drifted", "False"),
        ("TargetReachable", "True"),
        ("FenceInForce", "True"),
    ] {
        assert_eq!(condition(&record, kind)["status"], status, "{kind}");
    }
}

#[test]
fn the_newest_valid_request_supersedes_the_one_that_waits_and_an_invalid_one_does_not() {
    let mut hub = hub(vec![update("v1", "1", json!({}))]);
    settle(&mut hub);
    let broken = json!({"spec": {"source": {"inline": [{"kind": "Pod"}]}}});
    let mut hub = hub.with([update("v2", "2", broken)]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v1").0, Queued);
    let (is, why) = phase(&hub, "v2");
    assert_eq!((is, why.as_str()), (Rejected, "InvalidBundle"));
    assert!(shown(&hub, "v2").message.contains("apiVersion is missing"));
    let mut hub = hub.with([update("v3", "3", json!({}))]);
    settle(&mut hub);
    assert_eq!((phase(&hub, "v1").0, phase(&hub, "v3").0), (Superseded, Queued));
    assert_eq!(record(&hub).preflight.map(|it| it.uid), Some("uid-v3".to_owned()));
    let names: Vec<(String, i64)> =
        record(&hub).requests.iter().map(|it| (it.name.clone(), it.version)).collect();
    assert_eq!(names, [("v1".to_owned(), 1), ("v2".to_owned(), 2), ("v3".to_owned(), 3)]);
}

#[test]
fn a_failed_request_is_rolled_back_under_a_new_token_and_its_bundle_is_remembered() {
    let mut hub = second(json!({}));
    let failed = json!([{"id": "/Pod/shop/web", "code": "Failed", "message": "exits"}]);
    answer(&mut hub, json!({"verdict": "Applying", "failed": failed}));
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2").0, RollingBack);
    let status = record(&hub);
    assert_eq!((status.target.token, status.target.digest), (3, Some(digest("1"))));
    assert_eq!(status.may_exist, [digest("1"), digest("2")]);
    assert_eq!(status.bad.len(), 1);
    apply(&mut hub, "Soaked");
    let (is, _) = phase(&hub, "v2");
    assert_eq!((is, record(&hub).may_exist, token(&hub)), (RolledBack, vec![digest("1")], 3));
    assert!(shown(&hub, "v2").message.contains("version 1: 1 objects failed"));
    let mut hub = hub.with([update("v3", "2", json!({}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v3"), (Rejected, "KnownBad".to_owned()));
    let mut hub = hub.with([update("v4", "2", json!({"spec": {"retryBad": true}}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v4").0, Queued);
}

#[test]
fn a_rollback_that_does_not_end_leaves_the_cluster_degraded_and_the_next_request_heals_it() {
    let mut hub = second(json!({}));
    hub.pass(600);
    answer(&mut hub, json!({"verdict": "Applying"}));
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2"), (RollingBack, "DeadlinePassed".to_owned()));
    for tries in 1..=3 {
        assert_eq!(record(&hub).active.map(|active| active.tries), Some(tries - 1));
        hub.pass(600);
        settle(&mut hub);
    }
    assert_eq!(phase(&hub, "v2"), (RollbackFailed, "RollbackDeadline".to_owned()));
    let status = record(&hub);
    assert!(status.is_degraded && status.active.is_none());
    assert_eq!((status.target.token, status.target.digest), (3, Some(digest("1"))), "it stays");
    let mut hub = hub.with([update("v3", "3", json!({}))]);
    settle(&mut hub);
    check(&mut hub, json!([]));
    settle(&mut hub);
    apply(&mut hub, "Soaked");
    assert_eq!((phase(&hub, "v3").0, record(&hub).is_degraded), (Succeeded, false));
}

#[test]
fn a_cluster_that_is_away_fails_a_request_and_not_its_bundle() {
    let mut hub = second(json!({}));
    let silent = json!({"status": {"conditions": [{"type": "Reachable", "status": "False", "reason": "Silent",
        "message": "", "lastTransitionTime": "1970-01-12T13:46:40Z"}]}});
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("west"), &silent);
    hub.pass(600);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2"), (RollingBack, "ClusterUnreachable".to_owned()));
    assert!(record(&hub).bad.is_empty());
}

#[test]
fn a_cancelled_or_deleted_request_is_rolled_back_and_goes() {
    let mut hub = second(json!({}));
    hub.delete(Place::HUB, &CLUSTER_UPDATE, &request("v2"));
    settle(&mut hub);
    assert_eq!((phase(&hub, "v2").0, record(&hub).bad.len()), (RollingBack, 0));
    apply(&mut hub, "Soaked");
    assert_eq!(phase(&hub, "v2").0, RolledBack);
    assert!(hub.get(Place::HUB, &CLUSTER_UPDATE, &request("v2")).is_none());
    let cancel = json!({"spec": {"cancel": true}});
    let mut hub = hub.with([update("v3", "3", json!({}))]);
    settle(&mut hub);
    hub.change(Place::HUB, &CLUSTER_UPDATE, &request("v3"), &cancel);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v3"), (Cancelled, "Cancelled".to_owned()));
    let mut hub = hub.with([update("v4", "4", cancel)]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v4"), (Rejected, "Cancelled".to_owned()), "it never waited");
}

#[test]
fn a_first_version_that_fails_is_removed() {
    let mut hub = started(vec![update("v1", "1", json!({}))]);
    answer(
        &mut hub,
        json!({"failed": [{"id": "/Pod/shop/web", "code": "Failed", "message": "exits"}]}),
    );
    settle(&mut hub);
    let status = record(&hub);
    assert_eq!((status.target.token, status.target.digest), (2, None));
    apply(&mut hub, "Soaked");
    let status = record(&hub);
    assert_eq!(
        (phase(&hub, "v1").0, status.may_exist.len(), status.is_degraded),
        (RolledBack, 0, false)
    );
}

#[test]
fn the_same_bundle_again_changes_nothing() {
    let mut hub = good().with([update("v2", "1", json!({}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2"), (Succeeded, "NothingToChange".to_owned()));
    let status = record(&hub);
    assert_eq!((status.target.token, status.last_good.map(|good| good.version)), (1, Some(2)));
}

#[test]
fn a_request_that_would_fail_changes_nothing() {
    let mut hub = hub(vec![update("v1", "1", json!({}))]);
    settle(&mut hub);
    check(&mut hub, json!([{"id": "a/B/c/d", "code": "NotServed", "message": "no such kind"}]));
    settle(&mut hub);
    assert_eq!((phase(&hub, "v1").0, token(&hub)), (Failed, 0));
    assert!(shown(&hub, "v1").message.contains("a/B/c/d: NotServed: no such kind"));
}

#[test]
fn a_drained_cluster_is_asked_for_awaited_and_let_go() {
    let west = Name::cluster_wide("west");
    let requesters = |hub: &TestServers| -> Vec<Value> {
        let spec = hub.json(Place::HUB, &WORKLOAD_CLUSTER, &west)["spec"].clone();
        let drains = spec["drains"].as_array().cloned().unwrap_or_default();
        drains.iter().map(|drain| drain["requester"].clone()).collect()
    };
    let first = json!({"spec": {"drains": [{"requester": "nodes/n/7", "reason": "a node"}]}});
    let mut hub = hub(vec![update("v1", "1", json!({"spec": {"drainFirst": true}}))]);
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &west, &first);
    settle(&mut hub);
    assert_eq!(requesters(&hub), ["nodes/n/7"], "the agent has not checked it");
    check(&mut hub, json!([]));
    let run = settle(&mut hub);
    assert!(run.events.iter().any(|event| event.reason == "Draining"));
    assert_eq!(requesters(&hub), ["nodes/n/7", "rollouts/uid-v1"]);
    assert_eq!(phase(&hub, "v1"), (Queued, "Draining".to_owned()));
    let done = json!({"status": {"drained": ["nodes/n/7", "rollouts/uid-v1"]}});
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &west, &done);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v1").0, Applying);
    apply(&mut hub, "Soaked");
    assert_eq!((phase(&hub, "v1").0, requesters(&hub)), (Succeeded, vec![json!("nodes/n/7")]));
}

#[test]
fn a_drain_is_stuck_only_once_the_start_deadline_is_over() {
    let mut hub = hub(vec![update("v1", "1", json!({"spec": {"drainFirst": true}}))]);
    settle(&mut hub);
    check(&mut hub, json!([]));
    settle(&mut hub);
    hub.pass(3_599);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v1"), (Queued, "Draining".to_owned()));
    hub.pass(1);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v1"), (Failed, "DrainStuck".to_owned()));
}

#[test]
fn a_namespace_that_may_not_ask_is_refused() {
    let mut hub = good();
    let selector = json!({"spec": {"allowedNamespaces": {"matchLabels": {"team": "shop"}}}});
    hub.change(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide(RECORD), &selector);
    let shop = Name::cluster_wide("shop");
    let namespace = json!({"metadata": {"name": "shop", "labels": {"team": "other"}}});
    hub.change(Place::HUB, &NAMESPACE, &shop, &namespace);
    let mut hub = hub.with([update("v2", "2", json!({}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2"), (Rejected, "NamespaceNotAllowed".to_owned()));
    hub.change(Place::HUB, &NAMESPACE, &shop, &json!({"metadata": {"labels": {"team": "shop"}}}));
    let mut hub = hub.with([update("v3", "3", json!({}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v3").0, Queued);
}

fn from(source: Value) -> Value {
    let mut spec = json!({"spec": {"source": source}});
    spec["spec"]["source"]["inline"] = Value::Null;
    spec
}

#[test]
fn a_bundle_comes_from_a_config_map_from_secrets_or_from_the_history() {
    let mut hub = hub(vec![]);
    let text = config("1").to_string();
    let files =
        json!({"metadata": {"name": "files", "namespace": "shop"}, "data": {"web.yaml": text}});
    hub.change(Place::HUB, &CONFIG_MAP, &Name::within("shop", "files"), &files);
    let two = Bundle::from_objects([config("2")]).expect("a bundle");
    let part = STANDARD.encode(&compressed(&two)[0]);
    let secret =
        json!({"metadata": {"name": "packed", "namespace": "shop"}, "data": {PART_KEY: part}});
    hub.change(Place::HUB, &SECRET, &Name::within("shop", "packed"), &secret);
    let packed = |digest: &str| from(json!({"packed": {"digest": digest, "secrets": ["packed"]}}));
    for (name, patch, outcome) in [
        ("v1", from(json!({"configMap": {"name": "files"}})), Queued),
        ("v2", packed(two.digest()), Queued),
        ("v3", from(json!({"revision": digest("1")})), Queued),
        ("v4", from(json!({"configMap": {"name": "none"}})), Rejected),
        ("v5", packed(&digest("1")), Rejected),
        ("v6", from(json!({"revision": digest("9")})), Rejected),
    ] {
        hub = hub.with([update(name, "", patch)]);
        settle(&mut hub);
        assert_eq!(phase(&hub, name).0, outcome, "{name}: {:?}", record(&hub));
    }
    assert_eq!(phase(&hub, "v4").1, "SourceMissing");
    assert_eq!(phase(&hub, "v5").1, "InvalidBundle");
    assert_eq!(phase(&hub, "v6").1, "SourceMissing");
    let status = record(&hub);
    assert_eq!(status.request("uid-v3").and_then(|it| it.digest.clone()), Some(digest("1")));
}

#[test]
fn what_changes_in_a_source_after_the_number_is_not_applied() {
    let mut hub = hub(vec![update("v1", "1", json!({}))]);
    settle(&mut hub);
    let edited = json!({"spec": {"source": {"inline": [config("9")]}}});
    hub.change(Place::HUB, &CLUSTER_UPDATE, &request("v1"), &edited);
    check(&mut hub, json!([]));
    settle(&mut hub);
    assert_eq!(record(&hub).target.digest, Some(digest("1")));
    let revision = Name::cluster_wide(&part_name(&digest("1"), 0));
    let there = hub.json(Place::HUB, &BUNDLE_REVISION, &revision);
    let made = revisions(&Bundle::from_objects([config("1")]).expect("a bundle"));
    assert_eq!(there["spec"], json!(made[0]));
}

#[test]
fn a_revision_with_another_content_is_not_believed() {
    let mut hub = hub(vec![update("v1", "1", json!({}))]);
    let mut forged = revisions(&Bundle::from_objects([config("2")]).expect("a bundle")).remove(0);
    forged.digest = digest("1");
    let name = Name::cluster_wide(&forged.object_name());
    let object = json!({"metadata": {"name": forged.object_name()}, "spec": forged});
    hub.change(Place::HUB, &BUNDLE_REVISION, &name, &object);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v1"), (Rejected, "RevisionMissing".to_owned()));
}

#[test]
fn a_bundle_that_is_too_large_is_refused() {
    let mut large = config("1");
    large["data"]["text"] = json!("x".repeat(MOST_BUNDLE_BYTES / 8));
    let mut hub = hub(vec![update("v1", "1", json!({"spec": {"source": {"inline": [large]}}}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v1"), (Rejected, "InvalidBundle".to_owned()));
}

#[test]
fn the_history_is_bounded_and_its_bundles_are_deleted_an_hour_later() {
    let mut hub = good();
    let keep = json!({"spec": {"keepHistory": 1}});
    hub.change(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide(RECORD), &keep);
    for (name, data) in [("v2", "2"), ("v3", "3"), ("v4", "4")] {
        hub = hub.with([update(name, data, json!({"spec": {"cancel": false}}))]);
        settle(&mut hub);
        hub.change(Place::HUB, &CLUSTER_UPDATE, &request(name), &json!({"spec": {"cancel": true}}));
        settle(&mut hub);
    }
    let names = |hub: &TestServers| -> Vec<String> {
        record(hub).requests.iter().map(|entry| entry.name.clone()).collect()
    };
    assert_eq!(names(&hub), ["v1", "v4"], "the last good one stays");
    let parts = |hub: &TestServers| hub.list(Place::HUB, &BUNDLE_REVISION, None).len();
    assert_eq!((parts(&hub), record(&hub).unnamed.len()), (4, 2));
    // A request that ended, and was dropped, never comes back.
    settle(&mut hub);
    assert_eq!(names(&hub), ["v1", "v4"]);
    hub.pass(3600);
    settle(&mut hub);
    assert_eq!((parts(&hub), record(&hub).unnamed.len()), (2, 0));
}

#[test]
fn a_record_or_a_hub_that_was_restored_gets_a_newer_token_than_the_cluster_has() {
    let mut hub = good();
    answer(&mut hub, json!({"token": 9, "fence": {"token": 9, "mode": "Exact"}}));
    settle(&mut hub);
    assert_eq!(token(&hub), 10);
}

#[test]
fn a_cluster_made_again_under_its_name_has_another_record() {
    let mut hub = second(json!({}));
    let west = Name::cluster_wide("west");
    hub.delete(Place::HUB, &WORKLOAD_CLUSTER, &west);
    let mut hub = hub.with([cluster("west", json!({"metadata": {"uid": "another"}}))]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2"), (RollbackFailed, "ClusterReplaced".to_owned()));
    let mut hub = hub.with([update("v3", "3", json!({}))]);
    for subject in hub.subjects(&Conductor) {
        hub.settle(&Conductor, &mut NoMachine, &subject);
    }
    assert_eq!(phase(&hub, "v3").0, UpdatePhase::Pending, "the old record does not take it");
    let other = hub.json(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide("west-another"));
    assert_eq!(other["status"]["requests"][0]["name"], "v3");
    assert_eq!(other["status"]["requests"][0]["version"], 1);
}

#[test]
fn a_request_for_a_cluster_that_was_deleted_is_refused() {
    let mut hub = good();
    hub.delete(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("west"));
    let held = json!({"metadata": {"finalizers": ["interlock.dev/rollout"]}});
    let mut hub = hub.with([update("v2", "2", held)]);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2"), (Rejected, "UnknownCluster".to_owned()));
    let report = hub.json(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide(RECORD));
    assert_eq!(condition(&report, "TargetReachable")["reason"], "ClusterGone");
}

#[test]
fn a_record_that_is_deleted_goes_once_nothing_is_in_it() {
    let mut hub = second(json!({}));
    let name = Name::cluster_wide(RECORD);
    hub.delete(Place::HUB, &CLUSTER_ROLLOUT, &name);
    settle(&mut hub);
    assert_eq!(phase(&hub, "v2").0, Applying, "it is in flight");
    apply(&mut hub, "Soaked");
    assert!(hub.get(Place::HUB, &CLUSTER_ROLLOUT, &name).is_none());
}

#[test]
fn requests_of_one_second_are_numbered_by_name() {
    let mut hub = hub(vec![update("b", "2", json!({})), update("a", "1", json!({}))]);
    settle(&mut hub);
    let versions: Vec<(String, i64)> =
        record(&hub).requests.iter().map(|it| (it.name.clone(), it.version)).collect();
    assert_eq!(versions, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
}

#[test]
fn objects_that_cannot_be_read_do_no_harm() {
    let hub = second(json!({}));
    let objects: Vec<Value> = [
        hub.json(Place::HUB, &CLUSTER_ROLLOUT, &Name::cluster_wide(RECORD)),
        hub.json(Place::HUB, &ROLLOUT_REPORT, &Name::cluster_wide(RECORD)),
        hub.json(Place::HUB, &CLUSTER_UPDATE, &request("v2")),
        hub.json(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("west")),
        patched(
            update("v3", "3", json!({})),
            &json!({"metadata": {"finalizers": ["interlock.dev/rollout"]}}),
        ),
    ]
    .into();
    survives(&Conductor, &NoMachine, &objects);
    survives(&Mirror, &NoMachine, &objects);
}

#[test]
fn a_record_that_is_older_than_its_report_gets_a_newer_token_and_an_event_says_so() {
    let mut hub = good();
    assert_eq!(token(&hub), 1);
    answer(&mut hub, json!({"fence": {"token": 9}}));
    let run = settle(&mut hub);
    assert_eq!(token(&hub), 10);
    let raised: Vec<_> = run.events.iter().filter(|it| it.reason == "TokenRaised").collect();
    let [said] = raised.as_slice() else { panic!("{:?}", run.events) };
    assert!(said.note.contains("was 1 and is 10"), "{}", said.note);
    assert_eq!((&*said.about.kind.kind, &*said.about.name.name), ("ClusterRollout", RECORD));
}
