use super::*;
use crate::search::states_until_broken;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;

const DEFAULT: [u8; 4] = [2, 2, 1, 2];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        ([1, 1, 0, 1], (17, 16, 8)),
        (DEFAULT, (18_485, 9_256, 20)),
        ([2, 3, 2, 3], (332_569, 119_094, 25)),
        ([3, 2, 1, 2], (985_175, 424_960, 28)),
    ] {
        let counts = reference::explore(&Lifecycle::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn outcomes_never_change_and_nothing_outdated_starts() {
    let model = Lifecycle::new(DEFAULT, Rules::ALL);
    for promise in ["TerminalStable", "NoOutdatedStart"] {
        assert_eq!(states_until_broken(&model, promise), None, "{promise}");
    }
}

/// The specification with the same line changed gives TLC the same figures.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("no-supersede", "OneQueued", 5, (19_457, 9_674, 20)),
        ("outdated-queued", "NoOutdatedStart", 10, (20_989, 10_584, 20)),
        ("two-at-once", "SingleFlight", 8, (22_517, 10_696, 20)),
        ("good-unverified", "GoodWasSuccess", 6, (33_023, 17_272, 21)),
        ("left-partial", "PartialHasRequest", 6, (7_525, 3_484, 18)),
    ];
    let mutants = Lifecycle::new(DEFAULT, Rules::ALL).mutants();
    for (mutant, (name, promise, trace, totals)) in mutants.iter().zip(expected) {
        assert_eq!((mutant.name.as_str(), &*mutant.breaks), (name, &[promise][..]));
        assert_eq!(states_until_broken(&mutant.model, promise), Some(trace), "{name}");
        let counts = reference::explore(&mutant.model);
        assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
    }
}

#[test]
fn a_leaked_lock_leaves_the_cluster_stuck_for_ever() {
    let mutants = Lifecycle::new(DEFAULT, Rules::ALL).mutants();
    let leaked = &mutants[5];
    assert_eq!((leaked.name.as_str(), mutants.len()), ("lock-leaked", 6));
    let counts = reference::explore(&leaked.model);
    assert_eq!((counts.generated, counts.distinct, counts.depth), (12_715, 7_318, 19));
    assert_eq!((counts.violated, counts.deadlock), (vec![], Some(8)));
}

#[test]
fn each_mutant_breaks_in_the_smallest_size_too() {
    for mutant in Lifecycle::new([1, 1, 0, 1], Rules::ALL).mutants().iter().take(5) {
        let broken = states_until_broken(&mutant.model, mutant.breaks[0]);
        assert!(broken.is_some(), "{}", mutant.name);
    }
}

#[test]
fn requests_and_workers_are_interchangeable() {
    assert_symmetric(&Lifecycle::new(DEFAULT, Rules::ALL));
    assert_symmetric(&Lifecycle::new([4, 3, 2, 2], Rules::ALL));
    assert_eq!(Lifecycle::new(DEFAULT, Rules::ALL).symmetries(), 3);
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = Lifecycle::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut rng = Rng::new(1);
    for model in [largest, Lifecycle::new(DEFAULT, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn every_invariant_could_be_broken() {
    let model = Lifecycle::new(DEFAULT, Rules::ALL);
    let mut rng = Rng::new(1);
    let states: Vec<_> = (0..1_000).filter_map(|_| model.arbitrary(&mut rng)).collect();
    for invariant in model.invariants() {
        assert!(states.iter().any(|state| !(invariant.holds)(state)), "{}", invariant.name);
    }
}
