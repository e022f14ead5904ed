//! Places of the dead are given back, and those of the living are not.

use super::*;
use crate::outside::SyncId;
use crate::sync::slots::{places_of, slot_name};
use crate::sync::testing::{FakeMover, done, only, runs, source};
use interlock_kernel::testing::{TestServers, survives};
use serde_json::{Value, json};

fn lease(sync: &str) -> Value {
    let places = places_of("/backup");
    let name = slot_name(&places, 0).name;
    json!({
        "kind": "Lease",
        "metadata": {"namespace": "interlock-system", "name": &*name, "uid": "l",
            "labels": {"interlock.dev/slot": places},
            "annotations": {"interlock.dev/slot-of": "ReplicationSource shop/data"}},
        "spec": {"holderIdentity": sync},
    })
}

fn with_intent(id: &str) -> Value {
    let intent = json!({"id": id, "attempt": 1, "snapshot": "i", "places": places_of("/backup"),
        "began": "2026-01-01T00:00:00Z"});
    source(&json!({"metadata": {"annotations": {"interlock.dev/sync": intent.to_string()}}}))
}

fn settle(world: &mut TestServers, mover: &mut FakeMover) {
    for subject in world.subjects(&Keeper) {
        world.settle(&Keeper, mover, &subject);
    }
}

#[test]
fn a_sync_on_its_way_keeps_its_place() {
    let mut world = TestServers::of(&Keeper).with([lease("s-1"), with_intent("s-1")]);
    settle(&mut world, &mut FakeMover::that(done(1)));
    assert_eq!(only(&world, &LEASE).len(), 1);
}

#[test]
fn the_place_of_a_sync_that_is_no_more_is_given_back() {
    for others in [vec![], vec![with_intent("s-2")], vec![source(&json!({}))]] {
        let mut world = TestServers::of(&Keeper).with([lease("s-1")]).with(others);
        settle(&mut world, &mut FakeMover::that(done(1)));
        assert!(only(&world, &LEASE).is_empty());
    }
}

#[test]
fn while_a_mover_runs_its_place_is_taken() {
    let mut world = TestServers::of(&Keeper).with([lease("s-1")]);
    let mut mover = FakeMover::that(done(1));
    mover.syncs.insert(SyncId { id: "s-1".to_owned(), attempt: 3 }, runs(1));
    settle(&mut world, &mut mover);
    assert_eq!(only(&world, &LEASE).len(), 1);
    mover.dies();
    settle(&mut world, &mut mover);
    assert!(only(&world, &LEASE).is_empty());
}

#[test]
fn a_source_that_is_being_deleted_wakes_whoever_gives_its_place_back() {
    let world = TestServers::of(&Keeper).with([lease("s-1"), with_intent("s-1")]);
    let gone = world.list(Place::CLUSTER, &SOURCE, None).remove(0);
    let woken = Keeper.subjects(&Watch::all(Place::CLUSTER, &SOURCE), &gone, &world.view());
    assert_eq!(woken.len(), 1);
    assert!(woken[0].starts_with("slot-"));
}

#[test]
fn a_lease_of_somebody_else_is_left_alone() {
    let theirs = json!({"kind": "Lease", "metadata": {"namespace": "interlock-system", "name": "node",
        "uid": "n"}, "spec": {"holderIdentity": "x"}});
    let mut world = TestServers::of(&Keeper).with([theirs]);
    settle(&mut world, &mut FakeMover::that(done(1)));
    assert_eq!(only(&world, &LEASE).len(), 1);
}

#[test]
fn broken_objects_do_not_break_it() {
    survives(&Keeper, &FakeMover::that(done(1)), &[lease("s-1"), with_intent("s-1")]);
}
