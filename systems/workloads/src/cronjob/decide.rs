//! What a CronJob does next. First matching rule wins.
//!
//! | seen | effect |
//! |---|---|
//! | schedule or time zone cannot be read | say so |
//! | the status differs from the Jobs: active, last scheduled, last successful | write it |
//! | more ended Jobs than the limits | delete the oldest, its pods first |
//! | a time has come, and no Job of an earlier one runs | make its Job |
//! | ... one runs: `Allow` / `Forbid` / `Replace` | make the Job / wait / delete the one that runs, and wait |

use crate::live::Source;
use crate::template::Home;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the CronJob is being deleted.
    pub is_terminating: bool,
    /// Whether no new Job is wanted.
    pub is_suspended: bool,
    /// What happens while a Job runs.
    pub concurrency: Concurrency,
    /// What the schedule says now, or why it cannot be read.
    pub when: Result<When, String>,
    /// The problem that the CronJob is marked with.
    pub said_problem: Option<String>,
    /// How many Jobs are kept that succeeded.
    pub keeps_successful: usize,
    /// How many Jobs are kept that failed.
    pub keeps_failed: usize,
    /// Its namespace.
    pub home: Home,
    /// Its Jobs, the oldest first.
    pub jobs: Vec<JobOf>,
    /// Whether the name of the Job that is due is that of another object.
    pub is_name_taken: bool,
    /// The status as it is.
    pub reported: Status,
    /// Where the Jobs were read.
    pub source: Source,
}

/// What happens when a time comes while a Job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Concurrency {
    /// Another Job runs beside it.
    Allow,
    /// The time is over if the Job runs for longer than startingDeadlineSeconds.
    Forbid,
    /// The Job is deleted.
    Replace,
}

/// What a schedule says now. Times are in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum When {
    /// This time has come, and has no Job yet.
    Due(i64),
    /// The next time comes after this.
    In(Duration),
    /// No time comes, such as a 31st of February.
    Never,
}

/// A Job of the CronJob.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct JobOf {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Whether it succeeded; None: it has not ended.
    pub outcome: Option<bool>,
    /// The time that it was made for; None: somebody made it.
    pub scheduled: Option<i64>,
    /// When it succeeded.
    pub succeeded_at: Option<i64>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether its pods are deleted before it.
    pub is_deleted_last: bool,
}

/// What the status says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Status {
    /// The uids of the Jobs that run.
    pub active: BTreeSet<String>,
    /// The last time that a Job was made for.
    pub last_scheduled: Option<i64>,
    /// When a Job last succeeded.
    pub last_successful: Option<i64>,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache,
    /// Nothing until the next time comes.
    WaitForTime(Duration),
    /// Read the CronJob and the Jobs live, before a Job is made.
    ReadLive,
    /// Mark the CronJob with this problem, or with none any more.
    Mark(Option<String>),
    /// Write the status.
    Report(Status),
    /// Have the pods of the Job of this name deleted before it, and why it is deleted.
    DeletePodsFirst(String, &'static str),
    /// Delete the Job of this name, and why.
    DeleteJob(String, &'static str),
    /// Make the Job of this time.
    Create(i64),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_terminating {
        return Decision::Rest("the CronJob is being deleted");
    }
    if facts.source == Source::LiveOfAnother {
        return Decision::WaitForCache;
    }
    let problem = facts.when.as_ref().err();
    if problem != facts.said_problem.as_ref() {
        return Decision::Mark(problem.cloned());
    }
    let status = facts.status();
    if status != facts.reported {
        return Decision::Report(status);
    }
    if let Some(job) = facts.superfluous() {
        return delete(job, "there are more ended Jobs than the limit");
    }
    match &facts.when {
        Err(_) => Decision::Rest("the schedule cannot be read"),
        Ok(_) if facts.is_suspended => Decision::Rest("the CronJob is suspended"),
        Ok(When::Never) => Decision::Rest("the schedule has no time"),
        Ok(When::In(left)) => Decision::WaitForTime(*left),
        Ok(When::Due(time)) => facts.start(*time),
    }
}

/// A Job is deleted after its pods: by default the server would leave them.
fn delete(job: &JobOf, because: &'static str) -> Decision {
    match job.is_deleted_last {
        true => Decision::DeleteJob(job.name.clone(), because),
        false => Decision::DeletePodsFirst(job.name.clone(), because),
    }
}

impl Facts {
    /// The Jobs of a time that have not ended. One that somebody made is nobody's run.
    fn active(&self) -> impl Iterator<Item = &JobOf> {
        self.jobs.iter().filter(|job| job.outcome.is_none() && job.scheduled.is_some())
    }

    fn status(&self) -> Status {
        let scheduled = self.jobs.iter().filter_map(|job| job.scheduled).max();
        let succeeded = self.jobs.iter().filter_map(|job| job.succeeded_at).max();
        Status {
            active: self.active().map(|job| job.uid.clone()).collect(),
            last_scheduled: self.reported.last_scheduled.max(scheduled),
            last_successful: self.reported.last_successful.max(succeeded),
        }
    }

    /// The oldest ended Job beyond the limits.
    fn superfluous(&self) -> Option<&JobOf> {
        let oldest = |is_success: bool, limit: usize| {
            let is_ended = |job: &&JobOf| job.outcome == Some(is_success) && !job.is_terminating;
            let ended: Vec<&JobOf> = self.jobs.iter().filter(is_ended).collect();
            (ended.len() > limit).then(|| ended.first().copied()).flatten()
        };
        oldest(true, self.keeps_successful).or_else(|| oldest(false, self.keeps_failed))
    }

    fn start(&self, time: i64) -> Decision {
        if let Some(job) = self.active().next() {
            match self.concurrency {
                Concurrency::Allow => {}
                Concurrency::Forbid => return Decision::Rest("a Job of an earlier time runs"),
                Concurrency::Replace if job.is_terminating => {
                    return Decision::Rest("a Job of an earlier time is being deleted");
                }
                Concurrency::Replace => return delete(job, "the next time has come"),
            }
        }
        match (&self.home, self.source) {
            (Home::Unseen, _) => Decision::Rest("the cache does not show the namespace"),
            (Home::Terminating, _) => Decision::Rest("the namespace is being deleted"),
            (Home::Plain | Home::Placed(_), Source::Cache) => Decision::ReadLive,
            (Home::Plain | Home::Placed(_), Source::Live | Source::LiveOfAnother) => {
                match self.is_name_taken {
                    true => Decision::Rest("another Job has the name of the one that is due"),
                    false => Decision::Create(time),
                }
            }
        }
    }
}
