//! One thing done to one part of what is left here.

use super::decide::Action;
use crate::kinds::{CLAIM, VOLUME};
use crate::syncer::marks::LABEL_GRANT;
use interlock_api::names::{
    ANNOTATION_RECLAIM, FINALIZER_KEEP, LABEL_SUPERSEDED_BY, hold_finalizer,
};
use interlock_kernel::metadata::{annotation, take_finalizer_off};
use interlock_kernel::{Kind, Object, Place, Write};
use serde_json::json;

/// The write. The epoch is the one that another owner has all data since.
pub(in crate::syncer) fn write(
    action: Action,
    part: &(Kind, Object),
    grant_uid: &str,
    epoch: i64,
) -> Write {
    let (kind, object) = part;
    let patch = |kind: &Kind, change| Write::patch(Place::CLUSTER, kind, object, change);
    match action {
        Action::Mark => {
            let epoch = epoch.to_string();
            patch(&CLAIM, json!({"metadata": {"labels": {LABEL_SUPERSEDED_BY: epoch}}}))
        }
        Action::Delete => Write::delete(Place::CLUSTER, kind, object),
        Action::LetGo => patch(kind, take_finalizer_off(object, &hold_finalizer(grant_uid))),
        Action::Unkeep => patch(&CLAIM, take_finalizer_off(object, FINALIZER_KEEP)),
        // With the policy that it had.
        Action::GiveBack => {
            let policy = annotation(object, ANNOTATION_RECLAIM).unwrap_or("Delete");
            let change = json!({
                "metadata": {
                    "labels": {LABEL_GRANT: null, LABEL_SUPERSEDED_BY: null},
                    "annotations": {ANNOTATION_RECLAIM: null},
                },
                "spec": {"persistentVolumeReclaimPolicy": policy},
            });
            patch(&VOLUME, change)
        }
    }
}
