//! A question as requests: what is in the account, read to the end of every list.

use crate::account::Account;
use crate::counts::Result as Counted;
use crate::documents::Key;
use crate::failures::{no_token, of_read};
use crate::place::{Home, Kind};
use crate::tokens::NotYet;
use interlock_iam::Outcome;
use interlock_iam::outcome::Class;
use interlock_identities::document;
use interlock_identities::outside::{
    Asked, At, FRESH_SECONDS, Failure, Found, PolicyFound, PolicyReading, RoleFound, RoleReading,
    Version,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a question that has begun waits for the token of one more request: what is read after that
/// would be too old for a call.
const FRESH: Duration = Duration::from_secs(FRESH_SECONDS.unsigned_abs());

/// One question that is being answered.
pub(crate) struct Reading<'a> {
    account: &'a Account,
    /// Whether the token of the next request was taken already.
    has_token: AtomicBool,
}

/// Something was read, or there is no such thing, or nobody can tell.
type Read<T> = Result<Option<T>, Failure>;

impl<'a> Reading<'a> {
    /// A question whose first request has its token.
    pub(crate) fn begun(account: &'a Account) -> Reading<'a> {
        Reading { account, has_token: AtomicBool::new(true) }
    }

    /// Further requests of a step that has begun.
    pub(crate) fn further(account: &'a Account) -> Reading<'a> {
        Reading { account, has_token: AtomicBool::new(false) }
    }

    /// What was found.
    pub(crate) async fn found(&self, asked: &Asked) -> Found {
        let found = match asked {
            Asked::Calls => Ok(Some(Found::NotAsked)),
            Asked::Policy { at, reading } => self.policy(at, reading).await,
            Asked::Role { at, reading } => self.role(at, *reading).await,
            Asked::Provider { issuer } => self.provider(issuer).await,
        };
        match found {
            Ok(found) => found.unwrap_or(Found::Absent),
            Err(failure) => Found::Failed(failure),
        }
    }

    async fn policy(&self, at: &At, reading: &PolicyReading) -> Read<Found> {
        let Some(target) = self.home().await?.target(Kind::Policy, at) else { return Ok(None) };
        let (client, arn) = (&self.account.client, &target.arn);
        let Some(policy) = self.read("iam:GetPolicy", client.get_policy(arn)).await? else {
            return Ok(None);
        };
        let mut found = PolicyFound {
            arn: policy.arn,
            id: policy.id,
            tags: policy.tags,
            default_version: policy.default_version,
            versions: None,
            attached_to: None,
        };
        match reading {
            PolicyReading::Unless(known) if *known == found.default_version => {
                return Ok(Some(Found::Policy(found)));
            }
            PolicyReading::Unless(_) => {
                found.versions = self.versions(&found).await?;
                return Ok(found.versions.is_some().then_some(Found::Policy(found)));
            }
            PolicyReading::Wanted(digest) => {
                let default = self.version(&found, &found.default_version).await?;
                let is_wanted = |it: &Version| document::digest(&it.document) == *digest;
                found.versions = match default.filter(is_wanted) {
                    Some(default) => Some(vec![default]),
                    None => self.versions(&found).await?,
                };
                return Ok(found.versions.is_some().then_some(Found::Policy(found)));
            }
            PolicyReading::Attachments => {}
        }
        let mut attached_to = Vec::new();
        if policy.attachments > 0 {
            let entities = client.list_entities_for_policy(arn);
            let Some(entities) = self.read("iam:ListEntitiesForPolicy", entities).await? else {
                return Ok(None);
            };
            attached_to.extend(entities.into_iter().map(|entity| entity.name));
        }
        // The list counts, and not the count: that may lag, or be wrong for good.
        if attached_to.is_empty() {
            let Some(ids) = self.version_ids(arn).await? else { return Ok(None) };
            let version = |id| Version { id, document: String::new() };
            found.versions = Some(ids.into_iter().map(version).collect());
        }
        found.attached_to = Some(attached_to);
        Ok(Some(Found::Policy(found)))
    }

    /// The versions of a policy, the oldest first, without their documents.
    async fn version_ids(&self, arn: &str) -> Read<Vec<String>> {
        let listed = self.account.client.list_policy_versions(arn);
        let Some(listed) = self.read("iam:ListPolicyVersions", listed).await? else {
            return Ok(None);
        };
        let mut ids: Vec<String> = listed.into_iter().map(|version| version.id).collect();
        ids.sort_by_key(|id| number_of(id));
        Ok(Some(ids))
    }

    /// The versions of a policy, the oldest first.
    async fn versions(&self, policy: &PolicyFound) -> Read<Vec<Version>> {
        let Some(ids) = self.version_ids(&policy.arn).await? else { return Ok(None) };
        let mut versions = Vec::new();
        for id in ids {
            // Whoever deleted it since has left the others.
            versions.extend(self.version(policy, &id).await?);
        }
        Ok(Some(versions))
    }

    /// One version of a policy, with its document.
    async fn version(&self, policy: &PolicyFound, version: &str) -> Read<Version> {
        let (client, documents) = (&self.account.client, &self.account.documents);
        let (of, id) = (Key::of(policy, version), version.to_owned());
        if let Some(document) = documents.get(&of) {
            return Ok(Some(Version { id, document }));
        }
        let read = client.get_policy_version(&policy.arn, version);
        let Some(read) = self.read("iam:GetPolicyVersion", read).await? else { return Ok(None) };
        let document = read.document.unwrap_or_default();
        documents.put(of, &document);
        Ok(Some(Version { id, document }))
    }

    async fn role(&self, at: &At, reading: RoleReading) -> Read<Found> {
        let Some(target) = self.home().await?.target(Kind::Role, at) else { return Ok(None) };
        let (client, name) = (&self.account.client, &target.name);
        let role = self.read("iam:GetRole", client.get_role(name)).await?;
        // A role is found by its name alone, whatever its path is; an ARN names one path.
        let is_asked = |arn: &str| matches!(at, At::Name { .. }) || arn == target.arn;
        let Some(role) = role.filter(|role| is_asked(&role.arn)) else { return Ok(None) };
        let attached = client.list_attached_role_policies(name);
        let Some(attached) = self.read("iam:ListAttachedRolePolicies", attached).await? else {
            return Ok(None);
        };
        let mut found = RoleFound {
            arn: role.arn,
            id: role.id,
            tags: role.tags,
            trust: role.trust,
            boundary: role.boundary,
            attached: attached.into_iter().map(|policy| policy.id).collect(),
            inline: None,
            instance_profiles: None,
        };
        let is_deletion = reading == RoleReading::Deletion;
        if reading == RoleReading::Inline || (is_deletion && found.attached.is_empty()) {
            let Some(inline) = self.inline(name).await? else { return Ok(None) };
            found.inline = Some(inline);
        }
        if is_deletion {
            let profiles = client.list_instance_profiles_for_role(name);
            let profiles = self.read("iam:ListInstanceProfilesForRole", profiles).await?;
            let Some(profiles) = profiles else { return Ok(None) };
            found.instance_profiles = Some(profiles);
        }
        Ok(Some(Found::Role(found)))
    }

    /// The inline policies of a role.
    async fn inline(&self, role: &str) -> Read<Vec<Version>> {
        let client = &self.account.client;
        let names = self.read("iam:ListRolePolicies", client.list_role_policies(role)).await?;
        let Some(names) = names else { return Ok(None) };
        let mut inline = Vec::new();
        for name in names {
            let read = client.get_role_policy(role, &name);
            if let Some(document) = self.read("iam:GetRolePolicy", read).await? {
                inline.push(Version { id: name, document });
            }
        }
        Ok(Some(inline))
    }

    async fn provider(&self, issuer: &str) -> Read<Found> {
        let arn = self.home().await?.provider(issuer);
        let provider = self.account.client.get_open_id_connect_provider(&arn);
        let provider = self.read("iam:GetOpenIDConnectProvider", provider).await?;
        Ok(provider.map(|provider| Found::Provider { arn, tags: provider.tags }))
    }

    /// The account that the credentials are of. It is asked for once.
    pub(crate) async fn home(&self) -> Result<&'a Home, Failure> {
        let identity = || async {
            let identity = self.account.client.get_caller_identity();
            let identity = self.read("sts:GetCallerIdentity", identity).await?;
            let why = "STS does not know the credentials".to_owned();
            let identity = identity.ok_or(Failure::Credentials { why })?;
            tracing::info!(account = identity.account, "the credentials are of a cloud account");
            Ok(Home::of(&identity))
        };
        self.account.home.get_or_try_init(identity).await
    }

    /// One request, with its token.
    async fn read<T>(&self, right: &str, asked: impl Future<Output = Outcome<T>>) -> Read<T> {
        let account = self.account;
        if !self.has_token.swap(false, Ordering::Relaxed) {
            account.further(FRESH).await.map_err(|NotYet(wait)| no_token(wait))?;
        }
        let outcome = asked.await;
        let action = right.split_once(':').map_or(right, |(_, action)| action);
        account.counts.called(action, Counted::of(&outcome));
        match outcome {
            Outcome::Done(value) => Ok(Some(value)),
            Outcome::Refused(refusal) if refusal.class == Class::NoSuchEntity => Ok(None),
            Outcome::Refused(refusal) => {
                if refusal.class == Class::Throttled {
                    account.tokens.throttled(account.uptime());
                }
                Err(of_read(right, &refusal))
            }
            Outcome::Unknown(why) => Err(Failure::Unavailable { why: format!("{right}: {why}") }),
        }
    }
}

/// `v12` is after `v9`.
fn number_of(version: &str) -> u64 {
    version.trim_start_matches('v').parse().unwrap_or(u64::MAX)
}
