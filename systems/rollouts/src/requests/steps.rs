//! The steps of the record.

use super::RolloutsRequests;
use super::state::{Drain, Phase, Preflight, State, digest};
use interlock_checker::{ActionId, Steps};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Alone {
    GoAway,
    Preflight,
    AskDrain,
    Drained,
    Undrain,
    Applied,
    Healthy,
    Fail,
    RbOk,
    RbBad,
}

pub(super) const ALONE: [(Alone, &str); 10] = [
    (Alone::GoAway, "GoAway"),
    (Alone::Preflight, "Preflight"),
    (Alone::AskDrain, "AskDrain"),
    (Alone::Drained, "Drained"),
    (Alone::Undrain, "Undrain"),
    (Alone::Applied, "Applied"),
    (Alone::Healthy, "Healthy"),
    (Alone::Fail, "Fail"),
    (Alone::RbOk, "RbOk"),
    (Alone::RbBad, "RbBad"),
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfRequest {
    Submit,
    Number,
    Cancel,
    Start,
    Refuse,
    StartDeadline,
    Lock,
    Locked,
    FoundThere,
}

pub(super) const OF_REQUEST: [(OfRequest, &str); 9] = [
    (OfRequest::Submit, "Submit"),
    (OfRequest::Number, "Number"),
    (OfRequest::Cancel, "Cancel"),
    (OfRequest::Start, "Start"),
    (OfRequest::Refuse, "Refuse"),
    (OfRequest::StartDeadline, "StartDeadline"),
    (OfRequest::Lock, "Lock"),
    (OfRequest::Locked, "Locked"),
    (OfRequest::FoundThere, "FoundThere"),
];

impl RolloutsRequests {
    pub(super) fn of_request(&self, kind: OfRequest, r: usize) -> ActionId {
        ALONE.len() as u16 + kind as u16 * self.requests as u16 + r as u16
    }

    pub(super) fn world_steps(&self, state: &State, steps: &mut Steps<State>) {
        if !self.is_calm && !state.is_away {
            steps.step(Alone::GoAway as u16, State { is_away: true, ..state.clone() });
        }
        let is_waited_for = state.queued().next().is_some() && !state.is_away;
        if is_waited_for && state.preflight == Preflight::None {
            for preflight in [Preflight::Good, Preflight::Bad] {
                steps.step(Alone::Preflight as u16, State { preflight, ..state.clone() });
            }
        }
    }

    /// A request is submitted, numbered, or ends while it waits.
    pub(super) fn queue_steps(&self, state: &State, r: usize, steps: &mut Steps<State>) {
        let phase = state.requests[r].phase;
        let mut step = |kind: OfRequest, next: State| steps.step(self.of_request(kind, r), next);
        if phase == Phase::New {
            let mut next = state.clone();
            next.requests[r].phase = Phase::Pending;
            step(OfRequest::Submit, next);
        }
        let is_found_again = !self.rules.by_uid
            && matches!(phase, Phase::Succeeded | Phase::RolledBack | Phase::Applying);
        let may_number = phase == Phase::Pending || is_found_again;
        if may_number && usize::from(state.last_version) < self.requests + 1 {
            let rejects = !self.rules.only_valid_supersedes;
            step(OfRequest::Number, self.numbered(state, r, Phase::Rejected, rejects));
            if !self.rules.bad_kept || state.bad & digest(r) == 0 {
                let supersedes = self.rules.supersede_at_once;
                step(OfRequest::Number, self.numbered(state, r, Phase::Queued, supersedes));
            }
        }
        if phase != Phase::Queued {
            return;
        }
        let ended = |phase: Phase| {
            let mut next = State { preflight: Preflight::None, ..state.clone() };
            next.requests[r].phase = phase;
            next
        };
        // TLC counts each reason.
        let is_known_bad = self.rules.bad_at_start && state.bad & digest(r) != 0;
        let reasons = [state.preflight == Preflight::Bad, is_known_bad];
        for _ in reasons.iter().filter(|reason| **reason) {
            step(OfRequest::Refuse, ended(Phase::Failed));
        }
        if self.has_deadlines() {
            step(OfRequest::StartDeadline, ended(Phase::Failed));
        }
        if state.cancels < self.cancels {
            let next = State { cancels: self.cancelled(state), ..ended(Phase::Cancelled) };
            step(OfRequest::Cancel, next);
        }
        if self.is_shipped && is_there(state, r) {
            let next = State { good: Some(r as u8), ..ended(Phase::Succeeded) };
            step(OfRequest::FoundThere, next);
        }
    }

    /// How many cancels there are after one more.
    fn cancelled(&self, state: &State) -> u8 {
        // The world counts them itself.
        if self.is_shipped { state.cancels } else { state.cancels + 1 }
    }

    /// The request has a number; what waited before is superseded or not.
    fn numbered(&self, state: &State, r: usize, phase: Phase, supersedes: bool) -> State {
        let last_version = state.last_version + 1;
        let mut next = State { last_version, preflight: Preflight::None, ..state.clone() };
        for older in state.queued().filter(|older| supersedes && *older != r) {
            next.requests[older].phase = Phase::Superseded;
        }
        next.requests[r].phase = phase;
        next.requests[r].version = last_version;
        next
    }

    fn may_start(&self, state: &State, r: usize) -> bool {
        state.preflight == Preflight::Good
            && (!self.drains(r) || state.drain == Drain::Done)
            && (!self.rules.bad_at_start || state.bad & digest(r) == 0)
    }

    pub(super) fn start_steps(&self, state: &State, r: usize, steps: &mut Steps<State>) {
        let is_queued = state.requests[r].phase == Phase::Queued;
        let place = Some(r as u8);
        let begun = || {
            let mut next = State {
                active: place,
                lock: place,
                tries: 0,
                preflight: Preflight::None,
                ..state.clone()
            };
            next.requests[r].phase = Phase::Applying;
            next
        };
        let mut step = |kind: OfRequest, next: State| steps.step(self.of_request(kind, r), next);
        let may_start = is_queued && self.may_start(state, r);
        if self.rules.one_write {
            // Of those with the same number TLC takes the first, but no two have the same.
            let newest = state.queued().max_by_key(|other| state.requests[*other].version);
            let is_free = !self.rules.one_at_a_time || state.active.is_none();
            if may_start && is_free && newest == Some(r) {
                step(OfRequest::Start, begun());
            }
            return;
        }
        if state.active.is_some() {
            return;
        }
        if may_start && state.lock.is_none() {
            step(OfRequest::Lock, State { lock: place, ..state.clone() });
        }
        if state.lock != place {
            return;
        }
        let next = match is_queued || !self.rules.checks_outdated {
            true => begun(),
            false if self.rules.frees_outdated => State { lock: None, ..state.clone() },
            false => state.clone(),
        };
        step(OfRequest::Locked, next);
    }

    pub(super) fn drain_steps(&self, state: &State, steps: &mut Steps<State>) {
        let drained = |r: &usize| self.drains(*r);
        let phases = || (0..self.requests).filter(drained).map(|r| state.requests[r].phase);
        match state.drain {
            Drain::None if phases().any(|phase| phase == Phase::Queued) => {
                steps.step(Alone::AskDrain as u16, State { drain: Drain::Asked, ..state.clone() });
            }
            Drain::Asked => {
                steps.step(Alone::Drained as u16, State { drain: Drain::Done, ..state.clone() });
            }
            Drain::None | Drain::Done => {}
        }
        let is_needed = phases().any(|phase| phase == Phase::Queued || phase.is_active());
        let may_undrain = self.rules.drain_ends && !state.is_degraded && !is_needed;
        if may_undrain && state.drain != Drain::None {
            steps.step(Alone::Undrain as u16, State { drain: Drain::None, ..state.clone() });
        }
    }

    /// What happens to the request that is active.
    pub(super) fn active_steps(&self, state: &State, steps: &mut Steps<State>) {
        let Some(place) = state.active else { return };
        let r = usize::from(place);
        let phase = state.requests[r].phase;
        let to = |phase: Phase| {
            let mut next = state.clone();
            next.requests[r].phase = phase;
            next
        };
        let over = |phase: Phase| State { active: None, lock: None, ..to(phase) };
        if phase == Phase::Applying && !state.is_away {
            let good = if self.rules.good_once_verified { state.good } else { state.active };
            steps.step(Alone::Applied as u16, State { good, ..to(Phase::Verifying) });
        }
        if phase == Phase::Verifying && !state.is_away {
            let next = State { good: Some(place), is_degraded: false, ..over(Phase::Succeeded) };
            steps.step(Alone::Healthy as u16, next);
        }
        if matches!(phase, Phase::Applying | Phase::Verifying) {
            self.failures(state, r, &to(Phase::RollingBack), steps);
        }
        if phase != Phase::RollingBack {
            return;
        }
        if !state.is_away {
            let next = State { is_degraded: false, ..over(Phase::RolledBack) };
            steps.step(Alone::RbOk as u16, next);
        }
        if self.has_deadlines() {
            let next = match state.tries + 1 < self.tries {
                true => State { tries: state.tries + 1, ..state.clone() },
                false => State { is_degraded: true, ..over(Phase::RollbackFailed) },
            };
            steps.step(Alone::RbBad as u16, next);
        }
    }

    /// It fails by itself, or is rolled back for a cause that is not its own.
    fn failures(&self, state: &State, r: usize, back: &State, steps: &mut Steps<State>) {
        let (digest, version) = (digest(r), state.requests[r].version);
        if !state.is_away {
            let (bad, failed) = (state.bad | digest, state.failed | digest);
            steps.step(Alone::Fail as u16, State { bad, failed, ..back.clone() });
        }
        let bad = if self.rules.causes_apart { state.bad } else { state.bad | digest };
        let other = State { bad, ..back.clone() };
        if state.is_away && self.has_deadlines() {
            steps.step(Alone::Fail as u16, other.clone());
        }
        if state.cancels < self.cancels {
            let next = State { cancels: self.cancelled(state), ..other.clone() };
            steps.step(Alone::Fail as u16, next);
        }
        for _ in state.queued().filter(|newer| state.requests[*newer].version > version) {
            steps.step(Alone::Fail as u16, other.clone());
        }
    }
}

/// Whether the cluster is at the content of a request already, with nothing in flight.
fn is_there(state: &State, r: usize) -> bool {
    let is_good = state.good.is_some_and(|good| digest(usize::from(good)) == digest(r));
    is_good && state.active.is_none() && !state.is_degraded
}
