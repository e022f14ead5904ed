//! What is done next about one volume. First matching rule wins.

use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether its record is being deleted.
    pub is_deleting: bool,
    /// Whether the finalizer of volumes in use is on it.
    pub is_protected: bool,
    /// Who it is for.
    pub claim: Claim,
    /// What it says of itself.
    pub phase: Phase,
    /// Whether it is deleted when its claim is gone.
    pub is_reclaimed: bool,
    /// Whether a pod may still have it: one that mounted its claim while that was there.
    pub is_in_use: bool,
    /// How far it is on the disk.
    pub made: Made,
}

/// The claim that a volume is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Claim {
    /// It is for nobody.
    None,
    /// It is there.
    There,
    /// The cache does not show it, or not the one with that uid, which proves nothing.
    NotSeen,
    /// It is gone, and this volume was for it at that time.
    Gone,
    /// The server says something else than the cache, of the claim or of the volume.
    Behind,
}

/// What a volume says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Phase {
    /// Anything else.
    Other,
    /// It is for nobody.
    Available,
    /// It is for a claim.
    Bound,
    /// Its claim is gone.
    Released,
}

/// How far a volume is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Made {
    /// Nobody asked.
    NotAsked,
    /// There is none.
    Missing,
    /// It is there, or something of it.
    There,
    /// It is being made.
    Making,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Put the finalizer of volumes in use on it.
    Protect,
    /// Say what is true of it.
    Report(Phase),
    /// See whether its claim is gone, and whether it is still for that one.
    ReadClaim,
    /// See how far it is on the disk.
    AskDisk,
    /// Delete it on the disk.
    Delete,
    /// Delete its record.
    DeleteRecord,
    /// Take the finalizer off its record.
    LetGo,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Why {
    /// It is where it belongs.
    Bound,
    /// It is for nobody, and stays.
    Available,
    /// Its claim is gone, and it stays all the same.
    Retained,
    /// Its claim is gone, and a pod may still have it.
    InUse,
    /// The server says something else than the cache.
    CacheBehind,
    /// It is still being made.
    Making,
    /// It is being deleted.
    Terminating,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if !facts.is_deleting && !facts.is_protected {
        return Decision::Protect;
    }
    match facts.claim {
        Claim::There if facts.phase != Phase::Bound => Decision::Report(Phase::Bound),
        Claim::There => Decision::Nothing(Why::Bound),
        Claim::NotSeen => Decision::ReadClaim,
        Claim::Behind => Decision::Nothing(Why::CacheBehind),
        Claim::Gone if facts.phase != Phase::Released => Decision::Report(Phase::Released),
        Claim::Gone if facts.is_in_use => Decision::Nothing(Why::InUse),
        Claim::Gone if facts.is_reclaimed => reclaim(facts),
        Claim::Gone if facts.is_deleting => go(facts),
        Claim::Gone => Decision::Nothing(Why::Retained),
        Claim::None if facts.is_deleting && facts.is_reclaimed => reclaim(facts),
        Claim::None if facts.is_deleting => go(facts),
        Claim::None if facts.phase != Phase::Available => Decision::Report(Phase::Available),
        Claim::None => Decision::Nothing(Why::Available),
    }
}

fn reclaim(facts: &Facts) -> Decision {
    match facts.made {
        Made::NotAsked => Decision::AskDisk,
        Made::Making => Decision::Nothing(Why::Making),
        Made::There => Decision::Delete,
        Made::Missing if facts.is_deleting => go(facts),
        Made::Missing => Decision::DeleteRecord,
    }
}

fn go(facts: &Facts) -> Decision {
    if facts.is_protected { Decision::LetGo } else { Decision::Nothing(Why::Terminating) }
}
