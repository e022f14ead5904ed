//! Writes a folder into a repository, as one snapshot that is whole or is not there.

use crate::bridge::{Bridge, Gate};
use crate::failure::{Failure, Reason};
use crate::lock::{Lock, Want};
use crate::repository::Repository;
use crate::seal::Seal;
use crate::settings::Settings;
use crate::source::{Sort, Source, Tally, has_something};
use crate::watch::Watch;
use crate::{Outcome, guarded};
use bytes::Bytes;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use rustic_core::repofile::{SnapshotFile, SnapshotSummary};
use rustic_core::{BackupOptions, ParentOptions, SnapshotOptions};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The host in VolSync's snapshots, and the only path.
pub(crate) const VOLSYNC: &str = "volsync";
/// The host in the snapshots of moves, which no `forget --host volsync` reaches.
pub(crate) const MOVES: &str = "interlock";
/// The path that stands in every snapshot.
pub(crate) const PATH: &str = "/data";

/// A backup.
#[derive(Debug, Clone)]
pub struct Backup {
    /// What is read.
    pub folder: PathBuf,
    /// What it is.
    pub sort: Sort,
    /// How the snapshot is marked.
    pub mark: Mark,
    /// Whether a folder with nothing in it is meant to be so.
    pub allow_empty: bool,
    /// Whether locks that restic itself calls stale are removed first.
    pub unlock: bool,
}

/// Whose snapshot it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// As VolSync marks its own: host `volsync`, path `/data`, no tags.
    Volsync,
    /// Of a move: host `interlock`, and these tags.
    Move(Vec<String>),
}

impl Mark {
    fn host(&self) -> &'static str {
        match self {
            Mark::Volsync => VOLSYNC,
            Mark::Move(_) => MOVES,
        }
    }
}

/// Backs a folder up. The repository is made where there certainly is none.
pub fn backup(settings: &Settings, job: &Backup, watch: &Watch) -> Result<Outcome, Failure> {
    guarded(|| run(settings, job, watch))
}

fn run(settings: &Settings, job: &Backup, watch: &Watch) -> Result<Outcome, Failure> {
    let began = Timestamp::now();
    let root = Source::open(&job.folder)?;
    if !job.allow_empty && !has_something(&root) {
        return Err(empty(&job.folder));
    }
    let repository = Repository::open_or_make(settings, watch)?;
    let lock = repository.lock(Want::Shared, job.unlock)?;
    watch.still_wanted()?;
    let source = Source::new(root, job.sort, watch, &repository.bridge);
    repository.bridge.only_through(gate(job, watch, &source.tally, &repository.seal, &lock));
    let bridge = repository.bridge.clone();
    let mut snapshot = archive(repository, job, source, &bridge)?;
    drop(lock);
    let summary = snapshot.summary.take().unwrap_or_default();
    Ok(Outcome {
        snapshot: snapshot.id.to_hex().as_str().to_owned(),
        files: summary.total_files_processed,
        bytes: summary.total_bytes_processed,
        began,
        ended: Timestamp::now(),
        log: said(&summary),
    })
}

fn archive(
    repository: Repository,
    job: &Backup,
    source: Source,
    bridge: &Bridge,
) -> Result<SnapshotFile, Failure> {
    let snapshot = new_snapshot(job).map_err(|error| bridge.failure(&error))?;
    let mut parents = ParentOptions::default();
    parents.force = job.sort == Sort::Snapshot;
    // In this version of rustic_core the condition is the wrong way round: with this set, inodes are
    // compared, and without it they are ignored. A test holds it.
    parents.ignore_inode = true;
    let mut options = BackupOptions::default();
    options.parent_opts = parents;
    options.no_scan = true;
    let indexed = repository.inner.to_indexed_ids().map_err(|error| bridge.failure(&error))?;
    indexed
        .archive(&options, &source, snapshot, &[PathBuf::from(PATH)])
        .map_err(|error| bridge.failure(&error))
}

fn new_snapshot(job: &Backup) -> rustic_core::RusticResult<SnapshotFile> {
    let mut options = SnapshotOptions::default();
    options.host = Some(job.mark.host().to_owned());
    options.time = Some(Zoned::new(Timestamp::now(), TimeZone::UTC));
    options.command = Some("interlock".to_owned());
    let mut snapshot = options.to_snapshot()?;
    snapshot.username = "interlock".to_owned();
    snapshot.program_version = concat!("interlock ", env!("CARGO_PKG_VERSION")).to_owned();
    if let Mark::Move(tags) = &job.mark {
        for tag in tags {
            snapshot.tags.add(tag.clone());
        }
    }
    Ok(snapshot)
}

/// What is between everything that was read and a snapshot of it.
fn gate(job: &Backup, watch: &Watch, tally: &Arc<Tally>, seal: &Seal, lock: &Lock) -> Gate {
    let (watch, tally, seal) = (watch.clone(), tally.clone(), seal.clone());
    let (allow_empty, folder) = (job.allow_empty, job.folder.clone());
    let is_locked = lock.asker();
    Box::new(move |sealed: &Bytes| {
        watch.still_wanted()?;
        tally.all_was_read()?;
        let files = tally.files.load(Ordering::SeqCst);
        if files == 0 && !allow_empty {
            return Err(empty(&folder));
        }
        // The root is a folder too.
        let found = (files, tally.folders.load(Ordering::SeqCst) + 1);
        let written = counted(&seal, sealed);
        if written != Some(found) {
            return Err(Failure::new(
                Reason::MoverFailed,
                format!(
                    "no snapshot was made, since it has {written:?} files and folders of {found:?}"
                ),
            ));
        }
        is_locked()
    })
}

/// How many files and folders a snapshot says that it has.
fn counted(seal: &Seal, sealed: &Bytes) -> Option<(u64, u64)> {
    #[derive(Deserialize)]
    struct Snapshot {
        summary: Summary,
    }
    #[derive(Deserialize)]
    struct Summary {
        total_files_processed: u64,
        total_dirs_processed: u64,
    }
    let snapshot: Snapshot = serde_json::from_slice(&seal.open_file(sealed)?).ok()?;
    Some((snapshot.summary.total_files_processed, snapshot.summary.total_dirs_processed))
}

fn empty(folder: &Path) -> Failure {
    Failure::new(
        Reason::SourceEmpty,
        format!(
            "no snapshot was made, since there is nothing in {}; if that is meant to be so, set the \
             annotation interlock.dev/allow-empty",
            folder.display()
        ),
    )
}

fn said(summary: &SnapshotSummary) -> String {
    format!(
        "{} files, {} of them new and {} changed; {} bytes, {} added to the repository",
        summary.total_files_processed,
        summary.files_new,
        summary.files_changed,
        summary.total_bytes_processed,
        summary.data_added_packed
    )
}
