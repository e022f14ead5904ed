//! Takes snapshots of a claim on a trigger and brings them to where they are to go, and back into a
//! claim: one room, with a direction.
//!
//! # One sync
//!
//! 1. **Intent.** It is due: its name, its snapshot's name and the tag that it answers are written onto
//!    the object, before anything else. The name is made of the object's uid and of the version that
//!    the intent replaced, so no two syncs ever share one, and whoever crashes repeats this one.
//! 2. **Effects.** Snapshot, place, mover; each is known by a name that is in the intent.
//! 3. **Status.** One write says that the sync is over, by its name, and how it ended.
//! 4. **Leftovers** go, one a step, and the intent last.
//!
//! Whatever is done for an intent rests on a live read of the object, made after the mover was
//! asked: a mover that knows nothing of a sync that is over is not told to begin it again.
//!
//! # The rows
//!
//! The subject of a step is a ReplicationSource or a ReplicationDestination: `<namespace>/<name>`.
//! First matching row wins:
//!
//! | seen | effect |
//! |---|---|
//! | it is being deleted, its mover runs | wait: the mover keeps its place |
//! | it is being deleted, it has a place, no mover runs | give the place back |
//! | it is being deleted, a snapshot of it is held | wait; the condition of a destination says by whom |
//! | it is being deleted, none is held | its snapshots go one by one, then the finalizer |
//! | no intent, a snapshot that nobody needs | delete it |
//! | no intent; the namespace of a source runs elsewhere, and no move asks for it | condition, wait |
//! | no intent; not supported, something is in the way, paused or not due | condition, wait |
//! | no intent, due | write the intent, with the tag that is set now |
//! | the sync is over by the status | mover forgets; leftovers, place and intent go, one a step |
//! | an attempt failed, and waits; the spec or the Secret has changed | wait no longer |
//! | an attempt failed, and waits; the snapshot is not ready | wait |
//! | the mover failed, and may heal | give the place back, then the next attempt, later |
//! | the mover failed for good, or for the last time | one status write: given up |
//!
//! Then, for a source:
//!
//! | seen | effect |
//! |---|---|
//! | the mover is done | one status write |
//! | the namespace does not run here any more, and no mover runs | one status write: it ends |
//! | snapshot absent | have it taken, under the name in the intent |
//! | the snapshot is the product, ready, with content or allowed to be empty | one status write |
//! | no place at the repository | take the first free one, else wait |
//! | place, no mover for this attempt | begin |
//!
//! And for a destination:
//!
//! | seen | effect |
//! |---|---|
//! | the snapshot is ready, with content or allowed to be empty | publish it, then one status write |
//! | the mover is done, snapshot absent | have it taken, under the name in the intent |
//! | no volume to write | make the claim, and wait until it is bound |
//! | no place at the repository | take the first free one, else wait |
//! | place, no mover for this attempt, no snapshot | begin |

mod act;
pub mod decide;
mod destination;
mod facts;
pub(crate) mod filed;
pub(crate) mod intent;
mod observe;
mod origin;
pub(crate) mod repository;
pub(crate) mod slots;
pub(crate) mod snapshots;
mod source;
pub(crate) mod task;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod trigger;
mod words;
mod work;

use crate::filed::SNAPSHOTS_BY_UID;
use crate::kinds::{
    CLAIM, CONFIG_MAP, DESTINATION, LEASE, NAMESPACE, POD, SECRET, SNAPSHOT_KIND, SOURCE,
};
use crate::objects::name_of;
use crate::outside::Mover;
use filed::{
    DESTINATIONS_BY_CLAIM, DESTINATIONS_BY_PLACES, DESTINATIONS_BY_SECRET, DESTINATIONS_BY_SOURCE,
    SOURCES_BY_CLAIM, SOURCES_BY_PLACES, SOURCES_BY_SECRET, owner_subject, subject_of, waiting,
};
use interlock_kernel::{
    Index, Kind, LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, Verb, View,
    Watch, Watcher,
};
use snapshots::SNAPSHOTS_BY_OWNER;
use std::borrow::Cow;

/// Which replications are served in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// VolSync's own movers, and ours. There must be no VolSync operator beside.
    Own,
    /// Ours only, by `spec.external.provider`: a VolSync operator leaves them alone.
    External,
}

/// The cluster that destinations are on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Here {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its uid, which its snapshots go by.
    pub uid: Cow<'static, str>,
}

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Out of a claim: a ReplicationSource.
    Source,
    /// Into a claim: a ReplicationDestination.
    Destination,
}

impl Direction {
    /// The kind of the objects that sync in this direction.
    fn kind(self) -> Kind {
        match self {
            Direction::Source => SOURCE,
            Direction::Destination => DESTINATION,
        }
    }

    /// What such an object is called in messages.
    fn word(self) -> &'static str {
        match self {
            Direction::Source => "source",
            Direction::Destination => "destination",
        }
    }

    /// How such objects are found by their claim, their Secrets and the places that they wait for.
    fn indexes(self) -> [Index; 3] {
        match self {
            Direction::Source => [SOURCES_BY_CLAIM, SOURCES_BY_SECRET, SOURCES_BY_PLACES],
            Direction::Destination => {
                [DESTINATIONS_BY_CLAIM, DESTINATIONS_BY_SECRET, DESTINATIONS_BY_PLACES]
            }
        }
    }
}

/// The controller of the ReplicationSources of one cluster, or of its ReplicationDestinations.
#[derive(Debug, Clone)]
pub struct Replication {
    direction: Direction,
    serves: Serves,
    here: Here,
}

impl Replication {
    /// The controller of sources, for the kinds of replication that it serves here.
    pub fn of_sources(serves: Serves) -> Replication {
        Replication { direction: Direction::Source, serves, here: Here::default() }
    }

    /// The controller of destinations, for the kinds of replication that it serves here.
    pub fn of_destinations(serves: Serves, here: Here) -> Replication {
        Replication { direction: Direction::Destination, serves, here }
    }
}

impl Watcher for Replication {
    fn name(&self) -> &'static str {
        match self.direction {
            Direction::Source => "volumes/source",
            Direction::Destination => "volumes/destination",
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let [by_claim, by_secret, by_places] = self.direction.indexes();
        let all = |kind: &Kind| Watch::all(Place::CLUSTER, kind);
        let own = all(&self.direction.kind()).by(&by_claim).by(&by_places).by(&by_secret);
        let snapshots = all(&SNAPSHOT_KIND).by(&SNAPSHOTS_BY_OWNER);
        let needed = [all(&CLAIM), all(&SECRET), all(&CONFIG_MAP), all(&LEASE).only(slots::OURS)];
        let (own, others) = match self.direction {
            Direction::Source => {
                ([own, snapshots], vec![all(&POD), all(&DESTINATION), all(&NAMESPACE)])
            }
            Direction::Destination => (
                [own.by(&DESTINATIONS_BY_SOURCE), snapshots.by(&SNAPSHOTS_BY_UID)],
                vec![all(&SOURCE)],
            ),
        };
        own.into_iter().chain(needed).chain(others).collect()
    }

    fn rights(&self) -> Vec<Right> {
        let mut rights = Right::to_each(
            Place::CLUSTER,
            &[
                (&self.direction.kind(), &[Verb::Patch, Verb::PatchStatus]),
                (&SNAPSHOT_KIND, &[Verb::Create, Verb::Patch, Verb::Delete]),
                (&LEASE, &[Verb::Create, Verb::Delete]),
            ],
        );
        if self.direction == Direction::Destination {
            rights.extend(Right::to(Place::CLUSTER, &CLAIM, &[Verb::Create, Verb::Delete]));
        }
        rights
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let [by_claim, by_secret, by_places] = self.direction.indexes();
        let all = |objects: Vec<Object>| objects.iter().map(subject_of).collect();
        let found =
            |index: &Index| all(view.find(Place::CLUSTER, index, &Name::of(object).to_string()));
        let own = self.direction.kind();
        if watch.kind == own {
            return vec![subject_of(object)];
        }
        if watch.kind == SNAPSHOT_KIND {
            return owner_subject(object, &own);
        }
        if watch.kind == CLAIM {
            return found(&by_claim);
        }
        if watch.kind == SECRET || watch.kind == CONFIG_MAP {
            return found(&by_secret);
        }
        if watch.kind == LEASE {
            return waiting(object, &by_places, view);
        }
        if watch.kind == NAMESPACE {
            return all(view.list(Place::CLUSTER, &own, Some(name_of(object))));
        }
        if watch.kind == SOURCE {
            return found(&DESTINATIONS_BY_SOURCE);
        }
        // Pods and destinations are only read when the sync of a source begins.
        Vec::new()
    }
}

impl Room for Replication {
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
        observe::observe(self, subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Mover> {
        act::act(scene, decision)
    }
}

/// FNV-1a: the same on every machine and in every version, and a guard against nobody.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
