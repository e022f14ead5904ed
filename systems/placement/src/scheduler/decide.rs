//! Where a namespace is to run, and when it may change hands. First matching rule wins.
//!
//! The rules are the table "scheduler" of the design, and each is one write to the hub. A cluster is
//! named by its place in [`Facts::clusters`].

use interlock_api::placement::{CopyState, Phase, RevokedBecause};
use serde::{Deserialize, Serialize};

mod say;

pub use say::{Missed, News, Reason, Said, SaidPlaced, SaidUnreachable, Tell};
use say::{is_owner_missed, say};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// The namespace.
    pub namespace: Namespace,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Whether the finalizer of some cluster's syncer is on it.
    pub has_syncers: bool,
    /// The grant for this very namespace, as the cache shows it.
    pub grant: Option<Grant>,
    /// What a live read showed: whether there is a grant that the cache does not know yet.
    pub truth: Option<Truth>,
    /// All clusters, by name.
    pub clusters: Vec<Cluster>,
    /// Where it is to run.
    pub desired: Desired,
    /// Whether one more move may begin now.
    pub has_room_for_move: bool,
    /// Whether the data of claims can be carried from one cluster to another.
    pub can_copy: bool,
    /// The claims of the namespace that are there to stay, by name.
    pub claims: Vec<Claim>,
    /// Whether two Placements select it.
    pub is_ambiguous: bool,
}

/// What is known of the namespace that a grant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Namespace {
    /// Not in the cache, and not read: that proves nothing.
    Unknown,
    /// Not in the cache, and a live read shows that it is there: the cache is behind.
    Unseen,
    /// It is there, and asks to be placed.
    Placed,
    /// It is there, and does not ask to be placed (any more).
    Unplaced,
    /// It is being deleted.
    Deleting,
    /// It is gone for sure: a live read shows none, or another one has its name.
    Gone,
}

/// Whether the hub has a grant for the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Truth {
    /// There is none.
    NoGrant,
    /// There is one.
    Granted,
}

/// A claim of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Claim {
    /// Whether it cannot vanish: our finalizer is on it.
    pub is_held: bool,
    /// Whether the grant lists it.
    pub is_listed: bool,
}

/// The grant of the namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Grant {
    /// What is true of the owner.
    pub phase: Phase,
    /// Who has it, or had it last.
    pub owner: Option<Owner>,
    /// Who is to have it, as the grant says now.
    pub target: Option<usize>,
    /// Whether every claim can be filled, and where.
    pub snapshots: Snapshots,
    /// Why its owner is to stop, if it is.
    pub because: Option<RevokedBecause>,
    /// What each claim that it lists begins with next, as it is pinned.
    pub pins: Vec<Pinned>,
    /// Whether the owner may have written to a claim.
    pub is_written: bool,
    /// Whether data of the namespace is left somewhere.
    pub has_copies: bool,
    /// Whether it says what the Placement that counts says.
    pub is_policy_current: bool,
    /// What its conditions say.
    pub said: Said,
}

/// What a claim is pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Pinned {
    /// Nothing.
    Nothing,
    /// The volume itself, which stayed in place.
    InPlace,
    /// A snapshot, or that it begins empty.
    Snapshot,
}

/// The owner of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Owner {
    /// One of the clusters.
    Cluster(usize),
    /// A cluster that is not there any more; one of its name is another one.
    Replaced,
}

/// Where the snapshots that a grant holds can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Snapshots {
    /// On any cluster.
    Anywhere,
    /// On this cluster only: the volumes stayed in place there.
    Only(usize),
    /// On a cluster that is not there any more.
    Nowhere,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Cluster {
    /// Why it cannot take the namespace, if it cannot.
    pub unfit_reason: Option<UnfitReason>,
    /// Whether its syncer sent a heartbeat recently.
    pub is_reachable: bool,
    /// Whether it is to be emptied.
    pub is_draining: bool,
    /// Whether somebody waits until it is empty, and says so in `spec.drains`.
    pub is_asked_to_drain: bool,
    /// How many namespaces it has or is to have.
    pub grants: usize,
    /// What a live read of it shows; None: not read.
    pub live_state: Option<LiveState>,
    /// The copies that it has of the namespace's data, as the grant says.
    pub copies: Vec<CopyState>,
}

/// What a live read of a cluster shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum LiveState {
    /// It is there, and not on its way out.
    Stays,
    /// It is there, and somebody needs it empty.
    Draining,
    /// It is being deleted, and is not let go for as long as data of the grant is on it.
    Kept,
    /// It is gone, or may be any moment.
    MayBeGone,
}

/// Why a cluster cannot take a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum UnfitReason {
    /// Its syncer is not there, or says that it is not ready.
    NotReady,
    /// It takes nothing new.
    Unschedulable,
    /// It is to be emptied.
    Draining,
    /// It is being deleted.
    Deleting,
    /// The Placement does not select it.
    NotSelected,
    /// The cloud does not know the issuer of its tokens, and a role of the namespace has to trust it.
    IssuerNotReady {
        /// Which.
        role: String,
        /// Why, and what a person does next, as far as it is known.
        because: Option<String>,
    },
    /// It has no such storage class.
    StorageClassMissing(String),
    /// Its storage class cannot take snapshots.
    CannotSnapshot(String),
    /// This claim is a raw device, which nothing here can fill or carry.
    BlockVolume(String),
    /// There is not enough room.
    TooSmall {
        /// What is needed.
        needed_bytes: i64,
        /// What is there.
        free_bytes: i64,
    },
}

/// Where a namespace is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Desired {
    /// Anywhere that fits.
    Any,
    /// On this cluster.
    On(usize),
    /// On a cluster that there is not.
    Unknown,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Nothing until something changes that nobody tells of, and why.
    Wait(Why, For),
    /// Say why nothing is done.
    Tell(Tell),
    /// Put our finalizer on the namespace.
    PutFinalizer,
    /// Ask the hub whether there is a grant.
    ReadGrant,
    /// Ask the hub whether the namespace is there.
    ReadNamespace,
    /// Make the grant.
    CreateGrant,
    /// The same, and tell that two Placements select the namespace.
    CreateAmbiguousGrant,
    /// Note the desired cluster.
    Target(usize),
    /// The same, and what the Placement says now.
    TargetWithPolicy(usize),
    /// Note that none is: the one that was goes.
    Untarget,
    /// Note what the Placement says now.
    UpdatePolicy,
    /// Ask the hub whether the cluster that is to have it stays.
    ReadCluster(usize),
    /// List claims that are new, before anybody can write to them: their places in the facts.
    ListClaims(Vec<usize>),
    /// Give it to a cluster.
    Grant(Giving),
    /// Take it back from its owner.
    Revoke(RevokedBecause),
    /// The namespace is being deleted, and the grant has no owner.
    BeginDeleting,
    /// Take our finalizer off the namespace.
    TakeFinalizerOff,
    /// Nothing is left: the grant is deleted too.
    DeleteGrant,
}

/// What comes without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum For {
    /// That a move ends: two of those that wait are reported, and those may be gone.
    Moves,
    /// Room on a cluster.
    Room,
}

/// How a grant is given to a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Giving {
    /// The cluster.
    pub to: usize,
    /// What each claim that the grant lists begins with there.
    pub begins: Vec<Begin>,
    /// The copies there that the new one takes the place of, by their states.
    pub taken_over: Vec<CopyState>,
    /// Whether the owner before, which was missed, does not matter any more.
    pub is_owner_back: bool,
    /// Whether its conditions say that the owner before was declared gone.
    pub is_fence_over: bool,
}

/// What a claim begins with on its next cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Begin {
    /// What it is pinned to, which is newer than any snapshot before it.
    Pinned,
    /// The volume itself; its last snapshot is all there is elsewhere, and is kept.
    InPlace,
    /// Nothing.
    Empty,
}

/// Why there is nothing to do. Most of it is shown to people as a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// The namespace is not in the cache.
    NamespaceUnknown,
    /// It does not ask to be placed.
    Unplaced,
    /// It has its place.
    Placed,
    /// The cluster that it is to run on does not exist.
    UnknownCluster,
    /// No cluster fits.
    NoneFits,
    /// The desired cluster does not fit.
    DesiredClusterDoesNotFit(usize),
    /// Its data is on a cluster that does not fit, or is not there any more.
    DataElsewhere,
    /// Its data would have to be copied, and nothing here can do that.
    NeedsCopy,
    /// Too many moves are under way.
    MovesFull,
    /// Its owner has to stop and hand over first.
    OwnerStops,
    /// The same, and its owner sends no heartbeat.
    OwnerUnreachable,
    /// Its owner was deleted; one of that name is another cluster.
    ClusterReplaced,
    /// Clusters still have data of it.
    CopiesLeft,
    /// Syncers still hold its namespace.
    SyncersLeft,
    /// The target cluster is being deleted, which the cache does not show yet.
    ClusterTerminating,
    /// The target cluster is being drained, which the cache does not show yet.
    ClusterDraining,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let Some(grant) = &facts.grant else { return without_grant(facts) };
    match with_grant(facts, grant) {
        Decision::Nothing(why) => say(facts, grant, why),
        decision => decision,
    }
}

fn with_grant(facts: &Facts, grant: &Grant) -> Decision {
    if grant.phase == Phase::Deleting {
        return end(facts, grant);
    }
    // A cluster is not let go while it is the target of a grant.
    if is_target_terminating(facts, grant) {
        return Decision::Untarget;
    }
    match facts.namespace {
        // Its end stops what runs and deletes data, so it never rests on what a cache lacks.
        Namespace::Unknown => return Decision::ReadNamespace,
        Namespace::Unseen => return Decision::Nothing(Why::NamespaceUnknown),
        Namespace::Deleting | Namespace::Gone => return begin_end(facts, grant),
        // It stays where it is: taking a label off must not stop what runs.
        Namespace::Unplaced => return Decision::Nothing(Why::Unplaced),
        Namespace::Placed => {}
    }
    // A claim is listed before any cluster may make it, so that no release can leave it out.
    let unlisted = unlisted(facts);
    if !unlisted.is_empty() && grant.phase != Phase::Revoking {
        return Decision::ListClaims(unlisted);
    }
    let target = match desired(facts, grant) {
        Ok(target) => target,
        // Whoever drains a cluster waits until no grant names it as its target.
        Err(_) if is_target_draining(facts, grant) => return Decision::Untarget,
        Err(why) => return held_up(facts, grant, why),
    };
    match (grant.target == Some(target), grant.is_policy_current) {
        (true, _) => {}
        (false, true) => return Decision::Target(target),
        (false, false) => return Decision::TargetWithPolicy(target),
    }
    match grant.phase {
        Phase::Unassigned | Phase::Released | Phase::Fenced => give(facts, grant, target),
        Phase::Granted => keep_or_move(facts, grant, target),
        Phase::Revoking | Phase::Deleting => held_up(facts, grant, Why::OwnerStops),
    }
}

/// Only claims that cannot vanish are listed, so that no cluster gets one that the hub may lose track
/// of.
fn unlisted(facts: &Facts) -> Vec<usize> {
    let claims = facts.claims.iter().enumerate();
    let unlisted = claims.filter(|(_, claim)| claim.is_held && !claim.is_listed);
    unlisted.map(|(place, _)| place).collect()
}

/// Whether the cluster that is to have it, and has it not, is being deleted.
fn is_target_terminating(facts: &Facts, grant: &Grant) -> bool {
    let is_held = grant.phase.is_held();
    grant.target.is_some_and(|target| {
        let unfit_reason =
            facts.clusters.get(target).and_then(|cluster| cluster.unfit_reason.as_ref());
        unfit_reason == Some(&UnfitReason::Deleting)
            && !(is_held && grant.owner == Some(Owner::Cluster(target)))
    })
}

/// Whether somebody needs the cluster empty that is to have it, and has it not.
fn is_target_draining(facts: &Facts, grant: &Grant) -> bool {
    grant.target.is_some_and(|target| {
        facts.clusters.get(target).is_some_and(|cluster| cluster.is_asked_to_drain)
            && !(grant.phase.is_held() && grant.owner == Some(Owner::Cluster(target)))
    })
}

fn without_grant(facts: &Facts) -> Decision {
    match (facts.namespace, facts.has_finalizer) {
        (Namespace::Placed, false) => Decision::PutFinalizer,
        (Namespace::Placed, true) if facts.is_ambiguous => Decision::CreateAmbiguousGrant,
        (Namespace::Placed, true) => Decision::CreateGrant,
        // That the cache has no grant does not mean that there is none.
        (Namespace::Deleting, true) => match facts.truth {
            None => Decision::ReadGrant,
            Some(Truth::NoGrant) => Decision::TakeFinalizerOff,
            Some(Truth::Granted) => Decision::Nothing(Why::CopiesLeft),
        },
        (Namespace::Deleting, false)
        | (Namespace::Unknown | Namespace::Unseen | Namespace::Unplaced | Namespace::Gone, _) => {
            Decision::Nothing(Why::Unplaced)
        }
    }
}

fn begin_end(facts: &Facts, grant: &Grant) -> Decision {
    match grant.phase {
        Phase::Granted => Decision::Revoke(RevokedBecause::Deletion),
        // Nobody waits for its data any more: the owner need not hand it over.
        Phase::Revoking if grant.because != Some(RevokedBecause::Deletion) => {
            Decision::Revoke(RevokedBecause::Deletion)
        }
        Phase::Revoking => held_up(facts, grant, Why::OwnerStops),
        Phase::Unassigned | Phase::Released | Phase::Fenced => Decision::BeginDeleting,
        Phase::Deleting => end(facts, grant),
    }
}

fn end(facts: &Facts, grant: &Grant) -> Decision {
    if grant.has_copies {
        return Decision::Nothing(Why::CopiesLeft);
    }
    match facts.namespace {
        Namespace::Unknown => return Decision::ReadNamespace,
        // The grant says that it is being deleted, and the cache does not show that yet.
        Namespace::Unseen | Namespace::Placed | Namespace::Unplaced => {
            return Decision::Nothing(Why::NamespaceUnknown);
        }
        Namespace::Gone => return Decision::DeleteGrant,
        Namespace::Deleting => {}
    }
    // Where a person gave up a copy, its syncer may not have closed yet. It does so because of the
    // grant, and lets go of the namespace after that: without the grant it never would. What is
    // being deleted gets no further finalizers, so a cache that shows none is right.
    if facts.has_syncers {
        return Decision::Nothing(Why::SyncersLeft);
    }
    if facts.has_finalizer {
        return Decision::TakeFinalizerOff;
    }
    Decision::DeleteGrant
}

/// The cluster that the namespace is to run on. The same facts give the same cluster: a decision
/// that is repeated on old news does no harm.
fn desired(facts: &Facts, grant: &Grant) -> Result<usize, Why> {
    let fits = |place: usize| facts.clusters.get(place).is_some_and(|c| c.unfit_reason.is_none());
    let owner = match grant.owner {
        Some(Owner::Cluster(owner)) => Some(owner),
        Some(Owner::Replaced) | None => None,
    };
    let is_held = grant.phase.is_held();
    match facts.desired {
        Desired::Unknown => return Err(Why::UnknownCluster),
        // Where it runs it may stay, whatever is said of new ones.
        Desired::On(place) if is_held && owner == Some(place) => return Ok(place),
        Desired::On(place) if fits(place) => return Ok(place),
        Desired::On(place) => return Err(Why::DesiredClusterDoesNotFit(place)),
        Desired::Any => {}
    }
    let stays = |place: &usize| {
        let cluster = facts.clusters.get(*place);
        cluster.is_some_and(|c| !c.is_draining && c.unfit_reason != Some(UnfitReason::NotSelected))
    };
    if let Some(owner) = owner.filter(|owner| is_held && stays(owner)) {
        return Ok(owner);
    }
    match grant.snapshots {
        Snapshots::Only(place) if fits(place) => return Ok(place),
        Snapshots::Only(place) if !can_leave(facts, place) => return Err(Why::DataElsewhere),
        Snapshots::Only(_) | Snapshots::Anywhere | Snapshots::Nowhere => {}
    }
    if let Some(target) = grant.target.filter(|target| fits(*target)) {
        return Ok(target);
    }
    let candidates = facts.clusters.iter().enumerate().filter(|(place, _)| fits(*place));
    let fewest = candidates.min_by_key(|(place, cluster)| (cluster.grants, *place));
    match (fewest, owner.filter(|_| is_held)) {
        (Some((place, _)), _) => Ok(place),
        // LiveRead before you stop: with nowhere to go, it stays.
        (None, Some(_)) | (None, None) => Err(Why::NoneFits),
    }
}

/// The grant has no owner: the desired cluster becomes the owner, if its data can be there.
fn give(facts: &Facts, grant: &Grant, target: usize) -> Decision {
    let place = match grant.snapshots {
        Snapshots::Nowhere => return Decision::Nothing(Why::DataElsewhere),
        Snapshots::Only(place) if place != target && !can_leave(facts, place) => {
            return Decision::Nothing(Why::DataElsewhere);
        }
        // It goes back to where its data is, and moves on from there.
        Snapshots::Only(place) if place != target => place,
        Snapshots::Only(_) | Snapshots::Anywhere => target,
    };
    // A cluster is let go when it is being deleted and no grant names it, as its target or for its
    // data. The grant that is written over names this one since before the look: if the look showed
    // it staying, whoever wants to let it go finds the grant. So does whoever drains it.
    match facts.clusters.get(place).and_then(|cluster| cluster.live_state) {
        None => Decision::ReadCluster(place),
        Some(LiveState::Kept | LiveState::Draining) if place != target => {
            Decision::Grant(giving(facts, grant, place))
        }
        Some(LiveState::Draining) => Decision::Nothing(Why::ClusterDraining),
        Some(LiveState::MayBeGone | LiveState::Kept) => Decision::Nothing(Why::ClusterTerminating),
        Some(LiveState::Stays) => Decision::Grant(giving(facts, grant, place)),
    }
}

fn giving(facts: &Facts, grant: &Grant, to: usize) -> Giving {
    let begin = |pinned: &Pinned| match pinned {
        Pinned::Nothing => Begin::Empty,
        Pinned::InPlace => Begin::InPlace,
        Pinned::Snapshot => Begin::Pinned,
    };
    let mut taken_over = facts.clusters.get(to).map_or(Vec::new(), |to| to.copies.clone());
    taken_over.retain(|state| is_taken_over(*state));
    Giving {
        to,
        begins: grant.pins.iter().map(begin).collect(),
        taken_over,
        is_owner_back: is_owner_missed(grant),
        is_fence_over: grant.said.is_fenced,
    }
}

/// A copy that nobody needs is taken over with the grant. One that is alone in having something is
/// kept beside it, until a person has said what happens to it.
fn is_taken_over(state: CopyState) -> bool {
    match state {
        CopyState::Live | CopyState::Superseded => true,
        CopyState::Diverged | CopyState::Unclosed => false,
    }
}

/// Whether data that was left in place on a cluster can be fetched from there: what is said of new
/// ones does not count, but it must answer.
fn can_leave(facts: &Facts, place: usize) -> bool {
    facts.clusters.get(place).is_some_and(|cluster| match &cluster.unfit_reason {
        None => true,
        Some(
            UnfitReason::Unschedulable
            | UnfitReason::Draining
            | UnfitReason::Deleting
            | UnfitReason::NotSelected
            // Nothing starts there: what leaves needs no rights.
            | UnfitReason::IssuerNotReady { .. },
        ) => cluster.is_reachable,
        Some(
            UnfitReason::NotReady
            | UnfitReason::StorageClassMissing(_)
            | UnfitReason::CannotSnapshot(_)
            | UnfitReason::BlockVolume(_)
            | UnfitReason::TooSmall { .. },
        ) => false,
    })
}

fn keep_or_move(facts: &Facts, grant: &Grant, target: usize) -> Decision {
    let owner = match grant.owner {
        Some(Owner::Cluster(owner)) => owner,
        // Only a person can say that a cluster which nobody can ask has stopped.
        Some(Owner::Replaced) | None => return Decision::Nothing(Why::ClusterReplaced),
    };
    if owner == target {
        return held_up(facts, grant, Why::Placed);
    }
    if grant.is_written && !facts.can_copy {
        return Decision::Nothing(Why::NeedsCopy);
    }
    if !facts.has_room_for_move {
        return Decision::Nothing(Why::MovesFull);
    }
    let is_draining = facts.clusters.get(owner).is_some_and(|cluster| cluster.is_draining);
    let because = if is_draining { RevokedBecause::Drain } else { RevokedBecause::Move };
    Decision::Revoke(because)
}

/// Nothing can be done, and an owner that sends no heartbeat is the first thing to say.
fn held_up(facts: &Facts, grant: &Grant, why: Why) -> Decision {
    let is_held = grant.phase.is_held();
    match grant.owner {
        Some(Owner::Replaced) if is_held => Decision::Nothing(Why::ClusterReplaced),
        Some(Owner::Cluster(owner))
            if is_held && facts.clusters.get(owner).is_some_and(|c| !c.is_reachable) =>
        {
            Decision::Nothing(Why::OwnerUnreachable)
        }
        _ => Decision::Nothing(why),
    }
}

#[cfg(test)]
mod tests;
