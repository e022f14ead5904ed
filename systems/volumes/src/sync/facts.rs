//! What a decision about a sync sees of its place, its mover and its images.

use super::slots;
use crate::outside;

/// Whether a sync can begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// The image of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// The volume itself is what is read, or what was asked for.
    NotNeeded,
    /// There is none, as far as is known.
    Missing,
    /// It is being taken.
    NotReady,
    /// It is ready.
    Ready {
        /// Whether it may be used: it has content, or emptiness is allowed.
        is_usable: bool,
    },
    /// Something else has its name, or it is of another claim, or it is being deleted.
    Useless,
}

/// Why a sync cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hopeless {
    /// What the mover says.
    MoverFailed,
    /// There is nothing in what was taken or brought.
    Empty,
    /// The image is not the one that was asked for.
    UselessImage,
    /// The object asks for something else now, which is not supported.
    Refused,
}

/// A place at the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mover {
    /// Nobody asked.
    NotAsked,
    /// It knows nothing of it: it was not begun, or the mover died.
    Unknown,
    /// It runs.
    Runs,
    /// It is done.
    Done,
    /// It failed.
    Failed {
        /// Whether it may go well another time.
        may_heal: bool,
    },
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
    pub(crate) fn of(sync: Option<&outside::Sync>) -> Mover {
        match sync {
            None => Mover::NotAsked,
            Some(outside::Sync::Unknown) => Mover::Unknown,
            Some(outside::Sync::Runs(_)) => Mover::Runs,
            Some(outside::Sync::Done(_)) => Mover::Done,
            Some(outside::Sync::Failed(failure)) => {
                Mover::Failed { may_heal: failure.reason.may_heal() }
            }
        }
    }
}

/// How many images stay, at least, of those that outlive their sync.
pub const KEPT: usize = 2;

/// An image of an object, as far as it matters whether it may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Picture {
    /// Whether it is being deleted already.
    pub is_going: bool,
    /// Whether somebody holds it.
    pub is_held: bool,
    /// Whether a person wants to keep it.
    pub is_kept: bool,
    /// Whether it is the latest one, which others may begin to use at any time.
    pub is_latest: bool,
    /// Whether it is the one of the sync that the intent names.
    pub is_own: bool,
}

/// Which images of an object stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Album {
    /// Whether the object itself goes, and all images with it.
    pub is_going: bool,
    /// Whether the sync that the intent names is over, or there is none.
    pub is_over: bool,
    /// Whether images outlive their sync; else they are only on the way to somewhere.
    pub is_lasting: bool,
}

/// The image that goes next, by its place in the list, which begins with the oldest. One that is
/// held never goes, nor does the latest while the object stays.
pub fn spare(album: Album, images: &[Picture]) -> Option<usize> {
    let may_go = |image: &Picture| !image.is_going && !image.is_held;
    if album.is_going {
        return images.iter().position(may_go);
    }
    // One that could not be published never will be.
    let is_left =
        |image: &Picture| may_go(image) && !image.is_latest && (image.is_own || !album.is_lasting);
    if let Some(left) = images.iter().position(|image| album.is_over && is_left(image)) {
        return Some(left);
    }
    let counts = |image: &&Picture| !image.is_going && !image.is_kept;
    if images.iter().filter(counts).count() <= KEPT {
        return None;
    }
    let is_needed = |image: &Picture| image.is_latest || (image.is_own && !album.is_over);
    images.iter().position(|image| may_go(image) && !image.is_kept && !is_needed(image))
}
