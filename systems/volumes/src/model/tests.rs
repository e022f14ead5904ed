use super::*;
use interlock_checker::{Liveness, Options, Report, Verdict, check};
use std::collections::HashSet;

fn sized(size: &str) -> World {
    World::from_size(&Size::parse(size).unwrap()).unwrap()
}

fn checked(model: &World) -> Report {
    check(NAME, model, &Options { liveness: Liveness::On, ..Options::default() }).unwrap()
}

/// Explores all of it: every promise holds, and the counts are these, so that a world that shrinks
/// by accident is noticed.
fn check_counts(size: &str, refines: usize, expected: (u64, u64, u32)) {
    let report = checked(&sized(size));
    let counts = (report.generated_states, report.distinct_states, report.depth);
    assert!(report.all_hold(), "{size}");
    assert_eq!(report.refines.len(), refines, "{size}");
    let idle = report.never_taken.iter().filter(|unused| unused.explanation.is_none());
    assert_eq!(idle.map(|unused| &unused.action).collect::<Vec<_>>(), [""; 0], "{size}");
    assert_eq!(counts, expected, "{size}");
}

fn mutant(name: &str) -> Mutant<World> {
    sized("").mutants().into_iter().find(|mutant| mutant.name == name).unwrap()
}

/// The actions that break a promise that a mutant is said to break.
fn broken(mutant: &Mutant<World>) -> Option<Vec<String>> {
    let only: Vec<_> = mutant.breaks.iter().map(|name| (*name).to_owned()).collect();
    let is_temporal = mutant.model.properties().iter().any(|p| mutant.breaks.contains(&p.name));
    let liveness = if is_temporal { Liveness::On } else { Liveness::Off };
    let options = Options { only, first: !is_temporal, liveness, workers: 1, ..Options::default() };
    let report = check(NAME, &mutant.model, &options).unwrap();
    let invariants = report.invariants.iter().map(|f| (f.verdict, &f.trace));
    let properties = report.properties.iter().map(|f| (f.verdict, &f.trace));
    let (_, trace) =
        invariants.chain(properties).find(|(verdict, _)| *verdict == Verdict::Violated)?;
    let states = trace.iter().flat_map(|trace| &trace.states);
    Some(states.filter_map(|state| state.action.clone()).collect())
}

#[test]
fn one_populator_keeps_every_promise_and_follows_the_protocol() {
    check_counts("populators=1,faults=1", 1, (32_587, 12_386, 53));
    check_counts("claims=2,names=0,images=1,populators=1", 1, (59_413, 19_623, 58));
}

#[test]
fn every_promise_is_kept_whatever_is_deleted_and_made_again() {
    check_counts("populators=1,faults=1,leave=1", 0, (184_102, 55_342, 58));
    check_counts("images=1,claims=2,vandals=0,populators=1,leave=1", 0, (43_747, 14_062, 67));
}

#[test]
fn every_promise_is_kept_by_two_populators_at_once() {
    check_counts("", 0, (1_434_921, 348_358, 73));
    check_counts("images=1,vandals=0,faults=1,leave=1", 0, (162_570, 43_712, 53));
}

#[test]
fn each_mistake_breaks_what_it_is_said_to_break() {
    let mutants = sized("").mutants();
    assert_eq!(mutants.len(), 12);
    let survived: Vec<_> =
        mutants.iter().filter(|m| broken(m).is_none()).map(|m| &m.name).collect();
    assert!(survived.is_empty(), "{survived:?}");
}

/// A fault that catches no mistake would be decoration.
#[test]
fn each_fault_catches_a_mistake_that_nothing_else_catches() {
    let without = |name: &str, take_out: fn(&mut World)| {
        let mut mutant = mutant(name);
        take_out(&mut mutant.model);
        assert_eq!(broken(&mutant), None, "{name} in {}", mutant.model.size());
    };
    without("image-not-touched", |world| world.two_populators = false);
    without("source-not-looked-at", |world| world.two_populators = false);
    without("no-retain", |world| world.vandals = 0);
    without("handed-by-name", |world| world.one_name = false);
    without("destination-goes-early", |world| world.leave = false);
    without("hold-ignored", |world| world.images = 1);
}

#[test]
fn a_hold_that_was_decided_on_comes_after_the_claim_is_gone() {
    let story = broken(&mutant("image-not-touched")).unwrap();
    let begin = ["Take(s1)", "Ready(s1)", "Publish(s1)", "Create(p1)", "Mark(p1)", "Pin(p1)"];
    assert_eq!(story[..6], begin);
    assert_eq!(story[6..], ["TakeOff(p1)", "Remove(p1)", "Unmark(p1)", "Vanish(p1)", "Land(p1)"]);
}

#[test]
fn an_image_that_is_not_held_is_deleted_under_the_claim_that_is_made_of_it() {
    let story = broken(&mutant("hold-late")).unwrap();
    assert_eq!(story[story.len() - 2..], ["Pour(p1)", "DeleteOld(s1)"]);
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in
        [sized(""), sized("images=1"), sized("images=3,claims=2,vandals=3,faults=3,leave=1")]
    {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state, "{}", model.size());
        }
    }
}

#[test]
fn each_invariant_can_fail() {
    let mut rng = Rng::new(2);
    let model = sized("");
    let states: Vec<_> = (0..1_000).map(|_| model.arbitrary(&mut rng).unwrap()).collect();
    for invariant in model.invariants() {
        assert!(!states.iter().all(&invariant.holds), "{}", invariant.name);
    }
}

#[test]
fn every_action_has_its_own_name() {
    let actions = sized("images=3,claims=2").actions();
    let names: HashSet<_> = actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names.len(), actions.len());
}
