//! What is seen of a place at a repository, and of the sync that it was taken for.

use super::decide::Facts;
use crate::kinds::{DESTINATION, LEASE, SOURCE};
use crate::objects::annotation;
use crate::outside::{Mover, Sync, SyncId};
use crate::sync::intent::{ATTEMPTS, Intent};
use crate::sync::slots::{SLOT_NAMESPACE, sync_of};
use interlock_api::names::ANNOTATION_SLOT_OF;
use interlock_kernel::{Address, Kind, LiveReads, Name, Object, Observed, Place, View};

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    /// The place.
    pub(super) lease: Object,
    /// The object whose sync has the place.
    pub(super) owner: Address,
    /// The attempts of that sync.
    pub(super) attempts: Vec<SyncId>,
}

/// Reads what a step is about.
pub(super) fn observe(
    place: &str,
    view: &dyn View,
    live_reads: &LiveReads<Mover>,
) -> Observed<Facts, Scene> {
    let lease = view.get(Place::CLUSTER, &LEASE, &Name::within(SLOT_NAMESPACE, place));
    let Some(lease) = lease else { return Observed::nothing("the slot does not exist") };
    let (Some(sync), Some(owner)) = (sync_of(&lease), owner_of(&lease)) else {
        return Observed::nothing("the Lease is not a slot of Interlock");
    };
    let attempts: Vec<SyncId> =
        (1..=ATTEMPTS).map(|attempt| SyncId { id: sync.to_owned(), attempt }).collect();
    let names_sync =
        |object: &Option<Object>| object.as_ref().is_some_and(|object| has_sync(object, sync));
    let runs = |attempt: &SyncId| matches!(live_reads.answers.get(attempt), Some(Sync::Runs(_)));
    let facts = Facts {
        is_named_in_cache: names_sync(&view.get(Place::CLUSTER, &owner.kind, &owner.name)),
        is_named: live_reads.objects.get(&owner).map(names_sync),
        does_mover_run: attempts.iter().any(runs),
    };
    Observed::Seen { facts, scene: Scene { lease, owner, attempts } }
}

fn has_sync(object: &Object, sync: &str) -> bool {
    match Intent::read(object) {
        Ok(Some(intent)) => intent.id == sync,
        Ok(None) => false,
        // Nobody can tell.
        Err(_) => true,
    }
}

/// The object whose sync has a place: `ReplicationSource shop/data`.
fn owner_of(lease: &Object) -> Option<Address> {
    let (kind, name) = annotation(lease, ANNOTATION_SLOT_OF)?.split_once(' ')?;
    let (namespace, name) = name.split_once('/')?;
    let kind: &Kind = match kind {
        "ReplicationSource" => &SOURCE,
        "ReplicationDestination" => &DESTINATION,
        _ => return None,
    };
    Some(Address::new(Place::CLUSTER, kind, Name::within(namespace, name)))
}
