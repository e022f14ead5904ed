//! Seeds of the simulation, and breakages that it must find.

use interlock_simulation::{Flaw, Search, SimulatedWorld, run, run_many};

/// How many seeds are run with the other tests. For more there is the crate's own program.
const SEEDS: u64 = 60;

#[test]
fn every_promise_is_kept_in_every_seed() {
    let summary = run_many(
        &Search { world: SimulatedWorld::Fleet, seeds: 1..=SEEDS, time: None, flaw: Flaw::None },
        &|_| {},
    );
    if let Some(red) = summary.red {
        panic!("{red}");
    }
    assert_eq!(summary.seeds, SEEDS);
    let counts = summary.counts;
    // A world in which nothing happens keeps every promise.
    let seldom = [counts.moves, counts.moments, counts.deaths, counts.twins, counts.old_lists];
    assert!(seldom.into_iter().all(|count| count > SEEDS), "too little: {counts:?}");
    // Data goes along in some of them only.
    assert!(counts.copies.min(counts.failures) > SEEDS / 6, "too little: {counts:?}");
    eprintln!("{SEEDS} seeds in {:?}\n{counts}", summary.took);
}

#[test]
fn one_seed_is_one_history() {
    let once = run(SimulatedWorld::Fleet, 7, Flaw::None).map(|told| (told.history, told));
    assert_eq!(once, run(SimulatedWorld::Fleet, 7, Flaw::None).map(|told| (told.history, told)));
    assert_ne!(once, run(SimulatedWorld::Fleet, 8, Flaw::None).map(|told| (told.history, told)));
}

/// A breakage must do harm in one of the first so many seeds.
fn is_found(flaw: Flaw, seeds: u64) {
    let summary = run_many(
        &Search { world: SimulatedWorld::Fleet, seeds: 1..=seeds, time: None, flaw },
        &|_| {},
    );
    let Some(red) = summary.red else { panic!("{flaw:?} was not found in {seeds} seeds") };
    eprintln!("{flaw:?} was found in seed {}: {}", red.seed, red.broken);
}

#[test]
fn a_person_who_says_off_of_a_machine_that_is_on_is_found() {
    is_found(Flaw::FalseAttestation, 20);
}

#[test]
fn a_boot_id_that_outlives_its_boot_is_found() {
    is_found(Flaw::BootIdStays, 40);
}

#[test]
fn a_scheduler_that_does_not_wait_is_found() {
    is_found(Flaw::SchedulerDoesNotWait, 20);
}

#[test]
fn a_syncer_that_acknowledges_before_it_closes_is_found() {
    is_found(Flaw::SyncerAcknowledgesFirst, 20);
}
