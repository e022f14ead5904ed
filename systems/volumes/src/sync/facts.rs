//! What a decision about a sync sees.

use super::slots;
use crate::outside;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the object is being deleted.
    pub is_terminating: bool,
    /// Whether our finalizer keeps it.
    pub is_kept: bool,
    /// Whether a snapshot of it is held.
    pub has_held_snapshot: bool,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<Picture>,
    /// Whether it is read live, after the mover was asked.
    pub is_fresh: bool,
    /// Whether its snapshots are all listed afresh, which is asked for once it is known to go.
    pub are_snapshots_fresh: bool,
    /// Whether what it asks for is served, and nothing is in the way.
    pub verdict: Verdict,
    /// When the next sync is to begin.
    pub next: Next,
    /// What its status says.
    pub said: Said,
    /// What only one direction has.
    pub side: Side,
    /// The sync that its intent names.
    pub sync: Option<Sync>,
}

/// What only one direction has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Side {
    /// Out of a claim.
    Source(Source),
    /// Into a claim.
    Destination(Destination),
}

/// What only a source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Source {
    /// Whether its namespace does not run here, and no move asks for it: its owner saves it.
    pub is_elsewhere: bool,
    /// What its syncs are for; None: nobody can tell, because it is not supported.
    pub purpose: Option<Purpose>,
    /// Whether a pod may write to the claim.
    pub is_in_use: bool,
}

/// What the syncs of a source are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Purpose {
    /// A snapshot that stays. There is no mover.
    Snapshot,
    /// A snapshot in a repository.
    Backup {
        /// What is removed from there; None: nothing is.
        tidying: Option<Tidying>,
    },
    /// What earlier moves left in a repository is removed.
    Tidy,
}

/// What is removed from a repository after a backup, besides the snapshots that need not stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Tidying {
    /// Whether what nothing refers to any more is removed.
    pub prunes: bool,
    /// Whether locks that are provably dead are removed first.
    pub unlocks: bool,
}

/// What only a destination has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Destination {
    /// The volume that is written.
    pub target: Target,
    /// Whether the claim of that volume was made for one sync only, and is there.
    pub has_temporary_claim: bool,
    /// Whether what the mover brought may be used: it has content, or emptiness is allowed.
    pub is_outcome_usable: bool,
    /// Whether the uid of the latest snapshot is the one of this sync.
    pub is_published: bool,
}

/// The volume that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Target {
    /// There is no claim yet, and we make it.
    Missing,
    /// The claim has no volume yet.
    NotBound,
    /// It is there.
    Bound,
}

/// A sync, from its intent to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sync {
    /// Whether the status says that it is over.
    pub is_over: bool,
    /// Whether the next attempt is still to wait.
    pub backs_off: bool,
    /// Whether the spec or the Secret has changed since the last attempt failed.
    pub is_changed: bool,
    /// Whether this attempt is the last.
    pub is_last_attempt: bool,
    /// Its snapshot.
    pub snapshot: Snapshot,
    /// Its place at the repository.
    pub slot: Slot,
    /// What the mover says of this attempt.
    pub mover: Mover,
    /// Whether the mover still knows an earlier attempt.
    pub is_earlier_known: bool,
}

/// Whether a sync can begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Verdict {
    /// Yes.
    #[default]
    Served,
    /// It asks for what is not supported.
    Refused,
    /// Something that it needs is missing or makes no sense.
    Hindered,
    /// Its intent cannot be read.
    BrokenIntent,
}

/// When the next sync is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Next {
    /// Now.
    Now,
    /// When it is not paused any more.
    Unpaused,
    /// At the next moment of its schedule.
    Scheduled,
    /// A minute after the last one: it has no trigger.
    Minute,
    /// With another tag.
    Tag,
    /// When something changes that the last one, which was given up, rested on.
    Change,
    /// No moment fits its schedule.
    Never,
}

/// The snapshot of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Snapshot {
    /// The volume itself is what is read, or what was asked for.
    NotNeeded,
    /// There is none, as far as is known.
    Missing,
    /// It is being taken.
    NotReady(Trouble),
    /// It is ready.
    Ready {
        /// Whether it may be used: it has content, or emptiness is allowed.
        is_usable: bool,
    },
    /// Something else has its name, or it is of another claim, or it is being deleted.
    Useless,
}

/// What keeps a snapshot from being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Trouble {
    /// Nothing that is known.
    None,
    /// What the storage says.
    Failing,
    /// No storage has begun with it for a while.
    NotBegun,
}

/// A place at the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Slot {
    /// The sync needs none.
    NotNeeded,
    /// It has one.
    Mine,
    /// There is a free one.
    Free,
    /// All are taken.
    Full,
}

/// What the mover says of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mover {
    /// Nobody asked.
    NotAsked,
    /// It knows nothing of it: it was not begun, or the mover died.
    Unknown,
    /// It runs.
    Runs {
        /// Whether how far it is, is news, and it is time to say so.
        is_news: bool,
    },
    /// It is done.
    Done,
    /// It failed.
    Failed {
        /// Whether it may go well another time.
        may_heal: bool,
    },
}

/// A snapshot of an object, as far as it matters whether it may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Picture {
    /// Whether it is being deleted already.
    pub is_terminating: bool,
    /// Whether somebody holds it.
    pub is_held: bool,
    /// Whether a person wants to keep it.
    pub is_kept: bool,
    /// Whether it is the latest one, which others may begin to use at any time.
    pub is_latest: bool,
    /// Whether it is the one of the sync that the intent names.
    pub is_own: bool,
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Why {
    /// The next sync is not due, but then.
    NotDue(Next),
    /// It asks for what is not supported.
    Refused,
    /// Something is in the way.
    Hindered,
    /// Its namespace does not run here: its owner saves it.
    NotHere,
    /// Its intent cannot be read.
    BrokenIntent,
    /// It is being deleted, and somebody needs a snapshot of it.
    Held,
    /// It is being deleted.
    Terminating,
    /// The next attempt is still to wait.
    BacksOff,
    /// The claim that is written has no volume yet.
    TargetNotBound,
    /// The snapshot is being taken.
    SnapshotNotReady(Trouble),
    /// All places are taken.
    SlotsFull,
    /// The mover runs.
    Runs {
        /// Whether how far it is, is news.
        is_news: bool,
    },
}

/// What the status of an object says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Said {
    /// Why nothing is done: the reasons that it gives already, word for word.
    pub reasons: BTreeSet<Why>,
    /// Whether it says that something is wrong which would be seen without a sync.
    pub is_something_wrong: bool,
    /// Whether something that is asked for has no effect, and it does not say so yet.
    pub is_ignored_news: bool,
}

impl Slot {
    pub(crate) fn of(slot: &slots::Slot) -> Slot {
        match slot {
            slots::Slot::NotNeeded => Slot::NotNeeded,
            slots::Slot::Mine(_) => Slot::Mine,
            slots::Slot::Free(_) => Slot::Free,
            slots::Slot::Full => Slot::Full,
        }
    }
}

impl Mover {
    /// What it says, given whether its progress would be news.
    pub(crate) fn of(sync: Option<&outside::Sync>, is_news: bool) -> Mover {
        match sync {
            None => Mover::NotAsked,
            Some(outside::Sync::Unknown) => Mover::Unknown,
            Some(outside::Sync::Runs(_)) => Mover::Runs { is_news },
            Some(outside::Sync::Done(_)) => Mover::Done,
            Some(outside::Sync::Failed(failure)) => {
                Mover::Failed { may_heal: failure.reason.may_heal() }
            }
        }
    }
}
