//! The world in its small sizes. Its mistakes are looked for in release: `interlock check fleet/machines --mutants`.

use super::*;
use interlock_checker::{Options, check};

fn holds(size: &str, states: u64) {
    let size = Size::parse(size).expect("a size");
    let world = World::new(Machines::from_size(&size).expect("a size"));
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold(), "{report:?}");
    assert!(report.complete);
    assert_eq!(report.distinct_states, states);
}

#[test]
fn the_epoch_of_a_machine_ends_once_the_cluster_on_it_is_empty() {
    holds("", 1_443);
}

#[test]
fn a_reclaim_a_drain_and_a_namespace_do_not_wait_for_one_another() {
    holds("flights=0,live=1", 298);
}

#[test]
fn two_machines_of_one_cluster_each_take_off_their_own_drain() {
    holds("nodes=2,shared=1,flights=0,live=1", 8_242);
}

#[test]
fn a_cluster_that_gets_one_more_machine_while_it_is_drained_says_so_again() {
    holds("edits=1,flights=0,live=1", 1_284);
}

#[test]
fn a_machine_whose_cluster_cannot_be_drained_says_so() {
    holds("alone=1,flights=0,live=1", 77);
}

#[test]
fn a_person_ends_a_drain_that_nothing_else_ends() {
    holds("alone=1,fences=1,flights=0,live=1", 2_265);
}
