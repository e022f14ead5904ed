//! Volumes and snapshots of volumes, on the machine they are used on.
//!
//! Whatever takes long is begun by one call and asked about by another. A volume or a snapshot is
//! known by a handle that never means another: beginning it twice is beginning it once, and
//! whoever was killed meanwhile finds out by asking. [`Volumes`] says what any back end can do;
//! [`LocalVolumes`] does it with folders.
//!
//! # How something comes to be whole
//! | step | a crash after it leaves |
//! |---|---|
//! | 1. take the lock of the handle | nothing: the kernel frees the lock |
//! | 2. make `.partial-<handle>` and fill it | a partial, removed by the next who opens or makes it |
//! | 3. `syncfs` | the same |
//! | 4. write `.record-<handle>.json`, sync | a record without a folder, which says nothing |
//! | 5. rename the partial to `<handle>`, sync the folder around | it is whole |
//!
//! Nothing that failed, was cut short or ran out of space is ever renamed. A delete goes the other
//! way: the folder is renamed to `.deleted-...` and that is synced; then the record goes; then, on
//! a thread of its own, what was in the folder.
//!
//! # Files
//! | name | what it is |
//! |---|---|
//! | `volumes/<cluster>/<handle>/` | a volume |
//! | `snapshots/<cluster>/<handle>/` | a snapshot; nobody writes to it |
//! | `.record-<handle>.json` | beside it: files, bytes, digest, what it was made from |
//! | `.lock-<handle>` | locked by whoever makes, writes or reads it |
//! | `.partial-<handle>/` | what is being made |
//! | `.deleted-<handle>-<n>/` | what is being removed |
//!
//! # What a clone keeps
//! Bytes, holes, names of any kind, links as they are, several names of one file, modes, owners,
//! times to the nanosecond (of folders and links, too), `user.*` attributes and access lists, fifos
//! and devices. Sockets are left out. Security labels are kept where that is allowed. If anything
//! else cannot be kept, or a file cannot be read, or changes while it is read, the whole fails and
//! says which: there is no snapshot that is a part.

mod attributes;
mod content;
mod copier;
mod crew;
mod digest;
mod error;
mod fault;
mod hold;
mod jobs;
mod local;
mod making;
mod pour;
mod poured;
mod progress;
mod record;
mod segments;
mod shelf;
mod space;
mod tree;
mod walk;
mod writers;

pub use copier::{Copied, Copying, NewCopy};
pub use digest::digest_of;
pub use error::{Error, Failure, Reason, Result};
pub use local::{Held, LocalVolumes};
pub use progress::Progress;
pub use writers::{Still, Writers};

/// The most for which whoever writes to a volume is kept from it.
pub const LONGEST_FREEZE: std::time::Duration = std::time::Duration::from_secs(10);

/// What any back end for volumes can do. Every call is short, and may be made again.
pub trait Volumes: Send + Sync {
    /// Begins to make a volume. One that is being made or is there already is left alone.
    fn make_volume(&self, volume: &NewVolume) -> Result<()>;

    /// Begins to take a snapshot of a volume, as it is at one moment. One that is being taken or is
    /// there already is left alone.
    fn take_snapshot(&self, handle: &str, volume: &str) -> Result<()>;

    /// Deletes a volume. One that is being made is given up: ask, and delete again. That there is
    /// none is no error.
    fn delete_volume(&self, handle: &str) -> Result<()>;

    /// Deletes a snapshot, likewise.
    fn delete_snapshot(&self, handle: &str) -> Result<()>;

    /// How far a volume is.
    fn volume_state(&self, handle: &str) -> Result<Made>;

    /// How far a snapshot is.
    fn snapshot_state(&self, handle: &str) -> Result<Made>;
}

/// A volume to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVolume {
    /// Its name for ever.
    pub handle: String,
    /// Whose it is, and whose its snapshots are: nobody else's volume is ever brought to one of them.
    pub owner: String,
    /// How much it may hold.
    pub capacity_bytes: u64,
    /// What it is filled from; empty if from nothing.
    pub from: Option<FromSnapshot>,
}

/// A snapshot that a volume is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromSnapshot {
    /// The handle of the snapshot.
    pub handle: String,
    /// The digest that it must have; any if empty.
    pub digest: String,
}

/// How far a volume or a snapshot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// There is none, whole or in part.
    Missing,
    /// It is being made, by this process or by another one whose progress is not seen.
    Making(Progress),
    /// It is there, whole, and on the disk for good.
    Whole(Content),
    /// It could not be made. Nothing is left of the attempt; beginning it again tries again.
    Failed(Failure),
}

/// What is in a volume or a snapshot, at the moment when it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Files, links and whatever else has a name, but for the folders.
    pub files: u64,
    /// The bytes of the files; of those with several names, once.
    pub bytes: u64,
    /// What they are, as [`digest_of`] says it; empty for a volume that was made empty.
    pub digest: String,
}
