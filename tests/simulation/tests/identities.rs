//! Identities: seeds of the simulation, and breakages that it must find.

use interlock_simulation::{Flaw, Search, SimulatedWorld, run, run_many};
use std::ops::RangeInclusive;

/// How many seeds are run with the other tests. For more there is the crate's own program.
const SEEDS: u64 = 20;

fn search(seeds: RangeInclusive<u64>, flaw: Flaw) -> Search {
    Search { world: SimulatedWorld::Identities, seeds, time: None, flaw }
}

#[test]
fn every_promise_is_kept_in_every_seed() {
    let summary = run_many(&search(1..=SEEDS, Flaw::None), &|_| {});
    if let Some(red) = summary.red {
        panic!("{red}");
    }
    assert_eq!(summary.seeds, SEEDS);
    let counts = summary.counts;
    // A world in which nothing happens keeps every promise.
    let seldom = [counts.moves, counts.deaths, counts.twins, counts.old_lists, counts.late_calls];
    assert!(seldom.into_iter().all(|count| count > SEEDS), "too little: {counts:?}");
    eprintln!("{SEEDS} seeds in {:?}\n{counts}", summary.took);
}

#[test]
fn one_seed_is_one_history() {
    let once = run(SimulatedWorld::Identities, 7, Flaw::None).map(|told| (told.history, told));
    let again = run(SimulatedWorld::Identities, 7, Flaw::None).map(|told| (told.history, told));
    assert_eq!(once, again);
    let other = run(SimulatedWorld::Identities, 8, Flaw::None).map(|told| (told.history, told));
    assert_ne!(once, other);
}

/// A breakage must do harm in one of these seeds.
fn is_found(flaw: Flaw, seeds: RangeInclusive<u64>) {
    let summary = run_many(&search(seeds.clone(), flaw), &|_| {});
    let Some(red) = summary.red else { panic!("{flaw:?} was not found in the seeds {seeds:?}") };
    eprintln!("{flaw:?} was found in seed {}: {}", red.seed, red.broken);
}

#[test]
fn a_process_whose_name_outlives_it_is_found() {
    is_found(Flaw::ProcessNameStays, 1..=60);
}

#[test]
fn a_client_that_forgets_what_it_sent_is_found() {
    is_found(Flaw::SentIsForgotten, 1..=60);
}

#[test]
fn names_that_collide_are_found() {
    is_found(Flaw::NamesCollide, 1..=20);
}

/// It does harm seldom: a role looks at its Grant when an owner waits for it, and caches show that late.
#[test]
fn a_role_that_follows_a_cached_grant_is_found() {
    is_found(Flaw::RoleBelievesItsCache, 141..=150);
}
