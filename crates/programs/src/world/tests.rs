//! The world in its small sizes. Its mistake is looked for in release: `interlock check placement-and-volumes --mutants`.

use super::*;
use interlock_checker::{Options, check};

fn holds(size: &str, states: u64) {
    let size = Size::parse(size).expect("a size");
    let world = World::new(Fleet::from_size(&size).expect("a size"));
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold(), "{report:?}");
    assert!(report.complete);
    assert_eq!(report.distinct_states, states);
}

#[test]
fn a_namespace_starts_with_an_empty_volume() {
    holds("half=0,moves=0,begun=0,crash=1,wakes=1", 715);
}

#[test]
fn cluster_a_releases_a_namespace_with_its_last_snapshot() {
    holds("half=1,flights=1,crash=1,wakes=1", 4_708);
}

#[test]
fn cluster_b_fills_its_volume_and_runs_and_cluster_a_cleans_up() {
    holds("half=2", 25_594);
}

#[test]
fn in_the_end_the_namespace_runs_where_people_want_it() {
    holds("half=1,crash=1,live=1", 839);
}
