//! That each mistake is found is checked in release: `interlock check rollouts --mutants`.

use super::*;
use interlock_checker::{Options, Size, check};

fn explored(size: &str) -> interlock_checker::Report {
    let world = Size::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
    let report = world.check(NAME, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.complete, "{report:?}");
    assert_eq!(report.refines.len(), 1, "every step is compared with the protocol");
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

/// What the refinement alone notices: it is no second copy of the promises.
#[test]
fn a_mistake_that_breaks_the_refinement_breaks_nothing_else() {
    let mut mistakes = mistakes::mistakes().into_iter();
    let mistake = mistakes.find(|it| it.breaks == [refine::REFINED]).expect("there is one");
    assert_eq!(mistake.name, "start-unchecked");
    let world = World::new(Rollouts { is_refined: false, ..mistake.system });
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.refines.is_empty(), "{report:?}");
}
