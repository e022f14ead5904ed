use super::*;
use crate::search::states_until_broken;
use interlock_checker::{Options, check, check_mutants, reference};

const DEFAULT: [u8; 6] = [2, 1, 0, 1, 3, 5];
const UNAVAILABLE: [u8; 6] = [2, 0, 1, 1, 3, 5];

/// The larger size is in `specs/runs.json` and `cargo xtask counts`.
#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [(DEFAULT, (6_344, 2_511, 61)), (UNAVAILABLE, (4_598, 1_982, 72))] {
        let counts = reference::explore(&Surge::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    for size in [DEFAULT, UNAVAILABLE] {
        let report = check(NAME, &Surge::new(size, Rules::ALL), &Options::default()).unwrap();
        assert!(report.all_hold(), "{report:#?}");
        let unused = &report.never_taken;
        assert!(unused.iter().all(|action| action.explanation.is_some()), "{unused:?}");
    }
}

/// The lengths are TLC's, of the same rules switched off in the same size.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("any-name", "PodsBounded", 9),
        ("each-replicaset-for-itself", "ReadyFloor", 19),
        ("deleted-unnamed", "ReadyFloor", 16),
    ];
    let model = Surge::new(DEFAULT, Rules::ALL);
    let mutants = model.mutants();
    for (mutant, (name, promise, states)) in mutants.iter().zip(expected) {
        assert_eq!((mutant.name.as_str(), &*mutant.breaks), (name, &[promise][..]));
        assert_eq!(states_until_broken(&mutant.model, promise), Some(states), "{name}");
    }
    let report = check_mutants(NAME, &model, &Options::default()).unwrap();
    assert_eq!((report.mutants.len(), report.all_killed()), (expected.len(), true));
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let mut rng = Rng::new(1);
    for size in [KEYS.map(|key| key.most as u8), DEFAULT] {
        for rules in [Rules::ALL, Rules { slots: false, ..Rules::ALL }] {
            let model = Surge::new(size, rules);
            for _ in 0..1_000 {
                let state = model.arbitrary(&mut rng).unwrap();
                assert_eq!(model.unpack(&model.pack(&state)), state);
            }
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = Surge::new(DEFAULT, Rules::ALL);
    let names = model.actions();
    let mut state = model.initial().remove(0);
    for wanted in ["DecidePlan", "Write(plan)", "DecideSpec(2)", "Undo"] {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let is_wanted = |action: u16| names[usize::from(action)].name == wanted;
        let step = steps.as_slice().iter().find(|step| is_wanted(step.action));
        state = step.expect("the step is possible").to.clone();
    }
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("tmpl"), "1");
    assert_eq!(value("plan"), "<<2, 1>>");
    assert_eq!(value("spec"), "<<2, 0>>");
    assert_eq!(value("leaving"), "<<{}, {}>>");
    assert_eq!(
        value("pods"),
        "<<[rs |-> 1, ready |-> TRUE, go |-> FALSE, id |-> 1], \
         [rs |-> 1, ready |-> TRUE, go |-> FALSE, id |-> 2], \
         [rs |-> 0, ready |-> FALSE, go |-> FALSE, id |-> 0]>>"
    );
    assert_eq!(value("todo"), "{[k |-> \"spec\", g |-> 2, i |-> 2, n |-> 1, ok |-> TRUE]}");
}
