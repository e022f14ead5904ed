//! What the kinds of identities share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which process may have calls under way about a cloud object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The process, by the identity under which it holds its lease: another start is another process.
    pub instance: String,
    /// From which uptime of that process on, in seconds, no call of any other process can land. It means
    /// nothing to another process. Absent: the mark was taken over, and that process has not seen it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub quiet_at: Option<i64>,
    /// Whether that process found the cloud as declared: the mark is there only until no call can be late any
    /// more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// What happens to the cloud objects when the object is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They are deleted.
    #[default]
    Delete,
    /// They stay as they are.
    Retain,
}

/// On what proof a cloud object that this object did not make is taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Adopt {
    /// Never.
    #[default]
    Never,
    /// It has the tags of this fleet and of an object of the same kind, namespace and name.
    SameName,
    /// It was made by irsa-operator for an object of the same namespace and name.
    Legacy,
}

/// How far an object is, in irsa-operator's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OldCondition {
    /// Nothing was done yet.
    #[default]
    #[serde(rename = "")]
    Submitted,
    /// It waits.
    #[serde(rename = "pending")]
    Pending,
    /// It is at work.
    #[serde(rename = "progressing")]
    Progressing,
    /// Everything is as declared.
    #[serde(rename = "created")]
    Created,
    /// A person has to act.
    #[serde(rename = "failed")]
    Failed,
    /// The cloud refuses a call.
    #[serde(rename = "forbidden")]
    Forbidden,
    /// A ServiceAccount of that name belongs to another.
    #[serde(rename = "saNameConflict")]
    SaNameConflict,
    /// The object is being deleted; irsa-operator wrote it into Policies and Roles.
    #[serde(rename = "deleting")]
    Deleting,
    /// What irsa-operator wrote into Policies and Roles that it had refused.
    #[serde(rename = "error")]
    Error,
}
