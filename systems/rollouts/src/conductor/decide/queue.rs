//! The request that waits.

use super::super::facts::{Asked, Options, Queued};
use super::{At, Decision};
use crate::record::{Waits, Why};
use interlock_api::rollouts::{FenceMode, FencePolicy, UpdatePhase, Verdict};

/// It ends before anything was changed for it.
pub(super) fn ended(at: &At<'_>) -> Option<Decision> {
    let queued = at.queued()?;
    let failed = |why: Why| Some(Decision::EndQueued(UpdatePhase::Failed, why));
    let options = match &queued.asked {
        Asked::Unread => return Some(Decision::ReadRequest(queued.uid.clone())),
        asked if asked.is_cancelled() => {
            return Some(Decision::EndQueued(UpdatePhase::Cancelled, Why::Cancelled));
        }
        asked => asked.options()?,
    };
    if at.record.is_terminating {
        return failed(Why::RecordDeleted);
    }
    if let Some(words) = queued.bad.as_ref().filter(|_| !options.retry_bad) {
        return failed(Why::KnownBad(words.clone()));
    }
    if let Some(answer) =
        at.report.preflight.as_ref().filter(|it| queued.is_named && it.failures > 0)
    {
        let (count, first) = (answer.failures, answer.first.clone());
        return failed(Why::PreflightFailed { count, first });
    }
    let seconds = i64::from(options.start_deadline_seconds);
    if queued.seconds >= seconds {
        return failed(Why::StartDeadline { seconds, waits: waits(at, queued, options) });
    }
    None
}

/// The cluster is at its bundle already, and nobody changed anything: no write to the cluster is needed.
pub(super) fn nothing_to_change(at: &At<'_>) -> Option<Decision> {
    let queued = at.queued().filter(|_| at.active().is_none())?;
    let options = queued.asked.options()?;
    let good = at.record.good.as_ref().filter(|good| good.digest == queued.digest)?;
    let is_asked_for_more = options.prune_data || options.force && !good.force;
    let is_target = at.record.target.as_ref() == Some(&queued.digest);
    let is_there = at.is_about_target() && at.report.verdict == Verdict::Soaked;
    let is_untouched = at.report.drifted == 0 && !at.record.is_degraded;
    (is_target && is_there && is_untouched && !is_asked_for_more).then_some(Decision::FoundThere)
}

/// What comes before its start: the check by the agent, and then the drain.
pub(super) fn prepare(at: &At<'_>) -> Option<Decision> {
    let queued = at.queued()?;
    let options = queued.asked.options()?;
    if !queued.is_named {
        return Some(Decision::NamePreflight);
    }
    let is_to_drain = options.drain_first && !at.record.is_paused && is_checked(at, queued);
    let is_asked = at.here.drains.contains(&queued.uid);
    (is_to_drain && !is_asked).then_some(Decision::AddDrain)
}

/// It starts in one write: there is no lock that is taken before, and so none that leaks.
pub(super) fn start(at: &At<'_>) -> Option<Decision> {
    let queued = at.queued().filter(|_| at.active().is_none())?;
    let options = queued.asked.options()?;
    let may_start = !at.record.is_paused
        && !at.record.is_terminating
        && is_checked(at, queued)
        && has_fence(at)
        && (!options.drain_first || is_drained(at, queued));
    if !may_start {
        return None;
    }
    // Somebody may have taken the drain away since.
    match options.drain_first && !at.here.is_live {
        true => Some(Decision::ReadCluster),
        false => Some(Decision::Start),
    }
}

fn is_checked(at: &At<'_>, queued: &Queued) -> bool {
    queued.is_named && at.report.preflight.as_ref().is_some_and(|answer| answer.failures == 0)
}

fn has_fence(at: &At<'_>) -> bool {
    match at.record.fence {
        FencePolicy::BestEffort => true,
        FencePolicy::Required => at.report.fence.is_some_and(|(_, mode)| mode != FenceMode::None),
    }
}

fn is_drained(at: &At<'_>, queued: &Queued) -> bool {
    let is_in = |uids: &[String]| uids.contains(&queued.uid);
    is_in(&at.here.drains) && is_in(&at.here.drained)
}

/// What the request waits for.
pub(super) fn waits(at: &At<'_>, queued: &Queued, options: &Options) -> Waits {
    if let Some(active) = at.active() {
        return Waits::InFlight(active.version);
    }
    if at.record.is_paused {
        return Waits::Paused(at.facts.name.clone());
    }
    if !is_checked(at, queued) {
        return Waits::Agent(at.facts.cluster_name.clone());
    }
    if !has_fence(at) {
        return Waits::Fence(at.facts.cluster_name.clone());
    }
    match options.drain_first && !is_drained(at, queued) {
        true => Waits::Drain(at.here.drain_words.clone()),
        false => Waits::Turn,
    }
}

/// What a person has to see while the request waits; None: there is nothing to say, or it is said.
pub(super) fn to_explain(at: &At<'_>) -> Option<Why> {
    let queued = at.queued()?;
    let waits = waits(at, queued, queued.asked.options()?);
    let why = match waits {
        Waits::Paused(_) | Waits::Fence(_) | Waits::Drain(_) => Why::Waiting(waits),
        Waits::InFlight(_) | Waits::Agent(_) | Waits::Turn => Why::Valid,
    };
    (queued.reason != why.reason()).then_some(why)
}
