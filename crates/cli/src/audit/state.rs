//! What the hub says of the audit of its fleet: written by `up`, read by `status`.

use interlock_programs::audit::Report;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where the state of the audit is at the hub: a ConfigMap of this name.
pub(crate) const NAME: &str = "interlock-audit";
/// The key in it.
pub(crate) const KEY: &str = "state";

/// What the hub says of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// When this was written.
    pub(crate) now: Timestamp,
    /// Since when every promise is audited without a gap; None: no step was taken.
    pub(crate) since: Option<Timestamp>,
    /// How many steps were judged.
    pub(crate) steps: u64,
    /// How many are missing in the log.
    pub(crate) missing: u64,
    /// How many are not explained.
    pub(crate) broken: u64,
    /// The condition `Audited`: False once a step is not explained.
    pub(crate) condition: Audited,
    /// The first step that is not explained, without its facts: those are in the log.
    pub(crate) first: Option<Value>,
}

/// The condition of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Audited {
    /// `True` or `False`
    pub(crate) status: String,
    /// `Explained`, `NotExplained` or `LogUnreadable`
    pub(crate) reason: String,
    /// The sentence.
    pub(crate) message: String,
}

impl State {
    /// What the hub shows of an audit.
    pub(crate) fn of(report: &Report, now: Timestamp) -> State {
        let since = report.promises.iter().map(|kept| kept.since).max().flatten();
        let first = report.first.as_ref().map(|first| {
            json!({
                "promise": first.promise, "controller": first.controller, "subject": first.subject,
                "at": first.at, "time": first.time, "number": first.number, "what": first.what,
                "turning_points": first.turning_points,
            })
        });
        let (status, reason, message) = match &report.first {
            Some(first) => (
                "False",
                "NotExplained",
                format!(
                    "{} is broken by {} about {}: {}",
                    first.promise, first.controller, first.subject, first.what
                ),
            ),
            None if report.unreadable > 0 => {
                ("False", "LogUnreadable", format!("{} lines cannot be read", report.unreadable))
            }
            None => ("True", "Explained", "every recorded step is explained".to_owned()),
        };
        State {
            now,
            since,
            steps: report.steps,
            missing: report.missing,
            broken: report.broken,
            condition: Audited { status: status.into(), reason: reason.into(), message },
            first,
        }
    }

    /// Whether a reader would learn something that matters.
    pub(crate) fn says_more_than(&self, before: &State) -> bool {
        let State { since, missing, broken, condition, .. } = before;
        self.since != *since
            || self.missing != *missing
            || self.broken != *broken
            || self.condition != *condition
    }
}
