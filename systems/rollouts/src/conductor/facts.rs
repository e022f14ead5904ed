//! All that a decision of the conductor rests on.

use interlock_api::rollouts::{
    FenceMode, FencePolicy, FirstInstallFailure, Good, PreflightMode, UpdatePhase, Verdict,
};
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The name of the record.
    pub name: String,
    /// The name of its cluster.
    pub cluster_name: String,
    /// The cluster that the record is of.
    pub cluster: Cluster,
    /// The record; None: the cache shows none.
    pub record: Option<Record>,
    /// What the agent says; None: the cache shows no report.
    pub report: Option<Report>,
    /// The requests for the cluster that have neither an outcome nor an entry, the oldest first.
    pub unnumbered: Vec<Unnumbered>,
    /// What live reads say of the first of them that has our finalizer.
    pub candidate: Candidate,
    /// Whether the conditions of the record say what is true.
    pub is_said: bool,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Cluster {
    /// The cache does not show it.
    Unread,
    /// A live read shows it, and the cache does not yet.
    Behind,
    /// It is there.
    Here(Here),
    /// It was deleted, as a live read says.
    Gone {
        /// Whether there is another one of its name.
        is_replaced: bool,
    },
}

/// A cluster that is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Here {
    /// Whether its agent sent a heartbeat recently.
    pub is_reachable: bool,
    /// The requests that it is to be drained for, by uid.
    pub drains: Vec<String>,
    /// The requests that it says it is drained for, by uid.
    pub drained: Vec<String>,
    /// Whether that was read live.
    pub is_live: bool,
    /// Why it is not drained.
    pub drain_words: String,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Whether a live read showed this very version; None: it was not read.
    pub is_live: Option<bool>,
    /// Whether somebody deletes it.
    pub is_terminating: bool,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Whether no further request may start.
    pub is_paused: bool,
    /// Whether requests start without a fence.
    pub fence: FencePolicy,
    /// What happens to a first version that fails.
    pub first_install_failure: FirstInstallFailure,
    /// How often a rollback is tried.
    pub tries: u32,
    /// How many seconds a try may take.
    pub rollback_seconds: i64,
    /// The token of the target.
    pub token: i64,
    /// The digest of the target.
    pub target: Option<String>,
    /// The last version that was verified.
    pub good: Option<Good>,
    /// Whether a rollback failed, and no request ended well since.
    pub is_degraded: bool,
    /// The request in flight.
    pub active: Option<Active>,
    /// The request that waits.
    pub queued: Option<Queued>,
    /// How many entries there are.
    pub entries: usize,
    /// How many of them have an outcome that their request does not say yet.
    pub unmirrored: usize,
    /// Entries beyond the history, the oldest first.
    pub surplus: Vec<Surplus>,
    /// The digest whose revisions are to be deleted next; None: none is, yet.
    pub unnamed: Option<Unnamed>,
    /// In how many seconds the next one is to be; None: there is none.
    pub unnamed_in: Option<i64>,
}

/// The request in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Active {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: i64,
    /// Applying, Verifying or RollingBack.
    pub phase: UpdatePhase,
    /// How many seconds ago that phase, or try, began.
    pub phase_seconds: i64,
    /// How many seconds ago it started.
    pub started_seconds: i64,
    /// After how many seconds it has to be healthy.
    pub deadline_seconds: i64,
    /// How often its rollback was tried.
    pub tries: u32,
    /// Why it is rolled back, if it is.
    pub cause: String,
    /// What its request says now.
    pub asked: Asked,
}

/// The request that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: i64,
    /// The digest of its bundle.
    pub digest: String,
    /// How many seconds ago it got its number.
    pub seconds: i64,
    /// The reason that its entry says.
    pub reason: String,
    /// Why its digest is known to be bad, if it is.
    pub bad: Option<String>,
    /// Whether the record asks the agent to check it.
    pub is_named: bool,
    /// What its request says now.
    pub asked: Asked,
}

/// What a request says now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// The cache does not show it.
    Unread,
    /// It is gone, as a live read says.
    Gone,
    /// It is there.
    Here(Options),
}

impl Asked {
    /// Whether the request is to end. One that is gone was deleted.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Asked::Unread => false,
            Asked::Gone => true,
            Asked::Here(options) => options.is_cancelled,
        }
    }

    /// What it asks for, if it is there.
    pub fn options(&self) -> Option<&Options> {
        match self {
            Asked::Here(options) => Some(options),
            Asked::Unread | Asked::Gone => None,
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// It was cancelled, or is being deleted.
    pub is_cancelled: bool,
    /// A request in flight is not awaited.
    pub preempt: bool,
    /// A bundle that failed before is applied again.
    pub retry_bad: bool,
    /// Placed namespaces move away first.
    pub drain_first: bool,
    /// What is checked first.
    pub preflight: PreflightMode,
    /// What others have is taken over.
    pub force: bool,
    /// Data is pruned too.
    pub prune_data: bool,
    /// Seconds from its start until it is healthy.
    pub deadline_seconds: u32,
    /// Seconds of health without a break.
    pub soak_seconds: u32,
    /// Seconds from its number until its start.
    pub start_deadline_seconds: u32,
}

/// An entry beyond the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surplus {
    /// The uid of its request.
    pub uid: String,
    /// Whether the request says its outcome, or is gone as a live read says; None: the cache does not show it.
    pub is_mirrored: Option<bool>,
}

/// A digest whose revisions are to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unnamed {
    /// The digest.
    pub digest: String,
    /// What live reads say.
    pub found: Sweep,
}

/// What live reads say of a digest whose revisions are to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sweep {
    /// Nothing was read.
    Unread,
    /// Some record names it.
    Named,
    /// No record names it, and this part is there, by its number.
    There(u32),
    /// No record names it, and no part is there.
    Gone,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Report {
    /// The token that it is about.
    pub token: i64,
    /// The token of the fence, and how it refuses.
    pub fence: Option<(i64, FenceMode)>,
    /// How far the cluster is.
    pub verdict: Verdict,
    /// How many objects failed or were refused.
    pub failed: usize,
    /// The first of them, or of those that are not healthy.
    pub first: String,
    /// Whether a bundle that it needs is not at the hub.
    pub is_revision_missing: bool,
    /// How many objects differ from what was applied.
    pub drifted: usize,
    /// The answer about the request that waits; None: there is none for it.
    pub preflight: Option<Preflight>,
}

/// The answer about a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preflight {
    /// How many objects would fail.
    pub failures: usize,
    /// The first of them.
    pub first: String,
}

/// A request without an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unnumbered {
    /// Its uid.
    pub uid: String,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

/// What live reads say of the request that is to be numbered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Candidate {
    /// There is none.
    None,
    /// Nothing was read yet.
    Unread(String),
    /// It is gone, or has an outcome: the cache is behind.
    Behind,
    /// It is there.
    Here(Box<Request>),
}

/// A request that is to be numbered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Its uid.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Whether it was cancelled, or is being deleted.
    pub is_cancelled: bool,
    /// Whether its namespace may ask.
    pub is_allowed: bool,
    /// Whether a bundle that failed before is applied again.
    pub retry_bad: bool,
    /// Its bundle.
    pub source: Source,
}

/// The bundle of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// It is not there, and what.
    Missing(String),
    /// It cannot be read, and why.
    Invalid(String),
    /// It was read.
    Bundle {
        /// Its digest.
        digest: String,
        /// Why it is known to be bad, if it is.
        bad: Option<String>,
        /// What is at the hub of it.
        revision: Revision,
    },
}

/// What is at the hub of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Revision {
    /// These parts were not read live.
    Unread(Vec<u32>),
    /// This part is not there, and can be made.
    Lacks(u32),
    /// It is not there, or has another content, and why.
    Broken(String),
    /// All of it is there.
    Complete,
}
