//! What AWS's documentation says names, paths, documents and tags may be, and how many there may be.

use super::fault::Fault;
use crate::client::Tags;
use crate::document::{self, Kind};
use std::collections::BTreeSet;

/// Managed policies of one role.
pub(super) const POLICIES_PER_ROLE: usize = 10;
/// Versions of one policy.
pub(super) const VERSIONS: usize = 5;
/// Characters of a managed policy, white space not counted.
pub(super) const POLICY_SIZE: usize = 6_144;
/// Characters of a trust policy, white space not counted.
pub(super) const TRUST_SIZE: usize = 2_048;
/// Characters of all inline policies of a role together, white space not counted.
pub(super) const INLINE_SIZE: usize = 10_240;
/// Of an account. AWS's default for roles is 1,000, and can be raised to this.
pub(super) const ROLES: usize = 5_000;
/// Of an account.
pub(super) const POLICIES: usize = 5_000;
/// Of an account.
pub(super) const PROVIDERS: usize = 100;
const TAGS: usize = 50;
/// How long a session may be at most: an hour to twelve.
pub(super) const SESSION_SECONDS: std::ops::RangeInclusive<u64> = 3_600..=43_200;

/// A name of letters, digits and `_+=,.@-`.
pub(super) fn name<'a>(parameter: &str, text: &'a str, most: usize) -> Result<&'a str, Fault> {
    if text.is_empty() {
        let rule = "Member must have length greater than or equal to 1";
        return Err(Fault::validation(parameter, rule));
    }
    if text.chars().count() > most {
        let rule = format!("Member must have length less than or equal to {most}");
        return Err(Fault::validation(parameter, &rule));
    }
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || b"_+=,.@-".contains(&it);
    if !text.bytes().all(is_allowed) {
        let rule = "Member must satisfy regular expression pattern: [\\w+=,.@-]+";
        return Err(Fault::validation(parameter, rule));
    }
    Ok(text)
}

/// A path: `/`, or parts with a slash before and after.
pub(super) fn path(text: Option<&str>) -> Result<&str, Fault> {
    let text = text.unwrap_or("/");
    let is_printable = text.bytes().all(|it| (0x21..=0x7e).contains(&it));
    let is_enclosed = text == "/" || text.len() > 2 && text.starts_with('/') && text.ends_with('/');
    if is_printable && is_enclosed && text.len() <= 512 {
        return Ok(text);
    }
    let rule = "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.";
    Err(Fault::new(400, "ValidationError", rule))
}

pub(super) fn description(text: Option<&str>) -> Result<Option<String>, Fault> {
    match text {
        Some(text) if text.chars().count() > 1_000 => Err(Fault::validation(
            "Description",
            "Member must have length less than or equal to 1000",
        )),
        text => Ok(text.map(str::to_owned)),
    }
}

/// A document of a kind, within its quota. It is kept as it was written.
pub(super) fn document(text: &str, kind: Kind) -> Result<String, Fault> {
    let (quota, most) = match kind {
        Kind::Permissions => ("PolicySize", POLICY_SIZE),
        Kind::Trust => ("ACLSizePerRole", TRUST_SIZE),
    };
    document::check(text, kind).map_err(|error| Fault::malformed(&error))?;
    if document::size(text) > most {
        return Err(Fault::limit(quota, most));
    }
    Ok(text.to_owned())
}

/// A document of an inline policy: its quota is counted over all of a role.
pub(super) fn inline_document(text: &str) -> Result<String, Fault> {
    document::check(text, Kind::Permissions).map_err(|error| Fault::malformed(&error))?;
    Ok(text.to_owned())
}

/// Tags that may be: no two keys that differ in case only.
pub(super) fn tags(pairs: Vec<(String, String)>) -> Result<Tags, Fault> {
    if pairs.len() > TAGS {
        let rule = format!("Member must have length less than or equal to {TAGS}");
        return Err(Fault::validation("Tags", &rule));
    }
    let mut keys = BTreeSet::new();
    let is_allowed = |it: char| it.is_alphanumeric() || " _.:/=+-@".contains(it);
    for (key, value) in &pairs {
        if key.is_empty() || key.chars().count() > 128 || !key.chars().all(is_allowed) {
            let rule = "Member must have length between 1 and 128 and satisfy regular expression pattern: [\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]+";
            return Err(Fault::validation("Tags", rule));
        }
        if value.chars().count() > 256 || !value.chars().all(is_allowed) {
            let rule = "Member must have length less than or equal to 256 and satisfy regular expression pattern: [\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*";
            return Err(Fault::validation("Tags", rule));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return Err(Fault::invalid_input(
                "Tag keys beginning with 'aws:' are reserved for system use",
            ));
        }
        if !keys.insert(key.to_lowercase()) {
            return Err(Fault::invalid_input(
                "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
            ));
        }
    }
    Ok(pairs.into_iter().collect())
}

/// Tags with others added: a key that is there in another case is replaced.
pub(super) fn with_tags(tags: &Tags, more: Tags) -> Result<Tags, Fault> {
    let mut tags = tags.clone();
    for (key, value) in more {
        tags.retain(|old, _| old.to_lowercase() != key.to_lowercase());
        tags.insert(key, value);
    }
    if tags.len() > TAGS { Err(Fault::limit("TagsPerResource", TAGS)) } else { Ok(tags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn names_and_paths_are_as_documented() {
        assert!(name("RoleName", &"a".repeat(64), 64).is_ok());
        for wrong in ["", "a b", "a/b", "a:b", &"a".repeat(65)] {
            assert_eq!(name("RoleName", wrong, 64).unwrap_err().code, "ValidationError", "{wrong}");
        }
        assert_eq!(path(None), Ok("/"));
        assert_eq!(path(Some("/a/b/")), Ok("/a/b/"));
        for wrong in ["", "a", "/a", "a/", "//é/", "/a b/"] {
            assert_eq!(path(Some(wrong)).unwrap_err().code, "ValidationError", "{wrong}");
        }
    }

    #[test]
    fn tags_have_no_case() {
        assert_eq!(tags(vec![pair("a", "1"), pair("A", "2")]).unwrap_err().code, "InvalidInput");
        assert_eq!(tags(vec![pair("aws:x", "1")]).unwrap_err().code, "InvalidInput");
        assert_eq!(tags(vec![pair("a*", "1")]).unwrap_err().code, "ValidationError");
        let old = Tags::from([pair("Owner", "me")]);
        let new = with_tags(&old, Tags::from([pair("owner", "you")])).unwrap();
        assert_eq!(new, Tags::from([pair("owner", "you")]));
        let some = |from: usize, to: usize| -> Vec<(String, String)> {
            (from..to).map(|index| pair(&format!("k{index}"), "")).collect()
        };
        assert_eq!(tags(some(0, 51)).unwrap_err().code, "ValidationError");
        let (old, more) = (tags(some(0, 30)).unwrap(), tags(some(30, 51)).unwrap());
        assert_eq!(with_tags(&old, more).unwrap_err().code, "LimitExceeded");
    }

    #[test]
    fn the_size_of_a_document_is_counted_without_white_space() {
        let of = |size: usize| {
            let frame = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::"}]}"#;
            let fill = "x".repeat(size - frame.len());
            frame.replace(":::", &format!(":::{fill}")).replace(',', " ,\n  ")
        };
        assert!(document(&of(POLICY_SIZE), Kind::Permissions).is_ok());
        let fault = document(&of(POLICY_SIZE + 1), Kind::Permissions).unwrap_err();
        assert_eq!(fault.code, "LimitExceeded");
    }
}
