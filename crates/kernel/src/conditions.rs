//! Conditions: what is true of an object, since when, and why.

use crate::Word;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition as objects have it: that of Kubernetes, with the next step in a field of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about: `Placed`.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in one word: `UnknownCluster`.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// What a person does next, a command where there is one; absent if nobody has to do anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub next: Option<String>,
    /// Since when it has this status.
    pub last_transition_time: Time,
    /// The metadata.generation that it was found for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,
}

/// A condition as a controller finds it; since when it holds is worked out by [`with`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Finding {
    /// `Placed`
    #[serde(deserialize_with = "crate::word")]
    pub kind: Word,
    /// Whether it holds; None: nobody can tell.
    pub holds: Option<bool>,
    /// One word: `UnknownCluster`.
    #[serde(deserialize_with = "crate::word")]
    pub reason: Word,
    /// Why, in a sentence.
    pub message: String,
    /// What a person does next, a command where there is one; None: nobody has to do anything.
    pub next: Option<String>,
}

impl Finding {
    /// It holds.
    pub fn holds(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Finding { kind, holds: Some(true), reason, message: message.into(), next: None }
    }

    /// It does not hold.
    pub fn fails(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Finding { kind, holds: Some(false), reason, message: message.into(), next: None }
    }

    /// The same, with what a person does next.
    #[must_use]
    pub fn next(self, next: impl Into<Option<String>>) -> Self {
        Finding { next: next.into(), ..self }
    }

    fn status(&self) -> &'static str {
        match self.holds {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        }
    }

    /// Whether these conditions say it already, word for word.
    pub fn is_in(&self, conditions: &[Condition]) -> bool {
        conditions.iter().any(|condition| {
            condition.type_ == self.kind
                && condition.status == self.status()
                && condition.reason == self.reason
                && condition.message == self.message
                && condition.next == self.next
        })
    }
}

/// The condition of a kind, if it was ever found.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether a condition holds; one that nobody found does not.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// The conditions with one more finding. One that holds as before keeps its time.
pub fn with(
    conditions: &[Condition],
    finding: &Finding,
    now: Timestamp,
    generation: Option<i64>,
) -> Vec<Condition> {
    let before = find(conditions, finding.kind);
    let unchanged = before.filter(|condition| condition.status == finding.status());
    let found = Condition {
        type_: finding.kind.to_owned(),
        status: finding.status().to_owned(),
        reason: finding.reason.to_owned(),
        message: finding.message.clone(),
        next: finding.next.clone(),
        observed_generation: generation,
        last_transition_time: match unchanged {
            Some(condition) => condition.last_transition_time.clone(),
            None => Time(now),
        },
    };
    let mut all: Vec<Condition> = conditions.to_vec();
    match all.iter_mut().find(|condition| condition.type_ == finding.kind) {
        Some(place) => *place = found,
        None => all.push(found),
    }
    all
}

/// The conditions with several findings, one after the other.
pub fn with_all(
    conditions: &[Condition],
    findings: &[Finding],
    now: Timestamp,
    generation: Option<i64>,
) -> Vec<Condition> {
    findings.iter().fold(conditions.to_vec(), |all, found| with(&all, found, now, generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let first = with(&[], &Finding::fails("Placed", "NoCluster", "none"), at(1), Some(1));
        let again =
            with(&first, &Finding::fails("Placed", "NoneFits", "a is full"), at(2), Some(1));
        assert_eq!(again[0].last_transition_time.0.as_second(), 1);
        assert_eq!(again[0].reason, "NoneFits");
        let turned = with(&again, &Finding::holds("Placed", "Granted", "a"), at(3), Some(1));
        assert_eq!(turned[0].last_transition_time.0.as_second(), 3);
        assert!(is_true(&turned, "Placed"));
    }

    #[test]
    fn of_two_findings_of_one_kind_the_last_one_stays() {
        let findings = [
            Finding::fails("Placed", "NoCluster", "none"),
            Finding::holds("Running", "Running", "all pods run"),
            Finding::holds("Placed", "Granted", "a"),
        ];
        let found = with_all(&[], &findings, at(1), Some(2));
        let said: Vec<(&str, &str)> =
            found.iter().map(|found| (&*found.type_, &*found.reason)).collect();
        assert_eq!(said, [("Placed", "Granted"), ("Running", "Running")]);
        // What is found again stays as it was.
        assert_eq!(with_all(&found, &findings[1..], at(9), Some(2)), found);
    }
}
