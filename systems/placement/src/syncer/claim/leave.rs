//! The next step by which what was written to a claim leaves this cluster: its last snapshot is asked
//! for once the epoch is closed, held, and handed over.

use super::facts::{At, Facts as Claim, Obstacle, Pin, Source, Tidying};
use crate::syncer::decide::{Decision, LiveRead};
use crate::syncer::facts::Facts;
use crate::syncer::leftover::decide as leftover;
use crate::syncer::tenancy::LastSnapshot;
use interlock_api::placement::condition::DATA_SYNCED;
use interlock_kernel::conditions::Finding;
use serde::Serialize;
use std::time::Duration;

/// How soon a step is tried again that waits for a source, should nobody tell.
const REQUEUE_AFTER: Duration = Duration::from_secs(5);
/// How often something is checked again that time alone may change.
const ONCE_A_WHILE: Duration = Duration::from_secs(600);

/// One write by which the data of a claim leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Action {
    /// Its last snapshot is asked for, of a new source.
    CreateSource,
    /// The same, of the source that is there.
    AskSource,
    /// The snapshot was deleted before it was held: it is taken once more.
    AskAgain,
    /// From here on only we can let the snapshot go.
    Hold,
    /// Its volume stays in place as its last snapshot.
    KeepInPlace,
    /// The repository is to lose what earlier moves left in it; nobody was asked for that before.
    Tidy,
    /// The same, of whoever was asked for an earlier epoch.
    TidyAgain,
}

/// What the next owner of a claim starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HandedOver {
    /// The volume that was noted as what this epoch leaves.
    NotedVolume,
    /// The volume that is here.
    VolumeHere,
    /// The last snapshot.
    LastSnapshot,
    /// What this owner started from: nothing can have written to it.
    AsItCame,
}

impl HandedOver {
    /// Whether the data stays on this cluster, and is nowhere else.
    pub fn is_in_place(self) -> bool {
        matches!(self, HandedOver::NotedVolume | HandedOver::VolumeHere)
    }
}

/// Asks for the last snapshot of a claim: one write, or what has to be waited for before.
pub fn ask(facts: &Facts, place: usize) -> Decision {
    let (claim, at) = (&facts.claims[place], &facts.at);
    let action = |action| Decision::Leave { place, action };
    let name = &claim.name;
    if !at.is_copying {
        // The scheduler knows, and takes nothing back that would need it; but it may have looked
        // before the cluster changed.
        let message =
            format!("the data of claim {name} has to be copied, and no mover runs on this cluster");
        let obstacle = Obstacle::new("CopyNotSupported", message);
        return blocked(facts, Obstacle { next: Some(stay(at)), ..obstacle });
    }
    if claim.own().is_none() {
        let message = format!("the volume of claim {name} is not on this cluster");
        return blocked(facts, Obstacle::new("VolumeMissing", message));
    }
    match at.repository.as_deref().map(|secret| facts.bring(secret)) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(brings))) => return brings,
        Some(Err(obstacle)) => return blocked(facts, obstacle),
    }
    match &claim.source {
        None => action(Action::CreateSource),
        Some(source) if !source.is_ours => {
            let message = format!(
                "a ReplicationSource {} that Interlock did not create has the name",
                source.name
            );
            blocked(facts, Obstacle::new("NameTaken", message))
        }
        // It stays while a snapshot of it is held. One that no pin refers to is let go for that.
        Some(Source { is_terminating: true, .. }) => match facts.unpinned_snapshot() {
            Some(part) => Decision::CleanUp {
                part,
                action: leftover::Action::LetGo,
                because: "the ReplicationSource is being deleted, and no pin refers to this \
                    snapshot",
            },
            None => wait("the ReplicationSource is being deleted, and is created again"),
        },
        Some(Source { is_syncing: true, .. }) => {
            let message = format!(
                "an earlier snapshot of claim {name} is being taken; the last snapshot follows"
            );
            let found = Finding::fails(DATA_SYNCED, "Copying", message);
            facts.saying(found, wait("the previous trigger is not confirmed yet"))
        }
        // One that was for an earlier claim of that name is for this one now.
        Some(_) => action(Action::AskSource),
    }
}

/// The volume of a claim stays in place as its last snapshot.
pub fn keep(facts: &Facts, place: usize) -> Decision {
    let claim = &facts.claims[place];
    if claim.own().is_some() {
        return Decision::Leave { place, action: Action::KeepInPlace };
    }
    let message = format!("the volume of claim {} is not on this cluster", claim.name);
    let found = Finding::fails(DATA_SYNCED, "VolumeMissing", message.clone());
    facts.saying_because(
        vec![found],
        "the namespace cannot be handed over",
        Decision::rest(message),
    )
}

/// Last snapshots are being made: says what is in the way, and heals a snapshot that is gone again.
pub fn wait_for(facts: &Facts) -> Decision {
    let mut found: Option<Finding> = None;
    for (place, claim) in facts.needed() {
        if claim.last_snapshot() != LastSnapshot::Asked {
            continue;
        }
        let Some(source) = claim.own_source() else { continue };
        // Whoever mends the Secret at the hub mends it here.
        if let Some(secret) = &source.secret
            && let Ok(Some(brings)) = facts.bring(secret)
        {
            return brings;
        }
        let again = Decision::Leave { place, action: Action::AskAgain };
        if claim.confirmed_source().is_some()
            && claim.made_snapshot().is_none_or(|snapshot| snapshot.is_terminating)
        {
            return read_snapshot(source, place, again);
        }
        // Somebody deleted it while it was taken.
        if source.has_lost_snapshot {
            return again;
        }
        let said = said(facts, claim, source);
        // What is in the way is reported before what goes its way.
        if found.is_none() || said.reason != "Copying" {
            found = Some(said);
        }
    }
    let waits = wait("the last snapshots are being taken");
    match found {
        Some(found) => facts.saying(found, waits),
        None => waits,
    }
}

/// The source says that it is done, and the cache has no such snapshot: either it lags, or somebody has
/// deleted the snapshot. Then the source begins anew; the volume is closed and has all of the data.
fn read_snapshot(source: &Source, place: usize, again: Decision) -> Decision {
    match source.snapshot_read {
        // Who confirms without a snapshot has made none.
        _ if !source.names_snapshot => again,
        None => Decision::LiveRead(LiveRead::LastSnapshot(place)),
        Some(true) => wait("the cache will show the snapshot"),
        Some(false) => again,
    }
}

fn said(facts: &Facts, claim: &Claim, source: &Source) -> Finding {
    let (name, cluster) = (&claim.name, &facts.at.cluster);
    match &source.trouble {
        Some(trouble) => {
            let message = format!(
                "the last snapshot of claim {name} cannot be taken: {}. The data stays on \
                 {cluster}, and nothing is lost; if {cluster} becomes the desired cluster again, \
                 the namespace starts there again",
                trouble.message
            );
            let next = trouble.next.clone().unwrap_or_else(|| stay(&facts.at));
            Finding::fails(DATA_SYNCED, trouble.reason, message).next(next)
        }
        None => {
            let message = format!("the last snapshot of claim {name} is being taken");
            Finding::fails(DATA_SYNCED, "Copying", message)
        }
    }
}

/// What the next owner starts from: the last snapshot, the volume that stays here, or, if nothing can
/// have written to it, what it came with. None: it was written and has neither, and must not be
/// handed over.
pub fn hand_over(facts: &Facts, claim: &Claim) -> Option<HandedOver> {
    let at = &facts.at;
    let is_left_in_place = !claim.is_gone(at) && claim.is_left_in_place(at);
    if !claim.is_filled() && !is_left_in_place {
        return Some(HandedOver::AsItCame);
    }
    let own = claim.own();
    if own.is_some_and(|own| own.is_last) {
        return Some(HandedOver::NotedVolume);
    }
    // A claim that has a snapshot and whose desired cluster is this one again is here, and is not copied.
    if own.is_some_and(|own| at.stays && own.epoch == at.epoch) {
        return Some(HandedOver::VolumeHere);
    }
    let is_held = claim.made_snapshot().is_some_and(|snapshot| snapshot.is_held);
    (claim.is_saved() || is_held).then_some(HandedOver::LastSnapshot)
}

/// Whether the snapshot that a claim came with is kept in mind: its volume stays in place and is nowhere
/// else, should its owner be declared gone.
pub fn remembers(claim: &Claim, handed_over: HandedOver) -> bool {
    handed_over.is_in_place() && matches!(claim.pin, Pin::Snapshot { .. })
}

/// The next claim whose repository is to lose what earlier moves left in it. A snapshot of an earlier
/// epoch that no pin of this one refers to is never needed again: pins of later epochs are these, or
/// snapshots that are taken in this epoch or after it.
pub fn tidy(facts: &Facts) -> Option<Decision> {
    facts.needed().find_map(|(place, claim)| match claim.tidying {
        Tidying::Missing => Some(Decision::Leave { place, action: Action::Tidy }),
        Tidying::Earlier => Some(Decision::Leave { place, action: Action::TidyAgain }),
        Tidying::NotNeeded | Tidying::Asked => None,
    })
}

fn blocked(facts: &Facts, obstacle: Obstacle) -> Decision {
    let message = obstacle.message.clone();
    facts.saying(obstacle.finding(DATA_SYNCED), Decision::wait(message, ONCE_A_WHILE))
}

/// The command by which a namespace that cannot leave goes on where it is.
fn stay(at: &At) -> String {
    format!("interlock move {} --to {}", at.namespace, at.cluster)
}

fn wait(because: &str) -> Decision {
    Decision::wait(because, REQUEUE_AFTER)
}
