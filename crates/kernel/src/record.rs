//! What is recorded of a step, for whoever judges it later.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a room decided, and on which facts, each as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// All that the decision rests on.
    pub facts: String,
    /// The decision.
    pub decision: String,
}

impl Decided {
    /// What was decided. What cannot be written as JSON is `null`, which no room's facts are.
    pub fn of(facts: &impl Serialize, decision: &impl Serialize) -> Decided {
        let null = |_| "null".to_owned();
        Decided {
            facts: serde_json::to_string(facts).unwrap_or_else(null),
            decision: serde_json::to_string(decision).unwrap_or_else(null),
        }
    }
}

/// One line of a log of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line of each file: a file is complete only from here on.
    Begins(Begins),
    /// A step of a room.
    Step(Box<Record>),
    /// So many steps are not in the log, because the disk was slow or full.
    Missing(u64),
}

/// Who writes a log, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// The version of the program.
    pub version: String,
    /// The process; another one after each start.
    pub process: String,
    /// When the file was begun.
    pub time: Timestamp,
    /// Whether the file before it ends with the step before: the same process goes on.
    pub goes_on: bool,
}

/// A step of a room: one call of its rules, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When the facts were observed.
    pub time: Timestamp,
    /// The number of the step in its process.
    pub number: u64,
    /// The room.
    pub controller: String,
    /// The servers that it works on, by place.
    pub at: BTreeMap<String, String>,
    /// What the step is about.
    pub subject: String,
    /// A digest of all object versions that the step read.
    pub view: String,
    /// How many steps about this subject before it were the same as the one before them, and are not written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub same: u64,
    /// Why, in words.
    pub because: String,
    /// What was done; None: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<RecordedEffect>,
    /// What came of it.
    pub end: End,
    /// All that the decision rests on.
    pub facts: Value,
    /// The decision.
    pub decision: Value,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEffect {
    /// `create`, `patch`, `patch status`, `apply`, `apply status`, `delete`, or the name of an action outside of the API.
    pub action: String,
    /// The place of the server; None: outside of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The kind of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The object: `namespace/name`, or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The uid that the write names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The version that the write rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The version that the object has since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Nothing is to be done until something changes.
    Rests,
    /// Nothing is to be done until something changes or a time has passed.
    Waits,
    /// Something is read live, and then the rules are asked again.
    Reads,
    /// The effect was done.
    Done,
    /// Somebody else was faster: nothing was done.
    Conflict,
    /// The server or the world outside would not do it.
    Refused,
    /// The effect is under way. What came of it is another record; if none follows, the process died, and nobody knows.
    UnderWay,
    /// Nobody knows whether it was done.
    Unknown,
    /// The server could not do it now: nothing was done.
    Unreachable,
    /// A mistake in the controller, or in a driver.
    Broken,
    /// Another process leads: nothing was done.
    NotLeading,
}

impl End {
    /// Whether the effect may be there, for all that is known.
    pub fn may_be_done(self) -> bool {
        match self {
            End::Done | End::UnderWay | End::Unknown | End::Broken => true,
            End::Rests
            | End::Waits
            | End::Reads
            | End::Conflict
            | End::Refused
            | End::Unreachable
            | End::NotLeading => false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
