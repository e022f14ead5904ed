//! The rules about a Deployment, one by one, with the controller of ReplicaSets beside it.

use super::decide::{Counts, Decision, Facts, Set, decide};
use super::sizes::Plan;
use super::spec::Spec;
use super::*;
use crate::owned::Claim;
use crate::replicaset::{ANNOTATION_MAX_REPLICAS, ReplicaSets};
use crate::template::{FINALIZER_PROCESS, LABEL_TEMPLATE_HASH};
use interlock_kernel::Write;
use interlock_kernel::metadata::{is_deleting, name_of};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use serde_json::{Value, json};
use standing::Said;
use std::collections::BTreeMap;
use std::sync::Arc;

const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

fn sets_room() -> ReplicaSets {
    ReplicaSets { node: Arc::from("n") }
}

fn home() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "eu", "uid": "uid-eu"}})
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "shop"}},
        "spec": {"runtimeClassName": "interlock-process", "containers": [{"image": image}]}})
}

fn deployment(patch: Value) -> Value {
    let object = json!({
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "eu", "uid": "uid-shop", "generation": 1},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "shop"}},
            "template": template("one"),
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
    });
    patched(object, &patch)
}

/// A cluster with both controllers and a runtime that makes pods ready and lets go of those that are deleted.
struct Cluster {
    servers: TestServers,
    /// Whether pods become ready.
    is_healthy: bool,
    /// The most pods that there were, and the fewest that were ready since they last were enough.
    most: usize,
    fewest_ready: usize,
}

impl Cluster {
    fn of(patch: Value) -> Cluster {
        let mut servers = TestServers::of(&Deployments);
        servers.show(&sets_room());
        let servers = servers.with([home(), deployment(patch)]);
        Cluster { servers, is_healthy: true, most: 0, fewest_ready: usize::MAX }
    }

    fn settled(patch: Value) -> Cluster {
        let mut cluster = Cluster::of(patch);
        cluster.settle();
        cluster
    }

    fn step(&mut self) -> Run<Nothing> {
        let run = self.servers.settle(&Deployments, &mut NoMachine, "eu/shop");
        for set in self.servers.list(Place::CLUSTER, &REPLICA_SET, Some("eu")) {
            let subject = subject_of(&set);
            self.servers.settle(&sets_room(), &mut NoMachine, &subject);
        }
        run
    }

    /// Until nothing happens any more.
    fn settle(&mut self) {
        self.fewest_ready = usize::MAX;
        for _ in 0..100 {
            self.step();
            let pods = self.pods();
            let ready = pods.iter().filter(|pod| !is_deleting(pod) && is_ready(pod)).count();
            self.most = self.most.max(pods.len());
            self.fewest_ready = self.fewest_ready.min(ready);
            let moved = pods.iter().filter(|pod| self.moves(pod)).count();
            if moved == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// What the runtime does about a pod.
    fn moves(&mut self, pod: &Object) -> bool {
        let name = Name::of(pod);
        if is_deleting(pod) {
            let gone = json!({"metadata": {"finalizers": null}});
            self.servers.change(Place::CLUSTER, &POD, &name, &gone);
            self.servers.delete(Place::CLUSTER, &POD, &name);
            return true;
        }
        if is_ready(pod) || !self.is_healthy {
            return false;
        }
        let since = self.servers.now.to_string();
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
        let status = json!({"status": {"phase": "Running", "conditions": ready}});
        self.servers.change(Place::CLUSTER, &POD, &name, &status);
        true
    }

    fn pods(&self) -> Vec<Object> {
        self.servers.list(Place::CLUSTER, &POD, Some("eu"))
    }

    fn json(&self) -> Value {
        self.servers.json(Place::CLUSTER, &DEPLOYMENT, &Name::within("eu", "shop"))
    }

    /// Of each ReplicaSet by revision: its image and its size.
    fn sizes(&self) -> BTreeMap<String, String> {
        let all = self.servers.list(Place::CLUSTER, &REPLICA_SET, Some("eu"));
        let one = |set: &Object| {
            let spec = &set.data["spec"];
            let image = &spec["template"]["spec"]["containers"][0]["image"];
            let revision = interlock_kernel::metadata::annotation(set, ANNOTATION_REVISION);
            let revision = revision.unwrap_or_default().to_owned();
            (revision, format!("{} {}", image.as_str().unwrap_or_default(), spec["replicas"]))
        };
        all.iter().map(one).collect()
    }

    fn ask(&mut self, spec: Value) {
        let generation = self.json()["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        let patch = json!({"metadata": {"generation": generation}, "spec": spec});
        self.servers.change(Place::CLUSTER, &DEPLOYMENT, &Name::within("eu", "shop"), &patch);
    }

    fn progress(&self) -> String {
        let deployment = self.json();
        let found = condition(&deployment, "Progressing");
        format!("{} {}", found["status"], found["reason"]).replace('"', "")
    }
}

fn is_ready(pod: &Object) -> bool {
    crate::pod::condition(&pod.data, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn sizes<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_new_deployment_gets_a_replica_set_and_says_when_it_is_complete() {
    let cluster = Cluster::settled(json!({"metadata": {"annotations": {
        CHANGE_CAUSE: "the first", "kubectl.kubernetes.io/last-applied-configuration": "{}"}}}));
    assert_eq!(cluster.sizes(), sizes([("1", "one 2")]));
    let sets = cluster.servers.list(Place::CLUSTER, &REPLICA_SET, Some("eu"));
    let set = serde_json::to_value(&*sets[0]).unwrap();
    let annotations = &set["metadata"]["annotations"];
    assert_eq!(annotations[CHANGE_CAUSE], "the first", "kubectl rollout history shows it");
    assert!(annotations["kubectl.kubernetes.io/last-applied-configuration"].is_null());
    assert_eq!(annotations[ANNOTATION_MAX_REPLICAS], "3");
    assert_eq!(annotations[ANNOTATION_DESIRED_REPLICAS], "2");
    let hash = &set["metadata"]["labels"][LABEL_TEMPLATE_HASH];
    assert_eq!(set["metadata"]["name"], format!("shop-{}", hash.as_str().unwrap()));
    assert_eq!(&set["spec"]["selector"]["matchLabels"][LABEL_TEMPLATE_HASH], hash);
    assert_eq!(&set["spec"]["template"]["metadata"]["labels"][LABEL_TEMPLATE_HASH], hash);
    let deployment = cluster.json();
    assert_eq!(deployment["metadata"]["annotations"][ANNOTATION_REVISION], "1");
    let status = &deployment["status"];
    for (key, number) in [
        ("observedGeneration", 1),
        ("replicas", 2),
        ("updatedReplicas", 2),
        ("readyReplicas", 2),
        ("availableReplicas", 2),
        ("unavailableReplicas", 0),
    ] {
        assert_eq!(status[key], number, "{key}");
    }
    assert_eq!(cluster.progress(), "True NewReplicaSetAvailable");
    assert_eq!(condition(&deployment, "Available")["reason"], "MinimumReplicasAvailable");
    let names: Vec<String> = cluster.pods().iter().map(|pod| name_of(pod).to_owned()).collect();
    assert_eq!(names, ["shop-d0", "shop-d1"]);
}

#[test]
fn a_change_keeps_between_the_most_and_the_floor() {
    for (surge, unavailable, most, floor) in [(1, 0, 4, 3), (0, 1, 3, 2), (2, 2, 5, 1)] {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let mut cluster = Cluster::settled(
            json!({"spec": {"replicas": 3, "strategy": {"rollingUpdate": rolling}}}),
        );
        cluster.ask(json!({"template": template("two")}));
        cluster.settle();
        assert_eq!(cluster.sizes(), sizes([("1", "one 0"), ("2", "two 3")]));
        assert!(cluster.most <= most && cluster.fewest_ready >= floor, "{surge} {unavailable}");
        assert_eq!(cluster.progress(), "True NewReplicaSetAvailable");
        assert_eq!(cluster.json()["status"]["observedGeneration"], 2);
    }
}

#[test]
fn an_undo_gives_the_old_replica_set_the_highest_revision() {
    let mut cluster = Cluster::settled(json!({}));
    cluster.ask(json!({"template": template("two")}));
    cluster.settle();
    cluster.ask(json!({"template": template("one")}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("2", "two 0"), ("3", "one 2")]));
    assert_eq!(cluster.json()["metadata"]["annotations"][ANNOTATION_REVISION], "3");
    assert!(cluster.fewest_ready >= 2);
}

#[test]
fn while_paused_nothing_rolls_out_and_scaling_works() {
    let mut cluster = Cluster::settled(json!({}));
    cluster.ask(json!({"paused": true, "template": template("two")}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 2")]));
    assert_eq!(cluster.progress(), "Unknown DeploymentPaused");
    cluster.ask(json!({"replicas": 4}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 4")]));
    cluster.ask(json!({"paused": null}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 0"), ("2", "two 4")]));
    assert_eq!(cluster.progress(), "True NewReplicaSetAvailable");
}

#[test]
fn a_deployment_that_is_made_paused_waits() {
    let cluster = Cluster::settled(json!({"spec": {"paused": true}}));
    assert_eq!(cluster.sizes(), sizes([]));
    assert_eq!(cluster.json()["status"]["observedGeneration"], 1);
}

#[test]
fn a_restart_is_a_change_like_others() {
    let mut cluster = Cluster::settled(json!({}));
    let restarted =
        json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "x"}}});
    cluster.ask(json!({"template": restarted}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 0"), ("2", "one 2")]));
}

#[test]
fn recreated_pods_never_meet_old_ones() {
    let mut cluster = Cluster::settled(
        json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
    );
    cluster.ask(json!({"template": template("two")}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 0"), ("2", "two 2")]));
    assert_eq!((cluster.most, cluster.fewest_ready), (2, 0));
}

#[test]
fn scaling_in_the_middle_of_a_change_keeps_both_templates() {
    let mut cluster = Cluster::settled(json!({"spec": {"replicas": 4}}));
    cluster.is_healthy = false;
    cluster.ask(json!({"template": template("two")}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 4"), ("2", "two 1")]));
    cluster.ask(json!({"replicas": 9}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 8"), ("2", "two 2")]), "10 in all");
    cluster.is_healthy = true;
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 0"), ("2", "two 9")]));
}

#[test]
fn a_change_to_nothing_and_back_works() {
    let mut cluster = Cluster::settled(json!({}));
    cluster.ask(json!({"replicas": 0}));
    cluster.settle();
    assert_eq!((cluster.sizes(), cluster.pods().len()), (sizes([("1", "one 0")]), 0));
    assert_eq!(cluster.progress(), "True NewReplicaSetAvailable");
    cluster.ask(json!({"replicas": 3}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 3")]));
}

#[test]
fn a_change_without_progress_is_reported_after_its_deadline() {
    let mut cluster = Cluster::of(json!({"spec": {"progressDeadlineSeconds": 30}}));
    cluster.is_healthy = false;
    cluster.settle();
    assert_eq!(cluster.progress(), "True ReplicaSetUpdated");
    assert_eq!(cluster.step().waits_seconds, Some(30), "it is requeued by itself");
    cluster.servers.pass(29);
    cluster.settle();
    assert_eq!(cluster.progress(), "True ReplicaSetUpdated");
    cluster.servers.pass(1);
    cluster.settle();
    assert_eq!(cluster.progress(), "False ProgressDeadlineExceeded");
    cluster.is_healthy = true;
    cluster.settle();
    assert_eq!(cluster.progress(), "True NewReplicaSetAvailable");
    cluster.servers.pass(500);
    let pods = cluster.pods();
    let broken = json!({"status": {"conditions": null}});
    cluster.servers.change(Place::CLUSTER, &POD, &Name::of(&pods[0]), &broken);
    cluster.step();
    assert_eq!(cluster.progress(), "True NewReplicaSetAvailable", "that is no change");
    assert_eq!(condition(&cluster.json(), "Available")["status"], "False");
}

#[test]
fn progress_begins_the_deadline_again() {
    let mut cluster = Cluster::of(json!({"spec": {"progressDeadlineSeconds": 30}}));
    cluster.is_healthy = false;
    cluster.settle();
    cluster.servers.pass(29);
    let pods = cluster.pods();
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.servers.change(Place::CLUSTER, &POD, &Name::of(&pods[0]), &ready);
    cluster.step();
    cluster.servers.pass(29);
    cluster.step();
    assert_eq!(cluster.progress(), "True ReplicaSetUpdated");
    cluster.servers.pass(1);
    cluster.step();
    assert_eq!(cluster.progress(), "False ProgressDeadlineExceeded");
}

#[test]
fn without_a_deadline_nobody_speaks_of_progress() {
    let cluster = Cluster::settled(json!({"spec": {"progressDeadlineSeconds": i32::MAX}}));
    assert_eq!(condition(&cluster.json(), "Progressing"), &Value::Null);
    assert_eq!(cluster.json()["status"]["availableReplicas"], 2);
}

#[test]
fn a_pod_counts_once_it_was_ready_for_long_enough() {
    let mut cluster = Cluster::settled(json!({"spec": {"minReadySeconds": 10}}));
    assert_eq!(cluster.json()["status"]["availableReplicas"], 0);
    assert_eq!(cluster.json()["status"]["readyReplicas"], 2);
    assert_eq!(cluster.step().waits_seconds, Some(10));
    cluster.servers.pass(10);
    cluster.settle();
    assert_eq!(cluster.json()["status"]["availableReplicas"], 2);
    cluster.ask(json!({"template": template("two")}));
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("1", "one 2"), ("2", "two 1")]), "it waits");
}

#[test]
fn replica_sets_of_the_past_are_kept_up_to_a_limit() {
    let mut cluster = Cluster::settled(json!({"spec": {"revisionHistoryLimit": 1}}));
    for image in ["two", "three", "four"] {
        cluster.ask(json!({"template": template(image)}));
        cluster.settle();
    }
    assert_eq!(cluster.sizes(), sizes([("3", "three 0"), ("4", "four 2")]));
}

#[test]
fn a_size_that_somebody_else_wrote_is_put_right() {
    let mut cluster = Cluster::settled(json!({}));
    let set = cluster.servers.list(Place::CLUSTER, &REPLICA_SET, Some("eu")).remove(0);
    let many = json!({"spec": {"replicas": 7}});
    cluster.servers.change(Place::CLUSTER, &REPLICA_SET, &Name::of(&set), &many);
    cluster.settle();
    assert_eq!((cluster.sizes(), cluster.pods().len()), (sizes([("1", "one 2")]), 2));
}

#[test]
fn a_plan_that_makes_no_sense_is_replaced() {
    for plan in ["", "{", "[]", r#"{"desired": 2, "sizes": {"x": -1}}"#, r#"{"sizes": {}}"#] {
        let mut cluster = Cluster::settled(json!({}));
        let patch = json!({"metadata": {"annotations": {ANNOTATION_SIZES: plan}}});
        let name = Name::within("eu", "shop");
        cluster.servers.change(Place::CLUSTER, &DEPLOYMENT, &name, &patch);
        cluster.ask(json!({"template": template("two")}));
        cluster.settle();
        assert_eq!(cluster.sizes(), sizes([("1", "one 0"), ("2", "two 2")]), "{plan}");
    }
}

#[test]
fn what_cannot_be_read_is_reported_and_nothing_is_done() {
    let broken = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": "many"}}}});
    let cluster = Cluster::settled(broken);
    assert_eq!((cluster.progress(), cluster.sizes()), ("False InvalidSpec".to_owned(), sizes([])));
    let deployment = cluster.json();
    let said = condition(&deployment, "Progressing")["message"].as_str().unwrap().to_owned();
    assert!(said.contains("spec.strategy.rollingUpdate.maxSurge: \"many\""), "{said}");
    assert!(said.contains("kubectl edit"), "{said}");
    let mut cluster = cluster;
    cluster.ask(json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}}));
    cluster.settle();
    assert_eq!(cluster.progress(), "True NewReplicaSetAvailable");
}

#[test]
fn a_replica_set_that_nobody_has_is_adopted_and_changed() {
    let mut cluster = Cluster::of(json!({}));
    let set = json!({"kind": "ReplicaSet",
        "metadata": {"name": "old", "namespace": "eu", "uid": "uid-old", "labels": {"app": "shop"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "shop"}},
            "template": template("zero")}});
    cluster.servers.put(Place::CLUSTER, set);
    cluster.servers.settle(&sets_room(), &mut NoMachine, "eu/old");
    cluster.settle();
    assert_eq!(cluster.sizes(), sizes([("", "zero 0"), ("1", "one 2")]));
    let name = Name::within("eu", "old");
    let old = cluster.servers.json(Place::CLUSTER, &REPLICA_SET, &name);
    assert_eq!(old["metadata"]["ownerReferences"][0]["uid"], "uid-shop");
    let strayed = json!({"metadata": {"labels": {"app": "cart"}}});
    cluster.servers.change(Place::CLUSTER, &REPLICA_SET, &name, &strayed);
    cluster.settle();
    let old = cluster.servers.json(Place::CLUSTER, &REPLICA_SET, &name);
    assert_eq!(old["metadata"]["ownerReferences"], json!([]), "its labels say otherwise");
}

#[test]
fn a_name_that_another_template_has_gets_a_number() {
    let name = format!("shop-{}", crate::template::hash(&template("one")));
    let mut cluster = Cluster::of(json!({}));
    let other = json!({"kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "eu", "uid": "uid-other"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {}}}});
    cluster.servers.put(Place::CLUSTER, other);
    cluster.settle();
    let made = format!("{name}1");
    let set = cluster.servers.json(Place::CLUSTER, &REPLICA_SET, &Name::within("eu", &made));
    assert_eq!(set["spec"]["replicas"], 2);
}

#[test]
fn a_deployment_that_is_being_deleted_is_left_to_the_collector() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["foregroundDeletion"]}});
    let mut cluster = Cluster::of(going);
    let run = cluster.step();
    assert_eq!((run.writes.len(), &*run.rests), (0, "the Deployment is being deleted"));
}

// Rules that depend on what a live read finds and the cache does not show.

fn set(size: u32) -> Set {
    Set {
        name: "shop-a".to_owned(),
        claim: Claim::Own,
        is_new: true,
        is_terminating: false,
        size,
        revision: 1,
        is_noted: true,
        is_pod_named: false,
        failure: None,
        pods: Counts { all: size, active: size, ready: size, available: size },
    }
}

fn facts(replicas: u32, planned: u32, sets: Vec<Set>) -> Facts {
    let deployment = deployment(json!({"spec": {"replicas": replicas}}));
    let object = patched(deployment, &json!({"apiVersion": "apps/v1"}));
    let plan = sets.iter().map(|set| (set.name.clone(), planned)).collect();
    Facts {
        is_terminating: false,
        spec: Spec::of(&serde_json::from_value(object).unwrap()),
        generation: 1,
        revision: Some(1),
        plan: Some(Plan { desired: planned, sizes: plan }),
        sets,
        is_current: None,
        live: None,
        said: Said::default(),
        next_available: None,
    }
}

#[test]
fn a_size_is_written_only_if_a_live_read_shows_the_same_plan() {
    let behind = facts(2, 2, vec![set(1)]);
    assert_eq!(decide(&behind), Decision::ReadDeployment);
    let same = Facts { is_current: Some(true), ..behind.clone() };
    let carry = Decision::Carry { set: 0, size: Some(2), revision: None };
    assert_eq!(decide(&same), carry);
    let other = Facts { is_current: Some(false), ..behind };
    assert!(matches!(decide(&other), Decision::Wait(..)));
}

#[test]
fn the_next_plan_rests_on_a_live_list() {
    let cached = facts(3, 2, vec![set(2)]);
    assert_eq!(decide(&cached), Decision::ReadSizes);
    let live = Facts { live: Some(vec![set(2)]), ..cached.clone() };
    let next = [("shop-a".to_owned(), 3)].into();
    assert_eq!(decide(&live), Decision::Plan(Plan { desired: 3, sizes: next }));
    let mut named = set(2);
    named.is_pod_named = true;
    let leaving = Facts { live: Some(vec![named]), ..cached };
    assert!(matches!(decide(&leaving), Decision::Wait(..)), "a pod is leaving");
}

#[test]
fn that_all_is_done_is_said_only_after_a_live_list() {
    let cached = facts(2, 2, vec![set(2)]);
    assert_eq!(decide(&cached), Decision::ReadSizes);
    let mut old = set(1);
    (old.name, old.is_new, old.revision) = ("shop-0".to_owned(), false, 0);
    let missed = Facts { live: Some(vec![old, set(2)]), ..cached.clone() };
    assert!(matches!(decide(&missed), Decision::Wait(..)), "the cache missed an old pod");
    let seen = Facts { live: Some(vec![set(2)]), ..cached };
    assert!(matches!(decide(&seen), Decision::Report(_)));
}

#[test]
fn two_of_one_revision_do_not_stay_so() {
    let mut old = set(0);
    (old.name, old.is_new) = ("shop-0".to_owned(), false);
    let same = Facts { is_current: Some(true), ..facts(2, 2, vec![old, set(2)]) };
    let mut same = same;
    same.plan = None;
    let carry = Decision::Carry { set: 1, size: None, revision: Some(2) };
    assert_eq!(decide(&same), carry);
}

#[test]
fn a_pod_wakes_its_deployment() {
    let cluster = Cluster::settled(json!({}));
    let watch = Watch::all(Place::CLUSTER, &POD);
    let pod = cluster.pods().remove(0);
    let woken = Deployments.subjects(&watch, &pod, &cluster.servers.view());
    assert_eq!(woken, [Subject::from("eu/shop")]);
    assert!(pod.metadata.finalizers.iter().flatten().any(|it| it == FINALIZER_PROCESS));
}

#[test]
fn every_write_says_what_it_rests_on() {
    let mut cluster = Cluster::of(json!({}));
    let run = cluster.step();
    assert!(matches!(run.writes[0], Write::Create { .. }));
    let patches = run.writes[1..].iter().filter(|write| matches!(write, Write::Patch { .. }));
    assert_eq!(patches.count(), run.writes.len() - 1);
    let subjects = cluster.servers.subjects(&Deployments);
    assert_eq!(subjects.into_iter().collect::<Vec<_>>(), [Subject::from("eu/shop")]);
}

#[test]
fn objects_that_cannot_be_read_do_no_harm() {
    let cluster = Cluster::settled(json!({}));
    let mut objects = vec![cluster.json()];
    for kind in [REPLICA_SET, POD] {
        for object in cluster.servers.list(Place::CLUSTER, &kind, Some("eu")) {
            objects.push(serde_json::to_value(&*object).unwrap());
        }
    }
    survives(&Deployments, &NoMachine, &objects);
}
