//! Impersonation: whose identity a caller wants to take on, and which rights that takes.

use crate::access::Attributes;
use crate::access::identity::{self, Identity, Scope};
use crate::request::percent_decoded;
use crate::status::Status;
use http::{HeaderMap, HeaderValue};
use std::collections::BTreeMap;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whose identity is wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    user: String,
    groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
}

impl Wanted {
    /// What the headers ask for; none if they do not ask.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Wanted>, Status> {
        let mut wanted = Wanted {
            user: headers.get(USER).map(text).transpose()?.unwrap_or_default(),
            groups: headers.get_all(GROUP).iter().map(text).collect::<Result<_, _>>()?,
            uid: headers.get(UID).map(text).transpose()?.unwrap_or_default(),
            extra: BTreeMap::new(),
        };
        for (name, value) in headers {
            let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
            let key = percent_decoded(key).unwrap_or_else(|| key.to_owned());
            wanted.extra.entry(key).or_default().push(text(value)?);
        }
        if !wanted.user.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty() {
            return Ok(None);
        }
        Err(Status::bad_request("requested groups, uid or extra without impersonating a user"))
    }

    /// What the caller must be allowed to do, each of these.
    pub(crate) fn rights(&self) -> Vec<Attributes<'_>> {
        let impersonate = Attributes { verb: "impersonate", ..Attributes::default() };
        let mut rights = vec![match identity::service_account_of(&self.user) {
            Some((namespace, name)) => {
                Attributes { resource: "serviceaccounts", namespace, name, ..impersonate }
            }
            None => Attributes { resource: "users", name: &self.user, ..impersonate },
        }];
        for name in &self.groups {
            rights.push(Attributes { resource: "groups", name, ..impersonate });
        }
        let impersonate = Attributes { group: AUTHENTICATION, ..impersonate };
        if !self.uid.is_empty() {
            rights.push(Attributes { resource: "uids", name: &self.uid, ..impersonate });
        }
        for (subresource, values) in &self.extra {
            for name in values {
                let resource = "userextras";
                rights.push(Attributes { resource, subresource, name, ..impersonate });
            }
        }
        rights
    }

    /// The identity, worth something where the caller's own is.
    pub(crate) fn into_identity(mut self, scope: Scope) -> Identity {
        let account = identity::service_account_of(&self.user);
        if let Some((namespace, _)) = account.filter(|_| self.groups.is_empty()) {
            let all = identity::SERVICE_ACCOUNTS;
            self.groups = vec![all.to_owned(), format!("{all}:{namespace}")];
        }
        if self.user == identity::ANONYMOUS {
            self.groups.push(identity::UNAUTHENTICATED.to_owned());
        }
        let mut identity = Identity::authenticated(self.user, self.groups, scope);
        identity.uid = self.uid;
        identity.extra = self.extra;
        identity
    }
}

/// A header that is no text cannot be checked against any rule.
fn text(value: &HeaderValue) -> Result<String, Status> {
    let text = value.to_str().map_err(|_| {
        Status::bad_request("a header that asks for impersonation is not plain text")
    })?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
            headers.append(name, HeaderValue::from_str(value).expect("a header's value"));
        }
        headers
    }

    fn wanted(all: &[(&str, &str)]) -> Wanted {
        Wanted::read(&headers(all)).expect("it can be read").expect("somebody is wanted")
    }

    #[test]
    fn each_part_of_an_identity_takes_a_right_of_its_own() {
        let wanted = wanted(&[
            ("Impersonate-User", "dave"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Acme.com%2Fproject", "x"),
        ]);
        let rights: Vec<String> = wanted
            .rights()
            .iter()
            .map(|right| format!("{} {}", right.refusal("u"), right.name))
            .collect();
        assert_eq!(
            rights,
            [
                r#"User "u" cannot impersonate resource "users" in API group "" at the cluster scope dave"#,
                r#"User "u" cannot impersonate resource "groups" in API group "" at the cluster scope a"#,
                r#"User "u" cannot impersonate resource "groups" in API group "" at the cluster scope b"#,
                r#"User "u" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope 7"#,
                r#"User "u" cannot impersonate resource "userextras/acme.com/project" in API group "authentication.k8s.io" at the cluster scope x"#,
            ]
        );
        let identity = wanted.into_identity(Scope::Hub);
        assert_eq!(identity.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(identity.uid, "7");
        assert_eq!(identity.extra["acme.com/project"], ["x"]);
    }

    #[test]
    fn an_account_has_its_groups_unless_others_are_asked_for() {
        let user = ("impersonate-user", "system:serviceaccount:ci:builder");
        let identity = wanted(&[user]).into_identity(Scope::Hub);
        assert_eq!(
            identity.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"]
        );
        let identity = wanted(&[user, ("impersonate-group", "g")]).into_identity(Scope::Hub);
        assert_eq!(identity.groups, ["g", "system:authenticated"]);
    }

    #[test]
    fn nobody_stays_nobody() {
        let identity =
            wanted(&[("impersonate-user", "system:anonymous")]).into_identity(Scope::Hub);
        assert_eq!(identity.groups, ["system:unauthenticated"]);
    }

    #[test]
    fn parts_without_a_user_are_refused() {
        assert!(Wanted::read(&headers(&[])).expect("nothing is asked").is_none());
        assert!(Wanted::read(&headers(&[("impersonate-user", "")])).expect("nothing").is_none());
        for name in ["impersonate-group", "impersonate-uid", "impersonate-extra-x"] {
            let refused = Wanted::read(&headers(&[(name, "x"), ("impersonate-user", "")]));
            assert_eq!(refused.expect_err("no user").code, 400, "{name}");
        }
        let mut odd = headers(&[("impersonate-user", "a")]);
        let value = HeaderValue::from_bytes(b"\xff").expect("an opaque value");
        odd.append("impersonate-group", value);
        assert_eq!(Wanted::read(&odd).expect_err("no text").code, 400);
    }
}
