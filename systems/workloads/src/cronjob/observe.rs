//! What is seen of a CronJob and of its Jobs.

use super::decide::{Concurrency, Facts, JobOf, Status, When};
use super::{ANNOTATION_PROBLEM, ANNOTATION_SCHEDULED, Zones};
use crate::job::{FOREGROUND, outcome};
use crate::kinds::{CRON_JOB, JOB};
use crate::live::Listing;
use crate::owned::{controller_of_kind, name_in};
use crate::slots::base;
use crate::template::Home;
use interlock_kernel::metadata::{
    annotation, has_finalizer, is_deleting, name_of, namespace_of, uid_of,
};
use interlock_kernel::{Address, LiveReads, Nothing, Object, Observed, Place, Subject, View};
use interlock_schedule::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A dash and a minute.
const MINUTE_CHARACTERS: usize = 11;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) cron_job: Object,
    /// Its Jobs, by name.
    pub(super) jobs: BTreeMap<String, Object>,
}

/// Reads what a step is about.
pub(super) fn observe(
    zones: Zones,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::CLUSTER, &CRON_JOB, name_in(subject));
    let Some(cron_job) = view.get(Place::CLUSTER, &CRON_JOB, &address.name) else {
        return Observed::nothing("the cache shows no such CronJob");
    };
    let listing = Listing { owner: &address, kind: &JOB };
    let (source, all) = listing.list(Some(&cron_job), view, live_reads);
    let is_own = |job: &Object| {
        let owner = controller_of_kind(job, &CRON_JOB);
        owner.is_some_and(|owner| owner.uid == uid_of(&cron_job))
    };
    let (own, others): (Vec<Object>, Vec<Object>) = all.into_iter().partition(is_own);
    let mut jobs: Vec<&Object> = own.iter().collect();
    jobs.sort_by_key(|job| (job.metadata.creation_timestamp.clone(), name_of(job)));
    let jobs: Vec<JobOf> = jobs.into_iter().map(|it| job(&cron_job, it)).collect();
    let reported = status(&cron_job);
    let scheduled = jobs.iter().filter_map(|job| job.scheduled).max();
    let when = when(&cron_job, zones, reported.last_scheduled.max(scheduled), view.now());
    let due = match when {
        Ok(When::Due(time)) => Some(job_name(&cron_job, time)),
        Ok(When::In(_) | When::Never) | Err(_) => None,
    };
    let spec = &cron_job.data["spec"];
    let facts = Facts {
        is_terminating: is_deleting(&cron_job),
        is_suspended: spec["suspend"] == true,
        concurrency: match spec["concurrencyPolicy"].as_str() {
            Some("Forbid") => Concurrency::Forbid,
            Some("Replace") => Concurrency::Replace,
            _ => Concurrency::Allow,
        },
        when,
        said_problem: annotation(&cron_job, ANNOTATION_PROBLEM).map(str::to_owned),
        keeps_successful: limit(&spec["successfulJobsHistoryLimit"], 3),
        keeps_failed: limit(&spec["failedJobsHistoryLimit"], 1),
        home: Home::of(view, namespace_of(&cron_job)),
        is_name_taken: due.is_some_and(|due| others.iter().any(|job| name_of(job) == due)),
        jobs,
        reported,
        source,
    };
    let jobs = own.into_iter().map(|job| (name_of(&job).to_owned(), job)).collect();
    Observed::Seen { facts, scene: Scene { cron_job, jobs } }
}

fn limit(value: &Value, default: usize) -> usize {
    value.as_i64().map_or(default, |limit| usize::try_from(limit).unwrap_or(0))
}

fn moment(value: Option<&str>) -> Option<i64> {
    Some(value?.parse::<Timestamp>().ok()?.as_second())
}

fn job(cron_job: &Object, job: &Object) -> JobOf {
    let outcome = outcome(job);
    // What a Job says counts only if it has the name that follows from it.
    let scheduled = moment(annotation(job, ANNOTATION_SCHEDULED));
    let scheduled = scheduled.filter(|time| job_name(cron_job, *time) == name_of(job));
    let completed = job.data["status"]["completionTime"].as_str();
    JobOf {
        name: name_of(job).to_owned(),
        uid: uid_of(job).to_owned(),
        outcome,
        scheduled,
        succeeded_at: moment(completed).filter(|_| outcome == Some(true)),
        is_terminating: is_deleting(job),
        is_deleted_last: has_finalizer(job, FOREGROUND),
    }
}

fn status(cron_job: &Object) -> Status {
    let status = &cron_job.data["status"];
    let active = status["active"].as_array().into_iter().flatten();
    let uids: BTreeSet<String> =
        active.filter_map(|job| job["uid"].as_str().map(str::to_owned)).collect();
    Status {
        active: uids,
        last_scheduled: moment(status["lastScheduleTime"].as_str()),
        last_successful: moment(status["lastSuccessfulTime"].as_str()),
    }
}

/// The name of the Job of a time.
pub(super) fn job_name(cron_job: &Object, time: i64) -> String {
    format!("{}-{}", base(name_of(cron_job), MINUTE_CHARACTERS), time.div_euclid(60))
}

/// What the schedule says now; an error says in words what is wrong with it, and where.
fn when(
    cron_job: &Object,
    zones: Zones,
    last: Option<i64>,
    now: Timestamp,
) -> Result<When, String> {
    let spec = &cron_job.data["spec"];
    let zone = zone(spec["timeZone"].as_str(), zones)?;
    let line = spec["schedule"].as_str().unwrap_or_default();
    let cron = Cron::read(line).map_err(|flaw| format!("spec.schedule: {flaw}"))?;
    let created = cron_job.metadata.creation_timestamp.as_ref().map(|created| created.0);
    let last = last.and_then(|last| Timestamp::from_second(last).ok());
    // A time that a Job was made for is over; so is all from before there was a CronJob.
    let mut after = last.or(created).unwrap_or(now);
    let deadline = spec["startingDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline {
        let earliest = now.checked_sub(SignedDuration::from_secs(seconds.max(0)));
        after = earliest.map_or(after, |earliest| earliest.max(after));
    }
    if let Some(due) = cron.latest_in(&zone, after, now) {
        return Ok(When::Due(due.as_second()));
    }
    Ok(match cron.next_in(&zone, now.max(after)) {
        Some(next) => {
            let left = next.duration_since(now);
            When::In(Duration::try_from(left).unwrap_or_default())
        }
        None => When::Never,
    })
}

fn zone(name: Option<&str>, zones: Zones) -> Result<TimeZone, String> {
    let Some(name) = name else { return Ok(TimeZone::UTC) };
    zones(name).ok_or_else(|| {
        format!(
            "spec.timeZone: {name:?} is no time zone that this machine knows; use one of its \
             database, such as \"Etc/UTC\", or leave it out for UTC"
        )
    })
}
