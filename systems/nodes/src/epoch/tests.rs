use super::*;
use crate::one_holder::tests::has_one_holder;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;

const DEFAULT: [u8; 4] = [2, 2, 2, 1];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        ([1, 1, 1, 1], (309, 102, 9)),
        (DEFAULT, (15_119, 3_096, 17)),
        ([2, 2, 3, 2], (341_529, 53_363, 26)),
    ] {
        let counts = reference::explore(&NodesEpoch::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    // The last two merely never get there; TLC says which promise breaks.
    let expected = [
        ("no-floor", Some(("PoolClean", 8)), (51_087, 9_720, 21)),
        ("floor-not-loaded", Some(("PoolClean", 10)), (22_071, 4_214, 19)),
        ("returned-unacknowledged", Some(("PoolClean", 7)), (168_855, 26_380, 19)),
        ("looks-once", None, (6_261, 1_881, 16)),
        ("cleans-up-present", None, (17_007, 3_478, 17)),
    ];
    let mutants = NodesEpoch::new(DEFAULT, Rules::ALL).mutants();
    assert_eq!(mutants.len(), expected.len());
    for (mutant, (name, violated, totals)) in mutants.iter().zip(expected) {
        let counts = reference::explore(&mutant.model);
        assert_eq!(mutant.name, name);
        assert_eq!(counts.violated.first().copied(), violated, "{name}");
        assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
    }
}

#[test]
fn each_mutant_breaks_in_the_smallest_size_too() {
    for mutant in NodesEpoch::new([1, 1, 1, 0], Rules::ALL).mutants().iter().take(3) {
        let violated = reference::explore(&mutant.model).violated;
        assert!(violated.iter().any(|(name, _)| *name == "PoolClean"), "{}", mutant.name);
    }
}

#[test]
fn the_node_goes_from_tenant_to_tenant_only_through_nobody() {
    let model = NodesEpoch::new(DEFAULT, Rules::ALL);
    assert!(has_one_holder(&model));
    assert!(!has_one_holder(&model.without(|rules| rules.acknowledged = false)));
}

#[test]
fn tenants_and_dpus_are_interchangeable() {
    assert_symmetric(&NodesEpoch::new([3, 2, 3, 2], Rules::ALL));
    assert_symmetric(&NodesEpoch::new(DEFAULT, Rules::ALL));
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = NodesEpoch::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut rng = Rng::new(1);
    for model in [largest, NodesEpoch::new(DEFAULT, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = NodesEpoch::new([2, 1, 1, 0], Rules::ALL);
    let mut steps = Steps::default();
    model.next(&model.initial()[0], &mut steps);
    let shown = model.describe(&steps.as_slice()[1].to);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("owner"), "t2");
    assert_eq!(value("inflight"), "(t1 :> {} @@ t2 :> {1})");
    assert_eq!(value("hw"), "(d1 :> (t1 :> {} @@ t2 :> {}))");
}
