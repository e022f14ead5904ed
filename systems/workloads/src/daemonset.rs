//! Makes one pod of a DaemonSet on each node that is to have one. The subject of a step is a DaemonSet.
//!
//! A pod is called `<set>-<node>`, and its name is free only when it is gone: no node ever has two.

mod act;
pub mod decide;
pub mod fit;
mod observe;
mod status;
#[cfg(test)]
mod tests;

use crate::kinds::{CONTROLLER_REVISION, DAEMON_SET, NAMESPACE, NODE, POD};
use crate::owned::{concerned, subject_of};
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};

/// The controller of the DaemonSets of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DaemonSets;

impl Watcher for DaemonSets {
    fn name(&self) -> &'static str {
        "workloads/daemonset"
    }

    fn watches(&self) -> Vec<Watch> {
        // A change of conditions or of what is running is not one of what may run there.
        let is_same = |one: &kube_core::DynamicObject, other: &kube_core::DynamicObject| {
            one.data["spec"] == other.data["spec"]
                && one.metadata.labels == other.metadata.labels
                && one.metadata.deletion_timestamp == other.metadata.deletion_timestamp
        };
        let kinds = [DAEMON_SET, POD, CONTROLLER_REVISION, NAMESPACE];
        let watches = kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind));
        watches.chain([Watch::all(Place::CLUSTER, &NODE).unless(is_same)]).collect()
    }

    fn rights(&self) -> Vec<Right> {
        let all = [Verb::Create, Verb::Patch, Verb::Delete];
        Right::to_each(
            Place::CLUSTER,
            &[(&DAEMON_SET, &[Verb::PatchStatus]), (&POD, &all), (&CONTROLLER_REVISION, &all)],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == DAEMON_SET {
            return vec![subject_of(object)];
        }
        if watch.kind == POD || watch.kind == CONTROLLER_REVISION {
            return concerned(object, &DAEMON_SET, view);
        }
        let namespace = (watch.kind == NAMESPACE).then(|| name_of(object));
        let sets = view.list(Place::CLUSTER, &DAEMON_SET, namespace);
        sets.iter().map(|set| subject_of(set)).collect()
    }
}

impl Room for DaemonSets {
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
        observe::observe(subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
