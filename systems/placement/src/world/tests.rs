//! The world in its small sizes.

use super::*;
use interlock_checker::{Options, Report, Verdict, check};

fn report(size: &str) -> (Report, u64) {
    let size = Size::parse(size).expect("a size");
    let world = World::new(Namespaces::from_size(&size).expect("a size"));
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    (report, world.calls())
}

fn holds(size: &str, states: u64) {
    let (report, calls) = report(size);
    assert!(report.all_hold(), "{size}: {report:?}");
    assert!(report.complete);
    assert_eq!(report.distinct_states, states, "{size}");
    assert!(calls > 0 && report.steps_called == calls);
}

#[test]
fn a_namespace_is_moved_though_programs_crash_and_whoever_gains_work_is_woken() {
    holds("moves=1,flights=0,stale=0,crash=1,wakes=1", 385);
}

#[test]
fn every_controller_at_the_hub_takes_part() {
    holds("moves=1,flights=0,stale=0,crash=1,wakes=1,all=1", 10_212);
}

#[test]
fn steps_come_apart_and_caches_are_out_of_date() {
    holds("moves=1,flights=1,stale=0", 3_909);
    holds("moves=1,flights=0,stale=1", 7_666);
}

#[test]
fn in_the_end_the_namespace_runs_where_people_want_it() {
    holds("moves=1,flights=0,stale=0,crash=1,live=1", 674);
}

/// Each promise by itself could be too weak to see it; the protocol is not.
#[test]
fn a_mistake_is_no_step_of_the_protocol() {
    for name in ["stillness-assumed", "grant-without-release", "epoch-not-grown"] {
        let mistake = mistakes::mistakes().into_iter().find(|mistake| mistake.name == name);
        let system = mistake.expect("there is one of that name").system;
        let world = World::new(Namespaces { is_refined: true, ..system });
        let report = check(NAME, &world, &Options::default()).expect("it is explored");
        let verdict = report.refines.values().next().map(|finding| finding.verdict);
        assert_eq!(verdict, Some(Verdict::Violated), "{name}");
    }
}

/// The others take longer, and are run in release: `interlock check placement --mutants`.
#[test]
fn mistakes_are_found() {
    for name in [
        "grant-without-release",
        "silence-is-release",
        "revoke-with-no-target",
        "stillness-assumed",
        "locks-ignored",
        "delete-on-absence",
        "force-while-running",
        "refuses-from-cache",
        "ran-ignored",
        "grant-wakes-nobody",
        "nothing-is-stopped",
        "always-forced",
        "wish-ignored",
    ] {
        let options = Options { mutant: Some(name.to_owned()), ..Options::default() };
        let size = Size::parse("").expect("a size");
        let world = World::new(Namespaces::from_size(&size).expect("a size"));
        let report =
            interlock_checker::check_mutants(NAME, &world, &options).expect("it is checked");
        assert!(report.all_killed(), "{name} survives");
    }
}

#[test]
fn an_owner_that_is_silent_keeps_the_namespace_and_a_cluster_that_takes_nothing_gets_nothing() {
    holds("moves=1,flights=0,stale=1,crash=0,silent=1", 24_444);
    holds("moves=1,flights=0,stale=1,crash=1,unfit=1", 724);
}

#[test]
fn data_goes_along() {
    holds("moves=1,flights=0,stale=0,crash=1,claims=1", 50_968);
}
