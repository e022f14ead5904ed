//! Field selectors: `metadata.name=a,status.phase!=Running`.

use super::{REQUIREMENTS_LIMIT, SELECTOR_LIMIT_BYTES};
use crate::status::Status;
use std::fmt;

/// Which values the fields of an object must have or must not have. An empty one selects
/// everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// One requirement of a field selector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldRequirement {
    /// The field: `metadata.name`.
    pub(crate) field: String,
    /// Whether the field must have the value, or must not.
    pub(crate) is_equal: bool,
    /// The value.
    pub(crate) value: String,
}

impl FieldSelector {
    /// Reads a selector. Errors are 400.
    pub(crate) fn parse(text: &str) -> Result<FieldSelector, Status> {
        if text.len() > SELECTOR_LIMIT_BYTES {
            let message = format!("the field selector is longer than {SELECTOR_LIMIT_BYTES} bytes");
            return Err(Status::bad_request(message));
        }
        let terms = terms(text);
        if terms.len() > REQUIREMENTS_LIMIT {
            return Err(Status::bad_request(format!(
                "the field selector has more than {REQUIREMENTS_LIMIT} requirements"
            )));
        }
        let mut requirements = Vec::with_capacity(terms.len());
        for term in terms {
            let Some((field, is_equal, value)) = split(term) else {
                return Err(Status::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            let value = unescape(value)?;
            requirements.push(FieldRequirement { field: field.to_owned(), is_equal, value });
        }
        requirements.sort();
        Ok(FieldSelector { requirements })
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements; all of them must hold.
    pub(crate) fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that a field must have: `metadata.name=a` names one object.
    pub(crate) fn exact(&self, field: &str) -> Option<&str> {
        self.requirements
            .iter()
            .find(|requirement| requirement.is_equal && requirement.field == field)
            .map(|requirement| requirement.value.as_str())
    }

    /// Refuses fields that cannot be selected by.
    pub(crate) fn only_fields(
        &self,
        is_known: impl Fn(&str) -> bool,
        refusal: impl Fn(&str) -> String,
    ) -> Result<(), Status> {
        match self.requirements.iter().find(|requirement| !is_known(&requirement.field)) {
            None => Ok(()),
            Some(unknown) => Err(Status::bad_request(refusal(&unknown.field))),
        }
    }

    /// Whether an object is selected. A field that is not there counts as empty, as upstream has
    /// it.
    pub(crate) fn matches(&self, get: impl Fn(&str) -> Option<String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = get(&requirement.field).unwrap_or_default();
            (value == requirement.value) == requirement.is_equal
        })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let sign = if requirement.is_equal { "=" } else { "!=" };
            write!(formatter, "{comma}{}{sign}", requirement.field)?;
            for character in requirement.value.chars() {
                if matches!(character, '\\' | ',' | '=') {
                    formatter.write_str("\\")?;
                }
                write!(formatter, "{character}")?;
            }
        }
        Ok(())
    }
}

/// The terms between commas that are not escaped; empty ones are dropped.
fn terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut is_escaped = false;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b',' => {
                terms.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.retain(|term| !term.is_empty());
    terms
}

/// Field, whether it must be equal, and value; split at the first operator.
fn split(term: &str) -> Option<(&str, bool, &str)> {
    for (position, _) in term.char_indices() {
        let (field, rest) = term.split_at(position);
        for (sign, is_equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(sign) {
                return Some((field, is_equal, value));
            }
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, Status> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let sequence: String = other.into_iter().collect();
                    return Err(Status::bad_request(format!(
                        "invalid field selector: invalid escape sequence: \\{sequence}"
                    )));
                }
            },
            // Upstream prints the code of the character, not the character.
            ',' | '=' => {
                return Err(Status::bad_request(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(character)
                )));
            }
            other => value.push(other),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, name: &str) -> bool {
        let selector = FieldSelector::parse(selector).expect("the test's selector is valid");
        selector.matches(|field| (field == "metadata.name").then(|| name.to_owned()))
    }

    #[test]
    fn fields_are_compared_by_all_three_signs() {
        assert!(selects("metadata.name=a", "a"));
        assert!(selects("metadata.name==a", "a"));
        assert!(!selects("metadata.name!=a", "a"));
        assert!(selects("metadata.name!=a,", "b"));
        assert!(!selects("metadata.name=a,metadata.name!=a", "a"));
        assert!(selects("", "a"));
    }

    #[test]
    fn a_field_that_is_not_there_is_empty() {
        assert!(selects("spec.x=", "a"));
        assert!(!selects("spec.x=1", "a"));
        assert!(selects("spec.x!=1", "a"));
    }

    #[test]
    fn an_exact_name_can_be_seen() {
        let parse = |text| FieldSelector::parse(text).expect("the test's selector is valid");
        assert_eq!(parse("a!=1,metadata.name=x").exact("metadata.name"), Some("x"));
        assert_eq!(parse("metadata.name!=x").exact("metadata.name"), None);
    }

    #[test]
    fn escaped_characters_belong_to_the_value() {
        let selector = FieldSelector::parse(r"a=1\,2\=3\\").expect("the test's selector is valid");
        assert_eq!(selector.requirements()[0].value, r"1,2=3\");
        assert_eq!(selector.to_string(), r"a=1\,2\=3\\");
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        let message = |text| FieldSelector::parse(text).expect_err("it is not valid").message;
        assert_eq!(message("a"), "invalid selector: 'a'; can't understand 'a'");
        assert_eq!(message(r"a=\x"), r"invalid field selector: invalid escape sequence: \x");
        assert_eq!(message("a=b=c"), "invalid field selector: unescaped character in value: 61");
        assert_eq!(message(r"a=\"), r"invalid field selector: invalid escape sequence: \");
        assert!(FieldSelector::parse(&"a".repeat(20_000)).is_err());
        assert!(FieldSelector::parse(&"a=,".repeat(2_000)).is_err());
    }

    #[test]
    fn no_text_makes_it_panic_and_what_it_prints_it_reads() {
        let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20_000 {
            let mut text = String::new();
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let alphabet: Vec<char> = r"a.=!,\é ".chars().collect();
            for shift in 0..(state % 12) {
                text.push(alphabet[(state >> (shift * 5)) as usize % alphabet.len()]);
            }
            if let Ok(selector) = FieldSelector::parse(&text) {
                let again = FieldSelector::parse(&selector.to_string());
                assert_eq!(
                    again.map(|again| again.to_string()),
                    Ok(selector.to_string()),
                    "{text}"
                );
            }
        }
    }
}
