//! A PersistentVolume of local storage: for whom it is, and what becomes of it after them.
//!
//! A volume is deleted only when its claim, by uid, is gone for certain. First it is marked
//! `Released`, over the version in which it was for that claim and was to be deleted: whoever hands
//! it to another claim writes to the same object, so one of the two is refused. Only then is it
//! deleted on the disk, and only when nothing of it is left does its record go.

mod act;
pub mod decide;
mod observe;

use crate::outside::Disk;
use interlock_kernel::{Looks, Name, Step, View};

pub(super) fn step(name: &Name, view: &dyn View, looks: &Looks<Disk>) -> Step<Disk> {
    match observe::Scene::of(name, view, looks) {
        Some(scene) => act::act(&scene, decide::decide(&scene.facts())),
        None => Step::rest("there is no such volume of local storage in the cache"),
    }
}
