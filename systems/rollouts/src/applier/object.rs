//! One write for one object that the report names. The subject is the object, as in `apps/Deployment/shop/web`.
//!
//! The report of this very token names it, and says that the fence is in force: so what is written here is written under
//! the token, after everything older is refused. Each write carries the version that was read, or makes what is not
//! there. The outcome of a write reaches no later step; a refusal is learnt from a dry run, and said in the report.
//!
//! An object is made by the same server-side apply that changes it: fields that a POST made would belong to another
//! manager, and could never be taken out again. What makes that safe is the policy of the fence, which refuses to apply
//! over an object that is not ours.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use super::Serves;
use super::fence::rights;
use super::outside::Reach;
use crate::kinds::ROLLOUT_REPORT;
pub(super) use act::MOST_FAILED;
use decide::{Decision, Facts};
use interlock_api::rollouts::RolloutReportStatus;
use interlock_kernel::{
    LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, View, Watch, Watcher,
    read_part,
};
pub use observe::Scene;
pub(super) use observe::{Bundles, HeldBundles, apply, bundles, questions, said};

/// The controller.
#[derive(Debug, Clone)]
pub struct Objects {
    serves: Serves,
}

impl Objects {
    /// Of this cluster.
    pub fn new(serves: Serves) -> Objects {
        Objects { serves }
    }
}

impl Watcher for Objects {
    fn name(&self) -> &'static str {
        "rollouts/object"
    }

    fn watches(&self) -> Vec<Watch> {
        self.serves.watches()
    }

    fn rights(&self) -> Vec<Right> {
        rights()
    }

    /// Whatever changes at the hub may be a reason to write what is named now. What changes on the cluster is a reason
    /// to report first.
    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let named = |report: &Object| {
            let said = read_part::<RolloutReportStatus>(report, "status").ok().flatten();
            said.unwrap_or_default().pending
        };
        let mut all = if watch.kind == ROLLOUT_REPORT { named(object) } else { Vec::new() };
        let name = Name::cluster_wide(&self.serves.record());
        let shown = view.get(Place::HUB, &ROLLOUT_REPORT, &name);
        all.extend(shown.as_ref().map(named).unwrap_or_default());
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(Subject::from).collect()
    }
}

impl Room for Objects {
    type Outside = Reach;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Reach>,
    ) -> Observed<Facts, Scene> {
        match observe::observe(&self.serves, subject, view, live_reads) {
            Ok((facts, scene)) => Observed::Seen { facts, scene },
            Err(because) => Observed::Nothing(because),
        }
    }

    fn decide(facts: &Facts) -> Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Reach> {
        act::act(scene, decision)
    }
}
