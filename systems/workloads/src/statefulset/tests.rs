//! Each row of what a StatefulSet does.

mod claims;

use super::*;
use crate::recorded::judged_again;
use crate::revisions::LABEL_REVISION;
use crate::status::NOT_SUPPORTED;
use crate::template::FINALIZER_PROCESS;
use interlock_kernel::metadata::{annotation, label};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Address, Kind, Name, Write};
use serde_json::{Value, json};

const SUBJECT: &str = "shop/web";

fn room() -> StatefulSets {
    StatefulSets::new("local")
}

fn namespace(patch: &Value) -> Value {
    patched(json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "uid-shop"}}), patch)
}

fn set(patch: &Value) -> Value {
    let object = json!({
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "generation": 1},
        "spec": {"replicas": 2, "serviceName": "front", "revisionHistoryLimit": 10,
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"runtimeClassName": "interlock-process",
                    "containers": [{"name": "c", "image": "one"}]}}},
    });
    patched(object, patch)
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn with_claims(patch: &Value) -> Value {
    let claims = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"]}}]}});
    set(&patched(claims, patch))
}

struct Cluster {
    servers: TestServers,
}

impl Cluster {
    fn with(set: Value) -> Cluster {
        let servers = TestServers::of(&room()).with([namespace(&json!({})), set]);
        Cluster { servers }
    }

    fn settle(&mut self) -> Run<Nothing> {
        self.servers.settle(&room(), &mut NoMachine, SUBJECT)
    }

    /// As a person would: the generation counts.
    fn change(&mut self, patch: &Value) {
        let name = Name::within("shop", "web");
        let now = self.set()["metadata"]["generation"].as_i64().unwrap_or(0);
        let patch = patched(patch.clone(), &json!({"metadata": {"generation": now + 1}}));
        self.servers.change(Place::CLUSTER, &STATEFUL_SET, &name, &patch);
    }

    fn json(&self, kind: &Kind, name: &str) -> Value {
        self.servers.json(Place::CLUSTER, kind, &Name::within("shop", name))
    }

    fn set(&self) -> Value {
        self.json(&STATEFUL_SET, "web")
    }

    fn report(&mut self, pod: &str, status: &str) {
        let since = self.servers.now.to_string();
        let change = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": since}]}});
        let name = Name::within("shop", pod);
        self.servers.change(Place::CLUSTER, &POD, &name, &change);
    }

    /// The pod is ready, and the controller has seen it.
    fn ready(&mut self, pod: &str) {
        self.report(pod, "True");
        self.settle();
    }

    /// The processes of all pods that are being deleted are gone.
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

    /// Two pods that are ready.
    fn running(set: Value) -> Cluster {
        let mut cluster = Cluster::with(set);
        cluster.settle();
        cluster.ready("web-0");
        cluster.ready("web-1");
        cluster
    }
}

#[test]
fn an_ordinal_waits_until_those_below_are_ready() {
    let mut cluster = Cluster::with(set(&json!({})));
    cluster.settle();
    assert_eq!(cluster.pods(), ["web-0 one"]);
    cluster.ready("web-0");
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 one"]);
    let mut parallel = Cluster::with(set(&json!({"spec": {"podManagementPolicy": "Parallel"}})));
    parallel.settle();
    assert_eq!(parallel.pods(), ["web-0 one", "web-1 one"]);
}

#[test]
fn a_pod_has_its_name_its_ordinal_its_revision_and_its_host_name() {
    let start = json!({"spec": {"ordinals": {"start": 5}}});
    let mut cluster = Cluster::with(set(&start));
    cluster.settle();
    let pod = cluster.json(&POD, "web-5");
    let labels = &pod["metadata"]["labels"];
    assert_eq!((&labels["app"], &labels[LABEL_POD_NAME]), (&json!("web"), &json!("web-5")));
    assert_eq!(labels[LABEL_POD_INDEX], "5");
    assert_eq!(labels[LABEL_REVISION], cluster.set()["status"]["updateRevision"]);
    assert_eq!(pod["spec"]["hostname"], "web-5");
    assert_eq!(
        (&pod["spec"]["subdomain"], &pod["spec"]["nodeName"]),
        (&json!("front"), &json!("local"))
    );
    assert_eq!(pod["metadata"]["finalizers"], json!([FINALIZER_PROCESS]));
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "uid-web");
}

#[test]
fn the_status_says_how_far_it_is() {
    let cluster = Cluster::running(set(&json!({})));
    let status = cluster.set()["status"].clone();
    let revision = status["updateRevision"].as_str().expect("a revision");
    assert!(revision.starts_with("web-"), "{revision}");
    let wanted = json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2,
        "availableReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2,
        "currentRevision": revision, "updateRevision": revision});
    assert_eq!(status, wanted);
    let data = cluster.json(&CONTROLLER_REVISION, revision)["data"].clone();
    let template =
        patched(cluster.set()["spec"]["template"].clone(), &json!({"$patch": "replace"}));
    assert_eq!(data, json!({"spec": {"template": template}}), "kubectl applies it as a patch");
}

#[test]
fn a_ready_pod_counts_after_min_ready_seconds() {
    let mut cluster = Cluster::with(set(&json!({"spec": {"minReadySeconds": 10}})));
    cluster.settle();
    cluster.report("web-0", "True");
    let run = cluster.settle();
    assert_eq!((cluster.pods().len(), run.waits_seconds), (1, Some(10)));
    cluster.servers.pass(10);
    cluster.settle();
    assert_eq!(cluster.pods().len(), 2);
}

#[test]
fn a_new_revision_goes_from_the_highest_ordinal_down_one_at_a_time() {
    let mut cluster = Cluster::running(set(&json!({})));
    cluster.change(&image("two"));
    cluster.settle();
    assert_eq!(cluster.pods(), ["web-0 one", "-web-1 one"]);
    cluster.let_go();
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 two"], "the next waits until this is ready");
    let status = cluster.set()["status"].clone();
    assert_eq!((&status["updatedReplicas"], &status["currentReplicas"]), (&json!(1), &json!(1)));
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    cluster.ready("web-1");
    assert_eq!(cluster.pods(), ["-web-0 one", "web-1 two"]);
    cluster.let_go();
    cluster.ready("web-0");
    let status = cluster.set()["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(status["currentReplicas"], 2);
}

#[test]
fn an_undo_makes_the_old_revision_the_newest() {
    let mut cluster = Cluster::running(set(&json!({})));
    let first = cluster.set()["status"]["updateRevision"].clone();
    cluster.change(&image("two"));
    cluster.settle();
    cluster.let_go();
    cluster.change(&image("one"));
    cluster.settle();
    assert_eq!(cluster.set()["status"]["updateRevision"], first);
    let name = first.as_str().expect("a name");
    assert_eq!(cluster.json(&CONTROLLER_REVISION, name)["revision"], 3);
    assert_eq!(
        cluster.pods(),
        ["web-0 one", "-web-1 two"],
        "a pod that never was ready is no hindrance"
    );
}

#[test]
fn below_the_partition_pods_keep_the_revision_that_they_had() {
    let part = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}});
    let mut cluster = Cluster::running(set(&part));
    cluster.change(&image("two"));
    cluster.settle();
    cluster.let_go();
    cluster.ready("web-1");
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 two"]);
    cluster.servers.delete(Place::CLUSTER, &POD, &Name::within("shop", "web-0"));
    cluster.let_go();
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 two"], "it comes back as it was");
}

#[test]
fn on_delete_a_pod_gets_the_new_revision_when_somebody_deletes_it() {
    let kind = json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}});
    let mut cluster = Cluster::running(set(&kind));
    cluster.change(&image("two"));
    cluster.settle();
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 one"]);
    cluster.servers.delete(Place::CLUSTER, &POD, &Name::within("shop", "web-0"));
    cluster.settle();
    assert_eq!(cluster.pods(), ["-web-0 one", "web-1 one"], "its name is not free yet");
    cluster.let_go();
    assert_eq!(cluster.pods(), ["web-0 two", "web-1 one"]);
}

#[test]
fn the_highest_ordinal_goes_first_and_only_while_the_others_are_ready() {
    let mut cluster = Cluster::running(set(&json!({})));
    cluster.report("web-0", "False");
    cluster.change(&json!({"spec": {"replicas": 1}}));
    cluster.settle();
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 one"], "it halts at one that is not ready");
    cluster.ready("web-0");
    assert_eq!(cluster.pods(), ["web-0 one", "-web-1 one"]);
    cluster.let_go();
    assert_eq!(cluster.pods(), ["web-0 one"]);
}

#[test]
fn to_none_it_goes_one_after_the_other_and_in_parallel_at_once() {
    let mut cluster = Cluster::running(set(&json!({})));
    cluster.change(&json!({"spec": {"replicas": 0}}));
    cluster.settle();
    assert_eq!(cluster.pods(), ["web-0 one", "-web-1 one"]);
    let mut cluster = Cluster::running(set(&json!({"spec": {"podManagementPolicy": "Parallel"}})));
    cluster.change(&json!({"spec": {"replicas": 0}}));
    cluster.settle();
    assert_eq!(cluster.pods(), ["-web-0 one", "-web-1 one"]);
}

#[test]
fn a_pod_is_deleted_only_by_what_a_live_read_shows() {
    let mut cluster = Cluster::running(set(&json!({})));
    cluster.change(&json!({"spec": {"replicas": 1}}));
    // The old cache of a second agent: its set is not the one that the server has.
    let old =
        Cluster::running(set(&json!({"spec": {"replicas": 1}, "metadata": {"generation": 9}})));
    let step = cluster.servers.view().step_with(&room(), SUBJECT, &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let mut reads = LiveReads::default();
    let name = Name::within("shop", "web");
    let other = old.servers.get(Place::CLUSTER, &STATEFUL_SET, &name);
    reads.objects.insert(Address::new(Place::CLUSTER, &STATEFUL_SET, name), other);
    let pods = cluster.servers.list(Place::CLUSTER, &POD, None);
    reads.lists.insert((Place::CLUSTER, POD, Some("shop".to_owned())), pods);
    let step = cluster.servers.view().step_with(&room(), SUBJECT, &reads);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
}

#[test]
fn a_pod_that_ended_is_made_again() {
    let mut cluster = Cluster::running(set(&json!({})));
    let failed = json!({"status": {"phase": "Failed"}});
    cluster.servers.change(Place::CLUSTER, &POD, &Name::within("shop", "web-0"), &failed);
    cluster.settle();
    assert_eq!(cluster.pods(), ["-web-0 one", "web-1 one"]);
    cluster.let_go();
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 one"]);
}

#[test]
fn a_pod_of_an_ordinal_is_adopted_and_one_whose_labels_stray_is_released() {
    let pod = json!({"kind": "Pod", "spec": {"containers": [{"name": "c", "image": "own"}]},
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "u", "labels": {"app": "web"}}});
    let mut cluster = Cluster::with(set(&json!({})));
    cluster.servers.put(Place::CLUSTER, pod);
    let stranger = json!({"kind": "Pod", "metadata": {"name": "other", "namespace": "shop",
        "uid": "v", "labels": {"app": "web"}}});
    cluster.servers.put(Place::CLUSTER, stranger);
    cluster.settle();
    let owner = |cluster: &Cluster, pod: &str| {
        cluster.json(&POD, pod)["metadata"]["ownerReferences"][0]["uid"].clone()
    };
    assert_eq!(
        (owner(&cluster, "web-0"), owner(&cluster, "other")),
        (json!("uid-web"), Value::Null)
    );
    let moved = json!({"metadata": {"labels": {"app": "x"}}});
    cluster.servers.change(Place::CLUSTER, &POD, &Name::within("shop", "web-0"), &moved);
    cluster.settle();
    assert_eq!(owner(&cluster, "web-0"), Value::Null);
    assert_eq!(cluster.set()["status"]["replicas"], 0, "its name is taken");
}

#[test]
fn what_cannot_be_served_is_said_and_no_pod_is_made() {
    let placed = namespace(&json!({"metadata": {"labels": {"interlock.dev/grant": "shop"},
        "annotations": {"interlock.dev/grant": "uid", "interlock.dev/epoch": "3"}}}));
    let mut cluster = Cluster::with(with_claims(&json!({})));
    cluster.servers.put(Place::CLUSTER, placed.clone());
    let run = cluster.settle();
    let said = condition(&cluster.set(), NOT_SUPPORTED).clone();
    let message = said["message"].as_str().unwrap_or_default();
    assert!(message.contains("spec.volumeClaimTemplates is not supported"), "{message}");
    assert_eq!((cluster.pods().len(), run.events.len()), (0, 1));
    let name = "w".repeat(70);
    let long = set(&json!({"metadata": {"name": name}}));
    let servers = TestServers::of(&room()).with([namespace(&json!({})), long]);
    let mut cluster = Cluster { servers };
    cluster.servers.settle(&room(), &mut NoMachine, &format!("shop/{name}"));
    let said = condition(&cluster.json(&STATEFUL_SET, &name), NOT_SUPPORTED).clone();
    assert!(said["message"].as_str().is_some_and(|it| it.contains("shorter metadata.name")));
    // In a placed namespace a set without claims is served, and its pods say their epoch.
    let mut cluster = Cluster::with(set(&json!({})));
    cluster.servers.put(Place::CLUSTER, placed);
    cluster.settle();
    let pod = cluster.servers.get(Place::CLUSTER, &POD, &Name::within("shop", "web-0"));
    let pod = pod.expect("a pod");
    assert_eq!(annotation(&pod, "interlock.dev/epoch"), Some("3"));
    assert_eq!(label(&pod, "interlock.dev/grant"), Some("shop"));
}

#[test]
fn old_revisions_go_beyond_the_limit() {
    let mut cluster =
        Cluster::with(set(&json!({"spec": {"replicas": 0, "revisionHistoryLimit": 1}})));
    for picture in ["one", "two", "three", "four"] {
        cluster.change(&image(picture));
        cluster.settle();
    }
    let revisions = cluster.servers.list(Place::CLUSTER, &CONTROLLER_REVISION, None);
    let mut numbers: Vec<i64> =
        revisions.iter().filter_map(|it| it.data["revision"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 4]);
}

#[test]
fn revisions_that_an_orphaned_set_left_are_taken_over() {
    let mut cluster = Cluster::running(set(&json!({})));
    let name = cluster.set()["status"]["updateRevision"].as_str().expect("a name").to_owned();
    let orphan = json!({"metadata": {"ownerReferences": null}});
    cluster.servers.change(
        Place::CLUSTER,
        &CONTROLLER_REVISION,
        &Name::within("shop", &name),
        &orphan,
    );
    cluster.settle();
    let owner = cluster.json(&CONTROLLER_REVISION, &name)["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["uid"], "uid-web");
    assert_eq!(cluster.pods(), ["web-0 one", "web-1 one"], "no pod is replaced for that");
}

#[test]
fn a_revision_name_that_somebody_has_is_gone_round() {
    let mut cluster = Cluster::with(set(&json!({})));
    cluster.settle();
    let name = cluster.set()["status"]["updateRevision"].as_str().expect("a name").to_owned();
    let mut other = Cluster::with(set(&json!({})));
    other.servers.put(
        Place::CLUSTER,
        json!({"kind": "ControllerRevision", "data": {}, "revision": 1,
        "metadata": {"name": name, "namespace": "shop", "uid": "x"}}),
    );
    other.settle();
    assert_eq!(other.set()["status"]["collisionCount"], 1);
    assert_ne!(other.set()["status"]["updateRevision"], json!(name));
    assert_eq!(other.pods(), ["web-0 one"]);
}

#[test]
fn nothing_is_done_for_a_set_or_in_a_namespace_that_is_being_deleted() {
    let leaving =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
    let mut cluster = Cluster::with(set(&leaving));
    assert!(cluster.settle().writes.is_empty());
    let mut cluster = Cluster::with(set(&json!({})));
    cluster.servers.put(Place::CLUSTER, namespace(&leaving));
    cluster.settle();
    assert!(cluster.pods().is_empty());
    let servers = TestServers::of(&room()).with([set(&json!({}))]);
    let mut cluster = Cluster { servers };
    cluster.settle();
    assert!(cluster.pods().is_empty(), "nobody knows yet of which epoch the pods would be");
}

#[test]
fn a_deletion_carries_the_version_of_the_pod() {
    let mut cluster = Cluster::running(set(&json!({})));
    cluster.change(&json!({"spec": {"replicas": 1}}));
    let run = cluster.settle();
    let deletes: Vec<&Write> =
        run.writes.iter().filter(|write| matches!(write, Write::Delete { .. })).collect();
    let [Write::Delete { uid, resource_version, .. }] = deletes[..] else { panic!("{deletes:?}") };
    assert_eq!((uid.as_str(), resource_version.is_some()), ("uid-web-1", true));
}

#[test]
fn broken_objects_do_not_break_it() {
    let cluster = Cluster::running(with_claims(&json!({})));
    let revision = cluster.set()["status"]["updateRevision"].as_str().expect("a name").to_owned();
    let mut objects = vec![
        namespace(&json!({})),
        cluster.set(),
        cluster.json(&POD, "web-0"),
        cluster.json(&POD, "web-1"),
        cluster.json(&CLAIM, "data-web-0"),
        cluster.json(&CONTROLLER_REVISION, &revision),
    ];
    survives(&room(), &NoMachine, &objects);
    judged_again(&room(), &objects);
    objects[1] = patched(objects[1].clone(), &json!({"spec": {"replicas": 2_147_483_647}}));
    survives(&room(), &NoMachine, &objects);
}
