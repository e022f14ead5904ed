//! The status of a request, from its entry and from what the agent says.

use interlock_api::rollouts::condition::COMPLETE;
use interlock_api::rollouts::{
    ClusterRolloutStatus, ClusterUpdateStatus, Requested, RolloutReportStatus,
};
use interlock_kernel::conditions::Condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// The status of a request as its record has it. What the agent said last is kept when the request has ended: it is why.
pub(super) fn shown(
    entry: &Requested,
    record: &ClusterRolloutStatus,
    report: Option<&RolloutReportStatus>,
    said: &ClusterUpdateStatus,
) -> ClusterUpdateStatus {
    let is_active = record.active.as_ref().is_some_and(|active| active.uid == entry.uid);
    let is_good = record.last_good.as_ref().is_some_and(|good| good.version == entry.version)
        && record.target.digest == entry.digest;
    let mut status = ClusterUpdateStatus {
        phase: entry.phase,
        phase_since: entry.phase_since.clone(),
        version: Some(entry.version),
        digest: entry.digest.clone(),
        reason: entry.reason.clone(),
        message: entry.message.clone(),
        next: entry.next.clone(),
        objects: said.objects.clone(),
        not_ready: said.not_ready.clone(),
        kept: said.kept.clone(),
        conditions: Vec::new(),
    };
    if let Some(report) = report.filter(|_| is_active || is_good) {
        let bad = if report.failed.is_empty() { &report.not_ready } else { &report.failed };
        status.objects = Some(report.objects.clone());
        status.not_ready = bad.clone();
        status.kept = report.kept.clone();
    }
    complete(&mut status);
    status
}

/// Whether it has ended, as a condition that people can wait for.
pub(super) fn complete(status: &mut ClusterUpdateStatus) {
    let is_over = status.phase.is_terminal();
    let since = status.phase_since.clone().unwrap_or(Time(Timestamp::UNIX_EPOCH));
    status.conditions = vec![Condition {
        type_: COMPLETE.to_owned(),
        status: if is_over { "True" } else { "False" }.to_owned(),
        reason: status.phase.as_str().to_owned(),
        message: status.message.clone(),
        next: status.next.clone(),
        last_transition_time: since,
        observed_generation: None,
    }];
}

/// A status as a merge patch that says of every field what it is: what is not there is taken out.
pub(super) fn whole(status: &ClusterUpdateStatus) -> Value {
    let mut patch = json!({
        "phaseSince": null, "version": null, "digest": null, "reason": null, "message": null, "next": null,
        "objects": null, "notReady": null, "kept": null, "conditions": null,
    });
    // A status is a struct of plain fields, which always has a form in JSON.
    let Ok(Value::Object(fields)) = serde_json::to_value(status) else { return Value::Null };
    for (key, value) in fields {
        patch[key] = value;
    }
    patch
}
