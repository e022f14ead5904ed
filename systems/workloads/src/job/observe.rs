//! What is seen of a Job and of its pods.

use super::decide::{Asked, Facts, Job, Stranger, Times};
use super::pods::{End, JobPod, statuses};
use super::status::{Status, finished_at};
use super::{ANNOTATION_SCHEDULED, FINALIZER_TRACKING, FOREGROUND, MANAGED_HERE};
use crate::kinds::{CRON_JOB, JOB, POD};
use crate::live::{Listing, Source};
use crate::owned::{Claim, Owner, controller_of_kind, name_in, selector_of};
use crate::slots::base;
use crate::template::Home;
use interlock_kernel::metadata::{
    annotation, has_finalizer, is_deleting, name_of, namespace_of, uid_of,
};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Observed, Place, Subject, View};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The first wait after a failure; each is twice the one before.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
/// The longest.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(360);
/// A dash and a number.
const NUMBER_CHARACTERS: usize = 8;
/// A dash and an index, a dash and a number.
const INDEX_CHARACTERS: usize = 16;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) node: Arc<str>,
    pub(super) address: Address,
    /// The Job, if the cache shows it.
    pub(super) job: Option<Object>,
    pub(super) home: Home,
    /// Pods that are the Job's, could be, or hold our finalizer for another Job of its name.
    pub(super) pods: BTreeMap<String, Object>,
}

/// Reads what a step is about.
pub(super) fn observe(
    node: &Arc<str>,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::CLUSTER, &JOB, name_in(subject));
    let namespace = address.name.namespace.as_deref().unwrap_or_default().to_owned();
    let job = view.get(Place::CLUSTER, &JOB, &address.name);
    let listing = Listing { owner: &address, kind: &POD };
    let (source, pods) = listing.list(job.as_ref(), view, live_reads);
    let held = pods.iter().find(|pod| is_stranger(pod, job.as_ref(), &address));
    let stranger = held.map(|pod| stranger(pod, &address, live_reads));
    let mut scene = Scene {
        now: view.now(),
        node: Arc::clone(node),
        home: Home::of(view, &namespace),
        pods: held.map(|pod| (name_of(pod).to_owned(), pod.clone())).into_iter().collect(),
        job,
        address,
    };
    let Some(job) = scene.job.clone() else {
        return Observed::Seen { facts: Facts { stranger, job: None }, scene };
    };
    let selector = match selector_of(&job) {
        Ok(selector) => selector,
        Err(flaw) => return Observed::nothing(flaw),
    };
    let owner = Owner { uid: uid_of(&job), selector: &selector };
    let mut fact = job_fact(&job, source, &scene, view);
    for pod in pods {
        match owner.claim(&pod) {
            Claim::Foreign if name_of(&pod).starts_with(&fact.asked.base) => {
                fact.taken.insert(name_of(&pod).to_owned());
            }
            Claim::Foreign => {}
            claim @ (Claim::Own | Claim::Strayed | Claim::Adoptable) => {
                fact.pods.push(JobPod::of(&pod, claim, scene.now));
                scene.pods.insert(name_of(&pod).to_owned(), pod);
            }
        }
    }
    fact.times.back_off = back_off(&fact, &scene);
    Observed::Seen { facts: Facts { stranger, job: Some(fact) }, scene }
}

/// Whether a pod holds our finalizer for a Job of this name that is not the one in the cache.
fn is_stranger(pod: &Object, job: Option<&Object>, address: &Address) -> bool {
    let owner = controller_of_kind(pod, &JOB);
    has_finalizer(pod, FINALIZER_TRACKING)
        && owner.is_some_and(|owner| {
            *owner.name == *address.name.name && job.is_none_or(|job| uid_of(job) != owner.uid)
        })
}

fn stranger(pod: &Object, address: &Address, live_reads: &LiveReads<Nothing>) -> Stranger {
    let owner = controller_of_kind(pod, &JOB).map(|owner| owner.uid.as_str());
    let live = live_reads.objects.get(address);
    Stranger {
        pod: name_of(pod).to_owned(),
        is_job_gone: live.map(|live| live.as_ref().map(|job| uid_of(job)) != owner),
    }
}

fn job_fact(job: &Object, source: Source, scene: &Scene, view: &dyn View) -> Job {
    let spec = &job.data["spec"];
    let managed = spec["managedBy"].as_str();
    Job {
        asked: asked(job),
        is_terminating: is_deleting(job),
        is_managed_elsewhere: managed.is_some_and(|manager| manager != MANAGED_HERE),
        is_deleted_last: has_finalizer(job, FOREGROUND),
        is_recorded: is_recorded(job, view),
        times: times(job, scene.now),
        home: scene.home.clone(),
        reported: Status::read(job),
        pods: Vec::new(),
        taken: BTreeSet::new(),
        source,
    }
}

fn asked(job: &Object) -> Asked {
    let spec = &job.data["spec"];
    let count = |field: &str| {
        let count = spec[field].as_i64()?;
        Some(u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    };
    let is_indexed = spec["completionMode"] == "Indexed";
    let room = if is_indexed { INDEX_CHARACTERS } else { NUMBER_CHARACTERS };
    Asked {
        base: base(name_of(job), room),
        parallelism: count("parallelism").unwrap_or(1),
        completions: count("completions"),
        is_indexed,
        backoff_limit: count("backoffLimit").unwrap_or(6),
        restarts_in_place: spec["template"]["spec"]["restartPolicy"] == "OnFailure",
        is_suspended: spec["suspend"] == true,
        refusal: refusal(spec),
    }
}

/// Why a Job is not served. It is not run as if it had not said it.
fn refusal(spec: &Value) -> Option<String> {
    let fields = [
        ("podFailurePolicy", "use backoffLimit"),
        ("successPolicy", "use completions"),
        ("backoffLimitPerIndex", "use backoffLimit"),
        ("maxFailedIndexes", "use backoffLimit"),
    ];
    let said = fields.into_iter().find(|(field, _)| !spec[*field].is_null());
    said.map(|(field, instead)| format!("spec.{field} is not supported here; {instead} instead"))
}

/// Whether the CronJob that made a Job has noted the time that it was made for. Until then the Job must stay: it is
/// what keeps a second one from being made.
fn is_recorded(job: &Object, view: &dyn View) -> bool {
    let moment = |text: Option<&str>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let scheduled = moment(annotation(job, ANNOTATION_SCHEDULED));
    let owner = controller_of_kind(job, &CRON_JOB);
    let Some((scheduled, owner)) = scheduled.zip(owner) else { return true };
    let name = Name::within(namespace_of(job), &owner.name);
    let cron_job = view.get(Place::CLUSTER, &CRON_JOB, &name);
    let Some(cron_job) = cron_job.filter(|it| uid_of(it) == owner.uid) else { return true };
    let noted = moment(cron_job.data["status"]["lastScheduleTime"].as_str());
    is_deleting(&cron_job) || noted.is_some_and(|noted| noted >= scheduled)
}

fn times(job: &Object, now: Timestamp) -> Times {
    let spec = &job.data["spec"];
    let seconds =
        |field: &str| Some(Duration::from_secs(u64::try_from(spec[field].as_i64()?).unwrap_or(0)));
    let started = job.data["status"]["startTime"].as_str().and_then(|text| text.parse().ok());
    let started = started.filter(|_| spec["suspend"] != true);
    let left = |limit: Option<Duration>, since: Option<Timestamp>| {
        Some(limit?.saturating_sub(since_then(since?, now)))
    };
    Times {
        deadline: left(seconds("activeDeadlineSeconds"), started),
        ttl: left(seconds("ttlSecondsAfterFinished"), finished_at(job)),
        back_off: Duration::ZERO,
    }
}

/// How long ago something was; nothing if it is in the future.
fn since_then(then: Timestamp, now: Timestamp) -> Duration {
    let passed: SignedDuration = now.duration_since(then);
    Duration::try_from(passed).unwrap_or_default()
}

/// How long the next pod waits: twice as long after each failure since the last success.
fn back_off(job: &Job, scene: &Scene) -> Duration {
    let ended = |wanted: End| {
        let pods = job.own().filter(move |pod| pod.end == Some(wanted));
        pods.filter_map(|pod| ended_at(scene.pods.get(&pod.name)?))
    };
    let success = ended(End::Succeeded).max();
    let failures: Vec<Timestamp> =
        ended(End::Failed).filter(|at| success.is_none_or(|success| *at > success)).collect();
    let Some(last) = failures.iter().max() else { return Duration::ZERO };
    let doublings = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX).min(16);
    let wait = FIRST_BACK_OFF.saturating_mul(1 << doublings).min(LONGEST_BACK_OFF);
    wait.saturating_sub(since_then(*last, scene.now))
}

/// When a pod ended.
fn ended_at(pod: &Object) -> Option<Timestamp> {
    let ends = statuses(pod).filter_map(|it| it["state"]["terminated"]["finishedAt"].as_str());
    let last = ends.filter_map(|text| text.parse::<Timestamp>().ok()).max();
    last.or_else(|| pod.metadata.deletion_timestamp.as_ref().map(|stamp| stamp.0))
}
