//! What a Job does next. First matching rule wins.
//!
//! | seen | effect |
//! |---|---|
//! | a pod of an earlier Job of the name, by a live read, or of one that is being deleted | take the finalizer off |
//! | it ended, and its ttl is over | delete it, its pods first |
//! | a pod that nobody has is the Job's / is the Job's and matches no more | adopt / release it |
//! | a counted pod has our finalizer | take it off |
//! | a pod ended / a counted one has no finalizer any more | count it, provisionally / for good |
//! | enough succeeded, too many failed, the deadline is over | say how the Job is to end; delete all pods; say that it ended |
//! | it is suspended, or has too many pods | mark a pod as not counted, and delete it |
//! | active < min(parallelism, completions - succeeded), and the back-off is over | create the next pod |
//! | the status differs | write it |
//!
//! A pod is created, and an end is counted, only by what a live read shows after the Job itself.

use super::pods::{End, JobPod};
use super::status::{Ends, Now, Status, Verdict};
use crate::live::Source;
use crate::owned::Claim;
use crate::template::Home;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// A pod that holds our finalizer for another Job of this name.
    pub stranger: Option<Stranger>,
    /// The Job; None: the cache does not show it.
    pub job: Option<Job>,
}

/// A pod that holds our finalizer for another Job of this name than the cache shows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Stranger {
    /// The name of the pod.
    pub pod: String,
    /// Whether its Job is gone, by a live read; None: there was none.
    pub is_job_gone: Option<bool>,
}

/// A Job and its pods.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Job {
    /// What it asks for.
    pub asked: Asked,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether `spec.managedBy` names another controller.
    pub is_managed_elsewhere: bool,
    /// Whether its pods are deleted before it.
    pub is_deleted_last: bool,
    /// Whether the CronJob that made it has noted that.
    pub is_recorded: bool,
    /// The limits of its time.
    pub times: Times,
    /// Its namespace.
    pub home: Home,
    /// The status as it is.
    pub reported: Status,
    /// Its pods.
    pub pods: Vec<JobPod>,
    /// Names that begin like those of its pods, and that others have.
    pub taken: BTreeSet<String>,
    /// Where the pods were read.
    pub source: Source,
}

/// What a Job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Asked {
    /// How the names of its pods begin.
    pub base: String,
    /// How many pods run at once.
    pub parallelism: u32,
    /// How many are to succeed; None: the pods themselves know when all is done.
    pub completions: Option<u32>,
    /// Whether each completion is of an index.
    pub is_indexed: bool,
    /// How many may fail.
    pub backoff_limit: u32,
    /// Whether a container that fails is started again in its pod.
    pub restarts_in_place: bool,
    /// Whether it is not to run now.
    pub is_suspended: bool,
    /// Why it is not served; None: it is.
    pub refusal: Option<String>,
}

/// The limits of a Job's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Times {
    /// How long it may run; None: as long as it likes, or it does not run.
    pub deadline: Option<Duration>,
    /// How long it is kept after its end; None: for ever, or it has not ended.
    pub ttl: Option<Duration>,
    /// How long its next pod waits because the last one failed.
    pub back_off: Duration,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache,
    /// Nothing until this has passed, and why.
    Wait(Duration, &'static str),
    /// Read the Job live: is the Job of a pod gone?
    ReadJob,
    /// Read the Job and its pods live.
    ReadLive,
    /// Do this to the pod of this name.
    Pod(String, OfPod),
    /// Make the pod of this name, of this index if the Job has any.
    CreatePod(String, Option<u32>),
    /// Do this to the Job.
    Job(OfJob),
}

/// What is done to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum OfPod {
    /// Take our finalizer off, and why.
    LetGo(&'static str),
    /// Put our finalizer on.
    Hold,
    /// Make the Job its controller.
    Adopt,
    /// Take the Job off, and our finalizer with it.
    Release,
    /// Note that its end is no failure, and why.
    MarkNotCounted(&'static str),
    /// Delete it, and why.
    Delete(&'static str),
}

/// What is done to the Job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum OfJob {
    /// Write how many pods ended how.
    Count(Box<Ends>),
    /// Write since when it runs.
    Start,
    /// Write that it is suspended.
    Suspend,
    /// Write how it is to end.
    Conclude(Verdict),
    /// Write that it ended so.
    Finish(Verdict, Now),
    /// Write how many pods there are.
    Report(Now),
    /// Have its pods deleted before it.
    DeletePodsFirst,
    /// Delete it.
    Delete,
}

impl Decision {
    pub(super) fn of_pod(pod: &JobPod, change: OfPod) -> Decision {
        Decision::Pod(pod.name.clone(), change)
    }
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match &facts.stranger {
        Some(Stranger { is_job_gone: None, .. }) => return Decision::ReadJob,
        Some(Stranger { pod, is_job_gone: Some(true) }) => {
            return Decision::Pod(pod.clone(), OfPod::LetGo("its Job is gone"));
        }
        Some(Stranger { is_job_gone: Some(false), .. }) => return Decision::WaitForCache,
        None => {}
    }
    let Some(job) = &facts.job else { return Decision::Rest("the cache shows no such Job") };
    if job.is_managed_elsewhere {
        return Decision::Rest("spec.managedBy names another controller");
    }
    if job.is_terminating {
        return job.leave();
    }
    if job.source == Source::LiveOfAnother {
        return Decision::WaitForCache;
    }
    job.claimed().or_else(|| job.track()).unwrap_or_else(|| job.run())
}

impl Job {
    /// Its own pods.
    pub(super) fn own(&self) -> impl DoubleEndedIterator<Item = &JobPod> {
        self.pods.iter().filter(|pod| pod.claim == Claim::Own)
    }

    /// Its own pods that have not ended, terminating ones included.
    fn live(&self) -> impl DoubleEndedIterator<Item = &JobPod> {
        self.own().filter(|pod| pod.end.is_none())
    }

    /// Nothing is counted any more, and no pod may stay for the sake of a count.
    fn leave(&self) -> Decision {
        match self.own().find(|pod| pod.is_held) {
            Some(pod) => Decision::of_pod(pod, OfPod::LetGo("its Job is being deleted")),
            None => Decision::Rest("the Job is being deleted"),
        }
    }

    fn claimed(&self) -> Option<Decision> {
        self.pods.iter().find_map(|pod| match pod.claim {
            Claim::Adoptable if !self.reported.is_finished => {
                Some(Decision::of_pod(pod, OfPod::Adopt))
            }
            Claim::Strayed if !pod.is_terminating => Some(Decision::of_pod(pod, OfPod::Release)),
            // Somebody stripped it: a pod that is deleted now would not be counted.
            Claim::Own if !pod.is_held && pod.end.is_none() && !pod.is_terminating => {
                Some(Decision::of_pod(pod, OfPod::Hold))
            }
            Claim::Own | Claim::Strayed | Claim::Adoptable | Claim::Foreign => None,
        })
    }

    /// How the Job goes on when all ends are counted.
    fn run(&self) -> Decision {
        if self.reported.is_finished {
            return self.finished();
        }
        let next = match &self.reported.verdict {
            Some(verdict) => self.end(verdict),
            None => match self.verdict() {
                Some(verdict) => Some(Decision::Job(OfJob::Conclude(verdict))),
                None if self.asked.is_suspended => self.suspend(),
                None => self.advance(),
            },
        };
        if let Some(decision) = next {
            return decision;
        }
        let now = self.now();
        if now != self.reported.now {
            return Decision::Job(OfJob::Report(now));
        }
        self.rest()
    }

    fn finished(&self) -> Decision {
        match self.times.ttl {
            None => Decision::Rest("the Job has ended"),
            Some(left) if !left.is_zero() => {
                Decision::Wait(left, "the Job has ended, and is kept for its ttl")
            }
            Some(_) if !self.is_recorded => {
                Decision::Rest("its CronJob has not noted yet that it made the Job")
            }
            Some(_) if self.source == Source::Cache => Decision::ReadLive,
            Some(_) if !self.is_deleted_last => Decision::Job(OfJob::DeletePodsFirst),
            Some(_) => Decision::Job(OfJob::Delete),
        }
    }

    /// How many have succeeded.
    pub(super) fn succeeded(&self) -> u32 {
        match (self.asked.is_indexed, self.asked.completions) {
            (true, Some(completions)) => self.reported.ends.indexes.count_below(completions),
            (true, None) | (false, _) => self.reported.ends.all_succeeded(),
        }
    }

    /// How it is to end, by what is counted; None: that is open.
    fn verdict(&self) -> Option<Verdict> {
        let fails = |reason: &str, message: &str| {
            Some(Verdict::Fails { reason: reason.to_owned(), message: message.to_owned() })
        };
        if let Some(refusal) = &self.asked.refusal {
            return fails("NotSupported", refusal);
        }
        let succeeded = self.succeeded();
        let is_enough = match self.asked.completions {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0 && self.live().next().is_none(),
        };
        if is_enough {
            return Some(Verdict::Succeeds);
        }
        let limit = self.asked.backoff_limit;
        let restarts = self.live().map(|pod| pod.restarts).fold(0, u32::saturating_add);
        let is_restarted = self.asked.restarts_in_place && restarts > 0 && restarts >= limit;
        if self.reported.ends.all_failed() > limit || is_restarted {
            let message = "Job has reached the specified backoff limit";
            return fails("BackoffLimitExceeded", message);
        }
        if self.times.deadline == Some(Duration::ZERO) {
            return fails("DeadlineExceeded", "Job was active longer than specified deadline");
        }
        None
    }

    /// All pods end, and then the Job has.
    fn end(&self, verdict: &Verdict) -> Option<Decision> {
        if let Some(pod) = self.live().find(|pod| !pod.is_terminating) {
            return Some(Decision::of_pod(pod, OfPod::Delete("the Job is to end")));
        }
        let is_over = self.live().next().is_none();
        let ends = &self.reported.ends;
        let is_counted = ends.new_succeeded.is_empty() && ends.new_failed.is_empty();
        (is_over && is_counted).then(|| Decision::Job(OfJob::Finish(verdict.clone(), self.now())))
    }

    fn suspend(&self) -> Option<Decision> {
        let ready_first = self.live().find(|pod| !pod.is_terminating);
        if let Some(pod) = ready_first {
            return Some(Self::take_away(pod, "the Job is suspended"));
        }
        let is_said = self.reported.is_suspended && !self.reported.has_started;
        (!is_said).then_some(Decision::Job(OfJob::Suspend))
    }

    fn take_away(pod: &JobPod, because: &'static str) -> Decision {
        match pod.is_not_counted {
            true => Decision::of_pod(pod, OfPod::Delete(because)),
            false => Decision::of_pod(pod, OfPod::MarkNotCounted(because)),
        }
    }

    /// How many pods are to run now.
    fn wanted(&self) -> u32 {
        let live = u32::try_from(self.live().count()).unwrap_or(u32::MAX);
        let parallelism = self.asked.parallelism;
        match self.asked.completions {
            Some(completions) => parallelism.min(completions.saturating_sub(self.succeeded())),
            // One that has succeeded knows that nothing is left to do.
            None if self.succeeded() > 0 => parallelism.min(live),
            None => parallelism,
        }
    }

    fn advance(&self) -> Option<Decision> {
        if !self.reported.has_started || self.reported.is_suspended {
            return Some(Decision::Job(OfJob::Start));
        }
        let wanted = usize::try_from(self.wanted()).unwrap_or(usize::MAX);
        let staying: Vec<&JobPod> = self.live().filter(|pod| !pod.is_terminating).collect();
        if staying.len() > wanted {
            // One that is not ready has the least to lose; then the youngest.
            let least = staying.iter().rev().min_by_key(|pod| pod.is_ready);
            return least.map(|pod| Self::take_away(pod, "there are more pods than parallelism"));
        }
        // A pod that is being deleted runs to its end: the next waits for that.
        if self.live().count() >= wanted || !self.times.back_off.is_zero() {
            return None;
        }
        if matches!(self.home, Home::Unseen | Home::Terminating) {
            return None;
        }
        let (name, index) = self.next_name()?;
        Some(match self.source {
            Source::Cache => Decision::ReadLive,
            Source::Live | Source::LiveOfAnother => Decision::CreatePod(name, index),
        })
    }

    /// What the status is to say of its pods.
    fn now(&self) -> Now {
        let count = |counts: &dyn Fn(&&JobPod) -> bool| {
            u32::try_from(self.live().filter(counts).count()).unwrap_or(u32::MAX)
        };
        Now {
            active: count(&|pod| !pod.is_terminating),
            ready: count(&|pod| !pod.is_terminating && pod.is_ready),
            terminating: count(&|pod| pod.is_terminating),
        }
    }

    fn rest(&self) -> Decision {
        let back_off = Some(self.times.back_off).filter(|left| !left.is_zero());
        match (back_off, self.times.deadline.filter(|left| !left.is_zero())) {
            (Some(back_off), deadline) => {
                let left = deadline.map_or(back_off, |deadline| deadline.min(back_off));
                Decision::Wait(left, "a pod failed: the next one waits")
            }
            (None, Some(left)) => Decision::Wait(left, "the Job has a deadline"),
            (None, None) => Decision::Rest("the pods of the Job are as they are to be"),
        }
    }
}

impl JobPod {
    /// Whether its end is one to count, and which.
    pub(super) fn counts_as(&self) -> Option<End> {
        self.end.filter(|_| self.is_held)
    }
}
