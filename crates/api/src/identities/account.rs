//! The IamRoleServiceAccount: these actions on these resources, for the service account of its name.

use super::{Adopt, DeclaredPolicy, DeletionPolicy, OldCondition};
use interlock_kernel::conditions::Condition;
use kube_derive::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The desired state of the identity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "irsa.voodoo.io",
    version = "v1alpha1",
    kind = "IamRoleServiceAccount",
    plural = "iamroleserviceaccounts",
    shortname = "irsa",
    category = "interlock",
    namespaced,
    status = "IamRoleServiceAccountStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "An IamRoleServiceAccount gives the pods of the service account of the same name a cloud role with one policy.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cloud is as declared"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, in one word"
    ),
    printcolumn(
        name = "Role",
        type_ = "string",
        json_path = ".status.roleARN",
        description = "The cloud role",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct IamRoleServiceAccountSpec {
    /// What the pods may do.
    pub policy: DeclaredPolicy,
    /// Existing policies that the role gets too.
    #[serde(rename = "policyARNs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9), inner(regex(pattern = r"^arn:[^:]*:[^:]*:[^:]*:[^:]*:policy/")))]
    pub policy_arns: Vec<String>,
    /// The permissions boundary of the role; it must be the operator's own where the operator has one.
    #[serde(
        rename = "permissionsBoundariesPolicyARN",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub permissions_boundary_arn: Option<String>,
    /// What happens to the cloud objects when this object is deleted: Delete or Retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeletionPolicy")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// On what proof a cloud object of the same name is taken over: Never, SameName or Legacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Adopt")]
    pub adopt: Option<Adopt>,
    /// Whether a ServiceAccount that Interlock did not make may be annotated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt_service_account: bool,
}

/// The observed state of the identity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct IamRoleServiceAccountStatus {
    /// irsa-operator's word: pending, progressing, created, failed, forbidden or saNameConflict.
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
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub role_arn: Option<String>,
    /// The cloud policy.
    #[serde(rename = "policyARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub policy_arn: Option<String>,
    /// Ready, Reconciling and Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
