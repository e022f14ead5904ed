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
            format!("ReplicationDestination {source} does not exist; create it"),
        ),
        Obstacle::NoLatestImage => (
            "NoLatestImage",
            "VolSyncPopulatorReplicationDestinationNoLatestImage",
            format!(
                "ReplicationDestination {source} has no snapshot yet; see `kubectl describe \
                 replicationdestination {source}`"
            ),
        ),
        Obstacle::DestinationMakesNone => (
            "CopyMethodDirect",
            ERROR,
            format!(
                "ReplicationDestination {source} makes no snapshots; set its copyMethod to Snapshot"
            ),
        ),
        Obstacle::ClassMissing => {
            let class = text(&scene.claim.data, &["spec", "storageClassName"]);
            ("ClassMissing", ERROR, format!("StorageClass {class} does not exist; create it"))
        }
        Obstacle::SnapshotEmpty => {
            let snapshot = scene.snapshot.as_deref().map(name_of).unwrap_or_default();
            let message = format!(
                "snapshot {snapshot} of ReplicationDestination {source} is empty; if that is \
                 intended, annotate the claim: interlock.dev/allow-empty=true"
            );
            ("SnapshotEmpty", ERROR, message)
        }
        Obstacle::SizeMismatch => {
            let (needs, asks) = (readable(scene.snapshot_bytes()), readable(scene.capacity()));
            let message = format!(
                "the claim needs {needs} and requests {asks}; create the claim again with a \
                 larger request"
            );
            ("SizeMismatch", ERROR, message)
        }
        Obstacle::PouringFails => {
            let (reason, message) = scene.failure().unwrap_or_default();
            ("PouringFails", ERROR, format!("{reason}: {message}"))
        }
        Obstacle::NameTaken => {
            let name = prime_name(&scene.claim);
            (
                "NameTaken",
                ERROR,
                format!("a claim {name} that Interlock did not create has the name"),
            )
        }
    };
    (Finding::fails(HEALTHY, reason, message), event)
}
