//! What a claim says of itself while it cannot be filled.

use super::decide::Obstacle;
use super::observe::{Scene, prime_name};
use crate::filed::source_of;
use crate::objects::{HEALTHY, name_of, text};
use interlock_kernel::conditions::Finding;
use interlock_quantity::readable;

/// An obstacle as a condition of the claim, and the reason of the event that goes with it.
pub(super) fn of_obstacle(scene: &Scene, obstacle: Obstacle) -> (Finding, &'static str) {
    const ERROR: &str = "VolSyncPopulatorError";
    let source = source_of(&scene.claim).map(|(_, _, name)| name).unwrap_or_default();
    let (reason, event, message) = match obstacle {
        Obstacle::DestinationMissing => (
            "DestinationMissing",
            "VolSyncPopulatorReplicationDestinationMissing",
            format!("there is no ReplicationDestination {source}; create it, and this goes on"),
        ),
        Obstacle::NoLatestImage => (
            "NoLatestImage",
            "VolSyncPopulatorReplicationDestinationNoLatestImage",
            format!(
                "ReplicationDestination {source} has no image yet; see `kubectl describe \
                 replicationdestination {source}`"
            ),
        ),
        Obstacle::DestinationMakesNone => (
            "CopyMethodDirect",
            ERROR,
            format!(
                "ReplicationDestination {source} makes no images; set its copyMethod to Snapshot"
            ),
        ),
        Obstacle::ClassMissing => {
            let class = text(&scene.claim.data, &["spec", "storageClassName"]);
            ("ClassMissing", ERROR, format!("there is no StorageClass {class}; create it"))
        }
        Obstacle::ImageEmpty => {
            let image = scene.image.as_deref().map(name_of).unwrap_or_default();
            let message = format!(
                "image {image} of ReplicationDestination {source} has nothing in it; if that is \
                 meant, annotate the claim: interlock.dev/allow-empty=true"
            );
            ("ImageEmpty", ERROR, message)
        }
        Obstacle::SizeMismatch => {
            let (needs, asks) = (readable(scene.image_bytes()), readable(scene.capacity()));
            let message =
                format!("needs {needs}, and asks for {asks}; make the claim again, larger");
            ("SizeMismatch", ERROR, message)
        }
        Obstacle::PouringFails => {
            let (reason, message) = scene.failure().unwrap_or_default();
            ("PouringFails", ERROR, format!("{reason}: {message}"))
        }
        Obstacle::NameTaken => {
            let name = prime_name(&scene.claim);
            ("NameTaken", ERROR, format!("a claim {name} of somebody else is in the way"))
        }
    };
    (Finding::fails(HEALTHY, reason, message), event)
}
