//! The steps of the mark.

use super::{
    ANSWER, CALLS, CRASH, Call, DEAD, DELETE, DROP, GIVE_UP, GONE, IdentitiesMark, LAND, LOOK,
    MARK, Mark, Pending, Phase, Proof, QUIESCE, SEND, SETTLE, State, TAKE, UNMARK,
};
use interlock_checker::Steps;

impl IdentitiesMark {
    pub(super) fn world_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.phase == Phase::Live {
            steps.step(DELETE, State { phase: Phase::Deleting, ..state.clone() });
        }
        if state.stale != [false; 2] {
            steps.step(SETTLE, State { stale: [false; 2], ..state.clone() });
        }
        for call in CALLS {
            for sender in self.senders() {
                self.flight_steps(state, call, sender, steps);
            }
        }
    }

    /// A call lands or is lost. The one that its sender waits for is not lost: that is `GiveUp`.
    fn flight_steps(&self, state: &State, call: Call, sender: usize, steps: &mut Steps<State>) {
        let calls = state.in_flight[call as usize][sender];
        if calls == 0 {
            return;
        }
        let mut fewer = state.clone();
        fewer.in_flight[call as usize][sender] -= 1;
        let mut landed = fewer.clone();
        landed.exists = call == Call::Create;
        if landed.exists != state.exists {
            landed.stale[usize::from(state.exists)] = true;
        }
        let is_waited_for = sender != DEAD && state.pending[sender] == Pending::Wait(call);
        let land = self.of_call(LAND, call, sender);
        if is_waited_for {
            let mut answered = landed.clone();
            answered.pending[sender] = Pending::Done(call);
            steps.step(land, answered);
        }
        if !is_waited_for || calls > 1 {
            steps.step(land, landed);
            steps.step(self.of_call(DROP, call, sender), fewer);
        }
    }

    /// What is written to the declaration about the mark, one guarded write each.
    pub(super) fn mark_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let me = Mark::Of(i as u8);
        let is_idle = state.pending[i] == Pending::Idle;
        let (may, faults) = match state.mark {
            Mark::None => (true, 0),
            Mark::Dead => (self.rules.own_mark, 0),
            Mark::Of(_) => (self.rules.own_mark && state.faults < self.faults, self.one()),
        };
        if state.mark != me && is_idle && state.phase != Phase::Gone && may {
            let waits = state.mark != Mark::None && self.rules.wait_other;
            let is_due = state.phase == Phase::Deleting || state.may_read(false);
            let is_held = matches!(state.mark, Mark::Of(_));
            let kind = if !is_held && is_due { TAKE } else { MARK };
            let next = State {
                mark: me,
                proof: if waits { Proof::Wait } else { Proof::Quiet },
                once: state.once | 1 << i,
                faults: state.faults + faults,
                ..state.clone()
            };
            steps.step(self.of_instance(kind, i), next);
        }
        let may_unmark = match self.rules.quiet_to_unmark {
            true => state.proof == Proof::Quiet,
            false => state.proof != Proof::Wait,
        };
        let is_made = state.phase == Phase::Live && state.may_read(true);
        if state.mark == me && is_idle && may_unmark && is_made {
            let next = State { mark: Mark::None, proof: Proof::Quiet, ..state.clone() };
            steps.step(self.of_instance(UNMARK, i), next);
        }
        let is_quiet = state.nothing_in_flight() && state.stale == [false; 2];
        let none_about_to_send = !state.pending.iter().any(|it| matches!(it, Pending::Send(_)));
        let may_quiesce = self.rules.expire && state.mark == me && state.proof != Proof::Quiet;
        if may_quiesce && is_quiet && none_about_to_send && is_idle {
            let next = State { proof: Proof::Quiet, ..state.clone() };
            steps.step(self.of_instance(QUIESCE, i), next);
        }
    }

    /// In how many ways a process may act: TLC counts each disjunct of `MayAct` that is true.
    fn ways_to_act(&self, state: &State, i: usize) -> usize {
        let rules = &self.rules;
        let ways = [
            !rules.mark_first,
            state.mark == Mark::Of(i as u8) && state.proof != Proof::Wait,
            !rules.own_mark && state.mark != Mark::None,
            !rules.live_mark && state.once >> i & 1 == 1,
        ];
        ways.into_iter().filter(|way| *way).count()
    }

    /// Read everything, send one call, and learn what it did or give up.
    pub(super) fn call_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let mut step = |kind: u16, pending: Pending, change: &dyn Fn(&mut State)| {
            let mut next = state.clone();
            next.pending[i] = pending;
            change(&mut next);
            steps.step(self.of_instance(kind, i), next);
        };
        match state.pending[i] {
            Pending::Idle if state.sent < self.calls => {
                let call = match state.phase {
                    Phase::Live if state.may_read(false) => Call::Create,
                    Phase::Deleting if state.may_read(true) => Call::Delete,
                    Phase::Live | Phase::Deleting | Phase::Gone => return,
                };
                for _ in 0..self.ways_to_act(state, i) {
                    step(LOOK, Pending::Send(call), &|_| {});
                }
            }
            Pending::Idle => {}
            Pending::Send(call) => step(SEND, Pending::Wait(call), &|next| {
                next.sent += self.one();
                next.in_flight[call as usize][i] += 1;
                if next.mark == Mark::Of(i as u8) && next.proof == Proof::Quiet {
                    next.proof = Proof::Clear;
                }
            }),
            Pending::Wait(_) | Pending::Done(_) => {
                if matches!(state.pending[i], Pending::Done(_)) {
                    step(ANSWER, Pending::Idle, &|_| {});
                }
                if state.faults < self.faults {
                    step(GIVE_UP, Pending::Idle, &|next| next.faults += self.one());
                }
            }
        }
    }

    /// In how many ways absence is believed, as above.
    fn ways_to_believe(&self, state: &State, i: usize) -> usize {
        let rules = &self.rules;
        let is_quiet = match rules.quiet_to_believe {
            true => state.proof == Proof::Quiet,
            false => state.proof != Proof::Wait,
        };
        let ways = [
            state.mark == Mark::None,
            state.mark == Mark::Of(i as u8) && is_quiet,
            !rules.own_mark,
            !rules.mark_first,
        ];
        ways.into_iter().filter(|way| *way).count()
    }

    /// The declaration ends, or the process does.
    pub(super) fn end_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let is_absent = state.phase == Phase::Deleting && state.may_read(false);
        if is_absent && state.pending[i] == Pending::Idle {
            for _ in 0..self.ways_to_believe(state, i) {
                let next = State { phase: Phase::Gone, ..state.clone() };
                steps.step(self.of_instance(GONE, i), next);
            }
        }
        if state.faults == self.faults {
            return;
        }
        // The next process is another one, so its calls are those of nobody who is there.
        let mut next = State { faults: state.faults + self.one(), ..state.clone() };
        next.pending[i] = Pending::Idle;
        next.once &= !(1 << i);
        if next.mark == Mark::Of(i as u8) {
            next.mark = Mark::Dead;
        }
        for calls in &mut next.in_flight {
            calls[DEAD] += std::mem::take(&mut calls[i]);
        }
        steps.step(self.of_instance(CRASH, i), next);
    }
}
