//! What calls are given, and what they answer with.

use crate::Credentials;
use crate::clock::seconds_of;
use crate::document::plain;
use crate::xml::{Element, XmlError};
use std::collections::BTreeMap;

/// Tags by their keys.
pub type Tags = BTreeMap<String, String>;

/// A role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The path, with a slash at both ends.
    pub path: String,
    /// The name.
    pub name: String,
    /// Its id, which no other role ever has.
    pub id: String,
    /// The whole name.
    pub arn: String,
    /// When it was made.
    pub created_seconds: i64,
    /// Who may assume it: a document, plain.
    pub trust: String,
    /// What it is for.
    pub description: Option<String>,
    /// How long a session may be. Lists have it too.
    pub most_session_seconds: Option<u64>,
    /// The ARN of its permissions boundary. Lists leave it out.
    pub boundary: Option<String>,
    /// Lists leave tags out.
    pub tags: Tags,
}

/// A role to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRole {
    /// The path; empty is `/`.
    pub path: String,
    /// The name.
    pub name: String,
    /// Who may assume it: a document.
    pub trust: String,
    /// What it is for.
    pub description: Option<String>,
    /// How long a session may be.
    pub most_session_seconds: Option<u64>,
    /// The ARN of its permissions boundary.
    pub boundary: Option<String>,
    /// Set in the same call.
    pub tags: Tags,
}

/// A managed policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The path, with a slash at both ends.
    pub path: String,
    /// The name.
    pub name: String,
    /// Its id, which no other policy ever has.
    pub id: String,
    /// The whole name.
    pub arn: String,
    /// Which version counts.
    pub default_version: String,
    /// To how many entities it is attached.
    pub attachments: u64,
    /// When it was made.
    pub created_seconds: i64,
    /// Lists leave tags out.
    pub tags: Tags,
}

/// A policy to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewPolicy {
    /// The path; empty is `/`.
    pub path: String,
    /// The name.
    pub name: String,
    /// The first version.
    pub document: String,
    /// What it is for.
    pub description: Option<String>,
    /// Set in the same call.
    pub tags: Tags,
}

/// A version of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyVersion {
    /// `v1` and so on; never used again.
    pub id: String,
    /// Whether it is the one that counts.
    pub is_default: bool,
    /// When it was made.
    pub created_seconds: i64,
    /// The document, plain. Lists leave it out.
    pub document: Option<String>,
}

/// A policy that is attached to a role, or a role that a policy is attached to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attached {
    /// The name.
    pub name: String,
    /// The ARN of a policy, the id of a role.
    pub id: String,
}

/// An OpenID Connect provider: an issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The issuer. AWS leaves the scheme out.
    pub url: String,
    /// The audiences that are accepted.
    pub audiences: Vec<String>,
    /// Of the issuer's certificate; may be empty.
    pub thumbprints: Vec<String>,
    /// When it was made.
    pub created_seconds: i64,
    /// Its tags.
    pub tags: Tags,
}

/// A provider to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewProvider {
    /// The issuer.
    pub url: String,
    /// The audiences that are accepted.
    pub audiences: Vec<String>,
    /// Of the issuer's certificate; may be empty.
    pub thumbprints: Vec<String>,
    /// Set in the same call.
    pub tags: Tags,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The account.
    pub account: String,
    /// The caller.
    pub arn: String,
    /// The caller's id.
    pub user_id: String,
}

/// A token that is to be exchanged for a session.
#[derive(Clone, PartialEq, Eq)]
pub struct WebIdentity {
    /// The ARN of the role to assume.
    pub role: String,
    /// What the session is called.
    pub session: String,
    /// The token of the service account. It is a secret.
    pub token: String,
    /// How long; None is an hour.
    pub seconds: Option<u64>,
}

impl std::fmt::Debug for WebIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("WebIdentity");
        shown.field("role", &self.role).field("session", &self.session).finish_non_exhaustive()
    }
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebIdentitySession {
    /// What signs its requests.
    pub credentials: Credentials,
    /// When it ends.
    pub expires_seconds: i64,
    /// The session's own name.
    pub arn: String,
    /// The id of the role, a colon, the name of the session.
    pub assumed_role_id: String,
    /// Of the token.
    pub subject: String,
    /// Of the token.
    pub audience: String,
    /// The provider that vouched for it.
    pub provider: String,
}

/// A question about what a role may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simulation {
    /// The ARN of the role.
    pub role: String,
    /// What is to be done.
    pub actions: Vec<String>,
    /// To what; empty is `*`.
    pub resources: Vec<String>,
    /// What conditions are evaluated on: a key and its value.
    pub context: Vec<(String, String)>,
}

/// The answer to one action on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// What.
    pub action: String,
    /// To what.
    pub resource: String,
    /// `allowed`, `explicitDeny` or `implicitDeny`.
    pub decision: String,
}

fn moment(of: &Element, name: &str) -> Result<i64, XmlError> {
    let text = of.text(name)?;
    seconds_of(&text).ok_or_else(|| XmlError::Value { name: name.to_owned(), text })
}

fn tags(of: &Element) -> Result<Tags, XmlError> {
    of.members("Tags").map(|tag| Ok((tag.text("Key")?, tag.text("Value")?))).collect()
}

fn texts(of: &Element, list: &str) -> Vec<String> {
    of.members(list).map(|member| member.text.clone()).collect()
}

pub(super) fn role(of: &Element) -> Result<Role, XmlError> {
    let boundary = of.child("PermissionsBoundary");
    Ok(Role {
        path: of.text("Path")?,
        name: of.text("RoleName")?,
        id: of.text("RoleId")?,
        arn: of.text("Arn")?,
        created_seconds: moment(of, "CreateDate")?,
        trust: plain(&of.text("AssumeRolePolicyDocument")?),
        description: of.optional("Description"),
        most_session_seconds: of.number("MaxSessionDuration").ok(),
        boundary: boundary.and_then(|boundary| boundary.optional("PermissionsBoundaryArn")),
        tags: tags(of)?,
    })
}

pub(super) fn policy(of: &Element) -> Result<Policy, XmlError> {
    Ok(Policy {
        path: of.text("Path")?,
        name: of.text("PolicyName")?,
        id: of.text("PolicyId")?,
        arn: of.text("Arn")?,
        default_version: of.text("DefaultVersionId")?,
        attachments: of.number("AttachmentCount")?,
        created_seconds: moment(of, "CreateDate")?,
        tags: tags(of)?,
    })
}

pub(super) fn version(of: &Element) -> Result<PolicyVersion, XmlError> {
    Ok(PolicyVersion {
        id: of.text("VersionId")?,
        is_default: of.is_true("IsDefaultVersion"),
        created_seconds: moment(of, "CreateDate")?,
        document: of.optional("Document").map(|document| plain(&document)),
    })
}

pub(super) fn provider(of: &Element) -> Result<Provider, XmlError> {
    Ok(Provider {
        url: of.text("Url")?,
        audiences: texts(of, "ClientIDList"),
        thumbprints: texts(of, "ThumbprintList"),
        created_seconds: moment(of, "CreateDate")?,
        tags: tags(of)?,
    })
}

pub(super) fn session(of: &Element) -> Result<WebIdentitySession, XmlError> {
    let credentials = of.need("Credentials")?;
    let user = of.need("AssumedRoleUser")?;
    Ok(WebIdentitySession {
        credentials: Credentials {
            access_key_id: credentials.text("AccessKeyId")?,
            secret_access_key: credentials.text("SecretAccessKey")?,
            session_token: Some(credentials.text("SessionToken")?),
        },
        expires_seconds: moment(credentials, "Expiration")?,
        arn: user.text("Arn")?,
        assumed_role_id: user.text("AssumedRoleId")?,
        subject: of.optional("SubjectFromWebIdentityToken").unwrap_or_default(),
        audience: of.optional("Audience").unwrap_or_default(),
        provider: of.optional("Provider").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_printed() {
        let identity = WebIdentity {
            role: "r".to_owned(),
            session: "s".to_owned(),
            token: "hidden".to_owned(),
            seconds: None,
        };
        assert!(!format!("{identity:?}").contains("hidden"));
    }
}
