//! What a claim says of itself while it has no volume, or cannot get a larger one.

use super::decide::Obstacle;
use super::observe::{EXPANSION, Scene};
use crate::filed::source_of;
use crate::objects::{HEALTHY, text};
use crate::outside::Failure;
use interlock_kernel::conditions::Finding;
use interlock_quantity::readable;

/// A failure of the disk as a condition of the claim.
pub(super) fn of_failure(failure: &Failure) -> Finding {
    Finding::fails(HEALTHY, failure.reason.word(), failure.message.clone())
}

/// An obstacle as a condition of the claim.
pub(super) fn of_obstacle(scene: &Scene, obstacle: Obstacle) -> Finding {
    let source = source_of(&scene.claim).map(|(_, _, name)| name).unwrap_or_default();
    let (reason, message) = match obstacle {
        Obstacle::ClassMissing => {
            let class = text(&scene.claim.data, &["spec", "storageClassName"]);
            (
                "ClassMissing",
                format!("there is no StorageClass {class}; create it, and this goes on"),
            )
        }
        Obstacle::NotSupported => {
            let what = scene.unsupported().unwrap_or_default();
            ("NotSupported", format!("local storage does not have {what}"))
        }
        Obstacle::SourceMissing => (
            "SourceMissing",
            format!("VolumeSnapshot {source} is not here; create it, and this goes on"),
        ),
        Obstacle::ImageGone => (
            "ImageGone",
            format!("VolumeSnapshot {source} is being deleted; make the claim of another"),
        ),
        Obstacle::Expansion => {
            let message = "local volumes do not grow; move the data to a claim that is larger";
            (EXPANSION, message.to_owned())
        }
        Obstacle::SizeMismatch => {
            let (needs, asks) = (readable(scene.image_bytes()), readable(scene.capacity()));
            let advice = "make the claim again with a larger request";
            ("SizeMismatch", format!("needs {needs}, and asks for {asks}; {advice}"))
        }
    };
    Finding::fails(HEALTHY, reason, message)
}
