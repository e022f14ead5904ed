//! Bounds on values: what a custom kind's schema asks of a value beyond its form.

use crate::schema::compiled::{Slot, compile};
use crate::schema::rules::Rule;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// What is asked of a value beyond its form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    /// `int32`, `int64`, `byte`, `date-time` and so on, as the schema spells it. Unknown ones mean
    /// nothing.
    pub format: Option<Arc<str>>,
    /// The only values that may be; empty for any.
    pub enumeration: Vec<Value>,
    /// The smallest number.
    pub minimum: Option<Limit>,
    /// The largest number.
    pub maximum: Option<Limit>,
    /// The number is a whole multiple of this.
    pub multiple_of: Option<f64>,
    /// The fewest characters.
    pub min_length: Option<u64>,
    /// The most characters.
    pub max_length: Option<u64>,
    /// What the text must match somewhere.
    pub pattern: Option<Pattern>,
    /// The fewest elements.
    pub min_items: Option<u64>,
    /// The most elements.
    pub max_items: Option<u64>,
    /// The fewest fields.
    pub min_properties: Option<u64>,
    /// The most fields.
    pub max_properties: Option<u64>,
    /// All of these must hold too.
    pub all_of: Vec<Constraint>,
    /// At least one of these must hold.
    pub any_of: Vec<Constraint>,
    /// Exactly one of these must hold.
    pub one_of: Vec<Constraint>,
    /// This must not hold.
    pub not: Option<Box<Constraint>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// No type was given, so a value of any type may stand here. The form then only tells what is
    /// kept of it.
    pub accepts_any_type: bool,
}

/// A bound on a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    /// The bound.
    pub value: f64,
    /// Whether the bound itself is outside.
    pub is_exclusive: bool,
}

/// What `allOf`, `anyOf`, `oneOf` and `not` say. They bound values that are described elsewhere, so
/// they have no form of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constraint {
    /// The bounds on the value itself.
    pub checks: Checks,
    /// The fields that must be there, if the value is an object.
    pub required: Vec<Arc<str>>,
    /// The bounds on its fields.
    pub fields: BTreeMap<Arc<str>, Constraint>,
    /// The bounds on its elements.
    pub items: Option<Box<Constraint>>,
}

/// A regular expression, in the dialect of upstream (Go's RE2).
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    source: Arc<str>,
    max_bytes: usize,
    slot: Arc<Slot>,
}

/// What nothing matches, in the place of a pattern that cannot be compiled any more.
static NOTHING: LazyLock<Arc<Regex>> = LazyLock::new(|| {
    Arc::new(Regex::new("[^\\s\\S]").expect("it is a constant, and a test uses it"))
});

impl Pattern {
    /// Compiles a pattern. The compiled form takes at most `max_bytes`.
    pub(crate) fn new(source: &str, max_bytes: usize) -> Result<Self, String> {
        let compiled = compile(&in_our_dialect(source), max_bytes);
        let (regex, bytes) = compiled.map_err(|error| error.to_string())?;
        let slot = Arc::<Slot>::default();
        slot.put(&regex, bytes);
        Ok(Pattern { source: source.into(), max_bytes, slot })
    }

    /// As the schema has it.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether it can be used at once.
    pub(crate) fn is_compiled(&self) -> bool {
        self.slot.get().is_some()
    }

    /// The compiled pattern. It is compiled again if it was forgotten meanwhile.
    pub(crate) fn regex(&self) -> Arc<Regex> {
        if let Some(regex) = self.slot.get() {
            return regex;
        }
        match compile(&in_our_dialect(&self.source), self.max_bytes) {
            Ok((regex, bytes)) => {
                self.slot.put(&regex, bytes);
                regex
            }
            // It was compiled before, so this does not happen.
            Err(_) => Arc::clone(&NOTHING),
        }
    }
}

/// Rewrites a pattern so that our engine reads it as Go's does: the classes `\d`, `\w`, `\s` and
/// `\b` are of ASCII, brackets do not nest, and there is no arithmetic of classes.
fn in_our_dialect(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len() + 16);
    let mut in_class = false;
    let mut at = 0;
    while at < characters.len() {
        let character = characters[at];
        let next = characters.get(at + 1).copied();
        at += 1;
        match (character, next) {
            ('\\', Some(escaped)) => {
                at += 1;
                push_escape(&mut out, escaped);
            }
            ('[', _) if in_class => at += named_class(&characters[at..], &mut out),
            ('[', _) => {
                in_class = true;
                out.push('[');
                at += class_start(&characters[at..], &mut out);
            }
            (']', _) if in_class => {
                in_class = false;
                out.push(']');
            }
            ('&' | '~', _) if in_class => {
                out.push('\\');
                out.push(character);
            }
            ('-', Some('-')) if in_class => {
                out.push_str("-\\-");
                at += 1;
            }
            ('{', _) if !in_class && !is_repetition(&characters[at..]) => out.push_str("\\{"),
            _ => out.push(character),
        }
    }
    out
}

/// The first `]` of a class, behind an optional `^`, is a letter like any other. Says how much was
/// taken.
fn class_start(rest: &[char], out: &mut String) -> usize {
    let mut taken = 0;
    if rest.first() == Some(&'^') {
        out.push('^');
        taken = 1;
    }
    if rest.get(taken) == Some(&']') {
        out.push_str("\\]");
        taken += 1;
    }
    taken
}

/// What follows a `[` within a class: the rest of a named class such as `[:alpha:]`, or else the bracket is
/// a letter like any other. Says how much was taken.
fn named_class(rest: &[char], out: &mut String) -> usize {
    let is_name = |c: &char| c.is_ascii_alphabetic() || *c == '^';
    let name = rest.iter().skip(1).take_while(|c| is_name(c)).count();
    let is_named = rest.first() == Some(&':') && rest[name + 1..].starts_with(&[':', ']']);
    if !is_named {
        out.push_str("\\[");
        return 0;
    }
    let taken = 1 + name + 2;
    out.push('[');
    out.extend(&rest[..taken]);
    taken
}

fn push_escape(out: &mut String, escaped: char) {
    match escaped {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\x0C\\r ]"),
        'S' => out.push_str("[^\\t\\n\\x0C\\r ]"),
        'b' => out.push_str("(?-u:\\b)"),
        'B' => out.push_str("(?-u:\\B)"),
        '<' | '>' => out.push(escaped),
        other => {
            out.push('\\');
            out.push(other);
        }
    }
}

/// Whether what follows a `{` makes it a repetition; else it is a letter like any other.
fn is_repetition(rest: &[char]) -> bool {
    let Some(end) = rest.iter().position(|c| *c == '}') else { return false };
    let inside = &rest[..end];
    let is_number = |part: &[char]| !part.is_empty() && part.iter().all(char::is_ascii_digit);
    match inside.iter().position(|c| *c == ',') {
        None => is_number(inside),
        Some(comma) => {
            let (low, high) = (&inside[..comma], &inside[comma + 1..]);
            is_number(low) && (high.is_empty() || is_number(high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern, 1 << 20).expect("the pattern compiles").regex().is_match(text)
    }

    #[test]
    fn a_class_may_end_with_a_colon_and_have_a_name_in_it() {
        let arn = "^arn:[^:]*:[^:]*:[^:]*:[^:]*:";
        assert!(matches(arn, "arn:aws:s3:::bucket/*") && !matches(arn, "arn:aws:s3"));
        assert!(matches("^[a:]+$", "a:a") && !matches("^[a:]+$", "]"));
        assert!(matches("^[[:digit:]x]+$", "1x2") && !matches("^[[:digit:]x]+$", ":"));
        assert!(matches("^[[:^digit:]]+$", "ab") && !matches("^[[:^digit:]]+$", "1"));
        assert!(matches("^[[:x]+$", "[:x") && !matches("^[[:x]+$", "]"));
        assert!(Pattern::new("[[", 1 << 20).is_err());
    }

    #[test]
    fn digits_are_those_of_ascii() {
        assert!(matches(r"^\d+$", "42"));
        assert!(!matches(r"^\d+$", "٤٢"));
        assert!(matches(r"^[\d.]+$", "4.2"));
        assert!(matches(r"^\w+\s\w+$", "a b"));
    }

    #[test]
    fn brackets_and_braces_may_be_letters() {
        assert!(matches(r"^[[]a[]]$", "[a]"));
        assert!(matches(r"^[^]]+$", "abc"));
        assert!(matches(r"^{a}$", "{a}"));
        assert!(matches(r"^a{2,3}$", "aaa"));
        assert!(matches(r"^[a&&b]+$", "a&b"));
        assert!(matches(r"^[[:alpha:]]+$", "abc"));
        assert!(matches(r"^[+--]$", ","));
    }

    #[test]
    fn a_pattern_that_would_grow_without_bound_is_refused() {
        assert!(Pattern::new(r"(\pL{1000}){1000}", 1 << 20).is_err());
        assert!(Pattern::new(r"(", 1 << 20).is_err());
        assert!(Pattern::new(r"(?=a)", 1 << 20).is_err());
    }
}
