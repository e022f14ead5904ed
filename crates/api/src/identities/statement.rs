//! What a policy allows.

use crate::volumes::Anything;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy inside of an IamRoleServiceAccount.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredPolicy {
    /// The ARN that irsa-operator wrote here. It says where to find the cloud policy, and is used only if
    /// that policy is this object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub arn: Option<String>,
    /// What is allowed; at least one statement.
    #[schemars(length(min = 1, max = 256))]
    pub statement: Vec<Statement>,
}

/// One statement of a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// The ARN of the resource.
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^arn:[^:]*:[^:]*:[^:]*:[^:]*:"))]
    pub resource: String,
    /// The actions on the resource; at least one.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 256)))]
    pub action: Vec<String>,
    /// Allow or Deny; Allow by default.
    #[serde(default, skip_serializing_if = "Effect::is_allow")]
    pub effect: Effect,
    /// A name for the statement: letters and digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = r"^[A-Za-z0-9]*$"))]
    pub sid: Option<String>,
    /// When the statement applies, as IAM writes it: operator, key, value or values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Anything")]
    pub condition: Option<Anything>,
}

/// What a statement does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Effect {
    /// It allows.
    #[default]
    Allow,
    /// It denies, whatever else allows.
    Deny,
}

impl Effect {
    fn is_allow(&self) -> bool {
        *self == Effect::Allow
    }
}
