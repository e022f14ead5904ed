//! Nodes. More breakages are looked for in release: `.ci/run`.

use crate::{is_found, is_one_history, kept};
use interlock_simulation::{Flaw, SimulatedWorld::Nodes};

const SEEDS: u64 = 6;

#[test]
fn every_promise_is_kept_in_every_seed() {
    let counts = kept(Nodes, SEEDS).counts;
    // A world in which nothing happens keeps every promise.
    let seldom = [counts.moves, counts.deaths, counts.twins, counts.old_lists, counts.moments];
    assert!(seldom.into_iter().all(|count| count > SEEDS), "too little: {counts:?}");
    assert!(counts.power_failures.min(counts.by_hand) > SEEDS, "too little: {counts:?}");
}

#[test]
fn one_seed_is_one_history() {
    is_one_history(Nodes, 7);
}

#[test]
fn a_machine_that_returns_without_reports_is_found() {
    is_found(Nodes, Flaw::ReturnedWithoutReports, 1..=20);
}

#[test]
fn a_forged_attachment_that_is_believed_is_found() {
    is_found(Nodes, Flaw::TenantIsNotCompared, 1..=40);
}
