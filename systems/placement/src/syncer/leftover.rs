//! What is left on a cluster of a namespace that moved on, or that goes: marked, kept, and at last
//! deleted volume by volume.

use super::Locks;
use super::decide::{Here, Leftover};
use super::marks::{has_finalizer, is_going, is_ours, label, name, take_finalizer_off};
use super::observe::Scene;
use crate::kinds::{CLAIM, NAMESPACE};
use interlock_api::names::{FINALIZER_KEEP, LABEL_SUPERSEDED_BY};
use interlock_api::placement::{CopyState, Phase};
use interlock_kernel::{Object, Part, Place, Read, Step, Write};
use serde_json::json;

/// Our volumes here.
fn volumes(scene: &Scene<'_>) -> Vec<Object> {
    if !scene.is_noted_for_us() {
        return Vec::new();
    }
    let claims = scene.view.list(Place::CLUSTER, &CLAIM, Some(scene.name));
    claims.into_iter().filter(|claim| is_ours(claim, scene.name)).collect()
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
    let volumes = volumes(scene);
    if volumes.iter().any(|volume| !is_going(volume) || has_finalizer(volume, FINALIZER_KEEP)) {
        return Leftover::Some;
    }
    match (scene.notes, scene.here.as_deref()) {
        (Here::Noted(_), Some(here)) if !is_going(here) => {
            // A volume that is still going would go with the namespace; one at a time is enough.
            if volumes.is_empty() { Leftover::Some } else { Leftover::Going }
        }
        (Here::Noted(_), _) => Leftover::Going,
        (Here::Missing | Here::Foreign, _) => Leftover::None,
    }
}

/// Deletes the next part: a volume's finalizer, the volume, at last the namespace.
pub(super) fn delete_one(scene: &Scene<'_>) -> Step<Locks> {
    let volumes = volumes(scene);
    let kept = |volume: &&Object| has_finalizer(volume, FINALIZER_KEEP);
    if let Some(volume) = volumes.iter().find(kept) {
        let change = take_finalizer_off(volume, FINALIZER_KEEP);
        let write = Write::patch(Place::CLUSTER, &CLAIM, volume, (Part::Main, change));
        return Step::write(write, "nobody needs this copy any more");
    }
    if let Some(volume) = volumes.iter().find(|volume| !is_going(volume)) {
        let write = Write::delete(Place::CLUSTER, &CLAIM, volume);
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
