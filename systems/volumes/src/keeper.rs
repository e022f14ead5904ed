//! Keeps repositories tidy: what stays in them, and whose places at them are free again.
//!
//! * [`keep`]: which snapshots stay after a backup, and when what is left over is removed.
//! * The controller gives back the places of syncs that are no more: a source that is deleted in the
//!   middle of a sync has nobody else who would. The subject of a step is a Lease.

pub(crate) mod keep;
#[cfg(test)]
mod tests;

use crate::kinds::{DESTINATION, LEASE, SOURCE};
use crate::objects::{annotation, label};
use crate::outside::{Mover, Sync, SyncId};
use crate::sync::filed::{DESTINATIONS_BY_PLACES, SOURCES_BY_PLACES};
use crate::sync::intent::{ATTEMPTS, Intent};
use crate::sync::slots::{SLOT_NAMESPACE, give_back, sync_of};
use interlock_api::names::{ANNOTATION_SLOT_OF, LABEL_SLOT};
use interlock_kernel::{
    Address, Controller, Kind, Looks, Name, Object, Place, Read, Right, Step, Subject, Verb, View,
    Watch, Watcher,
};
use std::sync::Arc;
use std::time::Duration;

/// How often a mover is asked that nobody waits for any more.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The controller of the places at repositories of one cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keeper;

impl Watcher for Keeper {
    fn name(&self) -> &'static str {
        "volumes/keeper"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::CLUSTER, &LEASE),
            Watch::all(Place::CLUSTER, &SOURCE).by(&SOURCES_BY_PLACES),
            Watch::all(Place::CLUSTER, &DESTINATION).by(&DESTINATIONS_BY_PLACES),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::CLUSTER, &LEASE, &[Verb::Delete])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == LEASE {
            let is_place = label(object, LABEL_SLOT).is_some();
            return is_place.then(|| Arc::from(&*Name::of(object).name)).into_iter().collect();
        }
        // A sync that is over, or went with its object, may leave a place behind. Which one it had
        // is in the intent as it was last seen.
        let Ok(Some(intent)) = Intent::read(object) else { return Vec::new() };
        let places = (0..crate::sync::slots::SLOTS)
            .map(|place| crate::sync::slots::slot_name(&intent.places, place));
        let there = places.filter_map(|name| view.get(Place::CLUSTER, &LEASE, &name));
        let mine = there.filter(|lease| sync_of(lease) == Some(intent.id.as_str()));
        mine.map(|lease| Arc::from(&*Name::of(&lease).name)).collect()
    }
}

impl Controller for Keeper {
    type Outside = Mover;

    fn step(&self, subject: &Subject, view: &dyn View, looks: &Looks<Mover>) -> Step<Mover> {
        let name = Name::within(SLOT_NAMESPACE, subject);
        let lease = view.get(Place::CLUSTER, &LEASE, &name);
        let Some(lease) = lease else { return Step::rest("there is no such place") };
        let (Some(sync), Some(owner)) = (sync_of(&lease), owner_of(&lease)) else {
            return Step::rest("it is none of our places");
        };
        let cached = view.get(Place::CLUSTER, &owner.kind, &owner.name);
        if cached.as_ref().is_some_and(|object| has_sync(object, sync)) {
            return Step::rest("the sync that has it is on its way");
        }
        // The mover first: once nobody names the sync any more, nobody begins it any more.
        let Some(fresh) = looks.objects.get(&owner) else { return look(sync, owner) };
        if fresh.as_ref().is_some_and(|object| has_sync(object, sync)) {
            return Step::rest("the sync that has it is on its way");
        }
        let runs = attempts(sync).any(|id| matches!(looks.answers.get(&id), Some(Sync::Runs(_))));
        if runs {
            let because = "the object of the sync is gone, and the mover still runs".to_owned();
            return Step::Wait { because, at_most: ASK_AGAIN };
        }
        Step::write(give_back(&lease), "the sync that had the place is no more")
    }
}

fn look(sync: &str, owner: Address) -> Step<Mover> {
    let mut reads: Vec<Read<Mover>> = vec![Read::Object(owner.clone())];
    reads.extend(attempts(sync).map(Read::Ask));
    Step::Look { reads, because: "the sync that has the place is not in the cache".to_owned() }
}

fn attempts(sync: &str) -> impl Iterator<Item = SyncId> {
    (1..=ATTEMPTS).map(|attempt| SyncId { id: sync.to_owned(), attempt })
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
