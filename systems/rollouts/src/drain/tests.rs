use super::*;
use crate::search::states_until_broken;
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Options, check, check_mutants, reference};

const DEFAULT: [u8; 5] = [2, 1, 2, 1, 1];
const BOTH: [u8; 5] = [2, 2, 1, 2, 0];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        ([2, 1, 1, 1, 1], (5_720, 2_024, 20)),
        (BOTH, (16_562, 4_994, 23)),
        (DEFAULT, (69_792, 20_330, 33)),
        ([2, 2, 1, 1, 1], (81_072, 21_942, 25)),
    ] {
        let counts = reference::explore(&RolloutsDrain::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    for size in [DEFAULT, BOTH, [2, 2, 1, 1, 1]] {
        let model = RolloutsDrain::new(size, Rules::ALL);
        let report = check(NAME, &model, &Options::default()).unwrap();
        assert!(report.all_hold(), "{report:#?}");
        let unused = &report.never_taken;
        assert!(unused.iter().all(|action| action.explanation.is_some()), "{unused:?}");
    }
}

/// The lengths are TLC's, of the same rules switched off in the same size.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("blind-to-drains", "DrainedIsEmpty", 10),
        ("target-after-look", "DrainedIsEmpty", 10),
        ("drained-from-cache", "DrainedIsEmpty", 5),
        ("in-place-uncounted", "DrainedIsEmpty", 11),
        ("drain-not-named", "UpdatedIsEmpty", 15),
        ("drained-uncounted", "FleetBudget", 6),
    ];
    let mutants = RolloutsDrain::new(DEFAULT, Rules::ALL).mutants();
    for (mutant, (name, promise, states)) in mutants.iter().zip(expected) {
        assert_eq!((mutant.name.as_str(), &*mutant.breaks), (name, &[promise][..]));
        assert_eq!(states_until_broken(&mutant.model, promise), Some(states), "{name}");
    }
}

#[test]
fn every_mutant_is_killed() {
    let model = RolloutsDrain::new(DEFAULT, Rules::ALL);
    let report = check_mutants(NAME, &model, &Options::default()).unwrap();
    assert_eq!(report.mutants.len(), 8);
    for mutant in &report.mutants {
        assert!(mutant.killed, "{}", mutant.name);
    }
    assert_eq!(report.unbroken, [""; 0]);
}

/// TLC names the loop; that both have its states is all that can be seen here.
#[test]
fn the_mutants_that_never_end_have_the_states_of_tlc() {
    for (name, size, expected) in
        [("drain-left", [2, 1, 1, 1, 0], (226, 124)), ("no-start-deadline", BOTH, (5_296, 1_864))]
    {
        let mutants = RolloutsDrain::new(size, Rules::ALL).mutants();
        let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
        let counts = reference::explore(&mutant.model);
        assert_eq!((counts.generated, counts.distinct), expected, "{name}");
    }
}

#[test]
fn clusters_and_namespaces_are_interchangeable() {
    assert_symmetric(&RolloutsDrain::new([3, 2, 2, 1, 1], Rules::ALL));
    let later = Rules { target_first: false, sees_drains: false, ..Rules::ALL };
    assert_symmetric(&RolloutsDrain::new(BOTH, later));
    assert_eq!(RolloutsDrain::new([3, 2, 2, 1, 1], Rules::ALL).symmetries(), 11);
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let mut rng = Rng::new(1);
    for size in [KEYS.map(|key| key.most as u8), DEFAULT] {
        let model = RolloutsDrain::new(size, Rules::ALL);
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = RolloutsDrain::new(DEFAULT, Rules::ALL);
    let mut state = model.initial().remove(0);
    let names = model.actions();
    for wanted in ["Submit(a)", "AddDrain(a)", "Target(n)", "Revoke(n)"] {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let is_wanted = |action: u16| names[usize::from(action)].name == wanted;
        let step = steps.as_slice().iter().find(|step| is_wanted(step.action));
        state = step.expect("the step is possible").to.clone();
    }
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(
        value("gr"),
        "[n |-> [ph |-> \"Revoking\", own |-> \"a\", tgt |-> \"b\", pin |-> \"none\"]]"
    );
    assert_eq!(value("drains"), "[a |-> {1}, b |-> {}]");
    assert_eq!(value("emp"), "[a |-> [d |-> {}, ok |-> FALSE], b |-> [d |-> {}, ok |-> FALSE]]");
    assert_eq!(value("look"), "[n |-> [c |-> \"none\", ok |-> FALSE]]");
    assert_eq!(value("st"), "[a |-> \"Queued\", b |-> \"None\"]");
}
