//! What the work queue, the workers and the faults do.

use super::{
    ADD, Account, AwsRole, DRIFT, Does, EDIT, IrsaOperator, MOST, RESTART, RESYNC_STEP, Rule,
    State, Statement, action,
};
use crate::queue::{Line, Request, WorkQueue, Worker};
use interlock_checker::{ActionId, Steps};

impl IrsaOperator {
    pub(super) fn work_queue(&self, state: &State, steps: &mut Steps<State>) {
        let mut next = state.clone();
        if let Some(change) = next.modified.take_head() {
            next.queue.add(change);
            steps.step(ADD, next);
        }
        if self.keeps(Rule::Resync) && state.is_quiet() && !state.is_as_asked() {
            let modified = Line::of(&[Request::Irsa, Request::Policy, Request::Role]);
            steps.step(RESYNC_STEP, State { modified, ..state.clone() });
        }
    }

    pub(super) fn worker(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let mut next = state.clone();
        let Some(request) = state.workers[w].request else {
            let Some(request) = next.queue.take() else { return };
            if !self.keeps(Rule::QueueKnowsWhatIsInHand) {
                next.queue.processing.remove(request);
            }
            next.workers[w] = Worker { is_busy: true, request: Some(request) };
            steps.step(action(w, Does::Get), next);
            return;
        };
        if state.workers[w].is_busy {
            if let Some(next) = self.pass(state, w, request) {
                steps.step(action_for(w, request), next);
            }
            return;
        }
        next.workers[w] = Worker::default();
        // Without that knowledge nothing was deferred: what was asked for again is queued already.
        if self.keeps(Rule::QueueKnowsWhatIsInHand) {
            next.queue.done(request);
        }
        steps.step(action(w, Does::Done), next);
    }

    /// One pass over a resource: its effect, if any is called for, and the worker given back.
    pub(super) fn pass(&self, state: &State, w: usize, request: Request) -> Option<State> {
        let mut next = state.clone();
        next.workers[w].is_busy = false;
        let must_wait = match request {
            Request::Irsa => self.look_at_irsa(&mut next),
            Request::Policy => self.look_at_policy(&mut next),
            Request::Role => look_at_role(&mut next),
            Request::Account => false,
        };
        (!must_wait || self.keeps(Rule::WorkerIsGivenBack)).then_some(next)
    }

    /// Says whether it must wait for another resource, as all of these do.
    fn look_at_irsa(&self, s: &mut State) -> bool {
        let wanted = Some(s.irsa.statement);
        let is_outdated = s.policy.statement != wanted && self.keeps(Rule::EditReachesPolicy);
        let is_ready = s.policy_is_complete() && s.role_is_complete();
        if s.policy.statement.is_none() || is_outdated {
            s.policy.statement = wanted;
            s.announce(&[Request::Policy, Request::Irsa]);
        } else if !s.role.exists {
            s.role.exists = true;
            s.announce(&[Request::Role, Request::Irsa]);
        } else if !is_ready && self.keeps(Rule::AccountComesLast) {
            // The dependency queues this resource again when it gets on.
            return true;
        } else if !s.account.exists {
            s.account = Account { exists: true, has_role_arn: s.role.has_role_arn };
            s.announce(&[Request::Account, Request::Irsa]);
        } else {
            s.irsa.is_ok = true;
        }
        false
    }

    fn look_at_policy(&self, s: &mut State) -> bool {
        if s.policy.statement.is_none() {
            return false;
        }
        let differs = s.aws_policy != s.policy.statement && self.keeps(Rule::LeftoverIsCompared);
        if s.aws_policy.is_none() || differs {
            s.aws_policy = s.policy.statement;
            s.announce(&[Request::Policy]);
        } else if !s.policy.has_arn {
            s.policy.has_arn = true;
            s.announce(&[Request::Policy, Request::Role, Request::Irsa]);
        }
        false
    }

    pub(super) fn faults(&self, state: &State, steps: &mut Steps<State>) {
        if state.faults.crashes < self.most.crashes {
            let mut next = State {
                queue: WorkQueue::default(),
                workers: [Worker::default(); MOST],
                modified: Line::of(&[Request::Irsa, Request::Policy, Request::Role]),
                ..state.clone()
            };
            next.faults.crashes += 1;
            steps.step(RESTART, next);
        }
        if state.faults.drifts < self.most.drifts {
            let mut drifted = state.clone();
            drifted.faults.drifts += 1;
            if state.aws_role.exists {
                for exists in [false, true] {
                    let aws_role = AwsRole { exists, has_policy: false };
                    steps.step(DRIFT, State { aws_role, ..drifted.clone() });
                }
            }
            if state.aws_policy.is_some() {
                for aws_policy in [None, Some(Statement::Other)] {
                    steps.step(DRIFT, State { aws_policy, ..drifted.clone() });
                }
            }
        }
        if state.faults.edits < self.most.edits {
            let mut next = state.clone();
            next.faults.edits += 1;
            next.irsa.statement = match state.irsa.statement {
                Statement::S1 => Statement::S2,
                Statement::S2 | Statement::Other => Statement::S1,
            };
            next.announce(&[Request::Irsa]);
            steps.step(EDIT, next);
        }
    }
}

fn look_at_role(s: &mut State) -> bool {
    if !s.role.exists {
        return false;
    }
    if !s.aws_role.exists {
        s.aws_role = AwsRole { exists: true, has_policy: false };
        s.announce(&[Request::Role]);
    } else if !s.role.has_role_arn {
        s.role.has_role_arn = true;
        s.announce(&[Request::Role, Request::Irsa]);
    } else if !s.policy.has_arn {
        // The write of the policy's status queues the role again.
        return true;
    } else if !s.role.has_policy_arn {
        s.role.has_policy_arn = true;
        s.announce(&[Request::Role]);
    } else if !s.aws_role.has_policy {
        s.aws_role.has_policy = true;
        s.announce(&[Request::Role]);
    } else if !s.role.is_attached {
        s.role.is_attached = true;
        s.announce(&[Request::Role, Request::Irsa]);
    }
    false
}

fn action_for(worker: usize, request: Request) -> ActionId {
    match request {
        Request::Irsa => action(worker, Does::Irsa),
        Request::Policy => action(worker, Does::Policy),
        Request::Role => action(worker, Does::Role),
        Request::Account => action(worker, Does::Sa),
    }
}
