//! Whether a namespace is where it is to be, on its way, or is blocked: the one judgement behind
//! `status`, `explain` and `move`.

use super::picture::{
    Desired, Picture, Subject, condition_if, conditions_of, phase_since, unreachable,
};
use crate::words::{age, clause};
use interlock_api::placement::{CopyState, Fill, Grant, GrantStatus, Phase, Ref, condition};
use jiff::Timestamp;
use serde::Serialize;

/// What takes longer than this in one phase is blocked, whoever is to blame: a person should look.
const LONG_SECONDS: i64 = 600;
/// A grant is made at once; when none was made for this long, nobody makes grants.
const NO_GRANT_SECONDS: i64 = 60;

/// What the scheduler says of a move that waits its turn.
const MOVES_FULL: &str = "MovesFull";

/// How it is with a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    /// A person may have to act.
    Blocked,
    /// It is on its way, and nobody has to act.
    Moving,
    /// It is as desired.
    Settled,
}

/// A judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How it is.
    pub(crate) health: Health,
    /// One word for programs.
    pub(crate) reason: String,
    /// What it waits for, in words; nothing while it is settled.
    pub(crate) waits_for: String,
    /// Since when.
    pub(crate) since: Option<Timestamp>,
    /// The command that goes on from here.
    pub(crate) next: Option<String>,
}

impl Verdict {
    fn new(health: Health, reason: &str, waits_for: impl Into<String>) -> Self {
        let (reason, waits_for) = (reason.to_owned(), waits_for.into());
        Self { health, reason, waits_for, since: None, next: None }
    }

    fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Judges one namespace.
pub(crate) fn judge(picture: &Picture, subject: &Subject) -> Verdict {
    let Some(grant) = &subject.grant else { return without_grant(picture, subject) };
    let status = grant.status_or_default();
    let verdict = blocked(picture, subject, grant, &status)
        .unwrap_or_else(|| under_way(picture, subject, grant, &status));
    let is_long = verdict
        .since
        .is_some_and(|since| picture.now.as_second() - since.as_second() > LONG_SECONDS);
    if verdict.health == Health::Moving && is_long {
        return Verdict { health: Health::Blocked, ..verdict };
    }
    verdict
}

fn without_grant(picture: &Picture, subject: &Subject) -> Verdict {
    if !subject.is_placed() {
        return Verdict::new(Health::Settled, "NotPlaced", "");
    }
    let made = subject.namespace.as_ref().and_then(|n| n.metadata.creation_timestamp.as_ref());
    let made = made.map(|time| time.0);
    let is_old =
        made.is_none_or(|made| picture.now.as_second() - made.as_second() > NO_GRANT_SECONDS);
    if is_old {
        let words = "the namespace has no grant: the scheduler does not run";
        return Verdict::new(Health::Blocked, "NoGrant", words).since(made).next("interlock up");
    }
    Verdict::new(Health::Moving, "NoGrant", "waiting for the scheduler to create the grant")
        .since(made)
}

/// What a person has to look at, the most pressing first.
fn blocked(
    picture: &Picture,
    subject: &Subject,
    grant: &Grant,
    status: &GrantStatus,
) -> Option<Verdict> {
    let name = &subject.name;
    if let Some(owner) = subject.holder() {
        if let Some(verdict) = lost_owner(picture, subject, owner, status) {
            return Some(verdict);
        }
        if let Some(told) = condition_if(conditions_of(grant), condition::OWNER_UNREACHABLE, true) {
            let words = format!("{owner} to answer, or a person to declare it gone");
            let verdict = Verdict::new(Health::Blocked, "OwnerUnreachable", words);
            let next = force_release_line(name, owner, status.epoch);
            return Some(verdict.since(Some(told.last_transition_time.0)).next(next));
        }
    }
    let placed = condition_if(conditions_of(grant), condition::PLACED, false);
    if let Some(placed) = placed.filter(|placed| !is_under_way(&placed.reason)) {
        let since = Some(placed.last_transition_time.0);
        let next = placed.next.clone().unwrap_or_else(|| other_place(picture, subject));
        let verdict = Verdict::new(Health::Blocked, &placed.reason, clause(&placed.message));
        return Some(verdict.since(since).next(next));
    }
    worrying_copy(subject, grant, status)
}

/// Whether the scheduler says Placed=False only because something goes on by itself.
pub(crate) fn is_under_way(reason: &str) -> bool {
    matches!(reason, "Moving" | "Deleting" | "CopiesLeft" | "SyncersLeft" | MOVES_FULL)
}

/// Its owner cannot be asked.
fn lost_owner(
    picture: &Picture,
    subject: &Subject,
    owner: &Ref,
    status: &GrantStatus,
) -> Option<Verdict> {
    let next = force_release_line(&subject.name, owner, status.epoch);
    let Some(cluster) = picture.cluster_of(owner) else {
        let words = match picture.cluster(&owner.name) {
            Some(_) => format!(
                "a person: the owner {owner} was deleted, and the cluster of that name is another \
                 cluster"
            ),
            None => format!("a person: the owner {owner} was deleted"),
        };
        return Some(Verdict::new(Health::Blocked, "ClusterReplaced", words).next(next));
    };
    let told = unreachable(cluster)?;
    let since = told.last_transition_time.0;
    let words = format!("{owner} to answer, or a person to declare it gone");
    let verdict = Verdict::new(Health::Blocked, "OwnerUnreachable", words);
    Some(verdict.since(Some(since)).next(next))
}

/// Data that only a person can give up.
fn worrying_copy(subject: &Subject, grant: &Grant, status: &GrantStatus) -> Option<Verdict> {
    let since = |kind| {
        let told = condition_if(conditions_of(grant), kind, true);
        told.map(|told| told.last_transition_time.0)
    };
    let find = |state| status.copies.iter().find(|copy| copy.state == state);
    if let Some(copy) = find(CopyState::Diverged) {
        let words = format!(
            "a person: the copy on {} of epoch {} has writes after its last snapshot",
            copy.cluster, copy.epoch
        );
        let verdict = Verdict::new(Health::Blocked, "Diverged", words);
        let next = forget_line(grant, &copy.cluster.name);
        return Some(verdict.since(since(condition::DIVERGED)).next(next));
    }
    let copy = find(CopyState::Unclosed)?;
    let given_up = since(condition::AT_MOST_ONE_GIVEN_UP)?;
    let words = format!(
        "{} to come back and stop: until then two clusters may write, as a person accepted",
        copy.cluster
    );
    let verdict = Verdict::new(Health::Blocked, "AtMostOneGivenUp", words);
    Some(verdict.since(Some(given_up)).next(format!("interlock status {}", subject.name)))
}

/// What goes on by itself.
fn under_way(picture: &Picture, subject: &Subject, grant: &Grant, status: &GrantStatus) -> Verdict {
    let since = phase_since(subject);
    let target = grant.spec.target.as_ref();
    let word = status.phase.as_str();
    match status.phase {
        Phase::Revoking => Verdict::new(Health::Moving, word, leaving(grant, status)).since(since),
        Phase::Deleting => {
            let verdict = Verdict::new(Health::Moving, word, copies_left(status)).since(since);
            match status.copies.iter().find(|copy| copy.state == CopyState::Unclosed) {
                Some(copy) => verdict.next(forget_line(grant, &copy.cluster.name)),
                None => verdict,
            }
        }
        Phase::Unassigned | Phase::Released | Phase::Fenced => {
            let place = target.map_or_else(|| "a cluster".to_owned(), ToString::to_string);
            let words = format!("the scheduler to grant the namespace to {place}");
            Verdict::new(Health::Moving, word, words).since(since)
        }
        Phase::Granted => granted(picture, subject, grant, status).since(since),
    }
}

fn granted(picture: &Picture, subject: &Subject, grant: &Grant, status: &GrantStatus) -> Verdict {
    let owner = status.owner.clone().unwrap_or_default();
    let waiting = condition_if(conditions_of(grant), condition::PLACED, false);
    if let Some(waiting) = waiting.filter(|waiting| waiting.reason == MOVES_FULL) {
        return Verdict::new(Health::Moving, MOVES_FULL, clause(&waiting.message));
    }
    let desired = match picture.desired(subject) {
        Desired::Named(name) => Some(name),
        Desired::Selected(_) | Desired::Anywhere => {
            grant.spec.target.as_ref().map(|t| t.name.clone())
        }
    };
    if let Some(desired) = desired.filter(|desired| *desired != owner.name && subject.is_placed()) {
        let words = format!("the scheduler to revoke the grant of {owner}, for {desired}");
        return Verdict::new(Health::Moving, "Moving", words);
    }
    let filled = status.claims.iter().filter(|claim| claim.fill == Fill::Filled).count();
    if filled < status.claims.len() {
        let all = status.claims.len();
        return Verdict::new(
            Health::Moving,
            "Filling",
            format!("{owner} to fill the claims ({filled}/{all})"),
        );
    }
    if condition_if(conditions_of(grant), condition::RUNNING, true).is_some() {
        return Verdict::new(Health::Settled, "Running", "");
    }
    if let Some(told) = condition_if(conditions_of(grant), condition::RIGHTS_READY, false) {
        return Verdict::new(Health::Moving, "AwaitingRights", clause(&told.message));
    }
    let told = condition_if(conditions_of(grant), condition::RUNNING, false);
    let words = match told.map(|told| clause(&told.message)).filter(|words| !words.is_empty()) {
        Some(words) => format!("{owner} to start the namespace: {words}"),
        None => format!("{owner} to start the namespace"),
    };
    Verdict::new(Health::Moving, "Starting", words)
}

/// What a grant that is being revoked waits for.
pub(crate) fn leaving(grant: &Grant, status: &GrantStatus) -> String {
    let owner = status.owner.clone().unwrap_or_default();
    let conditions = conditions_of(grant);
    let with_message = |words: String, kind| match condition_if(conditions, kind, false) {
        Some(told) if !told.message.is_empty() => format!("{words}: {}", clause(&told.message)),
        _ => words,
    };
    if condition_if(conditions, condition::STOPPED, true).is_none() {
        return with_message(format!("{owner} to stop"), condition::STOPPED);
    }
    if condition_if(conditions, condition::DATA_SYNCED, true).is_none() {
        return with_message(format!("the last snapshots from {owner}"), condition::DATA_SYNCED);
    }
    format!("{owner} to hand over")
}

fn copies_left(status: &GrantStatus) -> String {
    if status.copies.is_empty() {
        return "the last finalizers to be removed".to_owned();
    }
    let places: Vec<&str> = status.copies.iter().map(|copy| copy.cluster.name.as_str()).collect();
    format!("{} to delete its copies", places.join(", "))
}

/// A move to a place that fits, as far as that can be known from outside.
fn other_place(picture: &Picture, subject: &Subject) -> String {
    let owner = subject.holder().map(|owner| owner.name.as_str());
    let fitting = picture.clusters.iter().filter(|cluster| {
        let name = cluster.metadata.name.as_deref();
        name != owner && super::fit::unfit_reason(picture, subject, cluster).is_none()
    });
    match fitting.filter_map(|cluster| cluster.metadata.name.as_deref()).next() {
        Some(name) => format!("interlock move {} --to {name}", subject.name),
        None => "interlock status --clusters".to_owned(),
    }
}

/// The command that declares an owner gone.
pub(crate) fn force_release_line(namespace: &str, owner: &Ref, epoch: i64) -> String {
    format!(
        "interlock force-release {namespace} --owner {owner} --epoch {epoch} \
         --attest powered-off --reason \"how you know that it is off\""
    )
}

/// The command that gives up what a cluster still has of a namespace.
fn forget_line(grant: &Grant, cluster: &str) -> String {
    format!(
        "kubectl annotate workloadcluster {cluster} {}={}",
        interlock_api::names::ANNOTATION_FORGET_COPIES,
        grant.metadata.uid.as_deref().unwrap_or_default()
    )
}

/// A judgement in one clause: `is blocked for 4m10s: ...`.
pub(crate) fn for_how_long(now: Timestamp, since: Option<Timestamp>) -> String {
    since.map_or_else(String::new, |since| format!(" for {}", age(now, since)))
}
