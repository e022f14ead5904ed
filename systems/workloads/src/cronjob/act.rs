//! A decision about a CronJob as one step.

use super::decide::{Decision, Status};
use super::observe::{Scene, job_name};
use super::{ANNOTATION_PROBLEM, ANNOTATION_SCHEDULED};
use crate::job::FOREGROUND;
use crate::kinds::{CRON_JOB, JOB};
use crate::live::Listing;
use crate::owned::owner_reference;
use crate::template::put;
use interlock_kernel::metadata::{name_of, namespace_of, put_finalizer, uid_of};
use interlock_kernel::{Address, Event, Importance, Name, Nothing, Object, Place, Step, Write};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::WaitForCache => Step::Wait {
            because: "the CronJob has changed since the cache saw it".to_owned(),
            at_most: CACHE_DELAY,
        },
        Decision::WaitForTime(at_most) => {
            Step::Wait { because: "the next time has not come".to_owned(), at_most }
        }
        Decision::ReadLive => read_live(scene),
        Decision::Mark(problem) => mark(scene, problem),
        Decision::Report(status) => report(scene, &status),
        Decision::DeletePodsFirst(job, because) => with_job(scene, &job, |job| {
            Step::write(
                Write::patch(Place::CLUSTER, &JOB, job, put_finalizer(job, FOREGROUND)),
                because,
            )
        }),
        Decision::DeleteJob(job, because) => with_job(scene, &job, |job| {
            Step::write(Write::delete_seen(Place::CLUSTER, &JOB, job), because)
        }),
        Decision::Create(time) => create(scene, time),
    }
}

fn with_job(
    scene: &Scene,
    name: &str,
    step: impl FnOnce(&Object) -> Step<Nothing>,
) -> Step<Nothing> {
    match scene.jobs.get(name) {
        Some(job) => step(job),
        None => Step::rest(format!("Job {name} does not exist any more")),
    }
}

fn read_live(scene: &Scene) -> Step<Nothing> {
    let owner = Address::new(Place::CLUSTER, &CRON_JOB, Name::of(&scene.cron_job));
    let listing = Listing { owner: &owner, kind: &JOB };
    let because = "the Job of the time that has come may have been made, and be gone".to_owned();
    Step::LiveRead { reads: listing.reads(), because }
}

/// A time as the wire has it; null for none.
fn written(seconds: Option<i64>) -> Value {
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    json!(time.map(|time| time.to_string()))
}

fn mark(scene: &Scene, problem: Option<String>) -> Step<Nothing> {
    let cron_job = &scene.cron_job;
    let change = json!({"metadata": {"annotations": {ANNOTATION_PROBLEM: problem}}});
    let write = Write::patch(Place::CLUSTER, &CRON_JOB, cron_job, change);
    let Some(note) = problem else { return Step::write(write, "the schedule can be read again") };
    Step::write(write, "no Job can be made of the CronJob").telling(Event {
        about: Address::new(Place::CLUSTER, &CRON_JOB, Name::of(cron_job)),
        uid: uid_of(cron_job).to_owned(),
        importance: Importance::Warning,
        reason: "InvalidSchedule",
        note,
    })
}

fn report(scene: &Scene, status: &Status) -> Step<Nothing> {
    let cron_job = &scene.cron_job;
    let active = scene.jobs.values().filter(|job| status.active.contains(uid_of(job)));
    let active: Vec<Value> = active
        .map(|job| {
            json!({"apiVersion": JOB.api_version(), "kind": JOB.kind, "name": name_of(job),
                "namespace": namespace_of(job), "uid": uid_of(job)})
        })
        .collect();
    let change = json!({"status": {
        "active": active,
        "lastScheduleTime": written(status.last_scheduled),
        "lastSuccessfulTime": written(status.last_successful),
    }});
    let write = Write::patch_status(Place::CLUSTER, &CRON_JOB, cron_job, change);
    Step::write(write, "the status differs from the Jobs")
}

fn create(scene: &Scene, time: i64) -> Step<Nothing> {
    let cron_job = &scene.cron_job;
    let template = &cron_job.data["spec"]["jobTemplate"];
    let name = job_name(cron_job, time);
    let said = &template["metadata"];
    let mut metadata = json!({"ownerReferences": [owner_reference(&CRON_JOB, cron_job)]});
    for part in ["labels", "annotations"] {
        if !said[part].is_null() {
            metadata[part] = said[part].clone();
        }
    }
    let scheduled = written(Some(time));
    put(&mut metadata["annotations"], ANNOTATION_SCHEDULED, scheduled.as_str().unwrap_or_default());
    let object = json!({"metadata": metadata, "spec": template["spec"]});
    let address = Address::new(Place::CLUSTER, &JOB, Name::within(namespace_of(cron_job), &name));
    let step = Step::write(Write::Create { address, object }, "a time of the schedule has come");
    step.telling(Event {
        about: Address::new(Place::CLUSTER, &CRON_JOB, Name::of(cron_job)),
        uid: uid_of(cron_job).to_owned(),
        importance: Importance::Normal,
        reason: "SuccessfulCreate",
        note: format!("Created job {name}"),
    })
}
