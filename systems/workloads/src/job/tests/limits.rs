//! What ends a Job, stops it, and removes it.

use super::*;

#[test]
fn after_too_many_failures_the_job_fails_and_waits_longer_each_time() {
    let mut cluster = Cluster::started(&json!({}));
    for (pod, wait) in [("sum-0", 10_u64), ("sum-1", 20)] {
        let run = cluster.end(pod, "Failed");
        assert_eq!(run.waits_seconds, Some(wait));
        cluster.servers.pass(wait.cast_signed());
        cluster.settle();
    }
    assert_eq!(cluster.pods(), ["sum-0", "sum-1", "sum-2!"]);
    let run = cluster.end("sum-2", "Failed");
    let failed = condition(&cluster.job(), "Failed").clone();
    assert_eq!(
        (&failed["status"], &failed["reason"]),
        (&json!("True"), &json!("BackoffLimitExceeded"))
    );
    assert!(cluster.holds("FailureTarget"));
    assert_eq!((cluster.status()["failed"].clone(), run.events.len()), (json!(3), 1));
    assert!(cluster.status()["completionTime"].is_null());
}

#[test]
fn a_success_ends_the_back_off() {
    let mut cluster = Cluster::started(&json!({"spec": {"completions": 3}}));
    cluster.end("sum-0", "Failed");
    cluster.servers.pass(10);
    cluster.settle();
    cluster.servers.pass(1);
    cluster.end("sum-1", "Succeeded");
    assert_eq!(cluster.pods(), ["sum-0", "sum-1", "sum-2!"]);
}

#[test]
fn containers_that_are_started_again_too_often_fail_the_job() {
    let mut cluster =
        Cluster::started(&json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}));
    let again = |count: u32| json!({"status": {"containerStatuses": [{"restartCount": count}]}});
    cluster.change_pod("sum-0", &again(1));
    cluster.settle();
    assert!(!cluster.holds("FailureTarget"));
    cluster.change_pod("sum-0", &again(2));
    cluster.settle();
    assert!(cluster.holds("FailureTarget") && !cluster.holds("Failed"));
    assert_eq!(cluster.pods(), ["-sum-0!"]);
    cluster.let_go();
    assert!(cluster.holds("Failed") && cluster.pods().is_empty());
    assert_eq!(cluster.status()["failed"], 1);
}

#[test]
fn an_init_container_counts_as_the_containers_of_a_pod_do() {
    let mut cluster =
        Cluster::started(&json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}));
    let once = json!([{"restartCount": 1}]);
    let again = json!({"status": {"initContainerStatuses": once, "containerStatuses": once}});
    cluster.change_pod("sum-0", &again);
    cluster.settle();
    assert!(cluster.holds("FailureTarget"));
    // A pod that fails while it is initialized delays the next one, too.
    let mut cluster = Cluster::started(&json!({}));
    let finished = cluster.servers.now.to_string();
    let failed = json!({"status": {
        "phase": "Failed",
        "initContainerStatuses": [{"state": {"terminated": {"finishedAt": finished}}}],
        "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
    }});
    cluster.change_pod("sum-0", &failed);
    assert_eq!(cluster.settle().waits_seconds, Some(10));
}

#[test]
fn a_job_that_takes_too_long_is_stopped() {
    let mut cluster = Cluster::with(job(&json!({"spec": {"activeDeadlineSeconds": 60}})));
    assert_eq!(cluster.settle().waits_seconds, Some(60));
    cluster.servers.pass(60);
    cluster.settle();
    assert_eq!(condition(&cluster.job(), "FailureTarget")["reason"], "DeadlineExceeded");
    assert_eq!(cluster.pods(), ["-sum-0!"]);
    assert!(!cluster.holds("Failed"), "a pod of it still runs");
    cluster.let_go();
    assert_eq!(condition(&cluster.job(), "Failed")["reason"], "DeadlineExceeded");
}

#[test]
fn what_is_not_supported_fails_the_job_with_the_field_and_what_to_use() {
    for (field, value) in [
        ("podFailurePolicy", json!({"rules": []})),
        ("successPolicy", json!({"rules": []})),
        ("backoffLimitPerIndex", json!(1)),
        ("maxFailedIndexes", json!(1)),
    ] {
        let cluster = Cluster::started(&json!({"spec": {field: value}}));
        let failed = condition(&cluster.job(), "Failed").clone();
        let message = failed["message"].as_str().unwrap_or_default();
        assert_eq!(failed["reason"], "NotSupported");
        assert!(
            message.starts_with(&format!("spec.{field} is not supported here; use ")),
            "{message}"
        );
        assert!(cluster.pods().is_empty());
    }
}

#[test]
fn a_suspended_job_has_no_pods_and_their_ends_are_no_failures() {
    let mut cluster = Cluster::started(&json!({}));
    cluster.change(&json!({"spec": {"suspend": true}}));
    cluster.settle();
    assert!(cluster.holds("Suspended"));
    assert!(cluster.status()["startTime"].is_null());
    assert_eq!(cluster.pods(), ["-sum-0!"]);
    cluster.let_go();
    assert!(cluster.pods().is_empty());
    cluster.servers.pass(100);
    cluster.change(&json!({"spec": {"suspend": false}}));
    cluster.settle();
    assert_eq!(cluster.pods(), ["sum-0!"]);
    let status = cluster.status();
    assert!(!cluster.holds("Suspended") && status["startTime"].is_string());
    assert!(status["failed"].as_u64().unwrap_or(0) == 0, "{status}");
}

#[test]
fn with_less_parallelism_a_pod_that_is_not_ready_goes_and_does_not_count() {
    let mut cluster = Cluster::started(&json!({"spec": {"parallelism": 2, "completions": 5}}));
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.change_pod("sum-1", &ready);
    cluster.change(&json!({"spec": {"parallelism": 1}}));
    cluster.settle();
    assert_eq!(cluster.pods(), ["-sum-0!", "sum-1!"]);
    cluster.let_go();
    assert_eq!(cluster.pods(), ["sum-1!"]);
    assert!(cluster.status()["failed"].as_u64().unwrap_or(0) == 0);
}

#[test]
fn one_that_succeeds_while_it_is_taken_away_has_succeeded() {
    let mut cluster = Cluster::started(&json!({}));
    cluster.change(&json!({"spec": {"suspend": true}}));
    cluster.settle();
    cluster.end("sum-0", "Succeeded");
    assert!(cluster.holds("Complete"));
}

#[test]
fn none_is_needed_and_the_job_is_complete() {
    let cluster = Cluster::started(&json!({"spec": {"completions": 0}}));
    assert!(cluster.holds("Complete") && cluster.pods().is_empty());
}

#[test]
fn after_its_ttl_a_job_goes_and_its_pods_before_it() {
    let mut cluster = Cluster::started(&json!({"spec": {"ttlSecondsAfterFinished": 30}}));
    let run = cluster.end("sum-0", "Succeeded");
    assert_eq!(run.waits_seconds, Some(30));
    cluster.servers.pass(30);
    cluster.settle();
    let job = cluster.job();
    assert_eq!(job["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(job["metadata"]["deletionTimestamp"].is_string());
}

#[test]
fn a_job_stays_until_its_cron_job_has_noted_its_time() {
    let owned = json!({"metadata": {
        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "1970-01-12T13:46:00Z"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "each",
            "uid": "uid-each", "controller": true}]},
        "spec": {"ttlSecondsAfterFinished": 0}});
    let cron_job = json!({"kind": "CronJob", "spec": {}, "metadata": {"name": "each",
        "namespace": "shop", "uid": "uid-each"}});
    let mut cluster = Cluster::with(job(&owned));
    cluster.servers.put(Place::CLUSTER, cron_job);
    cluster.settle();
    cluster.end("sum-0", "Succeeded");
    assert!(cluster.job()["metadata"]["deletionTimestamp"].is_null());
    let noted = json!({"status": {"lastScheduleTime": "1970-01-12T13:46:00Z"}});
    cluster.servers.change(Place::CLUSTER, &CRON_JOB, &Name::within("shop", "each"), &noted);
    cluster.settle();
    assert!(cluster.job()["metadata"]["deletionTimestamp"].is_string());
}
