//! What a DaemonSet does next. First matching rule wins.
//!
//! | seen | effect |
//! |---|---|
//! | the present template has no revision, or an older one | make it the newest |
//! | a pod that nobody has is the set's / is the set's and matches no more | adopt / release it |
//! | a pod ended, or its node has another one | delete it |
//! | a node that is to have a pod has none | create it |
//! | a pod on a node that is not to have one, or that is gone by a live read | delete it |
//! | a pod of an old template, and it is not available or unavailable < maxUnavailable | delete it |
//! | the status differs / too many revisions | write it / delete the oldest |
//!
//! A pod of an old template is deleted only by a live list of the pods, read after the set itself.

use super::fit::Fit;
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
    /// The nodes that the cache shows, and those that pods name, by name.
    pub nodes: BTreeMap<String, Node>,
    /// The pods that are the set's, or could be.
    pub pods: Vec<Member>,
    /// Where the pods were read.
    pub source: Source,
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
    /// How pods get a new template.
    pub strategy: Strategy,
    /// How many revisions are kept besides those in use.
    pub history_limit: usize,
    /// Why no pod is made of it; None: it is served.
    pub refusal: Option<String>,
}

/// How pods get a new template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Strategy {
    /// When somebody deletes them.
    OnDelete,
    /// While fewer than so many nodes lack an available pod.
    Rolling {
        /// The bound.
        most_unavailable: Bound,
    },
}

/// A number, or a share of the nodes that are to have a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Bound {
    /// So many.
    Count(u32),
    /// So many in a hundred.
    Percent(u32),
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Node {
    /// The cache shows it.
    Seen {
        /// Whether it is to have a pod.
        fit: Fit,
        /// Whether the name of its pod is that of a pod of somebody else.
        is_name_taken: bool,
    },
    /// The cache does not show it, and a pod names it.
    Unseen {
        /// Whether it is there by a live read; None: there was none.
        is_there: Option<bool>,
    },
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Member {
    /// The pod.
    pub pod: Pod,
    /// What it is to the set.
    pub claim: Claim,
    /// The node that it is on; empty if it is on none.
    pub node: String,
    /// The hash of the revision that it is of; empty if it says none.
    pub hash: String,
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
    /// Read this node live: its pods go only if it is gone.
    ReadNode(String),
    /// Make the present template the newest revision.
    Revise(Change),
    /// Make the set the controller of the pod of this name.
    Adopt(String),
    /// Take the set off the pod of this name.
    Release(String),
    /// Make the pod of this node, with this hash of the present template.
    CreatePod(String, String),
    /// Delete the pod of this name, and why.
    DeletePod(String, &'static str),
    /// Delete the revision of this name.
    DeleteRevision(String),
    /// Write the status.
    Report(Box<Status>),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.set.is_terminating {
        return Decision::Rest("the DaemonSet is being deleted");
    }
    if facts.source == Source::LiveOfAnother {
        return Decision::WaitForCache;
    }
    let is_served = facts.set.refusal.is_none();
    if let Some(decision) = if is_served { facts.work() } else { None } {
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

impl Bound {
    /// The number that it is of so many nodes. None at all would never end.
    fn of(self, nodes: u32) -> u32 {
        match self {
            Bound::Count(count) => count,
            Bound::Percent(percent) => {
                let all = u64::from(nodes) * u64::from(percent);
                u32::try_from(all.div_ceil(100)).unwrap_or(u32::MAX)
            }
        }
        .max(1)
    }
}

impl Facts {
    /// What is to be done about revisions and pods; None: nothing now.
    fn work(&self) -> Option<Decision> {
        if let Some(change) = self.revisions.change() {
            return Some(Decision::Revise(change));
        }
        let hash = &self.revisions.present()?.hash;
        let claimed = self.pods.iter().find_map(|member| match member.claim {
            Claim::Adoptable => Some(Decision::Adopt(member.pod.name.clone())),
            Claim::Strayed if member.pod.state != State::Terminating => {
                Some(Decision::Release(member.pod.name.clone()))
            }
            Claim::Own | Claim::Strayed | Claim::Foreign => None,
        });
        claimed
            .or_else(|| self.superseded())
            .or_else(|| self.create(hash))
            .or_else(|| self.misplaced())
            .or_else(|| self.update(hash))
    }

    /// The pods of the set that are for a node. One that is for none was adopted, and is left alone.
    fn own(&self) -> impl Iterator<Item = &Member> {
        self.pods.iter().filter(|member| member.claim == Claim::Own && !member.node.is_empty())
    }

    /// The pod that a node has: the one that is not being deleted, the first by name.
    fn pod_on(&self, node: &str) -> Option<&Member> {
        let is_leaving = |member: &&Member| member.pod.state == State::Terminating;
        self.own().filter(|member| member.node == node).min_by_key(is_leaving)
    }

    /// A pod that ended, or that shares its node with another one.
    fn superseded(&self) -> Option<Decision> {
        self.own().find_map(|member| {
            let name = member.pod.name.clone();
            match member.pod.state {
                State::Terminating => None,
                State::Failed | State::Succeeded => {
                    Some(Decision::DeletePod(name, "the pod ended, and is made again"))
                }
                State::Active => {
                    let first = self.pod_on(&member.node)?;
                    (first.pod.uid != member.pod.uid)
                        .then_some(Decision::DeletePod(name, "its node has another pod of the set"))
                }
            }
        })
    }

    /// The nodes that are to have a pod.
    fn wanted(&self) -> impl Iterator<Item = &str> {
        let nodes = self.nodes.iter();
        nodes.filter(|(_, node)| node.runs()).map(|(name, _)| name.as_str())
    }

    fn create(&self, hash: &str) -> Option<Decision> {
        if matches!(self.home, Home::Unseen | Home::Terminating) {
            return None;
        }
        let lacks = |name: &&str| {
            let is_taken = self.nodes.get(*name).is_some_and(Node::is_taken);
            !is_taken && self.pod_on(name).is_none()
        };
        let node = self.wanted().find(lacks)?;
        Some(Decision::CreatePod(node.to_owned(), hash.to_owned()))
    }

    /// A pod on a node that is not to have one.
    fn misplaced(&self) -> Option<Decision> {
        self.own().filter(|member| member.pod.state != State::Terminating).find_map(|member| {
            let name = member.pod.name.clone();
            match self.nodes.get(&member.node)? {
                Node::Seen { fit: Fit::Not, .. } => {
                    Some(Decision::DeletePod(name, "its node is not to have a pod of the set"))
                }
                Node::Seen { fit: Fit::Runs | Fit::Keeps, .. } => None,
                // Absence from a cache is not deletion.
                Node::Unseen { is_there: None } => Some(Decision::ReadNode(member.node.clone())),
                Node::Unseen { is_there: Some(true) } => None,
                Node::Unseen { is_there: Some(false) } => {
                    Some(Decision::DeletePod(name, "its node is gone"))
                }
            }
        })
    }

    /// A pod of an old template whose turn it is. One that is not available has nothing to lose.
    fn update(&self, hash: &str) -> Option<Decision> {
        let Strategy::Rolling { most_unavailable } = self.set.strategy else { return None };
        let wanted: Vec<&str> = self.wanted().collect();
        let pods = || wanted.iter().filter_map(|node| self.pod_on(node));
        let available = pods().filter(|member| member.pod.is_available()).count();
        let unavailable = u32::try_from(wanted.len() - available).unwrap_or(u32::MAX);
        let bound = most_unavailable.of(u32::try_from(wanted.len()).unwrap_or(u32::MAX));
        let is_old = |member: &&Member| member.hash != hash && member.pod.state == State::Active;
        let old = pods().filter(is_old).min_by_key(|member| member.pod.is_available())?;
        if old.pod.is_available() && unavailable >= bound {
            return None;
        }
        Some(match self.source {
            Source::Cache => Decision::ReadLive,
            Source::Live | Source::LiveOfAnother => {
                Decision::DeletePod(old.pod.name.clone(), "the pod is of an old template")
            }
        })
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
        let hash = self.revisions.present().map(|it| it.hash.as_str()).unwrap_or_default();
        let wanted: Vec<&str> = self.wanted().collect();
        let count = |counts: &dyn Fn(&Member) -> bool| {
            let pods = wanted.iter().filter_map(|node| self.pod_on(node));
            u32::try_from(pods.filter(|member| counts(member)).count()).unwrap_or(u32::MAX)
        };
        let elsewhere: BTreeSet<&str> = self
            .own()
            .map(|member| member.node.as_str())
            .filter(|node| !self.nodes.get(*node).is_some_and(Node::runs))
            .collect();
        Status {
            observed_generation: self.set.generation,
            desired: u32::try_from(wanted.len()).unwrap_or(u32::MAX),
            current: count(&|_| true),
            misscheduled: u32::try_from(elsewhere.len()).unwrap_or(u32::MAX),
            ready: count(&|member| member.pod.is_ready()),
            available: count(&|member| member.pod.is_available()),
            updated: count(&|member| member.hash == hash && member.pod.is_active()),
            refusal: None,
        }
    }

    fn superfluous(&self) -> Option<&str> {
        let hashes: BTreeSet<&str> = self.own().map(|member| member.hash.as_str()).collect();
        let known = self.revisions.known.iter();
        let in_use: BTreeSet<&str> = known
            .filter(|revision| hashes.contains(revision.hash.as_str()))
            .map(|revision| revision.name.as_str())
            .collect();
        self.revisions.superfluous(&in_use, self.set.history_limit)
    }

    fn rest(&self) -> Decision {
        let pods: Vec<Pod> = self.own().map(|member| member.pod.clone()).collect();
        match (next_available(&pods), &self.home) {
            (Some(left), _) => Decision::WaitForPod(left),
            (None, Home::Unseen) => Decision::Rest("the cache does not show the namespace"),
            (None, Home::Terminating) => Decision::Rest("the namespace is being deleted"),
            (None, Home::Plain | Home::Placed(_)) => {
                Decision::Rest("the pods of the DaemonSet are as they can be")
            }
        }
    }
}

impl Node {
    fn runs(&self) -> bool {
        matches!(self, Node::Seen { fit: Fit::Runs, .. })
    }

    fn is_taken(&self) -> bool {
        matches!(self, Node::Seen { is_name_taken: true, .. })
    }
}
