//! The shipped rooms keep their promises, and mistakes are found.

use super::*;
use interlock_checker::{Options, Size as Asked};

/// What is explored, and how many states there are: a world that shrank by accident fails.
const SIZES: &[(&str, u64)] = &[
    ("", 41_030),
    ("processes=1,flights=0,there=1", 8),
    ("processes=1,flights=0,there=2", 8),
    ("processes=1,flights=0,there=3", 106),
    ("processes=1,flights=0,crash=1,faults=1,elapses=7,live=1", 1_331),
    ("processes=1,flights=0,faults=1,drifts=1", 2_528),
    ("processes=1,flights=0,faults=1,edits=1", 1_858),
    ("processes=1,flights=0,lags=1", 162),
    ("processes=1,flights=0,crash=1,faults=1,again=1,elapses=3", 2_155),
    ("processes=2,flights=0,faults=1", 5_124),
    ("whole=1,processes=1,flights=0", 9_153),
    ("whole=1,processes=1,flights=0,live=1,elapses=7", 12_498),
    ("whole=1,processes=1,flights=0,deletes=0,stale=1", 6_038),
];

#[test]
fn promises_are_kept_by_the_rooms_that_ship() {
    for (size, states) in SIZES {
        let world = Asked::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
        let report = world.check(NAME, &Options::default()).expect("it is explored");
        assert!(report.all_hold() && report.complete, "{report:?}");
        assert_eq!(report.distinct_states, *states, "{size}");
    }
}

#[test]
fn every_mistake_is_found() {
    let world = Asked::parse("").and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check_mutants(NAME, &Options::default());
    assert!(report.as_ref().is_ok_and(|report| report.all_killed()), "{report:?}");
}
