//! What is kept in order around the requests.

use super::super::facts::{Asked, Sweep};
use super::queue::to_explain;
use super::{At, Decision};
use interlock_api::rollouts::UpdatePhase;

/// How many requests are read at once before their entries are dropped.
const MOST_READ: usize = 8;

/// A record that is being deleted stays while a request waits or is in flight, and until every outcome is known.
pub(super) fn ends_with_record(at: &At<'_>) -> Option<Decision> {
    let record = at.record;
    let is_over = record.active.is_none() && record.queued.is_none() && record.unmirrored == 0;
    let goes = record.is_terminating && record.has_finalizer && is_over;
    goes.then_some(Decision::TakeFinalizerOff)
}

/// The cluster knows a newer token than the record: the hub was restored from an older state. A report under that token
/// would otherwise be taken for one about a target that gets the same token again.
pub(super) fn raised_fence(at: &At<'_>) -> Option<Decision> {
    let of_fence = at.report.fence.map_or(0, |(token, _)| token);
    let token = of_fence.max(at.report.token);
    (token > at.record.token).then(|| Decision::RaiseToken(token.saturating_add(1)))
}

/// A drain is kept for the request that waits or is in flight, and on a cluster that is Degraded. The write goes to the
/// cluster, and so it says nothing about the record: the record is read live first.
pub(super) fn drains_in_vain(at: &At<'_>) -> Option<Decision> {
    let of_active = at.active().map(|active| active.uid.as_str());
    let of_queued = at.queued().map(|queued| queued.uid.as_str());
    let is_needed = |uid: &String| [of_active, of_queued].contains(&Some(uid.as_str()));
    let is_in_vain = !at.record.is_degraded && !at.here.drains.iter().all(is_needed);
    match at.record.is_live {
        _ if !is_in_vain => None,
        None => Some(Decision::ReadRecord),
        Some(true) => Some(Decision::RemoveDrains),
        Some(false) => None,
    }
}

/// The history is bounded, and so are the bundles that are kept for it.
pub(super) fn history(at: &At<'_>) -> Option<Decision> {
    let surplus = &at.record.surplus;
    let uids = |is: Option<bool>| -> Vec<String> {
        let those = surplus.iter().filter(|entry| entry.is_mirrored == is);
        those.map(|entry| entry.uid.clone()).take(MOST_READ).collect()
    };
    let (mirrored, unread) = (uids(Some(true)), uids(None));
    if !mirrored.is_empty() {
        return Some(Decision::Forget(mirrored));
    }
    if !unread.is_empty() {
        return Some(Decision::ReadRequests(unread));
    }
    let unnamed = at.record.unnamed.as_ref()?;
    let digest = unnamed.digest.clone();
    Some(match unnamed.found {
        Sweep::Unread => Decision::ReadUnnamed(digest),
        Sweep::There(_) => Decision::DeletePart(digest),
        Sweep::Named | Sweep::Gone => Decision::Swept(digest),
    })
}

/// The record says what is true, in words.
pub(super) fn said(at: &At<'_>) -> Option<Decision> {
    let explained = to_explain(at).map(Decision::Explain);
    explained.or_else(|| (!at.facts.is_said).then_some(Decision::Say))
}

/// Nothing is to be done until something changes, or the next deadline.
pub(super) fn rest(at: &At<'_>) -> Decision {
    let of_start = at.queued().and_then(|queued| match &queued.asked {
        Asked::Here(options) => {
            Some(i64::from(options.start_deadline_seconds).saturating_sub(queued.seconds))
        }
        Asked::Unread | Asked::Gone => None,
    });
    let of_flight = at.active().map(|active| match active.phase == UpdatePhase::RollingBack {
        true => at.record.rollback_seconds.saturating_sub(active.phase_seconds),
        false => active.deadline_seconds.saturating_sub(active.started_seconds),
    });
    let because = match (at.active(), at.queued()) {
        (Some(_), _) => "a request is in flight",
        (None, Some(_)) => "a request waits",
        (None, None) => "no request is in flight, and none waits",
    };
    let deadlines = [of_start, of_flight, at.record.unnamed_in];
    match deadlines.into_iter().flatten().min() {
        Some(seconds) => Decision::Wait(because, seconds.max(1)),
        None => Decision::Rest(because),
    }
}
