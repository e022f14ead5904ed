//! The steps of a Deployment's sizes.

use super::Surge;
use super::state::{Guard, Kind, Pod, REPLICA_SETS, State, Write};
use interlock_checker::{ActionId, Steps};

// Action ids: two alone, each kind for each ReplicaSet, a write of each kind, then each kind for each name.
pub(super) const ALONE: [&str; 2] = ["DecidePlan", "Undo"];
const DECIDE_PLAN: ActionId = 0;
const UNDO: ActionId = 1;
pub(super) const OF_REPLICA_SET: [&str; 5] =
    ["DecideSpec", "DecideCreate", "DecideLeave", "DecideDelete", "DecideClear"];
const SPEC: u16 = 0;
const CREATE: u16 = 1;
const LEAVE: u16 = 2;
const DELETE: u16 = 3;
const CLEAR: u16 = 4;
pub(super) const OF_WRITE: [&str; 6] = ["plan", "spec", "create", "name", "delete", "clear"];
pub(super) const OF_NAME: [&str; 2] = ["BecomeReady", "Gone"];
const BECOME_READY: u16 = 0;
const GONE: u16 = 1;

fn of_replica_set(kind: u16, i: usize) -> ActionId {
    ALONE.len() as u16 + kind * REPLICA_SETS as u16 + i as u16
}

fn of_write(kind: Kind) -> ActionId {
    of_replica_set(OF_REPLICA_SET.len() as u16, 0) + kind as u16
}

impl Surge {
    fn of_name(&self, kind: u16, s: usize) -> ActionId {
        let first = of_write(Kind::Plan) + OF_WRITE.len() as u16;
        first + kind * self.names().len() as u16 + s as u16
    }

    /// A controller decides on a write, if there is room for it.
    fn decide(&self, state: &State, action: ActionId, write: Write, steps: &mut Steps<State>) {
        let write = Write { is_fresh: true, ..write };
        if let Some(pending) = state.pending.with(write, self.pending) {
            steps.step(action, State { pending, ..state.clone() });
        }
    }

    /// The sizes that may follow: one more of the new, or one fewer of the old; by what the ReplicaSets ask for, less
    /// what is not available of the new one.
    fn next_sizes(&self, state: &State, sizes: [u8; REPLICA_SETS]) -> Vec<[u8; REPLICA_SETS]> {
        let new = usize::from(state.template) - 1;
        let old = 1 - new;
        let available = |i: usize| state.spec[i].min(state.ready_of(i));
        let both = sizes[0] + sizes[1];
        let mut next = Vec::new();
        if sizes[new] < self.desired && both < self.most() {
            let mut up = sizes;
            up[new] += 1;
            next.push(up);
        }
        // What counts above the floor, if all that is missing of the new one stays missing.
        let above = both + available(new) > self.floor() + sizes[new];
        let spare = available(old) < sizes[old] || available(0) + available(1) > self.floor();
        if sizes[old] > 0 && above && spare {
            let mut down = sizes;
            down[old] -= 1;
            next.push(down);
        }
        next
    }

    /// The plan of both sizes, and the template.
    pub(super) fn deployment_steps(&self, state: &State, steps: &mut Steps<State>) {
        let is_fulfilled = (0..REPLICA_SETS).all(|i| {
            let size = state.spec[i];
            size == state.plan[i] && state.leaving[i] == 0 && state.pods_of(i) <= size
        });
        if self.rules.plan && is_fulfilled {
            for sizes in self.next_sizes(state, state.plan) {
                let write = Write { kind: Kind::Plan, sizes, ..Write::default() };
                self.decide(state, DECIDE_PLAN, write, steps);
            }
        }
        if state.undos < self.undos {
            let next = State {
                undos: state.undos + 1,
                template: 3 - state.template,
                pending: state.pending.outdated(Guard::Deployment),
                ..state.clone()
            };
            steps.step(UNDO, next);
        }
    }

    /// The size of one ReplicaSet follows the plan.
    pub(super) fn spec_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let sizes = match self.rules.plan {
            true => vec![state.plan],
            false => self.next_sizes(state, state.spec),
        };
        for number in sizes.into_iter().map(|sizes| sizes[i]) {
            if number != state.spec[i] {
                let write = Write { kind: Kind::Spec, of: i as u8 + 1, number, ..Write::default() };
                self.decide(state, of_replica_set(SPEC, i), write, steps);
            }
        }
    }

    /// A pod more, or one fewer.
    pub(super) fn replica_set_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let of = i as u8 + 1;
        let (count, ready) = (state.pods_of(i), state.ready_of(i));
        if count < state.spec[i] && state.next_id <= self.pods {
            for s in self.names().filter(|s| !state.pods[*s].exists()) {
                let write = Write { kind: Kind::Create, of, number: s as u8, ..Write::default() };
                self.decide(state, of_replica_set(CREATE, i), write, steps);
            }
        }
        if count <= state.spec[i] || state.leaving[i] != 0 {
            return;
        }
        // Those that are not ready first.
        let is_surplus = |pod: &&Pod| pod.counts_for(of) && (!pod.is_ready || count == ready);
        for pod in state.pods.iter().filter(is_surplus) {
            let kind = if self.rules.naming { Kind::Name } else { Kind::Delete };
            let write = Write { kind, of, number: pod.id, ..Write::default() };
            self.decide(state, of_replica_set(LEAVE, i), write, steps);
        }
    }

    /// A pod that was named is deleted, and its name is taken off.
    pub(super) fn leaving_steps(&self, state: &State, i: usize, steps: &mut Steps<State>) {
        let (of, id) = (i as u8 + 1, state.leaving[i]);
        if id == 0 {
            return;
        }
        let is_there = state.pods.iter().any(|pod| pod.counts_for(of) && pod.id == id);
        if is_there && self.rules.naming {
            let write = Write { kind: Kind::Delete, of, number: id, ..Write::default() };
            self.decide(state, of_replica_set(DELETE, i), write, steps);
        }
        if !is_there {
            let write = Write { kind: Kind::Clear, of, ..Write::default() };
            self.decide(state, of_replica_set(CLEAR, i), write, steps);
        }
    }

    /// A pending write is sent. What its guard refuses is dropped.
    pub(super) fn write_steps(&self, state: &State, steps: &mut Steps<State>) {
        for write in state.pending.all() {
            let mut next = State { pending: state.pending.without(write), ..state.clone() };
            if write.is_fresh {
                self.apply(write, &mut next);
            }
            steps.step(of_write(write.kind), next);
        }
    }

    /// The API server takes a write: `next` has it no more among those that are pending.
    fn apply(&self, write: Write, next: &mut State) {
        let i = usize::from(write.of.max(1)) - 1;
        match write.kind {
            Kind::Plan => next.plan = write.sizes,
            Kind::Spec => next.spec[i] = write.number,
            Kind::Name => next.leaving[i] = write.number,
            Kind::Clear => next.leaving[i] = 0,
            Kind::Create => {
                let pod = &mut next.pods[usize::from(write.number)];
                if !pod.exists() && next.next_id <= self.pods {
                    *pod = Pod { of: write.of, id: next.next_id, ..Pod::default() };
                    next.next_id += 1;
                }
                return;
            }
            Kind::Delete => {
                for pod in next.pods.iter_mut().filter(|pod| pod.id == write.number) {
                    pod.is_leaving = true;
                }
                return;
            }
        }
        // The object has changed; the same write again, which would fail now, is one with this one.
        let outdated = Write { is_fresh: false, ..write };
        next.pending = next.pending.outdated(write.guard()).without(outdated);
    }

    pub(super) fn pod_steps(&self, state: &State, steps: &mut Steps<State>) {
        for s in self.names() {
            let pod = state.pods[s];
            let mut step = |kind: u16, pod: Pod| {
                let mut next = state.clone();
                next.pods[s] = pod;
                steps.step(self.of_name(kind, s), next);
            };
            if pod.exists() && !pod.is_leaving && !pod.is_ready {
                step(BECOME_READY, Pod { is_ready: true, ..pod });
            }
            if pod.is_leaving {
                step(GONE, Pod::default());
            }
        }
    }
}
