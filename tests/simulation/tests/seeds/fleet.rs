//! Placement and volumes.

use crate::{is_found, is_one_history, kept};
use interlock_simulation::{Flaw, SimulatedWorld::Fleet, run};

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

/// One seed in five is about that: a line to the hub or to the cluster is cut again and again, most of all right after something
/// was written that others rest on, and the program goes on with the server that is left.
#[test]
fn a_program_that_loses_one_of_its_two_servers_does_no_harm() {
    let (mut cut, mut done) = (0, 0);
    for seed in [25, 30, 35, 40] {
        let told = run(Fleet, seed, Flaw::None).unwrap_or_else(|red| panic!("{red}"));
        cut += told.counts.partitions;
        done += told.counts.one_sided;
    }
    // A program that waits until both are there again does no harm either.
    assert!(cut > 20 && done > 20, "too little: {cut} lines were cut, {done} effects meanwhile");
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
