use super::*;
use crate::syncer::tenancy as sync;
use interlock_api::placement::{CopyState, Phase};
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Liveness, Options, Report, Verdict, check};
use std::collections::HashSet;

fn sized(size: &str) -> World {
    World::from_size(&Size::parse(size).unwrap()).unwrap()
}

fn live(size: &str) -> World {
    World::live_from_size(&Size::parse(size).unwrap()).unwrap()
}

fn checked<M: Model<Packed: interlock_checker::Engine>>(model: &M) -> Report {
    check("placement", model, &Options { liveness: Liveness::On, ..Options::default() }).unwrap()
}

/// Explores all of it: every promise holds, the protocol is refined, and the counts are these, so
/// that a world that shrinks by accident is noticed.
pub(super) fn check_counts<M: Model<Packed: interlock_checker::Engine>>(
    model: &M,
    expected: (u64, u64, u32),
) {
    let report = checked(model);
    let counts = (report.generated_states, report.distinct_states, report.depth);
    assert!(report.all_hold(), "{}", model.size());
    assert_eq!(counts, expected, "{}", model.size());
}

fn mutant(model: &World, name: &str) -> Mutant<World> {
    model.mutants().into_iter().find(|mutant| mutant.name == name).unwrap()
}

/// The steps to the first of the promises that a mutant is said to break, and breaks.
pub(super) fn broken<M: Model<Packed: interlock_checker::Engine>>(
    mutant: &Mutant<M>,
) -> Option<u32> {
    let only: Vec<_> = mutant.breaks.iter().map(|name| (*name).to_owned()).collect();
    let is_temporal = mutant.model.properties().iter().any(|p| mutant.breaks.contains(&p.name));
    let liveness = if is_temporal { Liveness::On } else { Liveness::Off };
    let options = Options { only, first: !is_temporal, liveness, ..Options::default() };
    let report = check("placement", &mutant.model, &options).unwrap();
    let invariants = report.invariants.iter().map(|f| (f.verdict, f.steps));
    let rules = report.properties.iter().map(|f| (f.verdict, f.prefix_steps));
    let violated = invariants.chain(rules).filter(|(verdict, _)| *verdict == Verdict::Violated);
    violated.filter_map(|(_, steps)| steps).min()
}

#[test]
fn planned_moves_keep_every_promise() {
    check_counts(&sized("force=0,relist=0,crash=0,syncers=1"), (127_051, 32_496, 44));
    check_counts(&sized("force=0,unfit=1,relist=0,crash=1"), (815, 187, 19));
}

#[test]
fn planned_moves_keep_every_promise_whatever_crashes_and_lists_the_past() {
    check_counts(&sized("force=0,relist=1,crash=1"), (1_736_825, 148_210, 44));
}

#[test]
fn planned_moves_keep_every_promise_when_copies_take_their_time() {
    let model = sized("slow=1,force=0,relist=0,crash=0,syncers=1");
    check_counts(&model, (295_147, 66_468, 44));
}

#[test]
fn the_protocol_is_refined_by_namespaces_with_one_claim() {
    assert_eq!(sized("").refines().len(), 1);
    assert_eq!(live("").refines().len(), 1);
    assert_eq!(sized("claims=2").refines().len(), 0);
    assert_eq!(sized("slow=1").refines().len(), 0);
}

#[test]
fn moves_of_two_claims_keep_every_promise() {
    let model = sized("claims=2,force=0,relist=0,crash=0,syncers=1");
    check_counts(&model, (671_273, 170_562, 55));
}

#[test]
fn power_loss_and_force_keep_every_promise() {
    check_counts(&sized("clusters=1,relist=1,crash=1"), (49_611, 8_876, 41));
    check_counts(&sized("epochs=1,relist=1,crash=1"), (135_971, 18_736, 30));
}

/// Two clusters, two epochs, and every kind of fault.
#[test]
fn after_three_faults_of_any_kind_everything_comes_to_its_end() {
    check_counts(&live("faults=3,relist=1,crash=1"), (627_722, 162_972, 53));
}

#[test]
fn each_mistake_breaks_what_it_is_said_to_break() {
    let mutants = sized("").mutants();
    let survived: Vec<_> =
        mutants.iter().filter(|m| broken(m).is_none()).map(|m| &m.name).collect();
    assert!(survived.is_empty(), "{survived:?}");
}

#[test]
fn each_mistake_that_gets_stuck_is_found() {
    let known: HashSet<_> = sized("").mutants().into_iter().map(|mutant| mutant.name).collect();
    let mutants = live("").mutants();
    let stuck: Vec<_> = mutants.iter().filter(|mutant| !known.contains(&mutant.name)).collect();
    assert_eq!(stuck.len(), 5);
    for mutant in stuck {
        assert!(broken(mutant).is_some(), "{}", mutant.name);
    }
}

/// A fault that catches no mistake would be decoration.
#[test]
fn each_fault_catches_a_mistake_that_nothing_else_catches() {
    let model = sized("");
    let without = |name: &str, take_out: fn(&mut World)| {
        let mut mutant = mutant(&model, name);
        assert!(broken(&mutant).is_some(), "{name}");
        take_out(&mut mutant.model);
        assert_eq!(broken(&mutant), None, "{name} in {}", mutant.model.size());
    };
    without("released-ignored", |world| world.relist = false);
    without("delete-on-absence", |world| world.crash = false);
    without("close-unguarded", |world| world.two_syncers = false);
    without("boot-ignored", |world| world.force = false);
    without("permit-ignores-force", |world| world.force = false);
    without("first-claim-only", |world| world.claims = 1);
    without("revoke-with-no-target", |world| world.unfit = false);
    without("tag-set-early", |world| world.slow = false);
    without("silence-is-release", |world| world.partition = false);
    without("lost-reply-is-refusal", |world| world.lost_replies = false);
    without("hub-unguarded", |world| world.lag = false);
    without("locks-ignored", |world| world.lag = false);
}

/// The world shows every cluster only whether the Grant is its own, so this must be all that counts.
#[test]
fn a_syncer_does_the_same_whoever_else_has_the_grant_and_how_far_they_are() {
    let held = [Phase::Granted, Phase::Revoking, Phase::Released, Phase::Fenced];
    let others = held.map(|phase| (sync::Party::Other, phase));
    let mine = [Phase::Released, Phase::Fenced].map(|phase| (sync::Party::Me, phase));
    let notes = |epoch, released, running| {
        sync::Here::Noted(sync::Notes { epoch, released, running, ran: 1 })
    };
    let heres = [
        sync::Here::Missing,
        notes(1, 0, sync::Running::Permitted(1)),
        notes(1, 0, sync::Running::Lapsed(1)),
        notes(1, 0, sync::Running::Nothing),
        notes(1, 1, sync::Running::Nothing),
        notes(3, 2, sync::Running::Nothing),
    ];
    let copies = [None, Some(CopyState::Superseded), Some(CopyState::Unclosed)];
    for here in heres {
        for copy in copies {
            let decide = |(owner, phase)| {
                sync::decide(&facts_of_a_grant(
                    sync::Grant {
                        phase,
                        owner,
                        epoch: 2,
                        target: sync::Party::Nobody,
                        is_deletion: false,
                        is_filled: true,
                        copy,
                        is_settled: false,
                    },
                    here,
                ))
            };
            let first = decide(others[0]);
            assert!(others.into_iter().chain(mine).all(|other| decide(other) == first), "{here:?}");
        }
    }
}

fn facts_of_a_grant(grant: sync::Grant, here: sync::Here) -> sync::Facts {
    sync::Facts {
        grant: Some(grant),
        here,
        has_finalizer: false,
        workload: sync::Workload::None,
        claims: Vec::new(),
        is_marked_superseded: true,
        leftover: sync::Leftover::None,
        has_objects_to_apply: false,
        stillness: Some(sync::Stillness::Still),
        truth: None,
    }
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in [
        sized(""),
        sized("clusters=1,epochs=1,writes=0,force=0,relist=0"),
        sized("clusters=3,epochs=3,writes=2,claims=2"),
        live("clusters=3,epochs=3,writes=2,claims=2,faults=3"),
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
fn each_invariant_but_the_one_that_is_named_can_fail() {
    crate::testing::assert_invariants_can_fail(&sized(""));
}

#[test]
fn every_action_has_its_own_name() {
    let actions = live("faults=3,claims=2,clusters=3,epochs=3").actions();
    let names: HashSet<_> = actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names.len(), actions.len());
}

#[test]
fn clusters_are_interchangeable() {
    assert_symmetric(&sized("clusters=3,epochs=3,writes=2,claims=2"));
    assert_symmetric(&live("faults=2,relist=0"));
}

/// The shortest way to break a promise by a mistake, as a story that can be read.
fn story(name: &str, promise: &str) -> Vec<String> {
    let mutant = mutant(&sized(""), name);
    let options = Options {
        only: vec![promise.to_owned()],
        first: true,
        workers: 1,
        liveness: Liveness::Off,
        ..Options::default()
    };
    let report = check("placement", &mutant.model, &options).unwrap();
    let finding = report.invariants.iter().find(|f| f.verdict == Verdict::Violated).unwrap();
    let trace = finding.trace.as_ref().unwrap();
    trace.states.iter().filter_map(|state| state.action.clone()).collect()
}

const UNTIL_PERMITTED: [&str; 8] = [
    "Grant(A)",
    "Observe(A)",
    "CreateHere(A)",
    "CreateClaim(A)",
    "FillEnd(A)",
    "ReportFilled(A)",
    "LookWhetherGranted(A)",
    "Permit(A)",
];

#[test]
fn a_runtime_that_looks_before_it_locks_is_overtaken_by_the_close() {
    let story = story("read-before-lock", "ClosedIsStill");
    let (before, after) = story.split_at(8);
    assert_eq!(before, UNTIL_PERMITTED);
    let race = ["LookAtPermit(A)", "Withdraw(A)", "LookWhetherStill(A)", "Close(A)", "Start(A)"];
    assert_eq!(after[..2], ["Revoke(A)", "Observe(A)"]);
    assert_eq!(after[2..], race);
}

#[test]
fn a_permit_from_before_a_power_loss_would_start_what_was_declared_gone() {
    let story = story("boot-ignored", "ReleasedIsStill");
    let (before, after) = story.split_at(8);
    assert_eq!(before, UNTIL_PERMITTED);
    assert_eq!(after[..3], ["PowerOff(A)", "AskForce(1)", "PowerOn(A)"]);
    assert_eq!(after[3..], ["TakeLock(A)", "LookAtPermit(A)", "Start(A)", "Fence(1)"]);
}
