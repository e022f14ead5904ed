//! What a StatefulSet does next. First matching rule wins.
//!
//! | seen | effect |
//! |---|---|
//! | the present template has no revision, or an older one | make it the newest |
//! | a pod of an ordinal that nobody has is the set's / is the set's and matches no more | adopt / release it |
//! | a pod ended | delete it |
//! | an ordinal without a pod, all lower ones available (`Parallel`: any) | its claims, then its pod |
//! | a pod outside of the ordinals | hand its claims over, then delete the highest |
//! | a pod of an old revision at or above the partition, all above available | delete the highest |
//! | the status differs / too many revisions | write it / delete the oldest |
//!
//! A deletion that is not forced by an end is decided by a live list of the pods, read after the set itself.

use super::status::Status;
use crate::live::Source;
use crate::owned::Claim;
use crate::pod::{Pod, State, next_available};
use crate::revisions::{Change, Revisions};
use crate::template::Home;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// The set.
    pub set: Set,
    /// Its namespace.
    pub home: Home,
    /// The revisions of its template.
    pub revisions: Revisions,
    /// The pods with the name of one of its ordinals, by ordinal.
    pub pods: BTreeMap<u32, Member>,
    /// Where the pods were read.
    pub source: Source,
    /// The claims of ordinals that have a pod, and of the next one that has none.
    pub claims: Vec<ClaimOf>,
    /// The status as it is.
    pub reported: Status,
}

/// A set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Set {
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Its generation.
    pub generation: i64,
    /// The lowest ordinal.
    pub first: u32,
    /// How many ordinals there are.
    pub replicas: u32,
    /// Whether one ordinal waits for those below.
    pub is_ordered: bool,
    /// How pods get a new revision.
    pub strategy: Strategy,
    /// Whether claims are deleted with the set.
    pub deletes_claims_with_set: bool,
    /// Whether claims are deleted with a pod that is scaled away.
    pub deletes_claims_with_pod: bool,
    /// How many revisions are kept besides those in use.
    pub history_limit: usize,
    /// Why no pod is made of it; None: it is served.
    pub refusal: Option<String>,
}

/// How pods get a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Strategy {
    /// When somebody deletes them.
    OnDelete,
    /// From the highest ordinal to this one; those below keep the revision that they have.
    DownTo(u32),
}

/// A pod with the name of an ordinal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Member {
    /// The pod.
    pub pod: Pod,
    /// What it is to the set.
    pub claim: Claim,
    /// The name of its revision; empty if it says none.
    pub revision: String,
}

/// A claim of a pod of the set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ClaimOf {
    /// The ordinal of the pod.
    pub ordinal: u32,
    /// Which template it is made of, counted from 0.
    pub template: usize,
    /// What there is of it.
    pub state: ClaimState,
}

/// What there is of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum ClaimState {
    /// Nothing.
    Absent,
    /// It is being deleted.
    Terminating,
    /// It is there.
    Present(Keeper),
}

/// With whom a claim is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Keeper {
    /// With nobody.
    Nobody,
    /// With the set.
    Set,
    /// With its pod.
    Pod,
    /// With several, or with a pod that has been replaced since.
    Mixed,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache,
    /// Nothing until a pod has been ready for long enough.
    WaitForPod(Duration),
    /// Read the set and its pods live, before a deletion.
    ReadLive,
    /// Make the present template the newest revision.
    Revise(Change),
    /// Make the set the controller of the pod of this ordinal.
    Adopt(u32),
    /// Take the set off the pod of this ordinal.
    Release(u32),
    /// Make a claim of this ordinal, of the template of this place.
    CreateClaim(u32, usize),
    /// Write with whom a claim of this ordinal, of the template of this place, is deleted.
    Keep(u32, usize, Keeper),
    /// Make the pod of this ordinal, of the revision of this name.
    CreatePod(u32, String),
    /// Delete the pod of this ordinal, and why.
    DeletePod(u32, &'static str),
    /// Delete the revision of this name.
    DeleteRevision(String),
    /// Write the status.
    Report(Box<Status>),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.set.is_terminating {
        return Decision::Rest("the StatefulSet is being deleted");
    }
    if facts.source == Source::LiveOfAnother {
        return Decision::WaitForCache;
    }
    let is_served = facts.set.refusal.is_none();
    let next = if is_served { facts.work() } else { None };
    if let Some(decision) = next {
        return decision;
    }
    let status = facts.status();
    if status != facts.reported {
        return Decision::Report(Box::new(status));
    }
    if let Some(name) = facts.superfluous().filter(|_| is_served) {
        return Decision::DeleteRevision(name.to_owned());
    }
    facts.rest()
}

impl Facts {
    /// What is to be done about revisions, claims and pods; None: nothing now.
    fn work(&self) -> Option<Decision> {
        if let Some(change) = self.revisions.change() {
            return Some(Decision::Revise(change));
        }
        let present = self.revisions.present()?;
        for (ordinal, member) in &self.pods {
            match member.claim {
                Claim::Adoptable => return Some(Decision::Adopt(*ordinal)),
                Claim::Strayed if member.pod.state != State::Terminating => {
                    return Some(Decision::Release(*ordinal));
                }
                Claim::Own | Claim::Strayed | Claim::Foreign => {}
            }
        }
        let ended =
            self.own().find(|(_, it)| matches!(it.pod.state, State::Failed | State::Succeeded));
        if let Some((ordinal, _)) = ended {
            return Some(Decision::DeletePod(ordinal, "the pod ended, and is made again"));
        }
        let keep = self.claims.iter().find_map(|claim| self.keep(claim));
        keep.or_else(|| self.create(&present.name))
            .or_else(|| self.scale_down())
            .or_else(|| self.update(&present.name))
    }

    /// The pods of the set, by ordinal.
    fn own(&self) -> impl DoubleEndedIterator<Item = (u32, &Member)> {
        let own = self.pods.iter().filter(|(_, member)| member.claim == Claim::Own);
        own.map(|(ordinal, member)| (*ordinal, member))
    }

    fn is_wanted(&self, ordinal: u32) -> bool {
        ordinal >= self.set.first && ordinal - self.set.first < self.set.replicas
    }

    /// The ordinals that are to have a pod. There may be many more than there are pods.
    fn wanted(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        self.set.first..self.set.first.saturating_add(self.set.replicas)
    }

    fn is_available(&self, ordinal: u32) -> bool {
        let member = self.pods.get(&ordinal);
        member.is_some_and(|it| it.claim == Claim::Own && it.pod.is_available())
    }

    /// With whom a claim is to be deleted.
    fn keeper(&self, ordinal: u32) -> Keeper {
        if !self.is_wanted(ordinal) && self.set.deletes_claims_with_pod {
            return Keeper::Pod;
        }
        if self.set.deletes_claims_with_set { Keeper::Set } else { Keeper::Nobody }
    }

    fn keep(&self, claim: &ClaimOf) -> Option<Decision> {
        let ClaimState::Present(keeper) = claim.state else { return None };
        let wanted = self.keeper(claim.ordinal);
        // A pod that is not there yet cannot be one's keeper, and the claim of one that leaves stays as it is.
        let pod = self.pods.get(&claim.ordinal);
        let is_settled = keeper == wanted || (wanted == Keeper::Pod && pod.is_none());
        (!is_settled).then_some(Decision::Keep(claim.ordinal, claim.template, wanted))
    }

    /// The next ordinal that has no pod, with its claims before its pod.
    fn create(&self, present: &str) -> Option<Decision> {
        if matches!(self.home, Home::Unseen | Home::Terminating) {
            return None;
        }
        let ordinal = self.next_absent()?;
        let claims = self.claims.iter().filter(|claim| claim.ordinal == ordinal);
        for claim in claims {
            match claim.state {
                ClaimState::Absent => return Some(Decision::CreateClaim(ordinal, claim.template)),
                // The claim of an earlier pod: this one would get its last days.
                ClaimState::Terminating => return None,
                ClaimState::Present(_) => {}
            }
        }
        Some(Decision::CreatePod(ordinal, self.revision_of(ordinal, present).to_owned()))
    }

    /// The lowest ordinal without a pod whose turn it is.
    pub(super) fn next_absent(&self) -> Option<u32> {
        let absent = self.wanted().find(|ordinal| !self.pods.contains_key(ordinal))?;
        let is_next =
            !self.set.is_ordered || (self.set.first..absent).all(|it| self.is_available(it));
        is_next.then_some(absent)
    }

    /// The revision of a new pod. Below the partition it is the one that the set had before.
    fn revision_of<'a>(&'a self, ordinal: u32, present: &'a str) -> &'a str {
        let before = self.reported.current_revision.as_str();
        match self.set.strategy {
            Strategy::DownTo(partition)
                if ordinal < partition && self.revisions.named(before).is_some() =>
            {
                before
            }
            Strategy::DownTo(_) | Strategy::OnDelete => present,
        }
    }

    fn scale_down(&self) -> Option<Decision> {
        let mut beyond = self.own().filter(|(ordinal, _)| !self.is_wanted(*ordinal)).rev();
        if !self.set.is_ordered {
            let (ordinal, _) = beyond.find(|(_, it)| it.pod.state != State::Terminating)?;
            return Some(self.delete(ordinal, "the ordinal is not wanted any more"));
        }
        let (ordinal, member) = beyond.next()?;
        let are_others_available = self.wanted().all(|ordinal| self.is_available(ordinal));
        let is_next = are_others_available && member.pod.state != State::Terminating;
        is_next.then(|| self.delete(ordinal, "the ordinal is not wanted any more"))
    }

    fn update(&self, present: &str) -> Option<Decision> {
        let Strategy::DownTo(partition) = self.set.strategy else { return None };
        // All that is not wanted is gone first, or the highest would not be the highest.
        if self.own().any(|(ordinal, _)| !self.is_wanted(ordinal)) {
            return None;
        }
        for ordinal in self.wanted().rev().take_while(|ordinal| *ordinal >= partition) {
            let member = self.pods.get(&ordinal).filter(|it| it.claim == Claim::Own)?;
            if member.pod.state == State::Terminating {
                return None;
            }
            if member.revision != present {
                return Some(self.delete(ordinal, "the pod is of an old revision"));
            }
            if !member.pod.is_available() {
                return None;
            }
        }
        None
    }

    /// A deletion, or the live read that it rests on.
    fn delete(&self, ordinal: u32, because: &'static str) -> Decision {
        match self.source {
            Source::Cache => Decision::ReadLive,
            Source::Live | Source::LiveOfAnother => Decision::DeletePod(ordinal, because),
        }
    }

    /// What the status is to say.
    fn status(&self) -> Status {
        if let Some(refusal) = &self.set.refusal {
            return Status {
                observed_generation: self.set.generation,
                refusal: Some(refusal.clone()),
                ..self.reported.clone()
            };
        }
        let update = self.revisions.present().map(|it| it.name.as_str()).unwrap_or_default();
        let mut current = self.reported.current_revision.as_str();
        if self.revisions.named(current).is_none() || self.is_complete(update) {
            current = update;
        }
        let count = |counts: &dyn Fn(&Member) -> bool| {
            u32::try_from(self.own().filter(|(_, member)| counts(member)).count())
                .unwrap_or(u32::MAX)
        };
        let is_of = |member: &Member, revision: &str| {
            member.revision == revision && member.pod.state != State::Terminating
        };
        Status {
            observed_generation: self.set.generation,
            replicas: count(&|_| true),
            ready: count(&|it| it.pod.is_ready()),
            available: count(&|it| it.pod.is_available()),
            current: count(&|it| is_of(it, current)),
            updated: count(&|it| is_of(it, update)),
            current_revision: current.to_owned(),
            update_revision: update.to_owned(),
            refusal: None,
        }
    }

    /// Whether every ordinal has a pod of this revision, and all are available.
    fn is_complete(&self, revision: &str) -> bool {
        let is_rolling = matches!(self.set.strategy, Strategy::DownTo(_));
        let is_of = |member: &Member| member.revision == revision;
        is_rolling
            && self.own().all(|(ordinal, member)| self.is_wanted(ordinal) && is_of(member))
            && self.wanted().all(|ordinal| self.is_available(ordinal))
    }

    fn superfluous(&self) -> Option<&str> {
        let pods = self.own().map(|(_, member)| member.revision.as_str());
        let in_use: BTreeSet<&str> =
            pods.chain([self.reported.current_revision.as_str()]).collect();
        self.revisions.superfluous(&in_use, self.set.history_limit)
    }

    fn rest(&self) -> Decision {
        let pods: Vec<Pod> = self.own().map(|(_, member)| member.pod.clone()).collect();
        match (next_available(&pods), &self.home) {
            (Some(left), _) => Decision::WaitForPod(left),
            (None, Home::Unseen) => Decision::Rest("the cache does not show the namespace"),
            (None, Home::Terminating) => Decision::Rest("the namespace is being deleted"),
            (None, Home::Plain | Home::Placed(_)) => {
                Decision::Rest("the pods of the StatefulSet are as they can be")
            }
        }
    }
}
