//! What is here of a namespace, part by part.

use super::decide::Part;
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, VOLUME, VOLUMES_BY_GRANT};
use crate::syncer::copying::asked;
use crate::syncer::marks::{from_uid, is_ours};
use crate::syncer::observe::Sight;
use interlock_api::names::{ANNOTATION_EPOCH, FINALIZER_KEEP, LABEL_SUPERSEDED_BY, hold_finalizer};
use interlock_api::placement::{Image, Pin};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, label, uid_of};
use interlock_kernel::{Kind, Object, Place};

/// All parts, in the order in which they go. The namespace is ours, and so are all images in it; of
/// everything else only what we made.
pub(in crate::syncer) fn observe(sight: &Sight<'_>) -> (Vec<Part>, Vec<(Kind, Object)>) {
    if !sight.is_noted_for_us() {
        return (Vec::new(), Vec::new());
    }
    let hold = hold_finalizer(sight.grant_uid());
    let within = |kind: &Kind| sight.view.list(Place::CLUSTER, kind, Some(sight.name)).into_iter();
    let ours = |kind: &Kind| within(kind).filter(|found| is_ours(found, sight.name));
    let mut parts: Vec<(Part, (Kind, Object))> = Vec::new();
    if sight.syncer.is_copying {
        parts.extend(ours(&DESTINATION).map(|found| {
            let part = Part::Destination {
                is_going: is_deleting(&found),
                is_held: has_finalizer(&found, &hold),
                is_asked: asked(&found).is_some(),
                claim: from_uid(&found).map(str::to_owned),
            };
            (part, (DESTINATION, found))
        }));
        parts.extend(ours(&SOURCE).map(|found| {
            let is_held = has_finalizer(&found, &hold);
            (Part::Source { is_going: is_deleting(&found), is_held }, (SOURCE, found))
        }));
        parts.extend(within(&SNAPSHOT).map(|found| {
            let part = Part::Image {
                is_going: is_deleting(&found),
                is_held: has_finalizer(&found, &hold),
                is_pinned: is_pinned(sight, &found),
                uid: uid_of(&found).to_owned(),
            };
            (part, (SNAPSHOT, found))
        }));
    }
    parts.extend(ours(&CLAIM).map(|found| {
        let part = Part::Claim {
            is_going: is_deleting(&found),
            is_kept: has_finalizer(&found, FINALIZER_KEEP),
            is_marked: label(&found, LABEL_SUPERSEDED_BY).is_some(),
        };
        (part, (CLAIM, found))
    }));
    parts.extend(kept_volumes(sight).into_iter().map(|found| {
        let epoch = annotation(&found, ANNOTATION_EPOCH).and_then(|epoch| epoch.parse().ok());
        (Part::Volume { epoch }, (VOLUME, found))
    }));
    parts.into_iter().unzip()
}

/// The volumes of earlier epochs that were kept here without their claims.
fn kept_volumes(sight: &Sight<'_>) -> Vec<Object> {
    if !sight.syncer.is_copying {
        return Vec::new();
    }
    let ours = sight.view.find(Place::CLUSTER, &VOLUMES_BY_GRANT, sight.name);
    ours.into_iter().filter(|volume| label(volume, LABEL_SUPERSEDED_BY).is_some()).collect()
}

/// Whether the grant refers to an image.
fn is_pinned(sight: &Sight<'_>, image: &Object) -> bool {
    let Some(grant) = &sight.grant else { return true };
    let last = grant.status.claims.iter().filter_map(|claim| claim.last_image.as_ref());
    let is_it = |pin: &Pin| match &pin.image {
        Image::VolumeSnapshot { uid: pinned, .. } => pinned == uid_of(image),
        Image::Restic { .. } | Image::InPlace { .. } | Image::Fresh {} => false,
    };
    grant.status.pins.iter().chain(last).any(is_it)
}
