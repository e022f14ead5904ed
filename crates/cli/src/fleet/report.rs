//! The fleet as rows: what `interlock status` shows, and its form for programs.

use super::health::{Health, Verdict, judge};
use super::picture::{
    Picture, Subject, cluster_conditions, condition, condition_if, event_time, phase_since,
    unreachable,
};
use super::rights::{self, RightsRow};
use super::turns::{self, TurnRow};
use crate::words::{Colour, advice, age, age_or_dash, count, paint, table};
use interlock_api::placement::{Phase, WorkloadCluster, condition as kinds};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// The fleet, for programs: a contract. Moments are RFC 3339; a field that is not known is null.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FleetReport {
    /// The answer in one line.
    pub(crate) answer: String,
    /// How it is with the namespace that is worst off: `blocked`, `moving` or `settled`.
    pub(crate) health: Health,
    /// All clusters, by name.
    pub(crate) clusters: Vec<ClusterRow>,
    /// How many namespaces are in each phase of their grant; `NoGrant` for those without one.
    pub(crate) phases: BTreeMap<String, usize>,
    /// All placed namespaces, by name.
    pub(crate) namespaces: Vec<NamespaceRow>,
    /// The MaintenanceTurns that are not over, by cluster.
    pub(crate) turns: Vec<TurnRow>,
}

/// A cluster, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClusterRow {
    /// Its name.
    pub(crate) name: String,
    /// Its uid, which tells it from one that had its name before.
    pub(crate) uid: String,
    /// Whether new grants may go there; null: unknown.
    pub(crate) ready: Option<bool>,
    /// Whether its syncer sends heartbeats; null: unknown.
    pub(crate) reachable: Option<bool>,
    /// Since when it sends heartbeats, or not.
    pub(crate) reachable_since: Option<Timestamp>,
    /// How many namespaces it owns, counted from the grants.
    pub(crate) grants: usize,
    /// The version of its syncer.
    pub(crate) version: Option<String>,
    /// Whether it takes nothing new.
    pub(crate) unschedulable: bool,
    /// Whether what it owns moves away.
    pub(crate) drain: bool,
    /// Why it is not gone yet, if it is being deleted: what it has.
    pub(crate) stays: Option<String>,
    /// Why `interlock up` does not serve it, where it should.
    pub(crate) not_served: Option<String>,
    /// What a person does next about `stays` or `not_served`.
    pub(crate) next: Option<String>,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
}

/// A namespace, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NamespaceRow {
    /// Its name.
    pub(crate) name: String,
    /// The cluster that has it, or had it last.
    pub(crate) owner: Option<String>,
    /// The cluster that it is to be on.
    pub(crate) target: Option<String>,
    /// How often it was granted.
    pub(crate) epoch: i64,
    /// The phase of its grant; null: it has none.
    pub(crate) phase: Option<String>,
    /// Since when, as well as that can be known.
    pub(crate) phase_since: Option<Timestamp>,
    /// How it is with it: `blocked`, `moving` or `settled`.
    pub(crate) health: Health,
    /// Why, in one word.
    pub(crate) reason: String,
    /// What it waits for, in words; empty when settled.
    pub(crate) waits_for: String,
    /// Since when it waits.
    pub(crate) waits_since: Option<Timestamp>,
    /// The command that goes on from here.
    pub(crate) next: Option<String>,
    /// Its cloud roles, and whom they trust.
    pub(crate) rights: Vec<RightsRow>,
}

/// The whole fleet.
pub(crate) fn fleet(picture: &Picture) -> FleetReport {
    let namespaces: Vec<NamespaceRow> =
        picture.subjects.iter().map(|subject| namespace_row(picture, subject)).collect();
    let mut phases = BTreeMap::new();
    for row in &namespaces {
        *phases.entry(row.phase.clone().unwrap_or_else(|| "NoGrant".to_owned())).or_default() += 1;
    }
    let health = namespaces.iter().map(|row| row.health).min().unwrap_or(Health::Settled);
    let clusters = picture.clusters.iter().map(|cluster| cluster_row(picture, cluster)).collect();
    let turns = turns::rows(picture);
    FleetReport { answer: answer(&namespaces), health, clusters, phases, namespaces, turns }
}

fn answer(rows: &[NamespaceRow]) -> String {
    let of = |health| rows.iter().filter(|row| row.health == health).count();
    let (settled, moving) = (of(Health::Settled), of(Health::Moving));
    match (rows.len(), moving, of(Health::Blocked)) {
        (0, _, _) => "no namespace is placed".to_owned(),
        (1, 0, 0) => "the 1 placed namespace is settled".to_owned(),
        (all, 0, 0) => format!("all {all} placed namespaces are settled"),
        (all, moving, 0) => {
            format!("{} moving; {settled} of {all} settled", of_namespaces(moving))
        }
        (all, 0, blocked) => {
            format!("{} blocked; {settled} of {all} settled", of_namespaces(blocked))
        }
        (all, moving, blocked) => {
            let blocked = of_namespaces(blocked);
            format!("{blocked} blocked, {moving} moving; {settled} of {all} settled")
        }
    }
}

fn of_namespaces(number: usize) -> String {
    count(number, "namespace")
}

/// One row for a namespace.
pub(crate) fn namespace_row(picture: &Picture, subject: &Subject) -> NamespaceRow {
    let Verdict { health, reason, waits_for, since, next } = judge(picture, subject);
    let grant = subject.grant.as_ref();
    let status = grant.map(|grant| grant.status_or_default());
    NamespaceRow {
        name: subject.name.clone(),
        owner: status.as_ref().and_then(|status| status.owner.as_ref()).map(|o| o.name.clone()),
        target: grant.and_then(|grant| grant.spec.target.as_ref()).map(|t| t.name.clone()),
        epoch: status.as_ref().map_or(0, |status| status.epoch),
        phase: status.as_ref().map(|status| status.phase.to_string()),
        phase_since: phase_since(subject),
        health,
        reason,
        waits_for,
        waits_since: since,
        next,
        rights: status.as_ref().map(rights::rows).unwrap_or_default(),
    }
}

fn cluster_row(picture: &Picture, cluster: &WorkloadCluster) -> ClusterRow {
    let conditions = cluster_conditions(cluster);
    let says = |kind| condition(conditions, kind).map(|condition| condition.status == "True");
    let uid = cluster.metadata.uid.clone().unwrap_or_default();
    let owned = |subject: &&Subject| subject.holder().is_some_and(|owner| owner.uid == uid);
    let reachable = condition(conditions, kinds::REACHABLE);
    let status = cluster.status.as_ref();
    let is_deleting = cluster.metadata.deletion_timestamp.is_some();
    let emptied = condition(conditions, kinds::EMPTIED).filter(|_| is_deleting);
    let not_served = condition_if(conditions, kinds::SERVED, false);
    ClusterRow {
        name: cluster.metadata.name.clone().unwrap_or_default(),
        ready: says(kinds::READY),
        reachable: says(kinds::REACHABLE),
        reachable_since: reachable.map(|condition| condition.last_transition_time.0),
        grants: picture.subjects.iter().filter(owned).count(),
        version: status.and_then(|s| s.syncer.as_ref()).map(|syncer| syncer.version.clone()),
        unschedulable: cluster.spec.unschedulable,
        drain: cluster.spec.drain || !cluster.spec.drains.is_empty(),
        not_served: not_served.map(|it| it.message.clone()),
        next: emptied.or(not_served).and_then(|it| it.next.clone()),
        stays: is_deleting.then(|| emptied.map_or_else(String::new, |it| it.message.clone())),
        created: cluster.metadata.creation_timestamp.as_ref().map(|time| time.0),
        uid,
    }
}

/// Which colour tells how it is.
pub(crate) fn colour(health: Health) -> Colour {
    match health {
        Health::Settled => Colour::Green,
        Health::Moving => Colour::Yellow,
        Health::Blocked => Colour::Red,
    }
}

/// The fleet, for people; `others` is what it has besides placed namespaces.
pub(crate) fn text(
    picture: &Picture,
    report: &FleetReport,
    others: &str,
    has_colour: bool,
) -> String {
    let mut text = paint(&report.answer, colour(report.health), has_colour) + "\n\n";
    text += &clusters_text(picture, report);
    if !report.phases.is_empty() {
        let rows: Vec<_> =
            report.phases.iter().map(|(phase, n)| vec![phase.clone(), n.to_string()]).collect();
        text += "\n";
        text += &table(&["PHASE", "NAMESPACES"], &rows);
    }
    let restless: Vec<&NamespaceRow> =
        report.namespaces.iter().filter(|row| row.health != Health::Settled).collect();
    if !restless.is_empty() {
        text += "\n";
        text += &restless_text(picture.now, &restless);
    }
    text += &rights::text(&report.namespaces);
    text += &turns::text(picture.now, &report.turns);
    text += others;
    text += &format!("\nnext: {}\n", next(report, &restless));
    text
}

fn next(report: &FleetReport, restless: &[&NamespaceRow]) -> String {
    if let Some(worst) = restless.iter().min_by_key(|row| row.health) {
        return format!("interlock explain {}", worst.name);
    }
    match report.namespaces.first() {
        Some(row) => format!("interlock status {}", row.name),
        None => "kubectl label namespace NAME interlock.dev/placed=true".to_owned(),
    }
}

/// Only the clusters, for people.
pub(crate) fn clusters_text(picture: &Picture, report: &FleetReport) -> String {
    if report.clusters.is_empty() {
        return "no cluster exists: create a WorkloadCluster\n".to_owned();
    }
    let word = |claim: Option<bool>| match claim {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    let rows = report.clusters.iter().map(|row| {
        let reachable = match (row.reachable, row.reachable_since) {
            (Some(false), Some(since)) => format!("no, for {}", age(picture.now, since)),
            (claim, _) => word(claim).to_owned(),
        };
        let notes = match (&row.stays, row.drain, row.unschedulable) {
            (None, ..) if let Some(why) = &row.not_served => {
                format!("not served: {}", advice(why, row.next.as_deref()))
            }
            (Some(why), ..) if why.is_empty() => "being deleted".to_owned(),
            (Some(why), ..) => format!("being deleted; {}", advice(why, row.next.as_deref())),
            (None, true, _) => "draining".to_owned(),
            (None, false, true) => "accepts no new namespaces".to_owned(),
            (None, false, false) => String::new(),
        };
        vec![
            row.name.clone(),
            word(row.ready).to_owned(),
            reachable,
            row.grants.to_string(),
            row.version.clone().unwrap_or_else(|| "-".to_owned()),
            age_or_dash(picture.now, row.created),
            notes,
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    table(&["CLUSTER", "READY", "REACHABLE", "GRANTS", "SYNCER", "AGE", "NOTE"], &rows)
}

fn restless_text(now: Timestamp, rows: &[&NamespaceRow]) -> String {
    let dash = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                dash(&row.owner),
                dash(&row.target),
                dash(&row.phase),
                row.reason.clone(),
                age_or_dash(now, row.waits_since),
                row.waits_for.clone(),
            ]
        })
        .collect();
    table(&["NAMESPACE", "OWNER", "TARGET", "PHASE", "REASON", "FOR", "WAITS FOR"], &rows)
}

/// Whether a cluster sends no heartbeat, and since when, in words.
pub(crate) fn silence(now: Timestamp, cluster: &WorkloadCluster) -> Option<String> {
    let told = unreachable(cluster)?;
    Some(format!("no heartbeat for {}", age(now, told.last_transition_time.0)))
}

/// The last events, the newest last, as rows of age, reason and message.
pub(crate) fn last_events(picture: &Picture, subject: &Subject) -> Vec<Vec<String>> {
    const SHOWN: usize = 8;
    let mut events: Vec<_> =
        subject.events.iter().filter_map(|event| Some((event_time(event)?, event))).collect();
    events.sort_by_key(|(time, _)| *time);
    let skipped = events.len().saturating_sub(SHOWN);
    let rows = events.into_iter().skip(skipped).map(|(time, event)| {
        vec![
            age(picture.now, time),
            event.reason.clone().unwrap_or_default(),
            event.message.clone().unwrap_or_default(),
        ]
    });
    rows.collect()
}

/// The phase of a grant in a word that a person would say.
pub(crate) fn phase_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Unassigned => "the grant has no owner",
        Phase::Granted => "the owner may use the volumes",
        Phase::Revoking => "the owner has to stop and hand over",
        Phase::Released => "the owner has stopped and handed over",
        Phase::Fenced => "the owner was declared gone",
        Phase::Deleting => "the namespace is being deleted",
    }
}
