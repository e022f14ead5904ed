//! What policies decide: a Deny that matches wins, then an Allow that matches, else nothing is allowed.

use crate::clock::seconds_of;
use crate::document::{Document, Effect, Patterns, Principals, Statement, bare_operator};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// What policies say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed, and nothing denies it.
    Allowed,
    /// Nothing allows it.
    ImplicitDeny,
    /// A statement denies it.
    ExplicitDeny,
}

/// What is known of a request: keys in small letters, and their values.
pub(super) type Facts = BTreeMap<String, Vec<String>>;

/// What policies are asked.
pub(super) struct Question<'a> {
    pub(super) action: &'a str,
    /// None where documents have no resources: trust.
    pub(super) resource: Option<&'a str>,
    /// None where documents have no principals: permissions.
    pub(super) provider: Option<&'a str>,
    pub(super) facts: &'a Facts,
}

/// What some documents decide together.
pub(super) fn decide<'a>(
    documents: impl IntoIterator<Item = &'a Document>,
    question: &Question<'_>,
) -> Decision {
    let mut decision = Decision::ImplicitDeny;
    for statement in documents.into_iter().flat_map(|document| &document.statements) {
        if !applies(statement, question) {
            continue;
        }
        match statement.effect {
            Effect::Deny => return Decision::ExplicitDeny,
            Effect::Allow => decision = Decision::Allowed,
        }
    }
    decision
}

fn applies(statement: &Statement, question: &Question<'_>) -> bool {
    let action = question.action.to_ascii_lowercase();
    fits(&statement.action, &action)
        && resource_fits(statement.resource.as_ref(), question.resource)
        && principal_fits(statement.principal.as_ref(), question.provider)
        && statement.condition.iter().all(|(operator, keys)| {
            keys.iter().all(|(key, values)| {
                let known = question.facts.get(key).map(Vec::as_slice);
                holds(&Test { operator, values, known }, statement.effect)
            })
        })
}

fn resource_fits(patterns: Option<&Patterns>, resource: Option<&str>) -> bool {
    match (patterns, resource) {
        (Some(patterns), Some(resource)) => fits(patterns, resource),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn principal_fits(principals: Option<&Principals>, provider: Option<&str>) -> bool {
    match (principals, provider) {
        (Some(principals), Some(provider)) => {
            let has = |sort: &str, name: &str| {
                principals.any.get(sort).is_some_and(|names| names.contains(name))
            };
            // `*` is everybody, whoever vouches for them.
            let is_named = has("Federated", provider) || has("AWS", "*");
            is_named != principals.is_not
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn fits(patterns: &Patterns, text: &str) -> bool {
    patterns.any.iter().any(|pattern| is_like(pattern, text)) != patterns.is_not
}

/// One key of a condition.
struct Test<'a> {
    operator: &'a str,
    values: &'a BTreeSet<String>,
    known: Option<&'a [String]>,
}

/// Whether a condition holds. What cannot be evaluated here allows nothing and denies.
fn holds(test: &Test<'_>, effect: Effect) -> bool {
    let bare = bare_operator(test.operator);
    if bare == "Null" {
        let is_absent = test.known.is_none_or(<[String]>::is_empty);
        return test.values.iter().any(|value| (value == "true") == is_absent);
    }
    let quantifier = test.operator.split_once(':').map(|(quantifier, _)| quantifier);
    let (positive, is_not) = positive(bare);
    let Some(known) = test.known.filter(|known| !known.is_empty()) else {
        // An absent key fits nothing, so it does not fit what must not fit.
        return is_not || test.operator.ends_with("IfExists") || quantifier == Some("ForAllValues");
    };
    let one = |known: &String| -> Option<bool> {
        let mut any = false;
        for value in test.values {
            any |= compare(positive, known, value)?;
        }
        Some(any != is_not)
    };
    let verdicts: Option<Vec<bool>> = known.iter().map(one).collect();
    let Some(verdicts) = verdicts else { return effect == Effect::Deny };
    match quantifier {
        Some("ForAllValues") => verdicts.into_iter().all(|it| it),
        Some(_) => verdicts.into_iter().any(|it| it),
        // Without a quantifier a key has one value; of several none may be forbidden.
        None if is_not => verdicts.into_iter().all(|it| it),
        None => verdicts.into_iter().any(|it| it),
    }
}

/// An operator without its negation, and whether it had one.
fn positive(operator: &str) -> (&str, bool) {
    match operator {
        "StringNotEquals" => ("StringEquals", true),
        "StringNotEqualsIgnoreCase" => ("StringEqualsIgnoreCase", true),
        "StringNotLike" => ("StringLike", true),
        "NumericNotEquals" => ("NumericEquals", true),
        "DateNotEquals" => ("DateEquals", true),
        "ArnNotEquals" | "ArnNotLike" => ("ArnLike", true),
        other => (other, false),
    }
}

/// Whether what is known compares so with a value; None if it cannot be said.
fn compare(operator: &str, known: &str, value: &str) -> Option<bool> {
    let numbers = || -> Option<Ordering> {
        known.parse::<f64>().ok()?.partial_cmp(&value.parse::<f64>().ok()?)
    };
    let dates = || Some(seconds_of(known)?.cmp(&seconds_of(value)?));
    Some(match operator {
        "StringEquals" => known == value,
        "StringEqualsIgnoreCase" | "Bool" => known.eq_ignore_ascii_case(value),
        "StringLike" => is_like(value, known),
        "ArnEquals" | "ArnLike" => is_arn_like(value, known),
        "NumericEquals" => numbers()?.is_eq(),
        "NumericLessThan" => numbers()?.is_lt(),
        "NumericLessThanEquals" => numbers()?.is_le(),
        "NumericGreaterThan" => numbers()?.is_gt(),
        "NumericGreaterThanEquals" => numbers()?.is_ge(),
        "DateEquals" => dates()?.is_eq(),
        "DateLessThan" => dates()?.is_lt(),
        "DateLessThanEquals" => dates()?.is_le(),
        "DateGreaterThan" => dates()?.is_gt(),
        "DateGreaterThanEquals" => dates()?.is_ge(),
        _ => return None,
    })
}

/// Part by part: a star does not reach over a colon, save in the last part.
fn is_arn_like(pattern: &str, text: &str) -> bool {
    let (patterns, texts): (Vec<_>, Vec<_>) =
        (pattern.splitn(6, ':').collect(), text.splitn(6, ':').collect());
    patterns.len() == texts.len()
        && patterns.iter().zip(texts).all(|(pattern, text)| is_like(pattern, text))
}

/// Whether a text is like a pattern: `*` is any characters, `?` is one.
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    // Where the last star is, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = place + 1;
                    from = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect()
    }

    fn asked(statements: &str, action: &str, facts: &Facts) -> Decision {
        let text = format!(r#"{{"Version": "2012-10-17", "Statement": [{statements}]}}"#);
        let document = Document::read(&text).unwrap();
        let resource = Some("arn:aws:s3:::bucket/key");
        decide([&document], &Question { action, resource, provider: None, facts })
    }

    const ALLOW: &str =
        r#"{"Effect": "Allow", "Action": "s3:Get*", "Resource": "arn:aws:s3:::bucket/*"}"#;

    #[test]
    fn a_deny_wins_over_an_allow() {
        let none = facts(&[]);
        assert_eq!(asked(ALLOW, "s3:GetObject", &none), Decision::Allowed);
        assert_eq!(asked(ALLOW, "S3:getobject", &none), Decision::Allowed);
        assert_eq!(asked(ALLOW, "s3:PutObject", &none), Decision::ImplicitDeny);
        let deny = r#"{"Effect": "Deny", "Action": "*", "Resource": "*"}"#;
        assert_eq!(
            asked(&format!("{ALLOW}, {deny}"), "s3:GetObject", &none),
            Decision::ExplicitDeny
        );
        let others =
            r#"{"Effect": "Allow", "NotAction": "iam:*", "NotResource": "arn:aws:s3:::x"}"#;
        assert_eq!(asked(others, "s3:GetObject", &none), Decision::Allowed);
        assert_eq!(asked(others, "iam:GetRole", &none), Decision::ImplicitDeny);
    }

    #[test]
    fn a_fence_denies_sessions_that_were_issued_before_it() {
        let fence = r#"{"Effect": "Deny", "Action": "*", "Resource": "*",
            "Condition": {"DateLessThan": {"aws:TokenIssueTime": "2026-11-17T08:00:00Z"}}}"#;
        let both = format!("{ALLOW}, {fence}");
        let at = |time: &str| asked(&both, "s3:GetObject", &facts(&[("aws:tokenissuetime", time)]));
        assert_eq!(at("2026-11-17T07:59:59Z"), Decision::ExplicitDeny);
        assert_eq!(at("2026-11-17T08:00:00Z"), Decision::Allowed);
        // Keys that do not expire have no issue time, and are not meant.
        assert_eq!(asked(&both, "s3:GetObject", &facts(&[])), Decision::Allowed);
    }

    fn condition(operator: &str, values: &str, known: &[(&str, &str)]) -> bool {
        let condition = format!(r#""Condition": {{"{operator}": {{"K": {values}}}}}, "Effect""#);
        let statement = ALLOW.replace("\"Effect\"", &condition);
        asked(&statement, "s3:GetObject", &facts(known)) == Decision::Allowed
    }

    #[test]
    fn conditions_hold_as_documented() {
        for (operator, values, known, holds) in [
            ("StringEquals", r#"["a", "b"]"#, Some("b"), true),
            ("StringEquals", r#""a""#, Some("A"), false),
            ("StringEquals", r#""a""#, None, false),
            ("StringEqualsIfExists", r#""a""#, None, true),
            ("StringNotEquals", r#"["a", "b"]"#, Some("b"), false),
            ("StringNotEquals", r#"["a", "b"]"#, Some("c"), true),
            ("StringNotEquals", r#""a""#, None, true),
            ("StringEqualsIgnoreCase", r#""a""#, Some("A"), true),
            ("StringLike", r#""a*c""#, Some("abbc"), true),
            ("StringLike", r#""a?c""#, Some("abbc"), false),
            ("NumericLessThan", "10", Some("9"), true),
            ("NumericGreaterThanEquals", "10", Some("9"), false),
            ("NumericLessThan", r#""x""#, Some("9"), false),
            ("DateGreaterThan", r#""2020-01-01""#, Some("2020-01-02T00:00:00Z"), true),
            ("Bool", "true", Some("true"), true),
            ("Null", "true", None, true),
            ("Null", "false", None, false),
            ("Null", "false", Some("x"), true),
            ("ForAllValues:StringEquals", r#""a""#, None, true),
            ("ForAnyValue:StringEquals", r#""a""#, None, false),
            ("ArnLike", r#""arn:aws:iam::*:role/x*""#, Some("arn:aws:iam::1:role/x/y"), true),
            ("ArnLike", r#""arn:aws:*:role/x""#, Some("arn:aws:iam::1:role/x"), false),
            ("IpAddress", r#""10.0.0.0/8""#, Some("10.1.1.1"), false),
        ] {
            let known: Vec<_> = known.iter().map(|known| ("k", *known)).collect();
            assert_eq!(condition(operator, values, &known), holds, "{operator} {values} {known:?}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_denies() {
        let deny = r#"{"Effect": "Deny", "Action": "*", "Resource": "*",
            "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}"#;
        let known = facts(&[("aws:sourceip", "192.0.2.1")]);
        let both = format!("{ALLOW}, {deny}");
        assert_eq!(asked(&both, "s3:GetObject", &known), Decision::ExplicitDeny);
    }

    #[test]
    fn patterns_with_many_stars_end() {
        assert!(is_like("*", ""));
        assert!(is_like("a**b", "ab"));
        assert!(!is_like("a*b", "abc"));
        assert!(!is_like(&"*a".repeat(40), &"a".repeat(39)));
        assert!(is_like(&"*a".repeat(40), &"a".repeat(400)));
    }
}
