//! A cloud account that answers and refuses as IAM does: for the world, and for the tests of the rooms.

use crate::document;
use crate::outside::{
    Asked, At, Call, Code, Found, PolicyFound, PolicyReading, RoleFound, RoleReading, Tags, Version,
};
use std::collections::{BTreeMap, BTreeSet};

/// How many versions a policy has at most.
const MOST_VERSIONS: usize = 5;
/// How many policies a role has at most.
const MOST_ATTACHED: usize = 10;

/// The policies, roles and OIDC providers of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Account {
    /// By name.
    pub policies: BTreeMap<String, HeldPolicy>,
    /// By name.
    pub roles: BTreeMap<String, HeldRole>,
    /// The tags of each, by issuer.
    pub providers: BTreeMap<String, Tags>,
    /// How many objects were made: each has an id of its own.
    pub made: u32,
}

/// A policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct HeldPolicy {
    /// Its path.
    pub path: String,
    /// Its id.
    pub id: u32,
    /// Its tags.
    pub tags: Tags,
    /// Its documents, by the number of the version.
    pub versions: BTreeMap<u32, String>,
    /// Which of them decides.
    pub default: u32,
}

/// A role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct HeldRole {
    /// Its path.
    pub path: String,
    /// Its id.
    pub id: u32,
    /// Its tags.
    pub tags: Tags,
    /// Whom it trusts.
    pub trust: String,
    /// Its permissions boundary.
    pub boundary: Option<String>,
    /// The policies that are attached to it, by ARN.
    pub attached: BTreeSet<String>,
    /// Its inline policies.
    pub inline: BTreeMap<String, String>,
    /// The instance profiles that it is in.
    pub profiles: BTreeSet<String>,
}

/// The ARN of an object of this account: `policy` or `role`, its path and its name.
pub fn arn(kind: &str, path: &str, name: &str) -> String {
    format!("arn:aws:iam::1:{kind}{path}{name}")
}

fn path_and_name(at: &At, kind: &str) -> (String, String) {
    match at {
        At::Name { path, name } => (path.clone(), name.clone()),
        At::Arn(arn) => {
            let prefix = format!("arn:aws:iam::1:{kind}");
            let whole = arn.strip_prefix(&prefix).unwrap_or_default();
            let split = whole.rfind('/').map_or(0, |slash| slash + 1);
            (whole[..split].to_owned(), whole[split..].to_owned())
        }
    }
}

impl Account {
    /// What there is.
    pub fn found(&self, asked: &Asked) -> Found {
        match asked {
            Asked::Calls => Found::NotAsked,
            Asked::Policy { at, reading } => {
                let (path, name) = path_and_name(at, "policy");
                let there = self.policies.get(&name).filter(|policy| policy.path == path);
                there.map_or(Found::Absent, |it| Found::Policy(self.policy(&name, it, reading)))
            }
            Asked::Role { at, reading } => {
                // A role is found by its name, whatever its path is.
                let (_, name) = path_and_name(at, "role");
                let there = self.roles.get(&name);
                there.map_or(Found::Absent, |role| Found::Role(shown(&name, role, *reading)))
            }
            Asked::Provider { issuer } => match self.providers.get(issuer) {
                None => Found::Absent,
                Some(tags) => Found::Provider { arn: provider_arn(issuer), tags: tags.clone() },
            },
        }
    }

    fn policy(&self, name: &str, policy: &HeldPolicy, reading: &PolicyReading) -> PolicyFound {
        let default_version = format!("v{}", policy.default);
        let own = arn("policy", &policy.path, name);
        let is_deletion = *reading == PolicyReading::Attachments;
        let default = policy.versions.get(&policy.default).map(String::as_str).unwrap_or_default();
        let version = |(id, text): (&u32, &String)| {
            let document = if is_deletion { String::new() } else { text.clone() };
            Version { id: format!("v{id}"), document }
        };
        let users = self.roles.iter().filter(|(_, role)| role.attached.contains(&own));
        let users: Vec<String> = users.map(|(name, _)| name.clone()).collect();
        let all = policy.versions.iter();
        let versions = match reading {
            PolicyReading::Unless(known) if *known == default_version => None,
            PolicyReading::Wanted(digest) if *digest == document::digest(default) => {
                Some(all.filter(|(id, _)| **id == policy.default).map(version).collect())
            }
            PolicyReading::Attachments if !users.is_empty() => None,
            PolicyReading::Unless(_) | PolicyReading::Wanted(_) | PolicyReading::Attachments => {
                Some(all.map(version).collect())
            }
        };
        PolicyFound {
            id: format!("ANPA{}", policy.id),
            tags: policy.tags.clone(),
            versions,
            attached_to: is_deletion.then_some(users),
            default_version,
            arn: own,
        }
    }

    /// Does what a call asks, or says why not.
    pub fn apply(&mut self, at: &At, call: &Call) -> Result<(), Code> {
        match call {
            Call::CreatePolicy { .. }
            | Call::TagPolicy { .. }
            | Call::CreatePolicyVersion { .. }
            | Call::SetDefaultPolicyVersion { .. }
            | Call::DeletePolicyVersion { .. }
            | Call::DeletePolicy => self.apply_to_policy(at, call),
            Call::CreateOpenIdConnectProvider { issuer, tags, .. } => {
                match self.providers.contains_key(issuer) {
                    true => Err(Code::EntityAlreadyExists),
                    false => {
                        self.providers.insert(issuer.clone(), tags.clone());
                        Ok(())
                    }
                }
            }
            Call::DeleteOpenIdConnectProvider => {
                let gone = self.providers.keys().find(|issuer| at.is(&provider_arn(issuer)));
                let gone = gone.cloned().ok_or(Code::NoSuchEntity)?;
                self.providers.remove(&gone);
                Ok(())
            }
            Call::CreateRole { .. }
            | Call::TagRole { .. }
            | Call::UpdateAssumeRolePolicy { .. }
            | Call::PutRolePermissionsBoundary { .. }
            | Call::AttachRolePolicy { .. }
            | Call::DetachRolePolicy { .. }
            | Call::PutRolePolicy { .. }
            | Call::DeleteRolePolicy { .. }
            | Call::DeleteRole => self.apply_to_role(at, call),
        }
    }

    fn apply_to_policy(&mut self, at: &At, call: &Call) -> Result<(), Code> {
        let (path, name) = path_and_name(at, "policy");
        if let Call::CreatePolicy { document, tags } = call {
            if self.policies.contains_key(&name) {
                return Err(Code::EntityAlreadyExists);
            }
            self.made += 1;
            let versions = BTreeMap::from([(1, document.clone())]);
            let tags = tags.clone();
            let made = HeldPolicy { path, id: self.made, tags, versions, default: 1 };
            self.policies.insert(name, made);
            return Ok(());
        }
        let is_attached = {
            let own = arn("policy", &path, &name);
            self.roles.values().any(|role| role.attached.contains(&own))
        };
        let there = self.policies.get_mut(&name).filter(|policy| policy.path == path);
        let policy = there.ok_or(Code::NoSuchEntity)?;
        let number = |version: &str| version.trim_start_matches('v').parse::<u32>().unwrap_or(0);
        match call {
            Call::TagPolicy { tags } => policy.tags.extend(tags.clone()),
            Call::CreatePolicyVersion { document } => {
                if policy.versions.len() >= MOST_VERSIONS {
                    return Err(Code::LimitExceeded);
                }
                let next = policy.versions.keys().max().copied().unwrap_or(0) + 1;
                policy.versions.insert(next, document.clone());
                policy.default = next;
            }
            Call::SetDefaultPolicyVersion { version } => {
                let wanted = number(version);
                if !policy.versions.contains_key(&wanted) {
                    return Err(Code::NoSuchEntity);
                }
                policy.default = wanted;
            }
            Call::DeletePolicyVersion { version } => {
                let gone = number(version);
                if gone == policy.default {
                    return Err(Code::DeleteConflict);
                }
                policy.versions.remove(&gone).ok_or(Code::NoSuchEntity)?;
            }
            Call::DeletePolicy => {
                if is_attached || policy.versions.len() > 1 {
                    return Err(Code::DeleteConflict);
                }
                self.policies.remove(&name);
            }
            _ => return Err(Code::InvalidInput),
        }
        Ok(())
    }

    fn apply_to_role(&mut self, at: &At, call: &Call) -> Result<(), Code> {
        let (path, name) = path_and_name(at, "role");
        if let Call::CreateRole { trust, boundary, tags } = call {
            if self.roles.contains_key(&name) {
                return Err(Code::EntityAlreadyExists);
            }
            self.made += 1;
            let (trust, boundary, tags) = (trust.clone(), boundary.clone(), tags.clone());
            let made =
                HeldRole { path, id: self.made, tags, trust, boundary, ..HeldRole::default() };
            self.roles.insert(name, made);
            return Ok(());
        }
        let is_policy_there = match call {
            Call::AttachRolePolicy { arn: wanted } => {
                let own = wanted.starts_with("arn:aws:iam::1:");
                let mut known = self.policies.iter();
                !own || known.any(|(name, it)| arn("policy", &it.path, name) == *wanted)
            }
            _ => true,
        };
        let role = self.roles.get_mut(&name).ok_or(Code::NoSuchEntity)?;
        match call {
            Call::TagRole { tags } => role.tags.extend(tags.clone()),
            Call::UpdateAssumeRolePolicy { trust } => role.trust.clone_from(trust),
            Call::PutRolePermissionsBoundary { arn } => role.boundary = Some(arn.clone()),
            Call::AttachRolePolicy { arn } => {
                if !is_policy_there {
                    return Err(Code::NoSuchEntity);
                }
                if role.attached.len() >= MOST_ATTACHED {
                    return Err(Code::LimitExceeded);
                }
                role.attached.insert(arn.clone());
            }
            Call::DetachRolePolicy { arn } => {
                role.attached.take(arn).ok_or(Code::NoSuchEntity)?;
            }
            Call::PutRolePolicy { name, document } => {
                role.inline.insert(name.clone(), document.clone());
            }
            Call::DeleteRolePolicy { name } => {
                role.inline.remove(name).ok_or(Code::NoSuchEntity)?;
            }
            Call::DeleteRole => {
                let is_used = !role.attached.is_empty() || !role.inline.is_empty();
                if is_used || !role.profiles.is_empty() {
                    return Err(Code::DeleteConflict);
                }
                self.roles.remove(&name);
            }
            _ => return Err(Code::InvalidInput),
        }
        Ok(())
    }
}

/// The ARN of the OIDC provider of an issuer.
pub fn provider_arn(issuer: &str) -> String {
    let host = issuer.split_once("://").map_or(issuer, |(_, host)| host);
    format!("arn:aws:iam::1:oidc-provider/{host}")
}

fn shown(name: &str, role: &HeldRole, reading: RoleReading) -> RoleFound {
    let is_deletion = reading == RoleReading::Deletion;
    let reads_inline = reading == RoleReading::Inline || (is_deletion && role.attached.is_empty());
    let inline = role.inline.iter();
    let inline = inline.map(|(id, text)| Version { id: id.clone(), document: text.clone() });
    RoleFound {
        arn: arn("role", &role.path, name),
        id: format!("AROA{}", role.id),
        tags: role.tags.clone(),
        trust: role.trust.clone(),
        boundary: role.boundary.clone(),
        attached: role.attached.iter().cloned().collect(),
        inline: reads_inline.then(|| inline.collect()),
        instance_profiles: is_deletion.then(|| role.profiles.iter().cloned().collect()),
    }
}
