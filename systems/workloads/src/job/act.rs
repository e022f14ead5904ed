//! A decision about a Job as one step.

use super::decide::{Decision, OfJob, OfPod};
use super::observe::Scene;
use super::status::{self, Now, Verdict};
use super::{ANNOTATION_NOT_COUNTED, FINALIZER_TRACKING, FOREGROUND, make};
use crate::kinds::{JOB, POD};
use crate::live::Listing;
use crate::owned::{adopting, releasing};
use interlock_kernel::metadata::{
    finalizers_with, finalizers_without, put_finalizer, take_finalizer_off, uid_of,
};
use interlock_kernel::{
    Address, Event, Importance, Name, Nothing, Object, Place, Read, Step, Write,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::WaitForCache => Step::Wait {
            because: "the Job has changed since the cache saw it".to_owned(),
            at_most: CACHE_DELAY,
        },
        Decision::Wait(at_most, because) => Step::Wait { because: because.to_owned(), at_most },
        Decision::ReadJob => Step::LiveRead {
            reads: vec![Read::Object(scene.address.clone())],
            because: "only a live read can show that the Job of a pod is gone".to_owned(),
        },
        Decision::ReadLive => read_live(scene),
        Decision::Pod(name, change) => match scene.pods.get(&name) {
            Some(pod) => of_pod(scene, pod, change),
            None => Step::rest(format!("pod {name} does not exist any more")),
        },
        Decision::CreatePod(name, index) => with_job(scene, |job| {
            let write = make::pod(scene, job, &name, index);
            Step::write(write, "fewer pods run than may, and than are needed")
        }),
        Decision::Job(change) => with_job(scene, |job| of_job(scene, job, change)),
    }
}

fn with_job(scene: &Scene, step: impl FnOnce(&Object) -> Step<Nothing>) -> Step<Nothing> {
    match &scene.job {
        Some(job) => step(job),
        None => Step::rest("the cache shows no such Job"),
    }
}

fn of_pod(scene: &Scene, pod: &Object, change: OfPod) -> Step<Nothing> {
    let patch = |change: Value, because: &str| {
        Step::write(Write::patch(Place::CLUSTER, &POD, pod, change), because)
    };
    match change {
        OfPod::LetGo(because) => patch(take_finalizer_off(pod, FINALIZER_TRACKING), because),
        OfPod::Hold => {
            let because = "a pod whose end is to be counted stays until it is";
            patch(put_finalizer(pod, FINALIZER_TRACKING), because)
        }
        OfPod::Adopt => with_job(scene, |job| {
            let mut change = adopting(&JOB, job, pod);
            change["metadata"]["finalizers"] = json!(finalizers_with(pod, FINALIZER_TRACKING));
            patch(change, "the selector selects the pod, which has no owner")
        }),
        OfPod::Release => with_job(scene, |job| {
            let mut change = releasing(job, pod);
            change["metadata"]["finalizers"] = json!(finalizers_without(pod, FINALIZER_TRACKING));
            patch(change, "the labels of the pod do not match any more")
        }),
        OfPod::MarkNotCounted(because) => {
            let change = json!({"metadata": {"annotations": {ANNOTATION_NOT_COUNTED: because}}});
            patch(change, because)
        }
        OfPod::Delete(because) => {
            Step::write(Write::delete_seen(Place::CLUSTER, &POD, pod), because)
        }
    }
}

fn of_job(scene: &Scene, job: &Object, change: OfJob) -> Step<Nothing> {
    let report = |change: Value, because: &str| {
        let change = json!({"status": change});
        Step::write(Write::patch_status(Place::CLUSTER, &JOB, job, change), because)
    };
    match change {
        OfJob::Count(ends) => {
            let is_indexed = job.data["spec"]["completionMode"] == "Indexed";
            report(ends.patch(is_indexed), "pods have ended")
        }
        OfJob::Start => report(status::started(job, scene.now), "the Job runs from now on"),
        OfJob::Suspend => report(status::suspended(job, scene.now), "the Job is suspended"),
        OfJob::Conclude(verdict) => {
            let change = status::concluded(job, &verdict, scene.now);
            let step = report(change, "it is known how the Job is to end");
            match event(job, &verdict) {
                Some(event) => step.telling(event),
                None => step,
            }
        }
        OfJob::Finish(verdict, now) => finish(scene, job, &verdict, now),
        OfJob::Report(now) => report(now.patch(), "the status differs from the pods"),
        OfJob::DeletePodsFirst => {
            let write = Write::patch(Place::CLUSTER, &JOB, job, put_finalizer(job, FOREGROUND));
            Step::write(write, "the pods of a Job are deleted with it only if it says so")
        }
        OfJob::Delete => {
            let write = Write::delete_seen(Place::CLUSTER, &JOB, job);
            Step::write(write, "ttlSecondsAfterFinished is over")
        }
    }
}

fn read_live(scene: &Scene) -> Step<Nothing> {
    let listing = Listing { owner: &scene.address, kind: &POD };
    let because = "the cache may show pods as they were before they were counted".to_owned();
    Step::LiveRead { reads: listing.reads(), because }
}

fn finish(scene: &Scene, job: &Object, verdict: &Verdict, now: Now) -> Step<Nothing> {
    let mut change = status::finished(job, verdict, scene.now);
    if let (Some(change), Some(counts)) = (change.as_object_mut(), now.patch().as_object_mut()) {
        change.append(counts);
    }
    let write = Write::patch_status(Place::CLUSTER, &JOB, job, json!({"status": change}));
    let step = Step::write(write, "all pods of the Job have ended");
    match verdict {
        Verdict::Succeeds => {
            step.telling(said(job, Importance::Normal, "Completed", "Job completed"))
        }
        Verdict::Fails { .. } => step,
    }
}

/// The event for a Job that is to fail.
fn event(job: &Object, verdict: &Verdict) -> Option<Event> {
    let Verdict::Fails { reason, message } = verdict else { return None };
    let known = ["BackoffLimitExceeded", "DeadlineExceeded", "NotSupported"];
    let reason = known.into_iter().find(|known| known == reason)?;
    Some(said(job, Importance::Warning, reason, message))
}

fn said(job: &Object, importance: Importance, reason: &'static str, note: &str) -> Event {
    let about = Address::new(Place::CLUSTER, &JOB, Name::of(job));
    Event { about, uid: uid_of(job).to_owned(), importance, reason, note: note.to_owned() }
}
