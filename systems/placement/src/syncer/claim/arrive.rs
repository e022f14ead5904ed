//! The next step that gives a claim its volume, with all of its data, on the cluster that it arrives
//! at.

use super::facts::{Bound, Destination, Facts as Claim, Obstacle, Own, Pin, Progress};
use crate::syncer::decide::{Decision, LiveRead};
use crate::syncer::facts::Facts;
use crate::syncer::tenancy::Volume;
use interlock_api::placement::condition::FILLED;
use interlock_kernel::conditions::Finding;
use serde::Serialize;
use std::time::Duration;

/// How soon a step is tried again that waits for something to go.
const REQUEUE_AFTER: Duration = Duration::from_secs(5);
/// How soon it is reported again how far the data has come.
const TELL_AGAIN: Duration = Duration::from_secs(1);

/// One write by which a claim gets its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Action {
    /// This epoch takes the volume that is here, which is kept from now on, or was before.
    TakeOver {
        /// Whether it has to be kept by the same write.
        keep: bool,
    },
    /// The claim at the hub must not vanish first.
    PutFinalizer,
    /// A claim that was never used gets a new volume.
    Create,
    /// The snapshot is asked for.
    CreateDestination,
    /// The claim is made, to be filled from the snapshot.
    CreateFilled,
    /// The volume of an earlier epoch stays when its claim is being deleted.
    KeepVolume,
    /// The claim of an earlier epoch may go.
    Unkeep,
    /// It is being deleted.
    Delete,
    /// The snapshot is asked for once more.
    BringAgain,
}

/// The next write that gives the claim at this place its volume.
pub fn make(facts: &Facts, place: usize) -> Decision {
    let claim = &facts.claims[place];
    let action = |action| Decision::Arrive { place, action };
    if claim.is_copied() {
        return fill(facts, place);
    }
    if let Some(own) = claim.own() {
        return action(Action::TakeOver { keep: !own.is_kept && !own.is_terminating });
    }
    match claim.at_hub {
        None => Decision::rest("the claim at the hub is not in the cache"),
        Some(at_hub) if !at_hub.has_finalizer => action(Action::PutFinalizer),
        Some(_) => action(Action::Create),
    }
}

/// The next write that fills a claim from its snapshot.
fn fill(facts: &Facts, place: usize) -> Decision {
    let claim = &facts.claims[place];
    let action = |action| Decision::Arrive { place, action };
    if let Some(own) = claim.own().filter(|own| own.epoch < facts.at.epoch) {
        return make_room(place, own);
    }
    match claim.at_hub {
        None => return Decision::rest("the claim at the hub is not in the cache"),
        Some(at_hub) if !at_hub.has_finalizer => return action(Action::PutFinalizer),
        Some(_) => {}
    }
    match claim.secret().map(|secret| facts.bring(secret)) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(brings))) => return brings,
        Some(Err(obstacle)) => {
            let message = format!("claim {} is not filled: {}", claim.name, obstacle.message);
            let found = Obstacle { message: message.clone(), ..obstacle }.finding(FILLED);
            return facts.saying(found, Decision::wait(message, REQUEUE_AFTER));
        }
    }
    match claim.own_destination() {
        None => action(Action::CreateDestination),
        Some(_) => action(Action::CreateFilled),
    }
}

/// The claim of an earlier epoch goes, so that its name is free; its volume stays. In this order: the
/// volume is kept whatever happens to its claim, the claim may go, it goes.
fn make_room(place: usize, own: &Own) -> Decision {
    let action = |action| Decision::Arrive { place, action };
    let wait = |because: &str| Decision::wait(because, REQUEUE_AFTER);
    let go = || action(if own.is_kept { Action::Unkeep } else { Action::Delete });
    if own.is_terminating && !own.is_kept {
        return wait("the claim of an earlier epoch is being deleted; its volume stays");
    }
    if !own.is_bound && !own.is_terminating {
        // Nothing was ever written to it: whoever fills it undoes what was begun.
        return go();
    }
    if own.is_being_filled {
        return wait("the volume of an earlier epoch is still used by the claim that filled it");
    }
    match own.volume {
        Bound::Unseen => wait("the volume of an earlier epoch is not in the cache"),
        Bound::Terminating => action(Action::KeepVolume),
        Bound::Nothing | Bound::Staying => go(),
    }
}

/// Data is on its way: how far it has come is reported now and then, and what is in its way at once.
pub fn tell(facts: &Facts) -> Decision {
    // Whoever mends the Secret of a repository at the hub mends it here.
    let secrets = facts.needed().filter_map(|(_, claim)| claim.secret());
    for secret in secrets {
        if let Ok(Some(brings)) = facts.bring(secret) {
            return brings;
        }
    }
    let is_filling = |claim: &Claim| claim.volume(&facts.at) == Ok(Volume::Filling);
    let mut filling = facts.needed().filter(|(_, claim)| is_filling(claim));
    if let Some(step) = filling.find_map(|(place, claim)| bring_again(place, claim)) {
        return step;
    }
    let found = in_the_way(facts);
    let news: Vec<(usize, Progress)> = facts
        .needed()
        .filter(|(_, claim)| is_filling(claim))
        .filter_map(|(place, claim)| Some((place, news(claim)?)))
        .collect();
    let otherwise = match news.is_empty() || !facts.is_ours_to_say() {
        true => Decision::wait(found.message.clone(), TELL_AGAIN),
        false => Decision::TellProgress(news),
    };
    facts.saying(found, otherwise)
}

/// Asks once more for a snapshot that was brought here and then deleted, before the claim had its data:
/// where it came from, it is held until then. None: it is on its way, or here.
fn bring_again(place: usize, claim: &Claim) -> Option<Decision> {
    let destination = claim.own_destination()?;
    let again = Decision::Arrive { place, action: Action::BringAgain };
    match destination {
        Destination { has_arrived: false, has_lost_snapshot, .. } => {
            has_lost_snapshot.then_some(again)
        }
        Destination { names_snapshot: false, .. } | Destination { is_snapshot_here: true, .. } => {
            None
        }
        Destination { snapshot_read: None, .. } => {
            Some(Decision::LiveRead(LiveRead::ArrivedSnapshot(place)))
        }
        // One that is deleted and held is still what the claim is filled from.
        Destination { snapshot_read: Some(true), .. } => None,
        Destination { snapshot_read: Some(false), .. } => Some(again),
    }
}

/// Why claims are not filled.
fn in_the_way(facts: &Facts) -> Finding {
    let obstacle = facts.needed().find_map(|(_, claim)| match claim.volume(&facts.at) {
        Ok(Volume::Filling) => delay(claim),
        Ok(Volume::Filled | Volume::Missing) => None,
        Err(obstacle) => Some(obstacle),
    });
    match obstacle {
        Some(obstacle) => obstacle.finding(FILLED),
        None => Finding::fails(FILLED, "Filling", "the data is being copied"),
    }
}

/// What keeps the data from arriving; None: it is on its way.
fn delay(claim: &Claim) -> Option<Obstacle> {
    let Pin::Snapshot { place, epoch, .. } = &claim.pin else { return None };
    let trouble = claim.own_destination()?.trouble.as_ref()?;
    let message = format!(
        "claim {} is not filled: {}. Nothing is lost: the snapshot of epoch {epoch} is {place}, \
         and its source volume is unchanged",
        claim.name, trouble.message
    );
    Some(Obstacle { message, ..trouble.clone() })
}

/// How far its data has come, if that is news.
fn news(claim: &Claim) -> Option<Progress> {
    let Pin::Snapshot { bytes: all, .. } = claim.pin else { return None };
    let destination = claim.own_destination()?;
    let bytes = if destination.has_arrived { all } else { destination.bytes? };
    let of_bytes = destination.of_bytes.or(Some(all).filter(|all| *all > 0));
    let progress = Progress { bytes, of_bytes };
    (claim.reported != Some(progress) && !claim.is_reported_lately).then_some(progress)
}
