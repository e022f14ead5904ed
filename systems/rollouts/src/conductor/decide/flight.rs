//! The request in flight. What the agent says counts only if it is about the token of the target.

use super::super::facts::{Active, Asked};
use super::{At, Decision};
use crate::record::Why;
use interlock_api::rollouts::{UpdatePhase, Verdict};

/// The request in flight, if it was not rolled back yet.
fn forward<'a>(at: &'a At<'_>) -> Option<&'a Active> {
    at.active().filter(|active| active.phase != UpdatePhase::RollingBack)
}

/// Somebody does not want it any more. That proves nothing against its bundle.
pub(super) fn interrupted(at: &At<'_>) -> Option<Decision> {
    let active = forward(at)?;
    if active.asked == Asked::Unread {
        return Some(Decision::ReadRequest(active.uid.clone()));
    }
    if active.asked.is_cancelled() {
        return Some(at.roll_back(Why::Cancelled, false));
    }
    let queued = at.queued().filter(|queued| queued.version > active.version)?;
    let options = queued.asked.options().filter(|options| options.preempt);
    options.map(|_| at.roll_back(Why::Preempted { by: queued.version }, false))
}

/// The agent is where the target is.
pub(super) fn verdict(at: &At<'_>) -> Option<Decision> {
    let active = forward(at).filter(|_| at.is_about_target())?;
    match (active.phase, at.report.verdict) {
        (UpdatePhase::Applying, Verdict::Applied | Verdict::Soaked) => Some(Decision::Verify),
        (UpdatePhase::Verifying, Verdict::Soaked) => Some(Decision::Succeed),
        _ => None,
    }
}

/// An object failed or was refused, or the time is over. The bundle is proven bad only by a cluster that was reached,
/// and by a report of this very target.
pub(super) fn failed(at: &At<'_>) -> Option<Decision> {
    let active = forward(at)?;
    let (is_about_it, first) = (at.is_about_target(), at.report.first.clone());
    if is_about_it && at.report.is_revision_missing {
        return Some(at.roll_back(Why::RevisionMissing(first), false));
    }
    if is_about_it && at.report.failed > 0 {
        return Some(at.roll_back(Why::Unhealthy { count: at.report.failed, first }, true));
    }
    let seconds = active.deadline_seconds;
    if active.started_seconds < seconds {
        return None;
    }
    Some(match is_about_it && at.here.is_reachable {
        true => at.roll_back(Why::DeadlinePassed { seconds, first }, true),
        false => at.roll_back(Why::ClusterUnreachable { seconds }, false),
    })
}

/// It is rolled back, tried again, or given up.
pub(super) fn rollback(at: &At<'_>) -> Option<Decision> {
    let active = at.active().filter(|active| active.phase == UpdatePhase::RollingBack)?;
    let (is_about_it, first) = (at.is_about_target(), at.report.first.clone());
    if is_about_it && at.report.verdict == Verdict::Soaked {
        return Some(Decision::EndRolledBack);
    }
    if is_about_it && at.report.is_revision_missing {
        return Some(Decision::GiveUp(Why::RevisionMissing(first), false));
    }
    if active.phase_seconds < at.record.rollback_seconds {
        return None;
    }
    let tries = active.tries.saturating_add(1);
    Some(match tries < at.record.tries {
        true => Decision::TryAgain,
        false => Decision::GiveUp(Why::RollbackDeadline { tries, first }, false),
    })
}
