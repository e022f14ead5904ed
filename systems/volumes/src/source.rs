//! Takes images of a claim on a trigger, and brings them to where they are to go.
//!
//! The subject of a step is a ReplicationSource: `<namespace>/<name>`. First matching row wins:
//!
//! | seen | effect |
//! |---|---|
//! | it goes, an image of it is held | wait |
//! | it goes, none is held | its images go one by one, then the finalizer |
//! | no intent; its namespace does not run here, and no move asks for it | condition, wait |
//! | an unsupported field | condition; nothing runs |
//! | no intent; something is in the way, it is paused or not due | condition, wait |
//! | no intent, an image that nobody needs | delete it |
//! | no intent, due | write the intent, with the tag that is set now |
//! | the sync is over by the status | mover forgets; image, place and intent go, one a step |
//! | an attempt failed, and waits; the spec or the Secret has changed | wait no longer |
//! | an attempt failed, and waits | wait |
//! | the namespace does not run here any more, and no mover runs | one status write: it ends |
//! | image absent | have it taken, under the name in the intent |
//! | image not ready | wait |
//! | the image is the product, ready, with content or allowed to be empty | one status write |
//! | no place at the repository | take the first free one, else wait |
//! | place, no mover for this attempt | begin |
//! | the mover failed, and may heal | give the place back, then the next attempt, later |
//! | the mover failed for good, or for the last time | one status write: given up |
//! | the mover is done | one status write |

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;
mod work;

use crate::kinds::{
    CLAIM, CONFIG_MAP, DESTINATION, LEASE, NAMESPACE, POD, SECRET, SNAPSHOT_KIND, SOURCE,
};
use crate::objects::name_of;
use crate::outside::Mover;
use crate::sync::filed::{
    SOURCES_BY_CLAIM, SOURCES_BY_PLACES, SOURCES_BY_SECRET, owner_subject, subject_of, waiting,
};
use crate::sync::images::IMAGES_BY_OWNER;
use interlock_kernel::{
    Controller, Looks, Name, Object, Place, Right, Step, Subject, Verb, View, Watch, Watcher,
};

pub use crate::sync::Serves;

/// The controller of ReplicationSources of one cluster.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    serves: Serves,
}

impl Source {
    /// The controller, for the kinds of replication that it serves here.
    pub fn new(serves: Serves) -> Source {
        Source { serves }
    }
}

impl Watcher for Source {
    fn name(&self) -> &'static str {
        "volumes/source"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::CLUSTER, &SOURCE)
                .by(&SOURCES_BY_CLAIM)
                .by(&SOURCES_BY_PLACES)
                .by(&SOURCES_BY_SECRET),
            Watch::all(Place::CLUSTER, &SNAPSHOT_KIND).by(&IMAGES_BY_OWNER),
            Watch::all(Place::CLUSTER, &CLAIM),
            Watch::all(Place::CLUSTER, &SECRET),
            Watch::all(Place::CLUSTER, &CONFIG_MAP),
            Watch::all(Place::CLUSTER, &LEASE),
            Watch::all(Place::CLUSTER, &POD),
            Watch::all(Place::CLUSTER, &DESTINATION),
            Watch::all(Place::CLUSTER, &NAMESPACE),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&SOURCE, &[Verb::Patch, Verb::PatchStatus]),
                (&SNAPSHOT_KIND, &[Verb::Create, Verb::Patch, Verb::Delete]),
                (&LEASE, &[Verb::Create, Verb::Delete]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let subjects = |index, value: &str| -> Vec<Subject> {
            view.find(Place::CLUSTER, index, value).iter().map(subject_of).collect()
        };
        if watch.kind == SOURCE {
            return vec![subject_of(object)];
        }
        if watch.kind == SNAPSHOT_KIND {
            return owner_subject(object, &SOURCE);
        }
        if watch.kind == CLAIM {
            return subjects(&SOURCES_BY_CLAIM, &Name::of(object).to_string());
        }
        if watch.kind == SECRET || watch.kind == CONFIG_MAP {
            return subjects(&SOURCES_BY_SECRET, &Name::of(object).to_string());
        }
        if watch.kind == LEASE {
            return waiting(object, &SOURCES_BY_PLACES, view);
        }
        if watch.kind == NAMESPACE {
            let sources = view.list(Place::CLUSTER, &SOURCE, Some(name_of(object)));
            return sources.iter().map(subject_of).collect();
        }
        // Pods and destinations are only looked at when a sync begins.
        Vec::new()
    }
}

impl Controller for Source {
    type Outside = Mover;

    fn step(&self, subject: &Subject, view: &dyn View, looks: &Looks<Mover>) -> Step<Mover> {
        let Some((namespace, name)) = subject.split_once('/') else {
            return Step::rest("no object has such a name");
        };
        match observe::Scene::of(self.serves, &Name::within(namespace, name), (view, looks)) {
            Ok(Some(scene)) => act::act(&scene, decide::decide(&scene.facts)),
            Ok(None) => Step::rest("it is not in the cache, or not ours to serve"),
            Err(flaw) => Step::rest(format!("source {subject} cannot be read: {flaw}")),
        }
    }
}
