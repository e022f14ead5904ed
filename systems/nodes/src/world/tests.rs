//! The shipped rooms keep their promises, and mistakes are found.

use super::*;
use interlock_checker::{Options, check};

/// What is explored, and how many states there are: a world that shrank by accident fails. The default size is
/// larger, and is explored in release: `cargo xtask counts`.
const SIZES: &[(&str, u64)] = &[
    ("tenants=1,deletes=0", 24),
    ("tenants=2,deletes=0", 136),
    ("tenants=1", 1_967),
    ("tenants=1,live=1,wakes=0", 1_967),
    ("tenants=1,deletes=0,reclaims=1,live=1,wakes=0", 1_423),
    ("tenants=1,deletes=0,vanishes=1", 261),
    ("tenants=1,deletes=0,forged=1", 2_254),
    ("tenants=1,deletes=0,lost=1", 302),
    ("tenants=1,deletes=0,reboots=1", 326),
    ("tenants=1,deletes=0,replaced=1", 5_898),
    ("tenants=1,deletes=0,fresh=1", 540),
    ("tenants=1,gone=1,fences=1", 6_212),
    ("tenants=1,dpus=2,deletes=0", 166),
    ("tenants=1,deletes=0,flights=1,crash=1", 739),
    ("tenants=1,deletes=0,stale=1,crash=1,relist=1", 225),
    ("hub=1,tenants=1,epochs=2", 2_206),
    ("hub=1,tenants=1,epochs=1,flights=1", 3_176),
    ("hub=1,tenants=1,epochs=1,lost=1", 548),
    ("hub=1,tenants=1,epochs=1,reboots=1,live=1,wakes=0", 821),
    ("hub=1,tenants=2,epochs=1,forged=1", 5_135),
    ("tenants=1,deletes=0,rewired=1", 60),
    ("hub=1,tenants=1,epochs=1,rewired=1", 190),
    ("tenants=1,deletes=0,reclaims=1,cluster=1", 5_909),
    ("tenants=2,deletes=0,restores=1", 34_419),
];

/// What the refinement alone notices: it is no second copy of the promises. The floor that a lost record begins with
/// is covered by the live read of whoever opens the port.
#[test]
fn a_mistake_that_breaks_the_refinement_breaks_nothing_else() {
    let mut mistakes = mistakes::all(0).into_iter();
    let mistake = mistakes.find(|it| it.breaks == [refine::REFINED]).expect("there is one");
    assert_eq!(mistake.name, "adopted-at-floor-0");
    let size = Size { refine: 0, ..mistake.system.size };
    let world = World::new(Nodes { size, ..mistake.system });
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    assert!(report.all_hold() && report.refines.is_empty(), "{report:?}");
}

#[test]
fn promises_are_kept_by_the_rooms_that_ship() {
    let mut others = Vec::new();
    for (size, states) in SIZES {
        let world = ENTRY.in_size(size).expect("a world");
        let report = world.check(ENTRY.name, &Options::default()).expect("it is explored");
        assert!(report.all_hold() && report.complete, "{size}: {report:?}");
        if report.distinct_states != *states {
            others.push((*size, report.distinct_states));
        }
    }
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn mistakes_are_found() {
    let world = ENTRY.in_size("").expect("a world");
    let names: Vec<&str> = mistakes::all(0).into_iter().map(|mistake| mistake.name).collect();
    assert_eq!(ENTRY.survivors(&*world, &names).expect("they are checked"), [""; 0]);
}
