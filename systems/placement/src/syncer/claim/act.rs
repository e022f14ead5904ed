//! One write about one claim.

use super::arrive::Action as Arrive;
use super::facts::At;
use super::leave::{Action as Leave, HandedOver};
use super::objects::{
    asked_of, describe, filled_by, identity, keep_in_place, keep_volume, new_claim,
    new_destination, new_source, take_over, tidying,
};
use super::observe::{ClaimSeen, last};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, VOLUME};
use crate::syncer::Locks;
use crate::syncer::copying::{
    ask_again, destination_name, is_through_repository, reported, reported_number, secret_of,
    source_name, tidy_name,
};
use crate::syncer::observe::Scene;
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, FINALIZER_KEEP, hold_finalizer,
};
use interlock_api::placement::{Pin, Ref, Snapshot};
use interlock_kernel::metadata::{annotation, name_of, put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Address, Kind, Name, Object, Place, Step, Write};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

fn patch(kind: &Kind, object: &Object, change: Value) -> Write {
    Write::patch(Place::CLUSTER, kind, object, change)
}

fn create(kind: &Kind, at: &At, name: &str, object: Value) -> Write {
    let address = Address::new(Place::CLUSTER, kind, Name::within(&at.grant, name));
    Write::Create { address, object }
}

/// One write by which a claim gets its volume; None: an object that it is about is not there.
pub(in crate::syncer) fn arrive(
    claim: &ClaimSeen,
    action: Arrive,
    scene: &Scene,
    finalizer: &str,
) -> Option<Step<Locks>> {
    let (at, policy) = (&scene.at, &scene.grant.as_ref()?.spec.volumes);
    let destination = destination_name(&claim.listed.name, at.epoch);
    let step = match action {
        Arrive::TakeOver { keep } => {
            let here = claim.here.as_ref()?;
            let because = format!("epoch {} takes the {}", at.epoch, describe(here));
            Step::write(patch(&CLAIM, here, take_over(here, at.epoch, keep)), because)
        }
        Arrive::PutFinalizer => {
            let at_hub = claim.at_hub.as_ref()?;
            let change = put_finalizer(at_hub, finalizer);
            let write = Write::patch(Place::HUB, &CLAIM, at_hub, change);
            Step::write(
                write,
                "the claim gets a volume on this cluster, and must not be deleted first",
            )
        }
        Arrive::Create => {
            let object = new_claim(claim.at_hub.as_ref()?, policy, at);
            let write = create(&CLAIM, at, &claim.listed.name, object);
            Step::write(write, "the claim was never used, so it gets a new volume")
        }
        Arrive::CreateDestination => {
            let wanted = new_claim(claim.at_hub.as_ref()?, policy, at);
            let pin = claim.pin.as_ref()?;
            let object = new_destination(claim, pin, &wanted["spec"], at);
            let because = format!(
                "the data of the claim is in a snapshot {}",
                super::objects::place_of(&pin.snapshot)
            );
            Step::write(create(&DESTINATION, at, &destination, object), because)
        }
        Arrive::CreateFilled => {
            let wanted = new_claim(claim.at_hub.as_ref()?, policy, at);
            let object = filled_by(wanted, &destination);
            let write = create(&CLAIM, at, &claim.listed.name, object);
            Step::write(write, format!("the claim is filled by {destination}"))
        }
        Arrive::KeepVolume => {
            let (volume, here) = (claim.volume.as_ref()?, claim.here.as_ref()?);
            let write = patch(&VOLUME, volume, keep_volume(volume, here, at));
            Step::write(write, "a move never deletes a volume")
        }
        Arrive::Unkeep => {
            let here = claim.here.as_ref()?;
            let write = patch(&CLAIM, here, take_finalizer_off(here, FINALIZER_KEEP));
            Step::write(write, "the name of the claim is needed for a new volume")
        }
        Arrive::Delete => {
            let here = claim.here.as_ref()?;
            let because = format!("the {} is released from the claim and retained", describe(here));
            Step::write(Write::delete(Place::CLUSTER, &CLAIM, here), because)
        }
        Arrive::BringAgain => {
            let because = format!(
                "the snapshot that claim {} is filled from was deleted on this cluster; it is \
                 copied again",
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
    action: Leave,
    at: &At,
    grant_uid: &str,
) -> Option<Step<Locks>> {
    let closed = || format!("epoch {} is closed, and its data moves to another cluster", at.epoch);
    let tidies = "the epoch has run long enough; the snapshots of earlier moves are not needed \
        any more";
    let step = match action {
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
                "the last snapshot of claim {} was deleted before it was held; it is taken again",
                claim.listed.name
            );
            ask_again(&SOURCE, claim.source.as_ref()?, because)
        }
        Leave::Hold => {
            let snapshot = claim.snapshot.as_ref()?;
            let change = put_finalizer(snapshot, &hold_finalizer(grant_uid));
            let write = patch(&SNAPSHOT, snapshot, change);
            Step::write(write, "the next owner starts from the snapshot, so the snapshot must stay")
        }
        Leave::KeepInPlace => {
            let here = claim.here.as_ref()?;
            let because =
                format!("the {} stays, and is used again on this cluster", describe(here));
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
    scene: &Scene,
    cluster: &Ref,
) -> Option<Pin> {
    let (at, now) = (&scene.at, scene.now);
    let empty = |epoch, snapshot| Pin {
        claim: claim.listed.name.clone(),
        claim_uid: claim.listed.uid.clone(),
        epoch,
        taken: Time(now),
        files: 0,
        bytes: 0,
        digest: String::new(),
        snapshot,
    };
    let in_place = |volume: &str| {
        let (cluster, volume) = (cluster.clone(), volume.to_owned());
        empty(at.epoch, Snapshot::InPlace { cluster, volume })
    };
    match from {
        HandedOver::NotedVolume => last(claim.here.as_ref()?, at).map(in_place),
        HandedOver::VolumeHere => Some(in_place(identity(claim.here.as_ref()?))),
        HandedOver::AsItCame => {
            Some(claim.pin.clone().unwrap_or_else(|| empty(0, Snapshot::Fresh {})))
        }
        HandedOver::LastSnapshot => {
            let source = claim.source.as_ref()?;
            let (snapshot, taken) = last_snapshot(claim, source, at, cluster)?;
            let marked = |mark: &str| annotation(claim.snapshot.as_ref()?, mark);
            let number = |key: &str, mark: &str| {
                let marked = || marked(mark)?.parse().ok();
                reported_number(source, key).or_else(marked).unwrap_or(0).max(0)
            };
            let digest = reported(source, "digest").or_else(|| marked(ANNOTATION_DIGEST));
            let taken = taken.as_str().and_then(|taken| taken.parse::<Timestamp>().ok());
            Some(Pin {
                taken: Time(taken.unwrap_or(now)),
                files: number("files", ANNOTATION_FILES),
                bytes: number("bytes", ANNOTATION_BYTES),
                digest: digest.unwrap_or_default().to_owned(),
                ..empty(at.epoch, snapshot)
            })
        }
    }
}

/// The last snapshot of a claim as a pin names it, and when it was taken.
fn last_snapshot<'a>(
    claim: &'a ClaimSeen,
    source: &'a Object,
    at: &At,
    cluster: &Ref,
) -> Option<(Snapshot, &'a Value)> {
    if is_through_repository(source) {
        let secret = secret_of(source)?.to_owned();
        let snapshot_id = reported(source, "snapshotID")?.to_owned();
        return Some((
            Snapshot::Restic { secret, snapshot_id },
            &source.data["status"]["lastSyncTime"],
        ));
    }
    let snapshot = claim.snapshot.as_ref()?;
    let pinned = Snapshot::VolumeSnapshot {
        cluster: cluster.clone(),
        namespace: at.grant.clone(),
        name: name_of(snapshot).to_owned(),
        uid: uid_of(snapshot).to_owned(),
    };
    Some((pinned, &snapshot.data["status"]["creationTime"]))
}
