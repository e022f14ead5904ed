//! How it is with a namespace.

use super::super::health::{Health, Verdict, judge};
use super::super::scene::{Scene, told};
use interlock_api::placement::{CopyState, Fill, Phase};

fn verdict(scene: &Scene) -> Verdict {
    judge(&scene.picture(), scene.subject())
}

fn running(scene: Scene) -> Scene {
    scene.says(told("Running", true, 100, ("Started", "")))
}

#[test]
fn a_namespace_that_runs_where_it_is_desired_is_settled() {
    let scene = running(Scene::new("shop").desired("west").grant(Phase::Granted, "west", 3));
    assert_eq!(verdict(&scene).health, Health::Settled);
    assert_eq!(verdict(&scene).waits_for, "");
}

#[test]
fn a_namespace_that_does_not_ask_to_be_placed_is_at_rest() {
    let verdict = verdict(&Scene::new("shop").unplaced());
    assert_eq!((verdict.health, verdict.reason.as_str()), (Health::Settled, "NotPlaced"));
}

#[test]
fn a_new_namespace_waits_a_moment_for_its_grant_and_an_old_one_stands() {
    assert_eq!(verdict(&Scene::new("shop").made(5)).health, Health::Moving);
    let old = verdict(&Scene::new("shop").made(500));
    assert_eq!(old.health, Health::Blocked);
    assert_eq!(old.next.unwrap(), "interlock up");
}

#[test]
fn another_desired_cluster_than_the_owner_moves_even_before_the_scheduler_saw_it() {
    let scene = running(Scene::new("shop").desired("east").grant(Phase::Granted, "west", 3));
    let verdict = verdict(&scene);
    assert_eq!(verdict.health, Health::Moving);
    assert_eq!(verdict.waits_for, "the scheduler to revoke the grant of west, for east");
}

#[test]
fn what_takes_too_long_in_one_phase_stands() {
    let base = Scene::new("shop").desired("east").grant(Phase::Revoking, "west", 3);
    let short = base.clone().event("Revoking", "", 30);
    assert_eq!(verdict(&short).health, Health::Moving);
    let long = base.event("Revoking", "", 3_000);
    assert_eq!(verdict(&long).health, Health::Blocked);
    assert_eq!(verdict(&long).waits_for, "west to stop");
}

#[test]
fn since_when_it_is_in_its_phase_the_grant_itself_knows_best() {
    let scene = Scene::new("shop").desired("east").grant(Phase::Revoking, "west", 3).since(3_000);
    let told = verdict(&scene.clone().event("Revoking", "", 30));
    assert_eq!(told.health, Health::Blocked);
    assert_eq!(told.since, Some(super::super::scene::ago(3_000)));
}

#[test]
fn an_owner_without_a_heartbeat_is_blocked_with_the_exact_command() {
    let scene =
        Scene::new("shop").desired("east").grant(Phase::Revoking, "west", 3).lost("west", 250);
    let verdict = verdict(&scene);
    assert_eq!((verdict.health, verdict.reason.as_str()), (Health::Blocked, "OwnerUnreachable"));
    assert_eq!(
        verdict.next.unwrap(),
        "interlock force-release shop --owner west --epoch 3 --attest powered-off \
         --reason \"how you know that it is off\""
    );
}

#[test]
fn an_unreachable_cluster_that_owns_nothing_of_it_does_not_matter() {
    let scene = running(Scene::new("shop").grant(Phase::Granted, "west", 3)).lost("east", 250);
    assert_eq!(verdict(&scene).health, Health::Settled);
}

#[test]
fn a_cluster_made_again_under_the_name_of_the_owner_is_another_one() {
    let scene = running(Scene::new("shop").grant(Phase::Granted, "west", 3)).replaced("west");
    let verdict = verdict(&scene);
    assert_eq!(verdict.reason, "ClusterReplaced");
    assert!(verdict.waits_for.contains("is another cluster"), "{}", verdict.waits_for);
}

#[test]
fn a_desired_cluster_that_cannot_be_met_is_blocked_with_a_place_that_can() {
    let scene = running(Scene::new("shop").desired("eats").grant(Phase::Granted, "west", 3));
    let scene =
        scene.says(told("Placed", false, 60, ("UnknownCluster", "cluster eats does not exist.")));
    let verdict = verdict(&scene);
    assert_eq!((verdict.health, verdict.reason.as_str()), (Health::Blocked, "UnknownCluster"));
    assert_eq!(verdict.waits_for, "cluster eats does not exist");
    assert_eq!(verdict.next.unwrap(), "interlock move shop --to east");
}

#[test]
fn a_move_that_waits_its_turn_does_not_stand() {
    let scene = running(Scene::new("shop").desired("east").grant(Phase::Granted, "west", 3));
    let scene = scene.says(told("Placed", false, 60, ("MovesFull", "20 moves are under way")));
    assert_eq!(verdict(&scene).health, Health::Moving);
}

#[test]
fn a_copy_that_was_written_after_its_snapshot_waits_for_a_person() {
    let scene = running(Scene::new("shop").grant(Phase::Granted, "east", 4));
    let verdict = verdict(&scene.copy("west", 3, CopyState::Diverged));
    assert_eq!((verdict.health, verdict.reason.as_str()), (Health::Blocked, "Diverged"));
    let next = verdict.next.unwrap();
    assert_eq!(
        next,
        "kubectl annotate workloadcluster west interlock.dev/forget-copies=uid-shop-uid"
    );
}

#[test]
fn a_superseded_copy_is_nothing_to_worry_about() {
    let scene = running(Scene::new("shop").grant(Phase::Granted, "east", 4));
    let scene = scene.copy("west", 3, CopyState::Superseded);
    assert_eq!(verdict(&scene).health, Health::Settled);
}

#[test]
fn claims_are_filled_before_anything_starts() {
    let scene = Scene::new("shop").grant(Phase::Granted, "east", 4);
    let scene =
        scene.event("Granted", "", 20).listed("data", Fill::Filled).listed("logs", Fill::Filling);
    assert_eq!(verdict(&scene).waits_for, "east to fill the claims (1/2)");
}
