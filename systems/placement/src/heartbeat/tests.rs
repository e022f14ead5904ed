//! Tests of the heartbeat.

use super::Heartbeat;
use crate::kinds::{STORAGE_CLASS, WORKLOAD_CLUSTER};
use crate::syncer::tests::world::TestFleet;
use interlock_api::placement::{Ref, Syncer};
use interlock_kernel::{Name, Step};
use jiff::Timestamp;
use serde_json::{Value, json};

fn heartbeat(world: &TestFleet) -> Heartbeat {
    let text = str::to_owned;
    let syncer = Syncer { instance: text("i"), version: text("v"), boot_id: text("b") };
    Heartbeat::new(world.cluster("a"), syncer)
}

fn status(world: &TestFleet) -> Value {
    world.get("", &WORKLOAD_CLUSTER, &Name::cluster_wide("a")).unwrap()["status"].clone()
}

fn pass(world: &mut TestFleet, seconds: i64) {
    world.now = Timestamp::from_second(world.now.as_second() + seconds).unwrap();
}

#[test]
fn it_counts_every_ten_seconds_and_not_more_often() {
    let mut world = TestFleet::new(&["a"]);
    let heartbeat = heartbeat(&world);
    for expected in 1..4 {
        assert!(world.turn(&heartbeat, "a"));
        assert!(!world.turn(&heartbeat, "a"));
        assert_eq!(status(&world)["heartbeat"]["sequence"], expected);
        pass(&mut world, 9);
        assert!(!world.turn(&heartbeat, "a"));
        pass(&mut world, 1);
    }
}

#[test]
fn a_clock_that_was_set_back_does_not_silence_it() {
    let mut world = TestFleet::new(&["a"]);
    let heartbeat = heartbeat(&world);
    world.turn(&heartbeat, "a");
    pass(&mut world, -3600);
    assert!(world.turn(&heartbeat, "a"));
    assert!(!world.turn(&heartbeat, "a"));
}

#[test]
fn storage_classes_are_reported_at_once() {
    let mut world = TestFleet::new(&["a"]);
    let heartbeat = heartbeat(&world);
    world.turn(&heartbeat, "a");
    let class = json!({"provisioner": "p", "metadata": {"annotations":
        {"storageclass.kubernetes.io/is-default-class": "true"}}});
    world.put(&STORAGE_CLASS, Name::cluster_wide("fast"), "a", class);
    assert!(world.turn(&heartbeat, "a"));
    assert_eq!(
        status(&world)["storageClasses"],
        json!([{"name": "fast", "provisioner": "p", "isDefault": true, "canSnapshot": false}])
    );
    assert!(!world.turn(&heartbeat, "a"));
}

#[test]
fn the_issuer_is_published_and_one_that_is_not_said_any_more_stays() {
    let mut world = TestFleet::new(&["a"]);
    let heartbeat = heartbeat(&world);
    let beats = |world: &mut TestFleet, beats: usize| {
        for _ in 0..beats {
            assert!(world.turn(&heartbeat, "a"), "the heartbeat goes out, whatever is known");
            pass(world, 10);
        }
    };
    beats(&mut world, 1);
    assert!(status(&world)["issuer"].is_null());
    world.issuer = Some("https://a.example/issuers/1".to_owned());
    beats(&mut world, 5);
    assert!(status(&world)["issuer"].is_null());
    beats(&mut world, 1);
    assert_eq!(status(&world)["issuer"], "https://a.example/issuers/1", "within a minute");
    world.issuer = None;
    beats(&mut world, 354);
    assert_eq!(status(&world)["heartbeat"]["sequence"], 361);
    assert_eq!(status(&world)["issuer"], "https://a.example/issuers/1");
    world.issuer = Some("https://a.example/issuers/2".to_owned());
    beats(&mut world, 359);
    assert_eq!(status(&world)["issuer"], "https://a.example/issuers/1");
    beats(&mut world, 1);
    assert_eq!(status(&world)["issuer"], "https://a.example/issuers/2", "within an hour");
}

#[test]
fn an_issuer_that_a_cluster_object_cannot_have_does_not_stop_the_heartbeat() {
    for issuer in [String::new(), format!("https://{}", "a".repeat(2048))] {
        let mut world = TestFleet::new(&["a"]);
        world.issuer = Some(issuer);
        assert!(world.turn(&heartbeat(&world), "a"));
        assert!(status(&world)["issuer"].is_null());
        assert_eq!(status(&world)["heartbeat"]["sequence"], 1);
    }
}

#[test]
fn it_does_not_speak_for_a_cluster_that_came_by_the_name_later() {
    let world = TestFleet::new(&["a"]);
    let other = Heartbeat::new(Ref::new("a", "an-earlier-one"), Syncer::default());
    let Step::Rest { because } = world.step(&other, "a", "heartbeat") else { panic!("it acts") };
    assert_eq!(because, "another WorkloadCluster has the name a now");
}
