//! Why a namespace is where it is, why it does not move, what it waits for, and what to do next.

use super::fit::unfit_reason;
use super::health::{Health, for_how_long};
use super::page::{answer, desired_words, last_snapshot};
use super::picture::{Picture, Subject, condition_if, conditions_of, phase_since, unreachable};
use super::report::{colour, namespace_row, phase_words};
use super::rights;
use crate::words::{age, clause, paint, size, table};
use interlock_api::placement::{CopyState, GrantStatus, OnUnreachable, Phase, condition};
use jiff::Timestamp;
use serde::Serialize;

/// An explanation, for programs: a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Explanation {
    /// The namespace.
    pub(crate) namespace: String,
    /// The answer in one line.
    pub(crate) answer: String,
    /// How it is: `blocked`, `moving` or `settled`.
    pub(crate) health: Health,
    /// Why, in one word.
    pub(crate) reason: String,
    /// Why, in sentences, the first one first.
    pub(crate) reasons: Vec<String>,
    /// What it waits for; empty when settled.
    pub(crate) waits_for: String,
    /// Since when it waits.
    pub(crate) waits_since: Option<Timestamp>,
    /// Each cluster, and what speaks against it; null: it fits.
    pub(crate) clusters: Vec<Fit>,
    /// The command to go on with.
    pub(crate) next: String,
}

/// Whether a cluster fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fit {
    /// The cluster.
    pub(crate) name: String,
    /// What speaks against it; null: it fits.
    pub(crate) unfit_reason: Option<String>,
}

/// Explains one namespace.
pub(crate) fn explain(picture: &Picture, subject: &Subject) -> Explanation {
    let row = namespace_row(picture, subject);
    let next = row.next.clone().unwrap_or_else(|| next_command(picture, subject, row.health));
    let clusters = picture.clusters.iter().map(|cluster| Fit {
        name: cluster.metadata.name.clone().unwrap_or_default(),
        unfit_reason: unfit_reason(picture, subject, cluster),
    });
    Explanation {
        namespace: subject.name.clone(),
        answer: answer(subject, &row),
        health: row.health,
        reasons: reasons(picture, subject),
        clusters: if subject.is_placed() { clusters.collect() } else { Vec::new() },
        reason: row.reason,
        waits_for: row.waits_for,
        waits_since: row.waits_since,
        next,
    }
}

fn next_command(picture: &Picture, subject: &Subject, health: Health) -> String {
    let name = &subject.name;
    if !subject.is_placed() && subject.grant.is_none() {
        return format!("kubectl label namespace {name} interlock.dev/placed=true");
    }
    if health != Health::Settled {
        return format!("interlock status {name} --watch");
    }
    let owner = subject.holder().map(|owner| owner.name.as_str());
    let others = picture.clusters.iter().filter(|cluster| {
        cluster.metadata.name.as_deref() != owner
            && unfit_reason(picture, subject, cluster).is_none()
    });
    match others.filter_map(|cluster| cluster.metadata.name.as_deref()).next() {
        Some(other) => format!("interlock move {name} --to {other} --wait"),
        None => format!("interlock status {name}"),
    }
}

/// The sentences, in the order in which one asks: where is it, where should it be, why not there.
fn reasons(picture: &Picture, subject: &Subject) -> Vec<String> {
    let mut reasons = Vec::new();
    if subject.namespace.is_none() {
        reasons
            .push("the namespace was deleted; its grant is kept until no data is left".to_owned());
    } else if !subject.is_placed() {
        reasons.push(match subject.grant {
            None => "the namespace is not placed: it has no label interlock.dev/placed=true",
            Some(_) => {
                "the namespace has no label interlock.dev/placed=true any more; it stays on its \
                 cluster and does not move"
            }
        }.to_owned());
    }
    let Some(grant) = &subject.grant else { return reasons };
    let status = grant.status_or_default();
    reasons.push(where_it_is(picture, subject, &status));
    if subject.is_placed() {
        reasons.push(format!("the desired cluster is {}", desired_words(picture, subject)));
    }
    if subject.is_deleting() {
        reasons.push("the namespace is being deleted".to_owned());
    }
    reasons.extend(owner_reasons(picture, subject, &status));
    if grant.spec.on_unreachable == OnUnreachable::TakeOverAfterLease {
        reasons.push("TakeOverAfterLease is not supported yet: it is treated as Hold".to_owned());
    }
    let placed = condition_if(conditions_of(grant), condition::PLACED, false);
    if let Some(placed) = placed {
        reasons.push(format!("{}: {}", placed.reason, clause(&placed.message)));
    }
    let rights = condition_if(conditions_of(grant), condition::RIGHTS_READY, false);
    if let Some(rights) = rights.filter(|_| status.phase == Phase::Granted) {
        reasons.push(format!("{}: {}", rights.reason, clause(&rights.message)));
    }
    reasons.extend(fence_reasons(&status));
    reasons.extend(data_reasons(picture, subject, &status));
    reasons.extend(copy_reasons(&status));
    reasons
}

fn where_it_is(picture: &Picture, subject: &Subject, status: &GrantStatus) -> String {
    let since = for_how_long(picture.now, phase_since(subject));
    match &status.owner {
        None => format!("the grant has no owner yet ({}{since})", status.phase),
        Some(owner) => {
            let verb = match status.phase {
                Phase::Granted | Phase::Revoking => "the owner is",
                Phase::Unassigned | Phase::Released | Phase::Fenced | Phase::Deleting => {
                    "the last owner was"
                }
            };
            let words = phase_words(status.phase);
            format!("{verb} {owner}, epoch {}: {}{since}, {words}", status.epoch, status.phase)
        }
    }
}

fn owner_reasons(picture: &Picture, subject: &Subject, status: &GrantStatus) -> Vec<String> {
    let Some(owner) = subject.holder() else { return Vec::new() };
    let Some(cluster) = picture.cluster_of(owner) else {
        return vec![format!(
            "the owner {owner} was deleted (uid {}); only a person can confirm that nothing runs \
             there",
            owner.uid
        )];
    };
    let mut reasons = Vec::new();
    let grant = subject.grant.as_ref();
    let told = unreachable(cluster).or_else(|| {
        grant.and_then(|g| condition_if(conditions_of(g), condition::OWNER_UNREACHABLE, true))
    });
    if let Some(told) = told {
        let since = age(picture.now, told.last_transition_time.0);
        let why = match clause(&told.message) {
            "" => String::new(),
            why => format!(": {why}"),
        };
        reasons.push(format!("{owner} has sent no heartbeat for {since}{why}"));
        reasons.push(format!(
            "{owner} may still run the namespace, so no other cluster may run it: only {owner} or \
             a person can release the grant"
        ));
    }
    let is_leaving = status.phase == Phase::Revoking;
    if let Some(because) = status.because.filter(|_| is_leaving) {
        reasons.push(format!("{owner} has to release the namespace because of a {because}"));
    }
    reasons
}

/// What an owner that was declared gone may still do in the cloud.
fn fence_reasons(status: &GrantStatus) -> Vec<String> {
    let Some(fenced) = status.fenced_epoch else { return Vec::new() };
    let open = status.rights.iter().filter(|role| rights::is_open(role, fenced));
    open.map(|role| format!("role {}: {}", role.name, rights::open_words(fenced))).collect()
}

/// What is in the way of its data, and where the data is.
fn data_reasons(picture: &Picture, subject: &Subject, status: &GrantStatus) -> Vec<String> {
    let mut reasons = Vec::new();
    let conditions = subject.grant.as_ref().map_or(&[][..], conditions_of);
    let kinds = match status.phase {
        Phase::Revoking => Some(condition::DATA_SYNCED),
        Phase::Granted => Some(condition::FILLED),
        Phase::Unassigned | Phase::Released | Phase::Fenced | Phase::Deleting => None,
    };
    if let Some(said) = kinds.and_then(|kind| condition_if(conditions, kind, false)) {
        reasons.push(format!("{}: {}", said.reason, clause(&said.message)));
    }
    for claim in &status.claims {
        let filled = match &claim.progress {
            Some(progress) => {
                let size = |bytes: i64| size(bytes.max(0).unsigned_abs());
                let of = progress.of_bytes.map(|all| format!(" of {}", size(all)));
                let of = of.unwrap_or_default();
                format!("{}, {}{of} copied", claim.fill, size(progress.bytes))
            }
            None => claim.fill.to_string(),
        };
        let snapshot = match last_snapshot(status, claim) {
            Some(pin) => {
                let bytes = size(pin.bytes.max(0).unsigned_abs());
                let ago = age(picture.now, pin.taken.0);
                format!("the last snapshot is {ago} old ({} files, {bytes})", pin.files)
            }
            None => "it has no snapshot".to_owned(),
        };
        reasons.push(format!("claim {}: {filled}; {snapshot}", claim.name));
    }
    reasons
}

fn copy_reasons(status: &GrantStatus) -> Vec<String> {
    let worrying = status.copies.iter().filter_map(|copy| match copy.state {
        CopyState::Unclosed => Some(format!(
            "{} was declared gone at epoch {} and has sent no heartbeat since; its copy is kept",
            copy.cluster, copy.epoch
        )),
        CopyState::Diverged => Some(format!(
            "{} wrote data after its last snapshot at epoch {}; that copy is kept until a person \
             deletes it",
            copy.cluster, copy.epoch
        )),
        CopyState::Live | CopyState::Superseded => None,
    });
    worrying.collect()
}

/// The explanation, for people.
pub(crate) fn text(picture: &Picture, told: &Explanation, has_colour: bool) -> String {
    let mut text = paint(&told.answer, colour(told.health), has_colour) + "\n";
    if !told.reasons.is_empty() {
        text += "\nbecause\n";
        for reason in &told.reasons {
            text += &format!("  {reason}\n");
        }
    }
    if !told.waits_for.is_empty() {
        let since = for_how_long(picture.now, told.waits_since).replace(" for ", " ");
        text += &format!("\nwaiting{since} for\n  {}\n", told.waits_for);
    }
    if !told.clusters.is_empty() {
        let rows: Vec<Vec<String>> = told
            .clusters
            .iter()
            .map(|fit| {
                let words = fit
                    .unfit_reason
                    .as_ref()
                    .map_or_else(|| "yes".to_owned(), |unfit_reason| format!("no: {unfit_reason}"));
                vec![fit.name.clone(), words]
            })
            .collect();
        text += "\n";
        text += &table(&["CLUSTER", "FITS"], &rows);
    }
    text += &format!("\nnext: {}\n", told.next);
    text
}
