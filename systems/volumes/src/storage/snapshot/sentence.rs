//! What a VolumeSnapshot says of itself while its snapshot cannot be taken.

use super::decide::Obstacle;
use crate::objects::text;
use crate::outside::Failure;
use crate::sync::snapshots::CLASS_MISSING;
use kube_core::DynamicObject;

/// A failure of the disk.
pub(super) fn of_failure(failure: &Failure) -> String {
    format!("{}: {}", failure.reason.word(), failure.message)
}

/// What keeps it waiting.
pub(super) fn of_obstacle(snapshot: &DynamicObject, obstacle: Obstacle) -> String {
    let spec = &snapshot.data["spec"];
    match obstacle {
        Obstacle::ClassMissing => {
            let class = text(spec, &["volumeSnapshotClassName"]);
            format!(
                "{CLASS_MISSING}: VolumeSnapshotClass {class} does not exist; create it, or name \
                 one that exists"
            )
        }
        Obstacle::SourceMissing => {
            let claim = text(spec, &["source", "persistentVolumeClaimName"]);
            format!("SourceMissing: claim {claim} does not exist; create it")
        }
        Obstacle::NotSupported => {
            "NotSupported: local storage takes snapshots of claims only; set \
             spec.source.persistentVolumeClaimName"
                .to_owned()
        }
    }
}
