//! The world in its small sizes. Its mistakes are looked for in release: `interlock check fleet/drain --mutants`.

use super::*;
use interlock_checker::{Options, check};

fn holds(size: &str) {
    let size = Size::parse(size).expect("a size");
    let world = World::new(Drains::from_size(&size).expect("a size"));
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold(), "{report:?}");
    assert!(report.complete);
}

#[test]
fn a_cluster_is_updated_while_it_is_empty() {
    holds("flights=0,crash=1");
}

#[test]
fn two_updates_that_drain_their_clusters_end_one_after_the_other() {
    holds("requests=2,begun=1,flights=0,live=1");
}
