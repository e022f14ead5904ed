//! `interlock up --demo`: a writer that never pauses is moved around with its data, and every promise
//! is checked.
//!
//! The writer is this program (`interlock write-numbers`): it appends numbered, synced records to a
//! file in its claim, and after each one it says so in a log outside, which all clusters share: that
//! record is acknowledged. It refuses to write where another one writes, and where a record is missing
//! that was acknowledged. So two owners at once would show as a refusal, and so would a move that
//! loses data; and after each move the volume that the writer has now is compared with the log. Beside
//! the records there is a larger file, so that a move has something to carry.

use crate::fleet::progress::Data;
use crate::output::{self, ProgressLine};
use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use interlock_api::names;
use interlock_api::placement::{Fill, Grant, GrantStatus, Phase, Placement};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "ledger";
const POD: &str = "writer";
const CLAIM: &str = "data";
/// What is in the claim besides the records.
const BALLAST_BYTES: u64 = 96 * 1024 * 1024;
/// Old copies of the demonstration go soon: it makes one with every move.
const KEEP_SUPERSEDED: &str = "10s";
/// A move of a few records takes far less; a machine that is busy with other things may take longer.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// The file in which a writer says that it met another one.
const REFUSALS: &str = "refusals";

/// The demonstration.
pub(crate) struct Demo {
    pub(crate) hub: Client,
    /// Where the writer says what it has written.
    pub(crate) directory: PathBuf,
    /// Where the volumes of all clusters are.
    pub(crate) volumes: PathBuf,
    /// Where it goes, one after the other.
    pub(crate) clusters: Vec<String>,
    /// Whether one round is enough.
    pub(crate) is_once: bool,
}

impl Demo {
    /// Moves the writer around; whether every promise was kept.
    pub(crate) async fn run(&self) -> anyhow::Result<bool> {
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make {}", self.directory.display()))?;
        let first = self.clusters.first().context("a demonstration needs a cluster")?;
        output::say(&format!(
            "a writer appends numbered records to its claim, each synced to the disk, and then \
             acknowledges it in\n{}; the clusters share no storage\n\n",
            self.numbers().display()
        ))?;
        self.place(first).await?;
        let mut moves = 0;
        loop {
            let next = (moves + 1) % self.clusters.len();
            let to = &self.clusters[next];
            self.step(to).await?;
            moves += 1;
            if !self.check(to).await? {
                return Ok(false);
            }
            if self.is_once && moves >= self.clusters.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        output::say("\nevery promise was kept\n")?;
        Ok(true)
    }

    fn numbers(&self) -> PathBuf {
        self.directory.join(RECORDS)
    }

    /// Makes the namespace and the pod, if they are not there from an earlier start.
    async fn place(&self, cluster: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        output::say(&format!("place {NAMESPACE} on {cluster}\n"))?;
        let placements: Api<Placement> = Api::all(self.hub.clone());
        let placement = serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "Placement",
            "metadata": {"name": NAMESPACE},
            "spec": {
                "namespaceSelector": {"matchLabels": {"demo": NAMESPACE}}, "clusterSelector": {},
                "volumes": {"keepSuperseded": KEEP_SUPERSEDED},
            },
        }))
        .context("a placement")?;
        made(placements.create(&PostParams::default(), &placement).await)?;
        let namespaces: Api<Namespace> = Api::all(self.hub.clone());
        let namespace = serde_json::from_value(json!({"metadata": {
            "name": NAMESPACE,
            "labels": {names::LABEL_PLACED: names::PLACED_TRUE, "demo": NAMESPACE},
            "annotations": {names::ANNOTATION_CLUSTER: cluster},
        }}))
        .context("a namespace")?;
        let is_new = made(namespaces.create(&PostParams::default(), &namespace).await)?;
        if !is_new {
            self.place_on(cluster).await?;
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.hub.clone(), NAMESPACE);
        let claim = serde_json::from_value(json!({
            "metadata": {"name": CLAIM},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "128Mi"}},
            },
        }))
        .context("a claim")?;
        made(claims.create(&PostParams::default(), &claim).await)?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let pod = serde_json::from_value(json!({
            "metadata": {"name": POD},
            "spec": {
                "runtimeClassName": names::RUNTIME_CLASS,
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "writer", "image": "none",
                    "command": [
                        program, "write-numbers", self.directory, "--into", CLAIM,
                        "--ballast", BALLAST_BYTES.to_string(),
                    ],
                    "volumeMounts": [{"name": CLAIM, "mountPath": format!("/{CLAIM}")}],
                }],
                "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
            },
        }))
        .context("a pod")?;
        let pods: Api<Pod> = Api::namespaced(self.hub.clone(), NAMESPACE);
        made(pods.create(&PostParams::default(), &pod).await)?;
        self.runs_on(cluster, began).await
    }

    async fn step(&self, cluster: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        output::say(&format!(
            "\nmove {NAMESPACE} to {cluster}: promised: {cluster} starts when the old owner has \
             stopped for certain, and with every\nrecord that was acknowledged\n"
        ))?;
        self.place_on(cluster).await?;
        self.runs_on(cluster, began).await
    }

    async fn place_on(&self, cluster: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.hub.clone());
        let patch = json!({"metadata": {"annotations": {names::ANNOTATION_CLUSTER: cluster}}});
        let params = PatchParams::default();
        namespaces
            .patch(NAMESPACE, &params, &Patch::Merge(&patch))
            .await
            .context("cannot set the desired cluster of the namespace")?;
        Ok(())
    }

    /// Waits until the writer writes on this cluster, and tells the phases as they pass.
    async fn runs_on(&self, cluster: &str, began: Instant) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.hub.clone());
        let namespace = namespaces.get(NAMESPACE).await.context("cannot read the namespace")?;
        let uid = namespace.uid().unwrap_or_default();
        let grants: Api<Grant> = Api::all(self.hub.clone());
        let name = names::grant_name(NAMESPACE, &uid);
        let mut told = (Phase::Unassigned, -1);
        let mut is_filled = false;
        let bar = ProgressLine::default();
        let written = count(&self.numbers());
        loop {
            if let Some(grant) = grants.get_opt(&name).await.context("cannot read the grant")? {
                let status = grant.status_or_default();
                let owner = status.owner.as_ref().map_or("nobody", |owner| &owner.name).to_owned();
                let ms = began.elapsed().as_millis();
                if told != (status.phase, status.epoch) {
                    told = (status.phase, status.epoch);
                    let (phase, epoch) = told;
                    bar.clear();
                    let line = format!("  {ms:>5} ms  {phase:<10} epoch {epoch}, owner {owner}\n");
                    output::say(&line)?;
                }
                let is_there = status.phase == Phase::Granted && owner == cluster;
                if let Some(data) = Data::of(&status.claims).filter(|_| ProgressLine::is_wanted()) {
                    bar.show(&format!("  {ms:>5} ms  Filling    {}", data.bar(None)));
                }
                if let Some(data) = arrived(&status).filter(|_| is_there && !is_filled) {
                    is_filled = true;
                    bar.clear();
                    output::say(&format!("  {ms:>5} ms  Filled     {}\n", data.bar(None)))?;
                }
                if is_there
                    && count(&self.numbers()) > written
                    && self.last_writer() == status.epoch
                {
                    return output::say(&format!("  {ms:>5} ms  writes on {cluster}\n"));
                }
            }
            // A writer that met another one is gone, and is not waited for: the check says so.
            if !self.refusals().is_empty() {
                return Ok(());
            }
            if began.elapsed() > TIMEOUT {
                bail!("{NAMESPACE} does not run on {cluster}: see interlock explain {NAMESPACE}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn refusals(&self) -> Vec<String> {
        read_lines(&self.directory.join(REFUSALS))
    }

    /// The epoch of the last record.
    fn last_writer(&self) -> i64 {
        read(&self.numbers()).last().map_or(0, |record| record.epoch)
    }

    /// Whether the records are what one writer after another leaves, and all in the claim.
    async fn check(&self, cluster: &str) -> anyhow::Result<bool> {
        let mut broken = self.refusals();
        // First what was acknowledged, then what is there: more may have come in between.
        let acknowledged = read(&self.numbers());
        let there = self.in_the_claim(cluster).await?;
        broken.extend(judge(&acknowledged).err());
        broken.extend(compare(&acknowledged, &there, cluster).err());
        for words in &broken {
            output::say(&format!("  BROKEN: {words}\n"))?;
        }
        if broken.is_empty() {
            output::say(&format!(
                "  kept: {} records acknowledged, all in the volume on {cluster}; none lost, none \
                 twice; never two writers\n",
                acknowledged.len()
            ))?;
        }
        Ok(broken.is_empty())
    }

    /// The records in the volume that the writer has on a cluster: the one that was written to last.
    async fn in_the_claim(&self, cluster: &str) -> anyhow::Result<Vec<Record>> {
        let clusters: Api<interlock_api::placement::WorkloadCluster> = Api::all(self.hub.clone());
        let uid = clusters.get(cluster).await.context("cannot read the cluster")?.uid();
        let folder = self.volumes.join(uid.unwrap_or_default());
        let entries = std::fs::read_dir(&folder);
        let entries = entries.with_context(|| format!("cannot list {}", folder.display()))?;
        let volumes = entries.filter_map(|entry| Some(read(&entry.ok()?.path().join(RECORDS))));
        Ok(volumes
            .max_by_key(|records| records.last().map_or(0, |last| last.epoch))
            .unwrap_or_default())
    }
}

/// What the claims were filled with, once all of it is there; None: they began empty, or it is not.
fn arrived(status: &GrantStatus) -> Option<Data> {
    let is_filled = status.claims.iter().all(|claim| claim.fill == Fill::Filled);
    let bytes = status.pins.iter().map(|pin| pin.bytes.max(0).unsigned_abs()).sum();
    (is_filled && bytes > 0).then_some(Data { bytes, of_bytes: Some(bytes) })
}

/// Whether an object was made, or was there already.
fn made<K>(created: kube::Result<K>) -> anyhow::Result<bool> {
    match created {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error).context("cannot create the objects of the demonstration"),
    }
}

/// One record of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    number: u64,
    epoch: i64,
}

/// The records of one writer after another are numbered without a gap, and epochs never fall.
fn judge(records: &[Record]) -> Result<(), String> {
    for (place, record) in records.iter().enumerate() {
        let expected = place as u64 + 1;
        if record.number != expected {
            return Err(format!("record {expected} has the number {}", record.number));
        }
        if place > 0 && record.epoch < records[place - 1].epoch {
            return Err(format!("record {expected} is of an earlier epoch than the one before"));
        }
    }
    Ok(())
}

/// Whether everything that was acknowledged is in the volume, in its place.
fn compare(acknowledged: &[Record], there: &[Record], cluster: &str) -> Result<(), String> {
    judge(there).map_err(|broken| format!("in the volume on {cluster}, {broken}"))?;
    match acknowledged.iter().zip(there).position(|(said, found)| said != found) {
        Some(place) => Err(format!("record {} is another in the volume on {cluster}", place + 1)),
        None if there.len() < acknowledged.len() => Err(format!(
            "records {} to {} were acknowledged and are not in the volume on {cluster}",
            there.len() + 1,
            acknowledged.len()
        )),
        None => Ok(()),
    }
}

fn read_lines(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    BufReader::new(file).lines().map_while(Result::ok).collect()
}

fn read(path: &Path) -> Vec<Record> {
    let parse = |line: String| {
        let (number, epoch) = line.split_once(' ')?;
        Some(Record { number: number.parse().ok()?, epoch: epoch.parse().ok()? })
    };
    read_lines(path).into_iter().map_while(parse).collect()
}

fn count(path: &Path) -> usize {
    read(path).len()
}

/// Options of `write-numbers`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WriterArgs {
    /// Where to say what was written; without --into: where to write
    directory: PathBuf,
    /// Where to write, if not there: a folder in a volume
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// How many bytes to have there besides
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "into")]
    ballast: u64,
}

/// The file of the records.
const RECORDS: &str = "numbers";
/// The pause between two records.
const PAUSE: Duration = Duration::from_millis(10);

/// Appends numbered, synced records until it is asked to stop.
pub(crate) fn write_numbers(args: &WriterArgs) -> anyhow::Result<ExitCode> {
    let epoch = std::env::var("INTERLOCK_EPOCH").unwrap_or_else(|_| "0".to_owned());
    let (mut log, acknowledged) = open(&args.directory.join(RECORDS))?;
    // Another writer must be gone: if it is not, that is what the demonstration is there to show.
    if log.try_lock().is_err() {
        return refuse(args, &format!("a writer of epoch {epoch} met another one"));
    }
    let Some(into) = &args.into else {
        let mut number = acknowledged.len() as u64;
        loop {
            number += 1;
            append(&mut log, &format!("{number} {epoch}"))?;
            std::thread::sleep(PAUSE);
        }
    };
    let (mut records, there) = open(&into.join(RECORDS))?;
    weigh_down(&into.join("ballast"), args.ballast)?;
    if there.len() < acknowledged.len() {
        return refuse(
            args,
            &format!(
                "a writer of epoch {epoch} misses records: {} were acknowledged, and {} are there",
                acknowledged.len(),
                there.len()
            ),
        );
    }
    // Who wrote a record and did not live to say so is helped.
    for record in &there[acknowledged.len()..] {
        append(&mut log, &format!("{} {}", record.number, record.epoch))?;
    }
    let mut number = there.len() as u64;
    loop {
        number += 1;
        let record = format!("{number} {epoch}");
        append(&mut records, &record)?;
        append(&mut log, &record)?;
        std::thread::sleep(PAUSE);
    }
}

/// Fills a file with noise up to so many bytes: nothing that a copier could leave out.
fn weigh_down(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(cannot)?;
    let mut there = file.metadata().with_context(cannot)?.len();
    let mut noise = there | 1;
    while there < bytes {
        let mut block = Vec::with_capacity(1 << 20);
        while block.len() < 1 << 20 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            block.extend_from_slice(&(noise >> 16).to_le_bytes());
        }
        file.write_all(&block).with_context(cannot)?;
        there += block.len() as u64;
    }
    file.sync_data().with_context(cannot)
}

/// Opens a file of records for more. A line that somebody did not live to finish was never
/// acknowledged, and goes.
fn open(path: &Path) -> anyhow::Result<(File, Vec<Record>)> {
    let cannot = || format!("cannot open {}", path.display());
    let mut file =
        OpenOptions::new().create(true).append(true).read(true).open(path).with_context(cannot)?;
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).with_context(cannot)?;
    file.read_to_end(&mut text).with_context(cannot)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() && file.try_lock().is_ok() {
        file.set_len(whole as u64).with_context(cannot)?;
    }
    Ok((file, read(path)))
}

fn append(file: &mut File, record: &str) -> anyhow::Result<()> {
    // In one piece: a line is there or not.
    file.write_all(format!("{record}\n").as_bytes()).context("cannot write a record")?;
    file.sync_data().context("cannot sync a record")
}

fn refuse(args: &WriterArgs, words: &str) -> anyhow::Result<ExitCode> {
    let mut refusals = OpenOptions::new()
        .create(true)
        .append(true)
        .open(args.directory.join(REFUSALS))
        .context("cannot say what is wrong")?;
    writeln!(refusals, "{words}").context("cannot say what is wrong")?;
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(numbers: &[(u64, i64)]) -> Vec<Record> {
        numbers.iter().map(|&(number, epoch)| Record { number, epoch }).collect()
    }

    #[test]
    fn one_writer_after_another_is_as_promised() {
        assert_eq!(judge(&records(&[(1, 1), (2, 1), (3, 2)])), Ok(()));
    }

    #[test]
    fn a_gap_a_number_twice_and_an_old_writer_are_found() {
        assert!(judge(&records(&[(1, 1), (3, 1)])).is_err());
        assert!(judge(&records(&[(1, 1), (1, 2)])).is_err());
        assert!(judge(&records(&[(1, 2), (2, 1)])).is_err());
    }

    #[test]
    fn a_record_that_was_acknowledged_and_is_not_there_is_found() {
        let (two, three) = (records(&[(1, 1), (2, 1)]), records(&[(1, 1), (2, 1), (3, 1)]));
        assert_eq!(compare(&two, &three, "west"), Ok(()));
        assert_eq!(compare(&three, &three, "west"), Ok(()));
        assert!(compare(&three, &two, "west").unwrap_err().contains("records 3 to 3"));
        let other = records(&[(1, 1), (2, 2)]);
        assert!(compare(&two, &other, "west").unwrap_err().contains("record 2 is another"));
    }
}
