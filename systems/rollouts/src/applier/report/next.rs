//! What the report says next: a function of what was read.

use super::decide::{Extra, Facts, Listed, Wanted};
use crate::applier::fenced::Fence;
use crate::applier::object::MOST_FAILED;
use crate::health::State;
use interlock_api::rollouts::{
    FailedObject, FenceMode, FenceReport, ObjectCounts, RolloutReportStatus, Verdict,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What is named as failed where a bundle cannot be read.
pub(super) const BUNDLE: &str = "BundleRevision";
/// The most objects that are not ready, and drifted objects, of a report.
const MOST_NAMED: usize = 20;
/// The most objects that a report names as kept.
const MOST_KEPT: usize = 100;
/// The most objects that are written between two reports.
const MOST_PENDING: usize = 200;

fn time(seconds: i64) -> Option<Time> {
    Timestamp::from_second(seconds).ok().map(Time)
}

fn seconds(time: Option<&Time>) -> Option<i64> {
    time.map(|time| time.0.as_second())
}

/// What the report said about this token: nothing, if it is about another one.
fn before(facts: &Facts) -> RolloutReportStatus {
    match facts.said.token == facts.token {
        true => facts.said.clone(),
        false => RolloutReportStatus {
            token: facts.token,
            preflight: facts.said.preflight.clone(),
            ..RolloutReportStatus::default()
        },
    }
}

/// The fence as it is reported. Where there is none, the time since which this token is known here takes the place of
/// the proof.
fn fence_of(facts: &Facts, fence: &Fence, before: &RolloutReportStatus) -> FenceReport {
    let reported = fence.reported();
    if fence.mode != FenceMode::None || !fence.is_in_force(facts.token, facts.needed) {
        return reported;
    }
    let known = before.fence.as_ref().filter(|it| it.mode == FenceMode::None);
    let since = known.and_then(|it| it.proven_at.clone()).or_else(|| time(facts.now));
    FenceReport { proven_at: since, ..reported }
}

/// Whether what was taken before the fence is done by now, or never will be, and was so before this step began to read:
/// an earlier report, which this step rests on, was written after that.
fn is_settled(facts: &Facts, fence: &Fence, before: &RolloutReportStatus) -> bool {
    if !fence.is_in_force(facts.token, facts.needed) {
        return false;
    }
    if fence.mode == FenceMode::Exact {
        return true;
    }
    let reported = fence_of(facts, fence, before);
    let is_known = before.fence.as_ref() == Some(&reported);
    let settled = seconds(reported.proven_at.as_ref());
    let settled = settled.map(|at| at.saturating_add(facts.settle_seconds));
    let said_at = seconds(before.observed_at.as_ref());
    is_known && said_at.zip(settled).is_some_and(|(said, settled)| said >= settled)
}

/// Whether the report is to be written although it says nothing new: the fence has settled since it was written.
pub(super) fn is_settling(facts: &Facts, next: &RolloutReportStatus) -> bool {
    let Some(fence) = next.fence.as_ref().filter(|it| it.mode != FenceMode::Exact) else {
        return false;
    };
    let is_over = next.verdict == Verdict::Soaked || next.token != facts.token;
    let settled = seconds(fence.proven_at.as_ref());
    let settled = settled.map(|at| at.saturating_add(facts.settle_seconds));
    let said_at = seconds(facts.said.observed_at.as_ref());
    let is_between =
        |settled: i64| said_at.is_some_and(|said| said < settled && settled <= facts.now);
    !is_over && settled.is_some_and(is_between)
}

/// What is reported while a bundle cannot be read: nothing is known of the cluster, and nothing is to be written.
pub(super) fn unreadable(facts: &Facts, fence: &Fence, why: &str) -> RolloutReportStatus {
    let before = before(facts);
    let failed = FailedObject {
        id: BUNDLE.to_owned(),
        code: "RevisionMissing".to_owned(),
        message: why.chars().take(1_000).collect(),
    };
    RolloutReportStatus {
        fence: Some(fence_of(facts, fence, &before)),
        failed: vec![failed],
        pending: Vec::new(),
        observed_at: time(facts.now),
        ..before
    }
}

/// The report of what is on the cluster.
pub(super) fn next(facts: &Facts, fence: &Fence, listed: &Listed) -> RolloutReportStatus {
    let before = before(facts);
    let is_in_force = fence.is_in_force(facts.token, facts.needed);
    let open: Vec<&Wanted> = listed.wanted.iter().filter(|it| !it.is_applied).collect();
    let to_prune: Vec<&Extra> = listed.extra.iter().filter(|it| !it.is_kept).collect();
    let waves = || listed.wanted.iter().map(|it| it.wave);
    let unfinished = listed.wanted.iter().filter(|it| !it.is_done()).map(|it| it.wave).min();
    let wave = unfinished.or_else(|| waves().max()).unwrap_or(0);
    let pending = match is_in_force && !facts.is_quiet {
        true => pending(&open, &to_prune, wave),
        false => Vec::new(),
    };
    let is_equal = open.is_empty() && to_prune.is_empty();
    let is_applied = is_equal && is_settled(facts, fence, &before);
    let is_healthy = is_applied && listed.wanted.iter().all(|it| it.health.is_current());
    let (verdict, healthy_since) = verdict(facts, &before, is_applied, is_healthy);
    let count = |objects: usize| u32::try_from(objects).unwrap_or(u32::MAX);
    let wanted = || listed.wanted.iter();
    let objects = ObjectCounts {
        wanted: count(listed.wanted.len()),
        applied: count(wanted().filter(|it| it.is_applied).count()),
        current: count(wanted().filter(|it| it.is_done()).count()),
        to_prune: count(to_prune.len()),
    };
    let different = open.iter().map(|it| &it.id).chain(to_prune.iter().map(|it| &it.id));
    let drifted = match before.verdict {
        Verdict::Soaked => different.clone().take(MOST_NAMED).cloned().collect(),
        Verdict::Applying | Verdict::Applied => Vec::new(),
    };
    let is_open = |failed: &&FailedObject| different.clone().any(|id| *id == failed.id);
    let refused = before.failed.iter().filter(is_open).cloned();
    let broken = wanted().filter(|it| it.is_applied && it.health.state == State::Failed);
    let failed = refused.chain(broken.map(of_health)).take(MOST_FAILED).collect();
    let kept = listed.extra.iter().filter(|it| it.is_kept).map(|it| it.id.clone());
    RolloutReportStatus {
        token: facts.token,
        fence: Some(fence_of(facts, fence, &before)),
        wave,
        verdict,
        healthy_since,
        objects,
        not_ready: not_ready(listed, wave),
        failed,
        kept: kept.take(MOST_KEPT).collect(),
        drifted,
        pending,
        observed_at: time(facts.now),
        preflight: before.preflight,
    }
}

/// What is written next: the open objects of the present wave; once all objects of the target are there, what is pruned,
/// the last wave first.
fn pending(open: &[&Wanted], to_prune: &[&Extra], wave: i32) -> Vec<String> {
    let first = open.iter().filter(|it| it.wave <= wave).map(|it| it.id.clone());
    if !open.is_empty() {
        return first.take(MOST_PENDING).collect();
    }
    let last = to_prune.iter().map(|it| it.wave).max();
    let pruned = to_prune.iter().filter(|it| Some(it.wave) == last).map(|it| it.id.clone());
    pruned.take(MOST_PENDING).collect()
}

/// How far the cluster is, and since when all is healthy. A target that was verified stays verified: what changes after
/// that is drift.
fn verdict(
    facts: &Facts,
    before: &RolloutReportStatus,
    is_applied: bool,
    is_healthy: bool,
) -> (Verdict, Option<Time>) {
    match (before.verdict, is_applied, is_healthy) {
        (Verdict::Soaked, _, _) => (Verdict::Soaked, before.healthy_since.clone()),
        (Verdict::Applying | Verdict::Applied, false, _) => (Verdict::Applying, None),
        (Verdict::Applying | Verdict::Applied, true, false) => (Verdict::Applied, None),
        (Verdict::Applying | Verdict::Applied, true, true) => {
            let since = seconds(before.healthy_since.as_ref()).unwrap_or(facts.now);
            let is_soaked = facts.now.saturating_sub(since) >= facts.soak_seconds;
            let verdict = if is_soaked { Verdict::Soaked } else { Verdict::Applied };
            (verdict, time(since))
        }
    }
}

fn not_ready(listed: &Listed, wave: i32) -> Vec<FailedObject> {
    let unserved = listed.wanted.iter().filter(|it| !it.is_served && it.wave <= wave);
    let unserved = unserved.map(|it| FailedObject {
        id: it.id.clone(),
        code: "KindNotServed".to_owned(),
        message: "the cluster does not serve the kind".to_owned(),
    });
    let unhealthy = listed.wanted.iter().filter(|it| it.is_applied && !it.health.is_current());
    unserved.chain(unhealthy.map(of_health)).take(MOST_NAMED).collect()
}

fn of_health(object: &Wanted) -> FailedObject {
    let code = match object.health.reason.as_str() {
        "" => "NotReady".to_owned(),
        reason => reason.chars().take(64).collect(),
    };
    let message = object.health.message.chars().take(1_000).collect();
    FailedObject { id: object.id.clone(), code, message }
}
