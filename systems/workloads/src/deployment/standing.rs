//! How a Deployment stands: what its status says, in upstream's words.

use super::decide::{BEHIND, Counts, Decision, Facts, Set};
use super::sizes::is_carried_out;
use super::spec::Spec;
use crate::owned::Claim;
use interlock_kernel::conditions::Finding;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Whether it makes progress.
pub const PROGRESSING: &str = "Progressing";
/// Whether enough pods are available.
pub const AVAILABLE: &str = "Available";
/// Whether pods cannot be made.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";
/// All conditions that are written here.
pub const CONDITIONS: [&str; 3] = [PROGRESSING, AVAILABLE, REPLICA_FAILURE];

/// What the status of a Deployment says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Said {
    /// The generation that it is of.
    pub generation: i64,
    /// The pods.
    pub pods: Pods,
    /// The conditions of [`CONDITIONS`] that there are.
    pub conditions: Vec<Condition>,
    /// How many seconds ago progress was noted last.
    pub progress_age_seconds: i64,
}

/// The pods of a Deployment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Pods {
    /// Those that count.
    pub all: u32,
    /// Those of them that have its template.
    pub updated: u32,
    /// Those of them that are ready.
    pub ready: u32,
    /// Those of them that are available.
    pub available: u32,
    /// Those that are asked for, or there, and not available.
    pub unavailable: u32,
}

/// A condition, without its times.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Condition {
    /// Which.
    pub kind: String,
    /// Whether it holds; None: unknown.
    pub holds: Option<bool>,
    /// One word.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

impl Condition {
    fn of(finding: &Finding) -> Condition {
        Condition {
            kind: finding.kind.to_owned(),
            holds: finding.holds,
            reason: finding.reason.to_owned(),
            message: finding.message.clone(),
        }
    }
}

/// What the status of a Deployment is to say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Status {
    /// The generation that it is of.
    pub generation: i64,
    /// The pods.
    pub pods: Pods,
    /// The conditions; those of [`CONDITIONS`] that are not among them are not to be there.
    pub findings: Vec<Finding>,
    /// Whether the time that a change may take without progress begins again.
    pub is_progress: bool,
}

/// How far a change of the pods is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Complete,
    Changing,
    Paused,
    Resumed,
    TimedOut,
}

impl Progress {
    const ALL: [Progress; 5] = [
        Progress::Complete,
        Progress::Changing,
        Progress::Paused,
        Progress::Resumed,
        Progress::TimedOut,
    ];

    fn reason(self) -> &'static str {
        match self {
            Progress::Complete => "NewReplicaSetAvailable",
            Progress::Changing => "ReplicaSetUpdated",
            Progress::Paused => "DeploymentPaused",
            Progress::Resumed => "DeploymentResumed",
            Progress::TimedOut => "ProgressDeadlineExceeded",
        }
    }

    fn holds(self) -> Option<bool> {
        match self {
            Progress::Complete | Progress::Changing => Some(true),
            Progress::Paused | Progress::Resumed => None,
            Progress::TimedOut => Some(false),
        }
    }
}

/// The status, if it is to say something else than it does.
///
/// That all is done is said once, and people act on it. So numbers that say it are written only if nothing is left to
/// do, and after a live list: a cache that misses an old pod is not enough for that.
pub(super) fn report(facts: &Facts) -> Option<Decision> {
    let decision = due(facts)?;
    let Ok(spec) = &facts.spec else { return Some(decision) };
    if !looks_complete(pods(facts), spec) || spec.is_paused {
        return Some(decision);
    }
    if !is_complete(facts, spec) {
        return None;
    }
    let Some(live) = &facts.live else { return Some(Decision::ReadSizes) };
    let seen = Facts { sets: live.clone(), ..facts.clone() };
    let is_done = is_complete(&seen, spec) && is_carried_out(facts.plan.as_ref(), live);
    Some(if is_done { decision } else { BEHIND })
}

/// The status by what the cache shows.
fn due(facts: &Facts) -> Option<Decision> {
    let (pods, said) = (pods(facts), &facts.said);
    let (findings, is_progress) = match &facts.spec {
        Err(flaw) => {
            let message = format!("{flaw}; correct it with kubectl edit, or apply it again");
            (vec![Finding::fails(PROGRESSING, "InvalidSpec", message)], false)
        }
        Ok(spec) => findings(facts, spec),
    };
    let due: Vec<Condition> = findings.iter().map(Condition::of).collect();
    let is_said = due.len() == said.conditions.len()
        && due.iter().all(|condition| said.conditions.contains(condition));
    let is_same = is_said && said.pods == pods && said.generation == facts.generation;
    let generation = facts.generation;
    (!is_same).then_some(Decision::Report(Status { generation, pods, findings, is_progress }))
}

fn pods(facts: &Facts) -> Pods {
    let mut pods = Pods::default();
    for set in facts.sets.iter().filter(|set| set.claim == Claim::Own) {
        let Counts { active, ready, available, .. } = set.pods;
        pods.all += active;
        pods.updated += if set.is_new { active } else { 0 };
        pods.ready += ready;
        pods.available += available;
    }
    let wanted = facts.spec.as_ref().map_or(0, |spec| spec.replicas);
    pods.unavailable = wanted.max(pods.all).saturating_sub(pods.available);
    pods
}

/// Whether all pods are of the present template, and available, and no other is there or asked for.
pub(super) fn is_complete(facts: &Facts, spec: &Spec) -> bool {
    let own = || facts.sets.iter().filter(|set| set.claim == Claim::Own);
    let is_sized = |set: &Set| set.size == if set.is_new { spec.replicas } else { 0 };
    let is_settled = own().any(|set| set.is_new) && own().all(is_sized);
    is_settled && looks_complete(pods(facts), spec)
}

/// Whether these numbers say to everybody that all is done.
fn looks_complete(pods: Pods, spec: &Spec) -> bool {
    let Pods { all, updated, available, .. } = pods;
    [all, updated, available] == [spec.replicas; 3]
}

/// The conditions, and whether there was progress since they were written.
fn findings(facts: &Facts, spec: &Spec) -> (Vec<Finding>, bool) {
    let pods = pods(facts);
    let mut findings = vec![available(pods, spec)];
    let failures = facts.sets.iter().filter(|set| set.claim == Claim::Own);
    if let Some(failure) = failures.filter_map(|set| set.failure.as_ref()).next() {
        findings.push(Finding::holds(REPLICA_FAILURE, "ReplicaSetFailed", failure.clone()));
    }
    let Some((progress, is_progress)) = progress(facts, spec) else { return (findings, false) };
    let new = facts.sets.iter().find(|set| set.claim == Claim::Own && set.is_new);
    let set = new.map_or("the ReplicaSet of its template".to_owned(), |new| {
        format!("ReplicaSet {}", new.name)
    });
    let message = match progress {
        Progress::Complete => format!("{set} has all pods, and they are available"),
        Progress::Changing => format!("{set} is getting its pods"),
        Progress::Paused => "changes of the template wait until it is resumed".to_owned(),
        Progress::Resumed => "it was resumed".to_owned(),
        Progress::TimedOut => format!(
            "{set} made no progress for {} seconds; see why its pods are not available: kubectl \
             describe pods",
            spec.deadline_seconds.unwrap_or_default()
        ),
    };
    let (kind, reason, holds) = (PROGRESSING, progress.reason(), progress.holds());
    findings.push(Finding { kind, holds, reason, message, next: None });
    (findings, is_progress)
}

fn available(pods: Pods, spec: &Spec) -> Finding {
    let (has, needs) = (pods.available, spec.floor());
    let message = format!("{needs} pods must be available");
    match has >= needs {
        true => Finding::holds(AVAILABLE, "MinimumReplicasAvailable", message),
        false => Finding::fails(AVAILABLE, "MinimumReplicasUnavailable", message),
    }
}

/// None: without a deadline nobody asks.
fn progress(facts: &Facts, spec: &Spec) -> Option<(Progress, bool)> {
    let deadline = spec.deadline_seconds?;
    let said = noted(facts);
    if spec.is_paused {
        // That a change came to a stop is worth more than that no other begins.
        let kept = said.filter(|said| *said == Progress::TimedOut);
        return Some((kept.unwrap_or(Progress::Paused), false));
    }
    if is_complete(facts, spec) {
        return Some((Progress::Complete, said != Some(Progress::Complete)));
    }
    let is_newer = facts.said.generation != facts.generation;
    Some(match said {
        Some(Progress::Paused) => (Progress::Resumed, true),
        None => (Progress::Changing, true),
        Some(_) if is_newer || is_better(facts) => (Progress::Changing, true),
        // A pod that fails once all was complete is no change of the Deployment.
        Some(Progress::Complete) => (Progress::Complete, false),
        Some(Progress::TimedOut) => (Progress::TimedOut, false),
        Some(Progress::Changing | Progress::Resumed)
            if facts.said.progress_age_seconds >= deadline =>
        {
            (Progress::TimedOut, false)
        }
        Some(same @ (Progress::Changing | Progress::Resumed)) => (same, false),
    })
}

/// What the status says of the progress.
fn noted(facts: &Facts) -> Option<Progress> {
    let said = facts.said.conditions.iter().find(|condition| condition.kind == PROGRESSING)?;
    Progress::ALL.into_iter().find(|progress| progress.reason() == said.reason)
}

/// Whether more pods are updated, ready or available than the status says, or fewer are old.
fn is_better(facts: &Facts) -> bool {
    let (now, then) = (pods(facts), facts.said.pods);
    let old = |pods: Pods| pods.all.saturating_sub(pods.updated);
    now.updated > then.updated
        || now.ready > then.ready
        || now.available > then.available
        || old(now) < old(then)
}

/// How long it is until a change has come to a stop if nothing happens.
pub(super) fn until_deadline(facts: &Facts, spec: &Spec) -> Option<Duration> {
    let deadline = spec.deadline_seconds?;
    let may_time_out = matches!(noted(facts), Some(Progress::Changing | Progress::Resumed));
    if spec.is_paused || !may_time_out {
        return None;
    }
    let left = deadline.saturating_sub(facts.said.progress_age_seconds);
    Some(Duration::from_secs(u64::try_from(left).unwrap_or(0).max(1)))
}
