//! What is here of a namespace, part by part.

use super::decide::Part;
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, VOLUME, VOLUMES_BY_GRANT};
use crate::syncer::copying::asked;
use crate::syncer::marks::{from_uid, is_ours};
use crate::syncer::observe::StepInputs;
use interlock_api::names::{ANNOTATION_EPOCH, FINALIZER_KEEP, LABEL_SUPERSEDED_BY, hold_finalizer};
use interlock_api::placement::{Pin, Snapshot};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, label, uid_of};
use interlock_kernel::{Kind, Object, Place};

/// All parts, in the order in which they go. The namespace is ours, and so are all snapshots in it; of
/// everything else only what we made.
pub(in crate::syncer) fn observe(inputs: &StepInputs<'_>) -> (Vec<Part>, Vec<(Kind, Object)>) {
    if !inputs.is_noted_for_us() {
        return (Vec::new(), Vec::new());
    }
    let hold = hold_finalizer(inputs.grant_uid());
    let within =
        |kind: &Kind| inputs.view.list(Place::CLUSTER, kind, Some(inputs.name)).into_iter();
    let ours = |kind: &Kind| within(kind).filter(|found| is_ours(found, inputs.name));
    let mut parts: Vec<(Part, (Kind, Object))> = Vec::new();
    if inputs.syncer.is_copying {
        parts.extend(ours(&DESTINATION).map(|found| {
            let part = Part::Destination {
                is_terminating: is_deleting(&found),
                is_held: has_finalizer(&found, &hold),
                is_asked: asked(&found).is_some(),
                claim: from_uid(&found).map(str::to_owned),
            };
            (part, (DESTINATION, found))
        }));
        parts.extend(ours(&SOURCE).map(|found| {
            let is_held = has_finalizer(&found, &hold);
            (Part::Source { is_terminating: is_deleting(&found), is_held }, (SOURCE, found))
        }));
        parts.extend(within(&SNAPSHOT).map(|found| {
            let part = Part::Snapshot {
                is_terminating: is_deleting(&found),
                is_held: has_finalizer(&found, &hold),
                is_pinned: is_pinned(inputs, &found),
                uid: uid_of(&found).to_owned(),
            };
            (part, (SNAPSHOT, found))
        }));
    }
    parts.extend(ours(&CLAIM).map(|found| {
        let part = Part::Claim {
            is_terminating: is_deleting(&found),
            is_kept: has_finalizer(&found, FINALIZER_KEEP),
            is_marked: label(&found, LABEL_SUPERSEDED_BY).is_some(),
        };
        (part, (CLAIM, found))
    }));
    parts.extend(kept_volumes(inputs).into_iter().map(|found| {
        let epoch = annotation(&found, ANNOTATION_EPOCH).and_then(|epoch| epoch.parse().ok());
        (Part::Volume { epoch }, (VOLUME, found))
    }));
    parts.into_iter().unzip()
}

/// The volumes of earlier epochs that were kept here without their claims.
fn kept_volumes(inputs: &StepInputs<'_>) -> Vec<Object> {
    if !inputs.syncer.is_copying {
        return Vec::new();
    }
    let ours = inputs.view.find(Place::CLUSTER, &VOLUMES_BY_GRANT, inputs.name);
    ours.into_iter().filter(|volume| label(volume, LABEL_SUPERSEDED_BY).is_some()).collect()
}

/// Whether the grant refers to a snapshot.
fn is_pinned(inputs: &StepInputs<'_>, snapshot: &Object) -> bool {
    let Some(grant) = &inputs.grant else { return true };
    let last = grant.status.claims.iter().filter_map(|claim| claim.last_snapshot.as_ref());
    let is_it = |pin: &Pin| match &pin.snapshot {
        Snapshot::VolumeSnapshot { uid: pinned, .. } => pinned == uid_of(snapshot),
        Snapshot::Restic { .. } | Snapshot::InPlace { .. } | Snapshot::Fresh {} => false,
    };
    grant.status.pins.iter().chain(last).any(is_it)
}
