//! Who may maintain a cluster, and who waits for it: a part of `interlock status`.

use super::picture::Picture;
use crate::words::{age_or_dash, table};
use interlock_api::turns::{MaintenanceTurn, TurnPhase};
use jiff::Timestamp;
use serde::Serialize;

/// A MaintenanceTurn that is not over, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TurnRow {
    cluster: String,
    name: String,
    phase: TurnPhase,
    since: Option<Timestamp>,
    /// Why it is in that phase, in one word, and what it waits for; empty if it is open.
    reason: &'static str,
    waits_for: String,
}

/// The turns that are not over: by cluster, the open one first, then the oldest.
pub(crate) fn rows(picture: &Picture) -> Vec<TurnRow> {
    let mut rows: Vec<TurnRow> = picture.turns.iter().map(|turn| row(picture, turn)).collect();
    rows.retain(|row| row.phase != TurnPhase::Done);
    rows.sort_by_key(|row| (row.cluster.clone(), row.phase != TurnPhase::Open, row.since));
    rows
}

fn row(picture: &Picture, turn: &MaintenanceTurn) -> TurnRow {
    let name = |turn: &MaintenanceTurn| turn.metadata.name.clone().unwrap_or_default();
    let phase = |turn: &MaintenanceTurn| turn.status.clone().unwrap_or_default().phase;
    let cluster = turn.spec.cluster.clone();
    let mut others = picture.turns.iter().filter(|other| other.spec.cluster == cluster);
    let open = others.find(|other| phase(other) == TurnPhase::Open);
    let is_known = picture.cluster(&cluster).is_some();
    let (reason, waits_for) = match (phase(turn), open) {
        (TurnPhase::Open | TurnPhase::Done, _) => ("Opened", String::new()),
        (TurnPhase::Waiting, Some(open)) => ("OtherTurn", format!("turn {}", name(open))),
        (TurnPhase::Waiting, None) if is_known => ("NotOpenedYet", String::new()),
        (TurnPhase::Waiting, None) => ("NoCluster", format!("WorkloadCluster {cluster}")),
    };
    let reported = turn.status.as_ref().and_then(|status| status.phase_since.as_ref());
    let since = reported.or(turn.metadata.creation_timestamp.as_ref()).map(|time| time.0);
    TurnRow { cluster, name: name(turn), phase: phase(turn), since, reason, waits_for }
}

/// The same, for people; nothing where there is none.
pub(crate) fn text(now: Timestamp, rows: &[TurnRow]) -> String {
    let cells = |row: &TurnRow| {
        let TurnRow { cluster, name, phase, since, reason, waits_for } = row.clone();
        vec![cluster, name, format!("{phase:?}"), reason.into(), age_or_dash(now, since), waits_for]
    };
    let head = ["CLUSTER", "TURN", "PHASE", "REASON", "FOR", "WAITS FOR"];
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", table(&head, &rows)) }
}
