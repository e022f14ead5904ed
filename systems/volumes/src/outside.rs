//! What volumes ask of the machine and of the mover, and do to them.
//!
//! Whatever takes long is begun by a action and asked about afterwards. A action is known by a name that
//! was written into an object before it began: beginning it twice is beginning it once, and whoever
//! was killed meanwhile finds out by asking.

use interlock_kernel::Outside;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;

/// The volumes and snapshots of one cluster, as folders of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disk {}

impl Outside for Disk {
    type Question = DiskQuestion;
    type Answer = Made;
    type Action = DiskAction;
}

/// A question to the disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DiskQuestion {
    /// How far the volume with this handle is.
    Volume(String),
    /// How far the snapshot with this handle is.
    Snapshot(String),
}

/// How far a volume or a snapshot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// There is none, whole or in part.
    Missing,
    /// It is being made by this process.
    Making(Progress),
    /// It is there, whole, and on the disk for good.
    Whole(Content),
    /// It could not be made. Nothing is left of the attempt; beginning it again tries again.
    Failed(Failure),
}

/// What is in a volume or a snapshot, at the moment when it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Files, links and whatever else has a name, but for the folders.
    pub files: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// What they are: the digest over all names, modes, owners, times and contents; empty for a
    /// volume that was made empty.
    pub digest: String,
}

impl Content {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.files == 0
    }
}

/// Something done to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskAction {
    /// Begin to make a volume, empty or as a clone of a snapshot.
    MakeVolume {
        /// Its name for ever.
        handle: String,
        /// The namespace of its claim. Its snapshots go into volumes of a namespace of this name only,
        /// on whatever cluster.
        namespace: String,
        /// How much it may hold.
        capacity: u64,
        /// The snapshot that it is poured from, with the digest that it must have.
        from: Option<(String, String)>,
    },
    /// Begin to take a snapshot of a volume. Whoever writes to the volume is frozen meanwhile.
    TakeSnapshot {
        /// Its name for ever.
        handle: String,
        /// The volume.
        volume: String,
    },
    /// Forget that it could not be made: why is in an object now. Asked again, there is none.
    /// Whatever is whole or being made is left alone.
    Forget(DiskQuestion),
    /// Delete a volume with all that is in it.
    DeleteVolume(String),
    /// Delete a snapshot.
    DeleteSnapshot(String),
}

/// The mover: copies between volumes, snapshots and repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mover {}

impl Outside for Mover {
    type Question = SyncId;
    type Answer = Sync;
    type Action = MoverAction;
}

/// Names one sync for ever: the id and the attempt of the intent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SyncId {
    /// The id of the intent.
    pub id: String,
    /// Which attempt.
    pub attempt: u32,
}

/// How far a sync is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sync {
    /// It was not begun, or the process that ran it died: beginning it again goes on, and is done at
    /// once. A mover that ends in any other way has failed, and says so: if it were merely forgotten,
    /// it would be begun again and again.
    Unknown,
    /// It runs.
    Runs(Progress),
    /// It is done, and on the disk for good.
    Done(Box<Outcome>),
    /// It failed. Nothing that could be taken for a snapshot is left of it.
    Failed(Failure),
}

/// What a sync brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The snapshot in the repository, for those that have one.
    pub snapshot: Option<String>,
    /// What was moved.
    pub content: Content,
    /// When it began.
    pub began: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// What the mover has to say, for people.
    pub log: String,
}

/// How far something that takes long is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes so far.
    pub bytes: u64,
    /// Bytes in all, once they are counted.
    pub of_bytes: Option<u64>,
    /// Files so far.
    pub files: u64,
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One word, a reason of the condition `interlock.dev/Healthy`.
    pub reason: Reason,
    /// The sentence: what, where, and what to do next.
    pub message: String,
}

/// Why something failed, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The repository asks for another password.
    WrongPassword,
    /// There is no repository.
    RepositoryMissing,
    /// Somebody else has the repository.
    RepositoryLocked,
    /// The repository cannot be believed.
    RepositoryDamaged,
    /// The repository does not answer.
    RepositoryUnreachable,
    /// The repository is of a sort that is not supported, or its address makes no sense.
    RepositoryNotSupported,
    /// No snapshot fits what was asked for.
    NoEligibleSnapshot,
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
    /// Whoever writes could not be frozen for as long as it took.
    FreezeTooLong,
    /// What arrived is not what was sent.
    DigestMismatch,
    /// The snapshot failed for another reason.
    SnapshotFailed,
    /// Anything else, in the sentence.
    MoverFailed,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 16] = [
        Reason::WrongPassword,
        Reason::RepositoryMissing,
        Reason::RepositoryLocked,
        Reason::RepositoryDamaged,
        Reason::RepositoryUnreachable,
        Reason::RepositoryNotSupported,
        Reason::NoEligibleSnapshot,
        Reason::SourceUnreadable,
        Reason::SourceEmpty,
        Reason::SourceMissing,
        Reason::TargetFull,
        Reason::SizeMismatch,
        Reason::FreezeTooLong,
        Reason::DigestMismatch,
        Reason::SnapshotFailed,
        Reason::MoverFailed,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Reason::WrongPassword => "WrongPassword",
            Reason::RepositoryMissing => "RepositoryMissing",
            Reason::RepositoryLocked => "RepositoryLocked",
            Reason::RepositoryDamaged => "RepositoryDamaged",
            Reason::RepositoryUnreachable => "RepositoryUnreachable",
            Reason::RepositoryNotSupported => "RepositoryNotSupported",
            Reason::NoEligibleSnapshot => "NoEligibleSnapshot",
            Reason::SourceUnreadable => "SourceUnreadable",
            Reason::SourceEmpty => "SourceEmpty",
            Reason::SourceMissing => "SourceMissing",
            Reason::TargetFull => "TargetFull",
            Reason::SizeMismatch => "SizeMismatch",
            Reason::FreezeTooLong => "FreezeTooLong",
            Reason::DigestMismatch => "DigestMismatch",
            Reason::SnapshotFailed => "SnapshotFailed",
            Reason::MoverFailed => "MoverFailed",
        }
    }

    /// Whether the same may go well another time, with nothing changed by a person.
    pub fn may_heal(self) -> bool {
        matches!(
            self,
            Reason::RepositoryLocked
                | Reason::RepositoryUnreachable
                | Reason::SourceUnreadable
                | Reason::TargetFull
                | Reason::FreezeTooLong
                | Reason::SnapshotFailed
                | Reason::MoverFailed
        )
    }
}

/// Something done by the mover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoverAction {
    /// Begin a sync. One that runs or is done under this id is left alone.
    Begin {
        /// Its name for ever.
        id: SyncId,
        /// What to do.
        job: Box<Job>,
    },
    /// Forget what became of a sync, which is over: its outcome is in an object now.
    Forget(SyncId),
}

/// What a mover does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Writes a volume or a snapshot into a repository, as one snapshot.
    Backup {
        /// What is read.
        from: Folder,
        /// Where it goes.
        repository: Repository,
        /// How the snapshot is marked.
        mark: Mark,
        /// Whether a source with nothing in it is meant to be so.
        allow_empty: bool,
        /// Which snapshots stay; forgotten and pruned after the backup.
        keep: Option<Keep>,
    },
    /// Brings a volume to what a snapshot of a repository has.
    Restore {
        /// The volume that is written.
        into: String,
        /// Where it comes from.
        repository: Repository,
        /// Which snapshot.
        choice: Choice,
        /// Whether files that the snapshot does not have are deleted.
        delete_other_files: bool,
        /// The digest that the volume must have then.
        digest: Option<String>,
        /// Whether a snapshot with nothing in it is meant to be so.
        allow_empty: bool,
    },
    /// Removes from a repository what earlier moves of a claim left in it.
    Tidy {
        /// The repository.
        repository: Repository,
        /// What goes.
        left: LeftByMoves,
    },
    /// Brings a volume to what a snapshot has that is on this machine, of this cluster or another.
    Copy {
        /// The volume that is written.
        into: String,
        /// The uid of the cluster that has the snapshot.
        cluster: String,
        /// The handle of the snapshot.
        snapshot: String,
        /// The digest that it must have.
        digest: Option<String>,
        /// Whether a snapshot with nothing in it is meant to be so.
        allow_empty: bool,
    },
}

/// The snapshots that earlier moves of a claim left in a repository, and that no move needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftByMoves {
    /// The uid of the claim, as it is in their tags.
    pub claim: String,
    /// Those of earlier epochs than this one go. Later ones are not for us to judge: somebody else
    /// may have the claim by now.
    pub before_epoch: u64,
    /// Snapshots that stay all the same: a grant starts from them, or falls back to them.
    pub pinned: Vec<String>,
}

/// A folder of this cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Folder {
    /// A volume, by its handle.
    Volume(String),
    /// A snapshot, by its handle.
    Snapshot(String),
}

/// Whose snapshots they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// As VolSync marks its own: host `volsync`, path `/data`.
    Volsync,
    /// Of a move: host `interlock`, and these tags.
    Move(Vec<String>),
}

/// Which snapshot is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The newest that VolSync's mark is on, not younger than this, after leaving some out.
    Newest {
        /// None younger than this.
        as_of: Option<Timestamp>,
        /// How many of the newest are left out.
        previous: u32,
    },
    /// This one.
    Id(String),
}

/// Which snapshots stay. Without any number, the last one does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// The last so many.
    pub last: Option<u32>,
    /// One an hour, for so many.
    pub hourly: Option<u32>,
    /// One a day.
    pub daily: Option<u32>,
    /// One a week.
    pub weekly: Option<u32>,
    /// One a month.
    pub monthly: Option<u32>,
    /// One a year.
    pub yearly: Option<u32>,
    /// All of this last time, as restic writes it: `3h`, `7d`, `1y6m`.
    pub within: Option<String>,
    /// Snapshots that stay whatever the numbers say.
    pub pinned: Vec<String>,
    /// Whether what nothing refers to any more is removed too.
    pub prune: bool,
    /// Whether locks that are provably dead are removed first.
    pub unlock: bool,
}

/// Where a repository is and how it is opened: the keys of its Secret, and what was found beside it.
/// Nobody sees the values by printing it.
#[derive(Clone, PartialEq, Eq)]
pub struct Repository {
    /// The keys of the Secret: `RESTIC_REPOSITORY`, `RESTIC_PASSWORD` and the rest.
    pub settings: BTreeMap<String, String>,
    /// A certificate authority for `rest:` servers, in PEM.
    pub authority: Option<String>,
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repository").field("keys", &self.settings.keys()).finish_non_exhaustive()
    }
}
