//! What can go wrong with volumes and snapshots: at once, or in the course of long work.

use std::io;
use std::path::PathBuf;

/// What was asked and could not be begun or answered. Fields named `path` say where.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are the words of the texts; variants are described")]
pub enum Error {
    /// A name could lead out of its folder.
    #[error("{what} {name:?} cannot name a folder: {because}")]
    Name { what: &'static str, name: String, because: &'static str },
    /// A folder could not be made.
    #[error("cannot prepare {path}")]
    Prepare { path: PathBuf, source: io::Error },
    /// Something could not be read.
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    /// Something could not be removed for good.
    #[error("cannot remove {path}")]
    Remove { path: PathBuf, source: io::Error },
    /// The kernel could not be asked for a lock. That another holds it is no error.
    #[error("cannot lock {path}")]
    Lock { path: PathBuf, source: io::Error },
    /// Somebody else reads or writes it.
    #[error("{what} {handle} is in use by another piece of work: ask again when that is over")]
    Busy { what: &'static str, handle: String },
    /// There is none.
    #[error("there is no whole {what} {handle}")]
    Missing { what: &'static str, handle: String },
}

/// What the calls of this room return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something that takes long came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One word.
    pub reason: Reason,
    /// The sentence: what, where, and what to do next.
    pub message: String,
}

impl Failure {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into() }
    }
}

/// Why it came to nothing, in one word: the words of the condition `interlock.dev/Healthy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The source cannot be read, in part or whole.
    SourceUnreadable,
    /// The source has nothing in it.
    SourceEmpty,
    /// What was to be read is not there.
    SourceMissing,
    /// There is no space.
    TargetFull,
    /// The target is smaller than what is to go in.
    SizeMismatch,
    /// Whoever writes was frozen for as long as they may be, and it was not enough.
    FreezeTooLong,
    /// What arrived is not what was sent.
    DigestMismatch,
    /// Anything else, in the sentence.
    SnapshotFailed,
    /// It was deleted while it was being made, or everything is being stopped.
    Cancelled,
}

impl Reason {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Reason::SourceUnreadable => "SourceUnreadable",
            Reason::SourceEmpty => "SourceEmpty",
            Reason::SourceMissing => "SourceMissing",
            Reason::TargetFull => "TargetFull",
            Reason::SizeMismatch => "SizeMismatch",
            Reason::FreezeTooLong => "FreezeTooLong",
            Reason::DigestMismatch => "DigestMismatch",
            Reason::SnapshotFailed => "SnapshotFailed",
            Reason::Cancelled => "Cancelled",
        }
    }
}
