use super::*;
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Options, Verdict, check, check_mutants, reference};

const DEFAULT: [u8; 3] = [2, 4, 3];
const LIVE: [u8; 3] = [2, 3, 2];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [(DEFAULT, (36_470, 8_327, 27)), (LIVE, (10_179, 2_820, 23))] {
        let counts = reference::explore(&IdentitiesMark::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    let model = IdentitiesMark::new(LIVE, Rules::ALL);
    let report = check(NAME, &model, &Options::default()).unwrap();
    assert!(report.all_hold(), "{report:#?}");
    assert!(report.never_taken.is_empty(), "{:?}", report.never_taken);
}

/// The lengths are TLC's, of the same rules switched off.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("unmarked-create", "GoneIsClean", Some(4)),
        ("others-mark-believed", "GoneIsClean", Some(5)),
        ("mark-taken-over-at-once", "GoneIsClean", Some(6)),
        ("mark-not-read-live", "GoneIsClean", Some(7)),
        ("absence-believed-at-once", "GoneIsClean", Some(7)),
        ("unmarked-on-the-answer", "GoneIsClean", Some(9)),
        // TLC's loop need not be a shortest one.
        ("w-never-ends", "Deletes", None),
    ];
    let model = IdentitiesMark::new(LIVE, Rules::ALL);
    let report = check_mutants(NAME, &model, &Options::default()).unwrap();
    assert_eq!(report.mutants.len(), expected.len());
    for (mutant, (name, broken, states)) in report.mutants.iter().zip(expected) {
        assert_eq!((&*mutant.name, mutant.broken.as_deref()), (name, Some(broken)));
        let steps = mutant.steps.filter(|_| states.is_some());
        assert_eq!(steps.map(|steps| steps + 1), states, "{name}");
    }
    assert_eq!(report.unbroken, [""; 0], "each invariant is broken by some mutant");
}

#[test]
fn a_late_call_is_a_matter_of_faults() {
    let model = IdentitiesMark::new([2, 3, 0], Rules::ALL);
    let report = check(NAME, &model, &Options::default()).unwrap();
    assert!(report.invariants.iter().all(|finding| finding.verdict == Verdict::Holds));
    // Without a fault nothing is late: a mark need not be waited out.
    let careless = model.without(|rules| rules.wait_other = false);
    assert_eq!(reference::explore(&careless).violated, []);
}

#[test]
fn processes_are_interchangeable() {
    assert_symmetric(&IdentitiesMark::new([3, 5, 3], Rules::ALL));
    assert_symmetric(&IdentitiesMark::new(DEFAULT, Rules::ALL));
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = IdentitiesMark::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut rng = Rng::new(1);
    for model in [largest, IdentitiesMark::new(DEFAULT, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = IdentitiesMark::new(DEFAULT, Rules::ALL);
    let mut state =
        State { mark: Mark::Of(1), stale: [true, false], once: 0b10, ..State::default() };
    state.in_flight[Call::Create as usize][DEAD] = 2;
    state.pending[1] = Pending::Done(Call::Delete);
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("mark"), "i2");
    assert_eq!(value("st"), "{FALSE}");
    assert_eq!(value("once"), "{i2}");
    assert_eq!(
        value("fl"),
        "[create |-> (i1 :> 0 @@ i2 :> 0 @@ dead :> 2), \
         delete |-> (i1 :> 0 @@ i2 :> 0 @@ dead :> 0)]"
    );
    assert_eq!(
        value("pend"),
        "(i1 :> [a |-> \"idle\", k |-> \"none\", done |-> FALSE] @@ \
         i2 :> [a |-> \"wait\", k |-> \"delete\", done |-> TRUE])"
    );
}
