//! What is said of a grant that nothing is done about, and when it is worth a write or an event.

use super::{Cluster, Decision, Facts, For, Grant, UnfitReason, Why};
use interlock_api::placement::RevokedBecause;
use serde::{Deserialize, Serialize};

/// What the conditions of a grant say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, Default)]
pub struct Said {
    /// Whether it has its place. None: nothing, or for a reason that is none of ours.
    pub placed: Option<SaidPlaced>,
    /// Whether that names the two Placements that select the namespace.
    pub is_ambiguity_told: bool,
    /// Whether its owner is unreachable, and why.
    pub unreachable: Option<SaidUnreachable>,
    /// Whether its owner was declared gone.
    pub is_fenced: bool,
}

/// What the condition Placed of a grant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct SaidPlaced {
    /// Why.
    pub reason: Reason,
    /// Whether it says so in the words that are true now.
    pub is_current: bool,
}

/// What the condition OwnerUnreachable of a grant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct SaidUnreachable {
    /// Whether it holds.
    pub is_true: bool,
    /// Why; None: for another reason.
    pub reason: Option<Missed>,
    /// Whether it says so in the words that are true now.
    pub is_current: bool,
}

/// Why a grant has its place or has it not: the reason of the condition Placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Reason {
    /// A cluster has it.
    Granted,
    /// See [`Why::UnknownCluster`].
    UnknownCluster,
    /// See [`Why::NoneFits`].
    NoneFits,
    /// See [`Why::DesiredClusterDoesNotFit`].
    DesiredClusterDoesNotFit,
    /// See [`Why::DataElsewhere`].
    DataElsewhere,
    /// See [`Why::NeedsCopy`].
    NeedsCopy,
    /// See [`Why::MovesFull`].
    MovesFull,
    /// Its owner stops, and hands over to another cluster.
    Moving,
    /// Its owner stops, since the namespace is being deleted.
    Deleting,
    /// See [`Why::CopiesLeft`].
    CopiesLeft,
    /// See [`Why::SyncersLeft`].
    SyncersLeft,
}

/// Why an owner is unreachable: the reason of that condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Missed {
    /// It sends no heartbeat.
    NoHeartbeat,
    /// It was deleted; one of that name is another cluster.
    ClusterReplaced,
}

/// What is said of a grant that nothing is done about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tell {
    /// Why nothing is done.
    pub why: Why,
    /// Whether its owner, which was missed, is there again.
    pub is_owner_back: bool,
    /// The event that goes with it.
    pub event: Option<News>,
}

/// What is worth an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum News {
    /// Two Placements select the namespace.
    PlacementAmbiguous,
    /// The owner is unreachable.
    OwnerUnreachable,
    /// A namespace that is to move stays, until others have moved.
    MoveQueued,
    /// A namespace that is to move stays, and a person may have to act.
    MoveDelayed,
}

/// Nothing is done about a grant; what a person must know is written down once.
pub(super) fn say(facts: &Facts, grant: &Grant, why: Why) -> Decision {
    if why == Why::Placed && !grant.is_policy_current {
        return Decision::UpdatePolicy;
    }
    let told = match why {
        Why::NamespaceUnknown | Why::Unplaced | Why::ClusterTerminating | Why::ClusterDraining => {
            None
        }
        Why::OwnerUnreachable => missed(grant, Missed::NoHeartbeat),
        Why::ClusterReplaced => missed(grant, Missed::ClusterReplaced),
        Why::Placed => placed(facts, grant, Reason::Granted),
        Why::UnknownCluster => placed(facts, grant, Reason::UnknownCluster),
        Why::NoneFits => placed(facts, grant, Reason::NoneFits),
        Why::DesiredClusterDoesNotFit(_) => placed(facts, grant, Reason::DesiredClusterDoesNotFit),
        Why::DataElsewhere => placed(facts, grant, Reason::DataElsewhere),
        Why::NeedsCopy => placed(facts, grant, Reason::NeedsCopy),
        Why::MovesFull => placed(facts, grant, Reason::MovesFull),
        Why::OwnerStops => placed(facts, grant, stops(grant)),
        Why::CopiesLeft => placed(facts, grant, Reason::CopiesLeft),
        Why::SyncersLeft => placed(facts, grant, Reason::SyncersLeft),
    };
    match told {
        Some(Reported { is_owner_back, event }) => {
            Decision::Tell(Tell { why, is_owner_back, event })
        }
        None => rest(facts, why),
    }
}

/// What is to be said and was not.
struct Reported {
    is_owner_back: bool,
    event: Option<News>,
}

/// Why an owner that was asked to stop is.
fn stops(grant: &Grant) -> Reason {
    match grant.because {
        Some(RevokedBecause::Deletion) => Reason::Deleting,
        Some(RevokedBecause::Move | RevokedBecause::Drain) | None => Reason::Moving,
    }
}

/// An event comes with the first word of something new, and not with every other wording of it.
fn missed(grant: &Grant, reason: Missed) -> Option<Reported> {
    let said = grant.said.unreachable;
    let is_same = said.is_some_and(|said| said.reason == Some(reason));
    if is_same && said.is_some_and(|said| said.is_current) {
        return None;
    }
    let event = (!is_same).then_some(News::OwnerUnreachable);
    Some(Reported { is_owner_back: false, event })
}

fn placed(facts: &Facts, grant: &Grant, reason: Reason) -> Option<Reported> {
    let said = grant.said.placed.filter(|said| said.reason == reason);
    let is_owner_back = is_owner_missed(grant);
    if said.is_some_and(|said| said.is_current) {
        return is_owner_back.then_some(Reported { is_owner_back, event: None });
    }
    let event = match reason {
        Reason::Granted => {
            let is_news = facts.is_ambiguous && !grant.said.is_ambiguity_told;
            is_news.then_some(News::PlacementAmbiguous)
        }
        _ if said.is_some() || !grant.phase.is_held() => None,
        Reason::Moving => None,
        Reason::MovesFull => Some(News::MoveQueued),
        Reason::UnknownCluster
        | Reason::NoneFits
        | Reason::DesiredClusterDoesNotFit
        | Reason::DataElsewhere
        | Reason::NeedsCopy
        | Reason::Deleting
        | Reason::CopiesLeft
        | Reason::SyncersLeft => Some(News::MoveDelayed),
    };
    Some(Reported { is_owner_back, event })
}

/// A move that ends wakes some of those that wait, and room on clusters changes without a word.
fn rest(facts: &Facts, why: Why) -> Decision {
    let is_small =
        |cluster: &Cluster| matches!(cluster.unfit_reason, Some(UnfitReason::TooSmall { .. }));
    match why {
        Why::MovesFull => Decision::Wait(why, For::Moves),
        Why::NoneFits | Why::DesiredClusterDoesNotFit(_) | Why::DataElsewhere
            if facts.clusters.iter().any(is_small) =>
        {
            Decision::Wait(why, For::Room)
        }
        _ => Decision::Nothing(why),
    }
}

/// Whether the conditions of a grant say that its owner is unreachable.
pub(super) fn is_owner_missed(grant: &Grant) -> bool {
    grant.said.unreachable.is_some_and(|said| said.is_true)
}
