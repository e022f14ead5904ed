//! A VolumeSnapshot of a local volume: its image is taken, described, and deleted.
//!
//! 1. The finalizer is put on, so that it outlives its image.
//! 2. Its content is made: the record of which volume the image is taken of, for good.
//! 3. The image is taken on the disk, under a name that has the uid of the VolumeSnapshot in it.
//! 4. What is in the image is noted on the VolumeSnapshot, and only then is it called ready: whoever
//!    sees that it is ready can see what is in it.
//!
//! A VolumeSnapshot that is deleted stays until nobody holds it. No hold can come to one that is
//! being deleted, so what the cache shows of its holds is the last word.

mod act;
pub mod decide;
mod observe;
mod orphan;

use crate::outside::Disk;
use interlock_kernel::{Looks, Name, Step, View};

pub(super) fn step(name: &Name, view: &dyn View, looks: &Looks<Disk>) -> Step<Disk> {
    if let Some(step) = orphan::step(name, view, looks) {
        return step;
    }
    match observe::Scene::of(name, view, looks) {
        Some(scene) => act::act(&scene, decide::decide(&scene.facts())),
        None => Step::rest("the image is not in the cache, which proves nothing"),
    }
}
