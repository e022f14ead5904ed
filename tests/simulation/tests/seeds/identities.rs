//! Identities.

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
fn a_process_whose_name_outlives_it_is_found() {
    is_found(Identities, Flaw::ProcessNameStays, 10..=60);
}

#[test]
fn a_client_that_forgets_what_it_sent_is_found() {
    is_found(Identities, Flaw::SentIsForgotten, 4..=60);
}

#[test]
fn names_that_collide_are_found() {
    is_found(Identities, Flaw::NamesCollide, 1..=20);
}

/// It does harm seldom: a role looks at its Grant when an owner waits for it, and caches show that late.
#[test]
fn a_role_that_follows_a_cached_grant_is_found() {
    is_found(Identities, Flaw::RoleBelievesItsCache, 145..=160);
}
