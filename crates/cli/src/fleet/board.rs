//! The fleet in as many lines as a terminal has: what `interlock up` shows below its log.

use super::audit;
use super::client::Fleet;
use super::health::Health;
use super::others::{Others, update_cells};
use super::picture::Picture;
use super::progress::Data;
use super::report::{self, ClusterRow, FleetReport, NamespaceRow, colour};
use crate::location::Location;
use crate::output::Screen;
use crate::words::{age_or_dash, count, paint, table};
use interlock_api::placement::Fill;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is drawn at most.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// How often it is drawn at least.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// A fleet that takes long to list is listed for a small part of the time only.
const SHARE: u32 = 10;
/// How many namespaces have a line of their own.
const NAMESPACES: usize = 8;

/// Keeps the picture of the fleet on the screen. A moment at which the hub does not answer leaves the old one there.
pub(crate) async fn keep(screen: &Screen, kubeconfig: &Path) -> anyhow::Result<()> {
    let fleet = Fleet::open(&Location::of(kubeconfig)).await?;
    loop {
        let began = Instant::now();
        if let Ok(text) = draw(&fleet).await {
            screen.show(&text);
        }
        let pause = (began.elapsed() * SHARE).clamp(AT_MOST_EVERY, AT_LEAST_EVERY);
        tokio::time::sleep(pause).await;
    }
}

async fn draw(fleet: &Fleet) -> anyhow::Result<String> {
    let picture = fleet.picture().await?;
    let others = Others::of(fleet).await?;
    let audit = audit::state(fleet).await;
    let report = report::fleet(&picture);
    Ok(text(&picture, &report, &others, crate::output::color())
        + audit::text(audit.as_ref(), picture.now).trim_start())
}

/// The picture.
fn text(picture: &Picture, report: &FleetReport, others: &Others, has_colour: bool) -> String {
    let mut text = format!("{}\n", "-".repeat(72));
    text += &clusters(picture, report, others);
    text += &paint(&report.answer, colour(report.health), has_colour);
    text += "\n";
    text += &namespaces(picture, report);
    for line in [others.machines_line(), others.roles_line()].into_iter().flatten() {
        text += &line;
    }
    text
}

fn clusters(picture: &Picture, report: &FleetReport, others: &Others) -> String {
    let updates = others.updates.as_deref().unwrap_or_default();
    let row = |row: &ClusterRow| {
        let state = match (row.drain, row.ready, row.reachable) {
            (true, ..) => "draining",
            (false, Some(true), _) => "ready",
            (false, _, Some(false)) => "silent",
            (false, ..) => "not ready",
        };
        let update = updates.iter().find(|update| update.cluster == row.name);
        let update = update.map(|update| update_cells(update, picture.now));
        let mut cells = vec![row.name.clone(), state.to_owned(), row.grants.to_string()];
        match update {
            Some(update) => cells.extend_from_slice(&update[1..]),
            None => cells.extend(["-", "-", "-"].map(str::to_owned)),
        }
        cells
    };
    let rows: Vec<Vec<String>> = report.clusters.iter().map(row).collect();
    table(&["CLUSTER", "STATE", "NAMESPACES", "VERSION", "UPDATE", "HEALTHY"], &rows)
}

/// Those that are not settled first.
fn namespaces(picture: &Picture, report: &FleetReport) -> String {
    let mut rows: Vec<&NamespaceRow> = report.namespaces.iter().collect();
    rows.sort_by_key(|row| row.health);
    let shown = rows.iter().take(NAMESPACES).map(|row| {
        let dash = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".to_owned());
        let phase = match row.health {
            Health::Settled => "runs".to_owned(),
            _ => format!("{} for {}", dash(&row.phase), age_or_dash(picture.now, row.phase_since)),
        };
        let waits_for = Some(row.waits_for.clone()).filter(|words| !words.is_empty());
        let waits_for = arriving(picture, row).or(waits_for);
        vec![row.name.clone(), dash(&row.owner), row.epoch.to_string(), phase, dash(&waits_for)]
    });
    let shown: Vec<Vec<String>> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut text = table(&["NAMESPACE", "CLUSTER", "EPOCH", "PHASE", "WAITS FOR"], &shown);
    if rows.len() > NAMESPACES {
        text += &format!("and {} more\n", count(rows.len() - NAMESPACES, "namespace"));
    }
    text
}

/// How much of its data has arrived, while it does.
fn arriving(picture: &Picture, row: &NamespaceRow) -> Option<String> {
    let subject = picture.subjects.iter().find(|subject| subject.name == row.name)?;
    let status = subject.grant.as_ref()?.status_or_default();
    let is_filling = status.claims.iter().any(|claim| claim.fill == Fill::Filling);
    Data::of(&status.claims).filter(|_| is_filling).map(|data| data.bar(None))
}
