//! Each row of what an IamRoleServiceAccount gets.

use super::*;
use crate::testing::settings;
use interlock_kernel::Name;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, survives};
use serde_json::{Value, json};

const ROLE_ARN: &str = "arn:aws:iam::1:role/interlock/fleet/r";

fn room() -> Accounts {
    Accounts { settings: settings() }
}

fn name() -> Name {
    Name::within("shop", "s3put")
}

/// The example of irsa-operator.
fn example(spec: &Value) -> Value {
    let mut whole = json!({"policy": {"statement": [
        {"resource": "arn:aws:s3:::test-irsa-4gkut9fl", "action": ["s3:Get*", "s3:List*"]}]}});
    interlock_kernel::testing::merge(&mut whole, spec);
    json!({"kind": "IamRoleServiceAccount", "spec": whole,
        "metadata": {"namespace": "shop", "name": "s3put", "uid": "u-0", "generation": 1}})
}

fn status(ready: &str, reason: &str, arn: &str) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": "because",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let stalled = if reason == "Forbidden" { "True" } else { "False" };
    let conditions = [condition("Ready", ready), condition("Stalled", stalled)];
    json!({"status": {"arn": arn, "conditions": conditions}})
}

struct World(TestServers);

impl World {
    fn with(objects: Vec<Value>) -> World {
        World(TestServers::of(&room()).with(objects))
    }

    fn settle(&mut self) -> Run<Nothing> {
        self.0.settle(&room(), &mut NoMachine, "shop/s3put")
    }

    fn json(&self, kind: &interlock_kernel::Kind) -> Value {
        self.0.json(Place::HUB, kind, &name())
    }

    fn ready_reason(&self) -> String {
        let object = self.json(&ACCOUNT);
        let ready = condition(&object, "Ready");
        format!("{} {}", ready["status"], ready["reason"]).replace('"', "")
    }

    fn change(&mut self, kind: &interlock_kernel::Kind, patch: &Value) {
        self.0.change(Place::HUB, kind, &name(), patch);
    }

    fn ready() -> World {
        let mut world = World::with(vec![example(&json!({}))]);
        world.settle();
        world.change(&POLICY, &status("True", "AsDeclared", "arn:aws:iam::1:policy/p"));
        world.change(&ROLE, &status("True", "AsDeclared", ROLE_ARN));
        world.settle();
        world
    }
}

#[test]
fn the_children_come_first_and_the_annotation_when_the_role_is_ready() {
    let mut world = World::with(vec![example(&json!({}))]);
    world.settle();
    assert_eq!(
        world.json(&POLICY)["spec"]["statement"][0]["action"],
        json!(["s3:Get*", "s3:List*"])
    );
    assert_eq!(world.json(&ROLE)["spec"]["serviceAccountName"], "s3put");
    assert_eq!(world.json(&ROLE)["metadata"]["ownerReferences"][0]["uid"], "u-0");
    assert_eq!(world.json(&SERVICE_ACCOUNT), Value::Null);
    assert_eq!(world.ready_reason(), "False WaitingForPolicy");
    world.change(&POLICY, &status("True", "AsDeclared", "arn:aws:iam::1:policy/p"));
    world.settle();
    assert_eq!(world.ready_reason(), "False WaitingForRole");
    world.change(&ROLE, &status("True", "AsDeclared", ROLE_ARN));
    world.settle();
    assert_eq!(world.ready_reason(), "True AsDeclared");
    let account = world.json(&SERVICE_ACCOUNT);
    assert_eq!(account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"], ROLE_ARN);
    let object = world.json(&ACCOUNT);
    assert_eq!(
        (&object["status"]["condition"], &object["status"]["roleARN"]),
        (&json!("created"), &json!(ROLE_ARN))
    );
    assert!(world.settle().writes.is_empty());
}

#[test]
fn a_service_account_of_another_is_a_conflict_and_nothing_is_made() {
    let theirs = json!({"kind": "ServiceAccount", "metadata": {"namespace": "shop", "name": "s3put", "uid": "s"}});
    let mut world = World::with(vec![example(&json!({})), theirs.clone()]);
    world.settle();
    assert_eq!(world.ready_reason(), "False Conflict");
    assert_eq!(world.json(&ACCOUNT)["status"]["condition"], "saNameConflict");
    assert!(world.json(&POLICY).is_null() && world.json(&ROLE).is_null());
    world.change(&ACCOUNT, &json!({"spec": {"adoptServiceAccount": true}}));
    world.settle();
    assert!(world.json(&POLICY).is_object());
}

#[test]
fn a_child_of_another_is_a_conflict() {
    let theirs =
        json!({"kind": "Policy", "metadata": {"namespace": "shop", "name": "s3put", "uid": "p"}});
    let mut world = World::with(vec![example(&json!({})), theirs]);
    world.settle();
    assert_eq!(world.ready_reason(), "False Conflict");
    assert!(world.json(&ROLE).is_null());
}

#[test]
fn a_change_reaches_the_children() {
    let mut world = World::ready();
    let statement = json!([{"resource": "arn:aws:s3:::other", "action": ["s3:Put*"]}]);
    world.change(
        &ACCOUNT,
        &json!({"spec": {"policy": {"statement": statement}, "deletionPolicy": "Retain"}}),
    );
    world.settle();
    assert_eq!(world.json(&POLICY)["spec"]["statement"], statement);
    assert_eq!(world.json(&ROLE)["spec"]["deletionPolicy"], "Retain");
    world.change(&ACCOUNT, &json!({"spec": {"deletionPolicy": null}}));
    world.settle();
    assert!(world.json(&ROLE)["spec"]["deletionPolicy"].is_null());
}

#[test]
fn the_trouble_of_a_child_is_the_trouble_of_the_object() {
    let mut world = World::ready();
    world.change(&ROLE, &status("False", "Forbidden", ROLE_ARN));
    world.settle();
    assert_eq!(world.ready_reason(), "False Forbidden");
    assert_eq!(world.json(&ACCOUNT)["status"]["condition"], "forbidden");
}

#[test]
fn an_annotation_that_somebody_changed_is_restored() {
    let mut world = World::ready();
    let patch = json!({"metadata": {"annotations": {"eks.amazonaws.com/role-arn": "arn:other"}}});
    world.change(&SERVICE_ACCOUNT, &patch);
    world.settle();
    let account = world.json(&SERVICE_ACCOUNT);
    assert_eq!(account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"], ROLE_ARN);
}

#[test]
fn deletion_is_in_order_and_ends_when_the_children_are_gone() {
    let mut world = World::ready();
    for kind in [&POLICY, &ROLE] {
        world.change(kind, &json!({"metadata": {"finalizers": ["held"]}}));
    }
    world.0.delete(Place::HUB, &ACCOUNT, &name());
    world.settle();
    assert!(world.json(&SERVICE_ACCOUNT).is_null());
    let is_deleted = |kind| !world.json(&kind)["metadata"]["deletionTimestamp"].is_null();
    assert!(is_deleted(ROLE) && !is_deleted(POLICY));
    for kind in [&ROLE, &POLICY] {
        assert!(world.json(&ACCOUNT).is_object());
        world.change(kind, &json!({"metadata": {"finalizers": null}}));
        world.0.delete(Place::HUB, kind, &name());
        world.settle();
    }
    assert!(world.json(&ACCOUNT).is_null() && world.json(&POLICY).is_null());
}

#[test]
fn a_spec_that_makes_no_sense_is_reported_and_nothing_is_made() {
    for spec in [
        json!({"policy": {"statement": []}}),
        json!({"policyARNs": ["admin"]}),
        json!({"policyARNs": vec!["arn:aws:iam::1:policy/p"; 10]}),
        json!({"permissionsBoundariesPolicyARN": "admin"}),
    ] {
        let mut world = World::with(vec![example(&spec)]);
        world.settle();
        assert_eq!(world.ready_reason(), "False Invalid", "{spec}");
        assert!(world.json(&POLICY).is_null());
    }
}

#[test]
fn broken_objects_do_not_break_it() {
    let world = World::ready();
    let all: Vec<Value> =
        [&ACCOUNT, &POLICY, &ROLE, &SERVICE_ACCOUNT].map(|kind| world.json(kind)).into();
    survives(&room(), &NoMachine, &all);
}
