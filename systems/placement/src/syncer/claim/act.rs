//! One write about one claim.

use super::arrive::Deed as Arrive;
use super::facts::At;
use super::leave::{Deed as Leave, HandedOver};
use super::objects::{
    asked_of, describe, filled_by, identity, keep_in_place, keep_volume, new_claim,
    new_destination, new_source, take_over, tidying,
};
use super::observe::{ClaimSeen, last};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, VOLUME};
use crate::syncer::Locks;
use crate::syncer::copying::{
    ask_again, destination_name, is_through_repository, secret_of, source_name, tidy_name, told,
    told_number,
};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, FINALIZER_KEEP, hold_finalizer,
};
use interlock_api::placement::{Image, Pin, Ref, VolumePolicy};
use interlock_kernel::metadata::{annotation, name_of, put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Address, Kind, Name, Object, Part, Place, Step, Write};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

fn patch(kind: &Kind, object: &Object, change: Value) -> Write {
    Write::patch(Place::CLUSTER, kind, object, (Part::Main, change))
}

fn create(kind: &Kind, at: &At, name: &str, object: Value) -> Write {
    let address = Address::new(Place::CLUSTER, kind, Name::within(&at.grant, name));
    Write::Create { address, object }
}

/// One write by which a claim gets its volume; None: an object that it is about is not there.
pub(in crate::syncer) fn arrive(
    claim: &ClaimSeen,
    deed: Arrive,
    at: &At,
    (policy, finalizer): (&VolumePolicy, &str),
) -> Option<Step<Locks>> {
    let destination = destination_name(&claim.listed.name, at.epoch);
    let step = match deed {
        Arrive::TakeOver { keep } => {
            let here = claim.here.as_ref()?;
            let because = format!("epoch {} takes the {}", at.epoch, describe(here));
            Step::write(patch(&CLAIM, here, take_over(here, at.epoch, keep)), because)
        }
        Arrive::PutFinalizer => {
            let at_hub = claim.at_hub.as_ref()?;
            let change = put_finalizer(at_hub, finalizer);
            let write = Write::patch(Place::HUB, &CLAIM, at_hub, (Part::Main, change));
            Step::write(write, "its volume goes down to this cluster, and it must not vanish first")
        }
        Arrive::Create => {
            let object = new_claim(claim.at_hub.as_ref()?, policy, at);
            let write = create(&CLAIM, at, &claim.listed.name, object);
            Step::write(write, "the claim was never used: a new volume will do")
        }
        Arrive::CreateDestination => {
            let wanted = new_claim(claim.at_hub.as_ref()?, policy, at);
            let pin = claim.pin.as_ref()?;
            let object = new_destination(claim, pin, &wanted["spec"], at);
            let because =
                format!("its data is in an image {}", super::objects::place_of(&pin.image));
            Step::write(create(&DESTINATION, at, &destination, object), because)
        }
        Arrive::CreateFilled => {
            let wanted = new_claim(claim.at_hub.as_ref()?, policy, at);
            let object = filled_by(wanted, &destination);
            let write = create(&CLAIM, at, &claim.listed.name, object);
            Step::write(write, format!("it is filled by {destination}"))
        }
        Arrive::KeepVolume => {
            let (volume, here) = (claim.volume.as_ref()?, claim.here.as_ref()?);
            let write = patch(&VOLUME, volume, keep_volume(volume, here, at));
            Step::write(write, "a move never deletes a volume")
        }
        Arrive::Unkeep => {
            let here = claim.here.as_ref()?;
            let write = patch(&CLAIM, here, take_finalizer_off(here, FINALIZER_KEEP));
            Step::write(write, "its name is needed for a new volume")
        }
        Arrive::Delete => {
            let here = claim.here.as_ref()?;
            let because = format!("the {} makes room and stays by itself", describe(here));
            Step::write(Write::delete(Place::CLUSTER, &CLAIM, here), because)
        }
        Arrive::BringAgain => {
            let because = format!(
                "the image that claim {} is filled from was deleted here; it is brought again",
                claim.listed.name
            );
            ask_again(&DESTINATION, claim.destination.as_ref()?, because)
        }
    };
    Some(step)
}

/// One write by which the data of a claim leaves; None: an object that it is about is not there.
pub(in crate::syncer) fn leave(
    claim: &ClaimSeen,
    deed: Leave,
    at: &At,
    grant_uid: &str,
) -> Option<Step<Locks>> {
    let closed = || format!("epoch {} is closed, and its data goes elsewhere", at.epoch);
    let tidies = "it runs for long enough: what earlier moves saved is not needed any more";
    let step = match deed {
        Leave::CreateSource => {
            let source = source_name(&claim.listed.name);
            Step::write(create(&SOURCE, at, &source, new_source(claim, at)), closed())
        }
        Leave::AskSource => {
            let source = claim.source.as_ref()?;
            Step::write(patch(&SOURCE, source, asked_of(source, claim, at)), closed())
        }
        Leave::AskAgain => {
            let because = format!(
                "the last image of claim {} was deleted before it was held; it is taken again",
                claim.listed.name
            );
            ask_again(&SOURCE, claim.source.as_ref()?, because)
        }
        Leave::Hold => {
            let image = claim.image.as_ref()?;
            let change = put_finalizer(image, &hold_finalizer(grant_uid));
            let write = patch(&SNAPSHOT, image, change);
            Step::write(write, "the next owner starts from it, so it must stay")
        }
        Leave::KeepInPlace => {
            let here = claim.here.as_ref()?;
            let because = format!("the {} stays, and is taken again here", describe(here));
            Step::write(patch(&CLAIM, here, keep_in_place(here, at.epoch)), because)
        }
        Leave::Tidy => {
            let name = tidy_name(&claim.listed.name);
            Step::write(create(&SOURCE, at, &name, tidying(claim, at)), tidies)
        }
        Leave::TidyAgain => {
            let there = claim.tidying.as_ref()?;
            Step::write(patch(&SOURCE, there, tidying(claim, at)), tidies)
        }
    };
    Some(step)
}

/// What the next owner of a claim starts from, as a grant says it; None: an object that it is about is
/// not there.
pub(in crate::syncer) fn pin(
    claim: &ClaimSeen,
    from: HandedOver,
    at: &At,
    (cluster, now): (&Ref, Timestamp),
) -> Option<Pin> {
    let empty = |epoch, image| Pin {
        claim: claim.listed.name.clone(),
        claim_uid: claim.listed.uid.clone(),
        epoch,
        taken: Time(now),
        files: 0,
        bytes: 0,
        digest: String::new(),
        image,
    };
    let in_place = |volume: &str| {
        let (cluster, volume) = (cluster.clone(), volume.to_owned());
        empty(at.epoch, Image::InPlace { cluster, volume })
    };
    match from {
        HandedOver::NotedVolume => last(claim.here.as_ref()?, at).map(in_place),
        HandedOver::VolumeHere => Some(in_place(identity(claim.here.as_ref()?))),
        HandedOver::AsItCame => {
            Some(claim.pin.clone().unwrap_or_else(|| empty(0, Image::Fresh {})))
        }
        HandedOver::LastImage => {
            let source = claim.source.as_ref()?;
            let (image, taken) = last_image(claim, source, at, cluster)?;
            let marked = |mark: &str| annotation(claim.image.as_ref()?, mark);
            let number = |key: &str, mark: &str| {
                let marked = || marked(mark)?.parse().ok();
                told_number(source, key).or_else(marked).unwrap_or(0).max(0)
            };
            let digest = told(source, "digest").or_else(|| marked(ANNOTATION_DIGEST));
            let taken = taken.as_str().and_then(|taken| taken.parse::<Timestamp>().ok());
            Some(Pin {
                taken: Time(taken.unwrap_or(now)),
                files: number("files", ANNOTATION_FILES),
                bytes: number("bytes", ANNOTATION_BYTES),
                digest: digest.unwrap_or_default().to_owned(),
                ..empty(at.epoch, image)
            })
        }
    }
}

/// The last image of a claim as a pin names it, and when it was taken.
fn last_image<'a>(
    claim: &'a ClaimSeen,
    source: &'a Object,
    at: &At,
    cluster: &Ref,
) -> Option<(Image, &'a Value)> {
    if is_through_repository(source) {
        let secret = secret_of(source)?.to_owned();
        let snapshot_id = told(source, "snapshotID")?.to_owned();
        return Some((
            Image::Restic { secret, snapshot_id },
            &source.data["status"]["lastSyncTime"],
        ));
    }
    let image = claim.image.as_ref()?;
    let pinned = Image::VolumeSnapshot {
        cluster: cluster.clone(),
        namespace: at.grant.clone(),
        name: name_of(image).to_owned(),
        uid: uid_of(image).to_owned(),
    };
    Some((pinned, &image.data["status"]["creationTime"]))
}
