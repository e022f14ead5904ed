//! Conditions: what is true of an object, since when, and why.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;

/// A condition as a controller finds it; since when it holds is worked out by [`with`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `Placed`
    pub kind: &'static str,
    /// Whether it holds; None: nobody can tell.
    pub holds: Option<bool>,
    /// One word: `UnknownCluster`.
    pub reason: &'static str,
    /// A sentence that says what to do next, where there is something to do.
    pub message: String,
}

impl Finding {
    /// It holds.
    pub fn holds(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Finding { kind, holds: Some(true), reason, message: message.into() }
    }

    /// It does not hold.
    pub fn fails(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Finding { kind, holds: Some(false), reason, message: message.into() }
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
    (now, generation): (Timestamp, Option<i64>),
) -> Vec<Condition> {
    let before = find(conditions, finding.kind);
    let unchanged = before.filter(|condition| condition.status == finding.status());
    let found = Condition {
        type_: finding.kind.to_owned(),
        status: finding.status().to_owned(),
        reason: finding.reason.to_owned(),
        message: finding.message.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> (Timestamp, Option<i64>) {
        (Timestamp::from_second(seconds).expect("a time"), Some(1))
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let first = with(&[], &Finding::fails("Placed", "NoCluster", "none"), at(1));
        let again = with(&first, &Finding::fails("Placed", "NoneFits", "a is full"), at(2));
        assert_eq!(again[0].last_transition_time.0.as_second(), 1);
        assert_eq!(again[0].reason, "NoneFits");
        let turned = with(&again, &Finding::holds("Placed", "Granted", "a"), at(3));
        assert_eq!(turned[0].last_transition_time.0.as_second(), 3);
        assert!(is_true(&turned, "Placed"));
    }
}
