//! What is found of a cluster: the conditions of its record.

use super::facts::Cluster;
use crate::record::Record;
use interlock_api::rollouts::condition::{
    DEGRADED, DRIFTED, FENCE_IN_FORCE, PROGRESSING, READY, TARGET_REACHABLE,
};
use interlock_api::rollouts::{
    ClusterRolloutStatus, FenceMode, RolloutReportStatus, UpdatePhase, Verdict,
};
use interlock_kernel::conditions::Finding;

/// The most objects that are named.
const MOST_NAMED: usize = 3;

/// What the conditions are found from.
pub(super) struct Around<'a> {
    name: &'a str,
    cluster_name: &'a str,
    is_paused: bool,
    pub(super) status: &'a ClusterRolloutStatus,
    report: &'a RolloutReportStatus,
    cluster: &'a Cluster,
}

impl<'a> Around<'a> {
    /// Of a record with this status, which may be the one that it is to have.
    pub(super) fn of(
        record: &'a Record,
        status: &'a ClusterRolloutStatus,
        report: &'a RolloutReportStatus,
        cluster: &'a Cluster,
    ) -> Around<'a> {
        Around {
            name: record.object.metadata.name.as_deref().unwrap_or_default(),
            cluster_name: &record.spec.cluster.name,
            is_paused: record.spec.paused,
            status,
            report,
            cluster,
        }
    }

    fn is_about_target(&self) -> bool {
        self.report.token == self.status.target.token
    }
}

/// The conditions of a record, in a fixed order.
pub(super) fn findings(around: &Around<'_>) -> Vec<Finding> {
    let reachable = reachable(around);
    let all = [ready(around), progressing(around), degraded(around), drifted(around)];
    all.into_iter().chain([reachable, fence(around)]).collect()
}

fn ready(around: &Around<'_>) -> Finding {
    let Around { status, report, .. } = around;
    let is_settled = around.is_about_target() && report.verdict == Verdict::Soaked;
    if let Some(active) = &status.active {
        let words = format!("version {} is {}", active.version, active.phase);
        return Finding::fails(READY, "Updating", words);
    }
    if status.is_degraded {
        return Finding::fails(READY, "Degraded", "a rollback failed").next(explain(around));
    }
    let Some(good) = &status.last_good else {
        return Finding::fails(READY, "NeverUpdated", "no version was ever verified");
    };
    if !report.drifted.is_empty() && around.is_about_target() {
        return Finding::fails(READY, "Drifted", named(&report.drifted));
    }
    match is_settled {
        true => {
            let words = format!("the cluster is at version {}", good.version);
            Finding::holds(READY, "AtLastGood", words)
        }
        false => {
            let words = format!("the agent has not reported on version {} yet", good.version);
            Finding::fails(READY, "NotReported", words)
        }
    }
}

fn explain(around: &Around<'_>) -> String {
    format!("interlock rollout status {}", around.cluster_name)
}

fn progressing(around: &Around<'_>) -> Finding {
    let status = around.status;
    if let Some(active) = &status.active {
        let entry = status.request(&active.uid);
        let words = entry.map(|entry| entry.message.clone()).unwrap_or_default();
        let message = format!("version {}: {words}", active.version);
        return Finding::holds(PROGRESSING, active.phase.as_str(), message);
    }
    let waiting = status.requests.iter().find(|entry| entry.phase == UpdatePhase::Queued);
    match waiting {
        Some(_) if around.is_paused => {
            let words = format!("ClusterRollout {} is paused", around.name);
            Finding::fails(PROGRESSING, "Paused", words)
        }
        Some(entry) => {
            let words = format!("version {} waits: {}", entry.version, entry.message);
            Finding::holds(PROGRESSING, UpdatePhase::Queued.as_str(), words)
        }
        None => Finding::fails(PROGRESSING, "Idle", "no request is in flight, and none waits"),
    }
}

fn degraded(around: &Around<'_>) -> Finding {
    match around.status.is_degraded {
        true => {
            let words = "a rollback failed, and no request ended well since";
            Finding::holds(DEGRADED, "RollbackFailed", words).next(explain(around))
        }
        false => Finding::fails(DEGRADED, "NotDegraded", "no rollback failed"),
    }
}

fn named(objects: &[String]) -> String {
    let first: Vec<&str> = objects.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = if objects.len() > MOST_NAMED { ", ..." } else { "" };
    format!("objects differ from what was applied: {}{more}", first.join(", "))
}

fn drifted(around: &Around<'_>) -> Finding {
    let found = &around.report.drifted;
    if !around.is_about_target() || found.is_empty() {
        return Finding::fails(DRIFTED, "NoDrift", "no object is known to differ");
    }
    Finding::holds(DRIFTED, "ObjectsDiffer", named(found))
}

fn reachable(around: &Around<'_>) -> Finding {
    let name = around.cluster_name;
    match around.cluster {
        Cluster::Here(here) if here.is_reachable => {
            let words = format!("the agent of cluster {name} sends heartbeats");
            Finding::holds(TARGET_REACHABLE, "Heard", words)
        }
        Cluster::Here(_) => {
            let words = format!("the agent of cluster {name} sends no heartbeat");
            let next = format!("interlock status cluster/{name}");
            Finding::fails(TARGET_REACHABLE, "Silent", words).next(next)
        }
        Cluster::Gone { is_replaced: false } => {
            let words = format!("WorkloadCluster {name} was deleted");
            Finding::fails(TARGET_REACHABLE, "ClusterGone", words)
        }
        Cluster::Gone { is_replaced: true } => {
            let words = format!("WorkloadCluster {name} was made again under its name");
            Finding::fails(TARGET_REACHABLE, "ClusterReplaced", words)
        }
        Cluster::Unread | Cluster::Behind => Finding {
            holds: None,
            ..Finding::fails(TARGET_REACHABLE, "NotRead", "nothing is known of the cluster yet")
        },
    }
}

fn fence(around: &Around<'_>) -> Finding {
    let (token, name) = (around.status.target.token, around.cluster_name);
    let Some(fence) = &around.report.fence else {
        let words = "the agent has not reported a fence";
        let next = format!(
            "run the agent of the cluster with --updates: interlock syncer {name} --updates"
        );
        return Finding::fails(FENCE_IN_FORCE, "NotReported", words).next(next);
    };
    if fence.mode == FenceMode::None {
        let words = "the API server of the cluster does not refuse late writes";
        let next = format!(
            "on the cluster: interlock manifests cluster {name} --updates | kubectl apply -f -"
        );
        return Finding::fails(FENCE_IN_FORCE, "FenceMissing", words).next(next);
    }
    if fence.token != token {
        let words = format!("the fence is at token {}, and the target at {token}", fence.token);
        return Finding::fails(FENCE_IN_FORCE, "Raising", words);
    }
    let words = format!("writes under tokens below {token} are refused");
    Finding::holds(FENCE_IN_FORCE, fence.mode.as_str(), words)
}
