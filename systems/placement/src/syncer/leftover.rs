//! What is left on a cluster of a namespace that moved on, or that goes: marked, kept, and at last
//! deleted part by part. In this order: what takes and brings images, the images, the claims, the
//! volumes that were kept without one, the namespace.

use super::Locks;
use super::decide::{Epoch, Here, Leftover};
use super::filling::{destinations, done_destination, give_back, kept_volumes};
use super::marks::{
    annotation, has_finalizer, is_going, is_ours, label, name, take_finalizer_off, uid,
};
use super::observe::Scene;
use crate::kinds::{CLAIM, DESTINATION, NAMESPACE, SNAPSHOT, SOURCE};
use interlock_api::names::{ANNOTATION_EPOCH, FINALIZER_KEEP, LABEL_SUPERSEDED_BY, hold_finalizer};
use interlock_api::placement::{CopyState, Image, Phase, Pin};
use interlock_kernel::{Kind, Object, Part, Place, Read, Step, Write};
use serde_json::json;

/// Our volumes here.
fn volumes(scene: &Scene<'_>) -> Vec<Object> {
    if !scene.is_noted_for_us() {
        return Vec::new();
    }
    let claims = scene.view.list(Place::CLUSTER, &CLAIM, Some(scene.name));
    claims.into_iter().filter(|claim| is_ours(claim, scene.name)).collect()
}

/// What took and brought images here, and then the images themselves. The namespace is ours, and so
/// are all images in it.
fn copies(scene: &Scene<'_>) -> Vec<(Kind, Object)> {
    if !scene.syncer.is_copying || !scene.is_noted_for_us() {
        return Vec::new();
    }
    let sources = scene.view.list(Place::CLUSTER, &SOURCE, Some(scene.name));
    let sources = sources.into_iter().filter(|source| is_ours(source, scene.name));
    let images = scene.view.list(Place::CLUSTER, &SNAPSHOT, Some(scene.name));
    let brought = destinations(scene).into_iter().map(|found| (DESTINATION, found));
    let took = sources.map(|found| (SOURCE, found));
    brought.chain(took).chain(images.into_iter().map(|found| (SNAPSHOT, found))).collect()
}

/// The volumes that were kept here without their claims, whoever's the namespace is by now.
fn kept(scene: &Scene<'_>) -> Vec<Object> {
    if scene.is_noted_for_us() { kept_volumes(scene) } else { Vec::new() }
}

/// The next volume that another owner has all data of, and that does not say so yet.
pub(super) fn to_mark(scene: &Scene<'_>) -> Option<Object> {
    let grant = scene.grant.as_ref()?;
    let copies = grant.status.copies.iter();
    let mut mine = copies.filter(|copy| copy.cluster.is_same(&scene.syncer.cluster));
    let is_superseded = mine.any(|copy| copy.state == CopyState::Superseded);
    let has_successor = matches!(grant.status.phase, Phase::Granted | Phase::Revoking)
        && !scene.is_mine(&[Phase::Granted, Phase::Revoking]);
    if !is_superseded || !has_successor {
        return None;
    }
    volumes(scene).into_iter().find(|volume| label(volume, LABEL_SUPERSEDED_BY).is_none())
}

/// Marks one volume.
pub(super) fn mark(scene: &Scene<'_>) -> Step<Locks> {
    let Some(volume) = to_mark(scene) else { return Step::rest("every volume is marked") };
    let epoch = scene.at().epoch.to_string();
    let change = json!({"metadata": {"labels": {LABEL_SUPERSEDED_BY: epoch}}});
    let write = Write::patch(Place::CLUSTER, &CLAIM, &volume, (Part::Main, change));
    Step::write(write, "another cluster has all of its data since")
}

/// What is left here.
///
/// That the cache has no namespace does not mean that there is none: the hub is told only after a
/// fresh look.
pub(super) fn leftover(scene: &Scene<'_>) -> Leftover {
    if next(scene).is_some() {
        return Leftover::Some;
    }
    let is_empty = volumes(scene).is_empty() && copies(scene).is_empty();
    match (scene.notes, scene.here.as_deref()) {
        (Here::Noted(_), Some(here)) if !is_going(here) => {
            // What is still going would go with the namespace; one at a time is enough.
            if is_empty { Leftover::Some } else { Leftover::Going }
        }
        (Here::Noted(_), _) => Leftover::Going,
        (Here::Missing | Here::Foreign, _) => Leftover::None,
    }
}

/// The next part that has to be told to go, but for the namespace.
fn next(scene: &Scene<'_>) -> Option<Write> {
    let copies = copies(scene);
    let is_told = |(_, object): &&(Kind, Object)| is_going(object);
    if let Some((kind, found)) = copies.iter().find(|copy| copy.0 != SNAPSHOT && !is_told(copy)) {
        return Some(Write::delete(Place::CLUSTER, kind, found));
    }
    let hold = hold_finalizer(scene.at().grant_uid);
    if let Some((kind, image)) = copies.iter().find(|(_, found)| has_finalizer(found, &hold)) {
        let change = take_finalizer_off(image, &hold);
        return Some(Write::patch(Place::CLUSTER, kind, image, (Part::Main, change)));
    }
    if let Some((kind, image)) = copies.iter().find(|copy| !is_told(copy)) {
        return Some(Write::delete(Place::CLUSTER, kind, image));
    }
    let volumes = volumes(scene);
    let is_kept = |volume: &&Object| has_finalizer(volume, FINALIZER_KEEP);
    if let Some(volume) = volumes.iter().find(is_kept) {
        let change = take_finalizer_off(volume, FINALIZER_KEEP);
        return Some(Write::patch(Place::CLUSTER, &CLAIM, volume, (Part::Main, change)));
    }
    if let Some(volume) = volumes.iter().find(|volume| !is_going(volume)) {
        return Some(Write::delete(Place::CLUSTER, &CLAIM, volume));
    }
    kept(scene).first().map(give_back)
}

/// Deletes the next part, at last the namespace.
pub(super) fn delete_one(scene: &Scene<'_>) -> Step<Locks> {
    if let Some(write) = next(scene) {
        return Step::write(write, "nobody needs this copy any more");
    }
    match scene.here.as_ref().filter(|_| scene.is_noted_for_us()) {
        Some(here) => {
            let write = Write::delete(Place::CLUSTER, &NAMESPACE, here);
            Step::write(write, format!("no volume of {} is left here", name(here)))
        }
        None => Step::rest("nothing is left here"),
    }
}

/// What earlier epochs left on the cluster that has the namespace now, and that nobody needs: a
/// destination when its claim has its volume; images and volumes when what runs now has run for as
/// long as old copies are kept. Volumes that may have what no image has are left to a person.
pub(super) fn outlived(scene: &Scene<'_>) -> Option<Step<Locks>> {
    if let Some(destination) = done_destination(scene) {
        let write = Write::delete(Place::CLUSTER, &DESTINATION, &destination);
        return Some(Step::write(write, "its claim has its volume"));
    }
    let at = scene.at();
    let epoch_of =
        |object: &Object| -> Option<Epoch> { annotation(object, ANNOTATION_EPOCH)?.parse().ok() };
    let is_outlived = |volume: &&Object| {
        epoch_of(volume).is_some_and(|epoch| epoch > at.written_until && epoch < at.epoch)
    };
    let volumes = kept(scene);
    let image = unpinned_image(scene).filter(|_| at.written_until == 0);
    let because = "an earlier epoch left it, and a later one has run for long enough";
    let step = match (image, volumes.iter().find(is_outlived)) {
        (Some(image), _) => {
            let change = take_finalizer_off(&image, &hold_finalizer(at.grant_uid));
            let write = Write::patch(Place::CLUSTER, &SNAPSHOT, &image, (Part::Main, change));
            Step::write(write, because)
        }
        (None, Some(volume)) => Step::write(give_back(volume), because),
        (None, None) => super::repository::tidy(scene)?,
    };
    if !scene.is_settled_here() {
        let because = "it runs here as the hub says; what earlier epochs left is kept for now";
        let at_most = scene.until_settled();
        return Some(Step::Wait { because: because.to_owned(), at_most });
    }
    Some(step)
}

/// An image that we hold and that the grant does not refer to any more. The last image of this epoch
/// is not one, although nothing refers to it yet.
pub(super) fn unpinned_image(scene: &Scene<'_>) -> Option<Object> {
    let at = scene.at();
    let hold = hold_finalizer(at.grant_uid);
    let is_last = |image: &Object| {
        let mut claims = scene.claims.iter().chain(&scene.gone_claims);
        claims.any(|claim| claim.is_last_image(at, image))
    };
    let images = copies(scene).into_iter().filter(|(kind, _)| *kind == SNAPSHOT);
    images
        .map(|(_, image)| image)
        .find(|image| has_finalizer(image, &hold) && !is_pinned(scene, image) && !is_last(image))
}

/// Whether the grant refers to an image.
fn is_pinned(scene: &Scene<'_>, image: &Object) -> bool {
    let Some(grant) = &scene.grant else { return true };
    let last = grant.status.claims.iter().filter_map(|claim| claim.last_image.as_ref());
    let is_it = |pin: &Pin| match &pin.image {
        Image::VolumeSnapshot { uid: pinned, .. } => pinned == uid(image),
        Image::Restic { .. } | Image::InPlace { .. } | Image::Fresh {} => false,
    };
    grant.status.pins.iter().chain(last).any(is_it)
}

/// Tells the hub that there is no copy here any more, once a fresh look shows it.
pub(super) fn forget(scene: &Scene<'_>) -> Step<Locks> {
    let (address, _) = scene.truth_addresses();
    match scene.looks.objects.get(&address) {
        None => Step::Look {
            reads: vec![Read::Object(address)],
            because: "a copy is forgotten only when it is seen to be gone".to_owned(),
        },
        Some(Some(_)) => Step::rest("a namespace is still here; the cache will show it"),
        Some(None) => super::report::forget_copy(scene),
    }
}
