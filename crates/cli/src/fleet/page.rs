//! One namespace on one page: what `interlock status NAMESPACE` shows, and its form for programs.

use super::health::Health;
use super::picture::{Desired, Picture, Subject, conditions_of, event_time};
use super::report::{NamespaceRow, colour, last_events, namespace_row, phase_words, silence};
use super::rights;
use crate::words::{advice, age, age_or_dash, paint, table};
use interlock_api::placement::{Claim, GrantStatus, Pin, Snapshot, condition as kinds};
use interlock_kernel::conditions::Condition;
use jiff::Timestamp;
use serde::Serialize;

/// A namespace with all that is known of it, for programs: a contract.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Page {
    /// The answer in one line.
    pub(crate) answer: String,
    #[serde(flatten)]
    pub(crate) row: NamespaceRow,
    /// Whether it asks to be placed.
    pub(crate) placed: bool,
    /// The name of its grant.
    pub(crate) grant: Option<String>,
    /// Why it is being revoked: Move, Drain or Deletion.
    pub(crate) because: Option<String>,
    /// Who says where it is to be, in words.
    pub(crate) desired: String,
    /// Its claims, as the grant lists them.
    pub(crate) claims: Vec<ClaimRow>,
    /// Where data of it is.
    pub(crate) copies: Vec<CopyRow>,
    /// The conditions of its grant.
    pub(crate) conditions: Vec<ConditionRow>,
    /// What was reported about it, the oldest first.
    pub(crate) events: Vec<EventRow>,
}

/// A claim, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClaimRow {
    /// Its name.
    pub(crate) name: String,
    /// How far its volume at the owner is: Waiting, Filling or Filled.
    pub(crate) fill: String,
    /// How many bytes have arrived, while it fills; else those of its last snapshot.
    pub(crate) bytes: Option<i64>,
    /// How many bytes it has in all, while it fills and once they are counted.
    pub(crate) of_bytes: Option<i64>,
    /// When its last complete snapshot was taken; null: there is none.
    pub(crate) last_snapshot: Option<Timestamp>,
    /// The cluster that has that snapshot; null: there is none, or it is in a repository.
    pub(crate) last_snapshot_on: Option<String>,
}

/// Data of a namespace on a cluster, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CopyRow {
    /// The cluster.
    pub(crate) cluster: String,
    /// The epoch that it was written in.
    pub(crate) epoch: i64,
    /// Live, Superseded, Unclosed or Diverged.
    pub(crate) state: String,
}

/// A condition, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ConditionRow {
    /// Its type.
    pub(crate) r#type: String,
    /// True, False or Unknown.
    pub(crate) status: String,
    /// Why, in one word.
    pub(crate) reason: String,
    /// Why, in words.
    pub(crate) message: String,
    /// What a person does next; null: nobody has to do anything.
    pub(crate) next: Option<String>,
    /// Since when.
    pub(crate) since: Timestamp,
}

/// An event, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EventRow {
    /// When it was reported last.
    pub(crate) time: Option<Timestamp>,
    /// What happened, in one word.
    pub(crate) reason: String,
    /// What happened, in words.
    pub(crate) message: String,
}

/// The page of a namespace.
pub(crate) fn page(picture: &Picture, subject: &Subject) -> Page {
    let row = namespace_row(picture, subject);
    let status = subject.grant.as_ref().map(|grant| grant.status_or_default()).unwrap_or_default();
    let conditions = subject.grant.as_ref().map_or(&[][..], conditions_of);
    let events = subject.events.iter().map(|event| EventRow {
        time: event_time(event),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
    });
    let mut events: Vec<_> = events.collect();
    events.sort_by_key(|event| event.time);
    Page {
        answer: answer(subject, &row),
        placed: subject.is_placed(),
        grant: subject.grant.as_ref().and_then(|grant| grant.metadata.name.clone()),
        because: status.because.map(|because| because.to_string()),
        desired: desired_words(picture, subject),
        claims: status.claims.iter().map(|claim| claim_row(&status, claim)).collect(),
        copies: status
            .copies
            .iter()
            .map(|copy| CopyRow {
                cluster: copy.cluster.name.clone(),
                epoch: copy.epoch,
                state: copy.state.to_string(),
            })
            .collect(),
        conditions: conditions.iter().map(condition_row).collect(),
        events,
        row,
    }
}

fn claim_row(status: &GrantStatus, claim: &Claim) -> ClaimRow {
    let snapshot = last_snapshot(status, claim);
    let progress = claim.progress.as_ref();
    let on = snapshot.and_then(|pin| match &pin.snapshot {
        Snapshot::VolumeSnapshot { cluster, .. } => Some(cluster.name.clone()),
        Snapshot::Restic { .. } | Snapshot::InPlace { .. } | Snapshot::Fresh {} => None,
    });
    ClaimRow {
        name: claim.name.clone(),
        fill: claim.fill.to_string(),
        bytes: progress.map(|progress| progress.bytes).or(snapshot.map(|pin| pin.bytes)),
        of_bytes: progress.and_then(|progress| progress.of_bytes),
        last_snapshot: snapshot.map(|pin| pin.taken.0),
        last_snapshot_on: on,
    }
}

/// The last complete snapshot of a claim: what was noted last, or what its owner started from. That a
/// volume stays in place, or was never used, is no snapshot, and one that went with the copy of its
/// cluster is none any more.
pub(crate) fn last_snapshot<'a>(status: &'a GrantStatus, claim: &'a Claim) -> Option<&'a Pin> {
    let started_from = status.pins.iter().find(|pin| pin.claim_uid == claim.uid);
    claim.last_snapshot.iter().chain(started_from).find(|pin| match &pin.snapshot {
        Snapshot::VolumeSnapshot { cluster, .. } => {
            status.copies.iter().any(|copy| copy.cluster.is_same(cluster))
        }
        Snapshot::Restic { .. } => true,
        Snapshot::InPlace { .. } | Snapshot::Fresh {} => false,
    })
}

/// How much of a claim is there, for people.
fn amount(row: &ClaimRow) -> String {
    let size = |bytes: i64| crate::words::size(bytes.max(0).unsigned_abs());
    match (row.bytes, row.of_bytes) {
        (None, _) => "-".to_owned(),
        (Some(bytes), None) => size(bytes),
        (Some(bytes), Some(all)) => format!("{} of {}", size(bytes), size(all)),
    }
}

fn condition_row(condition: &Condition) -> ConditionRow {
    ConditionRow {
        r#type: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        next: condition.next.clone(),
        since: condition.last_transition_time.0,
    }
}

/// Who says where a namespace is to be.
pub(crate) fn desired_words(picture: &Picture, subject: &Subject) -> String {
    if !subject.is_placed() {
        return "the namespace is not placed".to_owned();
    }
    match picture.desired(subject) {
        Desired::Named(name) => format!("{name} (annotation interlock.dev/cluster)"),
        Desired::Selected(placement) => format!("any cluster that Placement {placement} selects"),
        Desired::Anywhere => "any cluster (no Placement selects the namespace)".to_owned(),
    }
}

/// How it is with a namespace, in one line.
pub(crate) fn answer(subject: &Subject, row: &NamespaceRow) -> String {
    let name = &subject.name;
    let owner = row.owner.as_deref().unwrap_or("nobody");
    let holder = subject.holder().map(|owner| owner.name.as_str());
    let place = holder.map_or_else(String::new, |owner| format!(" on {owner}"));
    match (row.health, row.reason.as_str()) {
        (Health::Settled, "NotPlaced") => format!("{name} is not placed: no cluster runs it"),
        (Health::Settled, _) => format!("{name} runs on {owner}, as desired (epoch {})", row.epoch),
        (Health::Moving, "NoGrant") => format!("{name} waits for its first cluster"),
        (Health::Moving, "Deleting") => format!("{name} is being deleted"),
        (Health::Moving, "Filling" | "Starting") => {
            format!("{name} starts on {owner} (epoch {})", row.epoch)
        }
        (Health::Moving, _) => match (holder, row.target.as_deref()) {
            (Some(from), Some(to)) if from != to => format!("{name} moves from {from} to {to}"),
            (None, Some(to)) => format!("{name} is moving to {to}"),
            (_, _) => format!("{name} is moving"),
        },
        (Health::Blocked, reason) => format!("{name} is blocked{place}: {reason}"),
    }
}

/// A condition in words, if it has any: what is true of the namespace now.
pub(crate) fn condition_words(condition: &Condition) -> String {
    let is_true = condition.status == "True";
    let words = match (condition.type_.as_str(), is_true) {
        (kinds::PLACED, true) => "the namespace has a cluster",
        (kinds::PLACED, false) => "the namespace cannot run on the desired cluster",
        (kinds::RUNNING, true) => "the owner runs the namespace",
        (kinds::RUNNING, false) => "the owner does not run the namespace",
        (kinds::STOPPED, true) => "the namespace has stopped on the old owner",
        (kinds::STOPPED, false) => "the namespace has not stopped on the old owner",
        (kinds::DATA_SYNCED, true) => "every claim has its last snapshot",
        (kinds::DATA_SYNCED, false) => "a last snapshot is missing",
        (kinds::FILLED, true) => "every claim is filled",
        (kinds::FILLED, false) => "a claim is not filled",
        (kinds::OWNER_UNREACHABLE, true) => "the owner sends no heartbeat",
        (kinds::OWNER_UNREACHABLE, false) => "the owner sends heartbeats",
        (kinds::FENCED, true) => "an owner was declared gone",
        (kinds::FENCED, false) => "no owner was declared gone",
        (kinds::DATA_LOSS_BOUND, true) => "data that a forced release may have lost",
        (kinds::DATA_LOSS_BOUND, false) => "nothing was declared lost",
        (kinds::DIVERGED, true) => "a cluster wrote data after its last snapshot",
        (kinds::DIVERGED, false) => "no cluster wrote data after its last snapshot",
        (kinds::AT_MOST_ONE_GIVEN_UP, true) => "two clusters may write: a person accepted it",
        (kinds::AT_MOST_ONE_GIVEN_UP, false) => "at most one cluster may write",
        (_, _) => "",
    };
    match (words, &*advice(&condition.message, condition.next.as_deref())) {
        ("", message) => message.to_owned(),
        (words, "") => words.to_owned(),
        (words, message) => format!("{words}: {message}"),
    }
}

/// The page, for people.
pub(crate) fn text(picture: &Picture, subject: &Subject, has_colour: bool) -> String {
    let page = page(picture, subject);
    let mut text = paint(&page.answer, colour(page.row.health), has_colour) + "\n\n";
    for (label, value) in facts(picture, subject, &page) {
        text += &format!("{label:9}  {value}\n");
    }
    let now = picture.now;
    let mut add = |head: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            text += "\n";
            text += &table(head, &rows);
        }
    };
    let snapshot = |row: &ClaimRow| match (row.last_snapshot, &row.last_snapshot_on) {
        (Some(taken), Some(on)) => format!("{} ago, on {on}", age(now, taken)),
        (Some(taken), None) => format!("{} ago", age(now, taken)),
        (None, _) => "none".to_owned(),
    };
    let claims = page.claims.iter();
    let claims =
        claims.map(|row| vec![row.name.clone(), row.fill.clone(), amount(row), snapshot(row)]);
    add(&["CLAIM", "FILL", "DATA", "LAST SNAPSHOT"], claims.collect());
    add(&["ROLE", "RIGHTS", "EPOCH", "WHY"], rights::cells(&page.row.rights));
    let copies = page.copies.iter();
    let copies =
        copies.map(|row| vec![row.cluster.clone(), row.epoch.to_string(), row.state.clone()]);
    add(&["DATA ON", "EPOCH", "STATE"], copies.collect());
    let conditions = subject.grant.as_ref().map_or(&[][..], conditions_of).iter().map(|told| {
        let since = age(now, told.last_transition_time.0);
        vec![told.type_.clone(), told.status.clone(), since, condition_words(told)]
    });
    add(&["CONDITION", "STATUS", "FOR", "MEANS"], conditions.collect());
    add(&["EVENT", "REASON", "MESSAGE"], last_events(picture, subject));
    let next =
        page.row.next.clone().unwrap_or_else(|| format!("interlock explain {}", subject.name));
    text += &format!("\nnext: {next}\n");
    text
}

fn facts(picture: &Picture, subject: &Subject, page: &Page) -> Vec<(&'static str, String)> {
    let now = picture.now;
    let row = &page.row;
    let mut facts = Vec::new();
    let status: GrantStatus =
        subject.grant.as_ref().map(|grant| grant.status_or_default()).unwrap_or_default();
    if let Some(owner) = &status.owner {
        let silent = match picture.cluster_of(owner) {
            Some(cluster) => silence(now, cluster).map(|words| format!(", {words}")),
            None => Some(", which was deleted".to_owned()),
        };
        let silent = silent.unwrap_or_default();
        facts.push(("owner", format!("{owner}, epoch {}{silent}", status.epoch)));
    }
    if subject.grant.is_some() {
        let because = page.because.as_ref().map_or_else(String::new, |b| format!(" ({b})"));
        let since = age_or_dash(now, row.phase_since);
        let words = phase_words(status.phase);
        facts.push(("phase", format!("{}{because} for {since}: {words}", status.phase)));
    }
    facts.push(("desired", page.desired.clone()));
    if let Some(target) = &row.target {
        facts.push(("target", target.clone()));
    }
    if !row.waits_for.is_empty() {
        let since = super::health::for_how_long(now, row.waits_since);
        facts.push(("waits for", format!("{}{}", row.waits_for, since.replace(" for ", ", for "))));
    }
    facts
}
