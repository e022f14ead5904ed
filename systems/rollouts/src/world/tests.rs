//! That each mistake is found is checked in release: `interlock check rollouts --mutants`.

use super::*;
use interlock_checker::{Options, Size};

fn explored(size: &str) -> interlock_checker::Report {
    let world = Size::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check(NAME, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.complete, "{report:?}");
    report
}

#[test]
fn the_shipped_conductor_keeps_its_promises() {
    for (size, states) in [
        ("flights=0,stale=0,live=1,cancels=1", 7_497),
        ("flights=0,stale=0,live=1,away=1", 187),
        ("requests=1", 352),
    ] {
        assert_eq!(explored(size).distinct_states, states, "{size}");
    }
}
