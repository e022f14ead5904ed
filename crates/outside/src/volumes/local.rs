//! Volumes and snapshots as folders of this machine.

use super::error::{Error, Failure, Reason, Result};
use super::hold::{Hold, To};
use super::jobs::{Job, Lane, Stage, panicked};
use super::making::Making;
use super::progress::Cancellation;
use super::record::{Origin, Record};
use super::shelf::{OnDisk, Shelf};
use super::space::{self, Amount};
use super::{Made, NewVolume, Progress, Volumes, Writers, copier};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::{info, warn};

/// So many are filled at once: each has threads of its own for its files.
const FILLED_AT_ONCE: usize = 4;
/// So many empty ones, beside those: they take a moment, and do not wait behind what takes long.
const EMPTY_AT_ONCE: usize = 4;

/// The volumes and snapshots of one cluster, as folders below one directory.
///
/// Several may be open on one directory, in one process or in many: the one that holds the lock of
/// a handle makes it, and the others see that it is being made. Dropped, it gives up what it makes,
/// and waits for that.
#[derive(Debug)]
pub struct LocalVolumes {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) root: PathBuf,
    pub(super) volumes: Shelf,
    pub(super) snapshots: Shelf,
    pub(super) makers: Arc<Lane>,
    empties: Arc<Lane>,
    sweepers: Arc<Lane>,
    is_over: Cancellation,
    pub(super) writers: Option<Arc<dyn Writers>>,
    made: Mutex<HashMap<Name, Stage<()>>>,
    /// Those whose rename is known to be on the disk.
    settled: Mutex<HashSet<Name>>,
    pub(super) copies: Mutex<HashMap<String, Stage<copier::Copied>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalVolumes")
            .field("volumes", &self.volumes.folder())
            .finish_non_exhaustive()
    }
}

/// A volume or a snapshot: what it is, and its handle.
type Name = (Kind, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Volume,
    Snapshot,
}

/// A volume or a snapshot that nobody deletes or makes anew until this is dropped.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    content: super::Content,
    capacity_bytes: Option<u64>,
    _hold: Hold,
}

impl Held {
    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was in it when it was made.
    pub fn content(&self) -> &super::Content {
        &self.content
    }

    /// How much a volume may hold.
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.capacity_bytes
    }
}

impl LocalVolumes {
    /// Opens the volumes and snapshots of a cluster below `root`, and makes their folders if need be.
    /// What the dead left unfinished is removed.
    pub fn open(root: impl AsRef<Path>, cluster: &str) -> Result<LocalVolumes> {
        LocalVolumes::open_with(root.as_ref(), cluster, None)
    }

    /// The same, for volumes that are written to by these.
    pub fn open_with_writers(
        root: impl AsRef<Path>,
        cluster: &str,
        writers: Arc<dyn Writers>,
    ) -> Result<LocalVolumes> {
        LocalVolumes::open_with(root.as_ref(), cluster, Some(writers))
    }

    fn open_with(
        root: &Path,
        cluster: &str,
        writers: Option<Arc<dyn Writers>>,
    ) -> Result<LocalVolumes> {
        let (volumes, snapshots) =
            (Shelf::of(root, "volume", cluster)?, Shelf::of(root, "snapshot", cluster)?);
        volumes.make()?;
        snapshots.make()?;
        // Runs are known by the real path of their volumes.
        let root = root.canonicalize();
        let root = root.map_err(|source| Error::Read { path: volumes.folder().into(), source })?;
        let inner = Inner {
            volumes: Shelf::of(&root, "volume", cluster)?,
            snapshots: Shelf::of(&root, "snapshot", cluster)?,
            root,
            makers: Lane::new(FILLED_AT_ONCE),
            empties: Lane::new(EMPTY_AT_ONCE),
            sweepers: Lane::new(1),
            is_over: Cancellation::never(),
            writers,
            made: Mutex::default(),
            settled: Mutex::default(),
            copies: Mutex::default(),
        };
        for shelf in [&inner.volumes, &inner.snapshots] {
            let count = shelf.set_aside_abandoned()?;
            if count > 0 {
                info!(folder = %shelf.folder().display(), count, "removing what was left unfinished");
            }
            inner.sweep(shelf);
        }
        Ok(LocalVolumes { inner: Arc::new(inner) })
    }

    /// Where a volume is, whether it is there or not.
    pub fn volume_path(&self, handle: &str) -> Result<PathBuf> {
        self.inner.volumes.path(handle)
    }

    /// Keeps a whole volume from being deleted or brought to a snapshot while it is read.
    pub fn read_volume(&self, handle: &str) -> Result<Held> {
        held(&self.inner.volumes, handle, To::Read)
    }

    /// Keeps everyone else from reading or writing a whole volume, but for its runs.
    pub fn write_volume(&self, handle: &str) -> Result<Held> {
        held(&self.inner.volumes, handle, To::Write)
    }

    /// Keeps a whole snapshot from being deleted while it is read.
    pub fn read_snapshot(&self, handle: &str) -> Result<Held> {
        held(&self.inner.snapshots, handle, To::Read)
    }
}

fn held(shelf: &Shelf, handle: &str, to: To) -> Result<Held> {
    let missing = || Error::Missing { what: shelf.what(), handle: handle.to_owned() };
    if matches!(shelf.look(handle)?, OnDisk::Nothing | OnDisk::Unknown(_)) {
        return Err(missing());
    }
    let hold = shelf.hold_or_busy(handle, to)?;
    // Read again, now that nobody can take it away any more.
    let OnDisk::Whole(record) = shelf.look(handle)? else { return Err(missing()) };
    let (content, capacity_bytes) = (record.content(), record.capacity_bytes);
    Ok(Held { path: shelf.path(handle)?, content, capacity_bytes, _hold: hold })
}

impl Volumes for LocalVolumes {
    fn make_volume(&self, volume: &NewVolume) -> Result<()> {
        let Some(start) = self.inner.start(Kind::Volume, &volume.handle)? else { return Ok(()) };
        let source = match &volume.from {
            None => None,
            Some(from) => {
                let hold = self.inner.snapshots.hold_or_busy(&from.handle, To::Read);
                Some(hold.inspect_err(|_| self.inner.abandon(&start))?)
            }
        };
        let volume = volume.clone();
        let lane = if source.is_some() { &self.inner.makers } else { &self.inner.empties };
        self.inner.make(start, lane, move |inner, making| {
            let _source = source;
            inner.fill(&volume, making)
        })
    }

    fn take_snapshot(&self, handle: &str, volume: &str) -> Result<()> {
        let volume = super::shelf::checked("volume", volume)?.to_owned();
        let Some(start) = self.inner.start(Kind::Snapshot, handle)? else { return Ok(()) };
        let source = self.inner.volumes.hold_or_busy(&volume, To::Read);
        let source = source.inspect_err(|_| self.inner.abandon(&start))?;
        self.inner.make(start, &self.inner.makers, move |inner, making| {
            let _source = source;
            inner.snapshot(&volume, making)
        })
    }

    fn delete_volume(&self, handle: &str) -> Result<()> {
        self.inner.delete(Kind::Volume, handle)
    }

    fn delete_snapshot(&self, handle: &str) -> Result<()> {
        self.inner.delete(Kind::Snapshot, handle)
    }

    fn volume_state(&self, handle: &str) -> Result<Made> {
        self.inner.state(Kind::Volume, handle)
    }

    fn snapshot_state(&self, handle: &str) -> Result<Made> {
        self.inner.state(Kind::Snapshot, handle)
    }
}

impl Drop for LocalVolumes {
    fn drop(&mut self) {
        for stage in self.inner.made().values() {
            if let Stage::Runs(job) = stage {
                job.cancellation.end();
            }
        }
        self.inner.end_copies();
        self.inner.is_over.end();
        self.inner.makers.wait();
        self.inner.empties.wait();
        self.inner.sweepers.wait();
    }
}

/// Something whose lock is ours and whose partial is there, empty.
struct Start {
    kind: Kind,
    handle: String,
    hold: Hold,
    partial: PathBuf,
}

impl Inner {
    fn shelf(&self, kind: Kind) -> &Shelf {
        match kind {
            Kind::Volume => &self.volumes,
            Kind::Snapshot => &self.snapshots,
        }
    }

    fn made(&self) -> MutexGuard<'_, HashMap<Name, Stage<()>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, kind: Kind, handle: &str) -> Result<Made> {
        let shelf = self.shelf(kind);
        let name = (kind, handle.to_owned());
        let stage = self.made().get(&name).cloned();
        if let Some(Stage::Runs(job)) = stage {
            return Ok(Made::Making(job.counters.progress()));
        }
        match shelf.look(handle)? {
            OnDisk::Whole(record) => {
                self.settle(shelf, name)?;
                return Ok(Made::Whole(record.content()));
            }
            OnDisk::Unknown(message) => {
                return Ok(Made::Failed(Failure::new(Reason::SnapshotFailed, message)));
            }
            OnDisk::Nothing => {}
        }
        match stage {
            Some(Stage::Failed(failure)) => Ok(Made::Failed(failure)),
            _ if shelf.is_made_by_another(handle)? => Ok(Made::Making(Progress::default())),
            _ => Ok(Made::Missing),
        }
    }

    /// Whoever gave it its name may have died before that was on the disk. So it is put there once
    /// more, by the first who looks.
    fn settle(&self, shelf: &Shelf, name: Name) -> Result<()> {
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        if !settled.contains(&name) {
            let path = shelf.folder();
            crate::durable::sync_folder(path)
                .map_err(|source| Error::Read { path: path.to_owned(), source })?;
            settled.insert(name);
        }
        Ok(())
    }

    /// Takes the lock and makes the partial, unless there is nothing to be done: it is there
    /// already, or being made by us or another.
    fn start(&self, kind: Kind, handle: &str) -> Result<Option<Start>> {
        let shelf = self.shelf(kind);
        let is_new = || Ok(matches!(shelf.look(handle)?, OnDisk::Nothing));
        let runs = matches!(self.made().get(&(kind, handle.to_owned())), Some(Stage::Runs(_)));
        if runs || !is_new()? {
            return Ok(None);
        }
        let Some(hold) = shelf.hold(handle, To::Write)? else { return Ok(None) };
        if !is_new()? {
            return Ok(None);
        }
        let (partial, is_littered) = shelf.begin(handle)?;
        if is_littered {
            self.sweep(shelf);
        }
        Ok(Some(Start { kind, handle: handle.to_owned(), hold, partial }))
    }

    /// Takes back a start from which nothing came.
    fn abandon(&self, start: &Start) {
        self.discard(start.kind, &start.handle);
    }

    /// Does the work on a thread of its own. What it returns is the record of the whole.
    fn make(
        self: &Arc<Inner>,
        start: Start,
        lane: &Arc<Lane>,
        work: impl FnOnce(&Inner, &Making<'_>) -> std::result::Result<Record, Failure> + Send + 'static,
    ) -> Result<()> {
        let job = Arc::new(Job::default());
        let name = (start.kind, start.handle.clone());
        let (kind, handle) = name.clone();
        let path = start.partial.clone();
        info!(?kind, handle, "making a volume or a snapshot");
        self.made().insert(name.clone(), Stage::Runs(Arc::clone(&job)));
        let ending = Ending { inner: Arc::clone(self), name: name.clone(), hold: Some(start.hold) };
        let partial = start.partial;
        let begun = lane.run(move || {
            let making = Making { handle: &name.1, partial: &partial, job: &job };
            // Opened before anything is written, so that it is reported every write that fails.
            let made = File::open(&partial)
                .map_err(|error| making.purpose().failed("open it", &error))
                .and_then(|folder| Ok((work(&ending.inner, &making)?, folder)))
                .and_then(|(record, folder)| ending.inner.publish(&name, &making, record, folder));
            ending.end(made);
        });
        begun.map_err(|source| Error::Prepare { path, source })
    }

    /// Puts everything on the disk, and only then gives it its name.
    fn publish(
        &self,
        name: &Name,
        making: &Making<'_>,
        record: Record,
        folder: File,
    ) -> std::result::Result<(), Failure> {
        let purpose = making.purpose();
        if making.job.cancellation.check().is_err() {
            return Err(Failure::new(Reason::Cancelled, "it was given up"));
        }
        let synced = match &record.made_from {
            // An empty folder needs no waiting for all that others write.
            Origin::Nothing => folder.sync_all(),
            Origin::Volume(_) | Origin::Snapshot(_) => {
                rustix::fs::syncfs(&folder).map_err(Into::into)
            }
        };
        let synced = synced.map_err(|error| purpose.failed("put it on the disk", &error));
        let publish = || {
            let published = self.shelf(name.0).publish(&record);
            published.map_err(|error| purpose.failed("give it its name", &error))
        };
        let amount = Amount { stored_bytes: record.stored_bytes, ..Amount::default() };
        synced
            .and_then(|()| publish())
            .map_err(|failure| space::explain(failure, making.partial, amount))
    }

    fn delete(self: &Arc<Inner>, kind: Kind, handle: &str) -> Result<()> {
        let shelf = self.shelf(kind);
        let name = (kind, super::shelf::checked(shelf.what(), handle)?.to_owned());
        {
            let mut made = self.made();
            if let Some(Stage::Runs(job)) = made.get(&name) {
                job.cancellation.end();
                return Ok(());
            }
            made.remove(&name);
        }
        let hold = shelf.hold_or_busy(handle, To::Write)?;
        info!(?kind, handle, "deleting a volume or a snapshot");
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        shelf.delete(handle)?;
        hold.remove();
        self.sweep(shelf);
        Ok(())
    }

    /// Removes what is set aside, on a thread of its own. What cannot be removed now is tried again
    /// by whoever sweeps next.
    pub(super) fn sweep(&self, shelf: &Shelf) {
        let (shelf, cancellation) = (shelf.clone(), self.is_over.clone());
        let swept = self.sweepers.run(move || {
            if let Err(error) = shelf.sweep(&cancellation) {
                warn!(%error, cause = ?std::error::Error::source(&error), "cannot remove the deleted");
            }
        });
        if let Err(error) = swept {
            warn!(%error, "cannot start a thread to remove the deleted");
        }
    }

    /// Removes a partial from which nothing came.
    fn discard(&self, kind: Kind, handle: &str) {
        let shelf = self.shelf(kind);
        let aside = shelf.partial(handle).and_then(|partial| shelf.set_aside(&partial, handle));
        if let Err(error) = aside {
            // Nobody takes it for whole; the next who makes it or opens the directory tries again.
            warn!(?kind, handle, %error, "cannot remove a partial");
        }
        self.sweep(shelf);
    }
}

/// The end of a job, also by a panic.
struct Ending {
    inner: Arc<Inner>,
    name: Name,
    hold: Option<Hold>,
}

impl Ending {
    fn end(mut self, made: std::result::Result<(), Failure>) {
        self.settle(made);
    }

    fn settle(&mut self, made: std::result::Result<(), Failure>) {
        let Some(hold) = self.hold.take() else { return };
        let (kind, handle) = &self.name;
        if made.is_err() {
            self.inner.discard(*kind, handle);
        }
        // The lock is free before anyone is informed.
        drop(hold);
        let mut stages = self.inner.made();
        match made {
            Ok(()) => {
                info!(?kind, handle, "made a volume or a snapshot");
                stages.remove(&self.name);
            }
            Err(failure) if failure.reason == Reason::Cancelled => {
                stages.remove(&self.name);
            }
            Err(failure) => {
                warn!(?kind, handle, reason = failure.reason.word(), failure.message, "not made");
                stages.insert(self.name.clone(), Stage::Failed(failure));
            }
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.settle(Err(panicked()));
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::other(error)
    }
}
