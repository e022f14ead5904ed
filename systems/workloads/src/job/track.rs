//! How the ends of pods are counted, each once.
//!
//! A pod that ended gets its uid into the status. Then our finalizer is taken off the pod, and then the uid
//! makes room for a number. Each write to the status carries the version that was seen, so no two writers count
//! one end. A pod that has our finalizer by a live read was never counted for good: the cache alone may show one
//! that was.

use super::decide::{Decision, Job, OfJob, OfPod};
use super::pods::{End, JobPod};
use super::status::{Ends, Verdict};
use crate::live::Source;
use std::collections::BTreeSet;

impl Job {
    /// The next thing that the count needs; None: every end is counted.
    pub(super) fn track(&self) -> Option<Decision> {
        if let Some(pod) = self.own().find(|pod| self.is_noted(pod) && pod.is_held) {
            return Some(Decision::of_pod(pod, OfPod::LetGo("its end is in the status")));
        }
        let ends = self.counted();
        if ends == self.reported.ends {
            return None;
        }
        Some(match self.source {
            Source::Cache => Decision::ReadLive,
            Source::Live | Source::LiveOfAnother => Decision::Job(OfJob::Count(Box::new(ends))),
        })
    }

    /// Whether the status has the end of a pod, or need not have it.
    fn is_noted(&self, pod: &JobPod) -> bool {
        let ends = &self.reported.ends;
        match pod.end {
            None => false,
            Some(End::TakenAway) => true,
            Some(End::Succeeded) if self.asked.is_indexed => {
                // An index that the Job does not have counts for nothing.
                pod.index.is_none_or(|index| !self.has_index(index) || ends.indexes.contains(index))
            }
            Some(End::Succeeded) => ends.new_succeeded.contains(&pod.uid),
            Some(End::Failed) => self.is_no_failure(pod) || ends.new_failed.contains(&pod.uid),
        }
    }

    fn has_index(&self, index: u32) -> bool {
        self.asked.completions.is_none_or(|completions| index < completions)
    }

    /// One that was deleted because the Job has succeeded did not fail.
    fn is_no_failure(&self, pod: &JobPod) -> bool {
        pod.is_terminating && self.reported.verdict == Some(Verdict::Succeeds)
    }

    /// What the status is to say of the ends of pods.
    fn counted(&self) -> Ends {
        let mut ends = self.reported.ends.clone();
        let is_held = |uid: &String| self.own().any(|pod| pod.uid == *uid && pod.is_held);
        let held =
            |uids: &BTreeSet<String>| uids.iter().filter(|uid| is_held(uid)).cloned().collect();
        let all = &self.reported.ends;
        ends.new_succeeded = held(&all.new_succeeded);
        ends.new_failed = held(&all.new_failed);
        let done = |before: usize, after: usize| u32::try_from(before - after).unwrap_or(u32::MAX);
        let succeeded = done(all.new_succeeded.len(), ends.new_succeeded.len());
        ends.succeeded = ends.succeeded.saturating_add(succeeded);
        ends.failed = ends.failed.saturating_add(done(all.new_failed.len(), ends.new_failed.len()));
        for pod in self.own().filter(|pod| !self.is_noted(pod)) {
            match (pod.counts_as(), pod.index) {
                (Some(End::Succeeded), Some(index)) if self.asked.is_indexed => {
                    ends.indexes = ends.indexes.with(index);
                }
                (Some(End::Succeeded), _) => {
                    ends.new_succeeded.insert(pod.uid.clone());
                }
                (Some(End::Failed), _) => {
                    ends.new_failed.insert(pod.uid.clone());
                }
                (Some(End::TakenAway) | None, _) => {}
            }
        }
        if let (true, Some(completions)) = (self.asked.is_indexed, self.asked.completions) {
            ends.succeeded = ends.indexes.count_below(completions);
        }
        ends
    }
}
