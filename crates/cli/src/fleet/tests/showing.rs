//! `interlock status`.

use super::super::report::{fleet, text};
use super::super::scene::{Scene, told};
use super::super::{health::Health, page};
use super::same;
use interlock_api::placement::{CopyState, Fill, Phase, RightsState};

fn running(namespace: &str) -> Scene {
    Scene::new(namespace).grant(Phase::Granted, "west", 3).says(told(
        "Running",
        true,
        7_200,
        ("Started", ""),
    ))
}

#[test]
fn a_fleet_at_rest_is_a_few_lines() {
    let picture = Scene::together(&[running("blog"), running("shop")]);
    let report = fleet(&picture);
    assert_eq!(report.health, Health::Settled);
    same(
        &text(&picture, &report, "", false),
        "\
all 2 placed namespaces are settled

CLUSTER  READY  REACHABLE  GRANTS  SYNCER  AGE  NOTE
east     yes    yes        0       0.1.0   5d
west     yes    yes        2       0.1.0   5d

PHASE    NAMESPACES
Granted  2

next: interlock status blog
",
    );
}

#[test]
fn what_is_blocked_is_shown_with_the_reason_and_the_next_command() {
    let stuck = Scene::new("shop").lost("west", 250).unschedulable("east");
    let stuck = stuck.desired("east").grant(Phase::Revoking, "west", 3).target("east");
    let on_its_way = Scene::new("wiki").grant(Phase::Released, "west", 7).target("east");
    let picture = Scene::together(&[stuck, on_its_way.event("Released", "", 4)]);
    let report = fleet(&picture);
    assert_eq!(report.health, Health::Blocked);
    same(
        &text(&picture, &report, "", false),
        "\
1 namespace blocked, 1 moving; 0 of 2 settled

CLUSTER  READY  REACHABLE      GRANTS  SYNCER  AGE  NOTE
east     yes    yes            0       0.1.0   5d   accepts no new namespaces
west     yes    no, for 4m10s  1       0.1.0   5d

PHASE     NAMESPACES
Released  1
Revoking  1

NAMESPACE  OWNER  TARGET  PHASE     REASON            FOR    WAITS FOR
shop       west   east    Revoking  OwnerUnreachable  4m10s  west to answer, or a person to declare it gone
wiki       west   east    Released  Released          4s     the scheduler to grant the namespace to east

next: interlock explain shop
",
    );
}

#[test]
fn a_cluster_that_is_being_deleted_says_what_keeps_it() {
    let (why, next) = ("the cluster owns 1 grant (shop)", "interlock move --all-from west");
    let picture = Scene::together(&[running("shop").deleting("west", why, next)]);
    let shown = text(&picture, &fleet(&picture), "", false);
    assert!(shown.contains(&format!("5d   being deleted; {why}. next: {next}\n")), "{shown}");
}

#[test]
fn an_empty_fleet_says_how_to_begin() {
    let mut picture = Scene::new("shop").picture();
    picture.subjects.clear();
    picture.clusters.clear();
    same(
        &text(&picture, &fleet(&picture), "", false),
        "\
no namespace is placed

no cluster exists: create a WorkloadCluster

next: kubectl label namespace NAME interlock.dev/placed=true
",
    );
}

#[test]
fn colours_are_on_a_terminal_only() {
    let picture = running("shop").picture();
    let report = fleet(&picture);
    assert!(
        text(&picture, &report, "", true).starts_with("\x1b[32mthe 1 placed namespace is settled")
    );
    assert!(!text(&picture, &report, "", false).contains('\x1b'));
}

#[test]
fn one_namespace_is_one_page() {
    let scene = Scene::new("shop").desired("east").grant(Phase::Revoking, "west", 3).target("east");
    let scene = scene
        .listed("data", Fill::Filled)
        .copy("north", 2, CopyState::Superseded)
        .says(told("Placed", true, 90_000, ("Fits", "")))
        .says(told("Stopped", false, 12, ("Stopping", "pod web-0, pid 4711, is in state D")))
        .event("Granted", "west has it at epoch 3", 90_000)
        .event("Revoking", "it moves to east", 12);
    same(
        &page::text(&scene.picture(), scene.subject(), false),
        "\
shop moves from west to east

owner      west, epoch 3
phase      Revoking for 12s: the owner has to stop and hand over
desired    east (annotation interlock.dev/cluster)
target     east
waits for  west to stop: pod web-0, pid 4711, is in state D, for 12s

CLAIM  FILL    DATA  LAST SNAPSHOT
data   Filled  -     none

DATA ON  EPOCH  STATE
west     3      Live
north    2      Superseded

CONDITION  STATUS  FOR  MEANS
Placed     True    25h  the namespace has a cluster
Stopped    False   12s  the namespace has not stopped on the old owner: pod web-0, pid 4711, is in state D

EVENT  REASON    MESSAGE
25h    Granted   west has it at epoch 3
12s    Revoking  it moves to east

next: interlock explain shop
",
    );
}

#[test]
fn the_form_for_programs_has_these_keys_and_no_others() {
    let scene = running("shop").listed("data", Fill::Filled).event("Granted", "", 9);
    let picture = scene.picture();
    let keys = |value: &serde_json::Value| -> String {
        let object = value.as_object().unwrap();
        object.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let report = serde_json::to_value(fleet(&picture)).unwrap();
    assert_eq!(keys(&report), "answer clusters health namespaces phases turns");
    assert_eq!(
        keys(&report["clusters"][0]),
        "created drain grants name next not_served reachable reachable_since ready stays uid \
         unschedulable version"
    );
    let row = "epoch health name next owner phase phase_since reason rights target waits_for \
               waits_since";
    assert_eq!(keys(&report["namespaces"][0]), row);
    assert_eq!(report["namespaces"][0]["health"], "settled");
    let page = serde_json::to_value(page::page(&picture, scene.subject())).unwrap();
    assert_eq!(
        keys(&page),
        "answer because claims conditions copies desired epoch events grant health name next \
         owner phase phase_since placed reason rights target waits_for waits_since"
    );
    assert_eq!(page["claims"][0]["fill"], "Filled");
    assert_eq!(keys(&page["claims"][0]), "bytes fill last_snapshot last_snapshot_on name of_bytes");
    assert_eq!(page["conditions"][0]["type"], "Running");
}

#[test]
fn namespaces_with_cloud_roles_say_whom_they_trust_and_why_not() {
    use RightsState::{Fenced, Ready, Waiting};
    let ready = running("blog").rights(&[("app", 3, Ready)]);
    let behind =
        running("shop").rights(&[("app", 3, Ready), ("db", 2, Ready), ("log", 3, Waiting)]);
    let open = Scene::new("wiki").grant(Phase::Fenced, "west", 3).fenced(3);
    let open = open.rights(&[("app", 3, Ready), ("db", 3, Fenced)]);
    let picture = Scene::together(&[ready, behind, open, running("none")]);
    let report = fleet(&picture);
    let shown = text(&picture, &report, "", false);
    let expected = "\
RIGHTS   NAMESPACES
Ready    2
Waiting  1

NAMESPACE  ROLE  RIGHTS   EPOCH  WHY
shop       db    Waiting  2      the cloud role does not trust the owner of epoch 3 yet
shop       log   Waiting  3      the cloud role does not trust the owner of epoch 3 yet
wiki       app   Ready    3      the owner of epoch 3, which was declared gone, may still have its rights
wiki       db    Fenced   3      the owner lost the namespace by force
";
    assert!(shown.contains(expected), "{shown}");
    let json = serde_json::to_value(&report).unwrap();
    let namespaces = json["namespaces"].as_array().unwrap();
    let of = |name: &str| namespaces.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(of("wiki")["rights"][0]["open_epoch"], 3);
    assert_eq!(of("shop")["rights"][1]["state"], "Waiting");
    assert_eq!(of("blog")["rights"][0]["because"], "");
    assert_eq!(of("none")["rights"], serde_json::json!([]));
    let subject = picture.subjects.iter().find(|subject| subject.name == "shop").unwrap();
    let page = page::text(&picture, subject, false);
    assert!(page.contains("ROLE  RIGHTS   EPOCH  WHY\napp   Ready    3\ndb "), "{page}");
}
