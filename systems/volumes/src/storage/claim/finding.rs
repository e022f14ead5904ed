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
            ("ClassMissing", format!("StorageClass {class} does not exist; create it"))
        }
        Obstacle::NotSupported => {
            let what = scene.unsupported().unwrap_or_default();
            ("NotSupported", format!("local storage does not support {what}"))
        }
        Obstacle::SourceMissing => {
            ("SourceMissing", format!("VolumeSnapshot {source} does not exist; create it"))
        }
        Obstacle::SnapshotGone => (
            "SnapshotGone",
            format!("VolumeSnapshot {source} is being deleted; name another snapshot in the claim"),
        ),
        Obstacle::Expansion => {
            let message = "local volumes cannot be expanded; move the data to a larger claim";
            (EXPANSION, message.to_owned())
        }
        Obstacle::SizeMismatch => {
            let (needs, asks) = (readable(scene.snapshot_bytes()), readable(scene.capacity()));
            let advice = "create the claim again with a larger request";
            ("SizeMismatch", format!("the claim needs {needs} and requests {asks}; {advice}"))
        }
    };
    Finding::fails(HEALTHY, reason, message)
}
