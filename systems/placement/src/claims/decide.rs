//! What is written next about the claims of a namespace. First matching rule wins.

use interlock_api::placement::{Fill, Phase};
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// The grant of this very namespace; None: it is not in the cache.
    pub grant: Option<Grant>,
    /// The labels of the namespace.
    pub namespace: Labels,
    /// The claims of the namespace, by name.
    pub claims: Vec<Claim>,
    /// Claims that the grant lists and that are not in the cache.
    pub missing: Vec<Missing>,
}

/// The grant of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Grant {
    /// What is true of its owner.
    pub phase: Phase,
    /// Whether it names an owner.
    pub has_owner: bool,
    /// Whether every claim has its data at the owner.
    pub is_filled: bool,
    /// Whether data of the namespace is left somewhere.
    pub has_copies: bool,
}

/// The labels of an object at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Labels {
    /// What they say, and nothing else; None: they say something else.
    pub say: Option<Mirror>,
    /// Whether the object notes since when the owner of the grant has been leaving.
    pub is_leaving_noted: bool,
}

/// What the labels of an object say of the owner of a grant. They name no other cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mirror {
    /// No cluster is named.
    Nobody,
    /// The owner is named, and may not use it: not every claim has its data.
    Arriving,
    /// The owner is named, and may use it.
    Usable,
    /// The owner is named, may not use it any more, and has been leaving since then.
    Leaving(Since),
}

/// Since when an owner has been leaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Since {
    /// As it was noted.
    Noted,
    /// Since now: nobody noted it.
    Now,
}

/// A claim at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Claim {
    /// Its labels.
    pub labels: Labels,
    /// Whether our finalizer is on it.
    pub is_held: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether the grant lists it, as the cache shows it.
    pub is_listed: bool,
    /// The same by a live read.
    pub truth: Option<Listed>,
    /// Whether the finalizer of a syncer is on it: that cluster has it, or is about to make it.
    /// None can come to an object that is being deleted, so once it is gone it stays gone.
    pub is_on_cluster: bool,
}

/// What a live read of the grant showed of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Listed {
    /// A cluster may have it.
    Yes,
    /// There is no grant, or it does not list it.
    No,
}

/// A claim that is listed and not in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Missing {
    /// Whether it has its data at the owner, as the grant says.
    pub fill: Fill,
    /// Whether a live read found it.
    pub found: Found,
}

/// Whether a live read found a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Found {
    /// Nobody looked.
    NotRead,
    /// It is there, and the cache is behind.
    There,
    /// It is not there.
    Gone,
}

/// The one next thing to do. A number is a place in the list of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Bring the labels of the namespace to say this.
    MirrorNamespace(Mirror),
    /// Bring the labels of a claim to say this.
    MirrorClaim(usize, Mirror),
    /// The same, and put our finalizer on it, in one write.
    HoldClaim(usize, Mirror),
    /// See whether the grant lists a claim that is being deleted.
    ReadGrant,
    /// See whether a claim that is listed is there.
    ReadMissing(usize),
    /// Remove a claim that is being deleted from the list: no cluster has it.
    Unlist(usize),
    /// Take a claim that is not there off the list.
    UnlistMissing(usize),
    /// Let a claim go.
    LetGo(usize),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// The grant is not in the cache.
    NoGrant,
    /// Everything is as it should be.
    Mirrored,
    /// A claim is being deleted, and the cluster that has it deletes it first.
    OwnerHasIt,
    /// The claim is deleted with its namespace, and clusters still have data of it.
    CopiesLeft,
    /// The hub says something else than the cache.
    CacheBehind,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if let Some(mirror) = stale(facts, &facts.namespace) {
        return Decision::MirrorNamespace(mirror);
    }
    let mut why = if facts.grant.is_some() { Why::Mirrored } else { Why::NoGrant };
    for (place, claim) in facts.claims.iter().enumerate() {
        if let Some(decision) = mirror_claim(facts, claim, place) {
            return decision;
        }
        if !(claim.is_deleting && claim.is_held) {
            continue;
        }
        // One claim that waits does not keep the others waiting.
        match let_go(facts, claim, place) {
            Decision::Nothing(waits) => why = waits,
            decision => return decision,
        }
    }
    for (place, missing) in facts.missing.iter().enumerate() {
        // Once data arrives in it, the claim is on the cluster of the owner, whose syncer deletes it.
        if missing.fill != Fill::Waiting {
            continue;
        }
        match missing.found {
            Found::NotRead => return Decision::ReadMissing(place),
            Found::Gone => return Decision::UnlistMissing(place),
            Found::There => why = Why::CacheBehind,
        }
    }
    Decision::Nothing(why)
}

/// What the labels of an object are to say while a namespace has this grant.
pub fn mirror_of(grant: &Grant, labels: &Labels) -> Mirror {
    match grant.phase {
        Phase::Granted | Phase::Revoking if !grant.has_owner => Mirror::Nobody,
        Phase::Granted if grant.is_filled => Mirror::Usable,
        Phase::Granted => Mirror::Arriving,
        Phase::Revoking if labels.is_leaving_noted => Mirror::Leaving(Since::Noted),
        Phase::Revoking => Mirror::Leaving(Since::Now),
        Phase::Unassigned | Phase::Released | Phase::Fenced | Phase::Deleting => Mirror::Nobody,
    }
}

/// What the labels of an object are to say and do not say. Without a grant in the cache nobody
/// knows.
fn stale(facts: &Facts, labels: &Labels) -> Option<Mirror> {
    let mirror = mirror_of(facts.grant.as_ref()?, labels);
    (labels.say != Some(mirror)).then_some(mirror)
}

/// A claim that stays must not vanish, and a finalizer cannot be put on one that is being deleted.
fn mirror_claim(facts: &Facts, claim: &Claim, place: usize) -> Option<Decision> {
    let mirror = mirror_of(facts.grant.as_ref()?, &claim.labels);
    if !claim.is_held && !claim.is_deleting {
        return Some(Decision::HoldClaim(place, mirror));
    }
    stale(facts, &claim.labels).map(|mirror| Decision::MirrorClaim(place, mirror))
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
        None => Decision::ReadGrant,
        Some(Listed::Yes) => Decision::Nothing(Why::CacheBehind),
        Some(Listed::No) => Decision::LetGo(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNUSED: Labels = Labels { say: Some(Mirror::Nobody), is_leaving_noted: false };

    fn grant(phase: Phase) -> Grant {
        Grant { phase, has_owner: true, is_filled: true, has_copies: true }
    }

    fn facts(phase: Phase) -> Facts {
        let namespace = Labels { say: Some(mirror_of(&grant(phase), &UNUSED)), ..UNUSED };
        Facts { grant: Some(grant(phase)), namespace, claims: Vec::new(), missing: Vec::new() }
    }

    #[test]
    fn labels_name_the_owner_while_it_has_the_grant_and_nobody_else_ever() {
        let noted = Labels { is_leaving_noted: true, ..UNUSED };
        for (phase, is_filled, labels, wanted) in [
            (Phase::Unassigned, true, UNUSED, Mirror::Nobody),
            (Phase::Granted, false, UNUSED, Mirror::Arriving),
            (Phase::Granted, true, UNUSED, Mirror::Usable),
            (Phase::Revoking, true, UNUSED, Mirror::Leaving(Since::Now)),
            (Phase::Revoking, false, noted, Mirror::Leaving(Since::Noted)),
            (Phase::Released, true, noted, Mirror::Nobody),
            (Phase::Fenced, true, UNUSED, Mirror::Nobody),
            (Phase::Deleting, true, UNUSED, Mirror::Nobody),
        ] {
            let grant = Grant { is_filled, ..grant(phase) };
            assert_eq!(mirror_of(&grant, &labels), wanted, "{phase}");
            let nobodys = Grant { has_owner: false, ..grant };
            assert_eq!(mirror_of(&nobodys, &labels), Mirror::Nobody, "{phase}");
        }
    }

    #[test]
    fn a_claim_is_held_as_long_as_it_is_not_being_deleted() {
        let current = Labels { say: Some(Mirror::Usable), is_leaving_noted: false };
        let usable = Mirror::Usable;
        for (labels, is_held, is_deleting, wanted) in [
            (current, true, false, Decision::Nothing(Why::Mirrored)),
            (current, false, false, Decision::HoldClaim(0, usable)),
            (UNUSED, false, false, Decision::HoldClaim(0, usable)),
            (UNUSED, true, false, Decision::MirrorClaim(0, usable)),
            (UNUSED, true, true, Decision::MirrorClaim(0, usable)),
            (UNUSED, false, true, Decision::MirrorClaim(0, usable)),
            (current, false, true, Decision::Nothing(Why::Mirrored)),
            (current, true, true, Decision::Unlist(0)),
        ] {
            let claim = Claim {
                labels,
                is_held,
                is_deleting,
                is_listed: true,
                truth: None,
                is_on_cluster: false,
            };
            let facts = Facts { claims: vec![claim], ..facts(Phase::Granted) };
            assert_eq!(decide(&facts), wanted, "{claim:?}");
        }
    }

    #[test]
    fn only_a_claim_that_was_never_filled_is_taken_for_one_listed_by_mistake() {
        for (fill, found, wanted) in [
            (Fill::Waiting, Found::NotRead, Decision::ReadMissing(0)),
            (Fill::Waiting, Found::Gone, Decision::UnlistMissing(0)),
            (Fill::Waiting, Found::There, Decision::Nothing(Why::CacheBehind)),
            (Fill::Filled, Found::NotRead, Decision::Nothing(Why::Mirrored)),
            (Fill::Filled, Found::Gone, Decision::Nothing(Why::Mirrored)),
        ] {
            let missing = vec![Missing { fill, found }];
            let facts = Facts { missing, ..facts(Phase::Granted) };
            assert_eq!(decide(&facts), wanted, "{fill:?} {found:?}");
        }
    }
}
