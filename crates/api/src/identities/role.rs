//! The Role: one role of the cloud account, which trusts one service account.

use super::{Adopt, DeletionPolicy, Mark, OldCondition};
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of the role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "irsa.voodoo.io",
    version = "v1alpha1",
    kind = "Role",
    plural = "roles",
    category = "interlock",
    namespaced,
    status = "RoleStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Role is one role of the cloud account, which trusts one service account. An IamRoleServiceAccount makes one of its name.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cloud role is as declared"
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
        description = "The cloud role",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct RoleSpec {
    /// The service account that may assume the role.
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,
    /// An existing policy that the role gets too.
    #[serde(rename = "policyarn", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub policy_arn: Option<String>,
    /// The ARN that irsa-operator wrote here. It says where to find the cloud role, and is used only if
    /// that role is this object's.
    #[serde(rename = "rolearn", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub role_arn: Option<String>,
    /// The permissions boundary of the role; it must be the operator's own where the operator has one.
    #[serde(
        rename = "permissionsBoundariesPolicyARN",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub permissions_boundary_arn: Option<String>,
    /// Existing policies that the role gets too.
    #[serde(rename = "policyARNs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(regex(pattern = r"^arn:[^:]*:[^:]*:[^:]*:[^:]*:policy/")))]
    pub policy_arns: Vec<String>,
    /// What happens to the cloud role when this object is deleted: Delete or Retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeletionPolicy")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// On what proof a cloud role of the same name is taken over: Never, SameName or Legacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Adopt")]
    pub adopt: Option<Adopt>,
}

/// The observed state of the role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct RoleStatus {
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
    /// The cloud role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub arn: Option<String>,
    /// The id that the cloud gave it: a role that is made again under its name has another one.
    #[serde(rename = "roleID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub role_id: Option<String>,
    /// The policies that Interlock attached; written before the call. Others are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub attached: Vec<String>,
    /// Which process may have calls under way about the cloud role; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Mark")]
    pub mark: Option<Mark>,
    /// The last forced release that was answered by a fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fence")]
    pub fence: Option<Fence>,
    /// Ready, Reconciling, Stalled and SpecArnIgnored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// Sessions of an epoch that ended by force are denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// The epoch that ended.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Sessions issued before this time, by the clock of the cloud, are denied; absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub before: Option<Time>,
}
