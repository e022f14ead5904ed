//! How requests and workers get on.

use super::{
    APPLY_FINISH, APPLY_START, CRASH, Cluster, ClusterState, INITIAL_CHECK, Job, PUSH_TO_PENDING,
    Rule, SPAWN_WORKER, SUBMIT, State, UpdateCluster, Worker,
};
use crate::seed::{Request, RequestState, WorkerState};
use interlock_checker::Steps;

impl UpdateCluster {
    pub(super) fn request(&self, state: &State, r: usize, steps: &mut Steps<State>) {
        let mut next = state.clone();
        match state.requests[r].state {
            RequestState::Waiting => {
                next.last_submitted += 1;
                let version = Some(next.last_submitted);
                next.requests[r] = Request { state: RequestState::Submitted, version };
                steps.step(self.request_action(SUBMIT, r), next);
            }
            RequestState::Submitted => {
                next.requests[r].state = RequestState::Rejected;
                steps.step(self.request_action(INITIAL_CHECK, r), next.clone());
                next.requests[r].state = RequestState::Valid;
                steps.step(self.request_action(INITIAL_CHECK, r), next);
            }
            RequestState::Valid => {
                self.push(&mut next, r);
                steps.step(self.request_action(PUSH_TO_PENDING, r), next);
            }
            RequestState::Rejected
            | RequestState::Processing
            | RequestState::Partial
            | RequestState::PartialFailure
            | RequestState::Success
            | RequestState::Failure
            | RequestState::RolledBack => {}
        }
    }

    /// The newest request is queued, and one that was queued before it is superseded.
    fn push(&self, next: &mut State, r: usize) {
        let Some(version) = next.requests[r].version.filter(|v| next.to_apply < *v) else {
            next.requests[r].state = RequestState::Rejected;
            return;
        };
        let older = Some(next.to_apply);
        if self.keeps(Rule::OlderIsRejected) {
            next.move_requests(older, RequestState::Processing, RequestState::Rejected);
        }
        if !self.keeps(Rule::AppliedIsNotRejected) {
            next.move_requests(older, RequestState::Success, RequestState::Rejected);
        }
        next.to_apply = version;
        next.requests[r].state = RequestState::Processing;
    }

    pub(super) fn spawn(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let has_work = state.is_any_queued() || !self.keeps(Rule::WorkersAreSpawnedForWork);
        let (version, job) = match state.cluster.state {
            ClusterState::Failed if self.keeps(Rule::FailureIsRolledBack) => {
                (state.last_good, Job::Rollback)
            }
            ClusterState::Idle if has_work => (state.to_apply, Job::Apply),
            ClusterState::Idle | ClusterState::Partial | ClusterState::Failed => return,
        };
        if state.lock.is_some() {
            return;
        }
        let mut next = state.clone();
        next.workers[w] =
            Worker { state: WorkerState::Starting, version: Some(version), job: Some(job) };
        next.lock = self.keeps(Rule::WorkerTakesLock).then_some(w as u8);
        steps.step(self.worker_action(SPAWN_WORKER, w), next);
    }

    pub(super) fn start(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let Worker { version, job, .. } = state.workers[w];
        let is_newest = version == Some(state.to_apply);
        let may_apply = is_newest || !self.keeps(Rule::OutdatedIsNotApplied);
        let mut next = state.clone();
        if job == Some(Job::Rollback) || (may_apply && state.configuration_is_valid) {
            let version = version.unwrap_or_default();
            next.cluster = Cluster { state: ClusterState::Partial, version };
            next.workers[w].state = WorkerState::Working;
            if job == Some(Job::Apply) {
                let (queued, begun) = (RequestState::Processing, RequestState::Partial);
                next.move_requests(Some(version), queued, begun);
            }
        } else {
            next.dismiss(w);
            if is_newest {
                next.move_requests(version, RequestState::Processing, RequestState::Failure);
            } else if !self.keeps(Rule::LateWorkerGivesLockBack) {
                next.lock = state.lock;
            }
        }
        steps.step(self.worker_action(APPLY_START, w), next);
    }

    pub(super) fn finish(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let Worker { version, job, .. } = state.workers[w];
        let mut next = state.clone();
        next.dismiss(w);
        // A rollback always works.
        if job != Some(Job::Rollback) {
            let mut failed = next.clone();
            failed.fail(version);
            steps.step(self.worker_action(APPLY_FINISH, w), failed);
        }
        next.cluster.state = ClusterState::Idle;
        next.last_good = version.unwrap_or_default();
        if job == Some(Job::Apply) {
            next.move_requests(version, RequestState::Partial, RequestState::Success);
        } else {
            for request in &mut next.requests {
                if request.state == RequestState::PartialFailure {
                    request.state = RequestState::RolledBack;
                }
            }
        }
        steps.step(self.worker_action(APPLY_FINISH, w), next);
    }

    /// A worker dies: its lease expires, and what it had begun counts as failed.
    pub(super) fn crash(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let Worker { state: doing, version, .. } = state.workers[w];
        if state.crashes == self.crashes || doing == WorkerState::Waiting {
            return;
        }
        let mut next = state.clone();
        next.crashes += 1;
        next.dismiss(w);
        if doing == WorkerState::Working && self.keeps(Rule::CrashIsAFailure) {
            next.fail(version);
        }
        steps.step(self.worker_action(CRASH, w), next);
    }
}
