//! The claims that a grant lists, each with all that is here of it.

use super::facts::{
    At, AtHub, Binding, Bound, Destination, Facts, Here, ImageHere, Own, Pin, Progress, Source,
    Tidying,
};
use super::objects::{class_wanted, image_class, is_on, noted_epoch, place_of};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, STORAGE_CLASS, VOLUME};
use crate::record::GrantRecord;
use crate::syncer::copying::{
    asked, confirmed, destination_name, has_given_up, is_arrival, is_final, is_syncing,
    is_through_repository, secret_of, source_name, tidy_name, tidy_tag, told, told_number, trouble,
};
use crate::syncer::marks::{ANNOTATION_LAST, from_uid, is_ours};
use crate::syncer::observe::Sight;
use interlock_api::names::{FINALIZER_KEEP, FINALIZER_POPULATE, LOCAL_DRIVER, hold_finalizer};
use interlock_api::placement::{self, Claim, Image};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, Kind, Name, Object, Place, View};
use kube_core::DynamicObject;

/// How often it is told, at most, how far the data has come.
const TOLD_EVERY_SECONDS: i64 = 1;

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// A claim that the grant lists, with the objects that are about it.
#[derive(Debug)]
pub(crate) struct ClaimSeen {
    /// As the grant lists it.
    pub(in crate::syncer) listed: Claim,
    /// What it starts from.
    pub(in crate::syncer) pin: Option<placement::Pin>,
    /// The claim at the hub, of this very uid.
    pub(in crate::syncer) at_hub: Option<Object>,
    /// Whatever has its name on the cluster.
    pub(in crate::syncer) here: Option<Object>,
    /// The volume that this is bound to.
    pub(in crate::syncer) volume: Option<Object>,
    /// Whatever takes images of it here.
    pub(in crate::syncer) source: Option<Object>,
    /// The image that the source says it made last.
    pub(in crate::syncer) image: Option<Object>,
    /// Whatever brings the image of this epoch here.
    pub(in crate::syncer) destination: Option<Object>,
    /// Whatever removes what earlier moves left in a repository.
    pub(in crate::syncer) tidying: Option<Object>,
    /// The class of images of the volume that is here.
    pub(in crate::syncer) class_here: &'static str,
    /// The class of images of the volume that it is to have.
    pub(in crate::syncer) class_wanted: &'static str,
}

/// All claims that the grant lists.
pub(in crate::syncer) fn observe(sight: &Sight<'_>, at: &At) -> (Vec<Facts>, Vec<ClaimSeen>) {
    let Some(grant) = &sight.grant else { return Default::default() };
    let listed = &grant.status.claims;
    let classes = match at.is_copying && !listed.is_empty() {
        true => sight.view.list(Place::CLUSTER, &STORAGE_CLASS, None),
        false => Vec::new(),
    };
    listed.iter().map(|listed| observe_one(sight, at, (grant, listed), &classes)).unzip()
}

fn observe_one(
    sight: &Sight<'_>,
    at: &At,
    (grant, listed): (&GrantRecord, &Claim),
    classes: &[Object],
) -> (Facts, ClaimSeen) {
    let view = sight.view;
    let within = |other: &str| Name::within(sight.name, other);
    let copying = at.is_copying.then_some(view);
    let found = |kind: &Kind, other: &str| copying?.get(Place::CLUSTER, kind, &within(other));
    let hub = Address::new(Place::HUB, &CLAIM, Name::within(&at.namespace, &listed.name));
    let at_hub = view.get(Place::HUB, &CLAIM, &hub.name);
    let at_hub = at_hub.filter(|claim| uid_of(claim) == listed.uid);
    let here = view.get(Place::CLUSTER, &CLAIM, &within(&listed.name));
    let source = found(&SOURCE, &source_name(&listed.name));
    let pin = grant.status.pins.iter().find(|pin| pin.claim_uid == listed.uid);
    let class_of_images =
        |name: Option<&str>| image_class(class_of(name, classes).map(|class| &**class));
    let class_wanted = at_hub
        .as_deref()
        .map_or("", |at_hub| class_of_images(class_wanted(at_hub, &grant.spec.volumes)));
    let class_here = here
        .as_deref()
        .map_or("", |here| class_of_images(here.data["spec"]["storageClassName"].as_str()));
    let is_restic = pin.is_some_and(|pin| matches!(pin.image, Image::Restic { .. }));
    let seen = ClaimSeen {
        listed: listed.clone(),
        pin: pin.cloned(),
        at_hub,
        volume: here.as_ref().and_then(|here| found_volume(here, copying?)),
        here,
        image: source.as_ref().and_then(|source| image_of(source, sight)),
        source,
        destination: found(&DESTINATION, &destination_name(&listed.name, at.epoch)),
        tidying: if is_restic { found(&SOURCE, &tidy_name(&listed.name)) } else { None },
        class_here,
        class_wanted,
    };
    let told_before = listed.progress.as_ref();
    let facts = Facts {
        name: listed.name.clone(),
        uid: listed.uid.clone(),
        at_hub: seen.at_hub.as_ref().map(|claim| AtHub {
            is_going: is_deleting(claim),
            has_finalizer: has_finalizer(claim, &sight.syncer.finalizer),
        }),
        hub_look: sight
            .looks
            .objects
            .get(&hub)
            .map(|found| found.as_ref().is_some_and(|found| uid_of(found) == listed.uid)),
        fill: listed.fill,
        told: told_before.map(|told| Progress { bytes: told.bytes, of_bytes: told.of_bytes }),
        is_told_lately: told_before.is_some_and(|told| {
            let ago = view.now().as_second().saturating_sub(told.at.0.as_second());
            (0..TOLD_EVERY_SECONDS).contains(&ago)
        }),
        pin: pin_facts(sight, pin),
        here: here_facts(sight, at, &seen),
        binding: match at.is_copying {
            true => binding(seen.here.as_deref(), classes),
            false => Binding::NotAsked,
        },
        source: seen.source.as_ref().map(|source| source_facts(sight, at, (&seen, source))),
        destination: seen
            .destination
            .as_ref()
            .map(|destination| destination_facts(sight, at, (&seen, destination))),
        tidying: match &seen.tidying {
            _ if !is_restic || !at.is_copying => Tidying::NotNeeded,
            None => Tidying::Missing,
            Some(there) if can_be_asked_to_tidy(there, at) => Tidying::Earlier,
            Some(_) => Tidying::Asked,
        },
    };
    (facts, seen)
}

fn pin_facts(sight: &Sight<'_>, pin: Option<&placement::Pin>) -> Pin {
    let Some(pin) = pin else { return Pin::Fresh };
    match &pin.image {
        Image::Fresh {} => Pin::Fresh,
        Image::InPlace { cluster, volume } => Pin::InPlace {
            is_here: cluster.is_same(&sight.syncer.cluster),
            cluster: cluster.to_string(),
            volume: volume.clone(),
        },
        Image::VolumeSnapshot { .. } => Pin::Image {
            place: place_of(&pin.image),
            secret: None,
            epoch: pin.epoch,
            bytes: pin.bytes,
        },
        Image::Restic { secret, .. } => Pin::Image {
            place: place_of(&pin.image),
            secret: Some(secret.clone()),
            epoch: pin.epoch,
            bytes: pin.bytes,
        },
    }
}

fn here_facts(sight: &Sight<'_>, at: &At, seen: &ClaimSeen) -> Here {
    let Some(here) = &seen.here else { return Here::Missing };
    if !is_ours(here, sight.name) {
        return Here::Foreign;
    }
    if from_uid(here) != Some(&seen.listed.uid) {
        return Here::Earlier;
    }
    let pinned = match seen.pin.as_ref().map(|pin| &pin.image) {
        Some(Image::InPlace { volume, .. }) => Some(volume),
        _ => None,
    };
    let bound_to = here.data["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty());
    Here::Own(Own {
        epoch: noted_epoch(here),
        is_going: is_deleting(here),
        is_kept: has_finalizer(here, FINALIZER_KEEP),
        is_bound: here.data["status"]["phase"] == "Bound",
        is_being_filled: has_finalizer(here, FINALIZER_POPULATE),
        is_pinned: pinned.is_some_and(|volume| is_on(here, volume)),
        is_last: last(here, at).is_some(),
        volume: match (bound_to, &seen.volume) {
            (None, _) => Bound::Nothing,
            (Some(_), None) => Bound::Unseen,
            (Some(_), Some(volume)) if stays(volume, sight.name) => Bound::Staying,
            (Some(_), Some(_)) => Bound::Going,
        },
    })
}

/// The volume that was noted as what this epoch leaves.
pub(super) fn last<'a>(here: &'a Object, at: &At) -> Option<&'a str> {
    let (epoch, volume) = annotation(here, ANNOTATION_LAST)?.split_once('@')?;
    (epoch.parse() == Ok(at.epoch) && !volume.is_empty()).then_some(volume)
}

fn found_volume(here: &Object, view: &dyn View) -> Option<Object> {
    let volume = here.data["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty())?;
    view.get(Place::CLUSTER, &VOLUME, &Name::cluster_wide(volume))
}

/// Whether a volume stays when its claim goes, and is known to be of this grant.
fn stays(volume: &DynamicObject, grant: &str) -> bool {
    is_ours(volume, grant) && volume.data["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
}

/// Whether a claim on this cluster has its volume.
fn binding(here: Option<&DynamicObject>, classes: &[Object]) -> Binding {
    let Some(here) = here else { return Binding::NotAsked };
    match here.data["status"]["phase"].as_str() {
        Some("Bound") => return Binding::Bound,
        Some("Lost") => return Binding::Lost,
        _ => {}
    }
    let class = class_of(here.data["spec"]["storageClassName"].as_str(), classes);
    let is_ours = class.as_ref().is_some_and(|class| class.data["provisioner"] == LOCAL_DRIVER);
    if !is_ours && here.data["spec"]["dataSourceRef"].is_null() {
        return Binding::NotAsked;
    }
    match class.is_some_and(|class| class.data["volumeBindingMode"] == "WaitForFirstConsumer") {
        true => Binding::AwaitsConsumer,
        false => Binding::Unbound,
    }
}

/// The class of this name, or that of claims which name none.
fn class_of<'a>(wanted: Option<&str>, classes: &'a [Object]) -> Option<&'a Object> {
    classes.iter().find(|class| match wanted {
        Some(wanted) => name_of(class) == wanted,
        None => annotation(class, IS_DEFAULT) == Some("true"),
    })
}

/// The image that a source says it made last, if that very one is in the cache.
fn image_of(source: &Object, sight: &Sight<'_>) -> Option<Object> {
    let image = Name::within(sight.name, told(source, "image")?);
    let image = sight.view.get(Place::CLUSTER, &SNAPSHOT, &image)?;
    (Some(uid_of(&image)) == told(source, "imageUID")).then_some(image)
}

/// What a fresh look showed of the image that a source or destination names.
fn image_look(sight: &Sight<'_>, mover: &Object) -> Option<Option<Object>> {
    let image = Name::within(sight.name, told(mover, "image")?);
    let found = sight.looks.objects.get(&Address::new(Place::CLUSTER, &SNAPSHOT, image))?.clone();
    Some(found.filter(|found| Some(uid_of(found)) == told(mover, "imageUID")))
}

fn source_facts(sight: &Sight<'_>, at: &At, (seen, source): (&ClaimSeen, &Object)) -> Source {
    let hold = hold_finalizer(sight.grant_uid());
    Source {
        name: name_of(source).to_owned(),
        is_ours: is_ours(source, sight.name),
        is_for_claim: from_uid(source) == Some(&seen.listed.uid),
        is_going: is_deleting(source),
        is_asked: asked(source).is_some_and(|tag| is_final(tag, at.epoch)),
        is_confirmed: asked(source) == confirmed(source),
        is_syncing: is_syncing(source),
        has_lost_image: has_given_up(source, "ImageGone"),
        trouble: trouble(source),
        is_saving: is_through_repository(source),
        secret: secret_of(source).map(str::to_owned),
        has_saved: told(source, "snapshotID").is_some(),
        names_image: told(source, "image").is_some() && told(source, "imageUID").is_some(),
        image: seen.image.as_ref().map(|image| ImageHere {
            uid: uid_of(image).to_owned(),
            is_ready: image.data["status"]["readyToUse"] == true,
            is_held: has_finalizer(image, &hold),
            is_going: is_deleting(image),
        }),
        image_look: image_look(sight, source)
            .map(|found| found.is_some_and(|found| !is_deleting(&found))),
    }
}

fn destination_facts(
    sight: &Sight<'_>,
    at: &At,
    (seen, found): (&ClaimSeen, &Object),
) -> Destination {
    let is_own = is_ours(found, sight.name) && from_uid(found) == Some(&seen.listed.uid);
    Destination {
        is_own,
        has_arrived: asked(found).is_some_and(|tag| is_arrival(tag, at.epoch))
            && confirmed(found) == asked(found),
        has_lost_image: has_given_up(found, "ImageLost"),
        trouble: trouble(found),
        names_image: told(found, "image").is_some() && told(found, "imageUID").is_some(),
        is_image_here: image_of(found, sight).is_some(),
        image_look: image_look(sight, found).map(|found| found.is_some()),
        bytes: told_number(found, "progressBytes"),
        of_bytes: told_number(found, "progressOfBytes"),
    }
}

/// Whether whatever removes what earlier moves left can be asked for this epoch: it is ours and
/// stays, is not at work for an earlier epoch, and was not asked yet.
fn can_be_asked_to_tidy(there: &Object, at: &At) -> bool {
    is_ours(there, &at.grant)
        && !is_deleting(there)
        && asked(there) == confirmed(there)
        && asked(there) != Some(&tidy_tag(at.epoch))
}
