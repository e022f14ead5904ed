use super::*;
use crate::model::tests::{broken, check_counts};
use interlock_checker::Model;
use std::collections::HashSet;

fn deletion(size: &str) -> World {
    World::deletion(&Size::parse(size).unwrap()).unwrap()
}

fn volumes(size: &str) -> World {
    World::volumes(&Size::parse(size).unwrap()).unwrap()
}

#[test]
fn a_namespace_that_is_made_again_inherits_nothing() {
    check_counts(&deletion("clusters=1,namespaces=2,retire=0"), (11_011, 3_959, 38));
}

#[test]
fn a_namespace_that_is_deleted_in_the_middle_of_a_move_goes() {
    check_counts(&deletion("retire=0"), (380_725, 105_945, 42));
}

#[test]
fn a_cluster_stays_while_it_has_something_and_is_not_taken_for_the_next_of_its_name() {
    check_counts(&deletion("clusters=1"), (5_790, 2_071, 29));
    check_counts(&deletion("replace=1,epochs=1"), (64_318, 16_531, 35));
}

#[test]
fn a_cluster_that_was_let_go_is_granted_nothing_however_late_the_scheduler_hears_of_it() {
    check_counts(&deletion("clusters=1,lag=1"), (13_037, 4_321, 33));
    check_counts(&deletion("epochs=1,faults=0,crash=0,lag=1"), (386_715, 83_572, 34));
}

#[test]
fn volumes_that_moves_leave_behind_are_kept_until_their_successors_settled() {
    check_counts(&volumes("faults=1"), (136_353, 45_084, 46));
}

#[test]
fn what_may_be_alone_in_having_something_is_kept_for_a_person() {
    check_counts(&volumes("crash=0"), (491_137, 151_020, 48));
}

#[test]
fn labels_follow_the_grant_and_never_name_two_clusters() {
    check_counts(&volumes("labels=1,force=0,faults=0"), (183_105, 60_858, 46));
}

#[test]
fn each_mistake_breaks_what_it_is_said_to_break() {
    for model in [deletion(""), volumes("")] {
        for mutant in model.mutants() {
            assert!(broken(&mutant).is_some(), "{}", mutant.name);
        }
    }
}

/// A fault that catches no mistake would be decoration.
#[test]
fn each_fault_catches_a_mistake_that_nothing_else_catches() {
    let without = |model: &World, name: &str, take_out: fn(&mut World)| {
        let mut mutant = model.mutants().into_iter().find(|mutant| mutant.name == name).unwrap();
        take_out(&mut mutant.model);
        assert_eq!(broken(&mutant), None, "{name} in {}", mutant.model.size());
    };
    let model = deletion("");
    without(&model, "old-grant-orphaned", |world| world.strip = false);
    without(&model, "gone-cluster-is-release", |world| world.strip = false);
    without(&model, "finalizer-stripped-with-the-cluster", |world| world.retire = false);
    without(&model, "owners-copy-forgotten", |world| world.faults = 0);
    without(&model, "syncer-left-behind", |world| world.faults = 0);
    without(&model, "granted-to-a-cluster-that-was-let-go", |world| world.lag = false);
    without(&model, "let-go-under-a-grant", |world| world.lag = false);
    let model = volumes("");
    without(&model, "diverged-volume-deleted", |world| world.force = false);
    without(&model, "volume-deleted-on-absence", |world| world.crash = false);
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in [
        deletion(""),
        deletion("clusters=1,epochs=1,faults=0"),
        deletion("clusters=2,epochs=3,faults=3,namespaces=2,replace=1"),
        volumes("clusters=2,epochs=3,faults=3,labels=1"),
    ] {
        for state in model.initial() {
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state, "{}", model.size());
        }
    }
}

#[test]
fn each_invariant_can_fail_where_it_is_not_said_that_it_cannot() {
    crate::testing::assert_invariants_can_fail(&deletion("namespaces=2"));
    crate::testing::assert_invariants_can_fail(&volumes("labels=1"));
}

#[test]
fn every_action_has_its_own_name_and_its_own_id() {
    for model in [deletion("namespaces=2"), volumes("")] {
        let actions = model.actions();
        let names: HashSet<_> = actions.iter().map(|action| action.name.as_str()).collect();
        assert_eq!(names.len(), actions.len());
    }
}

/// The shortest way from a mistake to what it breaks, as a story that can be read.
fn story(model: &World, name: &str) -> Vec<String> {
    let mutant = model.mutants().into_iter().find(|mutant| mutant.name == name).unwrap();
    let options = interlock_checker::Options {
        only: mutant.breaks.iter().map(|name| (*name).to_owned()).collect(),
        first: true,
        workers: 1,
        liveness: interlock_checker::Liveness::Off,
        ..Default::default()
    };
    let report = interlock_checker::check("placement", &mutant.model, &options).unwrap();
    let trace = mutant.breaks.iter().find_map(|name| report.trace(name)).unwrap();
    trace.states.iter().filter_map(|state| state.action.clone()).collect()
}

#[test]
fn a_namespace_known_by_its_name_would_run_on_the_volumes_of_the_one_before() {
    let story = story(&deletion(""), "key-by-name");
    let at = |action: &str| story.iter().position(|step| step == action).unwrap();
    assert!(at("StripNamespace(1)") < at("MakeNamespaceAgain(2)"));
    assert_eq!(story.last().unwrap(), "ApplyOne(A, 1)");
}
