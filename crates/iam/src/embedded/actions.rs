//! The calls of IAM, by name.

use super::context::{Context, Decided};
use super::{policies, providers, rights, role_policies, roles};
use crate::arn::Arn;

/// What decides a call.
pub(super) type Handler = fn(&Context<'_>) -> Decided;

const ACTIONS: &[(&str, Handler)] = &[
    ("AttachRolePolicy", role_policies::attach),
    ("CreateOpenIDConnectProvider", providers::create),
    ("CreatePolicy", policies::create),
    ("CreatePolicyVersion", policies::create_version),
    ("CreateRole", roles::create),
    ("DeleteOpenIDConnectProvider", providers::delete),
    ("DeletePolicy", policies::delete),
    ("DeletePolicyVersion", policies::delete_version),
    ("DeleteRole", roles::delete),
    ("DeleteRolePermissionsBoundary", roles::delete_boundary),
    ("DeleteRolePolicy", role_policies::delete),
    ("DetachRolePolicy", role_policies::detach),
    ("GetOpenIDConnectProvider", providers::get),
    ("GetPolicy", policies::get),
    ("GetPolicyVersion", policies::get_version),
    ("GetRole", roles::get),
    ("GetRolePolicy", role_policies::get),
    ("ListAttachedRolePolicies", role_policies::list_attached),
    ("ListEntitiesForPolicy", policies::list_entities),
    ("ListInstanceProfilesForRole", roles::list_instance_profiles),
    ("ListOpenIDConnectProviders", providers::list),
    ("ListPolicies", policies::list),
    ("ListPolicyTags", policies::list_tags),
    ("ListPolicyVersions", policies::list_versions),
    ("ListRolePolicies", role_policies::list),
    ("ListRoleTags", roles::list_tags),
    ("ListRoles", roles::list),
    ("PutRolePermissionsBoundary", roles::put_boundary),
    ("PutRolePolicy", role_policies::put),
    ("SetDefaultPolicyVersion", policies::set_default_version),
    ("SimulatePrincipalPolicy", rights::simulate),
    ("TagOpenIDConnectProvider", providers::tag),
    ("TagPolicy", policies::tag),
    ("TagRole", roles::tag),
    ("UntagPolicy", policies::untag),
    ("UntagRole", roles::untag),
    ("UpdateAssumeRolePolicy", roles::update_trust),
    ("UpdateRole", roles::update),
];

/// What decides the call of this name.
pub(super) fn find(action: &str) -> Option<Handler> {
    ACTIONS.iter().find(|(name, _)| *name == action).map(|(_, handler)| *handler)
}

/// The names of all calls of IAM that are served.
pub fn calls() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(name, _)| *name)
}

/// What a call is about, for policies.
pub(super) fn resource(context: &Context<'_>) -> String {
    let get = |name: &str| context.parameters.get(name);
    for arn in ["PolicyArn", "OpenIDConnectProviderArn", "PolicySourceArn"] {
        // A call about a role and a policy is about the role.
        if let Some(arn) = get(arn).filter(|_| get("RoleName").is_none()) {
            return arn.to_owned();
        }
    }
    let path = get("Path").unwrap_or("/");
    if let Some(name) = get("RoleName") {
        let existing = context.state.role(name).map(|role| role.arn(context.account));
        let new = || Arn::iam(context.account, "role", &format!("{path}{name}")).to_string();
        return existing.unwrap_or_else(|_| new());
    }
    if let Some(name) = get("PolicyName") {
        return Arn::iam(context.account, "policy", &format!("{path}{name}")).to_string();
    }
    if let Some(url) = get("Url") {
        return Arn::provider(context.account, url).to_string();
    }
    "*".to_owned()
}
