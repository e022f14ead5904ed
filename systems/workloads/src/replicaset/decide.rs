//! What is done next about a ReplicaSet. First matching rule wins.

use crate::owned::Claim;
use crate::pod::{Pod, Readiness, State, next_available};
use crate::template::Home;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
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
    /// Its namespace.
    pub home: Home,
    /// The pods that are its business, by name.
    pub pods: Vec<Member>,
    /// Who has the names that it may give, by slot.
    pub taken: Vec<Taken>,
    /// The pod that it is about to delete.
    pub leaving: Leaving,
    /// Whether the one that was named still is there to delete, by a live read; None: it was not read.
    pub is_named_there: Option<bool>,
    /// Whether the ReplicaSet is the one in the cache and is not being deleted, by a live read; None: it was not
    /// read.
    pub is_current: Option<bool>,
    /// The pods that are its business, by a live list; None: there was none yet.
    pub live: Option<Vec<Member>>,
    /// What its status says.
    pub reported: Status,
}

/// What a ReplicaSet asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Spec {
    /// How many pods.
    pub replicas: u32,
    /// How many names there are for its pods; None: its Deployment has not said it.
    pub slots: Option<u32>,
}

/// A pod that is a ReplicaSet's business.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Member {
    /// The pod.
    pub pod: Pod,
    /// What it is to the ReplicaSet.
    pub claim: Claim,
    /// The slot that its name is of; None: somebody else named it.
    pub slot: Option<u32>,
    /// What it costs to delete it, compared with others.
    pub cost: i32,
    /// Whether it has all labels of the template.
    pub is_labelled: bool,
}

impl Member {
    fn counts(&self) -> bool {
        self.claim == Claim::Own && self.pod.is_active()
    }
}

/// A name that a pod has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Taken {
    /// The slot.
    pub slot: u32,
    /// Whether the pod belongs to none of those that share the names.
    pub is_by_stranger: bool,
}

/// The pod that a ReplicaSet is about to delete.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Leaving {
    /// None.
    Nobody,
    /// The one with this uid.
    Named(String),
    /// Somebody wrote what names no pod.
    Unreadable,
}

/// What the status of a ReplicaSet says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Status {
    /// The pods that count.
    pub replicas: u32,
    /// Those of them that have all labels of the template.
    pub fully_labelled: u32,
    /// Those of them that are ready.
    pub ready: u32,
    /// Those of them that are available.
    pub available: u32,
    /// The generation that all of this is of.
    pub generation: i64,
    /// Why it cannot do what it is asked for.
    pub failure: Option<Failure>,
}

/// Why a ReplicaSet cannot do what it is asked for, in upstream's condition `ReplicaFailure`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Failure {
    /// Which of them.
    pub reason: Reason,
    /// The sentence.
    pub message: String,
}

/// What is in the way of a ReplicaSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Reason {
    /// It cannot be read.
    InvalidSpec,
    /// Pods of others have the names of its pods.
    NamesTaken,
    /// Something that nobody here writes.
    Unknown,
}

impl Reason {
    /// As the condition has it.
    pub fn word(self) -> &'static str {
        match self {
            Reason::InvalidSpec => "InvalidSpec",
            Reason::NamesTaken => "NamesTaken",
            Reason::Unknown => "Unknown",
        }
    }

    /// What a condition says.
    pub fn read(word: &str) -> Reason {
        let known = [Reason::InvalidSpec, Reason::NamesTaken];
        known.into_iter().find(|reason| reason.word() == word).unwrap_or(Reason::Unknown)
    }
}

/// The one next thing to do. A pod is named by its place in [`Facts::pods`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(Why),
    /// Nothing until a pod was ready for long enough.
    WaitForReadiness(Duration),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache(Duration),
    /// Read live whether the ReplicaSet still is there.
    ReadOwner,
    /// Read live whether the pod that was named still is there.
    ReadNamed,
    /// List the pods live.
    ReadPods,
    /// Take a pod that has no controller.
    Adopt(usize),
    /// Let go of a pod that the selector selects no more.
    Release(usize),
    /// Delete a pod that ended.
    DeleteEnded(usize),
    /// Delete the pod that was named.
    DeleteNamed(usize),
    /// No pod is about to be deleted any more.
    ClearName,
    /// Say which pod is about to be deleted.
    Name {
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
    },
    /// Make a pod of this slot.
    Create(u32),
    /// Write the status.
    Report(Status),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// It has what it asks for.
    Complete,
    /// It is being deleted, and the collector of garbage sees to its pods.
    Terminating,
    /// What it asks for cannot be read, and its status says so.
    Invalid,
    /// The cache does not show its namespace.
    NamespaceUnseen,
    /// Its namespace is being deleted.
    NamespaceTerminating,
    /// Its Deployment has not said how many pods there may be.
    SlotsUnknown,
    /// All names are taken, some by pods that are being deleted.
    NamesTaken,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_terminating {
        return Decision::Rest(Why::Terminating);
    }
    let Ok(spec) = &facts.spec else {
        return report(facts).unwrap_or(Decision::Rest(Why::Invalid));
    };
    let urgent = belonging(facts).or_else(|| ended(facts)).or_else(|| leaving(facts));
    if let Some(urgent) = urgent {
        return urgent;
    }
    let why = match number(spec, facts) {
        Ok(decision) => return decision,
        Err(why) => why,
    };
    let wait = || {
        let pods: Vec<Pod> = own(&facts.pods).map(|member| member.pod.clone()).collect();
        next_available(&pods).map(Decision::WaitForReadiness)
    };
    report(facts).or_else(wait).unwrap_or(Decision::Rest(why))
}

fn own(pods: &[Member]) -> impl Iterator<Item = &Member> {
    pods.iter().filter(|member| member.claim == Claim::Own)
}

fn active(pods: &[Member]) -> u32 {
    count(pods, |_| true)
}

fn count(pods: &[Member], which: impl Fn(&Member) -> bool) -> u32 {
    let found = pods.iter().filter(|member| member.counts() && which(member)).count();
    u32::try_from(found).unwrap_or(u32::MAX)
}

/// Pods whose labels say that they belong to somebody else than they do.
fn belonging(facts: &Facts) -> Option<Decision> {
    let place = |claim: Claim| facts.pods.iter().position(|member| member.claim == claim);
    if let Some(strayed) = place(Claim::Strayed) {
        return Some(Decision::Release(strayed));
    }
    let adoptable = place(Claim::Adoptable)?;
    // A ReplicaSet of this name may have been deleted and made again: the pod would go with the one before.
    Some(match facts.is_current {
        None => Decision::ReadOwner,
        Some(true) => Decision::Adopt(adoptable),
        Some(false) => Decision::WaitForCache(CACHE_DELAY),
    })
}

/// A pod that ended has a name that another needs.
fn ended(facts: &Facts) -> Option<Decision> {
    let is_ended = |member: &Member| {
        let has_ended = matches!(member.pod.state, State::Succeeded | State::Failed);
        member.claim == Claim::Own && has_ended
    };
    facts.pods.iter().position(is_ended).map(Decision::DeleteEnded)
}

fn leaving(facts: &Facts) -> Option<Decision> {
    let uid = match &facts.leaving {
        Leaving::Nobody => return None,
        Leaving::Unreadable => return Some(Decision::ClearName),
        Leaving::Named(uid) => uid,
    };
    let place = facts.pods.iter().position(|member| member.pod.uid == *uid);
    Some(match (place, facts.is_named_there) {
        (Some(place), _) if facts.pods[place].pod.state == State::Terminating => {
            Decision::ClearName
        }
        (Some(place), _) => Decision::DeleteNamed(place),
        // Absence from a cache is not deletion: the pod would be deleted later, when nobody counts on it.
        (None, None) => Decision::ReadNamed,
        (None, Some(true)) => Decision::WaitForCache(CACHE_DELAY),
        (None, Some(false)) => Decision::ClearName,
    })
}

/// One pod more, or one fewer.
fn number(spec: &Spec, facts: &Facts) -> Result<Decision, Why> {
    let active_now = active(&facts.pods);
    if active_now < spec.replicas {
        return match facts.home {
            Home::Unseen => Err(Why::NamespaceUnseen),
            Home::Terminating => Err(Why::NamespaceTerminating),
            Home::Plain | Home::Placed(_) => {
                let slots = spec.slots.ok_or(Why::SlotsUnknown)?;
                free(slots, &facts.taken).map(Decision::Create).ok_or(Why::NamesTaken)
            }
        };
    }
    if active_now == spec.replicas {
        return Err(Why::Complete);
    }
    // The choice rests on what is ready, so a cache is not enough.
    let Some(live) = &facts.live else { return Ok(Decision::ReadPods) };
    match active(live) > spec.replicas {
        true => Ok(surplus(live)),
        false => Ok(Decision::WaitForCache(CACHE_DELAY)),
    }
}

/// The lowest slot that no pod has.
fn free(slots: u32, taken: &[Taken]) -> Option<u32> {
    (0..slots).find(|slot| !taken.iter().any(|taken| taken.slot == *slot))
}

/// The pod that is missed least: one that is not ready first, then the one of the highest slot.
fn surplus(live: &[Member]) -> Decision {
    let rank = |member: &&Member| {
        let readiness = match member.pod.readiness {
            Readiness::Unready => (0, Reverse(Duration::ZERO)),
            Readiness::Ready(left) => (1, Reverse(left)),
            Readiness::Available => (2, Reverse(Duration::ZERO)),
        };
        // One that somebody else named has no slot to keep.
        let slot = member.slot.map_or(u32::MAX, |slot| slot);
        (readiness, member.cost, Reverse(slot), member.pod.name.clone())
    };
    match live.iter().filter(|member| member.counts()).min_by_key(rank) {
        Some(member) => {
            let Pod { name, uid, .. } = member.pod.clone();
            Decision::Name { name, uid }
        }
        None => Decision::WaitForCache(CACHE_DELAY),
    }
}

fn report(facts: &Facts) -> Option<Decision> {
    let due = due(facts);
    (due != facts.reported).then_some(Decision::Report(due))
}

/// What the status is to say.
fn due(facts: &Facts) -> Status {
    let pods = &facts.pods;
    Status {
        replicas: active(pods),
        fully_labelled: count(pods, |member| member.is_labelled),
        ready: count(pods, |member| member.pod.is_ready()),
        available: count(pods, |member| member.pod.is_available()),
        generation: facts.generation,
        failure: failure(facts),
    }
}

fn failure(facts: &Facts) -> Option<Failure> {
    let spec = match &facts.spec {
        Ok(spec) => spec,
        Err(flaw) => {
            let message = format!("{flaw}; correct it, or delete the ReplicaSet");
            return Some(Failure { reason: Reason::InvalidSpec, message });
        }
    };
    let slots = spec.slots?;
    let strangers = facts.taken.iter().filter(|it| it.slot < slots && it.is_by_stranger).count();
    let is_short = active(&facts.pods) < spec.replicas;
    if !is_short || free(slots, &facts.taken).is_some() || strangers == 0 {
        return None;
    }
    let message = format!(
        "{strangers} of the {slots} names of its pods are those of pods that belong to others; \
         delete these pods, or give the workload another name"
    );
    Some(Failure { reason: Reason::NamesTaken, message })
}
