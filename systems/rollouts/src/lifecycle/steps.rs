//! The steps in the life of a request.

use super::{
    ACQUIRE, ADMIT, APPLIED, CRASH, Condition, FAIL, HEALTHY, Lifecycle, RESTART, ROLLBACK_BAD,
    ROLLBACK_OK, Request, START, SUBMIT, Standing, State, Worker, YIELD,
};
use interlock_checker::Steps;

impl Lifecycle {
    pub(super) fn request_steps(&self, state: &State, request: usize, steps: &mut Steps<State>) {
        let standing = state.requests[request].standing;
        if standing == Standing::New {
            let mut next = state.clone();
            next.submitted += 1;
            next.requests[request] =
                Request { standing: Standing::Pending, version: next.submitted };
            steps.step(self.of_request(SUBMIT, request), next);
        }
        if standing == Standing::Pending {
            let mut next = state.clone();
            next.requests[request].standing = Standing::Rejected;
            steps.step(self.of_request(ADMIT, request), next);
            steps.step(self.of_request(ADMIT, request), self.admitted(state, request));
        }
    }

    fn admitted(&self, state: &State, request: usize) -> State {
        let mut next = state.clone();
        let version = state.requests[request].version;
        let is_outdated = state.requests.iter().any(|other| {
            let counts = other.standing.is_active() || other.standing.is_queued_or_succeeded();
            other.version > version && counts
        });
        if is_outdated && self.rules.refuse_outdated {
            next.requests[request].standing = Standing::Superseded;
            return next;
        }
        if self.rules.supersede {
            for other in &mut next.requests {
                if other.standing == Standing::Queued {
                    other.standing = Standing::Superseded;
                }
            }
        }
        next.requests[request].standing = Standing::Queued;
        next
    }

    pub(super) fn lease_steps(&self, state: &State, worker: usize, steps: &mut Steps<State>) {
        let mut step = |kind: u16, change: &dyn Fn(&mut State)| {
            let mut next = state.clone();
            change(&mut next);
            steps.step(self.of_worker(kind, worker), next);
        };
        let is_dead = state.workers[worker].is_dead;
        if is_dead {
            return step(RESTART, &|next| {
                next.workers[worker] = Worker::default();
                if self.rules.free_lease && next.holder == Some(worker as u8) {
                    next.holder = None;
                }
            });
        }
        if state.crashes < self.crashes {
            step(CRASH, &|next| {
                next.crashes += 1;
                next.workers[worker].is_dead = true;
            });
        }
        if state.holder.is_none() || (state.is_holder_dead() && self.rules.free_lease) {
            // Each request that needs work is a reason of its own.
            for _ in 0..state.needs_work() {
                step(ACQUIRE, &|next| {
                    next.token += 1;
                    next.holder = Some(worker as u8);
                    next.workers[worker].token = next.token;
                });
            }
        }
        if state.has_lease(worker) && state.needs_work() == 0 {
            step(YIELD, &|next| next.holder = None);
        }
    }

    /// What the worker that has the lease does with one request.
    pub(super) fn work_steps(
        &self,
        state: &State,
        worker: usize,
        request: usize,
        steps: &mut Steps<State>,
    ) {
        let mut step = |kind: u16, standing: Standing, change: &dyn Fn(&mut State)| {
            let mut next = state.clone();
            next.requests[request].standing = standing;
            change(&mut next);
            steps.step(self.of_worker(kind, worker), next);
        };
        let Request { standing, version } = state.requests[request];
        let keep = |_: &mut State| {};
        let failed = if self.rules.roll_back { Standing::RollingBack } else { Standing::Failed };
        let is_free = state.count(Standing::is_active) == 0 || !self.rules.one_at_a_time;
        match standing {
            Standing::Queued if is_free => {
                step(START, Standing::Failed, &keep);
                step(START, Standing::Applying, &|next| {
                    (next.version, next.condition, next.tries) = (version, Condition::Partial, 0);
                });
            }
            Standing::Applying => {
                step(APPLIED, Standing::Verifying, &|next| {
                    next.good = if self.rules.good_once_verified { next.good } else { version };
                });
                step(FAIL, failed, &keep);
            }
            Standing::Verifying => {
                step(HEALTHY, Standing::Succeeded, &|next| {
                    (next.good, next.version, next.condition) = (version, version, Condition::Idle);
                });
                step(FAIL, failed, &keep);
            }
            Standing::RollingBack => {
                step(ROLLBACK_OK, Standing::RolledBack, &|next| {
                    (next.version, next.condition) = (next.good, Condition::Idle);
                });
                if state.tries + 1 < self.tries {
                    step(ROLLBACK_BAD, standing, &|next| next.tries += 1);
                } else {
                    step(ROLLBACK_BAD, Standing::RollbackFailed, &|next| {
                        next.condition = Condition::Degraded;
                    });
                }
            }
            Standing::Queued
            | Standing::New
            | Standing::Pending
            | Standing::Rejected
            | Standing::Superseded
            | Standing::Failed
            | Standing::Succeeded
            | Standing::RolledBack
            | Standing::RollbackFailed => {}
        }
    }
}
