//! The steps of the rights protocol.

use super::state::{Call, DEAD, Grant, Mark, Pending, Phase, Process, Proof, Session, TRUSTS};
use super::{
    ANSWER, CRASH, DROP, FORCE, GIVE_UP, GRANT, IdentitiesRights, LAND, LOOK, MARK, PASS_T, PERMIT,
    QUIESCE, RELEASE, REVOKE, SEND, SETTLE, STOP, State, TAKE, WRITE_FENCED, WRITE_READY,
};
use interlock_checker::{ActionId, Steps};

impl IdentitiesRights {
    /// The hub grants, revokes and forces; the syncers permit and stop.
    pub(super) fn placement_steps(&self, state: &State, steps: &mut Steps<State>) {
        let Grant { epoch, phase } = state.grant;
        let has_next = epoch < self.epochs;
        let mut to = |action: ActionId, grant: Grant, forced: u8| {
            let mut next = State { grant, forced, ..state.clone() };
            if !self.rules.live_grant {
                next.history |= grant.bit();
            }
            steps.step(action, next);
        };
        if phase == Phase::Granted && has_next {
            to(REVOKE, Grant { epoch, phase: Phase::Revoking }, state.forced);
        }
        if phase == Phase::Revoking && state.running[self.owner(epoch)] != epoch {
            to(RELEASE, Grant { epoch, phase: Phase::Released }, state.forced);
        }
        if state.grant.is_held() && state.forced < self.forced && has_next {
            to(FORCE, Grant { epoch, phase: Phase::Fenced }, epoch);
        }
        if !state.grant.is_held() && has_next {
            to(GRANT, Grant { epoch: epoch + 1, phase: Phase::Granted }, state.forced);
        }
        let owner = self.owner(epoch);
        let is_ready = state.ready == epoch || !self.rules.await_rights;
        if phase == Phase::Granted && state.running[owner] == 0 && is_ready {
            let mut next = state.clone();
            next.running[owner] = epoch;
            steps.step(PERMIT, next);
        }
        for cluster in 0..state.running.len() {
            let runs = state.running[cluster];
            let reasons = [runs != epoch, phase != Phase::Granted];
            // TLC counts each reason.
            for _ in reasons.iter().filter(|reason| runs != 0 && **reason) {
                let mut next = state.clone();
                next.running[cluster] = 0;
                steps.step(STOP + cluster as u16, next);
            }
        }
    }

    /// Old copies of the trust are gone, the time of a fence passes, somebody gets a session.
    pub(super) fn cloud_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.stale != 0 {
            steps.step(SETTLE, State { stale: 0, ..state.clone() });
        }
        if state.past < state.recorded && (state.stale == 0 || !self.rules.fence_later) {
            steps.step(PASS_T, State { past: state.recorded, ..state.clone() });
        }
        for epoch in state.reads().filter(|epoch| *epoch != 0) {
            let bit = Session { epoch, after: state.past }.bit();
            if state.issued & bit == 0 {
                let next = State { issued: state.issued | bit, ..state.clone() };
                steps.step(self.assume(epoch), next);
            }
        }
    }

    fn land(&self, state: &State, call: Call) -> State {
        let mut next = state.clone();
        match call {
            Call::Trust(trust) if trust == state.trust => {}
            Call::Trust(trust) => {
                next.trust = trust;
                next.stale = (state.stale | 1 << state.trust) & !(1 << trust);
            }
            Call::Fence(epoch) if self.rules.own_name => next.fence = state.fence.max(epoch),
            Call::Fence(epoch) => next.fence = epoch,
        }
        next
    }

    /// Calls of one sender land; those that nobody waits for may be lost.
    pub(super) fn flight_steps(&self, state: &State, sender: usize, steps: &mut Steps<State>) {
        let land = self.of_sender(LAND, sender);
        let waiting = state.processes.get(sender).map(|process| process.pending);
        if let Some(Pending::Wait(call)) = waiting {
            let mut next = self.land(state, call);
            next.processes[sender].pending = Pending::Done(call);
            steps.step(land, next);
        }
        for call in Call::each(state.late[sender]) {
            let mut landed = self.land(state, call);
            landed.late[sender] &= !call.bit();
            steps.step(land, landed);
            let mut dropped = state.clone();
            dropped.late[sender] &= !call.bit();
            steps.step(self.of_sender(DROP, sender), dropped);
        }
    }

    /// The mark is written, taken over, or has been waited out.
    pub(super) fn mark_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let me = Mark::Of(i as u8);
        let process = &state.processes[i];
        let is_idle = process.pending == Pending::Idle;
        let (may, kind, faults) = match state.mark {
            Mark::None => (true, TAKE, 0),
            Mark::Dead => (self.rules.own_mark, TAKE, 0),
            Mark::Of(_) => (self.rules.own_mark && state.faults < self.faults, MARK, self.fault()),
        };
        if state.mark != me && is_idle && may {
            let waits = state.mark != Mark::None && self.rules.wait_other;
            let mut next = State {
                mark: me,
                proof: if waits { Proof::Wait } else { Proof::Quiet },
                faults: state.faults + faults,
                ..state.clone()
            };
            next.processes[i].marked_once = true;
            next.processes[i].last = None;
            steps.step(self.of_instance(kind, i), next);
        }
        let is_sending = |process: &Process| matches!(process.pending, Pending::Send(_));
        let is_over = state.stale == 0 && state.nothing_in_flight();
        if state.mark != me || !is_over || !is_idle || state.processes.iter().any(is_sending) {
            return;
        }
        let reasons = [state.proof != Proof::Quiet, process.unanswered != 0];
        for _ in reasons.iter().filter(|reason| **reason) {
            let mut next = State { proof: Proof::Quiet, ..state.clone() };
            next.processes[i].unanswered = 0;
            next.processes[i].last = None;
            steps.step(self.of_instance(QUIESCE, i), next);
        }
    }

    /// In how many ways a process may act: TLC counts each disjunct of `MayAct` that is true.
    fn ways_to_act(&self, state: &State, i: usize) -> usize {
        let ways = [
            state.mark == Mark::Of(i as u8) && state.proof != Proof::Wait,
            !self.rules.own_mark && state.mark != Mark::None,
            !self.rules.live_mark && state.processes[i].marked_once,
        ];
        ways.into_iter().filter(|way| *way).count()
    }

    /// The Grants that a look may show, with their forced epochs.
    fn shown_grants(&self, state: &State) -> Vec<(Grant, u8)> {
        match self.rules.live_grant {
            true => vec![(state.grant, state.forced)],
            false => state.seen_grants(),
        }
    }

    pub(super) fn look_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        if state.processes[i].pending != Pending::Idle {
            return;
        }
        for _ in 0..self.ways_to_act(state, i) {
            for (grant, forced) in self.shown_grants(state) {
                for trust in state.reads() {
                    let look = Look { grant, forced, trust };
                    let again = self.closed_again(state, i, &look);
                    for next in self.decided(state, i, &look).into_iter().chain(again) {
                        steps.step(self.of_instance(LOOK, i), next);
                    }
                }
            }
        }
    }

    /// What ships closes the trust once more where its read could be older than a call of another kind.
    fn closed_again(&self, state: &State, i: usize, look: &Look) -> Option<State> {
        let is_due = self.more.closes_again && state.recorded < look.forced;
        let waits = state.processes[i].unanswered & TRUSTS & !Call::Trust(0).bit() != 0;
        (is_due && !waits && self.is_closed(state, i, look)).then(|| {
            let mut next = state.clone();
            next.processes[i].pending = Pending::Send(Call::Trust(0));
            next
        })
    }

    /// The one thing to do next, by what was read.
    fn decided(&self, state: &State, i: usize, look: &Look) -> Option<State> {
        let process = &state.processes[i];
        let to = |pending: Pending| {
            let mut next = state.clone();
            next.processes[i].pending = pending;
            next
        };
        let send = |call: Call| {
            let others = process.unanswered & TRUSTS & !call.bit();
            let waits = self.rules.wait_own && matches!(call, Call::Trust(_)) && others != 0;
            (!waits).then(|| to(Pending::Send(call)))
        };
        if !self.is_fence_done(state, look.forced) {
            if state.recorded >= look.forced {
                return if state.fence < look.forced {
                    send(Call::Fence(look.forced))
                } else {
                    None
                };
            }
            return match self.is_closed(state, i, look) {
                true => Some(State { recorded: look.forced, ..state.clone() }),
                false => send(Call::Trust(0)),
            };
        }
        let Grant { epoch, phase } = look.grant;
        match phase {
            Phase::Fenced => {
                (state.said_fenced < look.forced).then(|| to(Pending::Fenced(look.forced)))
            }
            Phase::Granted if look.trust != epoch => send(Call::Trust(epoch)),
            Phase::Granted => {
                let is_sure = !self.rules.wait_own || process.unanswered & TRUSTS == 0;
                (state.ready != epoch && is_sure).then(|| to(Pending::Ready(epoch)))
            }
            Phase::Revoking if !self.rules.after_release && look.trust != epoch + 1 => {
                send(Call::Trust(epoch + 1))
            }
            Phase::Revoking | Phase::Released => None,
        }
    }

    fn is_fence_done(&self, state: &State, forced: u8) -> bool {
        let has_passed = state.past >= forced || !self.rules.wait_fence;
        forced == 0
            || !self.rules.fence
            || state.fence >= forced && state.recorded >= forced && has_passed
    }

    /// Whether the trust is known to be closed for all forced epochs.
    fn is_closed(&self, state: &State, i: usize, look: &Look) -> bool {
        let is_sure = !self.rules.believe_quiet
            || state.mark == Mark::Of(i as u8) && state.proof == Proof::Quiet;
        let reads_closed = look.trust == 0 || look.trust > look.forced;
        !self.rules.close_first || state.processes[i].last == Some(0) || reads_closed && is_sure
    }

    /// A process does what it has decided, and learns what its call did or gives up.
    pub(super) fn pending_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let mut step = |kind: u16, pending: Pending, change: &dyn Fn(&mut State)| {
            let mut next = state.clone();
            next.processes[i].pending = pending;
            change(&mut next);
            steps.step(self.of_instance(kind, i), next);
        };
        let me = Mark::Of(i as u8);
        match state.processes[i].pending {
            Pending::Idle => {}
            // Writes to the Grant are guarded: they rest on the value that was read.
            Pending::Ready(epoch) => step(WRITE_READY, Pending::Idle, &|next| {
                if next.grant == (Grant { epoch, phase: Phase::Granted }) {
                    next.ready = epoch;
                }
            }),
            Pending::Fenced(epoch) => step(WRITE_FENCED, Pending::Idle, &|next| {
                if next.grant == (Grant { epoch, phase: Phase::Fenced }) {
                    next.said_fenced = epoch;
                }
            }),
            Pending::Send(call) => step(SEND, Pending::Wait(call), &|next| {
                if next.mark == me && next.proof == Proof::Quiet {
                    next.proof = Proof::Clear;
                }
                if matches!(call, Call::Trust(_)) {
                    next.processes[i].last = None;
                }
            }),
            Pending::Wait(call) => self.give_up(state, i, call, steps),
            Pending::Done(call) => {
                step(ANSWER, Pending::Idle, &|next| match call {
                    Call::Trust(epoch) if next.mark == me => next.processes[i].last = Some(epoch),
                    Call::Trust(_) | Call::Fence(_) => {}
                });
                self.give_up(state, i, call, steps);
            }
        }
    }

    /// The answer does not come in time, or does not say what happened.
    fn give_up(&self, state: &State, i: usize, call: Call, steps: &mut Steps<State>) {
        if state.faults == self.faults {
            return;
        }
        let mut next = State { faults: state.faults + self.fault(), ..state.clone() };
        if state.processes[i].pending == Pending::Wait(call) {
            next.late[i] |= call.bit();
        }
        next.processes[i].pending = Pending::Idle;
        next.processes[i].unanswered |= call.bit();
        steps.step(self.of_instance(GIVE_UP, i), next);
    }

    /// The next process is another one, so its calls are those of nobody who is there.
    pub(super) fn crash_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        if state.faults == self.faults {
            return;
        }
        let mut next = State { faults: state.faults + self.fault(), ..state.clone() };
        next.late[DEAD] |= std::mem::take(&mut next.late[i]);
        if let Pending::Wait(call) = state.processes[i].pending {
            next.late[DEAD] |= call.bit();
        }
        next.processes[i] = Process::default();
        if next.mark == Mark::Of(i as u8) {
            next.mark = Mark::Dead;
        }
        steps.step(self.of_instance(CRASH, i), next);
    }
}

/// What a process saw before it decides: the Grant, its forced epoch, and the trust.
struct Look {
    grant: Grant,
    forced: u8,
    trust: u8,
}
