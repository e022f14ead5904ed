//! Runs the pods of a Job until enough of them have succeeded, or too many have failed. The subject of a step is a Job.
//!
//! Pods are called `<job>-<number>`, those of an indexed Job `<job>-<index>-<attempt>`. Each holds a finalizer until its
//! end is in the status, so an end is counted once, whoever deletes the pod and whenever this process stops.

mod act;
pub mod decide;
pub mod indexes;
mod make;
mod observe;
mod pods;
mod status;
#[cfg(test)]
mod tests;
mod track;

pub use status::outcome;

use crate::kinds::{CRON_JOB, JOB, NAMESPACE, POD};
use crate::owned::{concerned, controller_of, subject_of};
use interlock_kernel::metadata::{name_of, namespace_of, uid_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::sync::Arc;

/// On a Job that a CronJob made, upstream's own: the time that it was made for.
pub const ANNOTATION_SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// On a pod of a Job, upstream's own: it stays until its end is counted.
pub const FINALIZER_TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// On a pod of an indexed Job, upstream's own: its index, as a label and as an annotation.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// On a pod that is deleted although it did not fail: why. Its end does not count as a failure.
pub const ANNOTATION_NOT_COUNTED: &str = "interlock.dev/not-counted";
/// On an object that is deleted after all that belongs to it, upstream's own. The server takes a Job that says nothing
/// for one whose pods are to stay.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The value of `spec.managedBy` that means upstream's controller, and so this one.
const MANAGED_HERE: &str = "kubernetes.io/job-controller";

/// The controller of the Jobs of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs {
    node: Arc<str>,
}

impl Jobs {
    /// Pods run on the node of this name.
    pub fn new(node: &str) -> Jobs {
        Jobs { node: Arc::from(node) }
    }
}

impl Watcher for Jobs {
    fn name(&self) -> &'static str {
        "workloads/job"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [JOB, POD, CRON_JOB, NAMESPACE];
        kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&JOB, &[Verb::Patch, Verb::PatchStatus, Verb::Delete]),
                (&POD, &[Verb::Create, Verb::Patch, Verb::Delete]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == JOB {
            return vec![subject_of(object)];
        }
        if watch.kind == POD {
            return concerned(object, &JOB, view);
        }
        let is_namespace = watch.kind == NAMESPACE;
        let namespace = if is_namespace { name_of(object) } else { namespace_of(object) };
        let jobs = view.list(Place::CLUSTER, &JOB, Some(namespace));
        let is_its = |job: &&Object| {
            is_namespace || controller_of(job).is_some_and(|owner| owner.uid == uid_of(object))
        };
        jobs.iter().filter(is_its).map(|job| subject_of(job)).collect()
    }
}

impl Room for Jobs {
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
