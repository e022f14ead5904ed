//! The counts, so that a world that shrank by accident is noticed; and every mutant is caught.

use super::*;
use interlock_checker::{Liveness, Options, Verdict, check};

fn sized(size: &str) -> Syncs {
    Syncs::from_size(&Size::parse(size).unwrap()).unwrap()
}

/// Explores all of it: every promise holds, and the counts are these.
fn check_counts(size: &str, expected: (u64, u64, u32)) {
    let options = Options { liveness: Liveness::On, ..Options::default() };
    let report = check(NAME, &sized(size), &options).unwrap();
    let counts = (report.generated_states, report.distinct_states, report.depth);
    assert!(report.all_hold(), "{size}: {report:#?}");
    let idle = report.never_taken.iter().filter(|unused| unused.explanation.is_none());
    assert_eq!(idle.map(|unused| &unused.action).collect::<Vec<_>>(), [""; 0], "{size}");
    assert_eq!(counts, expected, "{size}");
}

/// Whether a mutant breaks one of the promises that it is said to break.
fn is_caught(mutant: &Mutant<Syncs>) -> bool {
    let only = mutant.breaks.iter().map(|name| (*name).to_owned()).collect();
    let options = Options { only, first: true, liveness: Liveness::Off, ..Options::default() };
    let report = check(NAME, &mutant.model, &options).unwrap();
    report.invariants.iter().any(|found| found.verdict == Verdict::Violated)
}

#[test]
fn sources_of_images_keep_every_promise() {
    check_counts("kind=1,tags=2,faults=2", (27_798, 8_758, 36));
    check_counts("kind=1,tags=3,faults=1", (460_620, 125_547, 48));
}

#[test]
fn sources_of_backups_keep_every_promise() {
    check_counts("kind=2,tags=2,faults=2", (190_450, 55_943, 62));
}

#[test]
fn destinations_keep_every_promise() {
    check_counts("kind=3,tags=2,faults=3", (63_383, 20_683, 61));
    check_counts("kind=3,tags=3,faults=2", (360_481, 110_876, 83));
}

#[test]
fn held_images_stay_until_they_are_not_held_and_then_all_goes() {
    check_counts("kind=1,tags=1,faults=1,holds=1", (6_844, 2_202, 24));
    check_counts("kind=3,tags=2,faults=1,holds=1", (516_536, 129_510, 68));
}

#[test]
fn each_mistake_breaks_what_it_is_said_to_break() {
    for kind in 1..=3 {
        for mutant in sized(&format!("kind={kind}")).mutants() {
            assert!(is_caught(&mutant), "{} of kind {kind}", mutant.name);
        }
    }
}

/// A fault that catches no mistake would be decoration.
#[test]
fn without_a_mover_that_dies_old_news_would_do_no_harm() {
    let mutants = sized("").mutants();
    let mutant = mutants.into_iter().find(|mutant| mutant.name == "begun-on-old-news").unwrap();
    let calm = Mutant { model: Syncs { faults: 0, ..mutant.model.clone() }, ..mutant };
    assert!(!is_caught(&calm));
}

#[test]
fn every_action_has_its_own_name() {
    for size in ["kind=1", "kind=2", "kind=3,tags=3", "kind=3,faults=0"] {
        let actions = sized(size).actions();
        let names: std::collections::BTreeSet<&str> =
            actions.iter().map(|action| action.name.as_str()).collect();
        assert_eq!(names.len(), actions.len(), "{size}");
    }
}

#[test]
fn each_promise_can_fail() {
    for kind in 1..=3 {
        let model = sized(&format!("kind={kind}"));
        let mut rng = Rng::new(7);
        let states: Vec<State> = (0..5_000).filter_map(|_| model.arbitrary(&mut rng)).collect();
        for promise in model.invariants() {
            let can_fail = states.iter().any(|state| !(promise.holds)(state));
            assert!(can_fail || promise.unbreakable.is_some(), "{} of {kind}", promise.name);
        }
    }
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in [sized(""), sized("kind=3,tags=3,faults=3"), sized("kind=1,tags=1,faults=0")] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state, "{}", model.size());
        }
    }
}
