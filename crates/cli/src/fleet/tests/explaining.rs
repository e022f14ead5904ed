//! `interlock explain`.

use super::super::explain::{explain, text};
use super::super::scene::{Scene, told};
use super::same;
use interlock_api::placement::{CopyState, Phase, RightsState};

fn explained(scene: &Scene) -> String {
    let picture = scene.picture();
    text(&picture, &explain(&picture, scene.subject()), false)
}

#[test]
fn a_namespace_at_rest_says_who_wants_it_there() {
    let scene = Scene::new("shop").placement("europe", &[]).grant(Phase::Granted, "west", 3);
    let scene = scene.says(told("Running", true, 7_200, ("Started", ""))).unschedulable("east");
    same(
        &explained(&scene),
        "\
shop runs on west, as desired (epoch 3)

because
  the owner is west, epoch 3: Granted for 120m, the owner may use the volumes
  the desired cluster is any cluster that Placement europe selects

CLUSTER  FITS
east     no: Unschedulable, the cluster accepts no new namespaces
west     yes

next: interlock status shop
",
    );
}

#[test]
fn a_move_whose_owner_is_silent_says_why_nobody_else_may_take_it() {
    let scene =
        Scene::new("shop").desired("east").grant(Phase::Revoking, "west", 3).lost("west", 250);
    same(
        &explained(&scene.event("Revoking", "", 300)),
        "\
shop is blocked on west: OwnerUnreachable

because
  the owner is west, epoch 3: Revoking for 5m, the owner has to stop and hand over
  the desired cluster is east (annotation interlock.dev/cluster)
  west has sent no heartbeat for 4m10s: no heartbeat for 40 seconds
  west may still run the namespace, so no other cluster may run it: only west or a person can release the grant

waiting 4m10s for
  west to answer, or a person to declare it gone

CLUSTER  FITS
east     yes
west     yes

next: interlock force-release shop --owner west --epoch 3 --attest powered-off --reason \"how you know that it is off\"
",
    );
}

#[test]
fn a_namespace_that_is_not_placed_explains_how_to_opt_in() {
    same(
        &explained(&Scene::new("shop").unplaced()),
        "\
shop is not placed: no cluster runs it

because
  the namespace is not placed: it has no label interlock.dev/placed=true

next: kubectl label namespace shop interlock.dev/placed=true
",
    );
}

#[test]
fn a_desired_cluster_that_needs_a_copy_stays_where_it_is_and_says_so() {
    let words = "its data would have to be copied from west, and nothing here can do that";
    let scene = Scene::new("shop").desired("east").grant(Phase::Granted, "west", 3);
    let scene = scene.says(told("Running", true, 7_200, ("Started", ""))).says(told(
        "Placed",
        false,
        30,
        ("NeedsCopy", words),
    ));
    let text = explained(&scene);
    assert!(text.starts_with("shop is blocked on west: NeedsCopy\n"), "{text}");
    assert!(text.contains(&format!("  NeedsCopy: {words}\n")), "{text}");
}

#[test]
fn a_copy_of_a_cluster_that_was_declared_gone_is_mentioned() {
    let scene = Scene::new("shop").grant(Phase::Granted, "east", 4);
    let scene =
        scene.says(told("Running", true, 60, ("Started", ""))).copy("west", 3, CopyState::Unclosed);
    let text = explained(&scene);
    assert!(text.starts_with("shop runs on east, as desired (epoch 4)\n"), "{text}");
    assert!(text.contains("west was declared gone at epoch 3 and has sent no heartbeat"), "{text}");
}

#[test]
fn a_namespace_that_is_gone_keeps_its_grant_until_no_data_is_left() {
    let scene = Scene::new("shop").grant(Phase::Deleting, "west", 3);
    let mut subject = scene.subject().clone();
    subject.namespace = None;
    let told = explain(&scene.picture(), &subject);
    assert_eq!(
        told.reasons[0],
        "the namespace was deleted; its grant is kept until no data is left"
    );
    assert!(told.waits_for.contains("west to delete its copies"), "{}", told.waits_for);
}

#[test]
fn a_start_that_waits_for_the_cloud_names_the_role_and_the_clusters_that_it_could_not_go_to() {
    let waits = "cluster west is not trusted for epoch 3 yet by role app";
    let scene = Scene::new("shop").desired("west").grant(Phase::Granted, "west", 3).since(20);
    let scene = scene.rights(&[("app", 2, RightsState::Fenced)]).fenced(2);
    let scene = scene.says(told("RightsReady", false, 20, ("Waiting", waits)));
    same(
        &explained(&scene),
        "\
shop is moving

because
  the owner is west, epoch 3: Granted for 20s, the owner may use the volumes
  the desired cluster is west (annotation interlock.dev/cluster)
  Waiting: cluster west is not trusted for epoch 3 yet by role app

waiting 20s for
  cluster west is not trusted for epoch 3 yet by role app

CLUSTER  FITS
east     no: IssuerNotReady, role app of the namespace needs a cluster with condition IssuerReady
west     no: IssuerNotReady, role app of the namespace needs a cluster with condition IssuerReady

next: interlock status shop --watch
",
    );
}

#[test]
fn an_owner_that_was_declared_gone_may_have_rights_until_each_role_says_otherwise() {
    for (epoch, state, may_have) in [
        (1, RightsState::Ready, true),
        (2, RightsState::Ready, true),
        (2, RightsState::Waiting, true),
        (2, RightsState::Fenced, false),
        (3, RightsState::Waiting, false),
        (3, RightsState::Ready, false),
    ] {
        let scene = Scene::new("shop").grant(Phase::Granted, "west", 3);
        let text = explained(&scene.rights(&[("app", epoch, state)]).fenced(2));
        let words =
            "role app: the owner of epoch 2, which was declared gone, may still have its rights";
        assert_eq!(text.contains(words), may_have, "{epoch} {state}: {text}");
    }
}
