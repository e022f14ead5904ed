//! What admission remembers of one write while it is tried: a write that is tried again because somebody else was
//! faster does not ask webhooks again about the same object.

use crate::call::Call;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// All webhooks of one request together may take so long. It is how long upstream lets a write take.
const LIMIT: Duration = Duration::from_secs(34);

/// A write while it is tried.
pub(crate) struct Admitting {
    /// When webhooks have taken too long.
    pub(super) deadline: Instant,
    /// The uid of a new object.
    uid: Option<String>,
    /// What mutating webhooks made of an object.
    pub(super) mutated: Option<Asked>,
    /// What validating webhooks let pass.
    pub(super) approved: Option<Asked>,
}

/// An object that webhooks were asked about.
pub(super) struct Asked {
    old: Option<Value>,
    new: Option<Value>,
    /// What came of it; of no meaning if nothing may be changed.
    pub(super) outcome: Option<Value>,
}

impl Admitting {
    /// A write that a call begins. What a call deletes one by one has one limit of time.
    pub(crate) fn new(call: &Call) -> Self {
        Admitting { deadline: call.began + LIMIT, uid: None, mutated: None, approved: None }
    }

    /// The uid of the new object: the same in every round.
    pub(crate) fn uid(&mut self, call: &Call) -> &str {
        self.uid.get_or_insert_with(|| call.server.new_uid())
    }
}

impl Asked {
    pub(super) fn new(old: Option<&Value>, new: Option<&Value>, outcome: Option<Value>) -> Self {
        Asked { old: old.cloned(), new: new.cloned(), outcome }
    }

    /// Whether this is what was asked about.
    pub(super) fn is_about(&self, old: Option<&Value>, new: Option<&Value>) -> bool {
        (self.old.as_ref(), self.new.as_ref()) == (old, new)
    }
}
