//! What is written next about the claims of a namespace. First matching rule wins.

use interlock_api::placement::Phase;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The grant of this very namespace; None: it is not in the cache.
    pub grant: Option<Grant>,
    /// Whether the labels of the namespace say what the grant says.
    pub is_namespace_mirrored: bool,
    /// The claims of the namespace, by name.
    pub claims: Vec<Claim>,
    /// Claims that the grant lists, that were never filled, and that are not in the cache.
    pub missing: Vec<Missing>,
}

/// The grant of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// What is true of its owner.
    pub phase: Phase,
    /// Whether data of the namespace is left somewhere.
    pub has_copies: bool,
}

/// A claim at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Whether its labels say what the grant says and, if it stays, our finalizer is on it.
    pub is_mirrored: bool,
    /// Whether it is being deleted, and only our finalizer keeps it from us.
    pub is_held_back: bool,
    /// Whether the grant lists it, as the cache shows it.
    pub is_listed: bool,
    /// The same by a fresh look.
    pub truth: Option<Listed>,
    /// Whether the finalizer of a syncer is on it: that cluster has it, or is about to make it.
    /// None can come to an object that is being deleted, so once it is gone it stays gone.
    pub is_on_cluster: bool,
}

/// What a fresh look at the grant showed of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// A cluster may have it.
    Yes,
    /// There is no grant, or it does not list it.
    No,
}

/// A claim that is listed and not in the cache; whether a fresh look found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Nobody looked.
    NotLookedFor,
    /// It is there, and the cache is behind.
    There,
    /// It is not there.
    Gone,
}

/// The one next thing to do. A number is a place in the list of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Bring the labels of the namespace to what the grant says.
    MirrorNamespace,
    /// Bring the labels of a claim to what the grant says, and hold on to it.
    MirrorClaim(usize),
    /// See whether the grant lists a claim that goes.
    LookAtGrant,
    /// See whether a claim that is listed is there.
    LookForMissing(usize),
    /// Take a claim that goes off the list: nobody has it.
    Unlist(usize),
    /// Take a claim that is not there off the list.
    UnlistMissing(usize),
    /// Let a claim go.
    LetGo(usize),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The grant is not in the cache.
    NoGrant,
    /// Everything is as it should be.
    Mirrored,
    /// A claim goes, and the cluster that has it deletes it first.
    OwnerHasIt,
    /// A claim goes with its namespace, and clusters still have data of it.
    CopiesLeft,
    /// The hub says something else than the cache.
    CacheBehind,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.grant.is_some() && !facts.is_namespace_mirrored {
        return Decision::MirrorNamespace;
    }
    let mut why = if facts.grant.is_some() { Why::Mirrored } else { Why::NoGrant };
    for (place, claim) in facts.claims.iter().enumerate() {
        if facts.grant.is_some() && !claim.is_mirrored {
            return Decision::MirrorClaim(place);
        }
        if !claim.is_held_back {
            continue;
        }
        // One claim that waits does not keep the others waiting.
        match let_go(facts, claim, place) {
            Decision::Nothing(waits) => why = waits,
            decision => return decision,
        }
    }
    for (place, missing) in facts.missing.iter().enumerate() {
        match missing {
            Missing::NotLookedFor => return Decision::LookForMissing(place),
            Missing::Gone => return Decision::UnlistMissing(place),
            Missing::There => why = Why::CacheBehind,
        }
    }
    Decision::Nothing(why)
}

/// A claim is let go when no cluster has it, and none will make it.
fn let_go(facts: &Facts, claim: &Claim, place: usize) -> Decision {
    if let Some(grant) = facts.grant.filter(|_| claim.is_listed) {
        return match grant.phase {
            Phase::Granted | Phase::Revoking if claim.is_on_cluster => {
                Decision::Nothing(Why::OwnerHasIt)
            }
            Phase::Granted
            | Phase::Revoking
            | Phase::Unassigned
            | Phase::Released
            | Phase::Fenced => Decision::Unlist(place),
            Phase::Deleting if grant.has_copies => Decision::Nothing(Why::CopiesLeft),
            Phase::Deleting => Decision::LetGo(place),
        };
    }
    if claim.is_on_cluster {
        return Decision::Nothing(Why::OwnerHasIt);
    }
    // That the cache does not list it does not mean that it is not listed.
    match claim.truth {
        None => Decision::LookAtGrant,
        Some(Listed::Yes) => Decision::Nothing(Why::CacheBehind),
        Some(Listed::No) => Decision::LetGo(place),
    }
}
