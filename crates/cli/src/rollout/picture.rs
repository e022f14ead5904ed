//! What is shown of a cluster and of a request: one serialized form for programs, and the same as text.

use super::record::Known;
use crate::words::{age_or_dash, table};
use interlock_api::rollouts::{
    ClusterUpdate, FailedObject, ObjectCounts, Requested, UpdatePhase, condition,
};
use interlock_kernel::conditions::Condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::Serialize;

/// A cluster, for programs: a contract.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClusterRow {
    /// Its name.
    pub(crate) cluster: String,
    /// Whether it is at its last good version and no request is in flight.
    pub(crate) ready: bool,
    /// Why it is not, in one word; null: it is.
    pub(crate) reason: Option<String>,
    /// Why, in a sentence.
    pub(crate) message: Option<String>,
    /// What a person does next; null: nobody has to do anything.
    pub(crate) next: Option<String>,
    /// Whether a rollback failed, and no request ended well since.
    pub(crate) degraded: bool,
    /// The last version that was verified; null: there was none.
    pub(crate) good: Option<i64>,
    /// The request in flight; null: there is none.
    pub(crate) active: Option<RequestRow>,
    /// The request that waits; null: there is none.
    pub(crate) queued: Option<RequestRow>,
    /// How many objects there are; null: the agent has reported nothing.
    pub(crate) objects: Option<ObjectCounts>,
    /// Objects that are not healthy yet, or that failed.
    pub(crate) not_ready: Vec<FailedObject>,
    /// Objects that others changed since.
    pub(crate) drifted: Vec<String>,
    /// Objects that are in no bundle any more, and that were kept for their data.
    pub(crate) kept: Vec<String>,
}

/// A request, for programs: a contract.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RequestRow {
    /// Its number; null: it has none yet.
    pub(crate) version: Option<i64>,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// How far it is.
    pub(crate) phase: UpdatePhase,
    /// Since when.
    pub(crate) since: Option<Timestamp>,
    /// Why, in one word.
    pub(crate) reason: String,
    /// Why, in a sentence.
    pub(crate) message: String,
    /// What a person does next; null: nobody has to do anything.
    pub(crate) next: Option<String>,
    /// The digest of its bundle; null: the bundle could not be read.
    pub(crate) digest: Option<String>,
}

impl From<&Requested> for RequestRow {
    fn from(request: &Requested) -> RequestRow {
        RequestRow {
            version: Some(request.version),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            phase: request.phase,
            since: moment(request.phase_since.as_ref()),
            reason: request.reason.clone(),
            message: request.message.clone(),
            next: request.next.clone(),
            digest: request.digest.clone(),
        }
    }
}

impl From<&ClusterUpdate> for RequestRow {
    fn from(update: &ClusterUpdate) -> RequestRow {
        let status = update.status_or_default();
        RequestRow {
            version: status.version,
            namespace: update.namespace().unwrap_or_default(),
            name: update.name_any(),
            phase: status.phase,
            since: moment(status.phase_since.as_ref()),
            reason: status.reason,
            message: status.message,
            next: status.next,
            digest: status.digest,
        }
    }
}

fn moment(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

/// What is shown of a cluster.
pub(crate) fn cluster(known: &Known) -> ClusterRow {
    let requests = known.requests();
    let status = known.record.as_ref().and_then(|record| record.status.clone());
    let status = status.unwrap_or_default();
    let ready = status.conditions.iter().find(|it| it.type_ == condition::READY);
    let is_ready = ready.is_some_and(|it| it.status == "True");
    let of = |uid: &str| requests.iter().find(|it| it.uid == uid).map(RequestRow::from);
    let report = known.report.as_ref().map(|report| report.status_or_default());
    // A report about an older target says nothing of this one.
    let report = report.filter(|report| report.token == status.target.token);
    let not_ready = report.iter().flat_map(|it| it.failed.iter().chain(&it.not_ready));
    ClusterRow {
        cluster: known.cluster.clone(),
        ready: is_ready,
        reason: ready.filter(|_| !is_ready).map(|it| it.reason.clone()),
        message: ready.filter(|_| !is_ready).map(|it| it.message.clone()),
        next: next_of(&status.conditions, &requests),
        degraded: status.is_degraded,
        good: status.last_good.as_ref().map(|good| good.version),
        active: status.active.as_ref().and_then(|active| of(&active.uid)),
        queued: requests
            .iter()
            .find(|request| request.phase == UpdatePhase::Queued)
            .map(RequestRow::from),
        objects: report.as_ref().map(|report| report.objects.clone()),
        not_ready: not_ready.cloned().collect(),
        drifted: report.as_ref().map(|report| report.drifted.clone()).unwrap_or_default(),
        kept: report.map(|report| report.kept).unwrap_or_default(),
    }
}

/// The next command: of a Degraded cluster that of the request that failed, otherwise none.
fn next_of(conditions: &[Condition], requests: &[Requested]) -> Option<String> {
    let is_degraded =
        conditions.iter().any(|it| it.type_ == condition::DEGRADED && it.status == "True");
    let newest = requests.iter().find(|it| it.phase.is_terminal())?;
    is_degraded.then(|| newest.next.clone()).flatten()
}

impl ClusterRow {
    /// Whether a person has to act.
    pub(crate) fn needs_a_person(&self) -> bool {
        self.degraded || self.next.is_some()
    }
}

/// All clusters, one line each.
pub(super) fn clusters_page(rows: &[ClusterRow], now: Timestamp) -> String {
    if rows.is_empty() {
        return "no clusters\nnext: kubectl apply a WorkloadCluster (docs/placement.md)\n"
            .to_owned();
    }
    let number = |version: Option<i64>| version.map_or("-".to_owned(), |it| it.to_string());
    let cells = |row: &ClusterRow| {
        let flying = row.active.as_ref().or(row.queued.as_ref());
        vec![
            row.cluster.clone(),
            number(row.good),
            flying.map_or("-".to_owned(), |it| it.phase.to_string()),
            number(flying.and_then(|it| it.version)),
            age_or_dash(now, flying.and_then(|it| it.since)),
            objects_cell(row.objects.as_ref()),
            row.reason.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let head = ["CLUSTER", "GOOD", "UPDATE", "VERSION", "FOR", "HEALTHY", "REASON"];
    let mut page = table(&head, &cells);
    for row in rows {
        if let Some(next) = &row.next {
            page += &format!("next for {}: {next}\n", row.cluster);
        }
    }
    page
}

pub(crate) fn objects_cell(objects: Option<&ObjectCounts>) -> String {
    objects.map_or("-".to_owned(), |it| format!("{}/{}", it.current, it.wanted))
}

/// One cluster, with what is not healthy and why.
pub(super) fn cluster_page(row: &ClusterRow, now: Timestamp) -> String {
    let mut page = match (&row.active, row.good) {
        (Some(active), _) => format!("cluster {}: {}\n", row.cluster, line(active, now)),
        (None, Some(good)) if row.ready => {
            format!("cluster {}: runs version {good}, which was verified\n", row.cluster)
        }
        (None, Some(good)) => format!("cluster {}: last good version {good}\n", row.cluster),
        (None, None) => format!("cluster {}: no version was verified yet\n", row.cluster),
    };
    if let Some(message) = row.message.as_ref().filter(|message| !message.is_empty()) {
        page += &format!("  because: {message}\n");
    }
    if let Some(queued) = &row.queued {
        page += &format!("  waits: {}\n", line(queued, now));
    }
    if let Some(objects) = &row.objects {
        let ObjectCounts { wanted, applied, current, to_prune } = objects;
        page += &format!("  objects: {wanted}, applied {applied}, healthy {current}");
        page += &if *to_prune > 0 { format!(", to prune {to_prune}\n") } else { "\n".to_owned() };
    }
    for FailedObject { id, code, message } in &row.not_ready {
        page += &format!("  not healthy: {id}: {code}: {message}\n");
    }
    for id in &row.drifted {
        page += &format!("  changed by others: {id}\n");
    }
    for id in &row.kept {
        page += &format!("  kept for its data: {id}\n");
    }
    if let Some(next) = &row.next {
        page += &format!("next: {next}\n");
    }
    page
}

/// A request in one line.
pub(super) fn line(row: &RequestRow, now: Timestamp) -> String {
    let number = row.version.map_or("no number yet".to_owned(), |it| format!("version {it}"));
    let age = age_or_dash(now, row.since);
    let called = format!("{}/{}", row.namespace, row.name);
    let mut line = format!("{number} ({called}) is {} for {age}", row.phase);
    if !row.reason.is_empty() {
        line += &format!(": {}", row.reason);
    }
    if !row.message.is_empty() {
        line += &format!(": {}", row.message);
    }
    line
}

/// A request as the answer to whoever asked for it.
pub(super) fn request_page(row: &RequestRow, now: Timestamp) -> String {
    let mut page = format!("{}\n", line(row, now));
    if let Some(next) = &row.next {
        page += &format!("next: {next}\n");
    }
    page
}

/// Requests, one line each.
pub(super) fn history_page(cluster: &str, rows: &[RequestRow], now: Timestamp) -> String {
    if rows.is_empty() {
        return format!(
            "cluster {cluster}: no requests\nnext: interlock rollout submit {cluster} --directory DIR\n"
        );
    }
    let cells = |row: &RequestRow| {
        vec![
            row.version.map_or("-".to_owned(), |it| it.to_string()),
            row.phase.to_string(),
            age_or_dash(now, row.since),
            format!("{}/{}", row.namespace, row.name),
            row.digest.as_deref().map_or("-".to_owned(), short),
            if row.reason.is_empty() { "-".to_owned() } else { row.reason.clone() },
        ]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    table(&["VERSION", "PHASE", "FOR", "REQUEST", "BUNDLE", "REASON"], &cells)
}

/// The beginning of a digest: enough to tell bundles apart, and short enough to read.
pub(super) fn short(digest: &str) -> String {
    digest.chars().take("sha256-".len() + 12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_api::rollouts::{
        Active, ClusterRollout, ClusterRolloutSpec, ClusterRolloutStatus, Good, RolloutReport,
        RolloutReportSpec, RolloutReportStatus, Target,
    };

    fn requested(version: i64, phase: UpdatePhase) -> Requested {
        Requested {
            uid: format!("u{version}"),
            namespace: "platform".to_owned(),
            name: format!("v{version}"),
            version,
            digest: Some(format!("sha256-{version:064}")),
            phase,
            ..Requested::default()
        }
    }

    fn known(status: ClusterRolloutStatus, report: RolloutReportStatus) -> Known {
        let of = interlock_api::placement::Ref::new("east", "c1");
        let mut record = ClusterRollout::new("east-c1", ClusterRolloutSpec::new(of.clone()));
        record.status = Some(status);
        let mut written = RolloutReport::new("east-c1", RolloutReportSpec { cluster: of });
        written.status = Some(report);
        Known { cluster: "east".to_owned(), record: Some(record), report: Some(written) }
    }

    fn verifying() -> ClusterRolloutStatus {
        ClusterRolloutStatus {
            last_version: 3,
            requests: vec![
                requested(2, UpdatePhase::Succeeded),
                requested(3, UpdatePhase::Verifying),
            ],
            active: Some(Active { uid: "u3".to_owned(), version: 3, ..Active::default() }),
            target: Target { token: 3, ..Target::default() },
            last_good: Some(Good { version: 2, ..Good::default() }),
            ..ClusterRolloutStatus::default()
        }
    }

    fn unhealthy(token: i64) -> RolloutReportStatus {
        let web = FailedObject {
            id: "apps/Deployment/shop/web".to_owned(),
            code: "InProgress".to_owned(),
            message: "1 of 3 replicas are available".to_owned(),
        };
        let objects = ObjectCounts { wanted: 4, applied: 4, current: 3, to_prune: 0 };
        RolloutReportStatus { token, objects, not_ready: vec![web], ..Default::default() }
    }

    #[test]
    fn an_update_in_flight_is_shown_with_what_is_not_healthy_and_why() {
        let row = cluster(&known(verifying(), unhealthy(3)));
        let page = cluster_page(&row, Timestamp::UNIX_EPOCH);
        assert!(page.starts_with("cluster east: version 3 (platform/v3) is Verifying"), "{page}");
        let line =
            "  not healthy: apps/Deployment/shop/web: InProgress: 1 of 3 replicas are available\n";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("objects: 4, applied 4, healthy 3\n"), "{page}");
    }

    #[test]
    fn a_report_about_an_older_target_is_not_shown() {
        let row = cluster(&known(verifying(), unhealthy(2)));
        assert!(row.objects.is_none() && row.not_ready.is_empty());
    }

    #[test]
    fn a_cluster_whose_rollback_failed_needs_a_person() {
        let mut status = verifying();
        status.is_degraded = true;
        let row = cluster(&known(status, unhealthy(3)));
        assert!(row.needs_a_person());
    }

    #[test]
    fn the_history_has_the_newest_first_and_an_empty_one_says_what_to_do() {
        let rows: Vec<RequestRow> =
            known(verifying(), unhealthy(3)).requests().iter().map(RequestRow::from).collect();
        let page = history_page("east", &rows, Timestamp::UNIX_EPOCH);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines[1].starts_with("3        Verifying"), "{page}");
        assert!(lines[2].starts_with("2        Succeeded"), "{page}");
        assert!(history_page("east", &[], Timestamp::UNIX_EPOCH).contains("rollout submit east"));
    }
}
