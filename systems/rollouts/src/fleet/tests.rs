//! Each row of which cluster is next.

use super::decide::{Child, Cluster, LAST_PARTITION, decide};
use super::*;
use crate::kinds::CLUSTER_ROLLOUT;
use crate::testing::{NOW, cluster};
use interlock_api::rollouts::{
    FleetChild, FleetPhase, FleetUpdateStatus, OnClusterUnreachable, OnFailure, UpdatePhase,
};
use interlock_kernel::testing::{NoMachine, TestServers, condition, patched, survives};
use interlock_kernel::{Name, read_part};
use serde_json::{Value, json};

fn fleet(patch: Value) -> Value {
    let spec = json!({"source": {"configMap": {"name": "shop"}}, "maxUnavailable": 1});
    let object = json!({"kind": "FleetUpdate", "spec": spec,
        "metadata": {"name": "f", "namespace": "shop", "uid": "uid-f", "generation": 1}});
    patched(object, &patch)
}

fn labelled(name: &str, labels: Value) -> Value {
    cluster(name, json!({"metadata": {"labels": labels}}))
}

fn hub(objects: Vec<Value>) -> TestServers {
    TestServers::of(&Fleet).with(objects)
}

fn three(spec: Value) -> TestServers {
    hub(vec![
        fleet(json!({"spec": spec})),
        labelled("a", json!({"size": "s"})),
        labelled("b", json!({"size": "l"})),
        labelled("c", json!({"size": "s", "canary": "true"})),
    ])
}

fn settle(hub: &mut TestServers) {
    hub.settle(&Fleet, &mut NoMachine, "shop/f");
}

fn status(hub: &TestServers) -> FleetUpdateStatus {
    let found = hub.get(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f"));
    let status = found.and_then(|it| read_part(&it, "status").expect("it can be read"));
    status.unwrap_or_default()
}

fn child(name: &str) -> Name {
    Name::within("shop", &format!("f-{name}-uidf"))
}

/// The clusters that have a ClusterUpdate that has not ended.
fn in_flight(hub: &TestServers) -> Vec<String> {
    let mut all = hub.list(Place::HUB, &CLUSTER_UPDATE, None);
    all.retain(|it| !crate::conductor::is_over(it));
    let cluster = |it: &Object| it.data["spec"]["cluster"].as_str().unwrap_or_default().to_owned();
    all.iter().map(cluster).collect()
}

fn end(hub: &mut TestServers, name: &str, phase: &str) {
    let said = json!({"status": {"phase": phase, "reason": phase}});
    hub.change(Place::HUB, &CLUSTER_UPDATE, &child(name), &said);
    settle(hub);
}

#[test]
fn the_canary_is_first_then_each_partition_and_then_the_rest() {
    let mut hub = three(json!({"canary": {"matchLabels": {"canary": "true"}},
        "partitions": [{"name": "small", "selector": {"matchLabels": {"size": "s"}}}]}));
    for (name, partition) in [("c", "canary"), ("a", "small"), ("b", "rest")] {
        settle(&mut hub);
        assert_eq!(in_flight(&hub), [name]);
        assert_eq!(status(&hub).partition.as_deref(), Some(partition));
        end(&mut hub, name, "Succeeded");
    }
    let said = status(&hub);
    assert_eq!((said.phase, said.succeeded, said.clusters), (FleetPhase::Succeeded, 3, 3));
    assert!(said.children.is_empty());
    let object = hub.json(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f"));
    assert_eq!(condition(&object, "Ready")["status"], "True");
    let made = hub.json(Place::HUB, &CLUSTER_UPDATE, &child("a"));
    assert_eq!(made["metadata"]["labels"]["interlock.dev/fleet-update"], "uid-f");
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "uid-f");
    assert_eq!(made["spec"]["source"], json!({"configMap": {"name": "shop"}}));
}

#[test]
fn no_more_clusters_are_unavailable_at_once_than_may_be() {
    let mut hub = three(json!({"maxUnavailable": 2}));
    settle(&mut hub);
    assert_eq!(in_flight(&hub), ["a", "b"]);
    // A cluster that has ended is still drained for it: nothing has returned to it yet.
    let uid = hub.json(Place::HUB, &CLUSTER_UPDATE, &child("a"))["metadata"]["uid"].clone();
    let requester = format!("rollouts/{}", uid.as_str().unwrap_or_default());
    let drained = json!({"spec": {"drains": [{"requester": requester, "reason": "r"}]}});
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &drained);
    end(&mut hub, "a", "Succeeded");
    assert_eq!(in_flight(&hub), ["b"], "a is still drained");
    let freed = json!({"spec": {"drains": []}});
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &freed);
    settle(&mut hub);
    assert_eq!(in_flight(&hub), ["b", "c"]);
}

fn not(kind: &str) -> Value {
    let said = |of: &str| {
        json!({"type": of, "status": if of == kind { "False" } else { "True" },
        "reason": "Heard", "message": "", "lastTransitionTime": NOW})
    };
    json!({"status": {"conditions": [said("Ready"), said("Reachable")]}})
}

#[test]
fn a_cluster_that_is_not_ready_counts_and_is_updated_all_the_same() {
    let mut hub = three(json!({}));
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("b"), &not("Ready"));
    settle(&mut hub);
    assert_eq!(in_flight(&hub), Vec::<String>::new(), "b is out already");
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("b"), &not("none"));
    hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &not("Ready"));
    settle(&mut hub);
    assert_eq!(in_flight(&hub), ["a"], "the update may be what it needs");
}

#[test]
fn a_failure_pauses_the_request_or_does_not() {
    let mut hub = three(json!({}));
    settle(&mut hub);
    end(&mut hub, "a", "RolledBack");
    let said = status(&hub);
    assert_eq!((said.phase, said.failed), (FleetPhase::Paused, 1));
    assert_eq!(
        (said.children[0].cluster.as_str(), said.children[0].reason.as_str()),
        ("a", "RolledBack")
    );
    assert!(in_flight(&hub).is_empty());
    let go_on = json!({"spec": {"onFailure": "Continue"}});
    hub.change(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f"), &go_on);
    for name in ["b", "c"] {
        settle(&mut hub);
        assert_eq!(in_flight(&hub), [name]);
        end(&mut hub, name, "Succeeded");
    }
    assert_eq!((status(&hub).phase, status(&hub).succeeded), (FleetPhase::Failed, 2));
}

#[test]
fn a_cluster_without_heartbeats_is_awaited_left_out_or_counts_as_failed() {
    for (policy, first, phase, skipped, failed) in [
        ("Wait", vec![], FleetPhase::Progressing, 0, 0),
        ("Skip", vec!["b"], FleetPhase::Progressing, 1, 0),
        ("Fail", vec![], FleetPhase::Paused, 0, 1),
    ] {
        let mut hub = three(json!({"onUnreachable": policy}));
        let mut away = not("Reachable");
        away["status"]["conditions"][0]["status"] = json!("False");
        hub.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &away);
        settle(&mut hub);
        assert_eq!(in_flight(&hub), first, "{policy}");
        let said = status(&hub);
        assert_eq!((said.phase, said.skipped, said.failed), (phase, skipped, failed), "{policy}");
    }
}

#[test]
fn a_request_that_is_cancelled_ends_what_is_in_flight_and_then_ends() {
    let mut hub = three(json!({"maxUnavailable": 2}));
    settle(&mut hub);
    let cancel = json!({"spec": {"cancel": true}});
    hub.change(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f"), &cancel);
    settle(&mut hub);
    for name in ["a", "b"] {
        assert_eq!(hub.json(Place::HUB, &CLUSTER_UPDATE, &child(name))["spec"]["cancel"], true);
    }
    assert_eq!(status(&hub).phase, FleetPhase::Progressing);
    end(&mut hub, "a", "Cancelled");
    end(&mut hub, "b", "RolledBack");
    assert_eq!(status(&hub).phase, FleetPhase::Cancelled);
    assert_eq!(hub.list(Place::HUB, &CLUSTER_UPDATE, None).len(), 2, "c was never asked");
}

#[test]
fn what_the_cache_shows_only_after_the_end_is_cancelled_too() {
    let mut hub = three(json!({}));
    settle(&mut hub);
    let made = hub.json(Place::HUB, &CLUSTER_UPDATE, &child("a"));
    // The cache does not show it yet.
    hub.delete(Place::HUB, &CLUSTER_UPDATE, &child("a"));
    let cancel = json!({"spec": {"cancel": true}});
    hub.change(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f"), &cancel);
    settle(&mut hub);
    assert_eq!(status(&hub).phase, FleetPhase::Cancelled);
    hub.put(Place::HUB, made);
    settle(&mut hub);
    assert_eq!(hub.json(Place::HUB, &CLUSTER_UPDATE, &child("a"))["spec"]["cancel"], true);
}

#[test]
fn a_failure_that_the_request_names_holds_whatever_the_cache_shows() {
    let mut hub = three(json!({}));
    settle(&mut hub);
    end(&mut hub, "a", "RolledBack");
    assert_eq!(status(&hub).phase, FleetPhase::Paused);
    let old = json!({"status": {"phase": "Applying", "reason": "Started"}});
    hub.change(Place::HUB, &CLUSTER_UPDATE, &child("a"), &old);
    let more = json!({"spec": {"maxUnavailable": 2}});
    hub.change(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f"), &more);
    settle(&mut hub);
    assert_eq!(in_flight(&hub), ["a"], "no other one starts");
    assert_eq!(status(&hub).phase, FleetPhase::Paused);
}

/// Two clusters, of which the first has ended.
fn ended_and_next() -> Facts {
    let ended = Cluster {
        name: "a".to_owned(),
        partition: LAST_PARTITION,
        is_ready: true,
        is_reachable: true,
        has_drain: false,
        child: Child::Ended { phase: UpdatePhase::Succeeded, reason: "Healthy".to_owned() },
    };
    let next = Cluster { name: "b".to_owned(), child: Child::None, ..ended.clone() };
    Facts {
        phase: FleetPhase::Progressing,
        is_live: Some(true),
        is_cancelled: false,
        max_unavailable: 1,
        on_failure: OnFailure::Pause,
        on_unreachable: OnClusterUnreachable::Wait,
        partitions: vec!["canary".to_owned()],
        clusters: vec![ended, next],
        said: FleetUpdateStatus::default(),
    }
}

fn written(facts: &Facts) -> FleetUpdateStatus {
    match decide(facts) {
        Decision::Write(said) => *said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_only_the_live_read_shows_is_read_again_without_an_event() {
    let mut facts = ended_and_next();
    facts.clusters[0].has_drain = true;
    facts.said = written(&facts);
    assert!(facts.said.children.is_empty(), "the first cluster is drained still");
    assert!(matches!(decide(&facts), Decision::Wait(_)));
    assert!(matches!(decide(&Facts { is_live: None, ..facts }), Decision::Rest(_)));
}

#[test]
fn a_cluster_keeps_its_place_until_the_request_says_that_it_has_ended() {
    let chosen = |name: &str| FleetChild { cluster: name.to_owned(), ..FleetChild::default() };
    let mut facts = ended_and_next();
    facts.said.children = vec![chosen("a")];
    facts.said = written(&facts);
    assert!(facts.said.children.is_empty());
    assert_eq!(written(&facts).children, [chosen("b")]);
}

#[test]
fn a_request_for_no_cluster_fails() {
    let mut hub = three(json!({"selector": {"matchLabels": {"size": "xxl"}}}));
    settle(&mut hub);
    assert_eq!(
        (status(&hub).phase, status(&hub).reason.as_str()),
        (FleetPhase::Failed, "NoClusters")
    );
}

#[test]
fn a_cluster_is_chosen_before_it_is_asked() {
    let hub = three(json!({}));
    let run = { three(json!({})) }.settle(&Fleet, &mut NoMachine, "shop/f");
    let kinds: Vec<&str> = run.writes.iter().map(|write| &*write.address().kind.kind).collect();
    assert_eq!(kinds, ["FleetUpdate", "ClusterUpdate"]);
    assert!(hub.list(Place::HUB, &CLUSTER_ROLLOUT, None).is_empty());
}

#[test]
fn objects_that_cannot_be_read_do_no_harm() {
    let mut hub = three(json!({"maxUnavailable": 2}));
    settle(&mut hub);
    let objects = [
        hub.json(Place::HUB, &FLEET_UPDATE, &Name::within("shop", "f")),
        hub.json(Place::HUB, &CLUSTER_UPDATE, &child("a")),
        labelled("a", json!({"size": "s"})),
    ];
    survives(&Fleet, &NoMachine, &objects);
}
