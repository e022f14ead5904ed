//! Changes the pods of a Deployment, never too many at once and never too few available. The subject of a step is a
//! Deployment: `<namespace>/<name>`.
//!
//! The sizes of all its ReplicaSets are one plan, in one annotation. The next plan is written only when a live list
//! shows that the last one is carried out, so two writers never work on two plans.

mod act;
pub mod decide;
mod observe;
pub mod sizes;
mod spec;
pub mod standing;
#[cfg(test)]
mod tests;

use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};
use crate::owned::{concerned, controller_of_kind, name_in, subject_of};
use interlock_kernel::metadata::namespace_of;
use interlock_kernel::{
    LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View,
    Watch, Watcher,
};

/// On a Deployment and its ReplicaSets, upstream's own: which change of the template this is.
pub const ANNOTATION_REVISION: &str = "deployment.kubernetes.io/revision";
/// On the ReplicaSets of a Deployment, upstream's own: how many pods it asks for.
pub const ANNOTATION_DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// On a Deployment: the sizes of its ReplicaSets, as they are or are about to be, in JSON.
pub const ANNOTATION_SIZES: &str = "interlock.dev/sizes";

/// The controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deployments;

impl Watcher for Deployments {
    fn name(&self) -> &'static str {
        "workloads/deployment"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [DEPLOYMENT, REPLICA_SET, POD];
        kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        let deployments: &[Verb] = &[Verb::Patch, Verb::PatchStatus];
        let sets: &[Verb] = &[Verb::Create, Verb::Patch, Verb::Delete];
        Right::to_each(Place::CLUSTER, &[(&DEPLOYMENT, deployments), (&REPLICA_SET, sets)])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == DEPLOYMENT {
            return vec![subject_of(object)];
        }
        if watch.kind == REPLICA_SET {
            return concerned(object, &DEPLOYMENT, view);
        }
        // A pod is a Deployment's business through its ReplicaSet.
        let Some(owner) = controller_of_kind(object, &REPLICA_SET) else { return Vec::new() };
        let name = Name::within(namespace_of(object), &owner.name);
        let set = view.get(Place::CLUSTER, &REPLICA_SET, &name);
        set.map(|set| concerned(&set, &DEPLOYMENT, view)).unwrap_or_default()
    }
}

impl Room for Deployments {
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
