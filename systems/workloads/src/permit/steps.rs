//! The steps of pods that controllers make.

use super::Workloads;
use super::state::{Held, Pod, State, Still, View, bit};
use interlock_checker::{ActionId, Steps};

// Action ids: those alone, then each kind for each name, then each kind for each maker.
pub(super) const ALONE: [&str; 16] = [
    "Arrive",
    "Permit",
    "Bring",
    "Revoke",
    "Withdraw",
    "DeleteMaker",
    "LookLists",
    "LookLocks",
    "Close",
    "Cache",
    "LetGo",
    "LookPermit",
    "Start",
    "Stop",
    "Die",
    "Exit",
];
const ARRIVE: ActionId = 0;
const PERMIT: ActionId = 1;
const BRING: ActionId = 2;
const REVOKE: ActionId = 3;
const WITHDRAW: ActionId = 4;
const DELETE_MAKER: ActionId = 5;
const LOOK_LISTS: ActionId = 6;
const LOOK_LOCKS: ActionId = 7;
const CLOSE: ActionId = 8;
const CACHE: ActionId = 9;
const LET_GO: ActionId = 10;
const LOOK_PERMIT: ActionId = 11;
const START: ActionId = 12;
const STOP: ActionId = 13;
const DIE: ActionId = 14;
const EXIT: ActionId = 15;
pub(super) const OF_NAME: [&str; 6] =
    ["DeletePod", "TakeLock", "Confirm", "Collect", "Delete", "Strip"];
const DELETE_POD: u16 = 0;
const TAKE_LOCK: u16 = 1;
const CONFIRM: u16 = 2;
const COLLECT: u16 = 3;
const DELETE: u16 = 4;
const STRIP: u16 = 5;
pub(super) const OF_MAKER: [&str; 2] = ["Observe", "Create"];
const OBSERVE: u16 = 0;
const CREATE: u16 = 1;

impl Workloads {
    fn of_name(&self, kind: u16, s: usize) -> ActionId {
        ALONE.len() as u16 + kind * self.names().len() as u16 + s as u16
    }

    fn of_maker(&self, kind: u16, m: usize) -> ActionId {
        let first = self.of_name(OF_NAME.len() as u16, 0);
        first + kind * self.makers as u16 + m as u16
    }

    /// The lock of a pod of this name and uid is taken, or a process has it.
    fn is_taken(&self, state: &State, s: usize, uid: u8) -> bool {
        state.held.iter().zip(1..).any(|(held, other): (_, u8)| {
            let is_same = self.rules.lock_by_name || other == uid;
            held.is_taken() && usize::from(held.name) == s && is_same
        })
    }

    /// What was revoked is being cleared.
    fn is_clearing(&self, state: &State) -> bool {
        state.is_revoked && (!self.rules.withdraw_first || state.permit == 0)
    }

    pub(super) fn syncer_steps(&self, state: &State, steps: &mut Steps<State>) {
        let epoch = state.epoch;
        let is_owner = state.released < epoch && !state.is_revoked;
        if state.released == epoch && epoch < self.epochs {
            steps.step(ARRIVE, State { epoch: epoch + 1, ..state.clone() });
        }
        if state.permit == 0 && is_owner {
            steps.step(PERMIT, State { permit: epoch, ..state.clone() });
        }
        if state.permit == epoch && !state.is_revoked && state.maker == 0 {
            steps.step(BRING, State { maker: epoch, ..state.clone() });
        }
        if is_owner {
            steps.step(REVOKE, State { is_revoked: true, still: Still::No, ..state.clone() });
        }
        let may_withdraw = self.rules.withdraw_first || state.still == Still::Locks;
        // TLC counts each disjunct of `WithdrawFirst \/ still = "locks"` that is true.
        let reasons = [self.rules.withdraw_first, state.still == Still::Locks];
        for _ in reasons.iter().filter(|reason| **reason && may_withdraw) {
            if state.is_revoked && state.permit != 0 {
                let still = if self.rules.withdraw_first { Still::No } else { state.still };
                steps.step(WITHDRAW, State { permit: 0, still, ..state.clone() });
            }
        }
        if self.is_clearing(state) && state.maker != 0 {
            steps.step(DELETE_MAKER, State { maker: 0, ..state.clone() });
        }
    }

    /// A live look, in this order: lists of makers and pods, then the locks; then the release.
    pub(super) fn look_steps(&self, state: &State, steps: &mut Steps<State>) {
        if self.is_clearing(state) {
            let is_free = !state.held.iter().any(Held::is_taken);
            match state.still {
                Still::No if state.maker == 0 && state.taken_names() == 0 => {
                    steps.step(LOOK_LISTS, State { still: Still::Lists, ..state.clone() });
                }
                Still::Lists if is_free || !self.rules.locks_seen => {
                    steps.step(LOOK_LOCKS, State { still: Still::Locks, ..state.clone() });
                }
                Still::No | Still::Lists | Still::Locks => {}
            }
        }
        if state.still == Still::Locks && state.permit == 0 {
            let next = State {
                released: state.epoch,
                is_revoked: false,
                still: Still::No,
                ..state.clone()
            };
            steps.step(CLOSE, next);
        }
    }

    /// What happens to the pod of one name.
    pub(super) fn pod_steps(&self, state: &State, s: usize, steps: &mut Steps<State>) {
        let pod = state.pods[s];
        if !pod.exists() {
            return;
        }
        let mut step = |kind: u16, faults: u8, pod: Pod| {
            let mut next = state.clone();
            next.faults += faults;
            next.pods[s] = pod;
            steps.step(self.of_name(kind, s), next);
        };
        let is_taken = self.is_taken(state, s, pod.uid);
        let may_fail = state.faults < self.faults;
        if pod.is_leaving {
            // The finalizer is taken off when no process and no lock of the pod is left, or by a person.
            if !is_taken {
                step(CONFIRM, 0, Pod::default());
            }
            if may_fail {
                step(STRIP, 1, Pod::default());
            }
            return;
        }
        let leaving = Pod { is_leaving: true, ..pod };
        if self.is_clearing(state) && state.maker == 0 {
            step(DELETE_POD, 0, leaving);
        }
        if pod.epoch != state.maker {
            step(COLLECT, 0, leaving);
        }
        if may_fail {
            step(DELETE, 1, leaving);
        }
        if !is_taken {
            let mut next = state.clone();
            let held = &mut next.held[usize::from(pod.uid) - 1];
            (held.is_locked, held.name) = (true, s as u8);
            steps.step(self.of_name(TAKE_LOCK, s), next);
        }
    }

    /// A maker reads, and makes a pod of what it has read.
    pub(super) fn maker_steps(&self, state: &State, m: usize, steps: &mut Steps<State>) {
        let now = View { maker: state.maker, names: state.taken_names() };
        let view = state.views[m];
        if view != now {
            let mut next = state.clone();
            next.views[m] = now;
            steps.step(self.of_maker(OBSERVE, m), next);
        }
        let is_short = (view.names.count_ones() as usize) < self.wanted;
        if view.maker == 0 || !is_short || state.next_uid > self.pods {
            return;
        }
        let lowest = (0..self.wanted).find(|s| view.names & 1 << s == 0);
        let is_chosen = |s: &usize| !self.rules.slots || lowest == Some(*s);
        for s in self.names().filter(|s| is_chosen(s) && !state.pods[*s].exists()) {
            let mut next = state.clone();
            next.pods[s] = Pod { uid: state.next_uid, epoch: view.maker, is_leaving: false };
            next.next_uid += 1;
            steps.step(self.of_maker(CREATE, m), next);
        }
    }

    fn with_held(&self, state: &State, uid: u8, held: Held) -> State {
        let mut next = state.clone();
        next.held[usize::from(uid) - 1] = held.tidied();
        next
    }

    /// The runtime: lock, live read, start. It may let go at any time.
    pub(super) fn runtime_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.cached_permit != state.permit {
            steps.step(CACHE, State { cached_permit: state.permit, ..state.clone() });
        }
        let permit = if self.rules.permit_read { state.permit } else { state.cached_permit };
        let is_valid = permit != 0 && (!self.rules.permit_read || state.released < permit);
        for (held, uid) in state.held.into_iter().zip(1..).filter(|(held, _)| held.is_locked) {
            let free = Held { is_locked: false, ..held };
            steps.step(LET_GO, self.with_held(state, uid, Held { may: 0, ..free }));
            let pod = state.pods[usize::from(held.name)];
            let is_there = pod.uid == uid && !pod.is_leaving;
            let is_of_epoch = !self.rules.epoch_stamp || pod.epoch == permit;
            let may = held.may | bit(permit);
            if is_there && is_valid && is_of_epoch && may != held.may {
                let next = Held { of: pod.epoch, may, ..held };
                steps.step(LOOK_PERMIT, self.with_held(state, uid, next));
            }
            for one in (1..=self.epochs).map(bit).filter(|one| held.may & one != 0) {
                let next = Held { may: held.may & !one, runs: held.runs | one, ..free };
                steps.step(START, self.with_held(state, uid, next));
            }
        }
    }

    /// Processes end: their pod is being deleted, or by themselves; or the runtime dies, and they live on.
    pub(super) fn process_steps(&self, state: &State, steps: &mut Steps<State>) {
        let may_fail = state.faults < self.faults;
        for (held, uid) in state.held.into_iter().zip(1..) {
            let pod = state.pods[usize::from(held.name)];
            for one in (1..=self.epochs).map(bit).filter(|one| held.runs & one != 0) {
                let next = self.with_held(state, uid, Held { runs: held.runs & !one, ..held });
                if pod.uid == uid && pod.is_leaving {
                    steps.step(STOP, next.clone());
                }
                if may_fail {
                    steps.step(EXIT, State { faults: state.faults + 1, ..next });
                }
            }
        }
        if may_fail {
            let mut next = State { faults: state.faults + 1, ..state.clone() };
            next.held = next.held.map(|held| Held { is_locked: false, may: 0, ..held }.tidied());
            steps.step(DIE, next);
        }
    }
}
