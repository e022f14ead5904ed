//! What the fleet's audit of itself says: a line of `interlock status`.

use super::client::Fleet;
use super::others::Others;
use super::report::FleetReport;
use crate::audit::{KEY, State};
use jiff::Timestamp;
use serde::Serialize;

/// An audit that has said nothing for so many seconds does not run.
const SILENCE_SECONDS: i64 = 180;

/// The fleet, for programs, with what it has besides placed namespaces and what its audit says.
#[derive(Debug, Serialize)]
pub(crate) struct Audited<'a> {
    #[serde(flatten)]
    pub(crate) report: &'a FleetReport,
    #[serde(flatten)]
    pub(crate) others: &'a Others,
    /// What the audit says; null: nothing is audited.
    pub(crate) audit: Option<&'a State>,
}

/// What the hub says of the audit; None: nothing is audited there.
pub(crate) async fn state(fleet: &Fleet) -> Option<State> {
    let map = fleet.audit().await.ok().flatten()?;
    serde_json::from_str(map.data?.get(KEY)?).ok()
}

/// Whether a step is not explained.
pub(crate) fn is_broken(state: Option<&State>) -> bool {
    state.is_some_and(|state| state.condition.status == "False")
}

/// The same, for people; nothing where nothing is audited.
pub(crate) fn text(state: Option<&State>, now: Timestamp) -> String {
    let Some(state) = state else { return String::new() };
    let age = now.as_second() - state.now.as_second();
    let silent = match age > SILENCE_SECONDS {
        true => format!(" (no news for {age}s: the audit does not run)"),
        false => String::new(),
    };
    let missing = match state.missing {
        0 => String::new(),
        missing => format!(", {missing} steps missing"),
    };
    let since = match state.since {
        Some(since) => format!("every promise since {since:.0}, {} steps", state.steps),
        None => "no step is recorded yet".to_owned(),
    };
    let found = match state.condition.status.as_str() {
        "True" => "no difference".to_owned(),
        _ => format!("{}\n  next: interlock audit", state.condition.message),
    };
    format!("\naudit: {since}{missing}, {found}{silent}\n")
}
