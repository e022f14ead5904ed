//! Notes of who is about to be stopped, on disk before it is done. See [`super::freeze`].

use super::error::{Error, Result};
use super::{Processes, durable, table};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tracing::warn;

const RANDOM_TOKEN: &str = "/proc/sys/kernel/random/uuid";

/// A process that is stopped: its pid and when it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Stopped {
    pub(super) pid: i32,
    pub(super) start_time: u64,
}

impl Stopped {
    pub(super) fn of(process: &table::Process) -> Stopped {
        Stopped { pid: process.pid, start_time: process.start_time }
    }
}

/// What is on disk before the first process is stopped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) boot_id: String,
    pub(super) runs: Vec<String>,
    /// Nothing that writes to this folder is started until then, and nothing while runs are stopped.
    pub(super) folder: Option<PathBuf>,
    pub(super) until_unix_milliseconds: u64,
    /// Those that were stopped already, by somebody else: they stay so.
    pub(super) stopped_before: Vec<Stopped>,
}

/// A note with its lock.
#[derive(Debug)]
pub(super) struct OpenNote {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Processes {
    fn frozen_folder(&self) -> PathBuf {
        self.directory.join("frozen")
    }

    /// The notes that there are.
    pub(super) fn notes(&self) -> Result<Vec<PathBuf>> {
        let folder = self.frozen_folder();
        let failed = |source| Error::Read { path: folder.clone(), source };
        let mut notes = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                notes.push(path);
            }
        }
        Ok(notes)
    }

    /// Puts a note on the disk, locked. Only for who has the guard of the records.
    pub(super) fn write_note(&self, note: &Note) -> Result<OpenNote> {
        let token = fs::read_to_string(RANDOM_TOKEN)
            .map_err(|source| Error::Read { path: RANDOM_TOKEN.into(), source })?;
        let path = self.frozen_folder().join(format!("{}.json", token.trim()));
        let failed = |source| Error::Write { path: path.clone(), source };
        let make = || -> std::io::Result<File> {
            let mut options = OpenOptions::new();
            let mut file =
                options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            // Locked before it says anything: so nobody takes it for a note of the dead.
            flock(&file, FlockOperation::LockExclusive)?;
            file.write_all(&serde_json::to_vec(note)?)?;
            file.sync_all()?;
            crate::durable::sync_folder_of(&path)?;
            Ok(file)
        };
        let file = make().map_err(failed)?;
        Ok(OpenNote { path, file })
    }
}

impl OpenNote {
    /// The note, if its freezer is dead.
    pub(super) fn take_over(path: &Path) -> Result<Option<OpenNote>> {
        let failed = |source| Error::Lock { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(OpenNote { path: path.to_owned(), file })),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// The note goes last: a mark without a note is never read again.
    pub(super) fn remove(&self) {
        let removed = durable::remove(&disturbed(&self.path));
        if let Err(error) = removed.and_then(|()| durable::remove(&self.path)) {
            // It lets runs go on once more that do so already.
            warn!(%error, "cannot remove the note of a freeze");
        }
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// What a note says; nothing if it is gone or was never whole.
pub(super) fn read_note(path: &Path) -> Result<Option<Note>> {
    let bytes = durable::read(path)?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).ok())
}

pub(super) fn is_locked(path: &Path) -> Result<bool> {
    let failed = |source| Error::Lock { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
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

/// Where a start leaves its mark.
pub(super) fn disturbed(note: &Path) -> PathBuf {
    note.with_extension("disturbed")
}
