//! What a VolumeSnapshot says of itself while its image cannot be taken.

use super::decide::Obstacle;
use crate::objects::text;
use crate::outside::Failure;
use crate::sync::images::CLASS_MISSING;
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
                "{CLASS_MISSING}: there is no VolumeSnapshotClass {class}; create it, or name one \
                 that is there"
            )
        }
        Obstacle::SourceMissing => {
            let claim = text(spec, &["source", "persistentVolumeClaimName"]);
            format!("SourceMissing: claim {claim} is not here; create it, and this goes on")
        }
        Obstacle::NotSupported => "NotSupported: local storage takes images of claims only; set \
                                   spec.source.persistentVolumeClaimName"
            .to_owned(),
    }
}
