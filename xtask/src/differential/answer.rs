//! An answer without what two servers never have in common: times, versions, identifiers.

use anyhow::Context;
use serde_json::Value;
use std::fmt;

/// What a server answered.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    warnings: Vec<String>,
    body: Value,
}

/// How two answers differ; answers that differ in the same way are of one class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Difference {
    Status {
        theirs: u16,
        ours: u16,
        reason: String,
    },
    /// The first place where they differ, without numbers and names.
    Body {
        kind: String,
        place: String,
    },
    Warnings,
}

impl Difference {
    pub(super) fn is_status(&self) -> bool {
        matches!(self, Difference::Status { .. })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Status { theirs, ours, reason } => {
                write!(f, "status {theirs}, here {ours} ({reason})")
            }
            Difference::Body { kind, place } => write!(f, "{kind} {place}"),
            Difference::Warnings => write!(f, "warnings"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.body.to_string();
        let short: String = text.chars().take(600).collect();
        write!(f, "{} {short} {}", self.status, self.warnings.join("; "))
    }
}

impl Answer {
    pub(super) fn read(text: &str) -> anyhow::Result<Answer> {
        let (head, body) = text.split_once("\r\n\r\n").context("no HTTP")?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).context("no status")?;
        let warnings = head.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("warning").then(|| value.trim().to_owned())
        });
        let warnings = warnings.collect();
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
        Ok(Answer { status, warnings, body })
    }

    /// If it is the object at this path: its version and UID.
    pub(super) fn is_of(&self, path: &str) -> Option<(String, (String, String))> {
        let metadata = &self.body["metadata"];
        let name = metadata["name"].as_str()?;
        let text = |name: &str| metadata[name].as_str().map(str::to_owned);
        let is_it = path.rsplit('/').next() == Some(name);
        is_it.then_some((path.to_owned(), (text("resourceVersion")?, text("uid")?)))
    }
}

/// How they differ, if they do.
pub(super) fn difference(theirs: &Answer, ours: &Answer) -> Option<Difference> {
    if theirs.status != ours.status {
        let reason = |answer: &Answer| answer.body["reason"].as_str().unwrap_or("-").to_owned();
        let reason = format!("{}, here {}", reason(theirs), reason(ours));
        return Some(Difference::Status { theirs: theirs.status, ours: ours.status, reason });
    }
    let (left, right) = (normal(theirs), normal(ours));
    if let Some(mut place) = first(&left, &right, "") {
        let kind = left["kind"].as_str().unwrap_or("-").to_owned();
        if place == ".message" {
            place = format!(".message: {}", pattern(left["message"].as_str().unwrap_or_default()));
        }
        return Some(Difference::Body { kind, place });
    }
    (theirs.warnings != ours.warnings).then_some(Difference::Warnings)
}

/// Fields that no two servers give the same value.
const OWN: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "continue",
    "remainingItemCount",
    "ca.crt",
];

fn normal(answer: &Answer) -> Value {
    let mut body = answer.body.clone();
    blank(&mut body);
    body
}

fn blank(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                // Each project describes things in its own words.
                let is_prose = name.ends_with("description") && field.is_string();
                if is_prose || OWN.contains(&&**name) && !field.is_object() {
                    *field = Value::from("-");
                } else if name == "message" && field.is_string() {
                    *field = Value::from(words(field.as_str().unwrap_or_default()));
                } else {
                    blank(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blank),
        Value::String(text) if is_uid(text) => *text = "-".to_owned(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// A message without the identifiers and versions in it.
fn words(message: &str) -> String {
    let is_own = |word: &str| {
        let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        is_uid(word) || (word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // A key of etcd is an identifier, too.
    let message = match (message.find("StorageError: "), message.find("AdditionalErrorMsg: ")) {
        (Some(start), Some(end)) if start < end => {
            format!("{}{}", &message[..start], &message[end + "AdditionalErrorMsg: ".len()..])
        }
        _ => message.to_owned(),
    };
    let words = message.split(' ').map(|word| if is_own(word) { "-" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

fn is_uid(word: &str) -> bool {
    word.len() == 36 && word.matches('-').count() == 4
}

/// The beginning of a message, without what it quotes.
fn pattern(message: &str) -> String {
    let plain: Vec<&str> = message.split('"').step_by(2).collect();
    plain.join("_").chars().take(90).collect()
}

/// The first place where they differ.
fn first(left: &Value, right: &Value, at: &str) -> Option<String> {
    match (left, right) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let names = theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let at = format!("{at}.{}", plain(name));
                match (theirs.get(name), ours.get(name)) {
                    (Some(left), Some(right)) => first(left, right, &at),
                    (Some(_), None) => Some(format!("{at}: not here")),
                    (None, _) => Some(format!("{at}: only here")),
                }
            })
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            let mut pairs = theirs.iter().zip(ours);
            pairs.find_map(|(left, right)| first(left, right, &format!("{at}[]")))
        }
        (left, right) => (left != right).then(|| at.to_owned()),
    }
}

/// Keys of managedFields have names in them.
fn plain(name: &str) -> &str {
    match name.split_once(':') {
        Some((kind @ ("k" | "v"), _)) => kind,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(status: u16, body: Value) -> Answer {
        Answer { status, warnings: Vec::new(), body }
    }

    #[test]
    fn times_versions_and_identifiers_make_no_difference() {
        let one =
            json!({"metadata": {"uid": "a", "resourceVersion": "1"}, "message": "has 12345 now"});
        let two =
            json!({"metadata": {"uid": "b", "resourceVersion": "2"}, "message": "has 999999 now"});
        assert_eq!(difference(&answer(200, one), &answer(200, two)), None);
    }

    #[test]
    fn messages_that_differ_are_one_class_whatever_they_quote() {
        let status = |name: &str| {
            answer(404, json!({"kind": "Status", "message": format!("\"{name}\" is gone")}))
        };
        let ours = answer(404, json!({"kind": "Status", "message": "gone"}));
        let found =
            ["a", "b"].map(|name| difference(&status(name), &ours).map(|it| it.to_string()));
        assert_eq!(found[0].as_deref(), Some("Status .message: _ is gone"));
        assert_eq!(found[0], found[1]);
    }

    #[test]
    fn the_first_place_where_they_differ_is_named_without_names_and_numbers() {
        let one = json!({"kind": "Pod", "spec": {"containers": [{"name": "a"}, {"name": "b", "tty": true}]}});
        let two = json!({"kind": "Pod", "spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        let found =
            difference(&answer(200, one.clone()), &answer(200, two)).map(|it| it.to_string());
        assert_eq!(found.as_deref(), Some("Pod .spec.containers[].tty: not here"));
        let found =
            difference(&answer(201, one.clone()), &answer(422, one)).map(|it| it.to_string());
        assert_eq!(found.as_deref(), Some("status 201, here 422 (-, here -)"));
    }
}
