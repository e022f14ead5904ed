//! Backup into and restore from restic repositories, without the restic program.
//!
//! What is written here, `restic` reads, and the other way round; both may work on one repository at
//! once, since both keep restic's locks. Snapshots have the shape of VolSync's. Three rules hold that
//! neither restic nor rustic_core keeps: a snapshot is whole or is not there; a repository is only made
//! where it is certain that there is none; and a restore that ends well has set every owner, mode, time
//! and attribute.
//!
//! Everything here blocks, and is meant for a thread of its own.

mod backup;
mod bridge;
mod failure;
mod host;
mod keep;
mod keys;
mod lock;
mod modes;
mod packs;
mod repository;
mod restore;
mod seal;
mod settings;
mod source;
mod store;
mod tidy;
mod watch;

pub use backup::{Backup, Mark, backup};
pub use failure::{Failure, Reason};
pub use keep::Keep;
pub use restore::{Choice, Restore, restore};
pub use settings::{KEYS, Settings};
pub use source::Sort;
pub use tidy::{LeftByMoves, Tidied, Tidy, tidy, tidy_moves, unlock};
pub use watch::{Progress, Watch};

use jiff::Timestamp;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a backup or a restore brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The id of the snapshot.
    pub snapshot: String,
    /// Files, links and whatever else has a name, but for the folders.
    pub files: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What there is to say about it, for people.
    pub log: String,
}

/// Runs something that may panic, since rustic_core does where it could return an error. What it was
/// at is given up, the locks are given back, and the next attempt starts anew.
fn guarded<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        let line = text.lines().next().unwrap_or_default();
        Err(Failure::new(Reason::MoverFailed, format!("the mover gave up: {line}")))
    })
}
