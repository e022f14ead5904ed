//! Says in the RolloutReport how far the cluster is with its target. The subject is the record.
//!
//! Every word is about the token of the target. The fence is read first, and then all that is the rollouts', by one list for
//! each kind: what was read before the fence was in force proves nothing, since an older write may have come after.

mod act;
pub mod decide;
mod next;
mod observe;
#[cfg(test)]
mod tests;

use super::fence::rights;
use super::outside::Reach;
use super::{CONFIG_MAP, CORE, NAMESPACE, Serves};
use crate::kinds::SECRET;
use decide::{Decision, Facts};
use interlock_api::rollouts::LABEL_ROLLOUT;
use interlock_kernel::{
    GroupVersion, Kind, LiveReads, Object, Observed, Place, Right, Room, Selector, Step, Subject,
    View, Watch, Watcher,
};
pub use observe::Scene;
pub(super) use observe::{Kinds, served};
use std::time::Duration;

const APPS: GroupVersion = GroupVersion::new("apps", "v1");
const BATCH: GroupVersion = GroupVersion::new("batch", "v1");

/// The kinds that every cluster serves, and whose objects change by themselves or are changed by people most: a change of
/// one that has our label wakes the room. Of others it reads again after a while.
pub const WATCHED: [Kind; 10] = [
    NAMESPACE,
    CONFIG_MAP,
    SECRET,
    Kind::namespaced(CORE, "Service", "services"),
    Kind::namespaced(CORE, "ServiceAccount", "serviceaccounts"),
    Kind::namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind::namespaced(APPS, "Deployment", "deployments"),
    Kind::namespaced(APPS, "StatefulSet", "statefulsets"),
    Kind::namespaced(APPS, "DaemonSet", "daemonsets"),
    Kind::namespaced(BATCH, "Job", "jobs"),
];

/// How often a report is written at most.
const EVERY: Duration = Duration::from_secs(1);

/// The controller.
#[derive(Debug, Clone)]
pub struct Reports {
    serves: Serves,
    watched: Vec<Kind>,
    every: Duration,
}

impl Reports {
    /// Of this cluster.
    pub fn new(serves: Serves) -> Reports {
        Reports { serves, watched: WATCHED.to_vec(), every: EVERY }
    }

    /// The same, woken by changes of objects of these kinds only.
    #[must_use]
    pub fn watching(mut self, kinds: &[Kind]) -> Reports {
        self.watched = kinds.to_vec();
        self
    }

    /// The same, with this time between two reports.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Reports {
        self.every = time;
        self
    }
}

impl Watcher for Reports {
    fn name(&self) -> &'static str {
        "rollouts/report"
    }

    fn watches(&self) -> Vec<Watch> {
        let labelled =
            |kind: &Kind| Watch::all(Place::CLUSTER, kind).only(Selector::labelled(LABEL_ROLLOUT));
        let on_cluster = self.watched.iter().map(labelled);
        self.serves.watches().into_iter().chain(on_cluster).collect()
    }

    fn rights(&self) -> Vec<Right> {
        rights()
    }

    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        vec![self.serves.subject()]
    }
}

impl Room for Reports {
    type Outside = Reach;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        _: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Reach>,
    ) -> Observed<Facts, Scene> {
        match observe::observe(self, view, live_reads) {
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
