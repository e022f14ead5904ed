//! Mistakes that show only between the parts of a step: writes that are late, and looks that are old.

use super::moves::{NOT_ONE, grant_in_the_cache};
use super::seeing::Seeing;
use super::{Bend, Row, noted};
use crate::kinds::NAMESPACE;
use crate::runtime::decide as runs;
use crate::runtime::{Runtime, outside};
use crate::syncer::facts::Facts as SyncerFacts;
use crate::syncer::{Locks, Syncer};
use interlock_api::names::{ANNOTATION_RAN, ANNOTATION_RELEASED};
use interlock_api::placement::Phase;
use interlock_kernel::{
    Kind, LiveReads, Name, Object, Observed, Place, Room, Step, Subject, View, Write,
};
use interlock_world::unguarded;
use std::sync::Arc;

pub(super) const ROWS: &[Row] = &[
    Row(
        "close-unguarded",
        "a syncer closes what another one has permitted since it looked",
        NOT_ONE,
        // The one that is up to date: its notes change only after it looked.
        &[Bend::FirstSyncerActs(close_unguarded)],
        "moves=1,flights=2,late=2,stale=1,crash=0,begun=1,syncers=2",
    ),
    Row(
        "lost-reply-is-refusal",
        "a syncer does not hear of a permit, takes that for a refusal, and closes over notes that it \
         has not seen: each alone would cover for the other",
        NOT_ONE,
        // The one that is out of date: its notes changed before it looked.
        &[Bend::SecondSyncerActs(close_unguarded)],
        "moves=1,flights=2,late=2,stale=1,crash=0,begun=1,syncers=2",
    ),
    Row(
        "permit-unguarded",
        "a permit is written over notes that changed since, and a start does not look at what is \
         closed: each alone would cover for the other",
        NOT_ONE,
        &[
            Bend::SyncerActs(|room, scene, decision| {
                unguarded(room.act(scene, decision), |write| notes(write, ANNOTATION_RAN))
            }),
            Bend::RuntimeObserves(start_ignores_released),
        ],
        "moves=2,flights=1,late=1,stale=0,crash=0,begun=1,syncers=2",
    ),
    Row(
        "released-ignored",
        "neither a permit nor a start looks at what is closed, and the permit trusts the cache",
        NOT_ONE,
        &[Bend::SyncerObserves(released_ignored), Bend::RuntimeObserves(start_ignores_released)],
        "moves=1,flights=0,late=1,stale=1,crash=0,syncers=2",
    ),
    Row(
        "boot-read-late",
        "a permit that was looked for before the power loss names the boot after it",
        NOT_ONE,
        &[Bend::BootReadLate],
        "moves=0,flights=1,late=1,stale=0,crash=0,force=1",
    ),
];

/// Whether a write notes something under this name.
fn notes(write: &Write, name: &str) -> bool {
    let Write::Patch { address, change, .. } = write else { return false };
    address.kind == NAMESPACE && change["metadata"]["annotations"][name].is_string()
}

fn close_unguarded(
    syncer: &Syncer,
    scene: &<Syncer as Room>::Scene,
    decision: <Syncer as Room>::Decision,
) -> Step<Locks> {
    unguarded(syncer.act(scene, decision), |write| notes(write, ANNOTATION_RELEASED))
}

/// The permit rests on the cache, and does not see what is closed.
fn released_ignored(
    syncer: &Syncer,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Locks>,
) -> Observed<SyncerFacts, <Syncer as Room>::Scene> {
    let mut observed = grant_in_the_cache(syncer, subject, view, live_reads);
    if let Observed::Seen { facts, .. } = &mut observed
        && facts.is_mine(&[Phase::Granted])
    {
        noted(facts, |_, notes| notes.released = 0);
    }
    observed
}

/// The runtime does not see what is closed.
fn start_ignores_released(
    runtime: &Runtime,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<outside::Machine>,
) -> Observed<runs::Facts, <Runtime as Room>::Scene> {
    let as_if = |place, kind: &Kind, _: &Name, found: Option<Object>| {
        found.map(|found| if_open(place, kind, &found))
    };
    let objects = live_reads.objects.iter().map(|(address, found)| {
        let found = found.as_ref().map(|found| if_open(address.place, &address.kind, found));
        (address.clone(), found)
    });
    let live_reads = LiveReads {
        objects: objects.collect(),
        lists: live_reads.lists.clone(),
        selected: live_reads.selected.clone(),
        dry_runs: live_reads.dry_runs.clone(),
        answers: live_reads.answers.clone(),
    };
    runtime.observe(subject, &Seeing { view, as_if: &as_if }, &live_reads)
}

/// The notes of a cluster without what is closed.
fn if_open(place: Place, kind: &Kind, object: &Object) -> Object {
    if place != Place::CLUSTER || *kind != NAMESPACE {
        return object.clone();
    }
    let mut open = (**object).clone();
    if let Some(annotations) = &mut open.metadata.annotations {
        annotations.remove(ANNOTATION_RELEASED);
    }
    Arc::new(open)
}
