//! Who may read or write a volume or a snapshot: one who writes, or any number who read.
//!
//! The kernel keeps the lock for the process that took it, and frees it when that process is gone:
//! so a `.partial` whose lock can be taken was left by the dead.

use super::error::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A look at a lock takes it for some microseconds; who meets that tries again.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    file: File,
    path: PathBuf,
}

/// What the holder does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Read,
    Write,
}

impl Hold {
    /// Takes the lock if it can be had; does not wait.
    pub(super) fn take(path: &Path, to: To) -> Result<Option<Hold>> {
        let failed = |source| Error::Lock { path: path.to_owned(), source };
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(BETWEEN_TRIES);
            }
            if let Some(hold) = try_take(path, to).map_err(failed)? {
                return Ok(Some(hold));
            }
        }
        Ok(None)
    }

    /// Whether somebody writes.
    pub(super) fn is_written(path: &Path) -> Result<bool> {
        let failed = |source| Error::Lock { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                flock(&file, FlockOperation::Unlock).map_err(|error| failed(error.into()))?;
                Ok(false)
            }
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Removes the file of a lock held for writing, since what it locked is gone.
    pub(super) fn remove(self) {
        // Whoever opened it before sees that it has no name any more, and takes a new one. If it
        // cannot be removed, an empty file is left.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn try_take(path: &Path, to: To) -> io::Result<Option<Hold>> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let operation = match to {
        To::Read => FlockOperation::NonBlockingLockShared,
        To::Write => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(&file, operation) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let hold = Hold { file, path: path.to_owned() };
    // It may have been removed between the opening and the locking, and made again by another.
    let ours = hold.file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) if (named.dev(), named.ino()) == (ours.dev(), ours.ino()) => Ok(Some(hold)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Said aloud: a child that was forked a moment ago may have a copy of the file.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
