//! The world in its small sizes. Its mistakes are looked for in release: `interlock check fleet/rights --mutants`.

use super::*;
use interlock_checker::{Options, check};

fn holds(size: &str) {
    let size = Size::parse(size).expect("a size");
    let world = World::new(Placed::from_size(&size).expect("a size"));
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold(), "{report:?}");
    assert!(report.complete);
}

#[test]
fn the_role_follows_a_namespace_that_moves() {
    holds("flights=0,live=1");
}

#[test]
fn the_role_follows_a_namespace_whose_cluster_is_declared_gone() {
    holds("moves=0,force=1,elapses=5,flights=0,live=1");
}
