//! What identities ask of the cloud, and do to it: types only.
//!
//! A step asks with [`Question`] and learns all that its decision needs, what happened to its earlier calls
//! included: the client keeps what it sent ([`Sent`]) and what was refused ([`Refusal`]). An action is one
//! request, never repeated by the client. A request is known before its first byte is sent, so one whose
//! answer was lost, or that was cut off, shows as unanswered.

use interlock_kernel::Outside;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The identities of one cloud account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cloud {}

impl Outside for Cloud {
    type Question = Question;
    type Answer = Answer;
    type Action = Request;
}

/// Tags of a cloud object.
pub type Tags = BTreeMap<String, String>;

/// Where a cloud object is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum At {
    /// By path and name, in the account that the client works on.
    Name {
        /// It begins and ends with a slash.
        path: String,
        /// Its name.
        name: String,
    },
    /// By its ARN.
    Arn(String),
}

impl At {
    /// Whether an ARN names an object that is here.
    pub fn is(&self, arn: &str) -> bool {
        match self {
            At::Name { path, name } => arn.ends_with(&format!("{path}{name}")),
            At::Arn(known) => known == arn,
        }
    }
}

/// A question to the cloud.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// What is asked about.
    pub object: Asked,
    /// The uid of the Kubernetes object that it is asked for: what was sent is kept by it.
    pub about: String,
}

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Asked {
    /// Nothing of the cloud: only what this process sent, and what was refused.
    Calls,
    /// A policy.
    Policy {
        /// Where it is.
        at: At,
        /// What is read of it.
        reading: PolicyReading,
    },
    /// A role.
    Role {
        /// Where it is.
        at: At,
        /// What is read of it.
        reading: RoleReading,
    },
    /// The OIDC provider of an issuer.
    Provider {
        /// The URL of the issuer.
        issuer: String,
    },
}

/// What is read of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PolicyReading {
    /// Its versions with their documents, unless this is its default version.
    Unless(String),
    /// Its default version with its document, if that has this digest; else all versions with their documents.
    Wanted(String),
    /// What it is attached to, and its versions if that is nothing: it is to be deleted.
    Attachments,
}

/// What is read of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleReading {
    /// What is attached to it.
    Attached,
    /// Its inline policies, too.
    Inline,
    /// The instance profiles that it is in, too, and its inline policies once nothing is attached: it is to be
    /// deleted.
    Deletion,
}

/// What the cloud and the client answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What was found.
    pub found: Found,
    /// The process that asked.
    pub process: Process,
    /// The time on the clock of the cloud, in seconds since 1970; None: there was no answer.
    pub date: Option<i64>,
    /// What this process sent for the Kubernetes object within the late-call window, the oldest first.
    pub sent: Vec<Sent>,
    /// The last call for the Kubernetes object that the cloud refused, unless a later one was done.
    pub refused: Option<Refusal>,
    /// What the answers to the calls of this process said, after the late-call window, too.
    pub remembered: Remembered,
}

/// What a process knows of a role by the answers to its own calls. It saves reads where many objects wait for
/// their turn, longer than the late-call window; no call rests on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Remembered {
    /// The process made the role, and has not tried to delete it since.
    pub is_made: bool,
    /// The last call of the process took something off the role.
    pub is_emptied: bool,
}

impl Remembered {
    /// Before a call is sent: whatever it changes is not known until it is answered.
    #[must_use]
    pub fn sends(self, call: &Call) -> Remembered {
        let is_made = self.is_made && *call != Call::DeleteRole;
        Remembered { is_made, is_emptied: false }
    }

    /// After the cloud said that the last call is done.
    #[must_use]
    pub fn learns(self, call: &Call) -> Remembered {
        Remembered {
            is_made: self.is_made || matches!(call, Call::CreateRole { .. }),
            is_emptied: matches!(call, Call::DetachRolePolicy { .. }),
        }
    }
}

/// A process, and its own time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Process {
    /// The identity under which it holds its lease. Another start is another process.
    pub instance: String,
    /// Seconds since it started, on a clock that never goes back.
    pub uptime: i64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Found {
    /// Nothing was asked about.
    NotAsked,
    /// There is none.
    Absent,
    /// A policy.
    Policy(PolicyFound),
    /// A role.
    Role(RoleFound),
    /// An OIDC provider.
    Provider {
        /// Its ARN.
        arn: String,
        /// Its tags.
        tags: Tags,
    },
    /// Nobody can tell.
    Failed(Failure),
}

/// A policy as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PolicyFound {
    /// Its ARN.
    pub arn: String,
    /// The id that the cloud gave it.
    pub id: String,
    /// Its tags.
    pub tags: Tags,
    /// Its default version.
    pub default_version: String,
    /// Its versions, the oldest first, or only the default version, if that is the wanted one. None: the default
    /// version is the known one, or the policy is attached and to be deleted.
    pub versions: Option<Vec<Version>>,
    /// The roles, users and groups that it is attached to, by name; None: not asked for.
    pub attached_to: Option<Vec<String>>,
}

/// A version of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Version {
    /// `v3`
    pub id: String,
    /// The text, URL-encoded or plain; empty if documents were not asked for.
    pub document: String,
}

/// A role as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RoleFound {
    /// Its ARN.
    pub arn: String,
    /// The id that the cloud gave it.
    pub id: String,
    /// Its tags.
    pub tags: Tags,
    /// The text of its trust policy, URL-encoded or plain.
    pub trust: String,
    /// Its permissions boundary.
    pub boundary: Option<String>,
    /// The policies that are attached to it, by ARN.
    pub attached: Vec<String>,
    /// Its inline policies, name and text; None: not read.
    pub inline: Option<Vec<Version>>,
    /// The instance profiles that it is in; None: not read.
    pub instance_profiles: Option<Vec<String>>,
}

/// Why nobody can tell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Failure {
    /// The cloud, or the rate limit of the account, asks for fewer calls; after so many seconds again.
    Throttled {
        /// Seconds.
        after: u64,
    },
    /// No answer, or one that does not say.
    Unavailable {
        /// In words.
        why: String,
    },
    /// The client lacks a right.
    Forbidden {
        /// Which: `iam:GetPolicy`.
        right: String,
    },
    /// The credentials of the client are not valid. This is about the process, not about an object.
    Credentials {
        /// In words.
        why: String,
    },
}

/// A call that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Sent {
    /// The call.
    pub call: Call,
    /// Whether an answer says what happened. If not, the call may take effect until the late-call window
    /// is over.
    pub is_answered: bool,
    /// At which uptime of this process.
    pub at: i64,
}

/// A call that the cloud refused: it had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Refusal {
    /// The call.
    pub call: Call,
    /// Why.
    pub code: Code,
    /// Why, in the cloud's words.
    pub message: String,
    /// At which uptime of this process.
    pub at: i64,
}

/// Why the cloud refuses a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Code {
    /// Something of that name is there.
    EntityAlreadyExists,
    /// Something that the call needs is not there.
    NoSuchEntity,
    /// Something is attached to it, or within it.
    DeleteConflict,
    /// A limit of the account.
    LimitExceeded,
    /// The document cannot be read.
    MalformedPolicyDocument,
    /// A parameter cannot be.
    InvalidInput,
    /// The cloud itself manages the object.
    UnmodifiableEntity,
    /// The policy cannot be attached.
    PolicyNotAttachable,
    /// Another call changes the same object.
    ConcurrentModification,
    /// The client lacks the right.
    AccessDenied,
    /// Fewer calls, please.
    Throttling,
    /// The cloud could not fetch something from the issuer.
    IssuerUnreachable,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Request {
    /// The uid of the Kubernetes object that it is made for.
    pub about: String,
    /// The process that decided on it, and when it had read the cloud. The client refuses a request of
    /// another process, and one that is older than [`FRESH_SECONDS`]: the mark was read before it.
    pub decided: Process,
    /// The object.
    pub at: At,
    /// What is done to it.
    pub call: Call,
}

/// How old the live read may be that a call rests on.
pub const FRESH_SECONDS: i64 = 3;

/// What is done to a cloud object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the names are those of the calls of IAM, and of their parameters")]
pub enum Call {
    CreatePolicy { document: String, tags: Tags },
    TagPolicy { tags: Tags },
    CreatePolicyVersion { document: String },
    SetDefaultPolicyVersion { version: String },
    DeletePolicyVersion { version: String },
    DeletePolicy,
    CreateRole { trust: String, boundary: Option<String>, tags: Tags },
    TagRole { tags: Tags },
    UpdateAssumeRolePolicy { trust: String },
    PutRolePermissionsBoundary { arn: String },
    AttachRolePolicy { arn: String },
    DetachRolePolicy { arn: String },
    PutRolePolicy { name: String, document: String },
    DeleteRolePolicy { name: String },
    DeleteRole,
    CreateOpenIdConnectProvider { issuer: String, audience: String, tags: Tags },
    DeleteOpenIdConnectProvider,
}

/// What a call changes. Two calls on one register are not under way at once, unless they are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Register {
    /// Whether the object is there.
    Existence,
    /// Its tags.
    Tags,
    /// Its default version.
    DefaultVersion,
    /// Whether a version is there.
    Version(String),
    /// Whom a role trusts.
    Trust,
    /// The permissions boundary of a role.
    Boundary,
    /// Whether a policy is attached to a role.
    Attachment(String),
    /// An inline policy of a role.
    Inline(String),
}

impl Call {
    /// What it changes.
    pub fn register(&self) -> Register {
        match self {
            Call::CreatePolicy { .. }
            | Call::DeletePolicy
            | Call::CreateRole { .. }
            | Call::DeleteRole
            | Call::CreateOpenIdConnectProvider { .. }
            | Call::DeleteOpenIdConnectProvider => Register::Existence,
            Call::TagPolicy { .. } | Call::TagRole { .. } => Register::Tags,
            Call::CreatePolicyVersion { .. } | Call::SetDefaultPolicyVersion { .. } => {
                Register::DefaultVersion
            }
            Call::DeletePolicyVersion { version } => Register::Version(version.clone()),
            Call::UpdateAssumeRolePolicy { .. } => Register::Trust,
            Call::PutRolePermissionsBoundary { .. } => Register::Boundary,
            Call::AttachRolePolicy { arn } | Call::DetachRolePolicy { arn } => {
                Register::Attachment(arn.clone())
            }
            Call::PutRolePolicy { name, .. } | Call::DeleteRolePolicy { name } => {
                Register::Inline(name.clone())
            }
        }
    }

    /// Its name, as a policy that allows it has it after `iam:`.
    pub fn name(&self) -> &'static str {
        match self {
            Call::CreatePolicy { .. } => "CreatePolicy",
            Call::TagPolicy { .. } => "TagPolicy",
            Call::CreatePolicyVersion { .. } => "CreatePolicyVersion",
            Call::SetDefaultPolicyVersion { .. } => "SetDefaultPolicyVersion",
            Call::DeletePolicyVersion { .. } => "DeletePolicyVersion",
            Call::DeletePolicy => "DeletePolicy",
            Call::CreateRole { .. } => "CreateRole",
            Call::TagRole { .. } => "TagRole",
            Call::UpdateAssumeRolePolicy { .. } => "UpdateAssumeRolePolicy",
            Call::PutRolePermissionsBoundary { .. } => "PutRolePermissionsBoundary",
            Call::AttachRolePolicy { .. } => "AttachRolePolicy",
            Call::DetachRolePolicy { .. } => "DetachRolePolicy",
            Call::PutRolePolicy { .. } => "PutRolePolicy",
            Call::DeleteRolePolicy { .. } => "DeleteRolePolicy",
            Call::DeleteRole => "DeleteRole",
            Call::CreateOpenIdConnectProvider { .. } => "CreateOpenIDConnectProvider",
            Call::DeleteOpenIdConnectProvider => "DeleteOpenIDConnectProvider",
        }
    }
}
