//! Writes of the intent: which sync is on its way, and on what it rests.

use super::on;
use super::status::failure;
use crate::objects::finalizers_with;
use crate::outside::Mover;
use crate::sync::intent::Intent;
use crate::sync::observe::Scene;
use crate::sync::{Direction, slots};
use interlock_api::names::FINALIZER_SNAPSHOTS;
use interlock_kernel::{Importance, Step};
use serde_json::json;

pub(super) fn write(scene: &Scene, keeps: bool) -> Step<Mover> {
    let task = &scene.task;
    let places = match (&scene.opened, scene.direction) {
        (Some(opened), _) => slots::places_of(opened.address()),
        (None, Direction::Source) => String::new(),
        (None, Direction::Destination) => slots::places_of(slots::COPIES),
    };
    let intent = Intent {
        tag: task.when.as_ref().ok().and_then(|when| when.tag()).map(str::to_owned),
        places,
        basis: scene.basis.clone(),
        unlock: scene.unlock(),
        ..Intent::new(&task.object, task.now)
    };
    let metadata = match keeps {
        true => json!({"finalizers": finalizers_with(&task.object, FINALIZER_SNAPSHOTS)}),
        false => json!({}),
    };
    Step::write(task.write_intent(&intent, metadata), "a sync is due")
}

/// The next attempt, later.
pub(super) fn retry(scene: &Scene, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    on(failure(scene).as_ref(), |failure| {
        let note = format!("attempt {} failed: {}", intent.attempt, failure.message);
        write_next(scene, intent.next(failure, task.now), "the sync is tried again")
            .telling(task.tells(Importance::Warning, "TransferFailed", note))
    })
}

/// The next attempt at once.
pub(super) fn renew(scene: &Scene, intent: &Intent) -> Step<Mover> {
    let next = Intent { after: None, ..intent.clone() };
    write_next(scene, next, "the spec or the Secret has changed")
}

/// The intent of the next attempt, which rests on what is so now.
fn write_next(scene: &Scene, next: Intent, because: &str) -> Step<Mover> {
    let next = Intent { basis: scene.basis.clone(), unlock: scene.unlock(), ..next };
    Step::write(scene.task.write_intent(&next, json!({})), because)
}

pub(super) fn remove(scene: &Scene) -> Step<Mover> {
    Step::write(scene.task.remove_intent(), "all objects of the sync are deleted")
}
