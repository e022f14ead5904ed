//! The world in its small sizes.

use super::*;
use crate::spec::Volumes;
use interlock_checker::{Model, Options, Report, Size, Verdict, check, reaches};

fn world(size: &str) -> World<Syncs> {
    let size = Size::parse(size).expect("a size");
    World::new(Syncs::from_size(&size).expect("a size"))
}

fn report(size: &str) -> Report {
    check(NAME, &world(size), &Options::default()).expect("it is explored")
}

fn holds(size: &str, states: u64) {
    let report = report(size);
    assert!(report.all_hold(), "{size}: {report:?}");
    assert!(report.complete);
    assert_eq!(report.distinct_states, states, "{size}");
}

#[test]
fn where_nobody_asks_for_anything_a_status_is_written_once_and_nothing_more() {
    holds("vandals=0,claims=0,flights=0,stale=0,crash=0", 2);
}

#[test]
fn sources_and_destinations_sync_and_whoever_gains_work_is_woken() {
    holds("vandals=0,kind=1,syncs=2,flights=0,stale=0,crash=1,wakes=1", 143);
    holds("vandals=0,kind=2,syncs=2,flights=0,stale=0,crash=1,wakes=1", 871);
    holds("vandals=0,claims=0,done=0,own=1,flights=0,stale=0,crash=1,wakes=1", 150);
    holds("vandals=0,done=0,flights=0,stale=0,crash=0,wakes=1", 447);
}

#[test]
fn steps_come_apart_and_caches_are_out_of_date() {
    holds("vandals=0,flights=1,stale=1,crash=1", 7_037);
    holds("vandals=0,kind=1,syncs=2,flights=1,stale=1,crash=1", 8_053);
    holds("vandals=0,claims=0,syncs=2,flights=1,stale=1,crash=1", 1_713);
}

#[test]
fn snapshots_are_deleted_by_hand_and_claims_by_people() {
    holds("deletes=1,vandals=1,flights=0,stale=0,crash=1", 2_178);
    holds("vandals=1,leave=1,flights=0,stale=0,crash=1", 2_337);
    holds("vandals=0,claims=0,done=0,leave=1,flights=1,stale=1,crash=1", 14_448);
    holds("vandals=0,deletes=1,flights=0,stale=1,crash=0", 2_934);
}

#[test]
fn what_fails_is_tried_again() {
    holds("vandals=0,claims=0,syncs=2,faults=1,flights=0,stale=0,crash=1", 2_724);
    holds("vandals=0,faults=1,flights=0,stale=0,crash=0,live=1", 463);
}

#[test]
fn in_the_end_a_claim_is_filled_or_nothing_of_it_is_left() {
    holds("vandals=0,deletes=1,leave=1,flights=0,stale=0,crash=1,live=1", 8_736);
    holds("vandals=0,kind=2,syncs=2,leave=1,flights=0,stale=0,crash=1,live=1", 4_347);
}

#[test]
fn every_step_is_one_of_the_protocol() {
    for size in [
        "flights=0,stale=0,crash=1",
        "vandals=0,done=0,flights=0,stale=1,crash=0",
        "vandals=0,deletes=1,flights=1,stale=0,crash=1",
        "vandals=0,claims=2,deletes=1,flights=0,stale=0,crash=0",
        "done=2,flights=0,stale=0,crash=0",
    ] {
        let report = report(size);
        assert!(report.all_hold(), "{size}");
        let verdict = report.refines.get("spec/volumes").map(|finding| finding.verdict);
        assert_eq!(verdict, Some(Verdict::Holds), "{size}");
    }
}

#[test]
fn the_protocol_reaches_every_start_too() {
    let size = |text: &str| Size::parse(text).expect("a size");
    let protocol = Volumes::from_size(&size("images=2")).expect("a size");
    for start in ["done=0", "done=1", "done=2", "claims=0"] {
        let system = Syncs::from_size(&size(start)).expect("a size");
        let first = &protocol.initial()[0];
        assert!(reaches(&protocol, first, &refine::start(&system), 8), "{start}");
    }
}

/// Each promise by itself could be too weak to see it; the protocol is not.
#[test]
fn a_mistake_is_no_step_of_the_protocol() {
    for name in ["hold-late", "prime-dropped-early", "published-before-ready", "latest-deleted"] {
        let mistake = mistakes::mistakes().into_iter().find(|mistake| mistake.name == name);
        let system = mistake.expect("there is one of that name").system;
        let world = World::new(Syncs { leave: false, is_refined: true, ..system });
        let options = Options { first: true, ..Options::default() };
        let report = check(NAME, &world, &options).expect("it is explored");
        let verdict = report.refines.values().next().map(|finding| finding.verdict);
        assert_eq!(verdict, Some(Verdict::Violated), "{name}");
    }
}

#[test]
fn a_claim_is_filled_though_the_claim_that_it_is_poured_into_is_deleted_by_hand() {
    holds("vandals=0,drops=1,flights=0,stale=0,crash=1,live=1", 1_968);
    holds("vandals=0,drops=1,flights=1,stale=0,crash=0", 35_175);
    holds("vandals=0,drops=1,flights=0,stale=1,crash=0", 4_631);
}

/// The others take longer, and are run in release: `interlock check volumes --mutants`.
#[test]
fn mistakes_are_found() {
    let world = ENTRY.in_size("").expect("a world");
    let names = [
        "hold-late",
        "volumes-not-listed",
        "latest-deleted",
        "destination-goes-early",
        "gone-while-held",
        "prime-dropped-early",
        "hold-kept-on-delete",
        "handed-by-name",
        "use-before-ready",
        "tag-at-the-end",
        "intent-after-the-effect",
        "empty-published",
        "published-before-ready",
        "begun-on-old-news",
        "deleted-on-old-news",
        "hold-read-from-the-cache",
        "place-left-while-it-runs",
        "snapshot-deleted-on-the-disk",
        "volume-not-settled",
        "handed-volume-not-seen",
        "another-volume-deleted",
        "place-given-back-early",
        "place-never-given-back",
        "populator-sleeps",
        "destination-sleeps",
        "begun-again-after-the-end",
        "hold-unguarded",
        "no-retain",
    ];
    assert_eq!(ENTRY.survivors(&*world, &names).expect("they are checked"), [""; 0]);
}
