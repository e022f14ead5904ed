//! What is done next to fill one claim. First matching rule wins.

use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the claim, PVC' and the volume were read live.
    pub is_fresh: bool,
    /// Whether all volumes were listed by a live read.
    pub are_volumes_listed: bool,
    /// Whether the claim is being deleted.
    pub is_deleting: bool,
    /// Whether our finalizer is on it.
    pub is_marked: bool,
    /// The volume that the claim names.
    pub bound: Bound,
    /// Whether the class of the claim lets it be filled.
    pub class: Class,
    /// The destination that it is filled from.
    pub destination: Destination,
    /// The snapshot that is noted on the claim.
    pub pin: Option<Snapshot>,
    /// Whether that snapshot was written to since the claim is being deleted.
    pub is_touched: bool,
    /// The snapshots that it holds.
    pub holds: Holds,
    /// PVC'.
    pub prime: Prime,
    /// Whether PVC' says why it has no volume.
    pub is_prime_failing: bool,
    /// The volume that PVC' got.
    pub volume: Volume,
    /// Whether that volume says which policy it had before it was made to stay.
    pub is_policy_noted: bool,
    /// What the claim says that it waits for, word for word as it would be said now.
    pub said: Option<Obstacle>,
}

/// The volume that a claim names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Bound {
    /// None.
    No,
    /// The one that was poured for it, and each names the other.
    Here,
    /// Another.
    Elsewhere,
}

/// The class of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Class {
    /// Its volumes are made at once, or the claim has its node.
    Ready,
    /// It is not there.
    Missing,
    /// Its volumes are made where the first pod runs, and no pod runs yet.
    WaitsForPod,
}

/// What a destination has to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Destination {
    /// It is not there.
    Missing,
    /// It is being deleted.
    Leaving,
    /// It makes no snapshots.
    MakesNone,
    /// It has published none that is alive and whole.
    NoSnapshot,
    /// It has a latest snapshot.
    Snapshot,
}

/// The snapshot that is noted on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Snapshot {
    /// Not in the cache, which proves nothing.
    NotSeen,
    /// Not there.
    Gone,
    /// Being deleted.
    Dying,
    /// Not whole yet.
    NotReady,
    /// There is nothing in it, and nobody said that this is meant.
    Empty,
    /// Larger than the claim.
    TooLarge,
    /// Whole.
    Ready,
}

/// The snapshots that a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Holds {
    /// None.
    None,
    /// The one that is noted on it.
    Pinned,
    /// Another, alone or too.
    Other,
}

/// PVC', the claim that the snapshot is poured into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Prime {
    /// There is none; the cache alone proves nothing.
    None,
    /// Somebody else's claim has its name.
    Foreign,
    /// It is being deleted.
    Terminating,
    /// It is made of another snapshot than the one that is noted.
    OfOther,
    /// It has no volume.
    Pending,
    /// It has its volume.
    Bound,
    /// Its volume was handed on.
    Lost,
    /// It has another volume than the claim: somebody made it although the claim was filled.
    Apart,
}

/// The volume that PVC' got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Volume {
    /// There is none.
    None,
    /// It is PVC's, and would go with it.
    OfPrime,
    /// It was PVC's, and is or will be deleted.
    Terminating,
    /// It is PVC's, stays, and says for whom.
    Kept,
    /// It is the claim's, and says so.
    Handed,
    /// It is the claim's, and as it was made.
    Settled,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Say on the claim what keeps it waiting.
    Say(Obstacle),
    /// See the claim, PVC' and the volume afresh.
    LiveRead,
    /// See whether the snapshot is there.
    ReadSnapshot,
    /// See whether a volume is there already that was poured for the claim.
    ReadVolume,
    /// Put our finalizer on the claim.
    Mark,
    /// Note the latest snapshot on the claim.
    Pin,
    /// Hold the snapshot.
    Hold,
    /// Make PVC'.
    Pour,
    /// Have the volume stay, and say for whom.
    Keep {
        /// Which policy is noted on it, to be given back.
        policy: Policy,
    },
    /// Hand the volume to the claim.
    HandOver,
    /// Delete PVC'.
    DeletePrime,
    /// Give the volume back its policy.
    Settle {
        /// Which one it gets.
        policy: Policy,
    },
    /// Let go of a snapshot.
    DropHold,
    /// Write to the snapshot, so that a hold that is on its way to it is refused.
    Touch,
    /// Take the snapshot off the claim.
    Unpin,
    /// Take our finalizer off the claim, which is filled.
    UnmarkFilled,
    /// Take our finalizer off the claim, which is being deleted.
    UnmarkDeleted,
}

/// Which policy a volume has when it does not change hands any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Policy {
    /// The one that is noted on it.
    Noted,
    /// The one that it has.
    Own,
    /// It is deleted: nobody noted anything else.
    Delete,
}

/// What keeps a claim waiting until a person or another object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Obstacle {
    /// Its destination is not there.
    DestinationMissing,
    /// Its destination makes no snapshots.
    DestinationMakesNone,
    /// Its destination has no snapshot.
    NoLatestImage,
    /// Its class is not there.
    ClassMissing,
    /// Its snapshot has nothing in it.
    SnapshotEmpty,
    /// Its snapshot is larger than the claim.
    SizeMismatch,
    /// The storage cannot make a volume of its snapshot, and says why on PVC'.
    PouringFails,
    /// Somebody else's claim has the name of PVC'.
    NameTaken,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Obstacle; 8] = [
        Obstacle::DestinationMissing,
        Obstacle::DestinationMakesNone,
        Obstacle::NoLatestImage,
        Obstacle::ClassMissing,
        Obstacle::SnapshotEmpty,
        Obstacle::SizeMismatch,
        Obstacle::PouringFails,
        Obstacle::NameTaken,
    ];
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Why {
    /// It is filled and bound.
    Finished,
    /// It is being deleted, and nothing of ours is on it.
    Leaving,
    /// Its volumes are made where the first pod runs.
    WaitsForPod,
    /// Its destination is being deleted.
    DestinationLeaving,
    /// Its snapshot is not whole yet.
    SnapshotNotReady,
    /// The storage pours the snapshot into PVC'.
    Pouring,
    /// PVC' goes.
    PrimeTerminating,
    /// The volume of PVC' goes.
    VolumeTerminating,
    /// The storage binds the claim.
    Binding,
    /// PVC' is not called lost yet.
    PrimeNotLost,
    /// The claim says what it waits for.
    Said(Obstacle),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting {
        return undo(facts);
    }
    match facts.bound {
        Bound::No if !facts.is_marked => Decision::Mark,
        Bound::No => fill(facts),
        Bound::Here => finish(facts),
        Bound::Elsewhere => undo(facts),
    }
}

/// What is not guarded by the version of the claim rests on a live read.
fn surely(facts: &Facts, decision: Decision) -> Decision {
    if facts.is_fresh { decision } else { Decision::LiveRead }
}

/// Says it once; what it waits for is an object, whose change brings the next step.
fn say(facts: &Facts, obstacle: Obstacle) -> Decision {
    match facts.said == Some(obstacle) {
        true => Decision::Nothing(Why::Said(obstacle)),
        false => Decision::Say(obstacle),
    }
}

/// What was noted first counts: the volume may be made to stay a second time.
fn keep(facts: &Facts) -> Decision {
    Decision::Keep { policy: if facts.is_policy_noted { Policy::Noted } else { Policy::Own } }
}

fn settle(facts: &Facts) -> Decision {
    Decision::Settle { policy: settled(facts.is_policy_noted) }
}

/// The policy of a volume that does not change hands any more.
pub(super) fn settled(is_policy_noted: bool) -> Policy {
    if is_policy_noted { Policy::Noted } else { Policy::Delete }
}

fn unmark(facts: &Facts) -> Decision {
    if facts.is_deleting { Decision::UnmarkDeleted } else { Decision::UnmarkFilled }
}

fn fill(facts: &Facts) -> Decision {
    match facts.volume {
        Volume::Handed | Volume::Settled => return Decision::Nothing(Why::Binding),
        Volume::Kept => return surely(facts, Decision::HandOver),
        Volume::OfPrime if facts.prime == Prime::Bound => return surely(facts, keep(facts)),
        Volume::None | Volume::OfPrime | Volume::Terminating => {}
    }
    match (facts.prime, facts.pin) {
        (Prime::Foreign, _) => say(facts, Obstacle::NameTaken),
        (Prime::Terminating, _) => Decision::Nothing(Why::PrimeTerminating),
        (Prime::OfOther | Prime::Lost | Prime::Apart, _) => surely(facts, Decision::DeletePrime),
        // Its volume was not seen yet, or is being deleted under it.
        (Prime::Bound, _) => surely(facts, Decision::Nothing(Why::VolumeTerminating)),
        (Prime::Pending, Some(Snapshot::Gone | Snapshot::Dying) | None) => {
            surely(facts, Decision::DeletePrime)
        }
        (Prime::Pending, Some(Snapshot::NotSeen)) => Decision::ReadSnapshot,
        (
            Prime::Pending,
            Some(Snapshot::NotReady | Snapshot::Empty | Snapshot::TooLarge | Snapshot::Ready),
        ) => {
            if facts.is_prime_failing {
                return say(facts, Obstacle::PouringFails);
            }
            Decision::Nothing(Why::Pouring)
        }
        (Prime::None, Some(snapshot)) => pour(facts, snapshot),
        (Prime::None, None) => choose(facts),
    }
}

fn choose(facts: &Facts) -> Decision {
    if facts.holds != Holds::None {
        return surely(facts, Decision::DropHold);
    }
    match (facts.class, facts.destination) {
        (Class::Missing, _) => say(facts, Obstacle::ClassMissing),
        (Class::WaitsForPod, _) => Decision::Nothing(Why::WaitsForPod),
        (Class::Ready, Destination::Missing) => say(facts, Obstacle::DestinationMissing),
        (Class::Ready, Destination::MakesNone) => say(facts, Obstacle::DestinationMakesNone),
        (Class::Ready, Destination::NoSnapshot) => say(facts, Obstacle::NoLatestImage),
        (Class::Ready, Destination::Leaving) => Decision::Nothing(Why::DestinationLeaving),
        (Class::Ready, Destination::Snapshot) => Decision::Pin,
    }
}

/// From the pin to PVC'; or back, when the snapshot dies.
fn pour(facts: &Facts, snapshot: Snapshot) -> Decision {
    match (snapshot, facts.holds) {
        (Snapshot::NotSeen, _) => Decision::ReadSnapshot,
        (_, Holds::Other) => surely(facts, Decision::DropHold),
        (Snapshot::Gone | Snapshot::Dying, Holds::Pinned) => surely(facts, Decision::DropHold),
        (Snapshot::Gone | Snapshot::Dying, Holds::None) => surely(facts, Decision::Unpin),
        (Snapshot::NotReady, _) => Decision::Nothing(Why::SnapshotNotReady),
        (Snapshot::Empty, _) => say(facts, Obstacle::SnapshotEmpty),
        (Snapshot::TooLarge, _) => say(facts, Obstacle::SizeMismatch),
        (Snapshot::Ready, Holds::None) => surely(facts, Decision::Hold),
        // Somebody may have deleted PVC' by hand after its volume was handed over, and a cache may not
        // show that yet: a second volume would be poured for the claim.
        (Snapshot::Ready, Holds::Pinned) if facts.is_fresh && !facts.are_volumes_listed => {
            Decision::ReadVolume
        }
        (Snapshot::Ready, Holds::Pinned) => surely(facts, Decision::Pour),
    }
}

/// The claim has its volume: what was needed for that goes.
fn finish(facts: &Facts) -> Decision {
    match facts.prime {
        Prime::Terminating => return Decision::Nothing(Why::PrimeTerminating),
        Prime::Bound => return Decision::Nothing(Why::PrimeNotLost),
        Prime::Lost | Prime::Pending | Prime::OfOther | Prime::Apart => {
            return surely(facts, Decision::DeletePrime);
        }
        Prime::None | Prime::Foreign => {}
    }
    let is_done = facts.volume != Volume::Handed && facts.holds == Holds::None && !facts.is_marked;
    if is_done {
        return Decision::Nothing(Why::Finished);
    }
    let next = match (facts.volume, facts.holds) {
        (Volume::Handed, _) => settle(facts),
        (_, Holds::Pinned | Holds::Other) => Decision::DropHold,
        (_, Holds::None) => unmark(facts),
    };
    surely(facts, next)
}

/// The claim is being deleted, or went its own way: what was made for it goes first, in the opposite order.
fn undo(facts: &Facts) -> Decision {
    match facts.prime {
        Prime::Terminating => return Decision::Nothing(Why::PrimeTerminating),
        Prime::Lost | Prime::Pending | Prime::OfOther | Prime::Bound | Prime::Apart => {
            return surely(facts, Decision::DeletePrime);
        }
        Prime::None | Prime::Foreign => {}
    }
    let next =
        match (facts.volume, facts.holds) {
            (Volume::Kept | Volume::Handed, _) => settle(facts),
            (_, Holds::Pinned | Holds::Other) => Decision::DropHold,
            (_, Holds::None) if !facts.is_marked => {
                let why = if facts.is_deleting { Why::Leaving } else { Why::Finished };
                return Decision::Nothing(why);
            }
            // A hold that another populator decided on while the claim was alive must not come now. It
            // would be on a version of the snapshot from before it was touched, or deleted.
            (_, Holds::None) => match facts.pin {
                Some(Snapshot::NotSeen) => return Decision::ReadSnapshot,
                Some(
                    Snapshot::NotReady | Snapshot::Empty | Snapshot::TooLarge | Snapshot::Ready,
                ) if !facts.is_touched => Decision::Touch,
                _ => unmark(facts),
            },
        };
    surely(facts, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim whose snapshot is poured, with nothing that is in the way.
    const FACTS: Facts = Facts {
        is_fresh: true,
        are_volumes_listed: true,
        is_deleting: false,
        is_marked: true,
        bound: Bound::No,
        class: Class::Ready,
        destination: Destination::Snapshot,
        pin: Some(Snapshot::Ready),
        is_touched: false,
        holds: Holds::Pinned,
        prime: Prime::Bound,
        is_prime_failing: false,
        volume: Volume::OfPrime,
        is_policy_noted: false,
        said: None,
    };

    #[test]
    fn the_policy_that_was_noted_first_is_the_one_that_a_volume_gets_back() {
        assert_eq!(decide(&FACTS), Decision::Keep { policy: Policy::Own });
        let noted = Facts { is_policy_noted: true, ..FACTS };
        assert_eq!(decide(&noted), Decision::Keep { policy: Policy::Noted });
        let handed =
            Facts { bound: Bound::Here, prime: Prime::None, volume: Volume::Handed, ..noted };
        assert_eq!(decide(&handed), Decision::Settle { policy: Policy::Noted });
        let bare = Facts { is_policy_noted: false, ..handed };
        assert_eq!(decide(&bare), Decision::Settle { policy: Policy::Delete });
    }

    #[test]
    fn nothing_is_poured_before_all_volumes_were_listed() {
        let poured = Facts { prime: Prime::None, volume: Volume::None, ..FACTS };
        assert_eq!(decide(&poured), Decision::Pour);
        let unlisted = Facts { are_volumes_listed: false, ..poured };
        assert_eq!(decide(&unlisted), Decision::ReadVolume);
        assert_eq!(decide(&Facts { is_fresh: false, ..unlisted }), Decision::LiveRead);
    }

    #[test]
    fn only_a_claim_that_stays_is_reported_as_filled() {
        let filled = Facts {
            bound: Bound::Here,
            prime: Prime::None,
            volume: Volume::Settled,
            holds: Holds::None,
            ..FACTS
        };
        assert_eq!(decide(&filled), Decision::UnmarkFilled);
        let goes = Facts { is_deleting: true, is_touched: true, ..filled };
        assert_eq!(decide(&goes), Decision::UnmarkDeleted);
    }

    #[test]
    fn what_a_claim_says_already_is_not_said_again() {
        let taken = Facts { prime: Prime::Foreign, volume: Volume::None, ..FACTS };
        assert_eq!(decide(&taken), Decision::Say(Obstacle::NameTaken));
        let said = Facts { said: Some(Obstacle::NameTaken), ..taken };
        assert_eq!(decide(&said), Decision::Nothing(Why::Said(Obstacle::NameTaken)));
    }
}
