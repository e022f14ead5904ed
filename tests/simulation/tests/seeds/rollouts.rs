//! Rollouts. Breakages that do harm in few seeds are looked for in release: `.ci/run`.

use crate::{is_found, is_one_history, kept};
use interlock_simulation::{Flaw, SimulatedWorld::Rollouts};

const SEEDS: u64 = 6;

#[test]
fn every_promise_is_kept_in_every_seed() {
    let counts = kept(Rollouts, SEEDS).counts;
    // A world in which nothing happens keeps every promise. At the end of each seed three clusters are updated.
    let seldom = [counts.deaths, counts.twins, counts.old_lists, counts.by_hand];
    assert!(seldom.into_iter().all(|count| count > SEEDS), "too little: {counts:?}");
    assert!(counts.updates > 3 * SEEDS && counts.rollbacks > SEEDS, "too little: {counts:?}");
}

#[test]
fn one_seed_is_one_history() {
    is_one_history(Rollouts, 7);
}

#[test]
fn updates_that_run_together_are_found() {
    is_found(Rollouts, Flaw::UpdatesRunTogether, 1..=20);
}

#[test]
fn a_rollback_that_stays_is_found() {
    is_found(Rollouts, Flaw::RollbackStays, 1..=20);
}
