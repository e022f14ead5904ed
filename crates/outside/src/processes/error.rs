//! What can go wrong with runs, locks and volume folders.

use std::io;
use std::path::PathBuf;

/// What was tried and could not be done. Fields named `path` say where, `id` which run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are the words of the texts; variants are described")]
pub enum Error {
    /// We are root, and nobody has allowed that.
    #[error(
        "refused to run commands from {directory} as root: start as another user, or pass \
         --allow-root-processes"
    )]
    Root { directory: PathBuf },
    /// A folder or a link could not be made.
    #[error("cannot prepare {path}")]
    Prepare { path: PathBuf, source: io::Error },
    /// A file could not be read.
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    /// A file could not be written, or not for good.
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    /// A file or folder could not be removed.
    #[error("cannot remove {path}")]
    Remove { path: PathBuf, source: io::Error },
    /// The kernel could not be asked for a lock. That another holds it is no error.
    #[error("cannot lock {path}")]
    Lock { path: PathBuf, source: io::Error },
    /// The lock given to a start is of another directory, and would protect nothing.
    #[error("lock {path} was taken in another directory than {directory}")]
    ForeignLock { path: PathBuf, directory: PathBuf },
    /// A name could lead out of its folder.
    #[error("{what} {name:?} cannot name a file: {because}")]
    Name { what: &'static str, name: String, because: &'static str },
    /// A record is there and says nothing. See [`super::Processes::discard_damaged`].
    #[error(
        "the record of run {id} at {path} is damaged: nothing is started in its place until it is \
         discarded under its lock"
    )]
    DamagedRecord { id: String, path: PathBuf, source: serde_json::Error },
    /// The run was started before.
    #[error("run {id} has a record already: it must be gone and forgotten before a new start")]
    HasRecord { id: String },
    /// There is nothing to execute.
    #[error("run {id} names no command")]
    NoCommand { id: String },
    /// A variable has no place in an environment.
    #[error("run {id} cannot be given the variable {name:?}: {because}")]
    Variable { id: String, name: String, because: &'static str },
    /// A mount path or working directory has no place in the folder of a run.
    #[error("run {id} cannot have the path {path:?}: {because}")]
    Path { id: String, path: String, because: &'static str },
    /// The command could not be executed.
    #[error("cannot start {program:?} for run {id}")]
    Start { id: String, program: String, source: io::Error },
    /// Too late for a start.
    #[error("run {id} is not started: everything is being stopped")]
    Stopping { id: String },
    /// Too early to forget.
    #[error("run {id} is not forgotten: a process of it lives, or its lock is held")]
    NotGone { id: String },
    /// Only damaged records are discarded.
    #[error("the record of run {id} is not discarded: it is not damaged")]
    NotDamaged { id: String },
    /// Somebody reads a volume of the run, and nobody may write to it meanwhile.
    #[error("run {id} is not started: a snapshot of {path} is being taken; start it again then")]
    VolumeFrozen { id: String, path: PathBuf },
    /// Whoever was frozen goes on, and what was to be read meanwhile was not read in time.
    #[error("runs cannot be kept frozen for longer than {seconds} s: they go on")]
    FreezeTooLong { seconds: u64 },
    /// Somebody else reads what the run writes, and has not let it go on.
    #[error("run {id} is frozen by another for longer than {seconds} s: try again")]
    FrozenByAnother { id: String, seconds: u64 },
    /// Somebody let a frozen process go on.
    #[error("process {pid} went on while it was frozen: somebody else let it")]
    NotStill { pid: i32 },
    /// Somebody wrote to a folder that was being read.
    #[error("run {id} was started into the folder while it was read: read it again")]
    Disturbed { id: String },
    /// A process could not be signalled: it may have become another user.
    #[error("cannot signal process {pid} of run {id}")]
    Signal { id: String, pid: i32, source: io::Error },
}

/// What the calls of this room return.
pub type Result<T> = std::result::Result<T, Error>;
