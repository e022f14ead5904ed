//! Labels follow the grant, and a claim stays while a cluster has it.

use super::*;
use crate::testing::{
    claim, grant, grant_in, grant_of, granted, listed, namespace, pin, reference,
};
use interlock_kernel::testing::{NoMachine, Run, TestServers, patched, survives};
use interlock_kernel::{Controller, Name};
use serde_json::{Value, json};

const A: &str = "state.interlock.dev/uid-a";
const B: &str = "state.interlock.dev/uid-b";
const LEAVING_A: &str = "deletion.interlock.dev/uid-a";

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut world = TestServers::of(&Claims).with(objects);
    let run = world.settle(&Claims, &mut NoMachine, &grant_of("shop"));
    (world, run)
}

fn shop(world: &TestServers) -> Value {
    world.json(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"))
}

fn data(world: &TestServers) -> Value {
    world.json(Place::HUB, &CLAIM, &Name::within("shop", "data"))
}

fn terminating() -> Value {
    json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})
}

fn owned(fill: &str, patch: Value) -> Value {
    let pins = [pin("data", &json!({"fresh": {}}))];
    let object =
        granted("shop", "a", json!({"status": {"claims": [listed("data", fill)], "pins": pins}}));
    patched(object, &patch)
}

#[test]
fn an_arriving_namespace_is_assigned_and_not_to_be_used() {
    let (world, run) = settled(vec![
        namespace("shop", json!({})),
        claim("shop", "data", json!({})),
        owned("Waiting", json!({})),
    ]);
    assert_eq!(shop(&world)["metadata"]["labels"][A], "");
    assert_eq!(data(&world)["metadata"]["labels"][A], "");
    assert!(shop(&world)["metadata"]["annotations"][LEAVING_A].is_null());
    assert_eq!(run.writes.len(), 2, "one object a step");
}

#[test]
fn a_filled_one_may_be_used_and_then_all_rests() {
    let (mut world, _) = settled(vec![
        namespace("shop", json!({})),
        claim("shop", "data", json!({})),
        owned("Filled", json!({})),
    ]);
    assert_eq!(shop(&world)["metadata"]["labels"][A], "Sync");
    assert_eq!(data(&world)["metadata"]["labels"][A], "Sync");
    assert_eq!(shop(&world)["metadata"]["labels"]["interlock.dev/placed"], "true");
    assert!(world.settle(&Claims, &mut NoMachine, &grant_of("shop")).writes.is_empty());
}

#[test]
fn a_leaving_one_says_since_when_and_keeps_saying_so() {
    let (mut world, _) = settled(vec![
        namespace("shop", json!({})),
        owned("Filled", json!({"status": {"phase": "Revoking", "claims": []}})),
    ]);
    assert_eq!(shop(&world)["metadata"]["labels"][A], "");
    assert_eq!(shop(&world)["metadata"]["annotations"][LEAVING_A], "1970-01-12T13:46:40Z");
    world.pass(60);
    assert!(world.settle(&Claims, &mut NoMachine, &grant_of("shop")).writes.is_empty());
}

#[test]
fn the_label_of_the_old_cluster_goes_in_the_same_write_as_the_new_one_comes() {
    let old = json!({"metadata": {"labels": {A: "Sync"}, "annotations": {LEAVING_A: "x"}}});
    let (world, run) = settled(vec![
        namespace("shop", old),
        granted("shop", "b", json!({"status": {"epoch": 8}})),
    ]);
    assert_eq!(run.writes.len(), 1);
    assert!(shop(&world)["metadata"]["labels"][A].is_null());
    assert!(shop(&world)["metadata"]["annotations"][LEAVING_A].is_null());
    assert_eq!(shop(&world)["metadata"]["labels"][B], "Sync");
}

#[test]
fn between_two_owners_no_cluster_is_named() {
    for phase in ["Unassigned", "Released", "Fenced", "Deleting"] {
        let old = json!({"metadata": {"labels": {A: "Sync"}}});
        let (world, _) = settled(vec![
            namespace("shop", old),
            granted("shop", "a", json!({"status": {"phase": phase}})),
        ]);
        assert!(shop(&world)["metadata"]["labels"][A].is_null(), "{phase}");
    }
}

#[test]
fn a_claim_of_a_placed_namespace_is_held() {
    let free = json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}});
    let (world, _) = settled(vec![
        namespace("shop", json!({})),
        claim("shop", "data", free),
        grant("shop", json!({})),
    ]);
    assert_eq!(
        data(&world)["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection", "interlock.dev/claim"])
    );
}

#[test]
fn a_claim_that_is_being_deleted_stays_while_the_owner_has_it_and_then_goes() {
    let finalizers = ["interlock.dev/syncer-uid-a", "interlock.dev/claim"];
    let mut held = terminating();
    held["metadata"]["finalizers"] = json!(finalizers);
    for phase in ["Granted", "Revoking"] {
        let objects = vec![
            namespace("shop", json!({})),
            claim("shop", "data", held.clone()),
            owned("Filled", json!({"status": {"phase": phase}})),
        ];
        let (mut world, run) = settled(objects);
        assert!(data(&world).is_object(), "{phase}");
        assert!(run.rests.contains("the cluster that has it deletes it first"), "{}", run.rests);
        let gone = json!({"metadata": {"finalizers": ["interlock.dev/claim"]}});
        world.change(Place::HUB, &CLAIM, &Name::within("shop", "data"), &gone);
        world.settle(&Claims, &mut NoMachine, &grant_of("shop"));
        assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["claims"], json!([]));
        assert!(data(&world).is_null(), "{phase}");
    }
}

#[test]
fn a_claim_that_is_not_listed_goes_after_a_live_read() {
    let objects = || {
        vec![
            namespace("shop", json!({"metadata": {"labels": {A: "Sync"}}})),
            claim("shop", "data", {
                let mut patch = terminating();
                patch["metadata"]["labels"] = json!({A: "Sync"});
                patch
            }),
            owned("Filled", json!({"status": {"claims": [], "pins": []}})),
        ]
    };
    let world = TestServers::of(&Claims).with(objects());
    let step = Claims.step(&Subject::from(grant_of("shop")), &world.view(), &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let (world, _) = settled(objects());
    assert!(data(&world).is_null());
}

#[test]
fn a_cache_that_is_behind_lets_nothing_go() {
    let world = TestServers::of(&Claims).with([
        namespace("shop", json!({})),
        claim("shop", "data", terminating()),
        grant("shop", json!({})),
    ]);
    let truth = TestServers::of(&Claims).with([owned("Filled", json!({}))]);
    let name = Name::cluster_wide(&grant_of("shop"));
    let mut live_reads = LiveReads::default();
    let address = interlock_kernel::Address::new(Place::HUB, &GRANT, name.clone());
    live_reads.objects.insert(address, truth.get(Place::HUB, &GRANT, &name));
    let step = Claims.step(&Subject::from(grant_of("shop")), &world.view(), &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "{step:?}");
}

#[test]
fn a_claim_that_nobody_has_is_taken_off_the_list_and_goes() {
    let (world, run) = settled(vec![
        namespace("shop", json!({})),
        claim("shop", "data", terminating()),
        owned("Filled", json!({"status": {"phase": "Released"}})),
    ]);
    let status = &grant_in(&world, &grant_of("shop"))["status"];
    assert_eq!((&status["claims"], &status["pins"]), (&json!([]), &json!([])));
    assert!(data(&world).is_null());
    assert_eq!(run.writes.len(), 2);
}

#[test]
fn the_claims_of_a_namespace_that_is_being_deleted_wait_for_its_copies() {
    let objects = |copies: Value| {
        vec![
            namespace("shop", json!({})),
            claim("shop", "data", terminating()),
            owned("Filled", json!({"status": {"phase": "Deleting", "copies": copies}})),
        ]
    };
    let copy = json!([{"cluster": reference("a"), "epoch": 7, "state": "Superseded"}]);
    let (world, _) = settled(objects(copy));
    assert!(data(&world).is_object());
    let (world, _) = settled(objects(json!([])));
    assert!(data(&world).is_null());
}

#[test]
fn a_claim_that_was_listed_by_mistake_comes_off_the_list() {
    let (world, run) = settled(vec![namespace("shop", json!({})), owned("Waiting", json!({}))]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["claims"], json!([]));
    assert_eq!(run.writes.len(), 3, "labels, list, labels");
    let (world, _) = settled(vec![namespace("shop", json!({})), owned("Filled", json!({}))]);
    let claims = &grant_in(&world, &grant_of("shop"))["status"]["claims"];
    assert_eq!(claims.as_array().map(Vec::len), Some(1), "one that was filled is the syncer's");
}

#[test]
fn a_namespace_that_came_later_under_the_name_is_left_alone() {
    let again = namespace("shop", json!({"metadata": {"uid": "again"}}));
    let (_, run) =
        settled(vec![again, claim("shop", "data", json!({})), owned("Filled", json!({}))]);
    assert!(run.writes.is_empty());
}

#[test]
fn a_namespace_whose_grant_is_not_in_the_cache_keeps_its_labels() {
    let labelled = namespace("shop", json!({"metadata": {"labels": {A: "Sync"}}}));
    let (_, run) = settled(vec![labelled, claim("shop", "data", json!({}))]);
    assert!(run.writes.is_empty());
}

#[test]
fn a_claim_is_deleted_even_if_its_namespace_is_not_placed_any_more() {
    let unplaced = namespace("shop", json!({"metadata": {"labels": null}}));
    let (world, _) = settled(vec![unplaced, claim("shop", "data", terminating())]);
    assert!(data(&world).is_null());
}

#[test]
fn broken_objects_do_not_break_it() {
    let objects = [
        namespace(
            "shop",
            json!({"metadata": {"labels": {A: ""}, "annotations": {LEAVING_A: "x"}}}),
        ),
        claim("shop", "data", terminating()),
        claim("shop", "more", json!({})),
        owned("Waiting", json!({"status": {"phase": "Revoking"}})),
    ];
    survives(&Claims, &NoMachine, &objects);
}
