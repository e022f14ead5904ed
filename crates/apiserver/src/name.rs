//! Rules for names, label keys and label values, with upstream's texts.

mod metadata;

pub(crate) use metadata::{validate_embedded_metadata, validate_metadata};

use serde_json::Value;
use std::net::IpAddr;

/// The finalizers that need not say whose they are.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

const LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
                              start and end with an alphanumeric character";

const SUBDOMAIN_LIMIT_BYTES: usize = 253;
const LABEL_LIMIT_BYTES: usize = 63;

/// How many random characters a generated name ends with.
const GENERATED_CHARACTERS: usize = 5;

/// No vowels and nothing that looks like one, so that no words come out.
const GENERATED_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Which rule the names of a kind's objects follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NameRule {
    /// Most kinds.
    #[default]
    Dns1123Subdomain,
    /// Namespaces.
    Dns1123Label,
    /// Services.
    Dns1035Label,
    /// Roles and bindings: anything that can stand in a path.
    PathSegment,
    /// IPAddresses.
    Address,
}

impl NameRule {
    /// What is wrong with a name; nothing if the list is empty.
    pub(crate) fn problems(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Dns1123Subdomain => dns1123_subdomain(name),
            NameRule::Dns1123Label => dns1123_label(name),
            NameRule::Dns1035Label => dns1035_label(name),
            NameRule::PathSegment => path_segment(name),
            NameRule::Address => address(name),
        }
    }

    /// What is wrong with a `generateName`: as a name, but it may end in a dash.
    pub(crate) fn prefix_problems(self, prefix: &str) -> Vec<String> {
        if self == NameRule::PathSegment {
            return path_characters(prefix);
        }
        // As upstream: the dash and the character before it are taken for one letter.
        match prefix.strip_suffix('-') {
            Some(stem) if !stem.is_empty() => {
                let mut characters = stem.chars();
                characters.next_back();
                self.problems(&format!("{}a", characters.as_str()))
            }
            Some(_) | None => self.problems(prefix),
        }
    }
}

/// The finalizers of an object that are neither known nor say whose they are, and where they are.
pub(crate) fn unqualified_finalizers(object: &Value) -> impl Iterator<Item = (String, &str)> {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let named = finalizers.into_iter().flatten().enumerate();
    named.filter_map(|(index, finalizer)| {
        let finalizer = finalizer.as_str()?;
        let is_fine = finalizer.contains('/') || STANDARD_FINALIZERS.contains(&finalizer);
        (!is_fine).then(|| (format!("metadata.finalizers[{index}]"), finalizer))
    })
}

/// An IP address, written the one way in which it can be compared.
pub(crate) fn address(name: &str) -> Vec<String> {
    match name.parse::<IpAddr>() {
        Err(_) => {
            vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
        }
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Ok(address) if address.to_string() != name => {
            vec![format!("must be in canonical form (\"{address}\")")]
        }
        Ok(_) => Vec::new(),
    }
}

/// A DNS subdomain: labels with dots between.
pub(crate) fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut problems = too_long(name, SUBDOMAIN_LIMIT_BYTES);
    if !is_subdomain(name) {
        problems.push(regex_text(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_FORMAT,
            &["example.com"],
        ));
    }
    problems
}

/// A DNS label: what is between the dots.
pub(crate) fn dns1123_label(name: &str) -> Vec<String> {
    let mut problems = too_long(name, LABEL_LIMIT_BYTES);
    if is_label(name) {
        return problems;
    }
    problems.push(if is_subdomain(name) {
        "must not contain dots".to_owned()
    } else {
        regex_text(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character",
            LABEL_FORMAT,
            &["my-name", "123-abc"],
        )
    });
    problems
}

/// A DNS label that starts with a letter.
pub(crate) fn dns1035_label(name: &str) -> Vec<String> {
    let mut problems = too_long(name, LABEL_LIMIT_BYTES);
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        problems.push(regex_text(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// Anything that can stand in a path as one segment.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_characters(name)
}

fn path_characters(name: &str) -> Vec<String> {
    ["/", "%"]
        .iter()
        .filter(|character| name.contains(**character))
        .map(|character| format!("may not contain '{character}'"))
        .collect()
}

/// The key of a label or an annotation, or a finalizer: a name, with a DNS subdomain and a slash
/// before it or not.
pub(crate) fn qualified_name(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parts = key.split('/');
    let first = parts.next().unwrap_or_default();
    let name = match (parts.next(), parts.next()) {
        (None, _) => first,
        (Some(name), None) => {
            if first.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let texts = dns1123_subdomain(first);
                problems.extend(texts.iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        (Some(_), Some(_)) => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                label_key_text()
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems
        .extend(too_long(name, LABEL_LIMIT_BYTES).iter().map(|text| format!("name part {text}")));
    if !is_label_text(name) {
        problems.push(format!("name part {}", label_key_text()));
    }
    problems
}

/// A label's value, which may be empty.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut problems = too_long(value, LABEL_LIMIT_BYTES);
    if !value.is_empty() && !is_label_text(value) {
        problems.push(regex_text(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// A name from a `generateName`: the base, cut so that all of it is a DNS label, and five random
/// characters.
pub(crate) fn generate_name(base: &str, mut random: impl FnMut() -> u32) -> String {
    let mut end = base.len().min(LABEL_LIMIT_BYTES - GENERATED_CHARACTERS);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    for _ in 0..GENERATED_CHARACTERS {
        let index = random() as usize % GENERATED_ALPHABET.len();
        name.push(char::from(GENERATED_ALPHABET[index]));
    }
    name
}

fn is_label(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, is_alphanumeric, |byte| is_alphanumeric(byte) || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label_text(text: &str) -> bool {
    is_framed(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// Whether a text is not empty, its ends are one sort of character and all of it is another.
fn is_framed(text: &str, is_end: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    is_end(first) && is_end(last) && bytes.iter().all(|&byte| is_inner(byte))
}

fn too_long(text: &str, limit_bytes: usize) -> Vec<String> {
    if text.len() <= limit_bytes {
        return Vec::new();
    }
    vec![format!("must be no more than {limit_bytes} bytes")]
}

fn label_key_text() -> String {
    regex_text(LABEL_KEY_TEXT, LABEL_KEY_FORMAT, &["MyName", "my.name", "123-abc"])
}

fn regex_text(text: &str, format: &str, examples: &[&str]) -> String {
    let quoted: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{text} (e.g. {}regex used for validation is '{format}')", quoted.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subdomain_is_refused_in_the_words_that_users_know() {
        assert_eq!(
            dns1123_subdomain("Bad_Name"),
            ["a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                 characters, '-' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]
        );
        assert!(dns1123_subdomain("a.b-c.9").is_empty());
        for bad in ["", "-a", "a-", "a..b", ".a", "a.", "a_b", "é"] {
            assert_eq!(dns1123_subdomain(bad).len(), 1, "{bad}");
        }
        let long = "a".repeat(254);
        assert_eq!(dns1123_subdomain(&long), ["must be no more than 253 bytes"]);
    }

    #[test]
    fn a_label_with_dots_is_refused() {
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert!(dns1123_label("1-a")[..].is_empty());
        assert_eq!(
            dns1123_label("A"),
            ["a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
                 or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"]
        );
    }

    #[test]
    fn a_service_name_starts_with_a_letter() {
        assert!(dns1035_label("a1").is_empty());
        assert_eq!(dns1035_label("1a").len(), 1);
    }

    #[test]
    fn a_role_name_may_be_anything_but_a_path() {
        assert!(path_segment("system:node").is_empty());
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
    }

    #[test]
    fn label_keys_and_values_are_checked() {
        for good in ["a", "a/b", "example.com/My_Name.1", "9"] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("a/").len(), 2);
        assert_eq!(qualified_name("a/b/c").len(), 1);
        assert!(qualified_name("A/b")[0].starts_with("prefix part a lowercase RFC 1123"));
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-a").len(), 1);
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        assert!(NameRule::Dns1123Subdomain.prefix_problems("web-").is_empty());
        assert!(!NameRule::Dns1123Subdomain.problems("web-").is_empty());
        assert!(!NameRule::Dns1123Subdomain.prefix_problems("-").is_empty());
        assert!(NameRule::PathSegment.prefix_problems("..").is_empty());
    }

    #[test]
    fn a_generated_name_is_never_longer_than_a_label() {
        let mut next = 0;
        let mut random = || {
            next += 1;
            next
        };
        assert_eq!(generate_name("web-", &mut random), "web-cdfgh");
        assert_eq!(generate_name(&"a".repeat(80), &mut random).len(), 63);
        // A cut inside a character must not panic.
        assert!(generate_name(&"é".repeat(80), &mut random).len() <= 63);
    }
}
