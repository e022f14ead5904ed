//! Which part of what earlier epochs left here goes next. In this order: what brings and takes
//! snapshots, the snapshots, the claims, the volumes that were kept without one, the namespace.

use crate::syncer::tenancy::{Epoch, Leftover};
use serde::{Deserialize, Serialize};

/// One part of what is here of a namespace. They are in the order in which they go.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Part {
    /// Brought a snapshot here.
    Destination {
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Whether we hold it.
        is_held: bool,
        /// Whether it was asked for anything.
        is_asked: bool,
        /// The uid of the claim that it is for.
        claim: Option<String>,
    },
    /// Took snapshots of a claim.
    Source {
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Whether we hold it.
        is_held: bool,
    },
    /// A snapshot of a claim.
    Snapshot {
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Whether we hold it.
        is_held: bool,
        /// Whether the grant refers to it.
        is_pinned: bool,
        /// Which it is.
        uid: String,
    },
    /// A claim with its volume.
    Claim {
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Whether it is kept.
        is_kept: bool,
        /// Whether it says that another owner has all data since.
        is_marked: bool,
    },
    /// A volume that an earlier epoch left, and that was kept without its claim.
    Volume {
        /// The epoch that left it, if it says so.
        epoch: Option<Epoch>,
    },
}

impl Part {
    fn is_terminating(&self) -> bool {
        match self {
            Part::Destination { is_terminating, .. }
            | Part::Source { is_terminating, .. }
            | Part::Snapshot { is_terminating, .. }
            | Part::Claim { is_terminating, .. } => *is_terminating,
            Part::Volume { .. } => false,
        }
    }

    /// Whether it brings or takes snapshots.
    fn is_mover(&self) -> bool {
        matches!(self, Part::Destination { .. } | Part::Source { .. })
    }

    fn is_held(&self) -> bool {
        match self {
            Part::Destination { is_held, .. }
            | Part::Source { is_held, .. }
            | Part::Snapshot { is_held, .. } => *is_held,
            Part::Claim { .. } | Part::Volume { .. } => false,
        }
    }
}

/// What is done to a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Action {
    /// It says that another owner has all data since.
    Mark,
    /// It is deleted.
    Delete,
    /// A snapshot is not held any more.
    LetGo,
    /// A claim is not kept any more.
    Unkeep,
    /// A volume goes back to whoever made it.
    GiveBack,
}

/// The next part that has to be asked to stop, but for the namespace.
pub fn next(parts: &[Part]) -> Option<(usize, Action)> {
    type Which = fn(&Part) -> bool;
    const STEPS: [(Which, Action); 6] = [
        (|part| part.is_mover() && !part.is_terminating(), Action::Delete),
        (Part::is_held, Action::LetGo),
        (|part| matches!(part, Part::Snapshot { is_terminating: false, .. }), Action::Delete),
        (|part| matches!(part, Part::Claim { is_kept: true, .. }), Action::Unkeep),
        (|part| matches!(part, Part::Claim { is_terminating: false, .. }), Action::Delete),
        (|part| matches!(part, Part::Volume { .. }), Action::GiveBack),
    ];
    STEPS.iter().find_map(|(is_meant, action)| Some((parts.iter().position(is_meant)?, *action)))
}

/// How much is left. That the cache has no namespace does not mean that there is none: the hub is
/// told only after a live read.
pub fn left(parts: &[Part], namespace: Option<Staying>) -> Leftover {
    if next(parts).is_some() {
        return Leftover::Some;
    }
    match namespace {
        None => Leftover::None,
        // What is still being deleted would be deleted with the namespace; one at a time is enough.
        Some(Staying(true)) if parts.is_empty() => Leftover::Some,
        Some(Staying(_)) => Leftover::Terminating,
    }
}

/// Whether the namespace here stays, or is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staying(pub bool);

/// The next claim that does not say that another owner has all data since.
pub fn unmarked(parts: &[Part]) -> Option<usize> {
    parts.iter().position(|part| matches!(part, Part::Claim { is_marked: false, .. }))
}

/// A destination that has done its work, for one of these claims.
pub fn done_destination(parts: &[Part], done: &[&str]) -> Option<usize> {
    parts.iter().position(|part| match part {
        Part::Destination { is_terminating: false, is_asked: true, claim: Some(claim), .. } => {
            done.contains(&claim.as_str())
        }
        _ => false,
    })
}

/// A snapshot that we hold and that the grant does not refer to any more. The last snapshots of this
/// epoch are not among these, although nothing refers to them yet.
pub fn unpinned_snapshot(parts: &[Part], last: &[&str]) -> Option<usize> {
    parts.iter().position(|part| match part {
        Part::Snapshot { is_held: true, is_pinned: false, uid, .. } => {
            !last.contains(&uid.as_str())
        }
        _ => false,
    })
}

/// A volume of an epoch after the first and before the second.
pub fn outlived_volume(parts: &[Part], after: Epoch, before: Epoch) -> Option<usize> {
    parts.iter().position(|part| match part {
        Part::Volume { epoch: Some(epoch) } => *epoch > after && *epoch < before,
        _ => false,
    })
}
