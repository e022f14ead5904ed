//! The shipped rooms keep their promises, and mistakes are found.

use super::*;
use interlock_checker::Options;

/// What is explored, and how many states there are: a world that shrank by accident fails.
const SIZES: &[(&str, u64)] = &[
    ("", 1_623),
    ("live=1,wakes=0", 1_623),
    ("surge=0,unavailable=1", 1_425),
    ("undos=0,flights=1,agents=1,late=0", 1_290),
    ("undos=0,deletes=1,agents=1", 4_121),
    ("undos=0,exits=1,agents=1,live=1,wakes=0", 4_354),
    ("undos=0,flaps=1", 1_047),
    ("undos=0,changes=0,scales=2", 231),
    ("undos=0,changes=0,scales=1,flights=1", 771),
    ("undos=0,changes=0,scales=1,stale=1", 180),
    ("undos=0,changes=0,deletes=1,flights=1", 4_957),
    ("alone=1,desired=2,deletes=1,scales=1", 162),
    ("alone=1,desired=2,scales=2,flights=1", 1_013),
    ("alone=1,desired=2,orphans=1,stale=1", 35),
    ("alone=1,desired=2,orphans=1,flights=1,live=1,wakes=0", 17),
];

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
    let names: Vec<&str> = mistakes::all().into_iter().map(|mistake| mistake.name).collect();
    assert_eq!(ENTRY.survivors(&*world, &names).expect("they are checked"), [""; 0]);
}
