//! Placement and volumes.

use crate::{is_found, is_one_history, kept};
use interlock_simulation::{Flaw, SimulatedWorld::Fleet};

const SEEDS: u64 = 24;

#[test]
fn every_promise_is_kept_in_every_seed() {
    let counts = kept(Fleet, SEEDS).counts;
    // A world in which nothing happens keeps every promise.
    let seldom = [counts.moves, counts.moments, counts.deaths, counts.twins, counts.old_lists];
    assert!(seldom.into_iter().all(|count| count > SEEDS), "too little: {counts:?}");
    // Data goes along in some of them only.
    assert!(counts.copies.min(counts.failures) > SEEDS / 6, "too little: {counts:?}");
}

#[test]
fn one_seed_is_one_history() {
    is_one_history(Fleet, 7);
}

#[test]
fn a_person_who_says_off_of_a_machine_that_is_on_is_found() {
    is_found(Fleet, Flaw::FalseAttestation, 2..=20);
}

#[test]
fn a_boot_id_that_outlives_its_boot_is_found() {
    is_found(Fleet, Flaw::BootIdStays, 1..=40);
}

#[test]
fn a_scheduler_that_does_not_wait_is_found() {
    is_found(Fleet, Flaw::SchedulerDoesNotWait, 1..=20);
}

#[test]
fn a_syncer_that_acknowledges_before_it_closes_is_found() {
    is_found(Fleet, Flaw::SyncerAcknowledgesFirst, 1..=20);
}

#[test]
fn a_mover_that_says_done_before_all_is_copied_is_found() {
    is_found(Fleet, Flaw::DoneBeforeAllIsCopied, 8..=30);
}

#[test]
fn a_copy_that_is_empty_is_found() {
    is_found(Fleet, Flaw::CopyIsEmpty, 8..=30);
}

#[test]
fn a_snapshot_that_is_not_held_is_found() {
    is_found(Fleet, Flaw::SnapshotIsNotHeld, 32..=60);
}
