//! Calls about managed policies.

use super::answers;
use super::call::{Api, Call};
use super::{Attached, Client, NewPolicy, Policy, PolicyVersion, Tags};
use crate::Outcome;

impl Client {
    /// Makes a policy, with its first version and its tags.
    pub async fn create_policy(&self, policy: &NewPolicy) -> Outcome<Policy> {
        let path = Some(policy.path.as_str()).filter(|path| !path.is_empty());
        let call = Call::new("CreatePolicy")
            .with("PolicyName", &policy.name)
            .with_some("Path", path)
            .with("PolicyDocument", &policy.document)
            .with_some("Description", policy.description.as_deref())
            .with_tags(&policy.tags);
        self.ask(Api::Iam, call, |result| answers::policy(result.need("Policy")?)).await
    }

    /// A policy.
    pub async fn get_policy(&self, arn: &str) -> Outcome<Policy> {
        let call = Call::new("GetPolicy").with("PolicyArn", arn);
        self.ask(Api::Iam, call, |result| answers::policy(result.need("Policy")?)).await
    }

    /// All policies of the account whose paths begin so, without tags.
    pub async fn list_policies(&self, path_prefix: &str) -> Outcome<Vec<Policy>> {
        let call = Call::new("ListPolicies").with("Scope", "Local").with("PathPrefix", path_prefix);
        self.list(call, "Policies", answers::policy).await
    }

    /// Deletes a policy that is attached nowhere and has no version but its default.
    pub async fn delete_policy(&self, arn: &str) -> Outcome<()> {
        self.act(Api::Iam, Call::new("DeletePolicy").with("PolicyArn", arn)).await
    }

    /// Adds tags to a policy, or replaces their values.
    pub async fn tag_policy(&self, arn: &str, tags: &Tags) -> Outcome<()> {
        let call = Call::new("TagPolicy").with("PolicyArn", arn).with_tags(tags);
        self.act(Api::Iam, call).await
    }

    /// The roles that a policy is attached to.
    pub async fn list_entities_for_policy(&self, arn: &str) -> Outcome<Vec<Attached>> {
        let call =
            Call::new("ListEntitiesForPolicy").with("PolicyArn", arn).with("EntityFilter", "Role");
        self.list(call, "PolicyRoles", |item| {
            Ok(Attached { name: item.text("RoleName")?, id: item.text("RoleId")? })
        })
        .await
    }

    /// Adds a version that counts from now on.
    pub async fn create_policy_version(&self, arn: &str, document: &str) -> Outcome<PolicyVersion> {
        let call = Call::new("CreatePolicyVersion")
            .with("PolicyArn", arn)
            .with("PolicyDocument", document)
            .with("SetAsDefault", "true");
        self.ask(Api::Iam, call, |result| answers::version(result.need("PolicyVersion")?)).await
    }

    /// A version with its document.
    pub async fn get_policy_version(&self, arn: &str, version: &str) -> Outcome<PolicyVersion> {
        let call = Call::new("GetPolicyVersion").with("PolicyArn", arn).with("VersionId", version);
        self.ask(Api::Iam, call, |result| answers::version(result.need("PolicyVersion")?)).await
    }

    /// All versions, without documents.
    pub async fn list_policy_versions(&self, arn: &str) -> Outcome<Vec<PolicyVersion>> {
        let call = Call::new("ListPolicyVersions").with("PolicyArn", arn);
        self.list(call, "Versions", answers::version).await
    }

    /// Makes an older version count again.
    pub async fn set_default_policy_version(&self, arn: &str, version: &str) -> Outcome<()> {
        let call =
            Call::new("SetDefaultPolicyVersion").with("PolicyArn", arn).with("VersionId", version);
        self.act(Api::Iam, call).await
    }

    /// Deletes a version that does not count.
    pub async fn delete_policy_version(&self, arn: &str, version: &str) -> Outcome<()> {
        let call =
            Call::new("DeletePolicyVersion").with("PolicyArn", arn).with("VersionId", version);
        self.act(Api::Iam, call).await
    }
}
