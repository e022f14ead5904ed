//! Each row of what a DaemonSet does.

use super::*;
use crate::recorded::judged_again;
use crate::revisions::LABEL_REVISION;
use crate::status::NOT_SUPPORTED;
use crate::template::FINALIZER_PROCESS;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Address, Kind, Name};
use serde_json::{Value, json};

const SUBJECT: &str = "shop/log";

fn namespace() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "uid-shop"}})
}

fn node(name: &str) -> Value {
    json!({"kind": "Node", "metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": {}})
}

fn set(patch: &Value) -> Value {
    let object = json!({
        "kind": "DaemonSet",
        "metadata": {"name": "log", "namespace": "shop", "uid": "uid-log", "generation": 1},
        "spec": {"revisionHistoryLimit": 10, "selector": {"matchLabels": {"app": "log"}},
            "updateStrategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "template": {"metadata": {"labels": {"app": "log"}},
                "spec": {"runtimeClassName": "interlock-process",
                    "containers": [{"name": "c", "image": "one"}]}}},
    });
    patched(object, patch)
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

struct Cluster {
    servers: TestServers,
}

impl Cluster {
    fn with(set: Value, nodes: &[&str]) -> Cluster {
        let nodes = nodes.iter().map(|name| node(name));
        let servers =
            TestServers::of(&DaemonSets).with([namespace(), set].into_iter().chain(nodes));
        Cluster { servers }
    }

    /// On two nodes, with pods that are ready.
    fn running(patch: &Value) -> Cluster {
        let mut cluster = Cluster::with(set(patch), &["n1", "n2"]);
        cluster.settle();
        cluster.ready("log-n1");
        cluster.ready("log-n2");
        cluster
    }

    fn settle(&mut self) -> Run<Nothing> {
        self.servers.settle(&DaemonSets, &mut NoMachine, SUBJECT)
    }

    fn change(&mut self, patch: &Value) {
        let now = self.set()["metadata"]["generation"].as_i64().unwrap_or(0);
        let patch = patched(patch.clone(), &json!({"metadata": {"generation": now + 1}}));
        let name = Name::within("shop", "log");
        self.servers.change(Place::CLUSTER, &DAEMON_SET, &name, &patch);
        self.settle();
    }

    fn change_node(&mut self, node: &str, patch: &Value) {
        self.servers.change(Place::CLUSTER, &NODE, &Name::cluster_wide(node), patch);
        self.settle();
    }

    fn json(&self, kind: &Kind, name: &str) -> Value {
        self.servers.json(Place::CLUSTER, kind, &Name::within("shop", name))
    }

    fn set(&self) -> Value {
        self.json(&DAEMON_SET, "log")
    }

    fn report(&mut self, pod: &str, status: &Value) {
        let name = Name::within("shop", pod);
        self.servers.change(Place::CLUSTER, &POD, &name, &json!({"status": status}));
        self.settle();
    }

    fn ready(&mut self, pod: &str) {
        let since = self.servers.now.to_string();
        self.report(
            pod,
            &json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": since}]}),
        );
    }

    fn let_go(&mut self) {
        for pod in self.servers.list(Place::CLUSTER, &POD, None) {
            if pod.metadata.deletion_timestamp.is_some() {
                let name = Name::of(&pod);
                let free = json!({"metadata": {"finalizers": null}});
                self.servers.change(Place::CLUSTER, &POD, &name, &free);
                self.servers.delete(Place::CLUSTER, &POD, &name);
            }
        }
        self.settle();
    }

    /// The pods, each with `-` before it if it is being deleted, and the image that it has.
    fn pods(&self) -> Vec<String> {
        let all = self.servers.list(Place::CLUSTER, &POD, None);
        let text = |pod: &Object| {
            let mark = if pod.metadata.deletion_timestamp.is_some() { "-" } else { "" };
            let image = pod.data["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            format!("{mark}{} {image}", name_of(pod))
        };
        all.iter().map(text).collect()
    }
}

#[test]
fn each_node_gets_a_pod_of_its_own() {
    let mut cluster = Cluster::with(set(&json!({})), &["n1", "n2"]);
    cluster.settle();
    assert_eq!(cluster.pods(), ["log-n1 one", "log-n2 one"]);
    let pod = cluster.json(&POD, "log-n2");
    assert_eq!(pod["spec"]["nodeName"], "n2");
    assert_eq!(pod["metadata"]["finalizers"], json!([FINALIZER_PROCESS]));
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "DaemonSet");
    let tolerations = pod["spec"]["tolerations"].as_array().map(Vec::len);
    assert_eq!(tolerations, Some(6));
    let hash = pod["metadata"]["labels"][LABEL_REVISION].as_str().expect("a hash").to_owned();
    assert_eq!(cluster.json(&CONTROLLER_REVISION, &format!("log-{hash}"))["revision"], 1);
}

#[test]
fn a_pod_that_is_no_process_asks_for_its_node_and_is_on_none() {
    let plain = json!({"spec": {"template": {"spec": {"runtimeClassName": null}}}});
    let mut cluster = Cluster::with(set(&plain), &["n1"]);
    cluster.settle();
    let pod = cluster.json(&POD, "log-n1");
    assert!(pod["spec"]["nodeName"].is_null() && pod["metadata"]["finalizers"].is_null());
    assert_eq!(cluster.set()["status"]["currentNumberScheduled"], 1);
    assert!(cluster.settle().writes.is_empty());
}

#[test]
fn the_status_counts_nodes() {
    let mut cluster = Cluster::running(&json!({}));
    let wanted = json!({"observedGeneration": 1, "desiredNumberScheduled": 2,
        "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
        "numberAvailable": 2, "updatedNumberScheduled": 2, "numberUnavailable": 0});
    assert_eq!(cluster.set()["status"], wanted);
    cluster.report("log-n1", &json!({"conditions": []}));
    let status = cluster.set()["status"].clone();
    assert_eq!((&status["numberReady"], &status["numberUnavailable"]), (&json!(1), &json!(1)));
    assert!(cluster.settle().writes.is_empty());
}

#[test]
fn a_new_template_replaces_one_pod_after_the_other() {
    let mut cluster = Cluster::running(&json!({}));
    cluster.change(&image("two"));
    assert_eq!(cluster.pods(), ["-log-n1 one", "log-n2 one"]);
    cluster.let_go();
    assert_eq!(cluster.pods(), ["log-n1 two", "log-n2 one"], "the next waits until this is ready");
    cluster.ready("log-n1");
    assert_eq!(cluster.pods(), ["log-n1 two", "-log-n2 one"]);
    cluster.let_go();
    cluster.ready("log-n2");
    let status = cluster.set()["status"].clone();
    assert_eq!(
        (&status["updatedNumberScheduled"], &status["numberAvailable"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn a_pod_that_is_not_available_is_replaced_whatever_the_bound_is() {
    let mut cluster = Cluster::running(&json!({}));
    cluster.report("log-n2", &json!({"conditions": []}));
    cluster.change(&image("two"));
    assert_eq!(cluster.pods(), ["log-n1 one", "-log-n2 one"]);
}

#[test]
fn as_many_are_replaced_at_once_as_may_be_unavailable() {
    for bound in [json!(2), json!("51%"), json!("100%")] {
        let patch =
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": bound}}}});
        let mut cluster = Cluster::running(&patch);
        cluster.change(&image("two"));
        assert_eq!(cluster.pods(), ["-log-n1 one", "-log-n2 one"], "{bound}");
    }
    for bound in [json!(0), json!("0%"), json!("1%"), json!("junk")] {
        let patch =
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": bound}}}});
        let mut cluster = Cluster::running(&patch);
        cluster.change(&image("two"));
        assert_eq!(cluster.pods(), ["-log-n1 one", "log-n2 one"], "{bound}");
    }
}

#[test]
fn on_delete_a_pod_is_replaced_when_somebody_deletes_it() {
    let kind = json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}});
    let mut cluster = Cluster::running(&kind);
    cluster.change(&image("two"));
    assert_eq!(cluster.pods(), ["log-n1 one", "log-n2 one"]);
    cluster.servers.delete(Place::CLUSTER, &POD, &Name::within("shop", "log-n1"));
    cluster.settle();
    assert_eq!(cluster.pods(), ["-log-n1 one", "log-n2 one"], "its name is not free yet");
    cluster.let_go();
    assert_eq!(cluster.pods(), ["log-n1 two", "log-n2 one"]);
}

#[test]
fn an_undo_makes_the_old_revision_the_newest() {
    let mut cluster = Cluster::running(&json!({}));
    let hash = cluster.json(&POD, "log-n1")["metadata"]["labels"][LABEL_REVISION].clone();
    cluster.change(&image("two"));
    cluster.change(&image("one"));
    let name = format!("log-{}", hash.as_str().expect("a hash"));
    assert_eq!(cluster.json(&CONTROLLER_REVISION, &name)["revision"], 3);
}

#[test]
fn maxsurge_is_refused_in_words() {
    let surge = json!({"spec": {"updateStrategy": {"rollingUpdate":
        {"maxSurge": "10%", "maxUnavailable": 0}}}});
    let mut cluster = Cluster::with(set(&surge), &["n1"]);
    let run = cluster.settle();
    let said = condition(&cluster.set(), NOT_SUPPORTED)["message"].clone();
    let words = "spec.updateStrategy.rollingUpdate.maxSurge is \"10%\"";
    assert!(said.as_str().is_some_and(|said| said.starts_with(words)), "{said}");
    assert_eq!((run.events.len(), cluster.pods().len()), (1, 0));
    cluster.change(&json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 0}}}}));
    assert!(condition(&cluster.set(), NOT_SUPPORTED).is_null());
    assert_eq!(cluster.pods(), ["log-n1 one"]);
}

#[test]
fn pods_follow_the_labels_and_taints_of_nodes() {
    let mut cluster = Cluster::running(&json!({}));
    cluster.change(&json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}}));
    assert_eq!(cluster.pods(), ["-log-n1 one", "-log-n2 one"]);
    assert_eq!(cluster.set()["status"]["numberMisscheduled"], 2);
    cluster.let_go();
    assert!(cluster.pods().is_empty());
    cluster.change_node("n2", &json!({"metadata": {"labels": {"disk": "fast"}}}));
    assert_eq!(cluster.pods(), ["log-n2 one"]);
    let keeps_away = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    cluster.change_node("n2", &keeps_away);
    assert_eq!(cluster.pods(), ["log-n2 one"], "it keeps the pod that it has");
    cluster.change_node("n2", &json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}));
    assert_eq!(cluster.pods(), ["-log-n2 one"]);
}

#[test]
fn pods_of_a_node_go_only_after_a_live_read_shows_none() {
    let mut cluster = Cluster::running(&json!({}));
    let name = Name::cluster_wide("n1");
    let live = cluster.servers.get(Place::CLUSTER, &NODE, &name);
    cluster.servers.delete(Place::CLUSTER, &NODE, &name);
    let mut reads = LiveReads::default();
    let step = cluster.servers.view().step_with(&DaemonSets, SUBJECT, &reads);
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    reads.objects.insert(Address::new(Place::CLUSTER, &NODE, name), live);
    let step = cluster.servers.view().step_with(&DaemonSets, SUBJECT, &reads);
    let deletes = matches!(&step, Step::Act(effect) if effect.because == "its node is gone");
    assert!(!deletes, "the cache was behind: {step:?}");
    cluster.settle();
    assert_eq!(cluster.pods(), ["-log-n1 one", "log-n2 one"]);
}

#[test]
fn a_pod_that_ended_is_made_again_and_a_second_one_of_a_node_goes() {
    let mut cluster = Cluster::running(&json!({}));
    cluster.report("log-n1", &json!({"phase": "Failed"}));
    assert_eq!(cluster.pods(), ["-log-n1 one", "log-n2 one"]);
    cluster.let_go();
    let second = json!({"kind": "Pod", "metadata": {
            "name": "other", "namespace": "shop", "uid": "u",
        "labels": {"app": "log"}}, "spec": {"nodeName": "n2", "containers": [{"image": "own"}]}});
    cluster.servers.put(Place::CLUSTER, second);
    cluster.settle();
    assert_eq!(
        cluster.pods(),
        ["log-n1 one", "log-n2 one"],
        "it was adopted, and one was too many"
    );
    let nowhere = json!({"kind": "Pod", "spec": {}, "metadata": {"name": "nowhere",
        "namespace": "shop", "uid": "v", "labels": {"app": "log"}}});
    cluster.servers.put(Place::CLUSTER, nowhere);
    cluster.settle();
    assert_eq!(cluster.pods(), ["log-n1 one", "log-n2 one", "nowhere "], "it is for no node");
}

#[test]
fn a_pod_whose_labels_stray_is_released_and_its_name_is_taken() {
    let mut cluster = Cluster::running(&json!({}));
    let strayed = json!({"metadata": {"labels": {"app": "x"}}});
    cluster.servers.change(Place::CLUSTER, &POD, &Name::within("shop", "log-n1"), &strayed);
    cluster.settle();
    let pod = cluster.json(&POD, "log-n1");
    assert_eq!(pod["metadata"]["ownerReferences"], json!([]));
    assert_eq!(cluster.set()["status"]["currentNumberScheduled"], 1);
}

#[test]
fn a_pod_is_replaced_only_by_what_a_live_read_shows() {
    let mut cluster = Cluster::running(&json!({}));
    let name = Name::within("shop", "log");
    let before = cluster.servers.get(Place::CLUSTER, &DAEMON_SET, &name);
    cluster.change(&image("two"));
    cluster.let_go();
    cluster.ready("log-n1");
    let mut reads = LiveReads::default();
    reads.objects.insert(Address::new(Place::CLUSTER, &DAEMON_SET, name), before);
    let pods = cluster.servers.list(Place::CLUSTER, &POD, None);
    reads.lists.insert((Place::CLUSTER, POD, Some("shop".to_owned())), pods);
    let step = cluster.servers.view().step_with(&DaemonSets, SUBJECT, &reads);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
}

#[test]
fn old_revisions_go_beyond_the_limit() {
    let mut cluster = Cluster::with(set(&json!({"spec": {"revisionHistoryLimit": 1}})), &[]);
    for picture in ["one", "two", "three", "four"] {
        cluster.change(&image(picture));
    }
    let revisions = cluster.servers.list(Place::CLUSTER, &CONTROLLER_REVISION, None);
    let mut numbers: Vec<i64> =
        revisions.iter().filter_map(|it| it.data["revision"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 4]);
}

#[test]
fn a_pod_counts_after_min_ready_seconds() {
    let mut cluster = Cluster::running(&json!({"spec": {"minReadySeconds": 10}}));
    assert_eq!(cluster.set()["status"]["numberAvailable"], 0);
    assert_eq!(cluster.settle().waits_seconds, Some(10));
    cluster.servers.pass(10);
    cluster.settle();
    assert_eq!(cluster.set()["status"]["numberAvailable"], 2);
}

#[test]
fn nothing_is_done_for_a_set_or_in_a_namespace_that_is_being_deleted() {
    let leaving =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
    let mut cluster = Cluster::with(set(&leaving), &["n1"]);
    assert!(cluster.settle().writes.is_empty());
    let mut cluster = Cluster::with(set(&json!({})), &["n1"]);
    cluster.servers.put(Place::CLUSTER, patched(namespace(), &leaving));
    cluster.settle();
    assert!(cluster.pods().is_empty());
}

#[test]
fn nodes_and_namespaces_wake_the_sets() {
    let cluster = Cluster::running(&json!({}));
    let view = cluster.servers.view();
    for (kind, name) in [(NODE, "n1"), (NAMESPACE, "shop")] {
        let object = cluster.servers.get(Place::CLUSTER, &kind, &Name::cluster_wide(name));
        let object = object.expect("it is there");
        let woken = DaemonSets.subjects(&Watch::all(Place::CLUSTER, &kind), &object, &view);
        assert_eq!(woken, [Subject::from(SUBJECT)]);
    }
}

#[test]
fn broken_objects_do_not_break_it() {
    let cluster = Cluster::running(&json!({}));
    let hash = cluster.json(&POD, "log-n1")["metadata"]["labels"][LABEL_REVISION].clone();
    let revision = format!("log-{}", hash.as_str().expect("a hash"));
    let objects = [
        namespace(),
        node("n1"),
        cluster.set(),
        cluster.json(&POD, "log-n1"),
        cluster.json(&POD, "log-n2"),
        cluster.json(&CONTROLLER_REVISION, &revision),
    ];
    survives(&DaemonSets, &NoMachine, &objects);
    judged_again(&DaemonSets, &objects);
}
