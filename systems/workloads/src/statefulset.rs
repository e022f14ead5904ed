//! Makes the pods of a StatefulSet: one for each ordinal, each with its own name and its own claims. The subject of a
//! step is a StatefulSet.
//!
//! A pod is called `<set>-<ordinal>`, and its name is free only when it is gone: no ordinal ever has two.

mod act;
pub mod decide;
mod observe;
mod status;
#[cfg(test)]
mod tests;

use crate::kinds::{CLAIM, CONTROLLER_REVISION, NAMESPACE, POD, STATEFUL_SET};
use crate::owned::{concerned, subject_of};
use interlock_kernel::metadata::{name_of, namespace_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::sync::Arc;

/// On a pod, upstream's own: its name.
pub const LABEL_POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// On a pod, upstream's own: its ordinal.
pub const LABEL_POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The controller of the StatefulSets of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatefulSets {
    node: Arc<str>,
}

impl StatefulSets {
    /// Pods run on the node of this name.
    pub fn new(node: &str) -> StatefulSets {
        StatefulSets { node: Arc::from(node) }
    }
}

impl Watcher for StatefulSets {
    fn name(&self) -> &'static str {
        "workloads/statefulset"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [STATEFUL_SET, POD, CLAIM, CONTROLLER_REVISION, NAMESPACE];
        kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        let all = [Verb::Create, Verb::Patch, Verb::Delete];
        Right::to_each(
            Place::CLUSTER,
            &[
                (&STATEFUL_SET, &[Verb::PatchStatus]),
                (&POD, &all),
                (&CONTROLLER_REVISION, &all),
                (&CLAIM, &[Verb::Create, Verb::Patch]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == STATEFUL_SET {
            return vec![subject_of(object)];
        }
        if watch.kind == POD || watch.kind == CONTROLLER_REVISION {
            return concerned(object, &STATEFUL_SET, view);
        }
        let namespace =
            if watch.kind == NAMESPACE { name_of(object) } else { namespace_of(object) };
        let sets = view.list(Place::CLUSTER, &STATEFUL_SET, Some(namespace));
        let is_its = |set: &&Object| watch.kind == NAMESPACE || observe::may_have(set, object);
        sets.iter().filter(is_its).map(|set| subject_of(set)).collect()
    }
}

impl Room for StatefulSets {
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
        observe::observe(&self.node, subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
