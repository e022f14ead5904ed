//! The rooms of the hub together: they come to rest, and do not undo what another one did.

use crate::claims::Claims;
use crate::clusters::Clusters;
use crate::fencing::Fencing;
use crate::kinds::{CLAIM, GRANT, NAMESPACE, WORKLOAD_CLUSTER};
use crate::scheduler::Scheduler;
use crate::testing::{claim, cluster, grant_in, grant_of, namespace, pin, reference};
use interlock_kernel::testing::{NoMachine, TestServers, condition};
use interlock_kernel::{Controller, Name, Nothing, Place};
use serde_json::{Value, json};

const LABEL_A: &str = "state.interlock.dev/uid-a";
const LABEL_B: &str = "state.interlock.dev/uid-b";

fn hub(objects: Vec<Value>) -> TestServers {
    let mut hub = TestServers::of(&Scheduler::default());
    let others: [&dyn Controller<Outside = Nothing>; 3] = [&Claims, &Clusters::default(), &Fencing];
    others.into_iter().for_each(|room| hub.show(room));
    hub.with(objects)
}

/// Lets every room do all it can, until none has anything to do; how many writes that took.
fn rest(world: &mut TestServers) -> usize {
    let scheduler = Scheduler::default();
    let rooms: [&dyn Controller<Outside = Nothing>; 4] =
        [&scheduler, &Claims, &Clusters::default(), &Fencing];
    let mut writes = 0;
    for _ in 0..10 {
        let before = writes;
        for room in rooms {
            for subject in world.subjects(room) {
                writes += world.settle(room, &mut NoMachine, &subject).writes.len();
            }
        }
        if writes == before {
            return writes;
        }
    }
    panic!("the rooms do not come to rest");
}

fn beating(name: &str) -> Value {
    let status = json!({"conditions": null, "heartbeat": {"sequence": 1}});
    cluster(name, json!({"metadata": {"finalizers": null}, "status": status}))
}

fn shop(world: &TestServers) -> Value {
    world.json(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"))
}

fn as_syncer(world: &mut TestServers, status: &Value) {
    let name = Name::cluster_wide(&grant_of("shop"));
    world.change(Place::HUB, &GRANT, &name, &json!({ "status": status }));
    rest(world);
}

fn started() -> TestServers {
    let free = json!({"metadata": {"finalizers": null}});
    let mut world = hub(vec![
        namespace("shop", json!({"metadata": {"annotations": {"interlock.dev/cluster": "a"}}})),
        claim("shop", "data", free),
        beating("a"),
        beating("b"),
    ]);
    rest(&mut world);
    world
}

#[test]
fn a_new_namespace_is_granted_listed_and_mirrored_and_then_all_rest() {
    let mut world = started();
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["owner"], reference("a"));
    assert_eq!(grant["status"]["claims"][0]["name"], "data");
    assert_eq!(grant["status"]["pins"][0]["snapshot"], json!({"fresh": {}}));
    assert_eq!(shop(&world)["metadata"]["labels"][LABEL_A], "");
    assert_eq!(rest(&mut world), 0);
    as_syncer(
        &mut world,
        &json!({"claims": [{"name": "data", "uid": "uid-data", "fill": "Filled"}]}),
    );
    assert_eq!(shop(&world)["metadata"]["labels"][LABEL_A], "Sync");
}

#[test]
fn a_move_of_a_namespace_whose_claim_was_never_filled_goes_through() {
    let mut world = started();
    let desired = json!({"metadata": {"annotations": {"interlock.dev/cluster": "b"}}});
    world.change(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"), &desired);
    rest(&mut world);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Revoking");
    assert!(shop(&world)["metadata"]["annotations"]["deletion.interlock.dev/uid-a"].is_string());
    let superseded = json!([{"cluster": reference("a"), "epoch": 1, "state": "Superseded"}]);
    let fresh = pin("data", &json!({"fresh": {}}));
    as_syncer(&mut world, &json!({"phase": "Released", "copies": superseded, "pins": [fresh]}));
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(
        (&grant["status"]["owner"], &grant["status"]["epoch"]),
        (&reference("b"), &json!(2))
    );
    assert_eq!(condition(&grant, "Placed")["status"], "True");
    assert!(shop(&world)["metadata"]["labels"][LABEL_A].is_null());
    assert_eq!(shop(&world)["metadata"]["labels"][LABEL_B], "");
}

#[test]
fn an_owner_that_falls_silent_is_held_until_a_person_declares_it_gone() {
    let mut world = started();
    world.pass(60);
    let beat = json!({"status": {"heartbeat": {"sequence": 2}}});
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("b"), &beat);
    rest(&mut world);
    let desired = json!({"metadata": {"annotations": {"interlock.dev/cluster": "b"}}});
    world.change(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"), &desired);
    rest(&mut world);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(condition(&grant, "OwnerUnreachable")["status"], "True");
    assert_eq!(grant["status"]["phase"], "Revoking");
    world.put(
        Place::HUB,
        json!({
            "kind": "ForceRelease", "metadata": {"name": "force", "uid": "uid-force"},
            "spec": {
                "grant": reference(&grant_of("shop")), "owner": reference("a"), "epoch": 1,
                "attestation": "PoweredOff", "reason": "the rack burnt down", "requester": "kim",
            },
        }),
    );
    rest(&mut world);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(
        (&grant["status"]["owner"], &grant["status"]["epoch"]),
        (&reference("b"), &json!(2))
    );
    assert_eq!(grant["status"]["copies"][0]["state"], "Unclosed");
    let force = world.json(Place::HUB, &crate::kinds::FORCE_RELEASE, &Name::cluster_wide("force"));
    assert_eq!(force["status"]["outcome"], "Applied");
}

#[test]
fn a_deleted_namespace_is_deleted_with_its_claims_once_its_copies_are_gone() {
    let mut world = started();
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    world.change(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"), &terminating);
    world.change(Place::HUB, &CLAIM, &Name::within("shop", "data"), &terminating);
    rest(&mut world);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["because"], "Deletion");
    let superseded = json!([{"cluster": reference("a"), "epoch": 1, "state": "Superseded"}]);
    as_syncer(&mut world, &json!({"phase": "Released", "copies": superseded}));
    assert!(shop(&world).is_object(), "a cluster still has it");
    as_syncer(&mut world, &json!({"copies": []}));
    assert!(grant_in(&world, &grant_of("shop")).is_null());
    assert!(world.json(Place::HUB, &CLAIM, &Name::within("shop", "data")).is_null());
    assert!(shop(&world).is_null());
}
