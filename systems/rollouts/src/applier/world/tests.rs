use super::*;
use interlock_checker::{Options, Size};

fn explored(size: &str) -> interlock_checker::Report {
    let world = Size::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check("rollouts/applier", &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.complete, "{report:?}");
    report
}

#[test]
fn the_shipped_applier_keeps_its_promises() {
    for (size, states) in [("objects=1", 76_290), ("flights=0,stale=0,live=1,objects=3", 230)] {
        assert_eq!(explored(size).distinct_states, states, "{size}");
    }
}

#[test]
fn behind_a_fence_that_lags_it_keeps_its_promises_from_the_settle_time_on() {
    for (size, states) in [
        ("flights=1,stale=0,objects=1,lag=1", 78_678),
        ("flights=0,stale=0,live=1,objects=3,lag=1", 2_467),
    ] {
        assert_eq!(explored(size).distinct_states, states, "{size}");
    }
}

#[test]
fn each_mistake_is_found() {
    let world = Size::parse("").and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check_mutants("rollouts/applier", &Options::default());
    assert!(report.as_ref().is_ok_and(|report| report.all_killed()), "{report:?}");
}
