//! What happens to a ForceRelease: it ends exactly the grant that it names, or it is refused.

use interlock_api::placement::{ForceOutcome, Phase};
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// What was decided about it before.
    pub outcome: ForceOutcome,
    /// The epoch that it names.
    pub epoch: i64,
    /// The grant that it names, as the cache shows it; None: it is not in the cache.
    pub grant: Option<Grant>,
    /// Whether what the cache shows was read from the hub itself just now.
    pub is_fresh: bool,
    /// The claims of that grant, in its order.
    pub claims: Vec<Claim>,
}

/// A grant, seen from a ForceRelease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Grant {
    /// Whether it is the grant that was named, and not one that came by its name later.
    pub is_same: bool,
    /// Whether its owner is the cluster that was named.
    pub is_same_owner: bool,
    /// What is true of the owner.
    pub phase: Phase,
    /// Since which grant.
    pub epoch: i64,
}

/// A claim of the grant, and which snapshots of it are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Claim {
    /// Whether nothing can be newer than the snapshot that the claim came with.
    pub is_untouched: bool,
    /// The last snapshot that its owner reported.
    pub last: Left,
    /// The snapshot that the claim came with.
    pub incoming: Left,
}

/// What is left of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Left {
    /// There never was one.
    None,
    /// It was deleted together with the copy that it belonged to.
    Gone,
    /// It can be used.
    Usable,
}

/// What the next owner of a claim starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum StartsFrom {
    /// The snapshot that the claim came with.
    Incoming,
    /// The last snapshot that the owner reported.
    Last,
    /// Nothing: the data is on the cluster that is gone, and the claim must not begin empty.
    Nothing,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// It was answered.
    Nothing,
    /// LiveRead at the hub itself: a refusal is final, so it does not rest on a cache.
    LiveRead,
    /// It names something else than there is.
    Refuse(Refusal),
    /// The owner is declared gone; what each claim starts from next, in the order of the facts.
    Fence(Vec<StartsFrom>),
    /// Say that it was done.
    MarkApplied,
}

/// Why a ForceRelease is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Refusal {
    /// There is no such grant.
    NoSuchGrant,
    /// The grant that it named is gone; one of that name is another.
    OtherGrant,
    /// The grant has another owner.
    OtherOwner,
    /// The grant changed hands since: it is at this epoch.
    OtherEpoch(i64),
    /// The grant has no owner: there is nothing to release.
    NotHeld,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.outcome != ForceOutcome::Pending {
        return Decision::Nothing;
    }
    match judge(facts) {
        Ok(decision) => decision,
        Err(refusal) if facts.is_fresh => Decision::Refuse(refusal),
        Err(_) => Decision::LiveRead,
    }
}

fn judge(facts: &Facts) -> Result<Decision, Refusal> {
    let grant = facts.grant.ok_or(Refusal::NoSuchGrant)?;
    if !grant.is_same {
        return Err(Refusal::OtherGrant);
    }
    if grant.epoch != facts.epoch {
        return Err(Refusal::OtherEpoch(grant.epoch));
    }
    if !grant.is_same_owner {
        return Err(Refusal::OtherOwner);
    }
    match grant.phase {
        Phase::Granted | Phase::Revoking => {
            Ok(Decision::Fence(facts.claims.iter().map(starts_from).collect()))
        }
        Phase::Fenced => Ok(Decision::MarkApplied),
        Phase::Unassigned | Phase::Released | Phase::Deleting => Err(Refusal::NotHeld),
    }
}

/// The last complete snapshot of a claim; the one that it came with, if the owner made none.
fn starts_from(claim: &Claim) -> StartsFrom {
    if claim.is_untouched {
        return if claim.incoming == Left::None {
            StartsFrom::Nothing
        } else {
            StartsFrom::Incoming
        };
    }
    match (claim.last, claim.incoming) {
        (Left::Usable, _) => StartsFrom::Last,
        (Left::None | Left::Gone, Left::Usable) => StartsFrom::Incoming,
        (Left::None | Left::Gone, Left::None | Left::Gone) => StartsFrom::Nothing,
    }
}
