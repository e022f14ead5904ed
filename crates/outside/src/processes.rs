//! Runs a Pod's command as a local process that holds the lock of its volumes.
//!
//! At most one run lives under a lock, and a stop is reported only when it is real. The kernel is
//! the witness: a run inherits an open, locked file, and the lock is free when the last process
//! that has it is gone. Nothing is kept in memory: whoever opens the directory next, after any
//! crash, sees the same runs, and finds a process again by its pid, its start time and the boot.
//!
//! Linux only. No root is needed; nothing is run as root unless that is asked for.
//!
//! # How a start survives a crash at any moment
//! | step | a crash after it leaves |
//! |---|---|
//! | 1. take the lock | nothing: the kernel frees the lock |
//! | 2. write the record, without a pid | `Starting`; nothing ran; who takes the lock may start |
//! | 3. fork; the child waits at a gate | the child sees that we died, and ends; as after 2 |
//! | 4. write the pid and start time | the child ends; an exit whose code is not known |
//! | 5. open the gate; the child executes | the child runs, holds the lock, and is found again |
//! | 6. close our copy of the lock | nothing: only the run holds the lock now |
//!
//! A command that cannot be executed has ended in step 5; how is written by whoever opened the gate.
//!
//! So the command never runs before its pid is on disk, and a run with a record is never started
//! again before somebody has called [`Processes::forget`], which needs it to be gone.
//!
//! # Who belongs to a run
//! Every process of the session that the command leads; every other one that inherited the lock;
//! every other one whose environment names the run. The last two find those that left the session.
//!
//! # What a command sees
//! There are no containers and no mounts here. A command runs in the folder `runs/<id>/root`, in
//! which each mount path is a symbolic link to the folder of its volume (`/data` is
//! `runs/<id>/root/data`); its working directory is taken below that folder too. An absolute path
//! such as `/data` in the command itself is **not** translated: use a relative one, or these:
//!
//! | variable | value |
//! |---|---|
//! | `INTERLOCK_ROOT` | the folder `runs/<id>/root` |
//! | `INTERLOCK_VOLUME_<NAME>` | the folder of the volume; the name in capitals, `_` for others |
//! | `INTERLOCK_RUN`, `INTERLOCK_LOCK` | how its processes are found again |
//! | `PATH`, `HOME`, `TMPDIR` | ours, unless the run sets them; nothing else is inherited |
//!
//! # Files
//! | name | what it is |
//! |---|---|
//! | `locks/<lock>.lock` | the locked file; says how often it was taken, and by which run last |
//! | `runs/<id>/run.json` | the record of a run |
//! | `runs/<id>/exit-<token>.json` | how that run ended |
//! | `runs/<id>/asked-<token>.json` | when it was first sent each signal |
//! | `runs/<id>/root/` | the folder of the command |
//! | `logs/<id>.log` | where [`Processes::log_file`] suggests to write its output; beside it, `logs` says more |
//! | `volumes/<cluster>/<namespace>/<claim>/` | a volume |
//! | `tokens/<id>/volumes/<volume>/` | files with service-account tokens |
//! | `tokens/<id>/notes.json` | when each of these was issued, and for how long |
//! | `files/<id>/<volume>/` | volumes of files that were made before its start |
//! | `locks/<lock>~<purpose>.lock` | held by a command beside a run: a probe, or a preStop hook |
//! | `frozen/<token>.json` | runs that are stopped for a moment, see [`Processes::freeze`] |
//! | `records.lock` | locked while a record is made or removed |
//!
//! # Not promised
//! * To see a process that left the session, closed or unlocked the lock, and wiped its environment or took that of another
//!   run. Only a cgroup could hold it, and those need rights that we do not ask for.
//! * To know the exit code of a run that ended while nobody of us was there.
//! * Anything on a file system whose flock(2) is not kept by one kernel.

mod asked;
mod beside;
mod dispositions;
mod durable;
mod enter;
mod error;
mod files;
mod freeze;
mod frozen_note;
mod launch;
mod lock;
mod logs;
mod members;
mod names;
mod observe;
mod probes;
mod record;
mod start;
mod stop;
mod table;
mod tokens;
mod volumes;

pub use asked::Asked;
pub use beside::{Beside, PreStop, Purpose};
pub use enter::{EnterError, Entered, Entry, Hold, Left, resize};
pub use error::{Error, Result};
pub use files::VolumeFile;
pub use freeze::Frozen;
pub use lock::{Lock, Locking};
pub use logs::{LogKeeper, LogOf, LogReader, LogWindow, Stamp};
pub use observe::{Ending, Observed};
pub use probes::{Check, Probe, Prober, Probes, Verdict, Verdicts, Watched};
pub use start::{Run, Started};
pub use stop::{Signal, StillThere};
pub use tokens::TokenFile;
pub use volumes::{Mount, Volume};

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The runs, locks and volumes under one directory.
///
/// Every call is short, a few reads of `/proc` and at most a few synced writes, except
/// [`Processes::stop_all`], which waits, and a kill of a run that makes processes all the time. Several programs may open one directory at once.
#[derive(Debug)]
pub struct Processes {
    directory: PathBuf,
    boot_id: String,
    /// True once everything is being stopped. Starts hold it for reading, so that a stop of all
    /// sees each start either done or refused.
    stopping: RwLock<bool>,
    environments: table::Environments,
}

/// A process that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    /// Its pid.
    pub pid: i32,
    /// One letter as in `ps`: R runs, S sleeps, D waits in the kernel and cannot be killed, ...
    pub state: char,
    /// The name of its program, as the kernel has it: at most 15 bytes.
    pub name: String,
}

impl Living {
    fn of(process: &table::Process) -> Living {
        Living { pid: process.pid, state: process.state, name: process.name.clone() }
    }
}

impl Processes {
    /// Opens the directory, and makes it if need be. Refused to root, whose commands could change
    /// everything on the machine.
    pub fn open(directory: impl AsRef<Path>) -> Result<Processes> {
        Processes::refuse_root(directory.as_ref())?;
        Processes::open_allowing_root(directory)
    }

    /// What opening a directory would refuse to root; for those who want to know before they begin.
    pub fn refuse_root(directory: &Path) -> Result<()> {
        match rustix::process::geteuid().is_root() {
            true => Err(Error::Root { directory: directory.to_owned() }),
            false => Ok(()),
        }
    }

    /// Whether its processes are those of root.
    #[must_use]
    pub fn are_roots(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    /// Opens the directory whoever we are.
    pub fn open_allowing_root(directory: impl AsRef<Path>) -> Result<Processes> {
        let directory = directory.as_ref();
        for folder in ["locks", "runs", "logs", "volumes", "frozen", tokens::TOKENS, files::FILES] {
            durable::make_folder(&directory.join(folder))?;
        }
        // Links in the path are resolved once: processes are recognised by the path of their lock.
        let directory = directory
            .canonicalize()
            .map_err(|source| Error::Prepare { path: directory.to_owned(), source })?;
        let boot_id = fs::read_to_string(BOOT_ID)
            .map_err(|source| Error::Read { path: BOOT_ID.into(), source })?
            .trim()
            .to_owned();
        let (stopping, environments) = (RwLock::new(false), table::Environments::default());
        let processes = Processes { directory, boot_id, stopping, environments };
        processes.thaw_abandoned()?;
        Ok(processes)
    }

    /// The id of this boot of the machine: another one after every restart.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// Where the output of a run may go. It stays when the run is forgotten.
    pub fn log_file(&self, id: &str) -> Result<PathBuf> {
        let id = names::checked("run", id)?;
        Ok(self.directory.join("logs").join(format!("{id}.log")))
    }

    /// All processes that live, except this one, with the locks that each has open.
    fn others(&self) -> Result<Vec<table::Seen>> {
        let names = table::Names { run: start::RUN_VARIABLE, lock: lock::LOCK_VARIABLE };
        let others = self.environments.others(&self.directory.join("locks"), names);
        others.map_err(|source| Error::Read { path: PathBuf::from("/proc"), source })
    }
}
