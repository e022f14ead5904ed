//! The shipped rooms keep their promises while a namespace moves, and mistakes are found.

use super::*;
use crate::world::tests::check_sizes;
use interlock_checker::{Options, check};

/// What is explored, and how many states there are: a world that shrank by accident fails. The default size and others
/// are larger, and are explored in release: `cargo xtask counts`.
const SIZES: &[(&str, u64)] = &[
    ("crash=0,faults=0,epochs=1,forced=0", 36),
    ("crash=0,faults=0", 2_851),
    ("crash=0,faults=0,live=1,elapses=5", 6_103),
    ("crash=0,faults=0,lags=1", 7_989),
    ("crash=0,faults=0,same=1", 2_800),
    ("crash=0,deletes=1,live=1,epochs=1,forced=0", 1_385),
    ("crash=0,faults=0,shared=1,epochs=1,forced=0", 58),
    ("crash=0,faults=0,shared=2,epochs=1,forced=0", 1_416),
    ("managed=1,deletes=1,epochs=1,forced=0", 1_233),
    ("managed=1,deletes=1,epochs=1,forced=0,crash=0,elapses=6,live=1", 182),
    ("managed=1,deletes=1,epochs=1,forced=0,processes=2,crash=0,elapses=2", 6_134),
    ("crash=0,faults=0,stale=1", 29_258),
    ("processes=2,crash=0,faults=0,forced=0,elapses=1", 6_885),
];

/// Whether every step of a size is compared with the protocol of rights.
fn is_compared(size: &str) -> bool {
    let others = ["deletes=1", "shared=", "managed=1"];
    !others.iter().any(|other| size.contains(other))
}

#[test]
fn promises_are_kept_by_the_rooms_that_ship() {
    check_sizes(&ENTRY, SIZES, is_compared);
}

/// The others take longer, and are run in release: `interlock check identities/placed --mutants`.
#[test]
fn mistakes_are_found() {
    let world = ENTRY.in_size("").expect("a world");
    let names = [
        "trust-before-release",
        "no-fence",
        "fence-before-close",
        "two-clusters-with-one-issuer",
        "called-before-it-is-listed",
        "rights-never-ready",
    ];
    assert_eq!(ENTRY.survivors(&*world, &names).expect("they are checked"), [""; 0]);
}

/// What the refinement alone notices: it is no second copy of the promises.
#[test]
fn a_mistake_that_breaks_the_refinement_breaks_nothing_else() {
    let mut mistakes = mistakes::all().into_iter();
    let mistake = mistakes.find(|it| it.breaks == [refine::REFINED]).expect("there is one");
    assert_eq!(mistake.name, "ready-while-a-call-is-unanswered");
    let size = Size { refine: 0, ..mistake.system.size };
    let world = World::new(Placed { size, ..mistake.system });
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.refines.is_empty(), "{report:?}");
}
