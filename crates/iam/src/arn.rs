//! Names of resources: `arn:partition:service:region:account:resource`.

use std::fmt;
use std::str::FromStr;

/// The name of a resource, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arn {
    /// `aws`, or that of another set of regions: `aws-cn`.
    pub partition: String,
    /// `iam`, `s3`.
    pub service: String,
    /// Empty for IAM.
    pub region: String,
    /// Twelve digits; `aws` for AWS's own policies; may be empty.
    pub account: String,
    /// All that follows, colons included.
    pub resource: String,
}

/// Why a text is no ARN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArnError {
    /// It has too few parts.
    #[error("{0:?} is not an ARN: write arn:<partition>:<service>:<region>:<account>:<resource>")]
    Parts(String),
    /// A part that must be there is empty.
    #[error("the ARN {text:?} has no {part}")]
    Missing {
        /// The whole text.
        text: String,
        /// Which part.
        part: &'static str,
    },
    /// The account is neither a number of twelve digits nor `aws`.
    #[error("the ARN {0:?} names no account: an account has twelve digits")]
    Account(String),
    /// A character that no ARN has.
    #[error("the ARN {0:?} has white space or control characters in it")]
    Character(String),
}

/// A path and a name: what follows `role/` or `policy/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathAndName<'a> {
    /// With a slash at both ends; `/` if there is none.
    pub path: &'a str,
    /// The last part.
    pub name: &'a str,
}

impl Arn {
    /// The ARN of something in IAM: `kind` is `role`, `policy`, `oidc-provider`.
    pub fn iam(account: &str, kind: &str, path_and_name: &str) -> Arn {
        Arn {
            partition: "aws".to_owned(),
            service: "iam".to_owned(),
            region: String::new(),
            account: account.to_owned(),
            resource: format!("{kind}/{}", path_and_name.trim_start_matches('/')),
        }
    }

    /// The ARN of an OIDC provider by the URL of its issuer.
    pub fn provider(account: &str, issuer: &str) -> Arn {
        Arn::iam(account, "oidc-provider", without_scheme(issuer))
    }

    /// Path and name, if this is a role, a policy or whatever `kind` says.
    pub fn path_and_name(&self, kind: &str) -> Option<PathAndName<'_>> {
        if self.service != "iam" {
            return None;
        }
        let rest = self.resource.strip_prefix(kind).filter(|rest| rest.starts_with('/'))?;
        let slash = rest.rfind('/')?;
        let name = &rest[slash + 1..];
        (!name.is_empty()).then_some(PathAndName { path: &rest[..=slash], name })
    }
}

/// An issuer as ARNs and condition keys name it.
pub fn without_scheme(issuer: &str) -> &str {
    issuer.split_once("://").map_or(issuer, |(_, rest)| rest)
}

impl FromStr for Arn {
    type Err = ArnError;

    fn from_str(text: &str) -> Result<Arn, ArnError> {
        if text.chars().any(|it| it.is_whitespace() || it.is_control()) {
            return Err(ArnError::Character(text.to_owned()));
        }
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let &["arn", partition, service, region, account, resource] = parts.as_slice() else {
            return Err(ArnError::Parts(text.to_owned()));
        };
        let named = [("partition", partition), ("service", service), ("resource", resource)];
        for (part, value) in named {
            if value.is_empty() {
                return Err(ArnError::Missing { text: text.to_owned(), part });
            }
        }
        let is_number = account.len() == 12 && account.bytes().all(|it| it.is_ascii_digit());
        let is_known = is_number || account.is_empty() || matches!(account, "aws" | "*");
        if !is_known || (service == "iam" && account.is_empty()) {
            return Err(ArnError::Account(text.to_owned()));
        }
        Ok(Arn {
            partition: partition.to_owned(),
            service: service.to_owned(),
            region: region.to_owned(),
            account: account.to_owned(),
            resource: resource.to_owned(),
        })
    }
}

impl fmt::Display for Arn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arn { partition, service, region, account, resource } = self;
        write!(formatter, "arn:{partition}:{service}:{region}:{account}:{resource}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_is_printed_as_it_was_read() {
        for text in [
            "arn:aws:iam::123456789012:role/a/b/name",
            "arn:aws:s3:::bucket/a:b*",
            "arn:aws:iam::aws:policy/ReadOnlyAccess",
            "arn:aws-cn:sqs:cn-north-1:123456789012:queue",
        ] {
            assert_eq!(text.parse::<Arn>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_arn_is_refused_with_a_reason() {
        for (text, says) in [
            ("", "not an ARN"),
            ("role/name", "not an ARN"),
            ("arn:aws:iam::123456789012", "not an ARN"),
            ("arn:aws::us-east-1:123456789012:x", "has no service"),
            ("arn:aws:iam::123456789012:", "has no resource"),
            ("arn:aws:iam::1234:role/x", "twelve digits"),
            ("arn:aws:iam:::role/x", "twelve digits"),
            ("arn:aws:s3:::a b", "white space"),
        ] {
            let error = text.parse::<Arn>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn path_and_name_are_what_follows_the_kind() {
        let of = |text: &str, kind: &str| {
            let arn: Arn = text.parse().unwrap();
            arn.path_and_name(kind).map(|it| (it.path.to_owned(), it.name.to_owned()))
        };
        let some = |path: &str, name: &str| Some((path.to_owned(), name.to_owned()));
        assert_eq!(of("arn:aws:iam::123456789012:role/x", "role"), some("/", "x"));
        assert_eq!(of("arn:aws:iam::123456789012:role/a/b/x", "role"), some("/a/b/", "x"));
        assert_eq!(of("arn:aws:iam::123456789012:role/x", "policy"), None);
        assert_eq!(of("arn:aws:iam::123456789012:role/x/", "role"), None);
        assert_eq!(of("arn:aws:s3::123456789012:role/x", "role"), None);
    }

    #[test]
    fn a_provider_is_named_by_its_issuer_without_scheme() {
        let arn = Arn::provider("123456789012", "https://hub:6443/issuers/a");
        let text = "arn:aws:iam::123456789012:oidc-provider/hub:6443/issuers/a";
        assert_eq!(arn.to_string(), text);
        assert_eq!(text.parse::<Arn>().unwrap(), arn);
    }
}
