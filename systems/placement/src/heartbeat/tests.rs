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
fn it_does_not_speak_for_a_cluster_that_came_by_the_name_later() {
    let world = TestFleet::new(&["a"]);
    let other = Heartbeat::new(Ref::new("a", "an-earlier-one"), Syncer::default());
    let Step::Rest { because } = world.step(&other, "a", "heartbeat") else { panic!("it acts") };
    assert_eq!(because, "another WorkloadCluster has the name a now");
}
