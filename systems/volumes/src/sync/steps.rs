//! Steps that sources and destinations have in common.

use super::intent::Intent;
use super::slots;
use super::task::{Saying, Task};
use crate::outside::{Mover, MoverDeed, Sync};
use interlock_kernel::{Deed, Effect, Importance, Step};
use serde_json::json;
use std::time::Duration;

/// How often a mover is asked that began just now: most have little to do.
const ASK_SOON: Duration = Duration::from_millis(250);
/// How often a mover is asked: its end is no news that the API brings.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often somebody who was not told looks for a free place.
pub(crate) const LOOK_FOR_PLACE: Duration = Duration::from_secs(10);

/// How long the next attempt is still to wait.
pub(crate) fn back_off_left(task: &Task, intent: &Intent) -> Duration {
    let left = intent.backs_off(task.now).and_then(|left| Duration::try_from(left).ok());
    left.unwrap_or(ASK_AGAIN)
}

pub(crate) fn perform(deed: MoverDeed, because: &str) -> Step<Mover> {
    let because = because.to_owned();
    Step::Act(Box::new(Effect { deed: Deed::Outside(deed), because, event: None }))
}

pub(crate) fn take_slot(task: &Task, intent: &Intent, slot: &slots::Slot) -> Step<Mover> {
    let slots::Slot::Free(place) = slot else { return Step::rest("no place is free") };
    let write = slots::take(&intent.places, *place, (&intent.id, &task.title()));
    Step::write(write, "a place at the repository is free")
}

pub(crate) fn give_slot_back(slot: &slots::Slot) -> Step<Mover> {
    match slot {
        slots::Slot::Mine(lease) => {
            Step::write(slots::give_back(lease), "others may have the place at the repository")
        }
        slots::Slot::NotNeeded | slots::Slot::Free(_) | slots::Slot::Full => {
            Step::rest("it has no place at the repository")
        }
    }
}

/// The next attempt of a sync whose mover failed.
pub(crate) fn retry(
    task: &Task,
    intent: &Intent,
    (mover, basis): (Option<&Sync>, &str),
) -> Step<Mover> {
    let Some(Sync::Failed(failure)) = mover else { return Step::rest("it did not fail") };
    let next = Intent { basis: basis.to_owned(), ..intent.next(failure, task.now) };
    let note = format!("attempt {} failed: {}", intent.attempt, failure.message);
    Step::write(task.write_intent(&next, json!({})), "it may go well another time")
        .telling(task.tells(Importance::Warning, "TransferFailed", note))
}

/// The one status write of a sync that is over.
pub(crate) fn over(task: &Task, say: Saying) -> Step<Mover> {
    let step = Step::write(task.write_status(say.status, &say.findings), say.because);
    match say.event {
        Some(event) => step.telling(event),
        None => step,
    }
}

pub(crate) fn ask_after(task: &Task, intent: &Intent) -> Duration {
    let age = task.now.duration_since(intent.began.0).as_secs();
    if age < 5 { ASK_SOON } else { ASK_AGAIN }
}
