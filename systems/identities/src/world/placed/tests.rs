//! The shipped rooms keep their promises while a namespace moves, and mistakes are found.

use super::*;
use interlock_checker::{Options, Size as Asked};

/// What is explored, and how many states there are: a world that shrank by accident fails.
const SIZES: &[(&str, u64)] = &[
    ("", 93_612),
    ("crash=0,faults=0,epochs=1,forced=0", 32),
    ("crash=0,faults=0", 2_150),
    ("crash=0,faults=0,live=1,elapses=5", 4_182),
    ("crash=0,faults=0,lags=1", 7_031),
    ("crash=0,faults=0,same=1", 2_129),
    ("crash=0,faults=0,epochs=3,forced=2,elapses=4", 56_724),
    ("crash=0,deletes=1,live=1,epochs=1,forced=0", 1_154),
    ("crash=0,faults=0,shared=1,epochs=1,forced=0", 60),
    ("managed=1,deletes=1,epochs=1,forced=0", 1_233),
    ("managed=1,deletes=1,epochs=1,forced=0,crash=0,elapses=6,live=1", 182),
    ("managed=1,deletes=1,epochs=1,forced=0,processes=2,crash=0,elapses=2", 6_134),
    ("crash=0,faults=0,stale=1", 20_142),
    ("crash=0,faults=0,flights=1", 53_288),
    ("processes=2,crash=0,faults=0,forced=0,elapses=1", 2_733),
    ("processes=2,crash=0,faults=0,deletes=1,live=1,epochs=1,forced=0,elapses=0,flights=1", 38_129),
];

#[test]
fn promises_are_kept_by_the_rooms_that_ship() {
    let mut others = Vec::new();
    for (size, states) in SIZES {
        let world = Asked::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
        let report = world.check(NAME, &Options::default()).expect("it is explored");
        assert!(report.all_hold() && report.complete, "{report:?}");
        if report.distinct_states != *states {
            others.push((*size, report.distinct_states));
        }
    }
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn every_mistake_is_found() {
    let world = Asked::parse("").and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check_mutants(NAME, &Options::default());
    assert!(report.as_ref().is_ok_and(|report| report.all_killed()), "{report:?}");
}
