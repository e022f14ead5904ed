//! The world in the words of the protocol, `spec/rollouts-requests`, as the rooms have it that ship.
//!
//! All of it is read off the record, the report, and what people sent: nothing is remembered, and so there is no further
//! state. The record is the one authority there and here, and each write of it carries the version that was seen. So what
//! is under way changes nothing until it is written, and sizes with steps under way are compared like all others.

use super::Rollouts;
use super::truth::{Request, Truth};
use crate::requests::RolloutsRequests;
use crate::requests::state::{self as protocol, Phase, Preflight, State as Picture};
use interlock_api::rollouts::UpdatePhase;
use interlock_checker::Refinement;
use interlock_world::{Basis, Comparison, State, World};

/// The name of the refinement: a mutant says that it breaks this.
pub(super) const REFINED: &str = "spec/rollouts-requests, as shipped";

/// One step of the world is one of the protocol, and perhaps one more that [`is_between`] allows beside it.
const MOST_STEPS: usize = 2;

pub(super) fn refines(system: &Rollouts, world: &World<Rollouts>) -> Vec<Refinement<State>> {
    // While the agent stays it is faster than every deadline: there are none.
    let specification = RolloutsRequests::shipped(system.requests, system.cancels, !system.away);
    vec![world.compared(Comparison {
        name: REFINED.to_owned(),
        specification,
        most: MOST_STEPS,
        picture,
        between: is_between,
    })]
}

/// Beside one step of the protocol, a write may be one more, of two kinds. The agent, which is away, has nothing left to
/// say, before or after it; or the answer of the agent, which the protocol forgets when any request gets a number, still
/// counts since that request was rejected. No write is two steps otherwise.
fn is_between(from: &Picture, way: &Picture, to: &Picture) -> bool {
    let but_away = |it: &Picture| Picture { is_away: way.is_away, ..it.clone() };
    let but_answer = Picture { preflight: Preflight::None, ..to.clone() };
    [but_away(from), but_away(to), but_answer].contains(way)
}

fn phase(phase: UpdatePhase) -> Phase {
    match phase {
        UpdatePhase::Pending => Phase::Pending,
        UpdatePhase::Queued => Phase::Queued,
        UpdatePhase::Applying => Phase::Applying,
        UpdatePhase::Verifying => Phase::Verifying,
        UpdatePhase::RollingBack => Phase::RollingBack,
        UpdatePhase::Rejected => Phase::Rejected,
        UpdatePhase::Superseded => Phase::Superseded,
        UpdatePhase::Cancelled => Phase::Cancelled,
        UpdatePhase::Failed => Phase::Failed,
        UpdatePhase::Succeeded => Phase::Succeeded,
        UpdatePhase::RolledBack => Phase::RolledBack,
        UpdatePhase::RollbackFailed => Phase::RollbackFailed,
    }
}

/// A request by what the record says of it; what it says itself is no part of the protocol.
fn request(sent: Option<&Request>) -> protocol::Request {
    let Some(sent) = sent else { return protocol::Request::default() };
    match &sent.entry {
        None => protocol::Request { phase: Phase::Pending, version: 0 },
        Some(entry) => {
            protocol::Request { phase: phase(entry.phase), version: entry.version as u8 }
        }
    }
}

/// The place of the first request that is so.
fn place(truth: &Truth, is_it: impl Fn(&Request) -> bool) -> Option<u8> {
    let mut all = truth.requests.iter();
    all.position(|sent| sent.as_ref().is_some_and(&is_it)).map(|place| place as u8)
}

/// The digests that the record remembers as bad, a bit for each.
fn bad(truth: &Truth) -> u8 {
    let is_bad = |sent: &Option<Request>| {
        let entry = sent.as_ref().and_then(|sent| sent.entry.as_ref());
        entry.is_some_and(|entry| truth.bad.contains(&entry.digest))
    };
    let places = (0..truth.requests.len()).filter(|place| is_bad(&truth.requests[*place]));
    places.fold(0, |bits, place| bits | protocol::digest(place))
}

fn picture(_: &Rollouts, basis: &Basis<Rollouts>) -> Picture {
    let truth = &*basis.truth;
    let active = truth.active.as_ref().and_then(|(uid, _)| place(truth, |it| it.uid == *uid));
    let good = truth.good.as_ref().and_then(|(version, _)| {
        let is_it = |sent: &Request| sent.entry.as_ref().is_some_and(|it| it.version == *version);
        place(truth, is_it)
    });
    // In the protocol the agent speaks and is heard in one step. What it said of the target before it went away can still
    // be heard, and then the protocol has it go away after that.
    let is_to_be_heard = truth.active.is_some() && truth.said.token == truth.token;
    let bad = bad(truth);
    Picture {
        requests: truth.requests.each_ref().map(|sent| request(sent.as_ref())),
        last_version: truth.last_version as u8,
        lock: active,
        active,
        good,
        is_degraded: truth.is_degraded,
        bad,
        // Content that failed by itself is remembered as bad in the same write.
        failed: bad,
        tries: truth.tries as u8,
        preflight: match truth.is_refused {
            None => Preflight::None,
            Some(false) => Preflight::Good,
            Some(true) => Preflight::Bad,
        },
        is_away: truth.is_away && !is_to_be_heard,
        ..Picture::default()
    }
}
