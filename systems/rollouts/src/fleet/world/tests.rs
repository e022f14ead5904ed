//! That each mistake is found is checked in release: `interlock check rollouts/fleet --mutants`.

use super::*;
use interlock_checker::{Options, Size};

fn explored(size: &str) -> interlock_checker::Report {
    let world = Size::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check(MODEL, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.complete, "{report:?}");
    report
}

#[test]
fn the_shipped_controller_keeps_its_promises() {
    for (size, states) in [
        ("flights=0,stale=0,live=1,programs=1,clusters=3", 86),
        ("flights=0,stale=1,live=1,programs=1,cancels=1,drains=0", 564),
        ("flights=1,stale=0,programs=1,unready=1,fails=0", 38),
    ] {
        assert_eq!(explored(size).distinct_states, states, "{size}");
    }
}
