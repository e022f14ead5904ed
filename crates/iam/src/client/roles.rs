//! Calls about roles.

use super::answers;
use super::call::{Api, Call};
use super::{Attached, Client, NewRole, Role, Simulated, Simulation, Tags};
use crate::Outcome;
use crate::document::plain;

impl Client {
    /// Makes a role, with its trust, boundary and tags.
    pub async fn create_role(&self, role: &NewRole) -> Outcome<Role> {
        let path = Some(role.path.as_str()).filter(|path| !path.is_empty());
        let call = Call::new("CreateRole")
            .with("RoleName", &role.name)
            .with_some("Path", path)
            .with("AssumeRolePolicyDocument", &role.trust)
            .with_some("Description", role.description.as_deref())
            .with_some("MaxSessionDuration", role.most_session_seconds.map(|it| it.to_string()))
            .with_some("PermissionsBoundary", role.boundary.as_deref())
            .with_tags(&role.tags);
        self.ask(Api::Iam, call, |result| answers::role(result.need("Role")?)).await
    }

    /// A role.
    pub async fn get_role(&self, name: &str) -> Outcome<Role> {
        let call = Call::new("GetRole").with("RoleName", name);
        self.ask(Api::Iam, call, |result| answers::role(result.need("Role")?)).await
    }

    /// All roles whose paths begin so, without boundaries and tags.
    pub async fn list_roles(&self, path_prefix: &str) -> Outcome<Vec<Role>> {
        let call = Call::new("ListRoles").with("PathPrefix", path_prefix);
        self.list(call, "Roles", answers::role).await
    }

    /// Deletes a role from which everything was detached.
    pub async fn delete_role(&self, name: &str) -> Outcome<()> {
        self.act(Api::Iam, Call::new("DeleteRole").with("RoleName", name)).await
    }

    /// Replaces the trust of a role.
    pub async fn update_assume_role_policy(&self, name: &str, document: &str) -> Outcome<()> {
        let call = Call::new("UpdateAssumeRolePolicy")
            .with("RoleName", name)
            .with("PolicyDocument", document);
        self.act(Api::Iam, call).await
    }

    /// Sets the permissions boundary of a role.
    pub async fn put_role_permissions_boundary(&self, name: &str, policy: &str) -> Outcome<()> {
        let call = Call::new("PutRolePermissionsBoundary")
            .with("RoleName", name)
            .with("PermissionsBoundary", policy);
        self.act(Api::Iam, call).await
    }

    /// Adds tags to a role, or replaces their values.
    pub async fn tag_role(&self, name: &str, tags: &Tags) -> Outcome<()> {
        let call = Call::new("TagRole").with("RoleName", name).with_tags(tags);
        self.act(Api::Iam, call).await
    }

    /// Attaches a policy to a role.
    pub async fn attach_role_policy(&self, name: &str, policy: &str) -> Outcome<()> {
        let call = Call::new("AttachRolePolicy").with("RoleName", name).with("PolicyArn", policy);
        self.act(Api::Iam, call).await
    }

    /// Detaches a policy from a role.
    pub async fn detach_role_policy(&self, name: &str, policy: &str) -> Outcome<()> {
        let call = Call::new("DetachRolePolicy").with("RoleName", name).with("PolicyArn", policy);
        self.act(Api::Iam, call).await
    }

    /// The policies that are attached to a role.
    pub async fn list_attached_role_policies(&self, name: &str) -> Outcome<Vec<Attached>> {
        let call = Call::new("ListAttachedRolePolicies").with("RoleName", name);
        self.list(call, "AttachedPolicies", |item| {
            Ok(Attached { name: item.text("PolicyName")?, id: item.text("PolicyArn")? })
        })
        .await
    }

    /// Writes an inline policy of a role.
    pub async fn put_role_policy(&self, name: &str, policy: &str, document: &str) -> Outcome<()> {
        let call = Call::new("PutRolePolicy")
            .with("RoleName", name)
            .with("PolicyName", policy)
            .with("PolicyDocument", document);
        self.act(Api::Iam, call).await
    }

    /// An inline policy of a role: its document, plain.
    pub async fn get_role_policy(&self, name: &str, policy: &str) -> Outcome<String> {
        let call = Call::new("GetRolePolicy").with("RoleName", name).with("PolicyName", policy);
        self.ask(Api::Iam, call, |result| Ok(plain(&result.text("PolicyDocument")?))).await
    }

    /// The names of the inline policies of a role.
    pub async fn list_role_policies(&self, name: &str) -> Outcome<Vec<String>> {
        let call = Call::new("ListRolePolicies").with("RoleName", name);
        self.list(call, "PolicyNames", |item| Ok(item.text.clone())).await
    }

    /// Removes an inline policy of a role.
    pub async fn delete_role_policy(&self, name: &str, policy: &str) -> Outcome<()> {
        let call = Call::new("DeleteRolePolicy").with("RoleName", name).with("PolicyName", policy);
        self.act(Api::Iam, call).await
    }

    /// The names of the instance profiles that have a role.
    pub async fn list_instance_profiles_for_role(&self, name: &str) -> Outcome<Vec<String>> {
        let call = Call::new("ListInstanceProfilesForRole").with("RoleName", name);
        self.list(call, "InstanceProfiles", |item| item.text("InstanceProfileName")).await
    }

    /// What a role may do.
    pub async fn simulate_principal_policy(&self, asked: &Simulation) -> Outcome<Vec<Simulated>> {
        let mut call = Call::new("SimulatePrincipalPolicy")
            .with("PolicySourceArn", &asked.role)
            .with_list("ActionNames", &asked.actions)
            .with_list("ResourceArns", &asked.resources);
        for (index, (key, value)) in asked.context.iter().enumerate() {
            let at = format!("ContextEntries.member.{}", index + 1);
            call = call
                .with(&format!("{at}.ContextKeyName"), key)
                .with(&format!("{at}.ContextKeyType"), "string")
                .with(&format!("{at}.ContextKeyValues.member.1"), value);
        }
        self.list(call, "EvaluationResults", |item| {
            Ok(Simulated {
                action: item.text("EvalActionName")?,
                resource: item.text("EvalResourceName")?,
                decision: item.text("EvalDecision")?,
            })
        })
        .await
    }
}
