//! Brings an image back into a volume, and publishes an image of that volume once it is ready.
//!
//! The subject of a step is a ReplicationDestination: `<namespace>/<name>`. First matching row wins:
//!
//! | seen | effect |
//! |---|---|
//! | it goes, an image of it is held | wait; the condition says by whom |
//! | it goes, none is held | its images go one by one, then the finalizer |
//! | an unsupported field | condition; nothing runs |
//! | no intent, more than two images | the oldest goes that is not the latest and not held |
//! | no intent; something is in the way, it is paused or not due | condition, wait |
//! | no intent, due | write the intent, with the tag that is set now |
//! | the sync is over by the status | mover forgets; leftovers, place and intent go, one a step |
//! | an attempt failed, and waits; the spec or the Secret has changed | wait no longer |
//! | an attempt failed, and waits; the image is not ready | wait |
//! | the image is ready, with content or allowed to be empty | publish its uid, then one status write |
//! | the mover is done, image absent | have it taken, under the name in the intent |
//! | the mover failed | the next attempt, later; or one status write: given up |
//! | no volume to write | make the claim, and wait until it is bound |
//! | no place at the repository | take the first free one, else wait |
//! | place, no mover for this attempt, no image | begin |
//!
//! Once there is an image of a sync, its mover is never begun again: an image that is being taken is
//! not written to.

mod act;
pub mod decide;
mod observe;
mod origin;
#[cfg(test)]
mod tests;
mod work;

use crate::kinds::{CLAIM, CONFIG_MAP, DESTINATION, LEASE, SECRET, SNAPSHOT_KIND, SOURCE};
use crate::outside::Mover;
use crate::sync::filed::{
    DESTINATIONS_BY_CLAIM, DESTINATIONS_BY_PLACES, DESTINATIONS_BY_SECRET, DESTINATIONS_BY_SOURCE,
    owner_subject, subject_of, waiting,
};
use crate::sync::images::{IMAGES_BY_OWNER, IMAGES_BY_UID};
use interlock_kernel::{
    Controller, Looks, Name, Object, Place, Right, Step, Subject, Verb, View, Watch, Watcher,
};

use std::borrow::Cow;

pub use crate::sync::Serves;

/// The cluster that destinations are on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Here {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its uid, which its images go by.
    pub uid: Cow<'static, str>,
}

/// The controller of ReplicationDestinations of one cluster.
#[derive(Debug, Clone)]
pub struct Destination {
    serves: Serves,
    here: Here,
}

impl Destination {
    /// The controller, for the kinds of replication that it serves here.
    pub fn new(serves: Serves, here: Here) -> Destination {
        Destination { serves, here }
    }
}

impl Watcher for Destination {
    fn name(&self) -> &'static str {
        "volumes/destination"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::CLUSTER, &DESTINATION)
                .by(&DESTINATIONS_BY_CLAIM)
                .by(&DESTINATIONS_BY_PLACES)
                .by(&DESTINATIONS_BY_SECRET)
                .by(&DESTINATIONS_BY_SOURCE),
            Watch::all(Place::CLUSTER, &SNAPSHOT_KIND).by(&IMAGES_BY_OWNER).by(&IMAGES_BY_UID),
            Watch::all(Place::CLUSTER, &CLAIM),
            Watch::all(Place::CLUSTER, &SECRET),
            Watch::all(Place::CLUSTER, &CONFIG_MAP),
            Watch::all(Place::CLUSTER, &LEASE),
            Watch::all(Place::CLUSTER, &SOURCE),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&DESTINATION, &[Verb::Patch, Verb::PatchStatus]),
                (&SNAPSHOT_KIND, &[Verb::Create, Verb::Patch, Verb::Delete]),
                (&CLAIM, &[Verb::Create, Verb::Delete]),
                (&LEASE, &[Verb::Create, Verb::Delete]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let subjects = |index, value: &str| -> Vec<Subject> {
            view.find(Place::CLUSTER, index, value).iter().map(subject_of).collect()
        };
        if watch.kind == DESTINATION {
            return vec![subject_of(object)];
        }
        if watch.kind == SNAPSHOT_KIND {
            return owner_subject(object, &DESTINATION);
        }
        if watch.kind == CLAIM {
            return subjects(&DESTINATIONS_BY_CLAIM, &Name::of(object).to_string());
        }
        if watch.kind == SECRET || watch.kind == CONFIG_MAP {
            return subjects(&DESTINATIONS_BY_SECRET, &Name::of(object).to_string());
        }
        if watch.kind == SOURCE {
            return subjects(&DESTINATIONS_BY_SOURCE, &Name::of(object).to_string());
        }
        waiting(object, &DESTINATIONS_BY_PLACES, view)
    }
}

impl Controller for Destination {
    type Outside = Mover;

    fn step(&self, subject: &Subject, view: &dyn View, looks: &Looks<Mover>) -> Step<Mover> {
        let Some((namespace, name)) = subject.split_once('/') else {
            return Step::rest("no object has such a name");
        };
        match observe::Scene::of(self, &Name::within(namespace, name), (view, looks)) {
            Ok(Some(scene)) => act::act(&scene, decide::decide(&scene.facts)),
            Ok(None) => Step::rest("it is not in the cache, or not ours to serve"),
            Err(flaw) => Step::rest(format!("destination {subject} cannot be read: {flaw}")),
        }
    }
}
