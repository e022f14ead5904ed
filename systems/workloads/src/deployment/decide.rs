//! What is done next about a Deployment. First matching rule wins.

use super::sizes::{self, Plan, is_carried_out};
use super::spec::Spec;
use super::standing::{self, Said, Status};
use crate::owned::Claim;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// All that one decision depends on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether somebody deletes it.
    pub is_terminating: bool,
    /// What it asks for, or what is wrong with that.
    pub spec: Result<Spec, String>,
    /// Its generation.
    pub generation: i64,
    /// The revision that is noted on it.
    pub revision: Option<u64>,
    /// The sizes that its ReplicaSets are to have; None: there is no plan that can be read.
    pub plan: Option<Plan>,
    /// The ReplicaSets that are its business, the oldest first.
    pub sets: Vec<Set>,
    /// Whether a live read shows the Deployment as the cache does; None: it was not read.
    pub is_current: Option<bool>,
    /// Its ReplicaSets and then their pods, by live lists; None: there were none yet.
    pub live: Option<Vec<Set>>,
    /// What its status says.
    pub said: Said,
    /// After which time one more pod is available if it stays ready.
    pub next_available: Option<Duration>,
}

/// A ReplicaSet that is a Deployment's business.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// What it is to the Deployment.
    pub claim: Claim,
    /// Whether it has the template of the Deployment; of several the oldest.
    pub is_new: bool,
    /// Whether somebody deletes it.
    pub is_terminating: bool,
    /// How many pods it is asked for.
    pub size: u32,
    /// Its revision; 0: none.
    pub revision: u64,
    /// Whether it says all that the Deployment notes on it, its size and revision aside.
    pub is_noted: bool,
    /// Whether it names a pod that it is about to delete.
    pub is_pod_named: bool,
    /// Why it cannot make pods.
    pub failure: Option<String>,
    /// Its pods.
    pub pods: Counts,
}

impl Set {
    /// Whether its size is the Deployment's to decide.
    pub(super) fn is_planned(&self) -> bool {
        self.claim == Claim::Own && !self.is_terminating
    }
}

/// The pods of a ReplicaSet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Counts {
    /// All that there are.
    pub all: u32,
    /// Those that neither ended nor are being deleted.
    pub active: u32,
    /// Those of these that are ready.
    pub ready: u32,
    /// Those of these that are available.
    pub available: u32,
}

/// The one next thing to do. A ReplicaSet is named by its place in [`Facts::sets`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(Why),
    /// Nothing until something changes or this time has passed.
    Wait(Why, Duration),
    /// Read live whether the Deployment is as the cache shows it.
    ReadDeployment,
    /// List the ReplicaSets and then the pods live.
    ReadSizes,
    /// Take a ReplicaSet that has no controller.
    Adopt(usize),
    /// Let go of a ReplicaSet that the selector selects no more.
    Release(usize),
    /// Make the ReplicaSet of the template, with this revision.
    Create {
        /// Its revision.
        revision: u64,
    },
    /// Write on a ReplicaSet what the Deployment says of it.
    Carry {
        /// Which.
        set: usize,
        /// How many pods it is asked for; None: as many as it is.
        size: Option<u32>,
        /// Its revision; None: as it is.
        revision: Option<u64>,
    },
    /// Note the revision on the Deployment.
    NoteRevision(u64),
    /// Write the next plan.
    Plan(Plan),
    /// Delete a ReplicaSet of the past.
    DeleteOld(usize),
    /// Write the status.
    Report(Status),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// It is as it is asked to be.
    Complete,
    /// It changes, and the pods are not as far.
    Changing,
    /// It is paused.
    Paused,
    /// It is being deleted, and the collector of garbage sees to its ReplicaSets.
    Terminating,
    /// What it asks for cannot be read, and its status says so.
    Invalid,
    /// The cache is behind a live read.
    CacheIsBehind,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_terminating {
        return Decision::Rest(Why::Terminating);
    }
    let Ok(spec) = &facts.spec else {
        return standing::report(facts).unwrap_or(Decision::Rest(Why::Invalid));
    };
    belonging(facts)
        .or_else(|| newest(facts, spec))
        .or_else(|| carry(facts))
        .or_else(|| note_revision(facts))
        .or_else(|| plan(facts, spec))
        .or_else(|| history(facts, spec))
        .or_else(|| standing::report(facts))
        .unwrap_or_else(|| rest(facts, spec))
}

pub(super) const BEHIND: Decision = Decision::Wait(Why::CacheIsBehind, CACHE_DELAY);

/// What is written on a ReplicaSet rests on the Deployment, and only a live read says that it has not changed: with an
/// old plan in the cache a ReplicaSet would be given a size of the past.
fn if_current(facts: &Facts, decision: Decision) -> Decision {
    match facts.is_current {
        None => Decision::ReadDeployment,
        Some(true) => decision,
        Some(false) => BEHIND,
    }
}

/// ReplicaSets whose labels say that they belong to somebody else than they do.
fn belonging(facts: &Facts) -> Option<Decision> {
    let place = |claim: Claim| facts.sets.iter().position(|set| set.claim == claim);
    if let Some(strayed) = place(Claim::Strayed) {
        return Some(Decision::Release(strayed));
    }
    let adoptable = place(Claim::Adoptable)?;
    Some(if_current(facts, Decision::Adopt(adoptable)))
}

fn own(facts: &Facts) -> impl Iterator<Item = (usize, &Set)> {
    facts.sets.iter().enumerate().filter(|(_, set)| set.claim == Claim::Own)
}

/// The highest revision of the ReplicaSets that are not this one.
fn highest_but(facts: &Facts, place: Option<usize>) -> u64 {
    let others = own(facts).filter(|(other, _)| Some(*other) != place);
    others.map(|(_, set)| set.revision).max().unwrap_or(0)
}

/// The template has its ReplicaSet, unless the Deployment is paused. One that is being deleted has its name until it
/// is gone.
fn newest(facts: &Facts, spec: &Spec) -> Option<Decision> {
    if spec.is_paused || own(facts).any(|(_, set)| set.is_new) {
        return None;
    }
    let revision = highest_but(facts, None).saturating_add(1);
    Some(if_current(facts, Decision::Create { revision }))
}

/// Each ReplicaSet says what the Deployment says of it.
fn carry(facts: &Facts) -> Option<Decision> {
    let of = |(place, set): (usize, &Set)| {
        if set.is_terminating {
            return None;
        }
        let size = facts.plan.as_ref().map_or(set.size, |plan| plan.size_of(set));
        let size = (size != set.size).then_some(size);
        // The template in use has the highest revision, so that an undo is a change like others.
        let highest = highest_but(facts, Some(place));
        let is_outdone = set.is_new && set.revision <= highest;
        let revision = is_outdone.then_some(highest.saturating_add(1));
        let is_due = size.is_some() || revision.is_some() || !set.is_noted;
        is_due.then_some(Decision::Carry { set: place, size, revision })
    };
    own(facts).find_map(of).map(|decision| if_current(facts, decision))
}

fn note_revision(facts: &Facts) -> Option<Decision> {
    let (_, new) = own(facts).find(|(_, set)| set.is_new)?;
    let is_due = !new.is_terminating && facts.revision != Some(new.revision);
    is_due.then_some(Decision::NoteRevision(new.revision))
}

/// The next sizes, once the last ones are carried out. The cache says whether it is worth a live list; the list alone
/// counts.
fn plan(facts: &Facts, spec: &Spec) -> Option<Decision> {
    let plan = facts.plan.as_ref();
    let next =
        |sets: &[Set]| is_carried_out(plan, sets).then(|| sizes::next(spec, plan, sets)).flatten();
    next(&facts.sets)?;
    Some(match &facts.live {
        None => Decision::ReadSizes,
        Some(live) => next(live).map_or(BEHIND, Decision::Plan),
    })
}

/// The oldest ReplicaSet of the past, if there are more than are kept.
fn history(facts: &Facts, spec: &Spec) -> Option<Decision> {
    let old = || own(facts).filter(|(_, set)| !set.is_new && !set.is_terminating);
    let kept = usize::try_from(spec.history).unwrap_or(usize::MAX);
    if old().count() <= kept {
        return None;
    }
    let idle = old().filter(|(_, set)| set.size == 0 && set.pods.all == 0);
    let (oldest, _) = idle.min_by_key(|(_, set)| set.revision)?;
    Some(if_current(facts, Decision::DeleteOld(oldest)))
}

fn rest(facts: &Facts, spec: &Spec) -> Decision {
    let why = match (standing::is_complete(facts, spec), spec.is_paused) {
        (true, _) => Why::Complete,
        (false, true) => Why::Paused,
        (false, false) => Why::Changing,
    };
    let deadline = standing::until_deadline(facts, spec);
    match [deadline, facts.next_available].into_iter().flatten().min() {
        Some(at_most) => Decision::Wait(why, at_most),
        None => Decision::Rest(why),
    }
}
