//! The rules about a ReplicaSet, one by one.

use super::decide::{Decision, Facts, Leaving, Member, Spec, Status, Why, decide};
use super::*;
use crate::owned::Claim;
use crate::pod::{Pod, Readiness, State};
use crate::template::{FINALIZER_PROCESS, Home, LABEL_GRANT};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Name, Write};
use serde_json::{Value, json};
use std::time::Duration;

fn room() -> ReplicaSets {
    ReplicaSets { node: Arc::from("n") }
}

fn home() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "eu", "uid": "uid-eu"}})
}

fn set(patch: Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": "shop"}},
        "spec": {"runtimeClassName": "interlock-process", "containers": [{"name": "c"}]}});
    let object = json!({
        "kind": "ReplicaSet",
        "metadata": {"name": "shop", "namespace": "eu", "uid": "uid-shop", "generation": 3},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "shop"}}, "template": template},
    });
    patched(object, &patch)
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{name}"),
        "controller": true}])
}

fn pod(name: &str, patch: Value) -> Value {
    let object = json!({
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "eu", "uid": format!("uid-{name}"),
            "labels": {"app": "shop"}, "ownerReferences": owner("ReplicaSet", "shop"),
            "finalizers": [FINALIZER_PROCESS]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    patched(object, &patch)
}

fn unready() -> Value {
    json!({"status": {"conditions": null}})
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut servers = TestServers::of(&room()).with(objects);
    let run = servers.settle(&room(), &mut NoMachine, "eu/shop");
    (servers, run)
}

fn pod_in(servers: &TestServers, name: &str) -> Value {
    servers.json(Place::CLUSTER, &POD, &Name::within("eu", name))
}

fn set_in(servers: &TestServers) -> Value {
    servers.json(Place::CLUSTER, &REPLICA_SET, &Name::within("eu", "shop"))
}

fn names(servers: &TestServers) -> Vec<String> {
    let pods = servers.list(Place::CLUSTER, &POD, Some("eu"));
    pods.iter().map(|pod| name_of(pod).to_owned()).collect()
}

/// What was written, in order: the verb and the name.
fn written(run: &Run<Nothing>) -> Vec<String> {
    let word = |write: &Write| {
        let verb = match write {
            Write::Create { .. } => "create",
            Write::Patch { change, .. } if change["status"].is_object() => "report",
            Write::Patch { .. } => "patch",
            Write::Apply { .. } => "apply",
            Write::Delete { .. } => "delete",
        };
        format!("{verb} {}", write.address().name.name)
    };
    run.writes.iter().map(word).collect()
}

#[test]
fn a_replica_set_makes_its_pods_in_the_lowest_slots_and_reports_them() {
    let (servers, run) = settled(vec![home(), set(json!({}))]);
    assert_eq!(written(&run), ["create shop-r0", "create shop-r1", "report shop"]);
    let made = pod_in(&servers, "shop-r0");
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "uid-shop");
    assert_eq!(made["metadata"]["finalizers"], json!([FINALIZER_PROCESS]));
    assert_eq!(made["spec"]["nodeName"], "n");
    let status = &set_in(&servers)["status"];
    assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(2), &json!(0)));
    assert_eq!((&status["observedGeneration"], &status["conditions"]), (&json!(3), &json!([])));
    assert_eq!(run.events.len(), 2, "people see what was made");
}

#[test]
fn a_pod_of_a_placed_namespace_carries_its_grant_and_epoch() {
    let placed = json!({"metadata": {"labels": {LABEL_GRANT: "eu"},
        "annotations": {LABEL_GRANT: "uid", "interlock.dev/epoch": "4"}}});
    let (servers, _) = settled(vec![patched(home(), &placed), set(json!({}))]);
    let made = pod_in(&servers, "shop-r0");
    assert_eq!(made["metadata"]["labels"], json!({"app": "shop", LABEL_GRANT: "eu"}));
    assert_eq!(made["metadata"]["annotations"]["interlock.dev/epoch"], "4");
}

#[test]
fn nothing_is_made_in_a_namespace_that_is_unknown_or_going() {
    let (servers, run) = settled(vec![set(json!({}))]);
    assert_eq!((names(&servers).len(), &*run.rests), (0, "the cache does not show the namespace"));
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let (servers, run) = settled(vec![patched(home(), &going), set(json!({}))]);
    assert_eq!((names(&servers).len(), &*run.rests), (0, "the namespace is being deleted"));
}

#[test]
fn the_pods_of_a_deployment_share_their_names() {
    let of_deployment = json!({"metadata": {"ownerReferences": owner("Deployment", "d"),
        "annotations": {ANNOTATION_MAX_REPLICAS: "3"}}});
    let other = pod("d-d0", json!({"metadata": {"ownerReferences": owner("ReplicaSet", "old")}}));
    let (servers, run) = settled(vec![home(), set(of_deployment.clone()), other.clone()]);
    assert_eq!(names(&servers), ["d-d0", "d-d1", "d-d2"]);
    assert_eq!(written(&run), ["create d-d1", "create d-d2", "report shop"]);
    let few = patched(
        of_deployment,
        &json!({"metadata": {"annotations":
        {ANNOTATION_MAX_REPLICAS: "2"}}}),
    );
    let (servers, run) = settled(vec![home(), set(few), other]);
    assert_eq!(names(&servers), ["d-d0", "d-d1"], "it waits for a name");
    assert_eq!(run.rests, "all names are taken until a pod is gone");
    assert_eq!(condition(&set_in(&servers), "ReplicaFailure"), &Value::Null, "that is no failure");
}

#[test]
fn without_a_word_of_its_deployment_a_replica_set_makes_no_pod() {
    let of_deployment = json!({"metadata": {"ownerReferences": owner("Deployment", "d")}});
    let (servers, run) = settled(vec![home(), set(of_deployment)]);
    assert_eq!(names(&servers).len(), 0);
    assert_eq!(run.rests, "the Deployment has not said how many pods there may be");
}

#[test]
fn names_that_strangers_have_are_reported_and_waited_for() {
    let strange = |name| pod(name, json!({"metadata": {"ownerReferences": null, "labels": null}}));
    let objects = vec![home(), set(json!({})), strange("shop-r0"), strange("shop-r1")];
    let (mut servers, _) = settled(objects);
    let set = set_in(&servers);
    let failure = condition(&set, "ReplicaFailure");
    assert_eq!((&failure["status"], &failure["reason"]), (&json!("True"), &json!("NamesTaken")));
    let stranger = servers.get(Place::CLUSTER, &POD, &Name::within("eu", "shop-r1")).unwrap();
    let watch = Watch::all(Place::CLUSTER, &POD);
    let woken = room().subjects(&watch, &stranger, &servers.view());
    assert_eq!(woken, [Subject::from("eu/shop")], "its end wakes who waits for its name");
    for name in ["shop-r0", "shop-r1"] {
        let patch = json!({"metadata": {"finalizers": null}});
        servers.change(Place::CLUSTER, &POD, &Name::within("eu", name), &patch);
        servers.delete(Place::CLUSTER, &POD, &Name::within("eu", name));
    }
    servers.settle(&room(), &mut NoMachine, "eu/shop");
    assert_eq!(names(&servers), ["shop-r0", "shop-r1"]);
    assert_eq!(condition(&set_in(&servers), "ReplicaFailure"), &Value::Null);
}

#[test]
fn of_too_many_pods_one_is_named_then_deleted_and_then_forgotten() {
    let pods = [pod("shop-r0", unready()), pod("shop-r1", json!({})), pod("shop-r2", json!({}))];
    let mut objects = vec![home(), set(json!({"spec": {"replicas": 1}}))];
    objects.extend(pods);
    let (servers, run) = settled(objects);
    assert_eq!(
        written(&run),
        [
            "patch shop",
            "delete shop-r0",
            "patch shop",
            "patch shop",
            "delete shop-r2",
            "patch shop",
            "report shop"
        ],
        "the one that is not ready first, then the one of the highest slot"
    );
    assert!(pod_in(&servers, "shop-r1")["metadata"]["deletionTimestamp"].is_null());
    assert!(set_in(&servers)["metadata"]["annotations"][ANNOTATION_LEAVING].is_null());
    assert_eq!(set_in(&servers)["status"]["replicas"], 1);
}

#[test]
fn what_it_costs_to_delete_a_pod_counts() {
    let cost = |cost: &str| json!({"metadata": {"annotations": {ANNOTATION_DELETION_COST: cost}}});
    let objects = vec![
        home(),
        set(json!({"spec": {"replicas": 1}})),
        pod("shop-r0", cost("-5")),
        pod("shop-r1", cost("nonsense")),
    ];
    let (servers, _) = settled(objects);
    assert!(pod_in(&servers, "shop-r0")["metadata"]["deletionTimestamp"].is_string());
    assert!(pod_in(&servers, "shop-r1")["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn a_pod_that_ended_is_replaced() {
    for phase in ["Failed", "Succeeded"] {
        let ended = pod("shop-r0", json!({"status": {"phase": phase}}));
        let (mut servers, run) = settled(vec![home(), set(json!({})), ended]);
        assert_eq!(written(&run)[..2], ["delete shop-r0", "create shop-r1"], "{phase}");
        let name = Name::within("eu", "shop-r0");
        let gone = json!({"metadata": {"finalizers": null}});
        servers.change(Place::CLUSTER, &POD, &name, &gone);
        servers.delete(Place::CLUSTER, &POD, &name);
        let run = servers.settle(&room(), &mut NoMachine, "eu/shop");
        assert_eq!(written(&run)[0], "create shop-r0", "{phase}");
    }
}

#[test]
fn a_pod_that_nobody_has_is_adopted_and_one_that_strays_is_released() {
    let lost = pod("lost", json!({"metadata": {"ownerReferences": null}}));
    let strayed = pod("shop-r0", json!({"metadata": {"labels": {"app": "cart"}}}));
    let (servers, run) = settled(vec![home(), set(json!({})), lost, strayed]);
    assert_eq!(
        written(&run),
        ["patch shop-r0", "patch lost", "create shop-r1", "report shop"],
        "the name of the one that was released is not free"
    );
    let owners = |name: &str| pod_in(&servers, name)["metadata"]["ownerReferences"].clone();
    assert_eq!(owners("shop-r0"), json!([]));
    assert_eq!(owners("lost")[0]["uid"], "uid-shop");
}

#[test]
fn a_replica_set_that_is_being_deleted_is_left_to_the_collector() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["orphan"]}});
    let lost = pod("lost", json!({"metadata": {"ownerReferences": null}}));
    let (_, run) = settled(vec![home(), set(going), lost]);
    assert_eq!((run.writes.len(), &*run.rests), (0, "the ReplicaSet is being deleted"));
}

#[test]
fn what_cannot_be_read_is_reported_and_nothing_is_done() {
    for (patch, word) in [
        (json!({"spec": {"selector": {"matchLabels": {"app": "cart"}}}}), "does not select"),
        (json!({"spec": {"selector": {"matchLabels": null}}}), "every pod of the namespace"),
        (json!({"spec": {"replicas": -1}}), "-1 is no number of pods"),
        (json!({"spec": {"template": {"spec": null}}}), "spec.template.spec is missing"),
    ] {
        let (servers, run) = settled(vec![home(), set(patch)]);
        assert_eq!(written(&run), ["report shop"], "{word}");
        let set = set_in(&servers);
        let failure = condition(&set, "ReplicaFailure");
        assert_eq!(failure["reason"], "InvalidSpec");
        assert!(failure["message"].as_str().unwrap().contains(word), "{failure}");
        assert_eq!(run.rests, "what the ReplicaSet asks for cannot be read");
    }
}

#[test]
fn a_pod_that_is_ready_is_waited_for_until_it_is_available() {
    let ready = json!({"type": "Ready", "status": "True",
        "lastTransitionTime": "1970-01-12T13:46:35Z"});
    let fresh = pod("shop-r0", json!({"status": {"conditions": [ready]}}));
    let slow = json!({"spec": {"replicas": 1, "minReadySeconds": 9}});
    let (mut servers, run) = settled(vec![home(), set(slow), fresh]);
    assert_eq!(run.waits_seconds, Some(4));
    let status = |servers: &TestServers| {
        let status = &set_in(servers)["status"];
        (status["readyReplicas"].clone(), status["availableReplicas"].clone())
    };
    assert_eq!(status(&servers), (json!(1), json!(0)));
    servers.pass(4);
    servers.settle(&room(), &mut NoMachine, "eu/shop");
    assert_eq!(status(&servers), (json!(1), json!(1)));
}

// Rules that depend on what a live read finds and the cache does not show.

fn member(name: &str, slot: u32) -> Member {
    let pod = Pod {
        uid: format!("uid-{name}"),
        name: name.to_owned(),
        state: State::Active,
        readiness: Readiness::Available,
    };
    Member { pod, claim: Claim::Own, slot: Some(slot), cost: 0, is_labelled: true }
}

fn facts(replicas: u32, pods: Vec<Member>) -> Facts {
    let reported = Status::default();
    Facts {
        is_terminating: false,
        spec: Ok(Spec { replicas, slots: Some(replicas) }),
        generation: 0,
        home: Home::Plain,
        pods,
        taken: Vec::new(),
        leaving: Leaving::Nobody,
        is_named_there: None,
        is_current: None,
        live: None,
        reported,
    }
}

#[test]
fn absence_of_the_named_pod_from_a_cache_is_not_its_end() {
    let named = Facts { leaving: Leaving::Named("uid-b".to_owned()), ..facts(1, Vec::new()) };
    assert_eq!(decide(&named), Decision::ReadNamed);
    let there = Facts { is_named_there: Some(true), ..named.clone() };
    assert!(matches!(decide(&there), Decision::WaitForCache(_)));
    let gone = Facts { is_named_there: Some(false), ..named };
    assert_eq!(decide(&gone), Decision::ClearName);
    let junk = Facts { leaving: Leaving::Unreadable, ..facts(1, Vec::new()) };
    assert_eq!(decide(&junk), Decision::ClearName);
}

#[test]
fn only_a_live_list_says_which_pod_is_deleted() {
    let cached = facts(1, vec![member("a", 0), member("b", 1)]);
    assert_eq!(decide(&cached), Decision::ReadPods);
    let live = Facts { live: Some(vec![member("a", 0)]), ..cached.clone() };
    assert!(matches!(decide(&live), Decision::WaitForCache(_)), "the cache is behind");
    let mut waits = member("c", 0);
    waits.pod.readiness = Readiness::Ready(Duration::from_secs(1));
    let live = Facts { live: Some(vec![member("b", 1), waits]), ..cached };
    assert!(matches!(decide(&live), Decision::Name { name, .. } if name == "c"));
}

#[test]
fn a_pod_is_not_adopted_for_a_namesake() {
    let mut lost = member("lost", 0);
    lost.claim = Claim::Adoptable;
    let unasked = facts(1, vec![lost]);
    assert_eq!(decide(&unasked), Decision::ReadOwner);
    let there = Facts { is_current: Some(true), ..unasked.clone() };
    assert_eq!(decide(&there), Decision::Adopt(0));
    let other = Facts { is_current: Some(false), ..unasked };
    assert!(matches!(decide(&other), Decision::WaitForCache(_)));
}

#[test]
fn a_replica_set_at_rest_says_so() {
    let done = facts(0, Vec::new());
    assert_eq!(decide(&done), Decision::Rest(Why::Complete));
}

#[test]
fn objects_that_cannot_be_read_do_no_harm() {
    let named = json!({"metadata": {"annotations": {ANNOTATION_LEAVING: "shop-r1/uid-shop-r1",
        ANNOTATION_MAX_REPLICAS: "3"}, "ownerReferences": owner("Deployment", "d")},
        "status": {"replicas": 1, "conditions": [{"type": "ReplicaFailure", "status": "True"}]}});
    let objects = [home(), set(named), pod("shop-r1", json!({})), pod("d-d0", unready())];
    survives(&room(), &NoMachine, &objects);
}
