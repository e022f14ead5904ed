//! Steps that sources and destinations have in common.

use super::intent::Intent;
use super::repository::Flaw;
use super::task::{Saying, Task};
use super::trigger::Due;
use super::{images, slots};
use crate::objects::{is_deleting, take_finalizer_off};
use crate::outside::{Mover, MoverDeed, Sync};
use interlock_api::names::FINALIZER_IMAGES;
use interlock_api::volumes::condition::HEALTHY;
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Address, Deed, Effect, Event, Importance, Object, Read, Step};
use jiff::SignedDuration;
use serde_json::json;
use std::time::Duration;

/// How often a mover is asked that began just now: most have little to do.
const ASK_SOON: Duration = Duration::from_millis(250);
/// How often a mover is asked: its end is no news that the API brings.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often somebody who was not told looks for a free place.
pub(crate) const LOOK_FOR_PLACE: Duration = Duration::from_secs(10);

/// How long nobody may begin with an image before that is said.
const BEGUN_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// How long the next attempt is still to wait.
pub(crate) fn back_off_left(task: &Task, intent: &Intent) -> Duration {
    let left = intent.backs_off(task.now).and_then(|left| Duration::try_from(left).ok());
    left.unwrap_or(ASK_AGAIN)
}

pub(crate) fn perform(deed: MoverDeed, because: &str) -> Step<Mover> {
    let because = because.to_owned();
    Step::Act(Box::new(Effect { deed: Deed::Outside(deed), because, event: None }))
}

/// How far is it?
pub(crate) fn ask(task: &Task) -> Step<Mover> {
    let reads = task.questions().into_iter().map(Read::Ask).collect();
    Step::Look { reads, because: "only the mover knows how far it is".to_owned() }
}

/// The mover first, then the object and its images: what is still there after a mover was asked was
/// there when it answered. And one object besides, if the sync rests on that.
pub(crate) fn look(task: &Task, besides: Option<Address>) -> Step<Mover> {
    let mut reads: Vec<Read<Mover>> = task.questions().into_iter().map(Read::Ask).collect();
    reads.push(Read::Object(task.address()));
    if let Some(intent) = task.current() {
        reads.push(Read::Object(images::address_of(task.namespace(), &intent.image)));
    }
    reads.extend(besides.map(Read::Object));
    if is_deleting(&task.object) {
        let (place, kind, namespace) = images::list_of(task);
        reads.push(Read::List { place, kind, namespace });
    }
    Step::Look { reads, because: "the cache may be behind".to_owned() }
}

pub(crate) fn forget_earlier(intent: &Intent) -> Step<Mover> {
    match intent.earlier_sync_id() {
        Some(earlier) => perform(MoverDeed::Forget(earlier), "another attempt came after it"),
        None => Step::rest("there was no attempt before"),
    }
}

pub(crate) fn forget(intent: &Intent) -> Step<Mover> {
    perform(MoverDeed::Forget(intent.sync_id()), "what became of the sync is in the status")
}

pub(crate) fn delete_image(task: &Task, spare: Option<&Object>) -> Step<Mover> {
    let Some(image) = spare else { return Step::rest("no image is left") };
    let (write, because) = images::let_go(image, task.uid());
    Step::write(write, because)
}

/// Takes the finalizer off that kept an object for its images.
pub(crate) fn let_go(task: &Task) -> Step<Mover> {
    let write = take_finalizer_off(&task.kind, &task.object, FINALIZER_IMAGES);
    Step::write(write, "no image of it is left")
}

/// The intent cannot be read, and says so.
pub(crate) fn broken_intent(task: &Task) -> Step<Mover> {
    let flaw = task.intent.as_ref().err().cloned().unwrap_or_default();
    let what =
        format!("annotation interlock.dev/sync cannot be read ({flaw}); remove it to begin anew");
    task.wait(task.hindered(&Flaw::new("BrokenIntent", what)), None)
}

/// The image is not ready; if it cannot be taken, what the storage says of that; and if nobody takes
/// it, that.
pub(crate) fn wait_for_image(task: &Task, mut say: Saying, image: Option<&Object>) -> Step<Mover> {
    let began = task.current().map_or(task.now, |intent| intent.began.0);
    let left = Duration::try_from(BEGUN_WITHIN - task.now.duration_since(began));
    let left = left.ok().filter(|left| !left.is_zero());
    let flaw = image.and_then(|image| {
        let neglected = || images::neglected(image).filter(|_| left.is_none());
        images::flaw_of(image).or_else(neglected)
    });
    match flaw {
        Some(Flaw { reason, message }) => {
            say.event = Some(task.tells(Importance::Warning, reason, message.clone()));
            say.findings.push(Finding::fails(HEALTHY, reason, message));
        }
        None => say.findings.extend(task.mended()),
    }
    task.wait(say, left)
}

/// Nothing is to be done until the next sync is due.
pub(crate) fn at_rest(task: &Task, due: Due, accepted: (Finding, Option<Event>)) -> Step<Mover> {
    // What went wrong stays where it was said.
    if due == Due::WithAChange && !task.is_paused {
        return Step::rest("it was given up, and nothing has changed since");
    }
    let at_most = match due {
        Due::At(then) if !task.is_paused => Duration::try_from(then.duration_since(task.now)).ok(),
        Due::Now | Due::At(_) | Due::WithATag | Due::WithAChange | Due::Never => None,
    };
    task.wait(task.idle(due).and(accepted), at_most)
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

/// The next attempt at once: what the last one failed by may be mended.
pub(crate) fn renew(task: &Task, intent: Intent, basis: &str) -> Step<Mover> {
    let next = Intent { basis: basis.to_owned(), after: None, ..intent };
    Step::write(task.write_intent(&next, json!({})), "what it rests on has changed")
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
