//! Whom the cloud roles of a namespace trust: a part of `interlock status`.

use super::report::NamespaceRow;
use crate::words::table;
use interlock_api::placement::{GrantStatus, Phase, RightsState, RoleRights};
use serde::Serialize;
use std::collections::BTreeMap;

/// A cloud role of a namespace, for programs: a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RightsRow {
    /// The name of the Role.
    pub(crate) role: String,
    /// `Waiting`, `Ready` or `Fenced`, for the epoch of the grant; an entry about an earlier epoch waits.
    pub(crate) state: RightsState,
    /// The epoch that the role was brought to last.
    pub(crate) epoch: i64,
    /// Why it is not `Ready` for the epoch of the grant, in words; empty: it is.
    pub(crate) because: String,
    /// The epoch that was ended by force and whose owner may still have the rights of the role; null: none.
    pub(crate) open_epoch: Option<i64>,
}

/// The cloud roles of a namespace, by name.
pub(crate) fn rows(status: &GrantStatus) -> Vec<RightsRow> {
    let mut rows: Vec<RightsRow> = status.rights.iter().map(|role| row(status, role)).collect();
    rows.sort_by(|one, other| one.role.cmp(&other.role));
    rows
}

fn row(status: &GrantStatus, role: &RoleRights) -> RightsRow {
    let open_epoch = status.fenced_epoch.filter(|fenced| is_open(role, *fenced));
    // While the grant has an owner, what was said about an earlier one does not help it.
    let is_behind = status.phase == Phase::Granted && role.epoch < status.epoch;
    let state = if is_behind { RightsState::Waiting } else { role.state };
    let because = match (open_epoch, state) {
        (Some(epoch), _) => open_words(epoch),
        (None, RightsState::Ready) => String::new(),
        (None, RightsState::Fenced) => "the owner lost the namespace by force".to_owned(),
        (None, RightsState::Waiting) if !role.because.is_empty() => role.because.clone(),
        (None, RightsState::Waiting) => {
            format!("the cloud role does not trust the owner of epoch {} yet", status.epoch)
        }
    };
    RightsRow { role: role.name.clone(), state, epoch: role.epoch, because, open_epoch }
}

/// Whether the owner of an epoch that was ended by force may still have the rights of a role.
pub(crate) fn is_open(role: &RoleRights, fenced: i64) -> bool {
    role.epoch < fenced || role.epoch == fenced && role.state != RightsState::Fenced
}

/// What an owner that was declared gone may still do in the cloud.
pub(crate) fn open_words(epoch: i64) -> String {
    format!("the owner of epoch {epoch}, which was declared gone, may still have its rights")
}

/// The roles of one namespace, for people: rows of ROLE, RIGHTS, EPOCH and WHY.
pub(crate) fn cells(rows: &[RightsRow]) -> Vec<Vec<String>> {
    let cells = |row: &RightsRow| {
        let RightsRow { role, state, epoch, because, .. } = row;
        vec![role.clone(), state.to_string(), epoch.to_string(), because.clone()]
    };
    rows.iter().map(cells).collect()
}

/// The rights of all namespaces, for people: how many are in each state, and those that are not ready.
/// Nothing where no namespace has identities.
pub(crate) fn text(namespaces: &[NamespaceRow]) -> String {
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    let mut waiting = Vec::new();
    for namespace in namespaces {
        // The state of a namespace is that of the role that is furthest behind.
        let worst = namespace.rights.iter().min_by_key(|row| (row.open_epoch.is_none(), row.state));
        let Some(worst) = worst else { continue };
        *states.entry(worst.state.to_string()).or_default() += 1;
        let unready = namespace.rights.iter().filter(|row| !row.because.is_empty());
        let unready: Vec<RightsRow> = unready.cloned().collect();
        for mut row in cells(&unready) {
            row.insert(0, namespace.name.clone());
            waiting.push(row);
        }
    }
    let mut text = String::new();
    if !states.is_empty() {
        let states = states.into_iter().map(|(state, count)| vec![state, count.to_string()]);
        text += &format!("\n{}", table(&["RIGHTS", "NAMESPACES"], &states.collect::<Vec<_>>()));
    }
    if !waiting.is_empty() {
        let head = ["NAMESPACE", "ROLE", "RIGHTS", "EPOCH", "WHY"];
        text += &format!("\n{}", table(&head, &waiting));
    }
    text
}
