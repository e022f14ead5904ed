use super::*;
use interlock_checker::explore::successors;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;
use std::collections::HashSet;

fn sized(size: &str) -> Lease {
    Lease::from_size(&Size::parse(size).unwrap()).unwrap()
}

fn live(size: &str) -> Lease {
    Lease::live_from_size(&Size::parse(size).unwrap()).unwrap()
}

fn check_counts(model: &Lease, expected: (u64, u64, u32)) {
    let counts = reference::explore(model);
    assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{}", model.size());
    assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{}", model.size());
}

/// The invariants broken in the first level that breaks any, and the length of the trace to it.
fn first_broken(model: &Lease) -> Option<(Vec<&'static str>, u32)> {
    let invariants = model.invariants();
    let (mut seen, mut steps) = (HashSet::new(), Steps::default());
    let mut frontier = model.initial();
    let mut length = 0;
    while !frontier.is_empty() {
        length += 1;
        frontier.retain(|state| seen.insert(model.pack(state)));
        let broken = invariants.iter().filter(|i| !frontier.iter().all(&i.holds));
        let broken: Vec<_> = broken.map(|invariant| invariant.name).collect();
        if !broken.is_empty() {
            return Some((broken, length));
        }
        for state in std::mem::take(&mut frontier) {
            successors(model, &state, &mut steps);
            frontier.extend(steps.as_slice().iter().map(|step| step.to.clone()));
        }
    }
    None
}

#[test]
fn moves_under_leases_are_counted_as_tlc_counts_them() {
    check_counts(&sized("clusters=1,relist=0"), (8_541, 1_811, 23));
    check_counts(&sized("writes=1,relist=0"), (154_049, 23_269, 23));
    check_counts(&sized("writes=1,relist=0,force=0"), (54_025, 7_989, 23));
    check_counts(&sized("epochs=3,lease=0,force=0,relist=0"), (167_297, 30_121, 30));
    check_counts(&live(""), (17_177, 4_259, 25));
}

#[test]
fn moves_under_leases_with_stale_lists_are_counted_as_tlc_counts_them() {
    check_counts(&sized("writes=1"), (1_523_091, 82_405, 24));
    check_counts(&sized(""), (3_651_375, 196_785, 26));
    check_counts(&sized("epochs=3,writes=1,lease=0,force=0"), (1_235_961, 54_459, 27));
}

#[test]
fn three_moves_under_leases_are_counted_as_tlc_counts_them() {
    check_counts(&sized("epochs=3,relist=0"), (5_616_301, 802_507, 34));
}

#[test]
fn each_broken_rule_breaks_its_promise_after_as_many_states_as_in_tlc() {
    let broken = [
        ("grant-without-release", "OnlyTheOwnerRuns", 7),
        ("takeover-without-lease", "OnlyTheOwnerRuns", 7),
        ("lease-stops-nothing", "OnlyTheOwnerRuns", 9),
        ("released-not-noted", "OnlyTheOwnerRuns", 10),
        ("released-not-noted-leased", "OnlyTheOwnerRuns", 11),
        ("no-final-copy", "NoLoss", 17),
    ];
    for (mutant, (name, promise, length)) in sized("writes=1,relist=0").mutants().iter().zip(broken)
    {
        assert_eq!((mutant.name.as_str(), &mutant.breaks), (name, &vec![promise]));
        assert_eq!(first_broken(&mutant.model), Some((vec![promise], length)), "{name}");
    }
}

#[test]
fn a_takeover_without_leases_is_refused() {
    let size = Size::parse("lease=0").unwrap();
    assert!(matches!(Lease::from_size(&size), Err(SizeError::Meaningless(_))));
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in [sized(""), sized("clusters=3,epochs=3,writes=3"), live("clusters=1,epochs=1")] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state, "{}", model.size());
        }
    }
}

#[test]
fn clusters_are_interchangeable() {
    assert_symmetric(&sized("clusters=3,epochs=3"));
}
