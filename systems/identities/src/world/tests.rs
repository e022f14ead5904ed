//! The shipped rooms keep their promises, and mistakes are found.

use super::*;
use interlock_checker::{Options, check};

/// What is explored, and how many states there are: a world that shrank by accident fails. The default size is
/// larger, and is explored in release: `cargo xtask counts`.
const SIZES: &[(&str, u64)] = &[
    ("processes=1,flights=0,there=1", 10),
    ("processes=1,flights=0,there=2", 10),
    ("processes=1,flights=0,there=3", 126),
    ("processes=1,flights=0,there=4", 47),
    ("processes=1,flights=0,there=5", 25),
    ("processes=1,flights=0,crash=1,faults=1,elapses=7,live=1", 1_718),
    ("processes=1,flights=0,faults=1,drifts=1", 3_116),
    ("processes=1,flights=0,faults=1,edits=1", 2_338),
    ("processes=1,flights=0,lags=1", 116),
    ("processes=1,flights=0,crash=1,faults=1,again=1,elapses=3", 2_585),
    ("processes=2,flights=0,faults=1", 5_600),
    ("whole=1,processes=1,flights=0", 13_948),
    ("whole=1,processes=1,flights=0,live=1,elapses=7", 21_221),
    ("whole=1,processes=1,flights=0,deletes=0,stale=1", 11_754),
];

/// Whether every step of a size is compared with the protocol of the mark.
fn is_compared(size: &str) -> bool {
    let others = ["whole=1", "drifts=1", "again=1", "there="];
    size.contains("flights=0") && !others.iter().any(|other| size.contains(other))
}

/// Checks a world in these sizes: it has so many states, and is compared with its protocol where it is to be.
pub(super) fn check_sizes(entry: &Entry, sizes: &[(&str, u64)], is_compared: fn(&str) -> bool) {
    let mut others = Vec::new();
    for (size, states) in sizes {
        let world = entry.in_size(size).expect("a world");
        let report = world.check(entry.name, &Options::default()).expect("it is explored");
        assert!(report.all_hold() && report.complete, "{report:?}");
        assert_eq!(report.refines.len(), usize::from(is_compared(size)), "{size}");
        let (generated, depth) = (report.generated_states, report.depth);
        eprintln!(
            "{size}: {} states, {generated} generated, depth {depth}",
            report.distinct_states
        );
        if report.distinct_states != *states {
            others.push((*size, report.distinct_states));
        }
    }
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn promises_are_kept_by_the_rooms_that_ship() {
    check_sizes(&ENTRY, SIZES, is_compared);
}

/// The others take longer, and are run in release: `interlock check identities --mutants`.
#[test]
fn mistakes_are_found() {
    let world = ENTRY.in_size("").expect("a world");
    let names = [
        "create-without-mark",
        "absence-believed-at-once",
        "finalizer-after-the-first-call",
        "what-is-there-is-ours",
        "adopted-unasked",
        "id-in-the-status-is-proof",
        "role-without-boundary",
        "children-not-awaited",
    ];
    assert_eq!(ENTRY.survivors(&*world, &names).expect("they are checked"), [""; 0]);
}

/// What the refinement alone notices: it is no second copy of the promises.
#[test]
fn a_mistake_that_breaks_the_refinement_breaks_nothing_else() {
    let mut mistakes = mistakes::all().into_iter();
    let mistake = mistakes.find(|it| it.breaks == [refine::REFINED]).expect("there is one");
    assert_eq!(mistake.name, "created-again");
    let size = Size { refine: 0, ..mistake.system.size };
    let world = World::new(Identities { size, ..mistake.system });
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.refines.is_empty(), "{report:?}");
}
