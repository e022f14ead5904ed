use super::{Health, State, health};
use jiff::Timestamp;
use serde_json::{Value, json};

fn judged(object: &Value) -> Health {
    let now = Timestamp::from_second(1_000_000).expect("a time");
    health(&serde_json::from_value(object.clone()).expect("an object"), now)
}

fn of(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind});
    object["metadata"] = json!({"name": "x", "namespace": "shop", "generation": 2});
    interlock_kernel::testing::merge(&mut object, &rest);
    object
}

/// Each row: the state, the reason, and what is in the object.
fn rows(api_version: &str, kind: &str, rows: &[(State, &str, Value)]) {
    for (state, reason, rest) in rows {
        let found = judged(&of(api_version, kind, rest.clone()));
        assert_eq!((found.state, found.reason.as_str()), (*state, *reason), "{kind} {rest}");
        assert!(!found.message.is_empty(), "{kind} {rest}");
    }
}

use State::{Current, Failed, InProgress, Terminating, Unknown};

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "as it says"})
}

#[test]
fn any_object_may_say_that_it_is_deleted_unseen_reconciling_or_stalled() {
    for (api_version, kind) in [("example.com/v1", "Widget"), ("apps/v1", "Deployment")] {
        let at_work =
            |kind, status| json!({"status": {"conditions": [condition(kind, status, "Why")]}});
        rows(
            api_version,
            kind,
            &[
                (
                    Terminating,
                    "Terminating",
                    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                ),
                (
                    InProgress,
                    "LatestGenerationNotObserved",
                    json!({"status": {"observedGeneration": 1}}),
                ),
                (Unknown, "Unreadable", json!({"status": {"observedGeneration": "two"}})),
                (InProgress, "Why", at_work("Reconciling", "True")),
                (Failed, "Why", at_work("Stalled", "True")),
            ],
        );
    }
}

#[test]
fn a_kind_that_nobody_knows_counts_by_its_condition_ready() {
    let ready = |status| json!({"status": {"conditions": [condition("Ready", status, "Why")]}});
    rows(
        "example.com/v1",
        "Widget",
        &[
            (Current, "Current", json!({})),
            (Current, "Current", json!({"status": {"conditions": "nonsense"}})),
            (Current, "Current", ready("True")),
            (InProgress, "Why", ready("False")),
            (InProgress, "Unknown", ready("Unknown")),
            (Current, "Current", ready("Perhaps")),
            (
                Current,
                "Current",
                json!({"status": {"conditions": [condition("Stalled", "False", "")]}}),
            ),
        ],
    );
    // A namesake in another group is another kind.
    rows("example.com/v1", "Deployment", &[(Current, "Current", json!({}))]);
}

fn deployment(status: Value) -> Value {
    let mut whole = json!({"spec": {"replicas": 2}, "status": {
        "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2,
        "readyReplicas": 2, "conditions": [condition("Available", "True", "")],
    }});
    interlock_kernel::testing::merge(&mut whole, &status);
    whole
}

#[test]
fn a_deployment_is_current_once_its_new_replicas_are_available() {
    let count = |key: &str, count: i64| deployment(json!({"status": {key: count}}));
    let is_available = condition("Available", "True", "");
    let with = |conditions: Value| {
        let spec = json!({"progressDeadlineSeconds": 60});
        deployment(json!({"spec": spec, "status": {"conditions": conditions}}))
    };
    rows(
        "apps/v1",
        "Deployment",
        &[
            (Current, "Current", deployment(json!({}))),
            (InProgress, "LessReplicas", json!({})),
            (InProgress, "LatestGenerationNotObserved", count("observedGeneration", 1)),
            (InProgress, "LessReplicas", count("replicas", 1)),
            (InProgress, "LessUpdated", count("updatedReplicas", 1)),
            (InProgress, "ExtraPods", count("replicas", 3)),
            (InProgress, "LessAvailable", count("availableReplicas", 1)),
            (InProgress, "LessReady", count("readyReplicas", 1)),
            (
                InProgress,
                "DeploymentNotAvailable",
                deployment(json!({"status": {"conditions": []}})),
            ),
            (InProgress, "ReplicaSetNotAvailable", with(json!([is_available]))),
            (
                Current,
                "Current",
                with(json!([
                    is_available,
                    condition("Progressing", "True", "NewReplicaSetAvailable"),
                ])),
            ),
            (
                Failed,
                "ProgressDeadlineExceeded",
                with(json!([condition("Progressing", "False", "ProgressDeadlineExceeded")])),
            ),
            // One replica is what a spec that does not say means.
            (InProgress, "ExtraPods", deployment(json!({"spec": {"replicas": null}}))),
        ],
    );
}

#[test]
fn a_replica_set_is_current_once_its_replicas_are_available() {
    let whole = |status: Value| {
        let mut whole = json!({"spec": {"replicas": 2}, "status": {
            "observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 2,
            "availableReplicas": 2, "readyReplicas": 2,
        }});
        interlock_kernel::testing::merge(&mut whole["status"], &status);
        whole
    };
    let failure = json!({"conditions": [condition("ReplicaFailure", "True", "Quota")]});
    rows(
        "apps/v1",
        "ReplicaSet",
        &[
            (Current, "Current", whole(json!({}))),
            (InProgress, "ReplicaFailure", whole(failure)),
            (InProgress, "LessLabelled", whole(json!({"fullyLabeledReplicas": 1}))),
            (InProgress, "LessAvailable", whole(json!({"availableReplicas": 1}))),
            (InProgress, "LessReady", whole(json!({"readyReplicas": 1}))),
            (InProgress, "ExtraPods", whole(json!({"replicas": 3}))),
        ],
    );
}

#[test]
fn a_daemon_set_is_current_once_it_is_on_every_node() {
    let whole = |status: Value| {
        let mut whole = json!({"status": {
            "observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": 2,
        }});
        interlock_kernel::testing::merge(&mut whole["status"], &status);
        whole
    };
    rows(
        "apps/v1",
        "DaemonSet",
        &[
            (Current, "Current", whole(json!({}))),
            (InProgress, "NoGeneration", json!({"metadata": {"generation": null}})),
            (InProgress, "NoObservedGeneration", json!({})),
            (InProgress, "NoDesiredNumber", whole(json!({"desiredNumberScheduled": null}))),
            (InProgress, "LessCurrent", whole(json!({"currentNumberScheduled": 1}))),
            (InProgress, "LessUpdated", whole(json!({"updatedNumberScheduled": 1}))),
            (InProgress, "LessAvailable", whole(json!({"numberAvailable": 1}))),
            (InProgress, "LessReady", whole(json!({"numberReady": 1}))),
        ],
    );
}

#[test]
fn a_stateful_set_is_current_once_its_revision_is() {
    let whole = |rest: Value| {
        let mut whole = json!({"spec": {"replicas": 2}, "status": {
            "observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "currentReplicas": 2,
            "updatedReplicas": 2, "currentRevision": "b", "updateRevision": "b",
        }});
        interlock_kernel::testing::merge(&mut whole, &rest);
        whole
    };
    let partition = |updated: i64| {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
        whole(json!({"spec": {"updateStrategy": strategy},
            "status": {"updatedReplicas": updated, "currentReplicas": 0}}))
    };
    rows(
        "apps/v1",
        "StatefulSet",
        &[
            (Current, "Current", whole(json!({}))),
            (Current, "Current", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})),
            (InProgress, "LessReplicas", whole(json!({"status": {"replicas": 1}}))),
            (InProgress, "LessReady", whole(json!({"status": {"readyReplicas": 1}}))),
            (InProgress, "ExtraPods", whole(json!({"status": {"replicas": 3}}))),
            (Current, "Current", partition(1)),
            (InProgress, "PartitionRollout", partition(0)),
            (InProgress, "LessCurrent", whole(json!({"status": {"currentReplicas": 1}}))),
            (InProgress, "RevisionMismatch", whole(json!({"status": {"currentRevision": "a"}}))),
        ],
    );
}

#[test]
fn a_job_is_current_while_it_runs_and_failed_once_it_failed() {
    let with = |kind| json!({"status": {"conditions": [condition(kind, "True", "")]}});
    rows(
        "batch/v1",
        "Job",
        &[
            (InProgress, "JobNotStarted", json!({})),
            (Current, "Current", json!({"status": {"startTime": "2026-01-01T00:00:00Z"}})),
            (Current, "Current", with("Complete")),
            (Current, "Current", with("Suspended")),
            (Failed, "JobFailed", with("Failed")),
        ],
    );
    rows("batch/v1", "CronJob", &[(Current, "Current", json!({}))]);
}

#[test]
fn a_pod_is_current_once_it_is_ready_or_over() {
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    let unschedulable = |seconds: i64| {
        let created = Timestamp::from_second(1_000_000 - seconds).expect("a time").to_string();
        let condition = condition("PodScheduled", "False", "Unschedulable");
        json!({"metadata": {"creationTimestamp": created},
            "status": {"phase": "Pending", "conditions": [condition]}})
    };
    let crashing = json!({"status": {"phase": "Running", "containerStatuses": [
        {"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}, {"name": "log"},
    ]}});
    let ready =
        json!({"status": {"phase": "Running", "conditions": [condition("Ready", "True", "")]}});
    rows(
        "v1",
        "Pod",
        &[
            (InProgress, "PodNotObserved", json!({})),
            (Current, "Current", phase("Succeeded")),
            (Current, "Current", phase("Failed")),
            (InProgress, "PodRunningNotReady", phase("Running")),
            (Current, "Current", ready),
            (Failed, "ContainerCrashLooping", crashing),
            (InProgress, "PodPending", phase("Pending")),
            (InProgress, "PodNotScheduled", unschedulable(14)),
            (Failed, "PodUnschedulable", unschedulable(15)),
            (Unknown, "Unreadable", phase("Dreaming")),
        ],
    );
}

#[test]
fn claims_services_budgets_and_definitions_have_rules_of_their_own() {
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    rows(
        "v1",
        "PersistentVolumeClaim",
        &[
            (InProgress, "NotBound", json!({})),
            (InProgress, "NotBound", phase("Pending")),
            (Current, "Current", phase("Bound")),
        ],
    );
    let balancer = |address: &str| json!({"spec": {"type": "LoadBalancer", "clusterIP": address}});
    rows(
        "v1",
        "Service",
        &[
            (Current, "Current", json!({})),
            (InProgress, "NoIPAssigned", balancer("")),
            (Current, "Current", balancer("10.0.0.1")),
        ],
    );
    let seen = |generation: i64| json!({"status": {"observedGeneration": generation}});
    rows(
        "policy/v1",
        "PodDisruptionBudget",
        &[(Current, "Current", seen(2)), (InProgress, "LatestGenerationNotObserved", seen(1))],
    );
    let with =
        |kind, status, reason| json!({"status": {"conditions": [condition(kind, status, reason)]}});
    rows(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &[
            (InProgress, "Installing", json!({})),
            (InProgress, "Installing", with("Established", "False", "Installing")),
            (Failed, "Conflict", with("Established", "False", "Conflict")),
            (Failed, "Conflict", with("NamesAccepted", "False", "Conflict")),
            (Current, "Current", with("Established", "True", "")),
        ],
    );
    rows("v1", "ConfigMap", &[(Current, "Current", json!({}))]);
    rows("v1", "Secret", &[(Current, "Current", json!({}))]);
}

#[test]
fn an_object_that_cannot_be_read_does_no_harm() {
    let kinds = [
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
        ("v1", "Pod"),
        ("v1", "Service"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ];
    for seed in 1..3_000_u64 {
        let mut dice = interlock_kernel::testing::Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (api_version, kind) = kinds[dice.below(kinds.len())];
        let mut data = deployment(json!({"status": {"phase": "Running"}}));
        interlock_kernel::testing::spoil(&mut data, &mut dice);
        drop(judged(&of(api_version, kind, if data.is_object() { data } else { json!({}) })));
    }
}
