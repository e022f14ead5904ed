//! Snapshots whose class is not there.

use super::*;

/// The storage says of every snapshot that is not ready that its class is not there.
fn class_is_missing(world: &mut TestServers, class: &str) {
    for snapshot in only(world, &SNAPSHOT_KIND) {
        let message = format!("ClassMissing: there is no VolumeSnapshotClass {class}; create it");
        let error = json!({"status": {"readyToUse": false, "error": {"message": message}}});
        world.change(Place::CLUSTER, &SNAPSHOT_KIND, &Name::of(&snapshot), &error);
    }
}

fn waiting_for(class: &str) -> (TestServers, FakeMover) {
    let named = json!({"spec": {"restic": {"volumeSnapshotClassName": class}}});
    let mut world = world([source(&named)]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    class_is_missing(&mut world, class);
    let run = settle(&mut world, &mut mover);
    assert!(run.events.iter().any(|event| event.reason == "ClassMissing"), "{:?}", run.events);
    (world, mover)
}

#[test]
fn a_class_of_snapshots_that_is_not_there_is_named_and_waited_for() {
    let (mut world, mut mover) = waiting_for("fast");
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "ClassMissing");
    let found = condition(&seen(&world), "interlock.dev/Healthy")["message"].clone();
    assert!(found.as_str().unwrap().contains("VolumeSnapshotClass fast"), "{found}");
    assert!(settle(&mut world, &mut mover).writes.is_empty(), "it is said once");
    // The class appears: the storage takes the snapshot that waits.
    take_snapshots(&mut world, 1);
    run_to_the_end(&mut world, &mut mover);
    assert_eq!(mover.begun.len(), 1);
}

#[test]
fn whoever_names_another_class_instead_does_not_wait_for_the_first() {
    for other in [json!("slow"), Value::Null] {
        let (mut world, mut mover) = waiting_for("fast");
        let first = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
        let change_of = json!({"metadata": {"generation": 2},
            "spec": {"restic": {"volumeSnapshotClassName": other}}});
        change(&mut world, &change_of);
        settle(&mut world, &mut mover);
        let snapshots = only(&world, &SNAPSHOT_KIND);
        assert_eq!(
            snapshots[0].data["spec"].get("volumeSnapshotClassName"),
            other.as_str().map(|_| &other)
        );
        assert!(snapshots.len() == 1 && Name::of(&snapshots[0]) != first);
        run_to_the_end(&mut world, &mut mover);
    }
}

#[test]
fn a_snapshot_that_nobody_begins_with_is_not_waited_for_in_silence() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    assert_ne!(reason(&world, "interlock.dev/Healthy"), "SnapshotNotBegun", "it is early");
    world.pass(60);
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "SnapshotNotBegun");
    // Somebody has, and takes as long as it takes.
    let snapshot = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
    let touched = json!({"metadata": {"finalizers": ["driver.example.com/x"]}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &snapshot, &touched);
    settle(&mut world, &mut mover);
    assert_ne!(reason(&world, "interlock.dev/Healthy"), "SnapshotNotBegun");
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    assert_eq!(mover.begun.len(), 1);
}
