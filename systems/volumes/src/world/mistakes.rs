//! The mistakes that a controller could make, each in the least world in which it shows.
//!
//! Every one is an alternative to a function that ships: to `observe`, `decide` or `act` of a room, or
//! to what wakes it.

mod bends;
mod lie;

use super::{Machine, Syncs};
use crate::keeper::Keeper;
use crate::keeper::decide as keep;
use crate::kinds::{CLAIM, DESTINATION};
use crate::populator::decide as fill;
use crate::populator::{self, Populator};
use crate::storage::{Claims, Snapshots, Volumes, snapshot};
use crate::sync::decide as sync;
use crate::sync::{Here, Replication, Serves};
use bends::{
    begins_before_its_intent, by_name, deletes_another, deletes_unseen, filled, hides_handed,
    keeps_without_retain, lists_from_the_cache, settles_to_stay, snapshot_from_the_cache,
    snapshots_look_ready, synced, syncing, tag_of_now, unguarded_hold,
};
use interlock_checker::Size;
use interlock_kernel::{Act, Altered, Bent, Decide, Observe, Room, Watch, Watcher};
use interlock_world::{Actor, Mistake, shipped};

/// What is done otherwise.
#[derive(Clone, Copy)]
pub(super) enum Bend {
    PopulatorObserves(Observe<Populator>),
    PopulatorDecides(Decide<Populator>),
    PopulatorActs(Act<Populator>),
    ClaimsObserve(Observe<Claims>),
    VolumesAct(Act<Volumes>),
    SnapshotsDecide(Decide<Snapshots>),
    KeeperDecides(Decide<Keeper>),
    SyncObserves(Observe<Replication>),
    SyncDecides(Decide<Replication>),
    SyncActs(Act<Replication>),
    /// A mover begins before the intent of its sync is written.
    BeginsFirst,
    /// A change of the destination wakes no populator.
    PopulatorSleeps,
    /// A change of a claim wakes no destination.
    SyncSleeps,
}

const SNAPSHOT_DELETED: &[&str] = &["ImageInUseExists", "HeldSnapshotStays"];

/// The name, the sentence, what must break, what is done otherwise, and the least size in which it
/// shows.
struct Row(&'static str, &'static str, &'static [&'static str], &'static [Bend], &'static str);

/// A claim is filled from a snapshot that is there.
const FILL: &str = "vandals=0,flights=0,stale=0,crash=0";
/// The same, and the claim is deleted at some time.
const FILL_DELETED: &str = "vandals=0,deletes=1,flights=0,stale=0,crash=0,live=1";
/// The same, and the destination is deleted at some time.
const FILL_LEAVE: &str = "vandals=0,leave=1,flights=0,stale=0,crash=0";
/// A destination brings its first snapshot.
const BRING: &str = "vandals=0,claims=0,done=0,flights=0,stale=0,crash=0";

const ROWS: &[Row] = &[
    Row(
        "hold-late",
        "PVC' is made of a snapshot that is not held yet",
        &["ImageInUseExists"],
        &[Bend::PopulatorDecides(|facts| {
            filled(facts, |facts| {
                if facts.holds == fill::Holds::None && facts.pin.is_some() && !facts.is_deleting {
                    facts.holds = fill::Holds::Pinned;
                }
            })
        })],
        FILL_LEAVE,
    ),
    Row(
        "latest-deleted",
        "the latest snapshot counts as one of the old ones",
        &["LatestImageExists"],
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| facts.snapshots.iter_mut().for_each(|it| it.is_latest = false))
        })],
        BRING,
    ),
    Row(
        "destination-goes-early",
        "the destination is being deleted, and deletes a snapshot that is held",
        SNAPSHOT_DELETED,
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| {
                if facts.is_terminating {
                    facts.has_held_snapshot = false;
                    facts.snapshots.iter_mut().for_each(|snapshot| snapshot.is_held = false);
                }
            })
        })],
        FILL_LEAVE,
    ),
    Row(
        "gone-while-held",
        "the object goes, and its snapshots after it, although one of them is held",
        &["HeldSnapshotStays"],
        &[Bend::SyncDecides(|facts| synced(facts, |facts| facts.has_held_snapshot = false))],
        FILL_LEAVE,
    ),
    Row(
        "prime-dropped-early",
        "PVC' is deleted before its volume is the claim's",
        &["NeverLost"],
        &[Bend::PopulatorDecides(|facts| {
            filled(facts, |facts| {
                if facts.prime == fill::Prime::Bound {
                    facts.prime = fill::Prime::Lost;
                }
                if facts.volume == fill::Volume::OfPrime {
                    facts.volume = fill::Volume::None;
                }
            })
        })],
        FILL,
    ),
    Row(
        "hold-kept-on-delete",
        "a claim that is deleted leaves its hold behind",
        &["HoldsEnd"],
        &[Bend::PopulatorDecides(|facts| {
            filled(facts, |facts| {
                if facts.is_deleting {
                    facts.holds = fill::Holds::None;
                }
            })
        })],
        FILL_DELETED,
    ),
    Row(
        "handed-by-name",
        "a claim that was made again under its name is bound to the volume of the one before",
        &["BoundIsPopulated"],
        &[Bend::ClaimsObserve(by_name)],
        "vandals=0,claims=2,deletes=1,flights=0,stale=0,crash=0",
    ),
    Row(
        "use-before-ready",
        "a snapshot is published and chosen before it is ready to use",
        &["LatestImageExists", "BoundIsPopulated"],
        &[Bend::SyncObserves(snapshots_look_ready), Bend::PopulatorObserves(snapshots_look_ready)],
        "vandals=0,done=0,flights=0,stale=0,crash=0",
    ),
    Row(
        "tag-at-the-end",
        "the tag that is answered is the one that is set when the sync ends",
        &["TagMeansAfter"],
        &[Bend::SyncObserves(tag_of_now)],
        "vandals=0,kind=1,syncs=2,flights=0,stale=0,crash=0",
    ),
    Row(
        "intent-after-the-effect",
        "the mover begins before the intent of its sync is written",
        &["FilledOnce", "MoverHasAPlace"],
        &[Bend::BeginsFirst],
        BRING,
    ),
    Row(
        "empty-published",
        "what was brought back is published although there is nothing in it",
        &["NoEmptyByAccident"],
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| {
                if let sync::Side::Destination(destination) = &mut facts.side {
                    destination.is_outcome_usable = true;
                }
                syncing(facts, |sync| {
                    if let sync::Snapshot::Ready { is_usable } = &mut sync.snapshot {
                        *is_usable = true;
                    }
                });
            })
        })],
        "vandals=0,claims=0,done=0,faults=1,flights=0,stale=0,crash=0",
    ),
    Row(
        "published-before-ready",
        "a snapshot is published while it is being taken",
        &["LatestImageExists"],
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| {
                syncing(facts, |sync| {
                    if let sync::Snapshot::NotReady(_) = sync.snapshot {
                        sync.snapshot = sync::Snapshot::Ready { is_usable: true };
                    }
                });
            })
        })],
        BRING,
    ),
    Row(
        "begun-on-old-news",
        "a mover begins although its snapshot may be there already",
        &["SnapshotUntouched"],
        &[Bend::SyncObserves(snapshot_from_the_cache)],
        "vandals=0,claims=0,done=0,flights=0,stale=1,crash=1,relist=1",
    ),
    Row(
        "deleted-on-old-news",
        "a snapshot is deleted although somebody has taken hold of it since it was seen",
        &["HeldSnapshotStays"],
        &[Bend::SyncActs(deletes_unseen)],
        "vandals=0,leave=1,flights=1,stale=0,crash=0",
    ),
    Row(
        "gone-on-old-news",
        "the object goes because the cache shows no snapshot of it",
        &["HeldSnapshotStays"],
        &[Bend::SyncObserves(lists_from_the_cache)],
        "vandals=0,done=0,leave=1,second=2,flights=0,stale=1,crash=0",
    ),
    Row(
        "hold-read-from-the-cache",
        "PVC' goes because the cache shows no hold of its own yet",
        &["HolderExists"],
        &[Bend::ClaimsObserve(snapshot_from_the_cache)],
        "vandals=0,deletes=1,flights=0,stale=1,crash=0",
    ),
    Row(
        "place-left-while-it-runs",
        "a destination that is being deleted gives back the place of a mover that runs",
        &["MoverHasAPlace"],
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| {
                if facts.is_terminating {
                    syncing(facts, |sync| sync.mover = sync::Mover::Unknown);
                }
            })
        })],
        "vandals=0,claims=0,done=0,leave=1,flights=0,stale=0,crash=0",
    ),
    Row(
        "snapshot-deleted-on-the-disk",
        "a snapshot that is held is deleted on the disk",
        &["HeldSnapshotStays"],
        &[Bend::SnapshotsDecide(|facts| {
            let mut facts = facts.clone();
            if let snapshot::Facts::Snapshot(facts) = &mut facts {
                facts.is_held = false;
            }
            Snapshots::decide(&facts)
        })],
        "vandals=1,flights=0,stale=0,crash=0",
    ),
    Row(
        "volume-not-settled",
        "the volume of a claim that is deleted is kept for ever",
        &["NothingIsLeft"],
        &[Bend::PopulatorActs(settles_to_stay)],
        FILL_DELETED,
    ),
    Row(
        "handed-volume-not-seen",
        "a claim that was handed a volume and is not bound yet is handed another",
        &["OneVolumePerClaim"],
        &[Bend::PopulatorObserves(hides_handed)],
        FILL,
    ),
    Row(
        "another-volume-deleted",
        "the volume of a claim of another namespace is deleted on the disk",
        &["OthersUntouched"],
        &[Bend::VolumesAct(deletes_another)],
        "vandals=0,deletes=1,flights=0,stale=0,crash=0",
    ),
    Row(
        "place-given-back-early",
        "the place of a sync that is under way is given back",
        &["MoverHasAPlace"],
        &[Bend::KeeperDecides(|facts| {
            let (is_named, does_mover_run) = (facts.is_named.map(|_| false), false);
            Keeper::decide(&keep::Facts { is_named_in_cache: false, is_named, does_mover_run })
        })],
        BRING,
    ),
    Row(
        "place-never-given-back",
        "the place of a sync whose object is gone stays taken",
        &["PlacesEnd"],
        &[Bend::KeeperDecides(|_| keep::Decision::Leave)],
        "vandals=0,kind=2,leave=1,flights=0,stale=0,crash=0,live=1",
    ),
    Row(
        "populator-sleeps",
        "the populator sleeps though the destination has published its first snapshot",
        &["WorkWakes"],
        &[Bend::PopulatorSleeps],
        "vandals=0,done=0,flights=0,stale=0,crash=0,wakes=1",
    ),
    Row(
        "destination-sleeps",
        "the destination sleeps though the claim that it made has its volume",
        &["WorkWakes"],
        &[Bend::SyncSleeps],
        "vandals=0,claims=0,done=0,own=1,flights=0,stale=0,crash=0,wakes=1",
    ),
    Row(
        "begun-again-after-the-end",
        "a mover that died is begun once more for a sync that is over",
        &["FilledOnce"],
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| syncing(facts, |sync| sync.is_over = false))
        })],
        "vandals=0,kind=2,flights=0,stale=0,crash=1",
    ),
    Row(
        "hold-unguarded",
        "a hold is put on a snapshot whatever became of it since it was seen",
        SNAPSHOT_DELETED,
        &[Bend::PopulatorActs(unguarded_hold)],
        "vandals=0,leave=1,flights=1,stale=0,crash=0",
    ),
    Row(
        "hold-not-dropped-for-the-next",
        "the next snapshot is chosen and held while the one before is held still",
        &["OneSnapshotPerHolder"],
        &[Bend::PopulatorDecides(|facts| {
            filled(facts, |facts| {
                let is_lost =
                    matches!(facts.pin, Some(fill::Snapshot::Gone | fill::Snapshot::Dying));
                if is_lost || facts.holds == fill::Holds::Other || facts.pin.is_none() {
                    facts.holds = fill::Holds::None;
                }
            })
        })],
        "syncs=2,vandals=1,flights=0,stale=0,crash=0",
    ),
    Row(
        "no-second-choice",
        "when somebody deletes the snapshot by hand, the claim waits for it for ever",
        &["EventuallyBound"],
        &[Bend::PopulatorDecides(|facts| {
            filled(facts, |facts| {
                if let Some(fill::Snapshot::Gone | fill::Snapshot::Dying) = facts.pin {
                    facts.pin = Some(fill::Snapshot::NotReady);
                }
            })
        })],
        "done=2,vandals=1,flights=0,stale=0,crash=0,live=1",
    ),
    Row(
        "snapshot-not-touched",
        "a hold comes after the claim that it was decided for is gone",
        &["HolderExists"],
        &[Bend::PopulatorDecides(|facts| filled(facts, |facts| facts.is_touched = true))],
        "vandals=0,deletes=1,second=1,flights=1,stale=0,crash=0",
    ),
    Row(
        "volumes-not-listed",
        "the populator makes PVC' though its cache does not show the volume that the claim was handed",
        &["OneVolumePerClaim"],
        &[Bend::PopulatorDecides(|facts| filled(facts, |facts| facts.are_volumes_listed = true))],
        "vandals=0,drops=1,flights=0,stale=1,crash=0",
    ),
    Row(
        "no-retain",
        "the volume changes hands while it would be deleted with PVC'",
        &["NeverLost", "BoundIsPopulated"],
        &[
            Bend::PopulatorActs(keeps_without_retain),
            Bend::PopulatorDecides(|facts| {
                filled(facts, |facts| {
                    if facts.volume == fill::Volume::OfPrime && facts.is_policy_noted {
                        facts.volume = fill::Volume::Kept;
                    }
                })
            }),
        ],
        "vandals=0,drops=1,flights=1,stale=0,crash=0",
    ),
    Row(
        "source-not-read",
        "a PVC' that another populator made of a snapshot of before is waited for",
        &["EventuallyBound", "BoundIsPopulated"],
        &[Bend::PopulatorDecides(|facts| {
            filled(facts, |facts| {
                if facts.prime == fill::Prime::OfOther {
                    facts.prime = match facts.volume {
                        fill::Volume::None => fill::Prime::Pending,
                        _ => fill::Prime::Bound,
                    };
                }
            })
        })],
        "done=2,vandals=1,second=1,flights=1,late=1,stale=0,crash=0,live=1",
    ),
    Row(
        "hold-ignored",
        "old snapshots are deleted although a claim is being filled from them",
        SNAPSHOT_DELETED,
        &[Bend::SyncDecides(|facts| {
            synced(facts, |facts| facts.snapshots.iter_mut().for_each(|it| it.is_held = false))
        })],
        "vandals=0,syncs=3,flights=0,stale=0,crash=0",
    ),
];

/// Every mistake, as a system that makes it.
pub(super) fn mistakes() -> Vec<Mistake<Syncs>> {
    let made = |Row(name, sentence, breaks, bends, size): &Row| {
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Syncs::from_size(&size).expect("the sizes here are in range");
        Mistake { name, sentence, breaks, system: Syncs { bends, ..system } }
    };
    ROWS.iter().map(made).collect()
}

pub(super) fn populator(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    let room = move || {
        bends.iter().fold(Bent::new(Populator), |room, bend| match bend {
            Bend::PopulatorObserves(observe) => room.observing(*observe),
            Bend::PopulatorDecides(decide) => room.deciding(*decide),
            Bend::PopulatorActs(act) => room.acting(*act),
            _ => room,
        })
    };
    if bends.iter().any(|bend| matches!(bend, Bend::PopulatorSleeps)) {
        return shipped(move |_| {
            Altered::new(room()).waking(|room, watch: &Watch, object, view| {
                let is_slept = watch.kind == DESTINATION;
                if is_slept { Vec::new() } else { room.subjects(watch, object, view) }
            })
        });
    }
    shipped(move |_| room())
}

/// A populator that gets nothing done but making PVC', as slow as it is in all else. Where no cache is
/// out of date its live reads find what the cache shows, so it does without.
pub(super) fn only_pours() -> Box<dyn Actor<Machine>> {
    shipped(|_| {
        Bent::new(Populator).deciding(|facts| {
            let would = filled(facts, |facts| {
                facts.is_fresh = true;
                facts.are_volumes_listed = true;
            });
            if let populator::Decision::Claim(fill::Decision::Pour) = would {
                return would;
            }
            populator::Decision::Claim(fill::Decision::Nothing(fill::Why::Pouring))
        })
    })
}

pub(super) fn claims(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Claims), |room, bend| match bend {
            Bend::ClaimsObserve(observe) => room.observing(*observe),
            _ => room,
        })
    })
}

pub(super) fn volumes(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Volumes), |room, bend| match bend {
            Bend::VolumesAct(act) => room.acting(*act),
            _ => room,
        })
    })
}

pub(super) fn snapshots(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Snapshots), |room, bend| match bend {
            Bend::SnapshotsDecide(decide) => room.deciding(*decide),
            _ => room,
        })
    })
}

pub(super) fn keeper(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Keeper), |room, bend| match bend {
            Bend::KeeperDecides(decide) => room.deciding(*decide),
            _ => room,
        })
    })
}

fn replication(bends: &'static [Bend], room: Replication) -> Bent<Replication> {
    bends.iter().fold(Bent::new(room), |room, bend| match bend {
        Bend::SyncObserves(observe) => room.observing(*observe),
        Bend::SyncDecides(decide) => room.deciding(*decide),
        Bend::SyncActs(act) => room.acting(*act),
        _ => room,
    })
}

pub(super) fn sources(bends: &'static [Bend], serves: Serves) -> Box<dyn Actor<Machine>> {
    shipped(move |_| replication(bends, Replication::of_sources(serves)))
}

pub(super) fn destinations(
    bends: &'static [Bend],
    serves: Serves,
    here: Here,
) -> Box<dyn Actor<Machine>> {
    let room = move || replication(bends, Replication::of_destinations(serves, here.clone()));
    if bends.iter().any(|bend| matches!(bend, Bend::BeginsFirst)) {
        return shipped(move |_| Altered::new(room()).stepping(begins_before_its_intent));
    }
    if bends.iter().any(|bend| matches!(bend, Bend::SyncSleeps)) {
        return shipped(move |_| {
            Altered::new(room()).waking(|room, watch: &Watch, object, view| {
                let is_slept = watch.kind == CLAIM;
                if is_slept { Vec::new() } else { room.subjects(watch, object, view) }
            })
        });
    }
    shipped(move |_| room())
}
