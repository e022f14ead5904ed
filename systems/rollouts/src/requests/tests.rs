use super::*;
use crate::search::states_until_broken;
use interlock_checker::{Options, check, check_mutants, reference};

const DEFAULT: [u8; 4] = [2, 2, 1, 0];
const CALM: [u8; 4] = [2, 2, 1, 1];
const THREE: [u8; 4] = [3, 2, 1, 0];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in
        [(CALM, (1_346, 606, 16)), (DEFAULT, (5_687, 2_245, 19)), (THREE, (190_087, 67_148, 26))]
    {
        let counts = reference::explore(&RolloutsRequests::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    for size in [CALM, DEFAULT, THREE] {
        let model = RolloutsRequests::new(size, Rules::ALL);
        let report = check(NAME, &model, &Options::default()).unwrap();
        assert!(report.all_hold(), "{report:#?}");
        let unused = &report.never_taken;
        assert!(unused.iter().all(|action| action.explanation.is_some()), "{unused:?}");
    }
}

/// The world refines the protocol with what the rooms that ship do beside the text. Cancels are not counted there, so
/// these are all states that any number of them leads to.
#[test]
fn what_ships_beside_the_text_breaks_no_promise() {
    for (is_calm, distinct) in [(true, 6_698), (false, 20_308)] {
        let counts = reference::explore(&RolloutsRequests::shipped(3, true, is_calm));
        assert_eq!((counts.distinct, counts.violated), (distinct, vec![]), "{is_calm}");
    }
}

/// The lengths are TLC's, of the same rules switched off in the same sizes.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("numbered-again", "LockHasOwner", 6),
        ("numbered-again", "TerminalIsFinal", 8),
        ("superseded-later", "OneQueued", 5),
        ("superseded-by-rejected", "SupersededByValid", 5),
        ("two-at-once", "NoConcurrentUpdate", 11),
        ("good-unverified", "LastGoodSucceeded", 6),
        ("causes-mixed", "BadIsProven", 6),
        ("outdated-start", "NoApplicationOfOutdatedReq", 7),
        ("bad-forgotten", "BadNotRetried", 13),
        ("bad-unchecked-at-start", "BadNotRetried", 13),
    ];
    let mutants = RolloutsRequests::new(DEFAULT, Rules::ALL).mutants();
    for (name, promise, states) in expected {
        let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
        assert_eq!(states_until_broken(&mutant.model, promise), Some(states), "{name}");
    }
}

#[test]
fn every_mutant_is_killed() {
    for size in [DEFAULT, CALM] {
        let model = RolloutsRequests::new(size, Rules::ALL);
        let report = check_mutants(NAME, &model, &Options::default()).unwrap();
        assert_eq!(report.mutants.len(), 12);
        for mutant in &report.mutants {
            assert!(mutant.killed, "{}", mutant.name);
        }
        assert_eq!(report.unbroken, [""; 0]);
    }
}

/// TLC names the loop; that both have its states is all that can be seen here.
#[test]
fn the_mutants_that_never_end_have_the_states_of_tlc() {
    for (name, size, expected) in [
        ("no-deadlines", DEFAULT, (2_828, 1_212)),
        ("drain-left", DEFAULT, (4_656, 1_922)),
        ("lock-leaked", DEFAULT, (7_047, 2_701)),
        ("lock-leaked", [2, 2, 0, 1], (868, 441)),
    ] {
        let mutants = RolloutsRequests::new(size, Rules::ALL).mutants();
        let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
        let counts = reference::explore(&mutant.model);
        assert_eq!((counts.generated, counts.distinct), expected, "{name}");
    }
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let mut rng = Rng::new(1);
    for size in [KEYS.map(|key| key.most as u8), DEFAULT] {
        let model = RolloutsRequests::new(size, Rules::ALL);
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = RolloutsRequests::new(DEFAULT, Rules::ALL);
    let names = model.actions();
    let mut state = State::default();
    for wanted in ["Submit(2)", "Number(2)", "AskDrain", "Preflight"] {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let is_wanted = |action: u16| names[usize::from(action)].name == wanted;
        let step = steps.as_slice().iter().rfind(|step| is_wanted(step.action));
        state = step.expect("the step is possible").to.clone();
    }
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("st"), "<<\"New\", \"Queued\">>");
    assert_eq!(value("ver"), "<<0, 1>>");
    assert_eq!(value("pre"), "\"Bad\"");
    assert_eq!(value("drain"), "\"Asked\"");
    assert_eq!(value("act"), "0");
    assert_eq!(value("bad"), "{}");
}
