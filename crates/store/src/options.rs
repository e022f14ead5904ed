//! How a store is opened, what was found, and what it says about itself.

use crate::Revision;
use std::io;
use std::time::Duration;

/// How a store behaves. The defaults are what a server wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// A segment of the log is left for a new one before it becomes longer than this.
    pub segment_bytes: u64,
    /// A checkpoint is written when more than this was logged since the last one, or more than all
    /// that is alive, whichever is greater; and only once the floor has moved.
    pub checkpoint_bytes: u64,
    /// When superseded versions take more memory than this, about, the floor moves up by itself
    /// until they take half of it. Owners (what comes before the first slash of a row) who have less than an
    /// equal share keep theirs: it is taken from those who have most.
    pub history_bytes: u64,
    /// When the disk has less room than this, only writes are taken that free room or barely use
    /// any.
    pub reserve_bytes: u64,
    /// How many transactions may wait. One group of writers may take half of that.
    pub waiting_transactions: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 << 20,
            checkpoint_bytes: 64 << 20,
            history_bytes: 256 << 20,
            reserve_bytes: 256 << 20,
            waiting_transactions: 8192,
        }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another part of this one, has it open.
    #[error("the data directory is in use by {holder}")]
    Locked {
        /// What the holder left in the lock file.
        holder: String,
    },
    /// Something that was acknowledged is not as it was written. Nothing was changed.
    /// `Embedded::restore` can bring what is good into another directory.
    #[error("{file} is damaged at byte {offset}, after revision {last_good}: {what}")]
    Damaged {
        /// The file's name in the data directory.
        file: String,
        /// Where in it.
        offset: u64,
        /// The last revision that could be read.
        last_good: Revision,
        /// What is wrong there.
        what: String,
    },
    /// It was written by another version.
    #[error("the data directory has format {found}, which this version cannot read")]
    Format {
        /// The format that was found.
        found: String,
    },
    /// The file system says no.
    #[error("cannot {doing}")]
    Io {
        /// What was tried.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// What was found when a store was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The newest revision.
    pub revision: Revision,
    /// The revision of the checkpoint that was read; 0 if there was none.
    pub checkpoint: Revision,
    /// How many frames of the log were read after it.
    pub frames: u64,
    /// How many transactions were replayed from them.
    pub transactions: u64,
    /// A write that a crash had torn, and that was cut off. It was never acknowledged.
    /// Worth a warning all the same: a last write that rotted on the disk looks just like it.
    pub torn: Option<TornTail>,
    /// Checkpoints that were damaged and passed over for an older one. Worth a warning.
    pub damaged: Vec<String>,
}

/// The end of the log, which was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub file: String,
    /// Where the cut was made.
    pub offset: u64,
    /// How many bytes lay behind it.
    pub bytes: u64,
    /// The last revision before the cut.
    pub after: Revision,
}

/// Why a store no longer takes writes and answers reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// It was closed.
    #[error("the store was closed")]
    Closed,
    /// It failed. The process should end; the next start finds out what is durable.
    #[error("{0}")]
    Failed(String),
}

/// What a store says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision at which everything can be read.
    pub floor: Revision,
    /// How many keys there are.
    pub keys: u64,
    /// The bytes of all rows and their newest values.
    pub live_bytes: u64,
    /// The memory that superseded versions and changes take, about.
    pub history_bytes: u64,
    /// How many segments the log has.
    pub segments: u64,
    /// The bytes that were written to the log.
    pub logged_bytes: u64,
    /// How many batches were made durable, each with one sync.
    pub syncs: u64,
    /// How many transactions were committed.
    pub commits: u64,
    /// How many batches had 1, 2-3, 4-7, ... transactions; the last counts those of 1,024.
    pub batches: [u64; 11],
    /// How long the last write and sync took.
    pub last_sync: Duration,
    /// The revision of the newest checkpoint; 0 if there is none.
    pub checkpoint: Revision,
    /// How many checkpoints could not be written. The log is kept as long as it is needed.
    pub failed_checkpoints: u64,
    /// Whether the disk has less room than the reserve.
    pub is_disk_nearly_full: bool,
}
