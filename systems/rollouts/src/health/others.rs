//! The other built-in kinds that have rules of their own.

use super::{Health, Status};
use jiff::Timestamp;

/// How long a pod may be without a node until it counts as one that no node can take.
const SCHEDULE_SECONDS: i64 = 15;

pub(super) fn job(seen: &Status<'_>) -> Health {
    let (succeeded, failed) = (seen.count("succeeded"), seen.count("failed"));
    let parallelism = seen.spec("parallelism").unwrap_or(1);
    let completions = seen.spec("completions").unwrap_or(parallelism);
    let over = seen.conditions().filter(|condition| condition.is("True")).find_map(|condition| {
        match condition.kind {
            "Complete" => {
                Some(Health::current(format!("complete; succeeded: {succeeded}/{completions}")))
            }
            "Failed" => {
                Some(Health::failed("JobFailed", format!("failed: {failed}/{completions}")))
            }
            // Who suspends a Job does not wait for it.
            "Suspended" => Some(Health::current("the Job is suspended")),
            _ => None,
        }
    });
    over.unwrap_or_else(|| match seen.word("startTime") {
        "" => Health::in_progress("JobNotStarted", "the Job is not started"),
        _ => Health::current(format!(
            "at work; succeeded: {succeeded}, active: {}, failed: {failed}",
            seen.count("active")
        )),
    })
}

pub(super) fn pod(seen: &Status<'_>, now: Timestamp) -> Health {
    match seen.word("phase") {
        "Succeeded" => Health::current("the pod has completed"),
        "Failed" => Health::current("the pod has completed, and not successfully"),
        "Running" => running(seen),
        "Pending" => pending(seen, now),
        "" => Health::in_progress("PodNotObserved", "the pod has no phase yet"),
        other => Health::unknown(format!("the phase {other} is not known")),
    }
}

fn running(seen: &Status<'_>) -> Health {
    let mut conditions = seen.conditions();
    if conditions.any(|condition| condition.kind == "Ready" && condition.is("True")) {
        return Health::current("the pod is ready");
    }
    let containers = seen.data["status"]["containerStatuses"].as_array().into_iter().flatten();
    let crashing = containers.filter(|it| it["state"]["waiting"]["reason"] == "CrashLoopBackOff");
    let crashing: Vec<&str> = crashing.filter_map(|it| it["name"].as_str()).collect();
    if crashing.is_empty() {
        return Health::in_progress("PodRunningNotReady", "the pod is running and not ready");
    }
    let message = format!("containers that crash again and again: {}", crashing.join(", "));
    Health::failed("ContainerCrashLooping", message)
}

fn pending(seen: &Status<'_>, now: Timestamp) -> Health {
    let is_unschedulable = seen.conditions().any(|condition| {
        let is_not = condition.kind == "PodScheduled" && condition.is("False");
        is_not && condition.reason == "Unschedulable"
    });
    if !is_unschedulable {
        return Health::in_progress("PodPending", "the pod is pending");
    }
    let created = seen.object.metadata.creation_timestamp.as_ref();
    let age = created.map(|created| now.as_second().saturating_sub(created.0.as_second()));
    if age.is_some_and(|age| age < SCHEDULE_SECONDS) {
        return Health::in_progress("PodNotScheduled", "the pod has no node yet");
    }
    Health::failed("PodUnschedulable", "no node can take the pod")
}

pub(super) fn claim(seen: &Status<'_>) -> Health {
    match seen.word("phase") {
        "Bound" => Health::current("the claim is bound"),
        phase => Health::in_progress("NotBound", format!("the claim is not bound: {phase:?}")),
    }
}

pub(super) fn service(seen: &Status<'_>) -> Health {
    let spec = &seen.data["spec"];
    let has_address = spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty());
    if spec["type"] == "LoadBalancer" && !has_address {
        return Health::in_progress("NoIPAssigned", "the load balancer has no cluster IP yet");
    }
    Health::current("the Service is ready")
}

pub(super) fn definition(seen: &Status<'_>) -> Health {
    let found = seen.conditions().find_map(|condition| match condition.kind {
        "NamesAccepted" if condition.is("False") => {
            Some(Health::failed(condition.reason, condition.message))
        }
        "Established" if condition.is("False") && condition.reason != "Installing" => {
            Some(Health::failed(condition.reason, condition.message))
        }
        "Established" if condition.is("True") => {
            Some(Health::current("the definition is established"))
        }
        _ => None,
    });
    found.unwrap_or_else(|| Health::in_progress("Installing", "the definition is not established"))
}
