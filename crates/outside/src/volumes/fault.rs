//! What was wrong with single files, gathered into one reason for the whole.
//!
//! One file that cannot be read is enough for all of it to fail: a snapshot is never a part. The
//! others are read all the same, so that whoever mends it can mend more than one at a time.

use super::error::{Failure, Reason};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// So many paths are named.
const NAMED: usize = 10;

/// What was wrong with one file.
#[derive(Debug)]
pub(super) enum Fault {
    /// It cannot be read.
    Source(io::Error),
    /// It changed while it was read, so what was read was never there at one moment.
    Changed,
    /// It cannot be written.
    Target(io::Error),
    /// Something of it cannot be kept: its owner, say.
    NotKept(&'static str, io::Error),
    /// Somebody ended the work.
    Cancelled,
    /// The work took longer than it may.
    TooLong,
}

/// What was wrong with all of them.
#[derive(Debug, Default)]
pub(super) struct Faults {
    first: Vec<String>,
    count: usize,
    worst: Option<Worst>,
}

/// The later, the more it says about the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worst {
    Changed,
    Unreadable,
    Unwritable,
    Full,
    TooLong,
    Cancelled,
}

impl Faults {
    /// Notes one; true if it makes no sense to go on.
    pub(super) fn note(&mut self, path: &[u8], fault: Fault) -> bool {
        let (worst, text) = match fault {
            Fault::Changed => (Worst::Changed, "it changed while it was read".to_owned()),
            Fault::Source(error) => (Worst::Unreadable, error.to_string()),
            Fault::NotKept(what, error) => {
                (Worst::Unwritable, format!("its {what} cannot be kept: {error}"))
            }
            Fault::Target(error) if is_full(&error) => (Worst::Full, error.to_string()),
            Fault::Target(error) => (Worst::Unwritable, format!("cannot be written: {error}")),
            Fault::Cancelled => (Worst::Cancelled, String::new()),
            Fault::TooLong => (Worst::TooLong, String::new()),
        };
        self.count += 1;
        if self.first.len() < NAMED && !text.is_empty() {
            let path = if path.is_empty() { b"." } else { path };
            self.first.push(format!("{} ({text})", String::from_utf8_lossy(path).escape_debug()));
        }
        let before = self.worst;
        self.worst = self.worst.max(Some(worst));
        if before < self.worst && worst >= Worst::Full {
            self.first.clear();
        }
        worst >= Worst::Full || self.count >= NAMED
    }

    pub(super) fn into_result(self, purpose: &Purpose) -> Result<(), Failure> {
        let Some(worst) = self.worst else { return Ok(()) };
        let (what, path) = (purpose.what, purpose.path.display());
        let named = self.first.join(", ");
        let at_least = if self.count >= NAMED { " and perhaps more" } else { "" };
        Err(match worst {
            Worst::Changed => Failure::new(
                Reason::SnapshotFailed,
                format!("cannot {what} {path} while somebody writes to it: {named}{at_least}"),
            ),
            Worst::Unreadable => Failure::new(
                Reason::SourceUnreadable,
                format!(
                    "cannot {what} {path}: {named}{at_least}: make them readable or remove them"
                ),
            ),
            Worst::Unwritable => Failure::new(
                Reason::SnapshotFailed,
                format!("cannot {what} {path}: {named}{at_least}"),
            ),
            Worst::Full => Failure::new(
                Reason::TargetFull,
                format!("cannot {what} {path}: there is no space left"),
            ),
            Worst::TooLong => Failure::new(
                Reason::FreezeTooLong,
                format!(
                    "cannot {what} {path}: it takes longer than those who write to it may be \
                     frozen: stop them first"
                ),
            ),
            Worst::Cancelled => {
                Failure::new(Reason::Cancelled, format!("it was given up to {what} {path}"))
            }
        })
    }
}

/// Whether the disk, or what its owner may have of it, is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
}

/// What is being done, for people: `what` goes before the path.
#[derive(Clone, Debug)]
pub(super) struct Purpose {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
}

impl Purpose {
    /// Why it failed before the first file.
    pub(super) fn unopened(&self, error: &io::Error) -> Failure {
        let (what, path) = (self.what, self.path.display());
        match error.kind() {
            io::ErrorKind::NotFound => Failure::new(
                Reason::SourceMissing,
                format!("cannot {what} {path}: it is not there"),
            ),
            _ => Failure::new(Reason::SourceUnreadable, format!("cannot {what} {path}: {error}")),
        }
    }

    /// Why it failed at something that is about no single file.
    pub(super) fn failed(&self, step: &str, error: &io::Error) -> Failure {
        let reason = if is_full(error) { Reason::TargetFull } else { Reason::SnapshotFailed };
        let (what, path) = (self.what, self.path.display());
        Failure::new(reason, format!("cannot {what} {path}: cannot {step}: {error}"))
    }
}
