//! The steps of the identities protocol.

use super::{
    CRASH_ALL, DELETE, DRIFT, Identities, Identity, MOST_WORKERS, Phase, Policy, RESYNC, State,
    THROTTLE, Thing, UPDATE, WORK,
};
use interlock_checker::Steps;

/// Whether a worker's step has more to do.
#[derive(Clone, Copy, PartialEq)]
enum After {
    Again,
    Rest,
}

impl Identities {
    /// One step of a worker that holds this identity: at most one call.
    fn reconciled(&self, identity: &Identity) -> (Identity, After) {
        let now = *identity;
        match now.phase {
            Phase::Live => self.made(now),
            Phase::Deleting => self.removed(now),
            Phase::Gone => (now, After::Rest),
        }
    }

    fn made(&self, now: Identity) -> (Identity, After) {
        let next = if !now.has_finalizer {
            Identity { has_finalizer: true, ..now }
        } else if now.policy != Policy::Of(now.generation) {
            Identity { policy: Policy::Of(now.generation), ..now }
        } else if now.role != Thing::AsDeclared {
            Identity { role: Thing::AsDeclared, ..now }
        } else if !now.is_attached {
            Identity { is_attached: true, ..now }
        } else if now.account != Thing::AsDeclared {
            Identity { account: Thing::AsDeclared, ..now }
        } else {
            let after = if self.rules.status_once { After::Rest } else { After::Again };
            return (Identity { observed: now.generation, ..now }, after);
        };
        (next, After::Again)
    }

    fn removed(&self, now: Identity) -> (Identity, After) {
        let gone = Identity { phase: Phase::Gone, has_finalizer: false, ..now };
        let early = !self.rules.finalizer_last && now.account == Thing::Absent;
        if !now.has_finalizer || early {
            return (gone, After::Rest);
        }
        let next = if now.account != Thing::Absent {
            Identity { account: Thing::Absent, ..now }
        } else if now.policy != Policy::Absent && !self.rules.detach_first {
            Identity { policy: Policy::Absent, ..now }
        } else if now.is_attached {
            Identity { is_attached: false, ..now }
        } else if now.role != Thing::Absent {
            Identity { role: Thing::Absent, ..now }
        } else if now.policy != Policy::Absent {
            Identity { policy: Policy::Absent, ..now }
        } else {
            return (gone, After::Rest);
        };
        (next, After::Again)
    }

    /// Whether a worker holds this identity, and its step changes something or puts the key back.
    pub(super) fn is_about_to_write(&self, state: &State, resource: usize) -> bool {
        let now = &state.identities[resource];
        let (next, after) = self.reconciled(now);
        let is_put_back = now.is_dirty || after == After::Again && self.rules.requeue;
        state.busy.contains(&Some(resource as u8)) && (next != *now || is_put_back)
    }

    pub(super) fn worker_steps(&self, state: &State, worker: usize, steps: &mut Steps<State>) {
        match state.busy[worker] {
            None => self.get_steps(state, worker, steps),
            Some(key) => {
                let key = usize::from(key);
                let (identity, after) = self.reconciled(&state.identities[key]);
                let mut next = state.clone();
                next.busy[worker] = None;
                next.identities[key] = identity;
                next.identities[key].is_dirty |= after == After::Again && self.rules.requeue;
                steps.step(self.of_worker(WORK, worker), next);
                if state.faults < self.faults {
                    let mut next = state.clone();
                    next.faults += 1;
                    next.busy[worker] = None;
                    next.identities[key].is_dirty = true;
                    steps.step(self.of_worker(THROTTLE, worker), next);
                }
            }
        }
        // The specification lets the crash happen once per worker, always with the same outcome.
        if state.faults < self.faults {
            let mut next = State { busy: [None; MOST_WORKERS], ..state.clone() };
            next.faults += 1;
            for identity in &mut next.identities[..self.resources] {
                identity.is_dirty = true;
            }
            steps.step(CRASH_ALL, next);
        }
    }

    fn get_steps(&self, state: &State, worker: usize, steps: &mut Steps<State>) {
        for key in (0..self.resources).filter(|key| state.identities[*key].is_dirty) {
            let is_held = state.busy.contains(&Some(key as u8));
            if is_held && self.rules.one_worker_per_key {
                continue;
            }
            let mut next = state.clone();
            next.busy[worker] = Some(key as u8);
            next.identities[key].is_dirty = false;
            steps.step(self.get(worker, key), next);
        }
    }

    pub(super) fn resource_steps(&self, state: &State, resource: usize, steps: &mut Steps<State>) {
        let identity = &state.identities[resource];
        if identity.phase != Phase::Live {
            return;
        }
        let mut step = |kind: u16, drift: u8, change: &dyn Fn(&mut Identity)| {
            let mut next = state.clone();
            next.drift += drift;
            change(&mut next.identities[resource]);
            steps.step(self.of_resource(kind, resource), next);
        };
        if identity.generation < self.generations {
            step(UPDATE, 0, &|identity| {
                identity.generation += 1;
                identity.is_dirty = true;
            });
        }
        if identity.has_finalizer {
            step(DELETE, 0, &|identity| {
                identity.phase = Phase::Deleting;
                identity.is_dirty = true;
            });
        }
        if state.drift < self.drift {
            if matches!(identity.policy, Policy::Of(_)) {
                step(DRIFT, 1, &|identity| identity.policy = Policy::Drifted);
            }
            if identity.role == Thing::AsDeclared {
                step(DRIFT, 1, &|identity| identity.role = Thing::Drifted);
            }
            if identity.is_attached {
                step(DRIFT, 1, &|identity| identity.is_attached = false);
            }
            if identity.account == Thing::AsDeclared {
                step(DRIFT, 1, &|identity| identity.account = Thing::Drifted);
            }
        }
        if !identity.is_dirty && self.rules.resync {
            // Each difference is a reason of its own.
            for _ in 0..identity.differences() {
                step(RESYNC, 0, &|identity| identity.is_dirty = true);
            }
        }
    }
}
