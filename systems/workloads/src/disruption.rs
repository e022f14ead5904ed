//! Says how many pods may be evicted now: the status of PodDisruptionBudgets. The subject of a step is a budget.
//!
//! Two write that status: the API server takes from `disruptionsAllowed` what it evicts, and this controller works it out
//! anew. Both write under the version that they saw, so of two writes one fails, and its writer reads again. A pod that
//! the API server has noted in `disruptedPods` does not count as healthy until the cache shows what happened to it.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{BUDGET, DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET};
use crate::owned::{name_in, subject_of};
use interlock_kernel::metadata::namespace_of;
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::time::Duration;

/// The condition of a budget, upstream's own: whether a pod may be evicted.
pub const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
/// How long a pod that is noted as evicted may take to be deleted, as upstream has it: after that it was not evicted.
pub const DELETION_TIMEOUT: Duration = Duration::from_secs(120);

/// The controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disruptions;

impl Watcher for Disruptions {
    fn name(&self) -> &'static str {
        "workloads/disruption"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [BUDGET, POD, REPLICA_SET, DEPLOYMENT, STATEFUL_SET];
        kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::CLUSTER, &BUDGET, &[Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == BUDGET {
            return vec![subject_of(object)];
        }
        // All of the namespace: a pod that is selected no more concerns a budget, too, and there are few.
        let budgets = view.list(Place::CLUSTER, &BUDGET, Some(namespace_of(object)));
        budgets.iter().map(|budget| subject_of(budget)).collect()
    }
}

impl Room for Disruptions {
    type Outside = Nothing;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<decide::Facts, observe::Scene> {
        observe::observe(name_in(subject), view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
