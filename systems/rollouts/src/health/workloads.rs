//! The kinds that have replicas.

use super::{Health, Status, extra, too_few};

/// Without a deadline, or with this one, the controller writes no condition Progressing.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn deployment(seen: &Status<'_>) -> Health {
    let deadline = seen.spec("progressDeadlineSeconds").unwrap_or(NO_DEADLINE);
    let (mut has_replica_set, mut is_available) = (deadline == NO_DEADLINE, false);
    for condition in seen.conditions() {
        match condition.kind {
            "Progressing" if condition.reason == "ProgressDeadlineExceeded" => {
                return Health::failed(condition.reason, "the progress deadline is exceeded");
            }
            "Progressing" => {
                let is_new = condition.reason == "NewReplicaSetAvailable";
                has_replica_set |= is_new && condition.is("True");
            }
            "Available" => is_available |= condition.is("True"),
            _ => {}
        }
    }
    let wanted = seen.spec("replicas").unwrap_or(1);
    let (there, updated) = (seen.count("replicas"), seen.count("updatedReplicas"));
    let before =
        [("LessReplicas", "replicas", there, wanted), ("LessUpdated", "updated", updated, wanted)];
    let after = [
        ("LessAvailable", "available", seen.count("availableReplicas"), updated),
        ("LessReady", "ready", seen.count("readyReplicas"), wanted),
    ];
    let missing = too_few(&before).or_else(|| extra(there, wanted)).or_else(|| too_few(&after));
    missing.unwrap_or_else(|| match (has_replica_set, is_available) {
        (false, _) => {
            Health::in_progress("ReplicaSetNotAvailable", "the new ReplicaSet is not available")
        }
        (true, false) => {
            Health::in_progress("DeploymentNotAvailable", "the Deployment is not available")
        }
        (true, true) => Health::current(format!("available; replicas: {there}")),
    })
}

pub(super) fn replica_set(seen: &Status<'_>) -> Health {
    let mut conditions = seen.conditions();
    if conditions.any(|condition| condition.kind == "ReplicaFailure" && condition.is("True")) {
        return Health::in_progress("ReplicaFailure", "pods could not be made; see its conditions");
    }
    let wanted = seen.spec("replicas").unwrap_or(1);
    let there = seen.count("replicas");
    let rows = [
        ("LessLabelled", "labelled", seen.count("fullyLabeledReplicas"), wanted),
        ("LessAvailable", "available", seen.count("availableReplicas"), wanted),
        ("LessReady", "ready", seen.count("readyReplicas"), wanted),
    ];
    let missing = too_few(&rows).or_else(|| extra(there, wanted));
    missing.unwrap_or_else(|| Health::current(format!("available; replicas: {there}")))
}

/// Where its controller has seen it at all, both generations are set.
pub(super) fn daemon_set(seen: &Status<'_>) -> Health {
    if seen.object.metadata.generation.is_none() {
        return Health::in_progress("NoGeneration", "metadata.generation is not set");
    }
    if seen.data["status"]["observedGeneration"].is_null() {
        return Health::in_progress("NoObservedGeneration", "its controller has not seen it yet");
    }
    let Some(wanted) = seen.data["status"]["desiredNumberScheduled"].as_i64() else {
        return Health::in_progress("NoDesiredNumber", "its controller has not counted nodes yet");
    };
    let rows = [
        ("LessCurrent", "current", seen.count("currentNumberScheduled"), wanted),
        ("LessUpdated", "updated", seen.count("updatedNumberScheduled"), wanted),
        ("LessAvailable", "available", seen.count("numberAvailable"), wanted),
        ("LessReady", "ready", seen.count("numberReady"), wanted),
    ];
    let scheduled = || Health::current(format!("scheduled as wanted; replicas: {wanted}"));
    too_few(&rows).unwrap_or_else(scheduled)
}

pub(super) fn stateful_set(seen: &Status<'_>) -> Health {
    let strategy = &seen.data["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return Health::current("people update its pods: the update strategy is OnDelete");
    }
    let wanted = seen.spec("replicas").unwrap_or(1);
    let (there, updated) = (seen.count("replicas"), seen.count("updatedReplicas"));
    let rows = [
        ("LessReplicas", "replicas", there, wanted),
        ("LessReady", "ready", seen.count("readyReplicas"), wanted),
    ];
    if let Some(missing) = too_few(&rows).or_else(|| extra(there, wanted)) {
        return missing;
    }
    if let Some(partition) = strategy["rollingUpdate"]["partition"].as_i64() {
        let rows = [("PartitionRollout", "updated", updated, wanted.saturating_sub(partition))];
        let done = || Health::current(format!("the partition is updated: {updated}"));
        return too_few(&rows).unwrap_or_else(done);
    }
    let rows = [("LessCurrent", "current", seen.count("currentReplicas"), wanted)];
    if let Some(missing) = too_few(&rows) {
        return missing;
    }
    if seen.word("currentRevision") != seen.word("updateRevision") {
        return Health::in_progress(
            "RevisionMismatch",
            "the updated revision is not the current one yet",
        );
    }
    Health::current(format!("scheduled as wanted; replicas: {there}"))
}
