//! Each end of a pod is counted once.

use super::*;
use interlock_kernel::testing::assert_allowed;
use interlock_kernel::{Action, Write};

/// Steps as an agent would take them, one write at a time.
fn write(cluster: &mut Cluster) -> Option<Write> {
    let Step::Act(effect) = cluster.servers.step(&room(), &NoMachine, SUBJECT) else { return None };
    let Action::Write(write) = effect.action else { return None };
    assert_allowed(&room(), Right::to_write(&write));
    cluster.servers.apply(&write).expect("the server takes it");
    Some(write)
}

#[test]
fn an_end_goes_into_the_status_before_the_finalizer_goes_off_and_then_becomes_a_number() {
    let mut cluster = Cluster::started(&json!({"spec": {"completions": 2}}));
    cluster.change_pod("sum-0", &json!({"status": {"phase": "Succeeded"}}));
    write(&mut cluster).expect("the uid is noted");
    assert_eq!(cluster.status()["uncountedTerminatedPods"]["succeeded"], json!(["uid-sum-0"]));
    assert_eq!((cluster.pods()[0].as_str(), &cluster.status()["succeeded"]), ("sum-0!", &json!(0)));
    write(&mut cluster).expect("the finalizer goes");
    assert_eq!(cluster.pods()[0], "sum-0");
    write(&mut cluster).expect("it is counted");
    assert_eq!(cluster.status()["uncountedTerminatedPods"]["succeeded"], json!([]));
    assert_eq!(cluster.status()["succeeded"], 1);
}

#[test]
fn an_old_cache_does_not_count_a_pod_again() {
    let mut cluster = Cluster::started(&json!({"spec": {"completions": 2}}));
    let before = cluster.json(&POD, "sum-0");
    cluster.end("sum-0", "Succeeded");
    assert_eq!(cluster.status()["succeeded"], 1);
    let live = cluster.servers.list(Place::CLUSTER, &POD, Some("shop"));
    // The cache shows the pod as it was when it had ended, with its finalizer, and the Job as it is.
    let ended = patched(before, &json!({"status": {"phase": "Succeeded"}}));
    let old =
        Cluster { servers: TestServers::of(&room()).with([namespace(), cluster.job(), ended]) };
    let name = Name::within("shop", "sum");
    let mut reads = LiveReads::default();
    let step = old.servers.view().step_with(&room(), SUBJECT, &reads);
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let same = old.servers.get(Place::CLUSTER, &JOB, &name);
    reads.objects.insert(Address::new(Place::CLUSTER, &JOB, name), same);
    reads.lists.insert((Place::CLUSTER, POD, Some("shop".to_owned())), live);
    let step = old.servers.view().step_with(&room(), SUBJECT, &reads);
    let counts = matches!(&step, Step::Act(effect) if effect.because == "pods have ended");
    assert!(!counts, "{step:?}");
}

#[test]
fn a_pod_that_somebody_deletes_is_counted_when_its_process_is_gone() {
    let mut cluster = Cluster::started(&json!({}));
    cluster.delete_pod("sum-0");
    cluster.settle();
    let status = cluster.status();
    assert_eq!((&status["active"], &status["terminating"]), (&json!(0), &json!(1)));
    assert_eq!(cluster.pods(), ["-sum-0!"], "the next one waits for it");
    cluster.let_go();
    assert_eq!(cluster.status()["failed"], 1);
    assert_eq!(cluster.pods(), ["sum-1!"], "a name is not given again");
}

#[test]
fn a_finalizer_that_somebody_stripped_is_put_back() {
    let mut cluster = Cluster::started(&json!({}));
    cluster.change_pod("sum-0", &json!({"metadata": {"finalizers": [FINALIZER_PROCESS]}}));
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0!"]);
}

#[test]
fn pods_of_a_job_that_is_being_deleted_are_let_go() {
    let mut cluster =
        Cluster::started(&json!({"metadata": {"finalizers": ["foregroundDeletion"]}}));
    cluster.servers.delete(Place::CLUSTER, &JOB, &Name::within("shop", "sum"));
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0"]);
}

#[test]
fn pods_of_a_job_that_is_gone_are_let_go_after_a_live_read() {
    let mut cluster = Cluster::started(&json!({}));
    let name = Name::within("shop", "sum");
    let live = cluster.servers.get(Place::CLUSTER, &JOB, &name);
    cluster.servers.delete(Place::CLUSTER, &JOB, &name);
    let mut reads = LiveReads::default();
    let step = cluster.servers.view().step_with(&room(), SUBJECT, &reads);
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    reads.objects.insert(Address::new(Place::CLUSTER, &JOB, name), live);
    let step = cluster.servers.view().step_with(&room(), SUBJECT, &reads);
    assert!(matches!(step, Step::Wait { .. }), "the cache was behind: {step:?}");
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0"]);
}

#[test]
fn a_new_job_of_the_name_lets_go_of_the_pods_of_the_old_one() {
    let mut cluster = Cluster::started(&json!({}));
    cluster.servers.delete(Place::CLUSTER, &JOB, &Name::within("shop", "sum"));
    let label = json!({"batch.kubernetes.io/controller-uid": "uid-next"});
    let next = job(&json!({"metadata": {"uid": "uid-next"}, "spec": {
        "selector": {"matchLabels": label}, "template": {"metadata": {"labels": label}}}}));
    cluster.servers.put(Place::CLUSTER, next);
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0", "sum-1!"]);
}

#[test]
fn pods_wake_their_job() {
    let cluster = Cluster::started(&json!({}));
    let name = Name::within("shop", "sum-0");
    let pod = cluster.servers.get(Place::CLUSTER, &POD, &name).expect("the pod");
    let view = cluster.servers.view();
    let woken = room().subjects(&Watch::all(Place::CLUSTER, &POD), &pod, &view);
    assert_eq!(woken, [Subject::from(SUBJECT)]);
}
