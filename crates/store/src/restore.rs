//! Restoring: a copy of a store, put into a new directory so that nobody takes it for the same
//! history.
//!
//! Clients remember revisions of the store that was lost. If the copy went on where it ends, the
//! same revisions would come to mean other things. So its revision is raised beyond any that can
//! have been seen, and the floor with it: whoever comes with an old revision has to list again.

use crate::checkpoint::{self, CheckpointId};
use crate::disk::{DirectoryLock, Disk, LockError, RealDisk, random_id};
use crate::log::{Log, LogPosition};
use crate::recovery::{create_store, failed, load_checkpoint, read_store_id, replay};
use crate::{Embedded, OpenError, Options, Revision};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// No store commits so often between a backup and its loss.
const RAISED_BY: Revision = 1_000_000_000;

/// What to do about damage in the store that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Refuse, as opening it would.
    Refuse,
    /// Take what comes before it, and give up the rest: a human's decision.
    Discard,
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The last revision of the copied store.
    pub last_good: Revision,
    /// The revision that the new store begins with.
    pub revision: Revision,
    /// The damage because of which the rest was given up.
    pub given_up: Option<String>,
}

impl Embedded {
    /// Copies the newest state of a store, of which nothing is changed, to a directory that holds
    /// none. Neither may be in use.
    pub fn restore(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        damage: Damage,
    ) -> Result<Restored, OpenError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no store");
        if !from.is_dir() {
            return Err(failed(format!("restore from {}", from.display()))(missing()));
        }
        let (from_disk, _from_lock) = lock_directory(from)?;
        let (to_disk, _to_lock) = lock_directory(to)?;
        let is_taken = to_disk.list().map_err(failed("list the new directory"))?;
        if is_taken.iter().any(|name| name != "lock") {
            let taken = io::Error::new(io::ErrorKind::AlreadyExists, "it is not empty");
            return Err(failed(format!("restore to {}", to.display()))(taken));
        }
        let names = from_disk.list().map_err(failed("list the old directory"))?;
        let store = read_store_id(&from_disk, &names)?
            .ok_or_else(|| failed(format!("restore from {}", from.display()))(missing()))?;
        let (mut replayed, _) = load_checkpoint(&from_disk, store, &names)?;
        let given_up = match (replay(&from_disk, store, &mut replayed), damage) {
            (Ok(_), _) => None,
            (Err(error @ OpenError::Damaged { .. }), Damage::Discard) => Some(error.to_string()),
            (Err(error), _) => return Err(error),
        };
        let (last_good, revision) = (replayed.last, replayed.last + RAISED_BY);
        let id = CheckpointId { store: random_id(), revision };
        let written = checkpoint::write(&to_disk, &replayed.index, id, &|| false);
        written.map_err(failed("write the restored state"))?;
        let position = LogPosition { store: id.store, revision: revision + 1, sequence: 1 };
        let disk: Arc<dyn Disk> = Arc::new(to_disk);
        let started = Log::start(Arc::clone(&disk), position, Options::default().segment_bytes);
        started.map_err(failed("start the restored log"))?;
        // Last, since it makes the directory a store.
        create_store(disk.as_ref(), id.store)?;
        Ok(Restored { last_good, revision, given_up })
    }
}

/// A directory that nobody else uses meanwhile.
pub(crate) fn lock_directory(directory: &Path) -> Result<(RealDisk, DirectoryLock), OpenError> {
    let doing = || format!("open the data directory {}", directory.display());
    let disk = RealDisk::open(directory).map_err(failed(doing()))?;
    let lock = DirectoryLock::take(directory).map_err(|error| match error {
        LockError::Held(holder) => OpenError::Locked { holder },
        LockError::Io(source) => OpenError::Io { doing: doing(), source },
    })?;
    Ok((disk, lock))
}
