//! Brings a volume that exists to what an image has, of this cluster or of another one.
//!
//! What is the same stays; nothing is taken for the same whose bytes were not compared. Each file
//! that differs is written beside and renamed over. When all is on the disk, the whole volume is
//! read again, and its digest must be that of the image. Whoever is killed on the way begins again
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
use super::{Content, FromImage, Progress};
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
    /// The uid of the cluster that has the image.
    pub cluster: String,
    /// The handle of the image.
    pub image: String,
    /// The digest that it must have.
    pub digest: Option<String>,
    /// Whether an image with nothing in it is meant to be so.
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
        let images = Shelf::of(&inner.root, "image", &copy.cluster)?;
        checked("volume", &copy.into)?;
        checked("image", &copy.image)?;
        if let Err(failure) = is_there(inner, &images, copy) {
            inner.copies().insert(id.to_owned(), Stage::Failed(failure));
            return Ok(());
        }
        let holds = (
            inner.volumes.hold_or_busy(&copy.into, To::Write)?,
            images.hold_or_busy(&copy.image, To::Read)?,
        );
        let job = Arc::new(Job::default());
        inner.copies().insert(id.to_owned(), Stage::Runs(Arc::clone(&job)));
        info!(id, into = copy.into, image = copy.image, cluster = copy.cluster, "copying an image");
        let ending = Ending { inner: Arc::clone(inner), id: id.to_owned(), holds: Some(holds) };
        let copy = copy.clone();
        let begun = inner.makers.run(move || {
            let began = SystemTime::now();
            let copied = bring(&ending.inner, &images, (&copy, &job));
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

fn is_there(inner: &Inner, images: &Shelf, copy: &NewCopy) -> std::result::Result<(), Failure> {
    if !images.exists() {
        let message = format!("cluster {} has no images on this machine", copy.cluster);
        return Err(Failure::new(Reason::SourceMissing, message));
    }
    let (volume, image) = (whole(&inner.volumes, &copy.into)?, whole(images, &copy.image)?);
    // Who knows the name of somebody else's image learns not even that it is there.
    match (&volume.owner, &image.owner) {
        (Some(owner), Some(of)) if owner != of => Err(missing(images, &copy.image)),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

fn bring(
    inner: &Inner,
    images: &Shelf,
    (copy, job): (&NewCopy, &Job),
) -> std::result::Result<Content, Failure> {
    let volume = whole(&inner.volumes, &copy.into)?;
    let digest = copy.digest.clone().unwrap_or_default();
    let image = inner.whole_image(images, &FromImage { handle: copy.image.clone(), digest })?;
    if image.files == 0 && !copy.allow_empty {
        let message = format!("image {} has nothing in it, and that was not allowed", copy.image);
        return Err(Failure::new(Reason::SourceEmpty, message));
    }
    fits(&image, volume.capacity_bytes.unwrap_or(u64::MAX))?;
    let (source, into) =
        (images.folder().join(&copy.image), inner.volumes.folder().join(&copy.into));
    let purpose = Purpose { what: "bring to a volume", path: source.clone() };
    let into_purpose = Purpose { what: "write to", path: into.clone() };
    let there = space::measure(&into, &into_purpose, &job.patience)?;
    let more = Amount {
        names: image.files.saturating_sub(there.names),
        bytes: image.bytes,
        stored_bytes: image.stored_bytes.saturating_sub(there.stored_bytes),
    };
    space::check(&into, more, &into_purpose)?;
    job.counters.expect_bytes(image.bytes);
    let order = Order {
        source: &source,
        into: &into,
        target: Target::InUse,
        wants_hash: true,
        purpose: &purpose,
        counters: &job.counters,
    };
    // Opened before anything is written, so that it is told of every write that fails.
    let folder = File::open(&into).map_err(|error| into_purpose.unopened(&error))?;
    let poured = pour::pour(&order, &job.patience);
    poured.map_err(|failure| space::explain(failure, &into, more))?;
    rustix::fs::syncfs(&folder)
        .map_err(|error| into_purpose.failed("put it on the disk", &error.into()))?;
    let content = digest::read(&into, &Default::default(), &job.patience)?;
    if content.digest != image.digest {
        return Err(damaged(&into_purpose, &image.digest, &content.digest));
    }
    note(inner, volume, copy, &content).map_err(|error| into_purpose.failed("note it", &error))?;
    Ok(content)
}

fn note(inner: &Inner, volume: Record, copy: &NewCopy, content: &Content) -> std::io::Result<()> {
    let brought_to = Some(Brought {
        cluster: copy.cluster.clone(),
        image: copy.image.clone(),
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
                job.patience.end();
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
        // The locks are free before anyone is told.
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
