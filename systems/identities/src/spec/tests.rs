use super::*;
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Options, Verdict, check, reference};

const DEFAULT: [u8; 5] = [1, 1, 2, 2, 2];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        (DEFAULT, (13_889, 4_114, 26)),
        ([1, 2, 1, 1, 3], (17_092, 4_486, 26)),
        ([2, 2, 1, 1, 1], (696_643, 123_109, 46)),
    ] {
        let counts = reference::explore(&Identities::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

/// The specification with the same line changed gives TLC the same figures; of `no-resync` and
/// `no-requeue` TLC says that `Converges` breaks, of the latter also `Deletes`, and of the last
/// that `TerminationIsTheLastAction` does.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("early-finalizer", (14_650, 4_718, 24), vec![("GoneIsClean", 6)], None),
        ("policy-before-detach", (14_129, 4_234, 26), vec![("AwsOrder", 6)], None),
        ("shared-key", (49_992, 9_813, 26), vec![("NoConcurrent", 4)], None),
        ("no-resync", (10_463, 3_668, 26), vec![], None),
        ("no-requeue", (15_478, 4_698, 29), vec![], Some(8)),
        ("status-each-time", (13_466, 4_018, 26), vec![], None),
    ];
    let mutants = Identities::new(DEFAULT, Rules::ALL).mutants();
    assert_eq!(mutants.len(), expected.len());
    for (mutant, (name, totals, violated, wedged)) in mutants.iter().zip(expected) {
        assert_eq!(mutant.name, name);
        let counts = reference::explore(&mutant.model);
        assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
        assert_eq!((counts.violated, counts.deadlock), (violated, wedged), "{name}");
    }
}

#[test]
fn identities_and_workers_are_interchangeable() {
    assert_symmetric(&Identities::new([3, 3, 2, 2, 2], Rules::ALL));
    assert_symmetric(&Identities::new([2, 2, 1, 1, 1], Rules::ALL));
    assert_eq!(Identities::new(DEFAULT, Rules::ALL).symmetries(), 0);
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = Identities::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut rng = Rng::new(1);
    for model in [largest, Identities::new(DEFAULT, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn every_invariant_could_be_broken_where_there_are_two_workers() {
    let model = Identities::new([1, 2, 1, 1, 1], Rules::ALL);
    let mut rng = Rng::new(1);
    let states: Vec<_> = (0..1_000).filter_map(|_| model.arbitrary(&mut rng)).collect();
    for invariant in model.invariants() {
        assert!(states.iter().any(|state| !(invariant.holds)(state)), "{}", invariant.name);
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = Identities::new([2, 2, 1, 1, 1], Rules::ALL);
    let shown = model.describe(&model.initial()[2]);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("ph"), "[a |-> \"live\", b |-> \"live\"]");
    assert_eq!(value("pol"), "[a |-> 0, b |-> -1]");
    assert_eq!(value("role"), "[a |-> \"none\", b |-> \"none\"]");
    assert_eq!(value("dirty"), "{\"a\", \"b\"}");
    assert_eq!(value("busy"), "[w1 |-> \"none\", w2 |-> \"none\"]");
}

#[test]
fn a_status_that_is_written_each_time_converges_and_never_ends() {
    let model = Identities::new(DEFAULT, Rules::ALL);
    let verdicts = |model: &Identities| {
        let report = check(NAME, model, &Options::default()).unwrap();
        let verdict = |name| report.properties.iter().find(|it| it.name == name).unwrap().verdict;
        (verdict("Converges"), verdict("Deletes"), verdict("TerminationIsTheLastAction"))
    };
    assert_eq!(verdicts(&model), (Verdict::Holds, Verdict::Holds, Verdict::Holds));
    let mutant = model.without(|rules| rules.status_once = false);
    assert_eq!(verdicts(&mutant), (Verdict::Holds, Verdict::Holds, Verdict::Violated));
}
