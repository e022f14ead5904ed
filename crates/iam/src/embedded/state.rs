//! What there is: roles, policies and providers, in memory and in the store.
//!
//! The store is open in one process at a time, and all writes of IAM go through here, one after the
//! other. So memory has what the store has; a write is seen by nobody before it is durable.

use super::fault::Fault;
use crate::arn::Arn;
use crate::client::Tags;
use interlock_store::{CommitError, Guard, Key, KeyRange, Operation, Revision, Store, Transaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

const ROLES: &str = "iam/roles";
const POLICIES: &str = "iam/policies";
const PROVIDERS: &str = "iam/providers";
const SECRETS: &str = "iam/secrets";

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) created_seconds: i64,
    pub(super) trust: String,
    pub(super) description: Option<String>,
    pub(super) most_session_seconds: u64,
    /// The ARN of a policy.
    pub(super) boundary: Option<String>,
    pub(super) tags: Tags,
    /// The ARNs of managed policies, in the order in which they were attached.
    pub(super) attached: Vec<String>,
    /// Documents by name.
    pub(super) inline: BTreeMap<String, String>,
}

/// A managed policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) created_seconds: i64,
    pub(super) updated_seconds: i64,
    pub(super) description: Option<String>,
    pub(super) tags: Tags,
    /// By number; the newest last.
    pub(super) versions: BTreeMap<u64, Version>,
    pub(super) default: u64,
    /// The number of the next version: none is used twice.
    pub(super) next: u64,
}

/// One version of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) document: String,
    pub(super) created_seconds: i64,
}

/// An OpenID Connect provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Provider {
    /// With its scheme.
    pub(super) url: String,
    pub(super) audiences: Vec<String>,
    pub(super) thumbprints: Vec<String>,
    pub(super) created_seconds: i64,
    pub(super) tags: Tags,
}

impl Role {
    pub(super) fn arn(&self, account: &str) -> String {
        Arn::iam(account, "role", &format!("{}{}", self.path, self.name)).to_string()
    }
}

impl Policy {
    pub(super) fn arn(&self, account: &str) -> String {
        Arn::iam(account, "policy", &format!("{}{}", self.path, self.name)).to_string()
    }

    /// The document that counts.
    pub(super) fn document(&self) -> &str {
        self.versions
            .get(&self.default)
            .map(|version| version.document.as_str())
            .unwrap_or_default()
    }
}

/// A row of one of the tables.
#[derive(Debug, Clone)]
struct Row<T> {
    value: Arc<T>,
    at: Revision,
}

/// What a call changes: one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Role(Role),
    Policy(Policy),
    Provider(Provider),
    NoRole(String),
    NoPolicy(String),
    NoProvider(String),
}

/// All there is.
#[derive(Debug, Default)]
pub(super) struct State {
    account: String,
    /// By name in small letters: names are unique regardless of case.
    roles: BTreeMap<String, Row<Role>>,
    policies: BTreeMap<String, Row<Policy>>,
    /// By URL without scheme.
    providers: BTreeMap<String, Row<Provider>>,
}

impl State {
    /// Reads all of an account.
    pub(super) async fn load<S: Store>(store: &S, account: &str) -> Result<State, String> {
        Ok(State {
            account: account.to_owned(),
            roles: rows(store, ROLES, account).await?,
            policies: rows(store, POLICIES, account).await?,
            providers: rows(store, PROVIDERS, account).await?,
        })
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = &Role> {
        self.roles.values().map(|row| &*row.value)
    }

    pub(super) fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.values().map(|row| &*row.value)
    }

    pub(super) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values().map(|row| &*row.value)
    }

    /// Whether a role of this name exists, in whatever case.
    pub(super) fn has_role(&self, name: &str) -> bool {
        self.roles.contains_key(&name.to_ascii_lowercase())
    }

    pub(super) fn has_policy(&self, name: &str) -> bool {
        self.policies.contains_key(&name.to_ascii_lowercase())
    }

    pub(super) fn role(&self, name: &str) -> Result<&Role, Fault> {
        let row = self.roles.get(&name.to_ascii_lowercase()).map(|row| &*row.value);
        row.filter(|role| role.name == name).ok_or_else(|| {
            Fault::no_such_entity(format!("The role with name {name} cannot be found."))
        })
    }

    /// The role with this ARN, path included.
    pub(super) fn role_by_arn(&self, arn: &str) -> Option<&Role> {
        let parsed: Arn = arn.parse().ok()?;
        let role = self.role(parsed.path_and_name("role")?.name).ok()?;
        (role.arn(&self.account) == arn).then_some(role)
    }

    /// The policy with this ARN, path included.
    pub(super) fn policy(&self, arn: &str) -> Result<&Policy, Fault> {
        self.policy_by_arn(arn)
            .ok_or_else(|| Fault::no_such_entity(format!("Policy {arn} was not found.")))
    }

    pub(super) fn policy_by_arn(&self, arn: &str) -> Option<&Policy> {
        let parsed: Arn = arn.parse().ok()?;
        let name = parsed.path_and_name("policy")?.name.to_ascii_lowercase();
        let policy = &self.policies.get(&name)?.value;
        (policy.arn(&self.account) == arn).then_some(policy)
    }

    /// The provider of an issuer, named without scheme.
    pub(super) fn provider(&self, without_scheme: &str) -> Option<&Provider> {
        self.providers.get(without_scheme).map(|row| &*row.value)
    }

    /// The provider with this ARN.
    pub(super) fn provider_by_arn(&self, arn: &str) -> Option<&Provider> {
        let parsed: Arn = arn.parse().ok()?;
        let name = parsed.resource.strip_prefix("oidc-provider/")?;
        self.provider(name).filter(|_| parsed.account == self.account)
    }

    /// The roles that a policy is attached to.
    pub(super) fn attached_to<'a>(&'a self, arn: &'a str) -> impl Iterator<Item = &'a Role> {
        self.roles().filter(move |role| role.attached.iter().any(|it| it == arn))
    }

    /// The roles whose boundary a policy is.
    pub(super) fn bounded_by<'a>(&'a self, arn: &'a str) -> impl Iterator<Item = &'a Role> {
        self.roles().filter(move |role| role.boundary.as_deref() == Some(arn))
    }

    /// Writes a change, then shows it.
    pub(super) async fn commit<S: Store>(
        &mut self,
        store: &S,
        change: Change,
    ) -> Result<(), CommitError> {
        let account = self.account.clone();
        let rows = AccountRows { store, account: &account };
        match change {
            Change::Role(role) => {
                let row = role.name.to_ascii_lowercase();
                rows.put(ROLES, row, role, &mut self.roles).await
            }
            Change::Policy(policy) => {
                let row = policy.name.to_ascii_lowercase();
                rows.put(POLICIES, row, policy, &mut self.policies).await
            }
            Change::Provider(provider) => {
                let row = crate::arn::without_scheme(&provider.url).to_owned();
                rows.put(PROVIDERS, row, provider, &mut self.providers).await
            }
            Change::NoRole(name) => {
                rows.remove(ROLES, &name.to_ascii_lowercase(), &mut self.roles).await
            }
            Change::NoPolicy(name) => {
                rows.remove(POLICIES, &name.to_ascii_lowercase(), &mut self.policies).await
            }
            Change::NoProvider(name) => rows.remove(PROVIDERS, &name, &mut self.providers).await,
        }
    }
}

/// The rows of an account in the store.
struct AccountRows<'a, S> {
    store: &'a S,
    account: &'a str,
}

impl<S: Store> AccountRows<'_, S> {
    fn key(&self, table: &str, row: &str) -> Key {
        Key::new(table, format!("{}/{row}", self.account))
    }

    async fn put<T: Serialize>(
        &self,
        table: &str,
        row: String,
        value: T,
        rows: &mut BTreeMap<String, Row<T>>,
    ) -> Result<(), CommitError> {
        let key = self.key(table, &row);
        let guard = match rows.get(&row) {
            Some(there) => Guard::At(key.clone(), there.at),
            None => Guard::Absent(key.clone()),
        };
        let bytes = serde_json::to_vec(&value).unwrap_or_default();
        let at = self.store.commit(Transaction::one(guard, Operation::Put(key, bytes))).await?;
        rows.insert(row, Row { value: Arc::new(value), at });
        Ok(())
    }

    async fn remove<T>(
        &self,
        table: &str,
        row: &str,
        rows: &mut BTreeMap<String, Row<T>>,
    ) -> Result<(), CommitError> {
        let Some(there) = rows.get(row) else { return Ok(()) };
        let key = self.key(table, row);
        let guard = Guard::At(key.clone(), there.at);
        self.store.commit(Transaction::one(guard, Operation::Delete(key))).await?;
        rows.remove(row);
        Ok(())
    }
}

async fn rows<S: Store, T: DeserializeOwned>(
    store: &S,
    table: &str,
    account: &str,
) -> Result<BTreeMap<String, Row<T>>, String> {
    let prefix = format!("{account}/");
    let range = KeyRange::prefix(table, prefix.as_str());
    let page = store.range(range, None, usize::MAX).await.map_err(|error| error.to_string())?;
    let mut found = BTreeMap::new();
    for item in page.items {
        let wrong = |error: serde_json::Error| format!("{} cannot be read: {error}", item.key);
        let value = Arc::new(serde_json::from_slice(item.value.bytes()).map_err(wrong)?);
        let name = item.key.row.strip_prefix(&prefix).unwrap_or_default().to_owned();
        found.insert(name, Row { value, at: item.modified });
    }
    Ok(found)
}

/// The secret from which those of sessions are made; `fresh` becomes it on the first start.
pub(super) async fn secret<S: Store>(
    store: &S,
    account: &str,
    fresh: [u8; 32],
) -> Result<Vec<u8>, String> {
    let key = Key::new(SECRETS, format!("{account}/sessions"));
    let guard = Guard::Absent(key.clone());
    let put = Operation::Put(key, fresh.to_vec());
    match store.commit(Transaction::one(guard, put)).await {
        Ok(_) => Ok(fresh.to_vec()),
        Err(CommitError::GuardFailed { current: Some(there), .. }) => {
            Ok(there.value.bytes().to_vec())
        }
        Err(error) => Err(error.to_string()),
    }
}
