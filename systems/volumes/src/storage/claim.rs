//! A claim on local storage: its volume is made, bound, and let go.
//!
//! 1. The finalizer of every claim in use is put on: from here on the claim outlives its volume.
//! 2. A claim that is made of an image holds that image.
//! 3. The volume is made on the disk, under a name that has the uid of the claim in it.
//! 4. Its PersistentVolume is made, for this very claim, by uid.
//! 5. The claim names it, and then says that it is bound. The hold is dropped.
//!
//! A claim that somebody else fills is left alone until a volume names it, by uid; then it is bound
//! like any other.

mod act;
pub mod decide;
mod observe;

pub(in crate::storage) use act::VOLUME_PROTECTION;

use crate::outside::Disk;
use interlock_kernel::{Looks, Name, Step, View};

pub(super) fn step(name: &Name, view: &dyn View, looks: &Looks<Disk>) -> Step<Disk> {
    match observe::Scene::of(name, view, looks) {
        Some(scene) => act::act(&scene, decide::decide(&scene.facts())),
        None => Step::rest("the claim is not in the cache, which proves nothing"),
    }
}
