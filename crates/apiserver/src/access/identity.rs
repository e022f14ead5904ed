//! Who is calling: a name, its groups, and where the identity is worth anything.

use crate::status::Status;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Its members may do anything, and no rule is read.
pub const MASTERS: &str = "system:masters";
/// Everyone whom we know.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everyone whom we do not know.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of whoever shows nothing.
pub const ANONYMOUS: &str = "system:anonymous";
/// Every ServiceAccount of the cluster.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The key in `extra` that says which certificate or token was shown.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user name, as RBAC knows it.
    pub user: String,
    /// Tells two users of one name apart; often empty.
    pub uid: String,
    /// The groups, as RBAC knows them.
    pub groups: Vec<String>,
    /// What else the credential said; for reviews and for the audit log.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Where the identity is worth anything.
    pub scope: Scope,
}

/// Where an identity is worth anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// At the hub, and in each logical cluster that the hub's RBAC lets it into.
    Hub,
    /// In the logical cluster with this id, and nowhere else.
    Cluster(String),
}

impl Identity {
    /// Whoever shows nothing. RBAC decides what little they get, so they may knock anywhere.
    pub fn anonymous() -> Self {
        Identity {
            user: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
            scope: Scope::Hub,
        }
    }

    /// Somebody who has shown a credential. The group of all authenticated callers is added.
    pub fn authenticated(user: impl Into<String>, groups: Vec<String>, scope: Scope) -> Self {
        let mut identity = Identity {
            user: user.into(),
            uid: String::new(),
            groups,
            extra: BTreeMap::new(),
            scope,
        };
        if !identity.is_in(AUTHENTICATED) && !identity.is_in(UNAUTHENTICATED) {
            identity.groups.push(AUTHENTICATED.to_owned());
        }
        identity
    }

    /// A ServiceAccount of one logical cluster.
    pub fn service_account(account: &ServiceAccount<'_>, cluster: impl Into<String>) -> Self {
        let groups =
            vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{}", account.namespace)];
        let mut identity =
            Identity::authenticated(account.user(), groups, Scope::Cluster(cluster.into()));
        identity.uid = account.uid.to_owned();
        identity
    }

    /// Whether the identity is a member of a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|member| member == group)
    }

    /// Whether no rule needs to be read.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Whether nothing was shown.
    pub fn is_anonymous(&self) -> bool {
        self.user == ANONYMOUS
    }

    /// 401 for a cluster identity that is shown in another cluster: there it is nobody, whatever
    /// its name. A hub identity passes, and is then subject to the hub's RBAC.
    pub fn check_scope(&self, cluster_id: &str) -> Result<(), Status> {
        match &self.scope {
            Scope::Hub => Ok(()),
            Scope::Cluster(own) if own == cluster_id => Ok(()),
            Scope::Cluster(_) => Err(Status::unauthorized()),
        }
    }

    /// The `UserInfo` of reviews and of the audit log.
    pub fn user_info(&self) -> Value {
        let mut info = Map::new();
        info.insert("username".to_owned(), json!(self.user));
        if !self.uid.is_empty() {
            info.insert("uid".to_owned(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// Which ServiceAccount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceAccount<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid: an account that was deleted and made again is another one.
    pub uid: &'a str,
}

impl ServiceAccount<'_> {
    /// The user name that RBAC knows it by.
    pub fn user(&self) -> String {
        service_account_user(self.namespace, self.name)
    }
}

/// The user name of a ServiceAccount: `system:serviceaccount:<namespace>:<name>`.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The namespace and name of the ServiceAccount with this user name.
pub fn service_account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_complete = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    is_complete.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_the_name_and_groups_that_bindings_use() {
        let account = ServiceAccount { namespace: "ci", name: "builder", uid: "u1" };
        let identity = Identity::service_account(&account, "c7");
        assert_eq!(identity.user, "system:serviceaccount:ci:builder");
        assert_eq!(
            identity.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"]
        );
        assert_eq!(identity.uid, "u1");
        assert_eq!(service_account_of(&identity.user), Some(("ci", "builder")));
    }

    #[test]
    fn a_cluster_identity_is_nobody_in_another_cluster() {
        let identity =
            Identity::authenticated("a", vec![MASTERS.into()], Scope::Cluster("c1".into()));
        assert!(identity.check_scope("c1").is_ok());
        assert_eq!(identity.check_scope("c2").expect_err("another cluster").code, 401);
        assert_eq!(identity.check_scope("").expect_err("the hub").code, 401);
    }

    #[test]
    fn a_hub_identity_may_knock_everywhere() {
        assert!(Identity::authenticated("a", vec![], Scope::Hub).check_scope("c2").is_ok());
        assert!(Identity::anonymous().check_scope("c2").is_ok());
    }

    #[test]
    fn the_anonymous_caller_is_not_authenticated() {
        let identity = Identity::anonymous();
        assert!(identity.is_anonymous());
        assert!(!identity.is_in(AUTHENTICATED));
        assert_eq!(
            identity.user_info(),
            json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]})
        );
    }

    #[test]
    fn broken_account_names_are_no_accounts() {
        for user in [
            "system:serviceaccount:",
            "system:serviceaccount:a:",
            "a:b",
            "system:serviceaccount:a:b:c",
        ] {
            assert_eq!(service_account_of(user), None, "{user}");
        }
    }
}
