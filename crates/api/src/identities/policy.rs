//! The Policy: one policy of the cloud account.

use super::{Adopt, DeletionPolicy, Mark, OldCondition, Statement};
use interlock_kernel::conditions::Condition;
use kube_derive::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The desired state of the policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "irsa.voodoo.io",
    version = "v1alpha1",
    kind = "Policy",
    plural = "policies",
    category = "interlock",
    namespaced,
    status = "PolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Policy is one policy of the cloud account. An IamRoleServiceAccount makes one of its name.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cloud policy is as declared"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, in one word"
    ),
    printcolumn(
        name = "ARN",
        type_ = "string",
        json_path = ".status.arn",
        description = "The cloud policy",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct PolicySpec {
    /// The ARN that irsa-operator wrote here. It says where to find the cloud policy, and is used only if
    /// that policy is this object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub arn: Option<String>,
    /// What is allowed; at least one statement.
    #[schemars(length(min = 1, max = 256))]
    pub statement: Vec<Statement>,
    /// What happens to the cloud policy when this object is deleted: Delete or Retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeletionPolicy")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// On what proof a cloud policy of the same name is taken over: Never, SameName or Legacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Adopt")]
    pub adopt: Option<Adopt>,
}

/// The observed state of the policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct PolicyStatus {
    /// irsa-operator's word: pending, progressing, created, failed or forbidden.
    #[serde(default)]
    pub condition: OldCondition,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The metadata.generation that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,
    /// The cloud policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub arn: Option<String>,
    /// The id that the cloud gave it: a policy that is made again under its name has another one.
    #[serde(rename = "policyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub policy_id: Option<String>,
    /// The default version that was compared last.
    #[serde(rename = "versionID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version_id: Option<String>,
    /// The digest of the document of that version, in canonical form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub document_hash: Option<String>,
    /// Which process may have calls under way about the cloud policy; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Mark")]
    pub mark: Option<Mark>,
    /// Ready, Reconciling, Stalled and SpecArnIgnored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
