//! Where a cloud object is, in the account that the credentials are of.

use interlock_iam::arn::{Arn, PathAndName};
use interlock_iam::client::Identity;
use interlock_identities::outside::{At, Call};

/// The account that the credentials are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    partition: String,
    account: String,
}

/// What a cloud object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Policy,
    Role,
    Provider,
}

/// A cloud object of this account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) arn: String,
    /// With a slash at both ends.
    pub(crate) path: String,
    pub(crate) name: String,
}

impl Kind {
    /// What a call is made on.
    pub(crate) fn of(call: &Call) -> Kind {
        match call {
            Call::CreatePolicy { .. }
            | Call::TagPolicy { .. }
            | Call::CreatePolicyVersion { .. }
            | Call::SetDefaultPolicyVersion { .. }
            | Call::DeletePolicyVersion { .. }
            | Call::DeletePolicy => Kind::Policy,
            Call::CreateRole { .. }
            | Call::TagRole { .. }
            | Call::UpdateAssumeRolePolicy { .. }
            | Call::PutRolePermissionsBoundary { .. }
            | Call::AttachRolePolicy { .. }
            | Call::DetachRolePolicy { .. }
            | Call::PutRolePolicy { .. }
            | Call::DeleteRolePolicy { .. }
            | Call::DeleteRole => Kind::Role,
            Call::CreateOpenIdConnectProvider { .. } | Call::DeleteOpenIdConnectProvider => {
                Kind::Provider
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Policy => "policy",
            Kind::Role => "role",
            Kind::Provider => "oidc-provider",
        }
    }
}

/// What a call is made on, as ARNs name it: `policy`, `role`, `oidc-provider`.
pub fn kind_of(call: &Call) -> &'static str {
    Kind::of(call).word()
}

impl Home {
    pub(crate) fn of(identity: &Identity) -> Home {
        let partition = identity.arn.parse::<Arn>().map(|arn| arn.partition);
        Home {
            partition: partition.unwrap_or_else(|_| "aws".to_owned()),
            account: identity.account.clone(),
        }
    }

    /// The object at a place; None: no object of that kind in this account can be there.
    pub(crate) fn target(&self, kind: Kind, at: &At) -> Option<Target> {
        let arn = match at {
            At::Name { path, name } => self.arn(kind, &format!("{path}{name}")),
            At::Arn(text) => text.parse().ok()?,
        };
        let is_here = arn.account == self.account && arn.partition == self.partition;
        let PathAndName { path, name } = arn.path_and_name(kind.word()).filter(|_| is_here)?;
        let (path, name) = (path.to_owned(), name.to_owned());
        Some(Target { arn: arn.to_string(), path, name })
    }

    /// The provider of an issuer.
    pub(crate) fn provider(&self, issuer: &str) -> String {
        let arn = Arn::provider(&self.account, issuer);
        Arn { partition: self.partition.clone(), ..arn }.to_string()
    }

    fn arn(&self, kind: Kind, path_and_name: &str) -> Arn {
        let arn = Arn::iam(&self.account, kind.word(), path_and_name);
        Arn { partition: self.partition.clone(), ..arn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(arn: &str) -> Home {
        let (account, user_id) = ("123456789012".to_owned(), String::new());
        Home::of(&Identity { account, arn: arn.to_owned(), user_id })
    }

    fn arn_of(home: &Home, kind: Kind, at: &At) -> Option<String> {
        home.target(kind, at).map(|target| target.arn)
    }

    #[test]
    fn a_name_is_in_the_account_and_the_partition_of_the_credentials() {
        let at = At::Name { path: "/interlock/f/".to_owned(), name: "x".to_owned() };
        let china = home("arn:aws-cn:iam::123456789012:user/me");
        let arn = "arn:aws-cn:iam::123456789012:policy/interlock/f/x";
        assert_eq!(arn_of(&china, Kind::Policy, &at), Some(arn.to_owned()));
        let target = home("arn:aws:iam::123456789012:root").target(Kind::Role, &at);
        let target = target.map(|target| (target.path, target.name));
        assert_eq!(target, Some(("/interlock/f/".to_owned(), "x".to_owned())));
    }

    #[test]
    fn nothing_of_another_account_or_kind_is_touched() {
        let home = home("arn:aws:iam::123456789012:root");
        let role = |text: &str| arn_of(&home, Kind::Role, &At::Arn(text.to_owned()));
        assert!(role("arn:aws:iam::123456789012:role/x").is_some());
        for other in [
            "arn:aws:iam::999999999999:role/x",
            "arn:aws-cn:iam::123456789012:role/x",
            "arn:aws:iam::123456789012:policy/x",
            "arn:aws:iam::aws:policy/ReadOnlyAccess",
            "x",
            "",
        ] {
            assert_eq!(role(other), None, "{other}");
        }
    }

    #[test]
    fn a_provider_is_named_by_its_issuer() {
        let home = home("arn:aws:iam::123456789012:root");
        let arn = "arn:aws:iam::123456789012:oidc-provider/hub:6443/issuers/a";
        assert_eq!(home.provider("https://hub:6443/issuers/a"), arn);
        let same = arn_of(&home, Kind::Provider, &At::Arn(arn.to_owned()));
        assert_eq!(same.as_deref(), Some(arn));
    }
}
