//! Keeps as many pods as a ReplicaSet asks for. The subject of a step is a ReplicaSet: `<namespace>/<name>`.
//!
//! A pod takes its name from a bounded set, so an old cache can only fail to create one. Which pod is deleted is
//! written on the ReplicaSet first, so that no two writers choose two.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{NAMESPACE, POD, REPLICA_SET};
use crate::owned::{concerned, name_in, subject_of};
use interlock_kernel::metadata::{name_of, namespace_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
pub(crate) use observe::count;
use observe::slots_of;
use std::sync::Arc;

/// On a ReplicaSet of a Deployment, upstream's own: how many pods the Deployment may have at once.
pub const ANNOTATION_MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// On a ReplicaSet: the pod that it is about to delete, `<name>/<uid>`.
pub const ANNOTATION_LEAVING: &str = "interlock.dev/leaving";
/// On a pod, upstream's own: of two that are alike the one with the lower number is deleted.
pub const ANNOTATION_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The controller.
#[derive(Debug, Clone)]
pub struct ReplicaSets {
    /// The name of the cluster's one node, on which its pods run.
    pub node: Arc<str>,
}

impl Watcher for ReplicaSets {
    fn name(&self) -> &'static str {
        "workloads/replicaset"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [NAMESPACE, REPLICA_SET, POD];
        kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        let sets: &[Verb] = &[Verb::Patch, Verb::PatchStatus];
        let pods: &[Verb] = &[Verb::Create, Verb::Patch, Verb::Delete];
        Right::to_each(Place::CLUSTER, &[(&REPLICA_SET, sets), (&POD, pods)])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == REPLICA_SET {
            return vec![subject_of(object)];
        }
        if watch.kind == NAMESPACE {
            let sets = view.list(Place::CLUSTER, &REPLICA_SET, object.metadata.name.as_deref());
            return sets.iter().map(|set| subject_of(set)).collect();
        }
        // Besides its own, a pod concerns those that wait for its name.
        let mut subjects = concerned(object, &REPLICA_SET, view);
        let sets = view.list(Place::CLUSTER, &REPLICA_SET, Some(namespace_of(object)));
        let wants_name = |set: &&Object| {
            slots_of(set).is_some_and(|slots| slots.slot(name_of(object)).is_some())
        };
        subjects.extend(sets.iter().filter(wants_name).map(|set| subject_of(set)));
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }
}

impl Room for ReplicaSets {
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
        act::act(&self.node, scene, decision)
    }
}
