//! Identities. Breakages that do harm in few seeds are looked for in release: `.ci/run`.

use crate::{is_found, is_one_history, kept};
use interlock_simulation::{Flaw, SimulatedWorld::Identities};

const SEEDS: u64 = 6;

#[test]
fn every_promise_is_kept_in_every_seed() {
    let counts = kept(Identities, SEEDS).counts;
    // A world in which nothing happens keeps every promise.
    let seldom = [counts.moves, counts.deaths, counts.twins, counts.old_lists, counts.late_calls];
    assert!(seldom.into_iter().all(|count| count > SEEDS), "too little: {counts:?}");
}

#[test]
fn one_seed_is_one_history() {
    is_one_history(Identities, 7);
}

#[test]
fn names_that_collide_are_found() {
    is_found(Identities, Flaw::NamesCollide, 1..=20);
}
