//! Volume locks: held by the kernel for a run until its last process is gone.
//!
//! A lock is a flock(2) on an open file. The run inherits that open file, and our own process
//! closes its copy once the command runs: from then on the lock is held exactly as long as a
//! process of the run has the file open, whatever happens to us.
//!
//! The file says how often the lock was taken, and for which run last. Whoever takes it knows that
//! every holder before is gone: so a higher number proves an older run off the lock.

use super::error::{Error, Result};
use super::table::FileUse;
use super::{Living, Processes, durable, names};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Shell scripts open descriptors by small numbers, and would drop a lock that had one of these.
const FIRST_DESCRIPTOR: i32 = 700;
/// A look at a lock takes it for some microseconds; who meets that tries again.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The variable by which a run's processes are found even if they closed their lock.
pub(super) const LOCK_VARIABLE: &str = "INTERLOCK_LOCK";

/// A lock that this process holds and has given to no run yet. Dropping it frees it.
#[derive(Debug)]
pub struct Lock {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) generation: u64,
    pub(super) descriptor: Arc<OwnedFd>,
}

impl Lock {
    /// The name under which it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Locking {
    /// It is ours, and no process of an earlier run under it lives.
    Taken(Lock),
    /// Somebody else has it.
    HeldByAnother {
        /// Who, as far as this process may see; empty if nobody who holds it can be seen.
        holders: Vec<Living>,
    },
}

/// What the lock file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) generation: u64,
    pub(super) run: Option<String>,
}

impl Note {
    fn parse(text: &str) -> Note {
        // What is behind the first line was left by a longer one, if a crash came before the cut.
        let mut words = text.lines().next().unwrap_or_default().splitn(2, ' ');
        let generation = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        Note { generation, run: words.next().map(str::to_owned) }
    }

    fn write(&self, mut file: &File) -> io::Result<()> {
        let run = self.run.as_deref().map(|run| format!(" {run}")).unwrap_or_default();
        let text = format!("{}{run}\n", self.generation);
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)
    }
}

impl Processes {
    /// Takes the lock if it is free; does not wait. A process that an earlier run under this
    /// lock left behind counts as a holder even if it closed the lock, wherever it can be seen.
    pub fn lock(&self, lock_name: &str) -> Result<Locking> {
        let path = self.lock_path(lock_name)?;
        let failed = |source| Error::Lock { path: path.clone(), source };
        let file = open_or_create(&path).map_err(failed)?;
        if !try_exclusive(&file).map_err(failed)? {
            return Ok(Locking::HeldByAnother { holders: self.holders(&path)? });
        }
        let mut note = read_note(&file).map_err(failed)?;
        note.generation += 1;
        note.write(&file).map_err(failed)?;
        let stragglers = self.stragglers(&path, &note)?;
        if !stragglers.is_empty() {
            return Ok(Locking::HeldByAnother { holders: stragglers });
        }
        let descriptor = Arc::new(high_descriptor(&file).map_err(failed)?);
        let name = lock_name.to_owned();
        Ok(Locking::Taken(Lock { name, path, generation: note.generation, descriptor }))
    }

    /// Whether the lock is free, as the kernel says, and no process that a run under it left
    /// behind can be seen. Another's attempt at the lock is in the way of this for microseconds.
    pub fn is_free(&self, lock_name: &str) -> Result<bool> {
        let path = self.lock_path(lock_name)?;
        if !self.is_unlocked(&path)? {
            return Ok(false);
        }
        let note = self.lock_note(&path)?;
        Ok(self.stragglers(&path, &note)?.is_empty())
    }

    /// The processes that hold a lock whose name begins with this, or were left behind by a run
    /// under one; None if no such lock is held. A holder that cannot be seen makes it an empty list.
    ///
    /// It looks twice: a command beside a run has a lock of its own, and is started only while the run
    /// lives. So one that the first look missed is seen by the second, which began when the run was gone.
    pub fn holders_of_all(&self, name_begins: &str) -> Result<Option<Vec<Living>>> {
        match self.holders_seen(name_begins)? {
            None => self.holders_seen(name_begins),
            held => Ok(held),
        }
    }

    fn holders_seen(&self, name_begins: &str) -> Result<Option<Vec<Living>>> {
        let begins = names::checked("lock", name_begins)?;
        let folder = self.directory.join("locks");
        let failed = |source| Error::Read { path: folder.clone(), source };
        let mut held = None;
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".lock")) else {
                continue;
            };
            if name.starts_with(begins) && !self.is_free(name)? {
                held.get_or_insert_with(Vec::new).extend(self.leftovers(name)?);
            }
        }
        Ok(held)
    }

    /// The processes that keep this lock from being free: those that have its file open, and those
    /// that a run under it left behind. This process is never among them.
    pub fn leftovers(&self, lock_name: &str) -> Result<Vec<Living>> {
        let path = self.lock_path(lock_name)?;
        let mut leftovers = self.holders(&path)?;
        for straggler in self.stragglers(&path, &self.lock_note(&path)?)? {
            if leftovers.iter().all(|known| known.pid != straggler.pid) {
                leftovers.push(straggler);
            }
        }
        Ok(leftovers)
    }

    /// The run that had the lock last, whatever became of it.
    pub fn last_run_of(&self, lock_name: &str) -> Result<Option<String>> {
        Ok(self.lock_note(&self.lock_path(lock_name)?)?.run)
    }

    pub(super) fn lock_path(&self, lock_name: &str) -> Result<PathBuf> {
        let name = names::checked("lock", lock_name)?;
        Ok(self.directory.join("locks").join(format!("{name}.lock")))
    }

    /// Whether the kernel would give the lock to somebody now. Asked by a shared lock, so that two
    /// who look at once do not see each other.
    pub(super) fn is_unlocked(&self, path: &Path) -> Result<bool> {
        let failed = |source| Error::Lock { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(failed(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                // Said aloud, since a child forked by another thread may have a copy of this file
                // until it executes its program.
                flock(&file, FlockOperation::Unlock).map_err(|error| failed(error.into()))?;
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(failed(error.into())),
        }
    }

    pub(super) fn lock_note(&self, path: &Path) -> Result<Note> {
        let bytes = durable::read(path)?.unwrap_or_default();
        Ok(Note::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Others that have the lock's file open.
    fn holders(&self, path: &Path) -> Result<Vec<Living>> {
        let others = self.others()?;
        let holders = others.iter().filter(|other| other.use_of(path) != FileUse::NotOpen);
        Ok(holders.map(|holder| Living::of(&holder.process)).collect())
    }

    /// Living processes of runs under this lock, whether or not they still have its file open.
    /// Only the last run can have any: the one before was found without when the lock was taken.
    fn stragglers(&self, path: &Path, note: &Note) -> Result<Vec<Living>> {
        let last_run = match &note.run {
            // A record that cannot be read tells no session; the kernel's lock and the variables
            // of the processes still tell, and nothing is started in place of that run itself.
            Some(run) => self.record(run).ok().flatten(),
            None => None,
        };
        let session = last_run.as_ref().and_then(|run| self.session_of(run));
        let others = self.others()?;
        let stragglers = others.iter().filter(|other| {
            Some(other.process.session) == session
                || other.lock() == Some(path.as_os_str().as_bytes())
        });
        Ok(stragglers.map(|straggler| Living::of(&straggler.process)).collect())
    }
}

/// Notes in the lock file for which run the lock is now.
pub(super) fn note_run(lock: &Lock, run: &str) -> Result<()> {
    let failed = |source| Error::Lock { path: lock.path.clone(), source };
    let note = Note { generation: lock.generation, run: Some(run.to_owned()) };
    let file = OpenOptions::new().write(true).open(&lock.path).map_err(failed)?;
    note.write(&file).map_err(failed)
}

fn open_or_create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn try_exclusive(file: &File) -> io::Result<bool> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(BETWEEN_TRIES);
        }
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

fn read_note(mut file: &File) -> io::Result<Note> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(Note::parse(&String::from_utf8_lossy(&bytes)))
}

/// The same open file under a number that no script uses, or, where the limit of open files is
/// low, at least under none of the standard three.
fn high_descriptor(file: &File) -> io::Result<OwnedFd> {
    let high = rustix::io::fcntl_dupfd_cloexec(file, FIRST_DESCRIPTOR);
    Ok(high.or_else(|_| rustix::io::fcntl_dupfd_cloexec(file, 10))?)
}

/// Held while a record is made or removed, so that two programs on one directory do not do so at
/// once. Waits, but never for long: nobody does anything slow under it.
pub(super) struct RecordsGuard(File);

impl RecordsGuard {
    pub(super) fn take(directory: &Path) -> Result<RecordsGuard> {
        let path = directory.join("records.lock");
        let failed = |source| Error::Lock { path: path.clone(), source };
        let file = open_or_create(&path).map_err(failed)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(RecordsGuard(file)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

impl Drop for RecordsGuard {
    fn drop(&mut self) {
        // Closing alone would leave it locked while a child just forked has a copy. If this fails,
        // the close that follows frees it a little later.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::Note;

    #[test]
    fn a_lock_file_that_says_nothing_counts_from_zero() {
        for text in ["", "\n", "what is this", "-1 a"] {
            assert_eq!(Note::parse(text).generation, 0, "{text:?}");
        }
    }

    #[test]
    fn a_lock_file_names_its_last_run() {
        let note = Note::parse("7 pod a\nd-with-a-longer-name\n");
        assert_eq!(note, Note { generation: 7, run: Some("pod a".to_owned()) });
    }
}
