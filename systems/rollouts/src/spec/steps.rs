//! The steps of the rollouts protocol.

use super::state::{OBJECTS, Object, Outcome, Stage, State, Write, wanted};
use super::{
    APPLY_DONE, FAIL, HEALTHY, LAND, PREFLIGHT, RB_BAD, RB_OK, REJECT, RolloutsFence, SEE, SEND,
    SEND_OLDER, SET_FENCE, START, SUBMIT, TAKE,
};
use interlock_checker::Steps;

impl RolloutsFence {
    /// Requests come, and are refused, queued or started.
    pub(super) fn request_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.last_version < self.versions {
            let version = state.last_version + 1;
            let submitted = State { last_version: version, ..state.clone() };
            let mut next = State { queued: version, ..submitted.clone() };
            if state.queued != 0 && self.rules.supersede {
                next.set_outcome(state.queued, Outcome::Superseded);
            }
            next.set_outcome(version, Outcome::Queued);
            steps.step(SUBMIT, next);
            let mut next = submitted;
            next.set_outcome(version, Outcome::Rejected);
            steps.step(REJECT, next);
        }
        let is_free = state.stage == Stage::Idle || !self.rules.one_at_a_time;
        if is_free && state.queued != 0 {
            let version = state.queued;
            let mut next = State { active: version, queued: 0, ..state.clone() };
            next.set_outcome(version, Outcome::Applying);
            self.begin(&mut next, version, Stage::Applying);
            steps.step(START, next);
            let mut next = State { queued: 0, ..state.clone() };
            next.set_outcome(version, Outcome::Failed);
            steps.step(PREFLIGHT, next);
        }
    }

    /// A new token towards a version: whatever was read under the old one counts no more.
    fn begin(&self, next: &mut State, version: u8, stage: Stage) {
        next.token += 1;
        next.targets[usize::from(next.token)] = version;
        next.stage = stage;
        if self.rules.read_after_fence {
            next.seen = [None; OBJECTS];
        }
    }

    /// The fence stands at the present token: nothing older can land any more.
    fn is_fenced(&self, state: &State) -> bool {
        !self.rules.fence || state.fence == state.token
    }

    fn is_done(&self, state: &State) -> bool {
        let version = state.target(state.token);
        let mut seen = state.seen.iter().enumerate();
        let as_wanted = |(o, seen): (usize, &Option<Object>)| {
            seen.is_some_and(|seen| seen.is_as(wanted(o, version)))
        };
        self.is_fenced(state) && seen.all(as_wanted)
    }

    /// The active request moves on, or another controller takes it over.
    pub(super) fn progress_steps(&self, state: &State, steps: &mut Steps<State>) {
        let done = self.is_done(state);
        match state.stage {
            Stage::Idle => return,
            Stage::Applying => {
                if done {
                    steps.step(APPLY_DONE, self.applied(state));
                }
                steps.step(FAIL, self.failed(state));
            }
            Stage::Verifying => {
                if done {
                    let next = State { good: state.active, ..ended(state, Outcome::Succeeded) };
                    steps.step(HEALTHY, next);
                }
                steps.step(FAIL, self.failed(state));
            }
            Stage::RollingBack => {
                if done {
                    steps.step(RB_OK, ended(state, Outcome::RolledBack));
                }
                let next = State { is_degraded: true, ..ended(state, Outcome::RollbackFailed) };
                steps.step(RB_BAD, next);
            }
        }
        if state.takeovers < self.takeovers {
            let mut next = State { takeovers: state.takeovers + 1, ..state.clone() };
            self.begin(&mut next, state.target(state.token), state.stage);
            steps.step(TAKE, next);
        }
        if self.rules.fence && state.fence < state.token {
            steps.step(SET_FENCE, State { fence: state.token, ..state.clone() });
        }
    }

    fn applied(&self, state: &State) -> State {
        let mut next = State { stage: Stage::Verifying, ..state.clone() };
        next.set_outcome(state.active, Outcome::Verifying);
        if !self.rules.good_once_verified {
            next.good = state.active;
        }
        next
    }

    fn failed(&self, state: &State) -> State {
        let mut next = state.clone();
        next.set_outcome(state.active, Outcome::RollingBack);
        self.begin(&mut next, state.good, Stage::RollingBack);
        next
    }

    /// Writes are sent and land, and objects are read.
    pub(super) fn write_steps(&self, state: &State, steps: &mut Steps<State>) {
        for write in state.writes.each() {
            if let Some(next) = self.landed(state, write) {
                steps.step(LAND, next);
            }
        }
        let may_read =
            !self.rules.read_after_fence || (state.stage != Stage::Idle && self.is_fenced(state));
        for object in 0..OBJECTS {
            let is_new = state.seen[object] != Some(state.objects[object]);
            if is_new && may_read {
                let mut next = state.clone();
                next.seen[object] = Some(state.objects[object]);
                steps.step(SEE + object as u16, next);
            }
            for token in 1..=state.token {
                self.send_steps(state, object, token, steps);
            }
        }
    }

    fn send_steps(&self, state: &State, object: usize, token: u8, steps: &mut Steps<State>) {
        let there = &state.objects[object];
        let is_full = state.writes.each().count() == usize::from(self.messages);
        let before_fence = self.rules.fence && state.fence < token;
        let is_outdated = self.rules.token_guard && there.token > token;
        if is_full || before_fence || is_outdated {
            return;
        }
        let (write, reasons) = self.write_towards(state, object, token);
        if state.writes.each().any(|other| other == write) {
            return;
        }
        let action = if token == state.token { SEND } else { SEND_OLDER };
        for _ in 0..reasons {
            let next = State { writes: state.writes.with(write), ..state.clone() };
            steps.step(action + object as u16, next);
        }
    }

    /// What a token would write to an object, and how many reasons there are: an object that is to
    /// be there and is absent is both absent and different.
    fn write_towards(&self, state: &State, object: usize, token: u8) -> (Write, u8) {
        let there = &state.objects[object];
        let put = |value| Write { object, is_delete: false, token, value, before: there.revision };
        match wanted(object, state.target(token)) {
            Some(value) => (put(value), u8::from(!there.exists()) + u8::from(there.value != value)),
            None if self.rules.mark_first && there.token != token => {
                (put(there.value), u8::from(there.exists()))
            }
            None => (Write { is_delete: true, value: 0, ..put(0) }, u8::from(there.exists())),
        }
    }

    /// The cluster after a write arrived, whether it was taken or refused.
    fn landed(&self, state: &State, write: Write) -> Option<State> {
        let mut next = State { writes: state.writes.without(write), ..state.clone() };
        let there = state.objects[write.object];
        let loose = !self.rules.revision_guard && write.before != 0 && there.exists();
        let fits = there.revision == write.before || loose;
        if !fits || !self.is_admitted(state, write) {
            return Some(next);
        }
        if state.next_revision == self.most_revisions() {
            return None;
        }
        next.objects[write.object] = match write.is_delete {
            true => Object::default(),
            false => {
                Object { value: write.value, revision: state.next_revision, token: write.token }
            }
        };
        next.next_revision += 1;
        Some(next)
    }

    fn is_admitted(&self, state: &State, write: Write) -> bool {
        if !self.rules.fence {
            return true;
        }
        if write.is_delete {
            return !self.rules.mark_first || state.objects[write.object].token >= state.fence;
        }
        write.token >= state.fence
    }
}

/// The active request comes to its end, and the cluster to rest.
fn ended(state: &State, outcome: Outcome) -> State {
    let mut next = State { stage: Stage::Idle, active: 0, is_degraded: false, ..state.clone() };
    next.set_outcome(state.active, outcome);
    next
}
