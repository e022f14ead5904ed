//! `interlock up --demo`: a writer that never pauses is moved around, and every promise is checked.
//!
//! The writer is this program (`interlock write-numbers`): it appends numbered, synced records to one
//! file that all clusters share, and refuses to write where another one writes. So two owners at once
//! would show: as a refusal, or as a number that is there twice.

use crate::output;
use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use interlock_api::names;
use interlock_api::placement::{Grant, Phase};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "ledger";
const POD: &str = "writer";
/// A move without data takes far less; a machine that is busy with other things may take longer.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// The file in which a writer says that it met another one.
const REFUSALS: &str = "refusals";

/// The demonstration.
pub(crate) struct Demo {
    pub(crate) hub: Client,
    /// Where the writer writes.
    pub(crate) directory: PathBuf,
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
            "a writer appends numbered records to {}, each synced to the disk\n\n",
            self.numbers().display()
        ))?;
        self.place(first).await?;
        let mut moves = 0;
        loop {
            let next = (moves + 1) % self.clusters.len();
            self.step(&self.clusters[next]).await?;
            moves += 1;
            if !self.check()? {
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
        self.directory.join("numbers")
    }

    /// Makes the namespace and the pod, if they are not there from an earlier start.
    async fn place(&self, cluster: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        output::say(&format!("place {NAMESPACE} on {cluster}\n"))?;
        let namespaces: Api<Namespace> = Api::all(self.hub.clone());
        let namespace = serde_json::from_value(json!({"metadata": {
            "name": NAMESPACE,
            "labels": {names::LABEL_PLACED: names::PLACED_TRUE},
            "annotations": {names::ANNOTATION_CLUSTER: cluster},
        }}))
        .context("a namespace")?;
        let is_new = made(namespaces.create(&PostParams::default(), &namespace).await)?;
        if !is_new {
            self.wish(cluster).await?;
        }
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let pod = serde_json::from_value(json!({
            "metadata": {"name": POD},
            "spec": {
                "runtimeClassName": names::RUNTIME_CLASS,
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "writer", "image": "none",
                    "command": [program, "write-numbers", self.directory],
                }],
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
            "\nmove {NAMESPACE} to {cluster}: promised: nobody else starts before the old owner has \
             stopped for certain\n"
        ))?;
        self.wish(cluster).await?;
        self.runs_on(cluster, began).await
    }

    async fn wish(&self, cluster: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.hub.clone());
        let patch = json!({"metadata": {"annotations": {names::ANNOTATION_CLUSTER: cluster}}});
        let params = PatchParams::default();
        namespaces
            .patch(NAMESPACE, &params, &Patch::Merge(&patch))
            .await
            .context("cannot say where the namespace is to run")?;
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
        let written = count(&self.numbers());
        loop {
            if let Some(grant) = grants.get_opt(&name).await.context("cannot read the grant")? {
                let status = grant.status_or_default();
                let owner = status.owner.as_ref().map_or("nobody", |owner| &owner.name).to_owned();
                if told != (status.phase, status.epoch) {
                    told = (status.phase, status.epoch);
                    let (phase, epoch) = told;
                    output::say(&format!(
                        "  {:>5} ms  {phase:<10} epoch {epoch}, owner {owner}\n",
                        began.elapsed().as_millis()
                    ))?;
                }
                let is_there = status.phase == Phase::Granted && owner == cluster;
                if is_there
                    && count(&self.numbers()) > written
                    && self.last_writer() == status.epoch
                {
                    let ms = began.elapsed().as_millis();
                    return output::say(&format!("  {ms:>5} ms  writes on {cluster}\n"));
                }
            }
            // A writer that met another one is gone, and is not waited for: the check says so.
            if !self.refusals().is_empty() {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
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

    /// Whether the records are what one writer after another leaves.
    fn check(&self) -> anyhow::Result<bool> {
        let records = read(&self.numbers());
        let verdict = judge(&records);
        let refusals = self.refusals();
        if let Err(broken) = &verdict {
            output::say(&format!("  BROKEN: {broken}\n"))?;
        }
        for refusal in &refusals {
            output::say(&format!("  BROKEN: {refusal}\n"))?;
        }
        if verdict.is_ok() && refusals.is_empty() {
            output::say(&format!(
                "  kept: {} records, none lost, none twice; never two writers\n",
                records.len()
            ))?;
        }
        Ok(verdict.is_ok() && refusals.is_empty())
    }
}

/// Whether an object was made, or was there already.
fn made<K>(created: kube::Result<K>) -> anyhow::Result<bool> {
    match created {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error).context("cannot make what the demonstration needs"),
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
    /// Where to write
    directory: PathBuf,
}

/// Appends numbered, synced records until it is told to stop.
pub(crate) fn write_numbers(args: &WriterArgs) -> anyhow::Result<ExitCode> {
    let path = args.directory.join("numbers");
    let epoch = std::env::var("INTERLOCK_EPOCH").unwrap_or_else(|_| "0".to_owned());
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    // Another writer must be gone: if it is not, that is what the demonstration is there to show.
    if file.try_lock().is_err() {
        let mut refusals = OpenOptions::new()
            .create(true)
            .append(true)
            .open(args.directory.join(REFUSALS))
            .context("cannot say that there are two writers")?;
        writeln!(refusals, "a writer of epoch {epoch} met another one")
            .context("cannot say that there are two writers")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut number = count(&path) as u64;
    loop {
        number += 1;
        writeln!(file, "{number} {epoch}").context("cannot write a record")?;
        file.sync_data().context("cannot sync a record")?;
        std::thread::sleep(Duration::from_millis(10));
    }
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
}
