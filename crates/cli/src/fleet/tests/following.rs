//! How far a move is.

use super::super::progress::{Follower, Goal, Outcome, Progress};
use super::super::scene::{Scene, told};
use interlock_api::placement::{Fill, Grant, Phase};
use std::time::Duration;

fn grant(scene: &Scene) -> &Grant {
    scene.subject().grant.as_ref().unwrap()
}

fn to_east(before: &Scene) -> Follower {
    Follower::new(Goal::On("east".to_owned()), Some(grant(before)))
}

fn shown(follower: &mut Follower, scene: &Scene) -> Progress {
    follower.look(Some(grant(scene)))
}

fn on_west() -> Scene {
    Scene::new("shop").grant(Phase::Granted, "west", 3).says(told(
        "Running",
        true,
        500,
        ("Started", ""),
    ))
}

#[test]
fn a_move_is_reported_phase_by_phase() {
    let mut follower = to_east(&on_west());
    let mut line = |scene: &Scene, seconds| {
        shown(&mut follower, scene).line(Duration::from_secs(seconds), None)
    };
    assert_eq!(line(&on_west(), 1), "Granted to west (waiting to be revoked, 1 s)");
    let revoking = Scene::new("shop").grant(Phase::Revoking, "west", 3);
    assert_eq!(line(&revoking, 3), "Revoking (stopping on west, 3 s)");
    let stopped = revoking.says(told("Stopped", true, 1, ("Stopped", "")));
    assert_eq!(line(&stopped, 4), "Revoking (handing over from west, 4 s)");
    let released = Scene::new("shop").grant(Phase::Released, "west", 3);
    assert_eq!(line(&released, 0), "Released (waiting for the grant to east, 0 s)");
    let filling = Scene::new("shop").grant(Phase::Granted, "east", 4);
    let filling = filling.listed("data", Fill::Filling);
    assert_eq!(line(&filling, 2), "Granted to east (filling 0/1, 2 s)");
    let filled = Scene::new("shop").grant(Phase::Granted, "east", 4).listed("data", Fill::Filled);
    assert_eq!(line(&filled, 2), "Granted to east (starting, 2 s)");
    let running = filled.says(told("Running", true, 0, ("Started", "")));
    assert_eq!(line(&running, 0), "Running (on east, 0 s)");
}

#[test]
fn it_has_ended_when_the_new_owner_runs_it() {
    let mut follower = to_east(&on_west());
    let arrived = Scene::new("shop").grant(Phase::Granted, "east", 4);
    let arrived = arrived.says(told("Running", true, 0, ("Started", "")));
    let outcome = shown(&mut follower, &arrived).outcome;
    assert_eq!(outcome, Outcome::Runs { on: "east".to_owned(), epoch: 4 });
}

#[test]
fn that_the_old_owner_ran_it_is_not_taken_for_the_new_one() {
    let mut follower = to_east(&on_west());
    let arriving = Scene::new("shop").grant(Phase::Granted, "east", 4).says(told(
        "Running",
        true,
        500,
        ("Started", ""),
    ));
    assert_eq!(shown(&mut follower, &arriving).outcome, Outcome::UnderWay);
}

#[test]
fn an_owner_without_a_heartbeat_blocks_it() {
    let mut follower = to_east(&on_west());
    let words = ("HeartbeatOld", "west has sent no heartbeat since 12:00.");
    let lost = Scene::new("shop").grant(Phase::Revoking, "west", 3);
    let lost = lost.says(told("OwnerUnreachable", true, 60, words));
    let outcome = shown(&mut follower, &lost).outcome;
    assert_eq!(outcome, Outcome::Blocked("west has sent no heartbeat since 12:00".to_owned()));
}

#[test]
fn a_refusal_from_before_the_change_does_not_count_until_the_scheduler_had_its_time() {
    let before = on_west().says(told("Placed", false, 60, ("NoneFits", "east: not Ready")));
    let mut follower = to_east(&before);
    assert_eq!(shown(&mut follower, &before).outcome, Outcome::UnderWay);
    follower.believe_all();
    let outcome = shown(&mut follower, &before).outcome;
    assert_eq!(outcome, Outcome::Blocked("NoneFits: east: not Ready".to_owned()));
}

#[test]
fn a_new_refusal_counts_at_once() {
    let mut follower = to_east(&on_west());
    let refused =
        on_west().says(told("Placed", false, 0, ("NeedsCopy", "its data must be copied")));
    let outcome = shown(&mut follower, &refused).outcome;
    assert_eq!(outcome, Outcome::Blocked("NeedsCopy: its data must be copied".to_owned()));
}

#[test]
fn a_drain_ends_on_any_other_cluster() {
    let before = on_west();
    let mut follower = Follower::new(Goal::AwayFrom("west".to_owned()), Some(grant(&before)));
    let arrived = Scene::new("shop").grant(Phase::Granted, "north", 4);
    let arrived = arrived.says(told("Running", true, 0, ("Started", "")));
    let outcome = shown(&mut follower, &arrived).outcome;
    assert_eq!(outcome, Outcome::Runs { on: "north".to_owned(), epoch: 4 });
}

#[test]
fn a_namespace_that_is_being_deleted_ends_the_wait() {
    let mut follower = to_east(&on_west());
    let deleting = Scene::new("shop").grant(Phase::Deleting, "west", 3);
    assert_eq!(shown(&mut follower, &deleting).outcome, Outcome::Deleting);
}

#[test]
fn without_a_grant_it_waits_for_the_scheduler() {
    let mut follower = Follower::new(Goal::On("east".to_owned()), None);
    assert_eq!(follower.look(None).waits_for, "the scheduler to create the grant");
}
