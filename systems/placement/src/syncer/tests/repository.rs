//! Whole moves whose data goes through a restic repository.

use super::volumes::{
    GRANT_NAME, REPOSITORY, condition, content, grant, here, leave_until_asked, pass, set_desired,
    world as copying_world, written,
};
use super::world::{BOOT, TestFleet};
use crate::kinds::{CLAIM, DESTINATION, PLACEMENT, SECRET, SNAPSHOT, SOURCE};
use crate::syncer::Syncer;
use interlock_kernel::{Name, Step};
use serde_json::json;

/// A placed namespace with a claim and a pod that writes to it, and a Placement that has its data go
/// through a repository. The Secret is not there yet.
fn world() -> TestFleet {
    let mut world = copying_world();
    let placement = json!({"spec": {
        "namespaceSelector": {}, "clusterSelector": {},
        "volumes": {"transport": "Restic", "repository": "backup", "keepSuperseded": "1h"},
    }});
    world.put(&PLACEMENT, Name::cluster_wide("all"), "", placement);
    world
}

fn with_secret() -> TestFleet {
    let mut world = world();
    put_secret(&mut world);
    world
}

fn put_secret(world: &mut TestFleet) {
    let secret = json!({"data": {"RESTIC_REPOSITORY": "L3JlcG8=", "RESTIC_PASSWORD": "cHc="}});
    world.put(&SECRET, Name::within("shop", "backup"), "", secret);
}

#[test]
fn data_goes_along_and_no_snapshot_is_left_on_a_cluster() {
    let mut world = with_secret();
    world.settle();
    for (epoch, cluster) in [(2, "b"), (3, "a"), (4, "b")] {
        set_desired(&mut world, cluster);
        world.settle();
        let grant = grant(&world);
        assert_eq!(grant["status"]["owner"]["name"], cluster, "{grant}");
        assert_eq!(written(&world, cluster), (1..=epoch).collect::<Vec<_>>());
        let pin = &grant["status"]["pins"][0];
        assert_eq!((&pin["epoch"], &pin["digest"]), (&json!(epoch - 1), &json!("d")));
        let snapshot = &pin["snapshot"]["restic"];
        assert_eq!(snapshot["secret"], "backup");
        let snapshot = snapshot["snapshotID"].as_str().expect("a snapshot");
        assert_eq!(content(&world, REPOSITORY, snapshot), Some((1..epoch).collect()));
        assert!(world.all(cluster, &SNAPSHOT).is_empty());
        assert_eq!(world.settle(), 0);
    }
}

#[test]
fn what_is_saved_says_of_which_claim_and_epoch_it_is_and_is_asked_for_by_its_id() {
    let mut world = with_secret();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    let source = world.get("a", &SOURCE, &here("move-data")).expect("a source");
    let external = &source["spec"]["external"];
    assert_eq!(external["provider"], "interlock.dev/restic");
    let asked = &external["parameters"];
    let claim = &grant(&world)["status"]["claims"][0]["uid"];
    assert_eq!((&asked["epoch"], &asked["claim"]), (&json!("1"), claim));
    assert_eq!((&asked["copyMethod"], &asked["repository"]), (&json!("Direct"), &json!("backup")));
    let made =
        world.log.iter().find(|line| line.contains("Create") && line.contains("move-data-2"));
    let made = made.expect("a destination was made");
    let snapshot = &grant(&world)["status"]["pins"][0]["snapshot"]["restic"]["snapshotID"];
    assert!(made.contains(snapshot.as_str().unwrap()), "{made}");
    // Each time it leaves, the source is asked for that epoch and nothing else.
    set_desired(&mut world, "a");
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    let source = world.get("a", &SOURCE, &here("move-data")).expect("a source");
    assert_eq!(source["spec"]["external"]["parameters"]["epoch"], "3");
}

#[test]
fn the_secret_comes_before_the_data_and_its_absence_is_said() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    let said = condition(&world, "DataSynced");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("SecretIncomplete")));
    let next = said["next"].as_str().unwrap();
    assert!(next.starts_with("kubectl create secret generic backup -n shop"), "{next}");
    assert!(world.all("a", &SOURCE).is_empty(), "nothing is asked of a mover that cannot do it");
    put_secret(&mut world);
    pass(&mut world, 601);
    world.settle();
    assert_eq!(written(&world, "b"), [1, 2]);
    let at = |what: &str| {
        let is_it = |line: &&String| line.starts_with("b") && line.contains(what);
        world.log.iter().position(|line| is_it(&line)).unwrap_or_else(|| panic!("no {what}"))
    };
    assert!(at("Secret") < at("move-data-2"), "{:#?}", world.log);
}

#[test]
fn a_secret_that_is_mended_on_the_way_comes_down_at_once() {
    let mut world = with_secret();
    world.settle();
    set_desired(&mut world, "b");
    leave_until_asked(&mut world);
    let syncer = world.syncer("a");
    let mended = json!({"data": {"RESTIC_PASSWORD": "cHcy"}});
    world.change("", &SECRET, &Name::within("shop", "backup"), &mended);
    world.turn(&syncer, "a");
    let here = world.get("a", &SECRET, &here("backup")).expect("the Secret");
    assert_eq!(here["data"]["RESTIC_PASSWORD"], "cHcy");
}

#[test]
fn a_transport_that_changes_between_two_moves_leaves_nothing_of_the_other() {
    let mut world = with_secret();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    set_desired(&mut world, "a");
    world.settle();
    let copy = json!({"spec": {"volumes": {"transport": "Copy", "repository": null}}});
    world.change("", &PLACEMENT, &Name::cluster_wide("all"), &copy);
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    let source = world.get("a", &SOURCE, &here("move-data")).expect("a source");
    let external = &source["spec"]["external"];
    assert_eq!(external["provider"], "interlock.dev/copy");
    assert!(external["parameters"]["repository"].is_null(), "{external}");
    let snapshot = grant(&world)["status"]["pins"][0]["snapshot"].clone();
    assert!(snapshot["volumeSnapshot"].is_object(), "{snapshot}");
    assert_eq!(written(&world, "b"), [1, 2, 3, 4]);
}

#[test]
fn what_earlier_moves_saved_goes_when_a_later_epoch_has_run_for_long_enough() {
    let mut world = with_secret();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    set_desired(&mut world, "a");
    world.settle();
    assert!(world.get("a", &SOURCE, &here("tidy-data")).is_none(), "not at once");
    pass(&mut world, 3601);
    world.settle();
    let tidy = world.get("a", &SOURCE, &here("tidy-data")).expect("a VolumeSnapshot exists");
    let asked = &tidy["spec"]["external"]["parameters"];
    assert_eq!((&asked["tidy"], &asked["epoch"]), (&json!("true"), &json!("3")));
    let pinned = &grant(&world)["status"]["pins"][0]["snapshot"]["restic"]["snapshotID"];
    assert_eq!(&asked["pinned"], pinned, "never what the grant starts from");
    assert_eq!(world.settle(), 0);
    // The other cluster has nothing any more, and asks for nothing.
    for kind in [CLAIM, SOURCE, DESTINATION] {
        assert!(world.all("b", &kind).is_empty(), "{kind}");
    }
    // And for the next epoch here, once more.
    set_desired(&mut world, "b");
    world.settle();
    set_desired(&mut world, "a");
    world.settle();
    pass(&mut world, 3601);
    world.settle();
    let tidy = world.get("a", &SOURCE, &here("tidy-data")).expect("a VolumeSnapshot exists");
    assert_eq!(tidy["spec"]["trigger"]["manual"], "tidy-5");
    assert_eq!(tidy["metadata"]["labels"]["interlock.dev/grant"], GRANT_NAME);
}

#[test]
fn a_cluster_on_which_nothing_moves_data_asks_for_nothing() {
    let mut world = with_secret();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    pass(&mut world, 3601);
    // The one that runs there now watches no sources, and may not write any.
    let syncer = Syncer::new(world.cluster("b"), BOOT);
    let step = world.step(&syncer, "b", GRANT_NAME);
    assert!(matches!(step, Step::Rest { .. } | Step::Wait { .. }), "{step:?}");
}
