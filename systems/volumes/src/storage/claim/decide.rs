//! What is done next about one claim. First matching rule wins.

use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether the finalizer of claims in use is on it.
    pub is_protected: bool,
    /// Whether pods mount it.
    pub pods: Pods,
    /// The volume that it has.
    pub volume: Volume,
    /// Whether it says of itself what is true of its volume.
    pub is_reported: bool,
    /// Whether it was bound once.
    pub was_bound: bool,
    /// Whether it asks for more than its volume has.
    pub wants_more: bool,
    /// Who makes its volume.
    pub class: Class,
    /// Whether it asks for something that local storage does not have.
    pub is_unsupported: bool,
    /// What its volume is made of.
    pub source: Source,
    /// Whether it holds the snapshot that it is made of: by a live read, once pods were looked for.
    pub has_hold: bool,
    /// How far its volume is on the disk.
    pub made: Made,
    /// Whether its volume has a PersistentVolume, by a live read; None: not read.
    pub has_record: Option<bool>,
    /// What the claim says that it waits for, word for word as it would be said now.
    pub said: Option<Obstacle>,
}

/// The pods that mount a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Pods {
    /// There is one.
    Some,
    /// The cache shows none, which proves nothing.
    NoneSeen,
    /// There is none.
    None,
}

/// The volume of a claim, as both sides say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Volume {
    /// None names it, and it names none.
    None,
    /// One names this very claim, which does not name it yet.
    Offered,
    /// Each names the other.
    Mine,
    /// It names one that is for nobody.
    Free,
    /// It names one that, as the cache shows it, is for another or not there.
    NotSeen,
    /// It names one that is for another, or not there.
    Lost,
    /// The server says something else than the cache.
    Behind,
    /// It is not of local storage.
    Foreign,
}

/// Who makes the volume of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Class {
    /// Local storage.
    Local,
    /// It names no class, and local storage is the default.
    Default,
    /// It names a class that is not there.
    Missing,
    /// Somebody else.
    Foreign,
}

/// What the volume of a claim is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Source {
    /// Nothing.
    Empty,
    /// A snapshot.
    Snapshot(Snapshot),
    /// Something that a populator fills it from.
    Populator,
}

/// The snapshot that a claim is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Snapshot {
    /// Not in the cache, or not the one that was meant.
    Missing,
    /// Not whole yet.
    NotReady,
    /// Whole, and larger than the claim.
    TooLarge,
    /// Whole.
    Ready,
    /// Being deleted.
    Dying,
}

/// How far something is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Made {
    /// Nobody asked.
    NotAsked,
    /// There is none.
    Missing,
    /// There is none, it could not be made, and it is not time to try again.
    MissingForNow,
    /// It is being made.
    Making,
    /// It is whole.
    Whole,
    /// It could not be made.
    Failed {
        /// Whether the claim says so.
        is_reported: bool,
    },
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Say on the claim what keeps it waiting.
    Say(Obstacle),
    /// Write the default class into it.
    TakeDefaultClass,
    /// Put the finalizer of claims in use on it.
    Protect,
    /// Hold the snapshot that it is made of.
    Hold,
    /// See how far its volume is on the disk.
    AskDisk,
    /// Begin to make its volume, with nothing in it.
    MakeEmpty,
    /// Begin to make its volume, as a clone of its snapshot.
    MakeOfSnapshot,
    /// Say why its volume could not be made.
    ReportFailure,
    /// Let the disk forget a failure that is reported.
    Forget,
    /// Make the PersistentVolume.
    Record,
    /// Have a free volume name this claim.
    Take,
    /// Have the claim name its volume.
    Bind {
        /// Whether the finalizer of claims in use is put on it by the same write.
        protects: bool,
    },
    /// Note on it that each names the other.
    CompleteBinding,
    /// Say that it is bound, with what it got.
    ReportBound,
    /// See who the volume is for that it names.
    ReadVolume,
    /// Say that its volume is lost.
    ReportLost,
    /// Let go of the snapshot.
    DropHold,
    /// See whether a pod mounts it, and whether it holds the snapshot that it is made of.
    ReadPods,
    /// See whether its volume has a PersistentVolume.
    ReadRecord,
    /// Delete what was made for it and never bound.
    Delete,
    /// Take the finalizer off.
    LetGo,
}

/// What keeps a claim waiting until a person or another object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Obstacle {
    /// Its class is not there.
    ClassMissing,
    /// It asks for what local storage does not have.
    NotSupported,
    /// Its snapshot is not there.
    SourceMissing,
    /// Its snapshot is being deleted.
    SnapshotGone,
    /// Its snapshot is larger than the claim.
    SizeMismatch,
    /// It asks for more than its volume has.
    Expansion,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Obstacle; 6] = [
        Obstacle::ClassMissing,
        Obstacle::NotSupported,
        Obstacle::SourceMissing,
        Obstacle::SnapshotGone,
        Obstacle::SizeMismatch,
        Obstacle::Expansion,
    ];
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Why {
    /// Another storage makes its volume.
    NotOurs,
    /// A populator fills it.
    LeftToPopulator,
    /// It has its volume.
    Bound,
    /// It lost its volume.
    Lost,
    /// It names a volume that is not there yet.
    WaitsForVolume,
    /// The server says something else than the cache.
    CacheBehind,
    /// Its snapshot is not whole yet.
    SnapshotNotReady,
    /// Its volume is being made.
    Making,
    /// Its volume could not be made, and is tried again later.
    BackingOff,
    /// It is being deleted, and a pod still mounts it.
    InUse,
    /// It is being deleted, and was never ours.
    Leaving,
    /// It says what it waits for.
    Said(Obstacle),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting {
        return leave(facts);
    }
    match facts.volume {
        Volume::Mine if !facts.was_bound => Decision::CompleteBinding,
        Volume::Mine if !facts.is_reported => Decision::ReportBound,
        Volume::Mine if facts.has_hold => Decision::DropHold,
        Volume::Mine if facts.wants_more => say(facts, Obstacle::Expansion),
        Volume::Mine => Decision::Nothing(Why::Bound),
        Volume::Offered => Decision::Bind { protects: !facts.is_protected },
        Volume::Free => Decision::Take,
        // Only a claim that had its volume can lose it.
        Volume::NotSeen | Volume::Lost if !facts.was_bound => {
            Decision::Nothing(Why::WaitsForVolume)
        }
        Volume::NotSeen => Decision::ReadVolume,
        Volume::Lost if facts.is_reported => Decision::Nothing(Why::Lost),
        Volume::Lost => Decision::ReportLost,
        Volume::Behind => Decision::Nothing(Why::CacheBehind),
        Volume::Foreign => Decision::Nothing(Why::NotOurs),
        Volume::None => make(facts),
    }
}

/// Says it once; what it waits for is an object, whose change brings the next step.
fn say(facts: &Facts, obstacle: Obstacle) -> Decision {
    match facts.said == Some(obstacle) {
        true => Decision::Nothing(Why::Said(obstacle)),
        false => Decision::Say(obstacle),
    }
}

fn make(facts: &Facts) -> Decision {
    if facts.source == Source::Populator {
        return Decision::Nothing(Why::LeftToPopulator);
    }
    match facts.class {
        Class::Foreign => return Decision::Nothing(Why::NotOurs),
        Class::Missing => return say(facts, Obstacle::ClassMissing),
        Class::Default => return Decision::TakeDefaultClass,
        Class::Local if facts.is_unsupported => return say(facts, Obstacle::NotSupported),
        Class::Local if !facts.is_protected => return Decision::Protect,
        Class::Local => {}
    }
    if let Source::Snapshot(snapshot) = facts.source
        && let Some(decision) = keep(facts, snapshot)
    {
        return decision;
    }
    match facts.made {
        Made::NotAsked => Decision::AskDisk,
        Made::Missing => match facts.source {
            Source::Snapshot(_) => Decision::MakeOfSnapshot,
            Source::Empty | Source::Populator => Decision::MakeEmpty,
        },
        Made::MissingForNow => Decision::Nothing(Why::BackingOff),
        Made::Making => Decision::Nothing(Why::Making),
        Made::Failed { is_reported: false } => Decision::ReportFailure,
        Made::Failed { is_reported: true } => Decision::Forget,
        Made::Whole => Decision::Record,
    }
}

/// The snapshot stays while the volume is made of it. One that is being deleted is not begun with: it
/// may be gone before the volume is whole. What was begun is held, and ends well.
fn keep(facts: &Facts, snapshot: Snapshot) -> Option<Decision> {
    match snapshot {
        Snapshot::Missing => Some(say(facts, Obstacle::SourceMissing)),
        Snapshot::Dying if facts.has_hold => match facts.made {
            Made::NotAsked | Made::Making | Made::Whole => None,
            Made::Missing | Made::MissingForNow | Made::Failed { .. } => Some(Decision::DropHold),
        },
        Snapshot::Dying => Some(say(facts, Obstacle::SnapshotGone)),
        Snapshot::NotReady => Some(Decision::Nothing(Why::SnapshotNotReady)),
        Snapshot::TooLarge => Some(say(facts, Obstacle::SizeMismatch)),
        Snapshot::Ready if !facts.has_hold => Some(Decision::Hold),
        Snapshot::Ready => None,
    }
}

/// A claim is deleted when no pod has it, and when what was made for it is gone or has a record of its
/// own, by which it is deleted later.
fn leave(facts: &Facts) -> Decision {
    if !facts.is_protected {
        return Decision::Nothing(Why::Leaving);
    }
    match facts.pods {
        Pods::Some => return Decision::Nothing(Why::InUse),
        Pods::NoneSeen => return Decision::ReadPods,
        Pods::None => {}
    }
    let has_record = matches!(facts.volume, Volume::Mine | Volume::Offered) || facts.was_bound;
    if !has_record {
        match (facts.has_record, facts.made) {
            (None, _) => return Decision::ReadRecord,
            (Some(true), _) => {}
            (Some(false), Made::NotAsked) => return Decision::AskDisk,
            (Some(false), Made::Making) => return Decision::Nothing(Why::Making),
            (Some(false), Made::Whole | Made::Failed { .. }) => return Decision::Delete,
            (Some(false), Made::Missing | Made::MissingForNow) => {}
        }
    }
    if facts.has_hold { Decision::DropHold } else { Decision::LetGo }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim on local storage whose volume can be made now.
    const FACTS: Facts = Facts {
        is_deleting: false,
        is_protected: true,
        pods: Pods::None,
        volume: Volume::None,
        is_reported: false,
        was_bound: false,
        wants_more: false,
        class: Class::Local,
        is_unsupported: false,
        source: Source::Empty,
        has_hold: false,
        made: Made::Missing,
        has_record: None,
        said: None,
    };

    #[test]
    fn a_volume_of_a_snapshot_is_never_made_empty() {
        assert_eq!(decide(&FACTS), Decision::MakeEmpty);
        let of_snapshot =
            Facts { source: Source::Snapshot(Snapshot::Ready), has_hold: true, ..FACTS };
        assert_eq!(decide(&of_snapshot), Decision::MakeOfSnapshot);
    }

    #[test]
    fn what_a_claim_says_already_is_not_said_again() {
        let missing = Facts { class: Class::Missing, ..FACTS };
        assert_eq!(decide(&missing), Decision::Say(Obstacle::ClassMissing));
        let said = Facts { said: Some(Obstacle::ClassMissing), ..missing };
        assert_eq!(decide(&said), Decision::Nothing(Why::Said(Obstacle::ClassMissing)));
        let other = Facts { said: Some(Obstacle::SourceMissing), ..missing };
        assert_eq!(decide(&other), Decision::Say(Obstacle::ClassMissing));
    }

    #[test]
    fn a_claim_notes_that_it_is_bound_before_it_says_so() {
        let mine = Facts { volume: Volume::Mine, ..FACTS };
        assert_eq!(decide(&mine), Decision::CompleteBinding);
        assert_eq!(decide(&Facts { was_bound: true, ..mine }), Decision::ReportBound);
    }

    #[test]
    fn a_claim_that_is_bound_is_protected_by_the_same_write() {
        let offered = Facts { volume: Volume::Offered, ..FACTS };
        assert_eq!(decide(&offered), Decision::Bind { protects: false });
        let bare = Facts { is_protected: false, ..offered };
        assert_eq!(decide(&bare), Decision::Bind { protects: true });
    }
}
