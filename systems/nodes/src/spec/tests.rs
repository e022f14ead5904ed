use super::*;
use crate::one_holder::tests::has_one_holder;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;

const DEFAULT: [u8; 5] = [2, 2, 2, 1, 0];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        ([1, 1, 1, 0, 0], (67, 38, 10)),
        ([3, 2, 2, 0, 0], (16_691, 5_464, 25)),
        (DEFAULT, (208_749, 54_328, 29)),
        ([2, 2, 2, 1, 1], (1_841_621, 388_344, 30)),
        ([2, 2, 3, 1, 0], (3_009_885, 670_072, 40)),
    ] {
        let counts = reference::explore(&NodesHub::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn each_mutant_breaks_after_as_many_states_as_in_tlc() {
    let expected = [
        ("forged-attachment", 4),
        ("no-floor", 12),
        ("programs-unread", 14),
        ("boot-from-cache", 15),
        ("old-evidence", 15),
        ("open-boot", 14),
        ("any-report", 17),
        ("report-before-read-back", 13),
    ];
    let mutants = NodesHub::new(DEFAULT, Rules::ALL).mutants();
    for (mutant, (name, trace)) in mutants.iter().zip(expected) {
        assert_eq!(mutant.name, name);
        let violated = reference::explore(&mutant.model).violated;
        assert_eq!(violated[0], ("PoolClean", trace), "{name}");
    }
}

/// TLC says which promise breaks; that both have its states is all that can be seen here.
#[test]
fn the_mutants_that_merely_never_get_there_have_the_states_of_tlc() {
    let expected = [
        ("never-drops", "Reclaims", (205_557, 54_328, 29)),
        ("reads-once", "Converges", (26_441, 9_184, 23)),
    ];
    let mutants = NodesHub::new(DEFAULT, Rules::ALL).mutants();
    for (mutant, (name, promise, totals)) in mutants.iter().skip(8).zip(expected) {
        let counts = reference::explore(&mutant.model);
        assert_eq!((mutant.name.as_str(), &*mutant.breaks), (name, &[promise][..]));
        assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
        assert_eq!(counts.violated, [], "{name}");
    }
    assert_eq!(mutants.len(), 8 + expected.len());
}

#[test]
fn each_mutant_breaks_in_the_smallest_size_too() {
    for mutant in NodesHub::new([1, 1, 1, 0, 0], Rules::ALL).mutants().iter().take(8) {
        let violated = reference::explore(&mutant.model).violated;
        assert!(violated.iter().any(|(name, _)| mutant.breaks.contains(name)), "{}", mutant.name);
    }
}

/// With a rule off the model must go wrong exactly as the specification does, in all its states.
#[test]
fn without_a_rule_the_counts_are_those_of_tlc() {
    let without = |change: fn(&mut Rules)| {
        let mut rules = Rules::ALL;
        change(&mut rules);
        rules
    };
    for (rules, expected) in [
        (Rules::ALL, (183_259, 44_332, 23)),
        (without(|rules| rules.exact_match = false), (238_177, 57_256, 24)),
        (without(|rules| rules.floor_check = false), (235_839, 55_530, 24)),
        (without(|rules| rules.loaded_check = false), (184_615, 44_332, 23)),
        (without(|rules| rules.consistent_boot = false), (346_035, 76_840, 25)),
        (without(|rules| rules.fresh_evidence = false), (218_105, 52_460, 23)),
        (without(|rules| rules.closed_boot = false), (197_563, 48_586, 23)),
        (without(|rules| rules.epoch_ack = false), (244_303, 54_964, 22)),
        (without(|rules| rules.read_back = false), (217_555, 52_248, 24)),
    ] {
        let counts = reference::explore(&NodesHub::new([2, 1, 2, 1, 1], rules));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{rules:?}");
    }
}

#[test]
fn the_node_goes_from_tenant_to_tenant_only_through_nobody() {
    assert!(has_one_holder(&NodesHub::new(DEFAULT, Rules::ALL)));
    let unread = Rules { read_back: false, ..Rules::ALL };
    assert!(!has_one_holder(&NodesHub::new(DEFAULT, unread)));
}

#[test]
fn tenants_and_dpus_are_interchangeable() {
    assert_symmetric(&NodesHub::new([3, 3, 3, 2, 1], Rules::ALL));
    assert_symmetric(&NodesHub::new(DEFAULT, Rules { consistent_boot: false, ..Rules::ALL }));
    assert_eq!(NodesHub::new(DEFAULT, Rules::ALL).symmetries(), 3);
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = NodesHub::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut rng = Rng::new(1);
    for model in [largest, NodesHub::new(DEFAULT, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = State::arbitrary(&model, &mut rng);
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn every_invariant_could_be_broken() {
    let model = NodesHub::new(DEFAULT, Rules::ALL);
    let mut rng = Rng::new(1);
    let states: Vec<_> = (0..1_000).map(|_| State::arbitrary(&model, &mut rng)).collect();
    for invariant in model.invariants() {
        assert!(states.iter().any(|state| !(invariant.holds)(state)), "{}", invariant.name);
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = NodesHub::new(DEFAULT, Rules::ALL);
    let mut steps = Steps::default();
    model.next(&model.initial()[0], &mut steps);
    let names = model.actions();
    let bound = &steps.as_slice()[0];
    assert_eq!(names[usize::from(bound.action)].name, "Bind(t1)");
    let shown = model.describe(&bound.to);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("st"), "\"Bound\"");
    assert_eq!(value("bound"), "{<<t1, 1>>}");
    assert_eq!(value("hw"), "(d1 :> {} @@ d2 :> {})");
    assert_eq!(
        value("hist"),
        "{[ep |-> 0, owner |-> \"none\", floor |-> 0], [ep |-> 1, owner |-> t1, floor |-> 0]}"
    );
}
