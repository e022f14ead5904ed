//! Makes a Job whenever the schedule of a CronJob says so. The subject of a step is a CronJob.
//!
//! A Job is called `<cronjob>-<scheduled minute>`, the minute counted from 1970: a time has one Job, whoever makes it.
//! It is made only after a live read shows that the CronJob has not noted that time yet.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::job::ANNOTATION_SCHEDULED;
use crate::kinds::{CRON_JOB, JOB, NAMESPACE};
use crate::owned::{controller_of_kind, subject_of};
use interlock_kernel::metadata::{name_of, namespace_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use jiff::tz::TimeZone;

/// On a CronJob: why no Job is made of it. Its status has no conditions.
pub const ANNOTATION_PROBLEM: &str = "interlock.dev/problem";

/// Finds a time zone by its name; None: it is not known. What a zone says changes with the laws of countries, so it is
/// handed in by whoever has a database of them.
pub type Zones = fn(&str) -> Option<TimeZone>;

/// The controller of the CronJobs of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct CronJobs {
    zones: Zones,
}

impl CronJobs {
    /// Time zones are found by this.
    pub fn new(zones: Zones) -> CronJobs {
        CronJobs { zones }
    }
}

/// UTC by its names: for a machine that has no database of time zones.
pub fn only_utc(name: &str) -> Option<TimeZone> {
    let is_utc = ["UTC", "Etc/UTC", "Etc/GMT", "GMT"].contains(&name);
    is_utc.then_some(TimeZone::UTC)
}

impl Watcher for CronJobs {
    fn name(&self) -> &'static str {
        "workloads/cronjob"
    }

    fn watches(&self) -> Vec<Watch> {
        [CRON_JOB, JOB, NAMESPACE].iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&CRON_JOB, &[Verb::Patch, Verb::PatchStatus]),
                (&JOB, &[Verb::Create, Verb::Patch, Verb::Delete]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == CRON_JOB {
            return vec![subject_of(object)];
        }
        if watch.kind == JOB {
            let owner = controller_of_kind(object, &CRON_JOB);
            let subject = owner.map(|it| format!("{}/{}", namespace_of(object), it.name));
            return subject.map(Subject::from).into_iter().collect();
        }
        let all = view.list(Place::CLUSTER, &CRON_JOB, Some(name_of(object)));
        all.iter().map(|it| subject_of(it)).collect()
    }
}

impl Room for CronJobs {
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
        observe::observe(self.zones, subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
