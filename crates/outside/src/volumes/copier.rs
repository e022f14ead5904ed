//! Brings a volume that exists to what a snapshot has, of this cluster or of another one.
//!
//! What is the same stays; nothing is taken for the same whose bytes were not compared. Each file
//! that differs is written beside and renamed over. When all is on the disk, the whole volume is
//! read again, and its digest must be that of the snapshot. Whoever is killed on the way begins again
//! and goes on where it was.

use super::digest;
use super::error::{Error, Failure, Reason, Result};
use super::fault::Purpose;
use super::hold::{Hold, To};
use super::jobs::{Job, Stage, panicked};
use super::local::{Inner, LocalVolumes};
use super::making::{damaged, fits, missing, whole};
use super::pour::{self, Order, Target};
use super::record::{Brought, Record, now_unix_milliseconds};
use super::shelf::{Shelf, checked};
use super::space::{self, Amount};
use super::{Content, FromSnapshot, Progress};
use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::SystemTime;
use tracing::{info, warn};

/// A copy to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCopy {
    /// The volume that is written; of this cluster.
    pub into: String,
    /// The uid of the cluster that has the snapshot.
    pub cluster: String,
    /// The handle of the snapshot.
    pub snapshot: String,
    /// The digest that it must have.
    pub digest: Option<String>,
    /// Whether a snapshot with nothing in it is meant to be so.
    pub allow_empty: bool,
}

/// How far a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copying {
    /// It was not begun, or whoever began it died: beginning it again goes on.
    Unknown,
    /// It runs.
    Runs(Progress),
    /// It is done, and on the disk for good.
    Done(Copied),
    /// It failed. The volume may have some of it; beginning again goes on.
    Failed(Failure),
}

/// A copy that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// What is in the volume now.
    pub content: Content,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
}

impl LocalVolumes {
    /// Begins a copy. One that runs or is done under this id is left alone; one that failed is
    /// tried again.
    pub fn begin_copy(&self, id: &str, copy: &NewCopy) -> Result<()> {
        let inner = &self.inner;
        if matches!(inner.copies().get(id), Some(Stage::Runs(_) | Stage::Done(_))) {
            return Ok(());
        }
        let snapshots = Shelf::of(&inner.root, "snapshot", &copy.cluster)?;
        checked("volume", &copy.into)?;
        checked("snapshot", &copy.snapshot)?;
        if let Err(failure) = is_there(inner, &snapshots, copy) {
            inner.copies().insert(id.to_owned(), Stage::Failed(failure));
            return Ok(());
        }
        let holds = (
            inner.volumes.hold_or_busy(&copy.into, To::Write)?,
            snapshots.hold_or_busy(&copy.snapshot, To::Read)?,
        );
        let job = Arc::new(Job::default());
        inner.copies().insert(id.to_owned(), Stage::Runs(Arc::clone(&job)));
        info!(
            id,
            into = copy.into,
            snapshot = copy.snapshot,
            cluster = copy.cluster,
            "copying a snapshot"
        );
        let ending = Ending { inner: Arc::clone(inner), id: id.to_owned(), holds: Some(holds) };
        let copy = copy.clone();
        let begun = inner.makers.run(move || {
            let began = SystemTime::now();
            let copied = bring(&ending.inner, &snapshots, &copy, &job);
            let ended = SystemTime::now();
            ending.end(copied.map(|content| Copied { content, began, ended }));
        });
        let path = inner.volumes.folder().to_owned();
        begun.map_err(|source| Error::Prepare { path, source })
    }

    /// How far a copy is.
    pub fn copy_state(&self, id: &str) -> Copying {
        match self.inner.copies().get(id) {
            None => Copying::Unknown,
            Some(Stage::Runs(job)) => Copying::Runs(job.counters.progress()),
            Some(Stage::Done(copied)) => Copying::Done(copied.clone()),
            Some(Stage::Failed(failure)) => Copying::Failed(failure.clone()),
        }
    }

    /// Forgets what became of a copy that is over. One that runs goes on, and is not forgotten.
    pub fn forget_copy(&self, id: &str) {
        let mut copies = self.inner.copies();
        if !matches!(copies.get(id), Some(Stage::Runs(_))) {
            copies.remove(id);
        }
    }
}

fn is_there(inner: &Inner, snapshots: &Shelf, copy: &NewCopy) -> std::result::Result<(), Failure> {
    if !snapshots.exists() {
        let message = format!("cluster {} has no snapshots on this machine", copy.cluster);
        return Err(Failure::new(Reason::SourceMissing, message));
    }
    let (volume, snapshot) =
        (whole(&inner.volumes, &copy.into)?, whole(snapshots, &copy.snapshot)?);
    // Who knows the name of somebody else's snapshot learns not even that it is there.
    match (&volume.owner, &snapshot.owner) {
        (Some(owner), Some(of)) if owner != of => Err(missing(snapshots, &copy.snapshot)),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

fn bring(
    inner: &Inner,
    snapshots: &Shelf,
    copy: &NewCopy,
    job: &Job,
) -> std::result::Result<Content, Failure> {
    let volume = whole(&inner.volumes, &copy.into)?;
    let digest = copy.digest.clone().unwrap_or_default();
    let snapshot =
        inner.whole_snapshot(snapshots, &FromSnapshot { handle: copy.snapshot.clone(), digest })?;
    if snapshot.files == 0 && !copy.allow_empty {
        let message =
            format!("snapshot {} has nothing in it, and that was not allowed", copy.snapshot);
        return Err(Failure::new(Reason::SourceEmpty, message));
    }
    fits(&snapshot, volume.capacity_bytes.unwrap_or(u64::MAX))?;
    let (source, into) =
        (snapshots.folder().join(&copy.snapshot), inner.volumes.folder().join(&copy.into));
    let purpose = Purpose { what: "bring to a volume", path: source.clone() };
    let into_purpose = Purpose { what: "write to", path: into.clone() };
    let there = space::measure(&into, &into_purpose, &job.cancellation)?;
    let more = Amount {
        names: snapshot.files.saturating_sub(there.names),
        bytes: snapshot.bytes,
        stored_bytes: snapshot.stored_bytes.saturating_sub(there.stored_bytes),
    };
    space::check(&into, more, &into_purpose)?;
    job.counters.expect_bytes(snapshot.bytes);
    let order = Order {
        source: &source,
        into: &into,
        target: Target::InUse,
        wants_hash: true,
        purpose: &purpose,
        counters: &job.counters,
    };
    // Opened before anything is written, so that it is reported every write that fails.
    let folder = File::open(&into).map_err(|error| into_purpose.unopened(&error))?;
    let poured = pour::pour(&order, &job.cancellation);
    poured.map_err(|failure| space::explain(failure, &into, more))?;
    rustix::fs::syncfs(&folder)
        .map_err(|error| into_purpose.failed("put it on the disk", &error.into()))?;
    let content = digest::read(&into, &Default::default(), &job.cancellation)?;
    if content.digest != snapshot.digest {
        return Err(damaged(&into_purpose, &snapshot.digest, &content.digest));
    }
    note(inner, volume, copy, &content).map_err(|error| into_purpose.failed("note it", &error))?;
    Ok(content)
}

fn note(inner: &Inner, volume: Record, copy: &NewCopy, content: &Content) -> std::io::Result<()> {
    let brought_to = Some(Brought {
        cluster: copy.cluster.clone(),
        snapshot: copy.snapshot.clone(),
        digest: content.digest.clone(),
        at_unix_milliseconds: now_unix_milliseconds(),
    });
    Record { brought_to, ..volume }.write(&inner.volumes.record_path(&copy.into)?)
}

impl Inner {
    fn copies(&self) -> MutexGuard<'_, HashMap<String, Stage<Copied>>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives all copies up.
    pub(super) fn end_copies(&self) {
        for stage in self.copies().values() {
            if let Stage::Runs(job) = stage {
                job.cancellation.end();
            }
        }
    }
}

/// The end of a copy, also by a panic.
struct Ending {
    inner: Arc<Inner>,
    id: String,
    holds: Option<(Hold, Hold)>,
}

impl Ending {
    fn end(mut self, copied: std::result::Result<Copied, Failure>) {
        self.settle(copied);
    }

    fn settle(&mut self, copied: std::result::Result<Copied, Failure>) {
        // The locks are free before anyone is informed.
        let Some(holds) = self.holds.take() else { return };
        drop(holds);
        let stage = match copied {
            Ok(copied) => Stage::Done(copied),
            Err(failure) => {
                warn!(id = self.id, reason = failure.reason.word(), failure.message, "not copied");
                Stage::Failed(failure)
            }
        };
        self.inner.copies().insert(self.id.clone(), stage);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.settle(Err(panicked()));
    }
}
