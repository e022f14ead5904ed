//! A decision about a sync as one step.

mod intent;
mod mover;
mod objects;
mod status;

use super::Direction;
use super::decide::{Decision, Next, Say, Why};
use super::intent::Intent;
use super::observe::Scene;
use super::trigger::Due;
use super::words::saying;
use crate::outside::Mover;
use interlock_kernel::Step;
use std::time::Duration;

/// How often a mover is asked that began just now: most have little to do.
const ASK_SOON: Duration = Duration::from_millis(250);
/// How often a mover is asked: its end is no news that the API brings.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often a sync that waits for a slot reads the slots again: no watch event may announce a free one.
const REQUEUE_FOR_SLOT: Duration = Duration::from_secs(10);

/// The one effect of a decision: a rest, a live read, a write of the intent, of another object or of the status, or
/// an action of the mover.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Mover> {
    let with_sync = |act: &dyn Fn(&Intent) -> Step<Mover>| on(scene.task.current(), act);
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Say(what) => say(scene, what),
        Decision::LiveRead => live_read(scene),
        Decision::WriteIntent { keeps } => intent::write(scene, keeps),
        Decision::Retry => with_sync(&|sync| intent::retry(scene, sync)),
        Decision::Renew => with_sync(&|sync| intent::renew(scene, sync)),
        Decision::RemoveIntent => intent::remove(scene),
        Decision::LetGo => objects::let_go(scene),
        Decision::MakeTarget => objects::make_target(scene),
        Decision::DeleteTarget => objects::delete_target(scene),
        Decision::TakeSnapshot => with_sync(&|sync| objects::take_snapshot(scene, sync)),
        Decision::Publish(product) => objects::publish(scene, product),
        Decision::DeleteSnapshot(place) => objects::delete_snapshot(scene, place),
        Decision::LeaveSnapshot(place) => objects::leave_snapshot(scene, place),
        Decision::TakeSlot => with_sync(&|sync| objects::take_slot(scene, sync)),
        Decision::GiveSlotBack => objects::give_slot_back(scene),
        Decision::AskMover => with_sync(&|_| mover::ask(scene)),
        Decision::Begin(how) => with_sync(&|sync| mover::begin(scene, sync, how)),
        Decision::Forget => with_sync(&mover::forget),
        Decision::ForgetEarlier => with_sync(&mover::forget_earlier),
        Decision::Finish(how) => with_sync(&|sync| status::finish(scene, sync, how)),
        Decision::GiveUp(why) => with_sync(&|sync| status::give_up(scene, sync, why)),
    }
}

/// The step about something that was decided upon, and so was seen.
fn on<T>(thing: Option<&T>, act: impl FnOnce(&T) -> Step<Mover>) -> Step<Mover> {
    thing.map_or_else(gone, act)
}

fn gone() -> Step<Mover> {
    Step::rest("the object does not exist any more")
}

fn live_read(scene: &Scene) -> Step<Mover> {
    Step::LiveRead { reads: scene.truth.clone(), because: "the cache may be behind".to_owned() }
}

fn nothing(scene: &Scene, why: Why) -> Step<Mover> {
    let because = match (why, scene.direction) {
        (Why::Terminating, _) => "the object is being deleted".to_owned(),
        (Why::Held, Direction::Source) => {
            "the object is deleted once its snapshots have no holder".to_owned()
        }
        (Why::NotDue(Next::Change), _) => {
            "the sync was given up, and nothing has changed since".to_owned()
        }
        _ => saying(scene, why).map(|saying| saying.because).unwrap_or_default(),
    };
    match at_most(scene, why) {
        Some(at_most) => Step::Wait { because, at_most },
        None => Step::Rest { because },
    }
}

/// How long it waits: some things are no news that the API brings.
fn at_most(scene: &Scene, why: Why) -> Option<Duration> {
    let task = &scene.task;
    match (why, scene.due) {
        (Why::NotDue(Next::Scheduled | Next::Minute), Due::At(then)) => {
            Duration::try_from(then.duration_since(task.now)).ok()
        }
        (Why::BacksOff, _) => {
            let left = task.current().and_then(|intent| intent.backs_off(task.now));
            Some(left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(ASK_AGAIN))
        }
        (Why::SnapshotNotReady(_), _) => scene.left_to_begin(),
        (Why::SlotsFull, _) => Some(REQUEUE_FOR_SLOT),
        (Why::Runs { .. }, _) => {
            let began = task.current().map_or(task.now, |intent| intent.began.0);
            let is_young = task.now.duration_since(began).as_secs() < 5;
            Some(if is_young { ASK_SOON } else { ASK_AGAIN })
        }
        (
            Why::NotDue(_)
            | Why::Refused
            | Why::Hindered
            | Why::NotHere
            | Why::BrokenIntent
            | Why::Held
            | Why::Terminating
            | Why::TargetNotBound,
            _,
        ) => None,
    }
}

fn say(scene: &Scene, what: Say) -> Step<Mover> {
    let Some(mut saying) = saying(scene, what.why) else { return gone() };
    if what.mends {
        saying = saying.mended();
    }
    if what.tells_ignored {
        saying = saying.telling_ignored(scene);
    }
    saying.step(&scene.task)
}
