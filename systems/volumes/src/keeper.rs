//! Keeps repositories tidy: whose places at them are free again.
//!
//! The controller gives back the places of syncs that are no more: a source that is deleted in the
//! middle of a sync has nobody else who would. The subject of a step is a Lease.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{DESTINATION, LEASE, SOURCE};
use crate::objects::label;
use crate::outside::Mover;
use crate::sync::filed::{DESTINATIONS_BY_PLACES, SOURCES_BY_PLACES};
use crate::sync::intent::Intent;
use crate::sync::slots::{self, sync_of};
use interlock_api::names::LABEL_SLOT;
use interlock_kernel::{
    LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::sync::Arc;

/// The controller of the places at repositories of one cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keeper;

impl Watcher for Keeper {
    fn name(&self) -> &'static str {
        "volumes/keeper"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::CLUSTER, &LEASE).only(slots::OURS),
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

impl Room for Keeper {
    type Outside = Mover;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Mover>,
    ) -> Observed<decide::Facts, observe::Scene> {
        observe::observe(subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Mover> {
        act::act(scene, decision)
    }
}
