use super::*;
use crate::search::states_until_broken;
use interlock_checker::reference;

const DEFAULT: [u8; 3] = [2, 1, 1];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        ([1, 1, 1], (1_372, 533, 20)),
        ([1, 2, 1], (2_255, 751, 21)),
        (DEFAULT, (412_176, 131_259, 42)),
        ([2, 2, 1], (1_821_954, 426_598, 43)),
        ([3, 1, 0], (760_178, 232_872, 52)),
    ] {
        let counts = reference::explore(&RolloutsFence::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn each_mutant_breaks_after_as_many_states_as_in_tlc() {
    let expected = [
        ("no-fence", "IdleIsGood", 9),
        ("read-before-fence", "IdleIsGood", 11),
        ("no-revision", "IdleIsGood", 30),
        ("delete-unmarked", "IdleIsGood", 19),
        ("good-unverified", "LastGoodSucceeded", 9),
        ("lost-request", "OneQueued", 3),
        ("two-at-once", "SingleFlight", 5),
    ];
    let mutants = RolloutsFence::new(DEFAULT, Rules::ALL).mutants();
    assert_eq!(mutants.len(), expected.len());
    for (mutant, (name, promise, trace)) in mutants.iter().zip(expected) {
        assert_eq!(mutant.name, name);
        assert!(mutant.breaks.contains(&promise), "{name}");
        assert_eq!(states_until_broken(&mutant.model, promise), Some(trace), "{name}");
    }
}

#[test]
fn each_mutant_breaks_in_the_smallest_size_too() {
    for mutant in RolloutsFence::new([1, 1, 0], Rules::ALL).mutants() {
        let broken = |promise: &&str| states_until_broken(&mutant.model, promise).is_some();
        assert!(mutant.breaks.iter().any(broken), "{}", mutant.name);
    }
}

/// With a rule off the model must go wrong exactly as the specification does, in all its states.
/// There is no such figure without a fence: the specification never ends there.
#[test]
fn without_a_rule_the_counts_are_those_of_tlc() {
    let without = |change: fn(&mut Rules)| {
        let mut rules = Rules::ALL;
        change(&mut rules);
        rules
    };
    let read_before_fence = without(|rules| rules.read_after_fence = false);
    let delete_unmarked = without(|rules| rules.mark_first = false);
    let no_token = without(|rules| rules.token_guard = false);
    for (size, rules, expected) in [
        ([1, 2, 1], read_before_fence, (4_438, 1_289, 22)),
        ([1, 2, 1], without(|rules| rules.revision_guard = false), (2_378, 785, 21)),
        ([1, 2, 1], delete_unmarked, (1_434, 457, 16)),
        ([1, 2, 1], no_token, (2_795, 891, 21)),
        ([2, 1, 0], read_before_fence, (108_878, 30_362, 36)),
        ([2, 1, 1], delete_unmarked, (89_279, 27_750, 32)),
        ([2, 1, 1], no_token, (592_648, 186_280, 42)),
        ([2, 1, 0], without(|rules| rules.supersede = false), (46_282, 15_494, 36)),
        ([2, 1, 0], without(|rules| rules.one_at_a_time = false), (75_509, 25_027, 36)),
    ] {
        let counts = reference::explore(&RolloutsFence::new(size, rules));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{rules:?}");
    }
}

#[test]
fn the_fence_and_the_outcomes_hold_on_every_step() {
    let model = RolloutsFence::new(DEFAULT, Rules::ALL);
    for promise in ["TerminalStable", "FenceHolds"] {
        assert_eq!(states_until_broken(&model, promise), None, "{promise}");
    }
    let unmarked = model.without(|rules| rules.mark_first = false);
    assert_eq!(states_until_broken(&unmarked, "FenceHolds"), Some(10));
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = RolloutsFence::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut rng = Rng::new(1);
    for model in [largest, RolloutsFence::new(DEFAULT, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = State::arbitrary(&model, &mut rng);
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn every_invariant_could_be_broken() {
    let model = RolloutsFence::new(DEFAULT, Rules::ALL);
    let mut rng = Rng::new(1);
    let states: Vec<_> = (0..1_000).map(|_| State::arbitrary(&model, &mut rng)).collect();
    for invariant in model.invariants() {
        assert!(states.iter().any(|state| !(invariant.holds)(state)), "{}", invariant.name);
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = RolloutsFence::new([1, 1, 0], Rules::ALL);
    let shown = model.describe(&model.initial()[0]);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    let absent = "[ex |-> FALSE, val |-> 0, rv |-> 0, tok |-> 0]";
    let unknown = "[ex |-> FALSE, val |-> 99, rv |-> 99, tok |-> 0]";
    assert_eq!(value("tgt"), "(0 :> 0 @@ 1 :> 0 @@ 2 :> 0)");
    assert_eq!(value("phase"), "<<\"New\">>");
    assert_eq!(value("obj"), &format!("[o1 |-> {absent}, o2 |-> {absent}]"));
    assert_eq!(value("seen"), &format!("[o1 |-> {unknown}, o2 |-> {unknown}]"));
    assert_eq!(value("msg"), "{}");
}
