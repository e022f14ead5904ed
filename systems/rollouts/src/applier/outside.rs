//! What the applier asks beside the API. It asks only: nothing is done outside of the API.

use crate::bundle::Bundle;
use interlock_kernel::{Kind, Outside};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The questions of an applier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {}

/// What an applier does outside of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {}

/// What an applier asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// The bundle of a digest, read from its BundleRevisions at the hub. What has this digest is the same for ever, so
    /// that a driver may keep it: a thousand objects are applied, and their bundle is read once.
    Bundle(String),
    /// Whether the cluster serves a kind, as an `apiVersion` and a `kind`.
    Served(String, String),
    /// Whether each API server of the cluster refuses a dry-run create under this token.
    Refuses(i64),
    /// Which rights the applier lacks to read, apply and delete objects of these kinds.
    Lacks(Vec<Scope>),
}

/// Objects of a kind, in a namespace; without one those of the cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The kind.
    pub kind: Kind,
    /// The namespace.
    pub namespace: Option<String>,
}

/// What an applier is answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The bundle.
    Bundle(Held),
    /// The kind, with its plural; None: the cluster does not serve it.
    Served(Option<Kind>),
    /// What the API servers said.
    Refuses(Probe),
    /// The verbs that the API server does not allow, for each scope in which there are any.
    Lacks(BTreeMap<Scope, Vec<String>>),
}

/// A bundle, as far as the hub has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// All of it, and it has its digest.
    Whole(Arc<Bundle>),
    /// There are no such BundleRevisions, or they are not of this digest; in words.
    Unreadable(String),
}

/// What the API servers of a cluster said to a write under an older token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// Each of them refused it, by the policy of the fence.
    Refused,
    /// One of them would have taken it.
    Taken(String),
    /// One of them could not be asked, and why.
    Unreachable(String),
}

impl Outside for Reach {
    type Question = Question;
    type Answer = Answer;
    type Action = Nothing;
}
