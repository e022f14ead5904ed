//! Brings a folder to what a snapshot has.
//!
//! rustic_core can restore too, but it panics where a read or a write fails, only warns where an owner,
//! a mode or a time could not be set, and writes through links that it finds in the way. Here nothing
//! is left out in silence: a restore ends well when everything is there as the snapshot has it, and on
//! the disk for good.

mod blobs;
mod dress;
mod pour;
mod target;

use crate::failure::{Failure, Reason};
use crate::lock::Want;
use crate::repository::Repository;
use crate::settings::Settings;
use crate::tidy::is_ruled;
use crate::watch::Watch;
use crate::{Outcome, guarded};
use blobs::Blobs;
use jiff::Timestamp;
use pour::Pour;
use rustic_core::repofile::SnapshotFile;
use rustix::fs::{Mode, OFlags};
use std::path::PathBuf;

/// A restore.
#[derive(Debug, Clone)]
pub struct Restore {
    /// The folder that is written.
    pub into: PathBuf,
    /// Which snapshot.
    pub choice: Choice,
    /// Whether files that the snapshot does not have are deleted.
    pub delete_other_files: bool,
    /// Whether a snapshot with nothing in it is meant to be so.
    pub allow_empty: bool,
    /// How many bytes the folder may hold, holes aside; None: as many as there is space for.
    pub capacity_bytes: Option<u64>,
    /// Whether locks that restic itself calls stale are removed first.
    pub unlock: bool,
}

/// Which snapshot is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The newest that VolSync's mark is on, not younger than this, after leaving some out.
    Newest {
        /// None younger than this.
        as_of: Option<Timestamp>,
        /// How many of the newest are left out.
        previous: u32,
    },
    /// This one, by its id or the beginning of it.
    Id(String),
}

/// Restores. No repository is ever made.
pub fn restore(settings: &Settings, job: &Restore, watch: &Watch) -> Result<Outcome, Failure> {
    guarded(|| run(settings, job, watch))
}

fn run(settings: &Settings, job: &Restore, watch: &Watch) -> Result<Outcome, Failure> {
    let began = Timestamp::now();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(&job.into, flags, Mode::empty()).map_err(|error| {
        Failure::new(
            Reason::MoverFailed,
            format!("cannot restore into {}: {error}", job.into.display()),
        )
    })?;
    let repository = Repository::open(settings, watch)?;
    let _lock = repository.lock(Want::Shared, job.unlock)?;
    let snapshot = chosen(&repository.snapshots()?, &job.choice, &repository.location)?;
    if let Some(summary) = &snapshot.summary {
        watch.expect_bytes(summary.total_bytes_processed);
    }
    watch.still_wanted()?;
    let is_far = repository.store.is_far();
    let blobs = Blobs::new(repository)?;
    if !job.allow_empty && blobs.is_empty(snapshot.tree)? {
        return Err(Failure::new(
            Reason::SourceEmpty,
            format!(
                "there is nothing in snapshot {}; if that is meant to be so, set the annotation \
                 interlock.dev/allow-empty",
                snapshot.id
            ),
        ));
    }
    let near = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let workers = settings.read_concurrency.unwrap_or(if is_far { 8 } else { near });
    let pour = Pour::new(&blobs, watch, job);
    let poured = pour.run(root, snapshot.tree, workers)?;
    Ok(Outcome {
        snapshot: snapshot.id.to_hex().as_str().to_owned(),
        files: poured.files,
        bytes: poured.bytes,
        began,
        ended: Timestamp::now(),
        log: format!(
            "snapshot {} of {}: {} files, {} bytes, {} deleted",
            snapshot.id,
            snapshot.time.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ"),
            poured.files,
            poured.bytes,
            poured.deleted
        ),
    })
}

/// The snapshot that was asked for, of all that there are, newest first.
fn chosen(
    snapshots: &[SnapshotFile],
    choice: &Choice,
    location: &str,
) -> Result<SnapshotFile, Failure> {
    let none = |what: String| {
        let message = format!("the repository at {location} has no snapshot {what}");
        Failure::new(Reason::NoEligibleSnapshot, message)
    };
    match choice {
        Choice::Newest { as_of, previous } => {
            let mut eligible = snapshots
                .iter()
                .filter(|snapshot| is_ruled(snapshot))
                .filter(|snapshot| as_of.is_none_or(|as_of| snapshot.time.timestamp() <= as_of));
            let count = eligible.clone().count();
            eligible.nth(*previous as usize).cloned().ok_or_else(|| {
                let younger = as_of.map_or_else(String::new, |time| format!(" as of {time}"));
                none(format!(
                    "of host volsync and path /data{younger}, {previous} left out of {count}"
                ))
            })
        }
        Choice::Id(id) => {
            let mut eligible = snapshots
                .iter()
                .filter(|snapshot| id.len() >= 8 && snapshot.id.to_hex().as_str().starts_with(id));
            match (eligible.next(), eligible.next()) {
                (Some(snapshot), None) => Ok(snapshot.clone()),
                (Some(_), Some(_)) => Err(none(format!("{id} alone: several begin so"))),
                (None, _) => Err(none(id.clone())),
            }
        }
    }
}
