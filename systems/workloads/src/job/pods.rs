//! What a pod is to its Job, and how the next one is called.

use super::decide::Job;
use super::{ANNOTATION_NOT_COUNTED, FINALIZER_TRACKING, INDEX};
use crate::owned::Claim;
use crate::pod::Readiness;
use crate::pod::readiness_of;
use crate::template::FINALIZER_PROCESS;
use interlock_kernel::Object;
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, name_of, uid_of};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A pod of a Job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct JobPod {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// What it is to the Job.
    pub claim: Claim,
    /// Its index, if the Job has any.
    pub index: Option<u32>,
    /// How it ended; None: its process runs, or will.
    pub end: Option<End>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Whether it has our finalizer.
    pub is_held: bool,
    /// Whether it was deleted by us, and its end is no failure.
    pub is_not_counted: bool,
    /// How often its containers were started again.
    pub restarts: u32,
}

/// How a pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum End {
    /// It succeeded.
    Succeeded,
    /// It failed, or was deleted by somebody.
    Failed,
    /// It was deleted, and did not fail.
    TakenAway,
}

impl JobPod {
    /// A pod as a fact.
    pub(super) fn of(pod: &Object, claim: Claim, now: Timestamp) -> JobPod {
        let is_not_counted = annotation(pod, ANNOTATION_NOT_COUNTED).is_some();
        let restarts = statuses(pod).filter_map(|it| it["restartCount"].as_u64());
        let restarts = restarts.fold(0, u64::saturating_add);
        JobPod {
            name: name_of(pod).to_owned(),
            uid: uid_of(pod).to_owned(),
            claim,
            index: annotation(pod, INDEX).and_then(|index| index.parse().ok()),
            end: end(pod, is_not_counted),
            is_terminating: is_deleting(pod),
            is_ready: readiness_of(pod, 0, now) != Readiness::Unready,
            is_held: has_finalizer(pod, FINALIZER_TRACKING),
            is_not_counted,
            restarts: u32::try_from(restarts).unwrap_or(u32::MAX),
        }
    }
}

/// What the status of a pod says of its containers. As upstream, an init container counts as the others do.
pub(super) fn statuses(pod: &Object) -> impl Iterator<Item = &Value> {
    let status = &pod.data["status"];
    let fields = ["initContainerStatuses", "containerStatuses"].into_iter();
    fields.filter_map(move |field| status[field].as_array()).flatten()
}

/// A pod that is being deleted has ended when its process has: the runtime takes its own finalizer off then.
fn end(pod: &Object, is_not_counted: bool) -> Option<End> {
    let is_gone = is_deleting(pod) && !has_finalizer(pod, FINALIZER_PROCESS);
    match pod.data["status"]["phase"].as_str() {
        Some("Succeeded") => Some(End::Succeeded),
        Some("Failed") if !is_not_counted => Some(End::Failed),
        Some("Failed") => Some(End::TakenAway),
        _ if !is_gone => None,
        _ if is_not_counted => Some(End::TakenAway),
        _ => Some(End::Failed),
    }
}

impl Job {
    /// The name of the next pod, and its index; None: every index has succeeded or has a pod.
    ///
    /// A name is never given twice as far as anybody knows: it follows the highest that there is, and the number of
    /// pods that were counted.
    pub(super) fn next_name(&self) -> Option<(String, Option<u32>)> {
        let base = &self.asked.base;
        let last = |beginning: &str| {
            let numbers = self.pods.iter().filter_map(|pod| number(&pod.name, beginning));
            numbers.max().map_or(0, |highest| highest.saturating_add(1))
        };
        let free = |beginning: &str, from: u32| {
            let mut names = (from..=u32::MAX).map(|number| format!("{beginning}{number}"));
            names.find(|name| !self.taken.contains(name))
        };
        if !self.asked.is_indexed {
            let beginning = format!("{base}-");
            let ends = &self.reported.ends;
            let counted = ends.all_succeeded().saturating_add(ends.all_failed());
            return Some((free(&beginning, last(&beginning).max(counted))?, None));
        }
        let is_free =
            |index: u32| !self.own().any(|pod| pod.index == Some(index) && pod.end.is_none());
        let completions = self.asked.completions.unwrap_or(0);
        let index = self.reported.ends.indexes.lowest_missing(completions, is_free)?;
        let beginning = format!("{base}-{index}-");
        Some((free(&beginning, last(&beginning))?, Some(index)))
    }
}

/// The number of a pod whose name begins so.
fn number(name: &str, beginning: &str) -> Option<u32> {
    let text = name.strip_prefix(beginning)?;
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
