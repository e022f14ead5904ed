//! Each row of what a Job does.

mod ends;
mod limits;

use super::*;
use crate::recorded::judged_again;
use crate::template::FINALIZER_PROCESS;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Address, Kind, Name};
use serde_json::{Value, json};

const SUBJECT: &str = "shop/sum";

fn room() -> Jobs {
    Jobs::new("local")
}

fn namespace() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "uid-shop"}})
}

fn job(patch: &Value) -> Value {
    let object = json!({
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "shop", "uid": "uid-sum", "generation": 1},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 2,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-sum"}},
            "template": {
                "metadata": {"labels": {"batch.kubernetes.io/controller-uid": "uid-sum"}},
                "spec": {"runtimeClassName": "interlock-process", "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "i"}]}}},
    });
    patched(object, patch)
}

struct Cluster {
    servers: TestServers,
}

impl Cluster {
    fn with(job: Value) -> Cluster {
        Cluster { servers: TestServers::of(&room()).with([namespace(), job]) }
    }

    /// A Job whose first pods were made.
    fn started(patch: &Value) -> Cluster {
        let mut cluster = Cluster::with(job(patch));
        cluster.settle();
        cluster
    }

    fn settle(&mut self) -> Run<Nothing> {
        self.servers.settle(&room(), &mut NoMachine, SUBJECT)
    }

    fn json(&self, kind: &Kind, name: &str) -> Value {
        self.servers.json(Place::CLUSTER, kind, &Name::within("shop", name))
    }

    fn job(&self) -> Value {
        self.json(&JOB, "sum")
    }

    fn status(&self) -> Value {
        self.job()["status"].clone()
    }

    fn change(&mut self, patch: &Value) {
        self.servers.change(Place::CLUSTER, &JOB, &Name::within("shop", "sum"), patch);
    }

    fn change_pod(&mut self, pod: &str, patch: &Value) {
        self.servers.change(Place::CLUSTER, &POD, &Name::within("shop", pod), patch);
    }

    /// The process of a pod ends.
    fn end(&mut self, pod: &str, phase: &str) -> Run<Nothing> {
        let finished = self.servers.now.to_string();
        let ended = json!({"status": {"phase": phase, "containerStatuses": [
            {"state": {"terminated": {"finishedAt": finished}}}]}});
        self.change_pod(pod, &ended);
        self.settle()
    }

    fn delete_pod(&mut self, pod: &str) {
        self.servers.delete(Place::CLUSTER, &POD, &Name::within("shop", pod));
    }

    /// The processes of all pods that are being deleted are gone.
    fn let_go(&mut self) {
        for pod in self.servers.list(Place::CLUSTER, &POD, None) {
            if pod.metadata.deletion_timestamp.is_some() {
                let name = Name::of(&pod);
                let change =
                    interlock_kernel::metadata::take_finalizer_off(&pod, FINALIZER_PROCESS);
                self.servers.change(Place::CLUSTER, &POD, &name, &change);
            }
        }
        self.settle();
    }

    /// The pods, each with `-` before it if it is being deleted, and `!` after it if its end is not counted yet.
    fn pods(&self) -> Vec<String> {
        let all = self.servers.list(Place::CLUSTER, &POD, None);
        let text = |pod: &Object| {
            let leaving = if pod.metadata.deletion_timestamp.is_some() { "-" } else { "" };
            let is_held = interlock_kernel::metadata::has_finalizer(pod, FINALIZER_TRACKING);
            format!("{leaving}{}{}", name_of(pod), if is_held { "!" } else { "" })
        };
        all.iter().map(text).collect()
    }

    fn holds(&self, kind: &str) -> bool {
        condition(&self.job(), kind)["status"] == "True"
    }
}

#[test]
fn a_job_runs_one_pod_and_is_complete_when_it_has_succeeded() {
    let mut cluster = Cluster::started(&json!({}));
    assert_eq!(cluster.pods(), ["sum-0!"]);
    let pod = cluster.json(&POD, "sum-0");
    assert_eq!(pod["metadata"]["finalizers"], json!([FINALIZER_PROCESS, FINALIZER_TRACKING]));
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "uid-sum");
    assert_eq!(pod["spec"]["nodeName"], "local");
    let status = cluster.status();
    assert_eq!((&status["active"], &status["ready"]), (&json!(1), &json!(0)));
    assert!(status["startTime"].is_string());
    let run = cluster.end("sum-0", "Succeeded");
    assert_eq!(cluster.pods(), ["sum-0"], "it stays for whoever reads its logs");
    let status = cluster.status();
    assert_eq!((&status["succeeded"], &status["active"]), (&json!(1), &json!(0)));
    assert!(cluster.holds("SuccessCriteriaMet") && cluster.holds("Complete"));
    assert!(status["completionTime"].is_string());
    assert_eq!(run.events.len(), 1);
    assert!(cluster.settle().writes.is_empty());
}

#[test]
fn as_many_run_as_may_and_are_needed() {
    let mut cluster = Cluster::started(&json!({"spec": {"parallelism": 2, "completions": 3}}));
    assert_eq!(cluster.pods(), ["sum-0!", "sum-1!"]);
    cluster.end("sum-0", "Succeeded");
    assert_eq!(cluster.pods(), ["sum-0", "sum-1!", "sum-2!"]);
    cluster.end("sum-1", "Succeeded");
    assert_eq!(cluster.pods(), ["sum-0", "sum-1", "sum-2!"], "three are enough");
    cluster.end("sum-2", "Succeeded");
    assert!(cluster.holds("Complete"));
    assert_eq!(cluster.status()["succeeded"], 3);
}

#[test]
fn without_completions_the_first_success_says_that_nothing_is_left() {
    let queue = json!({"spec": {"parallelism": 2, "completions": null}});
    let mut cluster = Cluster::started(&queue);
    cluster.end("sum-0", "Succeeded");
    assert_eq!(cluster.pods(), ["sum-0", "sum-1!"]);
    assert!(!cluster.holds("Complete"));
    cluster.end("sum-1", "Failed");
    assert_eq!(cluster.pods(), ["sum-0", "sum-1"]);
    assert!(cluster.holds("Complete"));
}

#[test]
fn each_index_has_one_pod_that_knows_it() {
    let indexed =
        json!({"spec": {"completionMode": "Indexed", "parallelism": 2, "completions": 3}});
    let mut cluster = Cluster::started(&indexed);
    assert_eq!(cluster.pods(), ["sum-0-0!", "sum-1-0!"]);
    let pod = cluster.json(&POD, "sum-1-0");
    assert_eq!(pod["metadata"]["labels"][INDEX], "1");
    assert_eq!(pod["metadata"]["annotations"][INDEX], "1");
    assert_eq!(pod["spec"]["hostname"], "sum-1");
    let variable = json!([{"name": "JOB_COMPLETION_INDEX", "value": "1"}]);
    assert_eq!(pod["spec"]["containers"][0]["env"], variable);
    cluster.end("sum-1-0", "Succeeded");
    assert_eq!(cluster.pods(), ["sum-0-0!", "sum-1-0", "sum-2-0!"]);
    cluster.end("sum-0-0", "Failed");
    cluster.servers.pass(10);
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0-0", "sum-0-1!", "sum-1-0", "sum-2-0!"]);
    cluster.end("sum-0-1", "Succeeded");
    cluster.end("sum-2-0", "Succeeded");
    let status = cluster.status();
    assert_eq!((&status["completedIndexes"], &status["succeeded"]), (&json!("0-2"), &json!(3)));
    assert_eq!(status["failed"], 1);
    assert!(cluster.holds("Complete"));
}

#[test]
fn a_name_that_somebody_has_is_gone_round() {
    let other =
        json!({"kind": "Pod", "metadata": {"name": "sum-0", "namespace": "shop", "uid": "x"}});
    let mut cluster = Cluster::with(job(&json!({})));
    cluster.servers.put(Place::CLUSTER, other);
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0", "sum-1!"]);
}

#[test]
fn a_pod_is_made_only_if_the_job_is_as_the_cache_shows_it() {
    let mut cluster = Cluster::started(&json!({"spec": {"parallelism": 0}}));
    cluster.change(&json!({"spec": {"parallelism": 1}}));
    let view = cluster.servers.view();
    let step = view.step_with(&room(), SUBJECT, &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let other = Cluster::with(job(&json!({"metadata": {"uid": "another"}})));
    let mut reads = LiveReads::default();
    let name = Name::within("shop", "sum");
    let live = other.servers.get(Place::CLUSTER, &JOB, &name);
    reads.objects.insert(Address::new(Place::CLUSTER, &JOB, name), live);
    reads.lists.insert((Place::CLUSTER, POD, Some("shop".to_owned())), Vec::new());
    let step = view.step_with(&room(), SUBJECT, &reads);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
}

#[test]
fn a_job_of_another_controller_is_left_to_it() {
    let managed = json!({"spec": {"managedBy": "example.com/queue"}});
    let mut cluster = Cluster::with(job(&managed));
    assert!(cluster.settle().writes.is_empty());
    let ours = json!({"spec": {"managedBy": "kubernetes.io/job-controller"}});
    assert_eq!(Cluster::started(&ours).pods(), ["sum-0!"]);
}

#[test]
fn in_a_namespace_that_is_being_deleted_or_unknown_nothing_is_made() {
    let leaving = patched(
        namespace(),
        &json!({"metadata": {"finalizers": ["x"],
        "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    let mut cluster = Cluster::with(job(&json!({})));
    cluster.servers.put(Place::CLUSTER, leaving);
    cluster.settle();
    assert!(cluster.pods().is_empty());
    let servers = TestServers::of(&room()).with([job(&json!({}))]);
    let mut cluster = Cluster { servers };
    cluster.settle();
    assert!(cluster.pods().is_empty());
}

#[test]
fn a_pod_is_adopted_with_its_finalizer_and_released_without_it() {
    let mut cluster = Cluster::started(&json!({}));
    let orphan = json!({"metadata": {"ownerReferences": null, "finalizers": [FINALIZER_PROCESS]}});
    cluster.change_pod("sum-0", &orphan);
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0!"]);
    let owner = cluster.json(&POD, "sum-0")["metadata"]["ownerReferences"][0]["uid"].clone();
    assert_eq!(owner, "uid-sum");
    let strayed = json!({"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "x"}}});
    cluster.change_pod("sum-0", &strayed);
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0", "sum-1!"]);
    assert_eq!(cluster.json(&POD, "sum-0")["metadata"]["ownerReferences"], json!([]));
}

#[test]
fn broken_objects_do_not_break_it() {
    let indexed = json!({"spec": {"completionMode": "Indexed", "parallelism": 2, "completions": 3,
        "ttlSecondsAfterFinished": 5, "activeDeadlineSeconds": 100}});
    let mut cluster = Cluster::started(&indexed);
    cluster.end("sum-1-0", "Succeeded");
    cluster.end("sum-0-0", "Failed");
    let pods = ["sum-0-0", "sum-1-0", "sum-2-0"].map(|pod| cluster.json(&POD, pod));
    let objects = [vec![namespace(), cluster.job()], pods.to_vec()].concat();
    survives(&room(), &NoMachine, &objects);
    judged_again(&room(), &objects);
    let mut plain =
        Cluster::started(&json!({"spec": {"parallelism": 2_000_000_000}, "status": {}}));
    plain.change(&json!({"spec": {"completions": 2_000_000_000}}));
    survives(&room(), &NoMachine, &[namespace(), plain.job(), plain.json(&POD, "sum-0")]);
}
