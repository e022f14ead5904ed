//! `interlock status volumes`: claims, what takes and brings snapshots of them, and the snapshots, cluster
//! by cluster.

use super::client::Fleet;
use crate::location::Location;
use crate::output::{Format, say, say_json};
use crate::words::{age_or_dash, size, table};
use interlock_api::names::{ANNOTATION_BYTES, ANNOTATION_FILES, HOLD_PREFIX};
use jiff::Timestamp;
use kube::api::{DynamicObject, GroupVersionKind};
use serde::Serialize;
use serde_json::Value;
use std::process::ExitCode;

/// Options of `status volumes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    location: Location,
}

/// The volumes of one cluster, for programs: a contract.
#[derive(Debug, Default, Serialize)]
struct Cluster {
    /// Its name.
    name: String,
    /// Why it could not be asked; null: it answered.
    error: Option<String>,
    claims: Vec<Claim>,
    sources: Vec<Sync>,
    destinations: Vec<Sync>,
    snapshots: Vec<Snapshot>,
}

/// A claim, for programs.
#[derive(Debug, Serialize)]
struct Claim {
    namespace: String,
    name: String,
    /// Pending, Bound or Lost.
    phase: String,
    /// How much it may hold, as Kubernetes writes it.
    capacity: Option<String>,
    /// The volume that it has.
    volume: Option<String>,
    /// What it is filled from: a kind and a name.
    from: Option<String>,
    /// Why it has no volume: a word and a sentence; null: nothing is wrong.
    trouble: Option<String>,
}

/// What takes or brings snapshots, for programs.
#[derive(Debug, Serialize)]
struct Sync {
    namespace: String,
    name: String,
    /// The claim of a source.
    claim: Option<String>,
    /// When the last sync ended.
    last_sync: Option<Timestamp>,
    /// The tag that was confirmed last.
    last_tag: Option<String>,
    /// The snapshot that it made last.
    snapshot: Option<String>,
    /// How many bytes the sync that runs has moved.
    bytes: Option<u64>,
    /// How many it has to move.
    of_bytes: Option<u64>,
    /// How many files it has moved.
    files: Option<u64>,
    /// How many bytes it moved a second, so far.
    bytes_per_second: Option<u64>,
    /// How many seconds it takes from here, if it goes on like that.
    seconds_left: Option<u64>,
    /// Whether its namespace runs on another cluster, which saves it; that is no trouble.
    is_elsewhere: bool,
    /// What is wrong with it: a word and a sentence; null: nothing.
    trouble: Option<String>,
}

/// A snapshot, for programs.
#[derive(Debug, Serialize)]
struct Snapshot {
    namespace: String,
    name: String,
    ready: bool,
    taken: Option<Timestamp>,
    files: Option<u64>,
    bytes: Option<u64>,
    /// By how many grants and claims it is held.
    holds: usize,
    /// Whether it is being deleted.
    deleting: bool,
}

const CLAIMS: (&str, &str, &str, &str) =
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
const SOURCES: (&str, &str, &str, &str) =
    ("volsync.backube", "v1alpha1", "ReplicationSource", "replicationsources");
const DESTINATIONS: (&str, &str, &str, &str) =
    ("volsync.backube", "v1alpha1", "ReplicationDestination", "replicationdestinations");
const SNAPSHOTS: (&str, &str, &str, &str) =
    ("snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots");

/// Runs `status volumes`.
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let fleet = Fleet::open(&args.location).await?;
    let mut clusters = Vec::new();
    for cluster in fleet.clusters().await? {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        if args.cluster.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        clusters.push(match look(&fleet, &cluster).await {
            Ok(found) => Cluster { name, ..found },
            Err(error) => Cluster { name, error: Some(format!("{error:#}")), ..Cluster::default() },
        });
    }
    if let Some(name) = args.cluster.as_ref().filter(|_| clusters.is_empty()) {
        anyhow::bail!("cluster `{name}` does not exist: see interlock status --clusters");
    }
    match args.output {
        Format::Json => say_json(&clusters)?,
        Format::Text => say(&text(&clusters, Timestamp::now()))?,
    }
    let is_well = clusters.iter().all(Cluster::is_well);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Cluster {
    fn is_well(&self) -> bool {
        let mut syncs = self.sources.iter().chain(&self.destinations);
        self.error.is_none()
            && syncs.all(|sync| sync.trouble.is_none() || sync.is_elsewhere)
            && self.claims.iter().all(|claim| claim.phase != "Lost" && claim.trouble.is_none())
    }
}

async fn look(
    fleet: &Fleet,
    cluster: &interlock_api::placement::WorkloadCluster,
) -> anyhow::Result<Cluster> {
    let within = fleet.within(cluster).await?;
    let list = async |(group, version, kind, plural): (&str, &str, &str, &str)| {
        let kind = GroupVersionKind::gvk(group, version, kind);
        fleet.list_within(&within, &kind, plural).await
    };
    Ok(Cluster {
        claims: list(CLAIMS).await?.iter().map(claim).collect(),
        sources: list(SOURCES).await?.iter().map(sync).collect(),
        destinations: list(DESTINATIONS).await?.iter().map(sync).collect(),
        snapshots: list(SNAPSHOTS).await?.iter().map(snapshot).collect(),
        ..Cluster::default()
    })
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn address(object: &DynamicObject) -> (String, String) {
    let metadata = &object.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

fn claim(object: &DynamicObject) -> Claim {
    let (namespace, name) = address(object);
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let asked = &spec["resources"]["requests"]["storage"];
    let from = &spec["dataSourceRef"];
    let from = text_of(&from["kind"]).zip(text_of(&from["name"]));
    Claim {
        namespace,
        name,
        phase: text_of(&status["phase"]).unwrap_or_else(|| "Pending".to_owned()),
        capacity: text_of(&status["capacity"]["storage"]).or_else(|| text_of(asked)),
        volume: text_of(&spec["volumeName"]),
        from: from.map(|(kind, name)| format!("{kind} {name}")),
        // What was in the way of a claim that has its volume is history.
        trouble: trouble(status).filter(|_| status["phase"] != "Bound"),
    }
}

/// The first thing that is wrong.
fn trouble(status: &Value) -> Option<String> {
    let is_trouble = |condition: &&Value| {
        let kind = condition["type"].as_str().unwrap_or_default();
        ["interlock.dev/Healthy", "interlock.dev/Accepted"].contains(&kind)
            && condition["status"] == "False"
    };
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(is_trouble).map(|condition| {
        let word = |key: &str| condition[key].as_str().unwrap_or_default();
        format!("{}: {}", word("reason"), word("message"))
    })
}

fn sync(object: &DynamicObject) -> Sync {
    let (namespace, name) = address(object);
    let status = &object.data["status"];
    let told = &status["external"];
    let number = |key: &str| told[key].as_str().and_then(|text| text.parse().ok());
    let time = |value: &Value| value.as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let (bytes, of_bytes) = (number("progressBytes"), number("progressOfBytes"));
    let began = time(&status["lastSyncStartTime"]);
    let seconds = time(&told["progressTime"]).zip(began);
    let seconds = seconds.map(|(now, began)| now.duration_since(began).as_secs());
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|some| *some > 0);
    let bytes_per_second = bytes.zip(seconds).map(|(bytes, seconds): (u64, u64)| bytes / seconds);
    let left = of_bytes.zip(bytes).map(|(all, bytes): (u64, u64)| all.saturating_sub(bytes));
    let rate = bytes_per_second.filter(|rate| *rate > 0);
    Sync {
        namespace,
        name,
        claim: text_of(&object.data["spec"]["sourcePVC"]),
        last_sync: time(&status["lastSyncTime"]),
        last_tag: text_of(&status["lastManualSync"]),
        snapshot: text_of(&told["snapshot"]).or_else(|| text_of(&status["latestImage"]["name"])),
        bytes,
        of_bytes,
        files: number("progressFiles"),
        bytes_per_second,
        seconds_left: left.zip(rate).map(|(left, rate)| left / rate),
        is_elsewhere: trouble(status).is_some_and(|trouble| trouble.starts_with("NotHere: ")),
        trouble: trouble(status),
    }
}

/// How far a sync is: `1.2 GiB of 3.0 GiB, 523 files, 45 MiB/s, 40s left`.
fn progress(sync: &Sync) -> Option<String> {
    let mut words = vec![match sync.of_bytes {
        Some(all) => format!("{} of {}", size(sync.bytes?), size(all)),
        None => size(sync.bytes?),
    }];
    words.extend(sync.files.map(|files| format!("{files} files")));
    words.extend(sync.bytes_per_second.map(|rate| format!("{}/s", size(rate))));
    words.extend(sync.seconds_left.map(|left| format!("{left}s left")));
    Some(words.join(", "))
}

fn snapshot(object: &DynamicObject) -> Snapshot {
    let (namespace, name) = address(object);
    let status = &object.data["status"];
    let marks = object.metadata.annotations.as_ref();
    let number = |key: &str| marks.and_then(|marks| marks.get(key)?.parse().ok());
    let finalizers = object.metadata.finalizers.iter().flatten();
    Snapshot {
        namespace,
        name,
        ready: status["readyToUse"] == true,
        taken: status["creationTime"].as_str().and_then(|time| time.parse().ok()),
        files: number(ANNOTATION_FILES),
        bytes: number(ANNOTATION_BYTES),
        holds: finalizers.filter(|known| known.starts_with(HOLD_PREFIX)).count(),
        deleting: object.metadata.deletion_timestamp.is_some(),
    }
}

fn text(clusters: &[Cluster], now: Timestamp) -> String {
    let unwell = clusters.iter().filter(|cluster| !cluster.is_well()).count();
    let sum = |of: fn(&Cluster) -> usize| clusters.iter().map(of).sum::<usize>();
    let mut text = match unwell {
        0 => format!(
            "no problems: {} claims and {} snapshots on {} clusters\n",
            sum(|cluster| cluster.claims.len()),
            sum(|cluster| cluster.snapshots.len()),
            clusters.len()
        ),
        unwell => format!("{unwell} of {} clusters have problems\n", clusters.len()),
    };
    for cluster in clusters.iter().filter(|cluster| cluster.error.is_some()) {
        let error = cluster.error.as_deref().unwrap_or_default();
        text += &format!("\n{} did not answer: {error}\n", cluster.name);
    }
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut add = |head: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            text += "\n";
            text += &table(head, &rows);
        }
    };
    let claims = clusters.iter().flat_map(|cluster| {
        cluster.claims.iter().map(|row| {
            let (at, row_from) = (cluster.name.clone(), dash(&row.from));
            vec![
                at,
                row.namespace.clone(),
                row.name.clone(),
                row.phase.clone(),
                dash(&row.capacity),
                row_from,
                row.trouble.clone().unwrap_or_default(),
            ]
        })
    });
    add(&["CLUSTER", "NAMESPACE", "CLAIM", "PHASE", "SIZE", "FROM", "NOTE"], claims.collect());
    let syncs = |of: fn(&Cluster) -> &[Sync]| -> Vec<Vec<String>> {
        let rows = clusters.iter().flat_map(move |cluster| {
            of(cluster).iter().map(move |row| (cluster.name.clone(), row))
        });
        rows.map(|(at, row)| {
            // One that runs is on its way, whatever became of the one before.
            let note = progress(row).or_else(|| row.trouble.clone()).unwrap_or_default();
            let last = age_or_dash(now, row.last_sync);
            vec![
                at,
                row.namespace.clone(),
                row.name.clone(),
                last,
                dash(&row.last_tag),
                dash(&row.snapshot),
                note,
            ]
        })
        .collect()
    };
    add(
        &["CLUSTER", "NAMESPACE", "SOURCE", "LAST SYNC", "TAG", "SNAPSHOT", "NOTE"],
        syncs(|cluster| &cluster.sources),
    );
    add(
        &["CLUSTER", "NAMESPACE", "DESTINATION", "LAST SYNC", "TAG", "SNAPSHOT", "NOTE"],
        syncs(|cluster| &cluster.destinations),
    );
    let snapshots = clusters.iter().flat_map(|cluster| {
        cluster.snapshots.iter().map(|row| {
            let state = match (row.deleting, row.ready) {
                (true, _) => "deleting",
                (false, true) => "ready",
                (false, false) => "being taken",
            };
            let count = |number: Option<u64>| {
                number.map_or_else(|| "-".to_owned(), |number| number.to_string())
            };
            let bytes = row.bytes.map_or_else(|| "-".to_owned(), size);
            vec![
                cluster.name.clone(),
                row.namespace.clone(),
                row.name.clone(),
                state.to_owned(),
                age_or_dash(now, row.taken),
                count(row.files),
                bytes,
                row.holds.to_string(),
            ]
        })
    });
    add(
        &["CLUSTER", "NAMESPACE", "SNAPSHOT", "STATE", "AGE", "FILES", "BYTES", "HOLDS"],
        snapshots.collect(),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn a_sync_that_runs_says_how_far_it_is_and_how_long_it_takes() {
        let mib = |count: u64| (count << 20).to_string();
        let found = sync(&object(json!({
            "metadata": {"namespace": "shop", "name": "data"},
            "status": {"lastSyncStartTime": "2026-01-01T00:00:00Z", "external": {
                "progressBytes": mib(200), "progressOfBytes": mib(500), "progressFiles": "523",
                "progressTime": "2026-01-01T00:00:10Z"}},
        })));
        assert_eq!(
            progress(&found).as_deref(),
            Some("200 MiB of 500 MiB, 523 files, 20.0 MiB/s, 15s left")
        );
        assert_eq!(progress(&sync(&object(json!({"metadata": {"name": "data"}})))), None);
    }

    #[test]
    fn a_source_that_a_move_left_behind_is_no_trouble() {
        let left = |reason: &str| {
            sync(&object(json!({
                "metadata": {"namespace": "shop-1", "name": "data"},
                "status": {"conditions": [{"type": "interlock.dev/Healthy", "status": "False",
                    "reason": reason, "message": "it runs elsewhere"}]},
            })))
        };
        let with = |source: Sync| Cluster { sources: vec![source], ..Cluster::default() };
        assert!(with(left("NotHere")).is_well() && !with(left("SourceMissing")).is_well());
        let said = text(&[with(left("NotHere"))], Timestamp::UNIX_EPOCH);
        assert!(said.starts_with("no problems") && said.contains("NotHere: it runs"), "{said}");
    }

    #[test]
    fn what_is_wrong_is_said_first_and_beside_what_it_is_wrong_with() {
        let source = object(json!({
            "metadata": {"namespace": "shop-1", "name": "move-data"},
            "spec": {"sourcePVC": "data"},
            "status": {"lastManualSync": "final-3", "external": {"snapshot": "i-1"}, "conditions": [
                {"type": "interlock.dev/Healthy", "status": "False", "reason": "TargetFull",
                 "message": "2 GiB are needed"},
            ]},
        }));
        let snapshot_here = object(json!({
            "metadata": {"namespace": "shop-1", "name": "i-1",
                "annotations": {"interlock.dev/files": "3", "interlock.dev/bytes": "2048"},
                "finalizers": ["interlock.dev/hold-u", "other"]},
            "status": {"readyToUse": true, "creationTime": "2026-01-01T00:00:00Z"},
        }));
        let claim_here = object(json!({
            "metadata": {"namespace": "shop-1", "name": "data"},
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pvc-1",
                "dataSourceRef": {"kind": "ReplicationDestination", "name": "move-data-3"}},
            "status": {"phase": "Bound"},
        }));
        let west = Cluster {
            name: "west".to_owned(),
            claims: vec![claim(&claim_here)],
            sources: vec![sync(&source)],
            snapshots: vec![snapshot(&snapshot_here)],
            ..Cluster::default()
        };
        assert!(!west.is_well());
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let said = text(&[west], now);
        assert_eq!(
            said,
            "\
1 of 1 clusters have problems

CLUSTER  NAMESPACE  CLAIM  PHASE  SIZE  FROM                                NOTE
west     shop-1     data   Bound  1Gi   ReplicationDestination move-data-3

CLUSTER  NAMESPACE  SOURCE     LAST SYNC  TAG      SNAPSHOT  NOTE
west     shop-1     move-data  -          final-3  i-1       TargetFull: 2 GiB are needed

CLUSTER  NAMESPACE  SNAPSHOT  STATE  AGE  FILES  BYTES    HOLDS
west     shop-1     i-1       ready  60s  3      2.0 KiB  1
"
        );
    }
}
