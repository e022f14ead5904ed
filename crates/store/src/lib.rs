//! Revisioned keys with guarded transactions, ranges at a revision, and watches, on local disk.
//!
//! Every commit gets one new revision. A reader sees the keys as they were at one revision; a
//! watcher sees each change after a revision, once, in order. Nobody reads what is not yet durable.
//!
//! `Store` says what every back end does; [`Embedded`] is the one that keeps all in memory and logs
//! it to a directory. One thread commits: it takes what has arrived, checks guards, writes one
//! frame, syncs once, publishes and answers. Another drops old history and writes checkpoints.
//!
//! # Promises
//! After a crash of the process or a loss of power, at any moment:
//! * each acknowledged commit is there, at its revision;
//! * each other one is there in whole or not at all;
//! * nothing that anyone has read or got as an answer is lost;
//! * revisions neither run backwards nor come to mean something else;
//! * a watch resumed at the floor or later sees each change once.
//!
//! The floor, below which history is gone, only rises while a store is open. After a start it is
//! where the newest checkpoint is: what can be read again then is as true as it was.
//!
//! The owner of a row is what comes before its first slash. While a store is open, a range of one owner can
//! be read and watched from below the floor, as long as that owner's own history fits into its share of
//! the budget: one writer's flood does not cost the others what they may resume from.
//!
//! When a write or a sync fails, the outcome is unknown: the store stops, nothing more is read from
//! it, and `Embedded::stopped` says why. The process should end. The next start decides what is
//! durable.
//!
//! # Files
//! | name | what it is |
//! |---|---|
//! | `store` | the store's id and its format |
//! | `lock` | locked while a process uses the directory, and names it |
//! | `log-<revision>` | a segment of the log from that revision on: a header, frames, zeros |
//! | `state-<revision>` | a checkpoint: all there was at that revision |
//! | `*.new` | a file that was never completed; removed at the next start |
//!
//! The two newest checkpoints are kept, with the log since the older one. Segments and checkpoints
//! have checksums (CRC32 with the IEEE polynomial) and carry the store's id. A copy of the directory
//! is a backup if nobody writes meanwhile; `Embedded::restore` makes of it a store with a history of
//! its own.
//!
//! A start reads the newest checkpoint and the log after it. A damaged checkpoint is passed over for
//! the older one, and reported by `Embedded::recovery`. If the log is damaged, the store refuses to
//! start and says where; only a torn last write is cut off, and reported. What a start does not need,
//! it does not read: damage there is found only when it is needed.
//!
//! # Not promised
//! * Anything on a disk that says it has synced when it has not.
//! * To tell a last write that rotted on the disk from one that a crash tore: both are cut off.
//! * To notice that whole segments were removed from the end of the log, or all files of the
//!   directory.
//! * Room: everything must fit into memory.

mod checkpoint;
mod committer;
mod cursor;
mod disk;
mod embedded;
mod encoding;
mod frame;
mod housekeeper;
mod index;
mod key;
mod log;
mod options;
mod queue;
mod recovery;
mod restore;
mod shared;
#[cfg(test)]
mod tests;
mod transaction;
mod value;

pub use cursor::Cursor;
pub use embedded::Embedded;
pub use options::{OpenError, Options, Recovery, Stats, Stop, TornTail};
pub use restore::{Damage, Restored};

pub use key::{Key, KeyRange, Table};
pub use transaction::{Guard, Operation, Transaction};
pub use value::{Value, Versioned};

use std::future::Future;

/// A point in the store's history. The first commit is at 1; 0 is the empty store.
pub type Revision = u64;

/// What every back end does.
pub trait Store: Send + Sync + 'static {
    /// A watch in progress.
    type Changes: Changes;

    /// All operations at one new revision, if every guard holds. Returns once it is durable, never before.
    fn commit(
        &self,
        transaction: Transaction,
    ) -> impl Future<Output = Result<Revision, CommitError>> + Send;

    /// Keys in order as they were at a revision (the newest if none is named), and the revision that was read.
    fn range(
        &self,
        range: KeyRange,
        at: Option<Revision>,
        limit: usize,
    ) -> impl Future<Output = Result<Page, ReadError>> + Send;

    /// Each change after a revision, in order and without gaps.
    fn watch(
        &self,
        range: KeyRange,
        after: Revision,
    ) -> impl Future<Output = Result<Self::Changes, ReadError>> + Send;

    /// Forgets the versions that were superseded at or before the floor.
    fn compact(&self, floor: Revision) -> impl Future<Output = Result<(), ReadError>> + Send;

    /// Not older than any commit that was acknowledged before the call.
    fn newest(&self) -> impl Future<Output = Result<Revision, ReadError>> + Send;
}

/// A watch in progress. It is a cursor into the store's history, not a queue: a slow reader costs nothing.
pub trait Changes: Send + 'static {
    /// Waits until there is something after the cursor, and returns it. A batch without changes is a progress
    /// mark: nothing in the watched range happened up to its revision. May be dropped at any await without loss.
    fn next(&mut self) -> impl Future<Output = Result<Batch, ReadError>> + Send;
}

/// A run of changes, and how far the watcher has seen once it has taken them.
#[derive(Debug, Clone)]
pub struct Batch {
    /// In order of revision.
    pub changes: Vec<Change>,
    /// Every change in the range up to here has been handed out.
    pub seen: Revision,
}

/// One key, before and after one revision.
#[derive(Debug, Clone)]
pub struct Change {
    /// When.
    pub revision: Revision,
    /// Which.
    pub key: Key,
    /// What was there; none if the key was absent.
    pub before: Option<Versioned>,
    /// What is there now; none if the key was deleted.
    pub after: Option<Versioned>,
}

/// Some keys of a range, all as they were at one revision.
#[derive(Debug, Clone)]
pub struct Page {
    /// In key order.
    pub items: Vec<Versioned>,
    /// The revision that was read.
    pub revision: Revision,
    /// How many more there are after the last item.
    pub remaining: usize,
}

/// Why a transaction was not committed, or is not known to be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A guard does not hold. What is at its key is handed back.
    #[error("{key} is not as it was seen")]
    GuardFailed {
        /// The guard's key.
        key: Key,
        /// What is there.
        current: Option<Versioned>,
    },
    /// It breaks a limit, or there is no room: nothing was written.
    #[error("the store refused the write: {0}")]
    Refused(Refusal),
    /// It may or may not be durable. Look before doing it again: a guard would report a conflict with ourselves.
    #[error("the outcome of the write is not known")]
    OutcomeUnknown,
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// More than 128 operations, or more than 1.5 MiB.
    #[error("{0}")]
    TooLarge(String),
    /// Two operations on one table: two events with one revision could not be resumed between.
    #[error("a transaction may change only one key of the table {0}")]
    TwoInOneTable(String),
    /// The disk is nearly full: only writes that free or barely use room are taken.
    #[error("the disk at the data directory is nearly full")]
    DiskNearlyFull,
    /// Too many writes wait already.
    #[error("too many writes are waiting")]
    Busy,
    /// The store is stopping or has stopped.
    #[error("the store has stopped: {0}")]
    Stopped(String),
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Older than what is kept.
    #[error("the revision is compacted; the oldest that can be read is {floor}")]
    Compacted {
        /// The oldest revision that can be read.
        floor: Revision,
    },
    /// Not there yet.
    #[error("the revision is in the future; the newest is {newest}")]
    NotYet {
        /// The newest revision.
        newest: Revision,
    },
    /// The store has stopped or cannot be reached.
    #[error("the store cannot be reached")]
    Unavailable,
}
