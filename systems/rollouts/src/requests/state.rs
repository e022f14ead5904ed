//! The variables of the record, how they are packed and how they are shown.

use super::RolloutsRequests;
use interlock_checker::{Coder, Rng};

pub(crate) const MOST_REQUESTS: usize = 3;

/// Where a request is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) enum Phase {
    #[default]
    New,
    /// Submitted, without a number.
    Pending,
    /// Numbered and valid; it waits.
    Queued,
    Applying,
    Verifying,
    RollingBack,
    Rejected,
    /// A newer one was queued before it started.
    Superseded,
    Cancelled,
    /// It ended before anything was changed.
    Failed,
    Succeeded,
    RolledBack,
    RollbackFailed,
}

const PHASES: [Phase; 13] = [
    Phase::New,
    Phase::Pending,
    Phase::Queued,
    Phase::Applying,
    Phase::Verifying,
    Phase::RollingBack,
    Phase::Rejected,
    Phase::Superseded,
    Phase::Cancelled,
    Phase::Failed,
    Phase::Succeeded,
    Phase::RolledBack,
    Phase::RollbackFailed,
];

impl Phase {
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Phase::Applying | Phase::Verifying | Phase::RollingBack)
    }

    pub(crate) fn is_final(self) -> bool {
        !self.is_active() && !matches!(self, Phase::New | Phase::Pending | Phase::Queued)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) struct Request {
    pub(crate) phase: Phase,
    /// 0: it has no number.
    pub(crate) version: u8,
}

/// What the applier says of the request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) enum Preflight {
    #[default]
    None,
    Good,
    Bad,
}

const PREFLIGHTS: [Preflight; 3] = [Preflight::None, Preflight::Good, Preflight::Bad];

/// The drain that a request asks placement for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) enum Drain {
    #[default]
    None,
    Asked,
    Done,
}

const DRAINS: [Drain; 3] = [Drain::None, Drain::Asked, Drain::Done];

/// The variables of the specification; a request is known by its place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct State {
    pub(crate) requests: [Request; MOST_REQUESTS],
    pub(crate) last_version: u8,
    pub(crate) lock: Option<u8>,
    pub(crate) active: Option<u8>,
    pub(crate) good: Option<u8>,
    pub(crate) is_degraded: bool,
    /// Digests that are remembered as bad, a bit for each.
    pub(crate) bad: u8,
    /// Digests that failed by themselves.
    pub(crate) failed: u8,
    pub(crate) tries: u8,
    pub(crate) preflight: Preflight,
    pub(crate) drain: Drain,
    /// The agent of the cluster is away, for ever.
    pub(crate) is_away: bool,
    pub(crate) cancels: u8,
}

/// The bit of the digest of a request: the third has that of the second.
pub(crate) fn digest(r: usize) -> u8 {
    1 << r.min(1)
}

/// The second request asks for a drain.
pub(crate) fn drains(r: usize) -> bool {
    r == 1
}

impl State {
    pub(crate) fn queued(&self) -> impl Iterator<Item = usize> + '_ {
        let is_queued = |r: &usize| self.requests[*r].phase == Phase::Queued;
        (0..MOST_REQUESTS).filter(is_queued)
    }

    pub(crate) fn code(&mut self, requests: usize, coder: &mut Coder) {
        for request in &mut self.requests[..requests] {
            coder.of(&mut request.phase, &PHASES);
            coder.u8(&mut request.version, 3);
        }
        coder.u8(&mut self.last_version, 3);
        for place in [&mut self.lock, &mut self.active, &mut self.good] {
            let mut number = place.map_or(0, |r| r + 1);
            coder.u8(&mut number, 2);
            *place = number.checked_sub(1);
        }
        coder.bool(&mut self.is_degraded);
        coder.u8(&mut self.bad, 2);
        coder.u8(&mut self.failed, 2);
        coder.u8(&mut self.tries, 2);
        coder.of(&mut self.preflight, &PREFLIGHTS);
        coder.of(&mut self.drain, &DRAINS);
        coder.bool(&mut self.is_away);
        coder.u8(&mut self.cancels, 2);
    }

    pub(crate) fn describe(&self, requests: usize) -> Vec<(&'static str, String)> {
        let each = |show: &dyn Fn(&Request) -> String| {
            let all: Vec<_> = self.requests[..requests].iter().map(show).collect();
            format!("<<{}>>", all.join(", "))
        };
        let place = |place: Option<u8>| place.map_or(0, |r| r + 1).to_string();
        let digests = |mask: u8| {
            let all = (0..2).filter(|digest| mask & 1 << digest != 0);
            let all: Vec<_> = all.map(|digest: u8| (digest + 1).to_string()).collect();
            format!("{{{}}}", all.join(", "))
        };
        let boolean = |value: bool| if value { "TRUE" } else { "FALSE" }.to_owned();
        vec![
            ("st", each(&|request| format!("\"{:?}\"", request.phase))),
            ("ver", each(&|request| request.version.to_string())),
            ("lastV", self.last_version.to_string()),
            ("lock", place(self.lock)),
            ("act", place(self.active)),
            ("good", place(self.good)),
            ("deg", boolean(self.is_degraded)),
            ("bad", digests(self.bad)),
            ("tries", self.tries.to_string()),
            ("pre", format!("\"{:?}\"", self.preflight)),
            ("drain", format!("\"{:?}\"", self.drain)),
            ("away", boolean(self.is_away)),
            ("cancels", self.cancels.to_string()),
            ("failed", digests(self.failed)),
        ]
    }

    pub(crate) fn arbitrary(model: &RolloutsRequests, rng: &mut Rng) -> State {
        let below = |rng: &mut Rng, bound: u8| rng.below(usize::from(bound)) as u8;
        let place = |rng: &mut Rng| below(rng, model.requests as u8 + 1).checked_sub(1);
        let mut state = State {
            last_version: below(rng, model.requests as u8 + 2),
            lock: place(rng),
            active: place(rng),
            good: place(rng),
            is_degraded: rng.flip(),
            bad: below(rng, 4),
            failed: below(rng, 4),
            tries: below(rng, model.tries),
            preflight: PREFLIGHTS[rng.below(PREFLIGHTS.len())],
            drain: DRAINS[rng.below(DRAINS.len())],
            is_away: rng.flip(),
            cancels: below(rng, model.cancels + 1),
            ..State::default()
        };
        for request in &mut state.requests[..model.requests] {
            request.phase = PHASES[rng.below(PHASES.len())];
            request.version = below(rng, model.requests as u8 + 2);
        }
        state
    }
}
