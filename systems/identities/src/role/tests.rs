//! Each row of what a Role gets.

mod placed;

use super::*;
use crate::document;
use crate::testing::{Calls, FakeCloud, settings};
use crate::world::account::{HeldPolicy, HeldRole};
use interlock_kernel::Name;
use interlock_kernel::testing::{Run, TestServers, condition, survives};
use serde_json::{Value, json};

const SUBJECT: &str = "shop/s3";
const POLICY_ARN: &str = "arn:aws:iam::1:policy/interlock/fleet/p";
const OTHER_ARN: &str = "arn:aws:iam::aws:policy/ReadOnlyAccess";

fn room() -> Roles {
    let settings = Settings { boundary_arn: None, ..(*settings()).clone() };
    Roles { settings: Arc::new(settings) }
}

fn bounded() -> Roles {
    let boundary_arn = Some("arn:aws:iam::1:policy/boundary".to_owned());
    Roles { settings: Arc::new(Settings { boundary_arn, ..(*settings()).clone() }) }
}

fn name() -> Name {
    Name::within("shop", "s3")
}

fn role(spec: &Value) -> Value {
    let mut whole = json!({"serviceAccountName": "s3"});
    interlock_kernel::testing::merge(&mut whole, spec);
    json!({"kind": "Role", "spec": whole, "metadata": {"namespace": "shop", "name": "s3",
        "uid": "u-2", "generation": 1}})
}

fn policy(status: &str) -> Value {
    json!({"kind": "Policy", "metadata": {"namespace": "shop", "name": "s3", "uid": "u-1"},
        "status": {"arn": POLICY_ARN, "conditions": [{"type": "Ready", "status": status,
            "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

fn namespace() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "n-1"}})
}

struct World {
    room: Roles,
    hub: TestServers,
    cloud: FakeCloud,
}

impl World {
    fn with(room: Roles, objects: Vec<Value>) -> World {
        let hub = TestServers::of(&room).with(objects).with([namespace()]);
        let mut cloud = FakeCloud::new();
        let held =
            HeldPolicy { path: "/interlock/fleet/".to_owned(), id: 1, ..HeldPolicy::default() };
        cloud.account.policies.insert("p".to_owned(), held);
        cloud.account.made = 1;
        World { room, hub, cloud }
    }

    fn ready(spec: &Value) -> World {
        let mut world = World::with(room(), vec![role(spec), policy("True")]);
        world.settle();
        world.quiet();
        world.cloud.take();
        world
    }

    fn settle(&mut self) -> Run<Cloud> {
        self.hub.settle(&self.room, &mut self.cloud, SUBJECT)
    }

    fn quiet(&mut self) {
        self.cloud.pass(61);
        self.settle();
    }

    fn json(&self) -> Value {
        self.hub.json(Place::HUB, &ROLE, &name())
    }

    fn ready_reason(&self) -> String {
        let object = self.json();
        let ready = condition(&object, "Ready");
        format!("{} {}", ready["status"], ready["reason"]).replace('"', "")
    }

    fn change(&mut self, patch: &Value) {
        self.hub.change(Place::HUB, &ROLE, &name(), patch);
    }

    fn delete(&mut self) {
        self.hub.delete(Place::HUB, &ROLE, &name());
    }

    fn held(&mut self) -> &mut HeldRole {
        self.cloud.account.roles.values_mut().next().expect("a role")
    }
}

#[test]
fn a_role_is_created_for_one_subject_and_gets_the_policy_of_its_name() {
    let mut world = World::with(bounded(), vec![role(&json!({})), policy("True")]);
    let run = world.settle();
    assert_eq!(world.cloud.take(), ["CreateRole", "AttachRolePolicy"]);
    // Finalizer, mark with the record of the attachment, the status.
    assert_eq!(run.writes.len(), 3);
    // Before each call, and after the last one.
    assert_eq!(world.cloud.take_reads(), 3);
    let held = world.held().clone();
    let provider = "arn:aws:iam::1:oidc-provider/issuer.example";
    let subject = document::only_subject(&held.trust, provider);
    assert_eq!(subject.as_deref(), Some("system:serviceaccount:shop:s3"));
    assert!(held.trust.contains("issuer.example:aud"));
    assert_eq!(held.boundary.as_deref(), Some("arn:aws:iam::1:policy/boundary"));
    assert_eq!(held.tags["interlock.dev/owner-uid"], "u-2");
    assert_eq!(world.ready_reason(), "True AsDeclared");
    assert_eq!(world.json()["status"]["attached"], json!([POLICY_ARN]));
    world.quiet();
    let run = world.settle();
    assert!(run.writes.is_empty() && run.actions.is_empty());
}

#[test]
fn a_role_that_is_deleted_is_read_before_each_call_and_once_when_nothing_is_late() {
    let mut world = World::with(bounded(), vec![role(&json!({})), policy("True")]);
    world.settle();
    world.quiet();
    world.held().inline.insert("a".to_owned(), "{}".to_owned());
    world.held().inline.insert("interlock-fence-1".to_owned(), "{}".to_owned());
    world.held().inline.insert("z".to_owned(), "{}".to_owned());
    world.cloud.take();
    world.cloud.take_reads();
    world.delete();
    world.settle();
    // Nobody knows of inline policies that others made until the cloud refuses to delete the role.
    let inline = ["DeleteRolePolicy"; 2];
    let calls = [&["DetachRolePolicy", "DeleteRole"], &inline[..]].concat();
    assert_eq!(world.cloud.take(), calls);
    // Once more for the status: the fence waits until nothing is late.
    assert_eq!(world.cloud.take_reads(), 6);
    world.cloud.pass(61);
    world.settle();
    assert_eq!(world.cloud.take(), ["DeleteRolePolicy", "DeleteRole"]);
    assert_eq!(world.cloud.take_reads(), 2);
    world.cloud.pass(61);
    world.settle();
    assert_eq!(world.cloud.take_reads(), 1);
    assert!(world.hub.get(Place::HUB, &ROLE, &name()).is_none());
}

#[test]
fn a_role_waits_for_its_policy_without_reading_the_cloud() {
    let mut world = World::with(room(), vec![role(&json!({})), policy("False")]);
    world.settle();
    assert_eq!(world.cloud.take(), ["CreateRole"]);
    assert_eq!(world.ready_reason(), "False WaitingForPolicy");
    assert_eq!(world.cloud.take_reads(), 1);
    let policy_name = Name::within("shop", "s3");
    let ready = policy("True")["status"].clone();
    world.hub.change(Place::HUB, &POLICY, &policy_name, &json!({"status": ready}));
    let run = world.settle();
    // What is attached is recorded before the cloud is read: before the call, and after it.
    assert_eq!((world.cloud.take(), world.cloud.take_reads()), (vec!["AttachRolePolicy"], 2));
    assert_eq!(run.writes.len(), 2);
    assert_eq!(world.ready_reason(), "True AsDeclared");
    assert_eq!(world.json()["status"]["attached"], json!([POLICY_ARN]));
}

#[test]
fn a_role_that_waits_for_its_policy_for_long_is_read() {
    let mut world = World::with(room(), vec![role(&json!({})), policy("False")]);
    world.settle();
    world.cloud.take_reads();
    world.quiet();
    assert_eq!(world.cloud.take_reads(), 0, "the answer to CreateRole is remembered");
    world.cloud.pass(600);
    world.settle();
    assert!(world.cloud.take_reads() > 0);
    assert!(world.json()["status"]["arn"].is_string());
    assert_eq!(world.json()["status"]["mark"], Value::Null);
}

#[test]
fn a_role_that_was_there_before_is_read_before_anything_is_recorded() {
    let mut world = World::ready(&json!({}));
    world.held().attached.insert(OTHER_ARN.to_owned());
    world.change(&json!({"spec": {"policyARNs": [OTHER_ARN]}, "metadata": {"generation": 2}}));
    world.settle();
    assert!(world.cloud.take().is_empty());
    assert_eq!(world.json()["status"]["attached"], json!([POLICY_ARN]), "somebody else's");
}

#[test]
fn of_a_role_whose_fence_may_be_there_all_is_read_before_each_call() {
    let mut world = World::ready(&json!({}));
    let before = "2026-01-01T00:00:00Z";
    world.change(&json!({"status": {"fence": {"epoch": 1, "before": before}}}));
    world.held().inline.insert("interlock-fence-1".to_owned(), "{}".to_owned());
    world.delete();
    world.settle();
    assert_eq!(world.cloud.take(), ["DetachRolePolicy"]);
    world.quiet();
    assert_eq!(world.cloud.take(), ["DeleteRolePolicy", "DeleteRole"]);
}

#[test]
fn a_fence_stays_while_reads_may_not_show_what_is_attached() {
    let mut world = World::ready(&json!({}));
    let before = "2026-01-01T00:00:00Z";
    world.change(&json!({"status": {"fence": {"epoch": 1, "before": before}}}));
    world.held().inline.insert("interlock-fence-1".to_owned(), "{}".to_owned());
    world.quiet();
    // The policy is attached again, and a read does not show it.
    world.held().attached.clear();
    world.settle();
    assert_eq!(world.cloud.take(), ["AttachRolePolicy"]);
    let attached = std::mem::take(&mut world.held().attached);
    world.settle();
    assert!(world.cloud.take().is_empty(), "what is done is not done again because reads lag");
    world.delete();
    world.settle();
    assert!(world.cloud.take().is_empty(), "a session that the fence denies would have the policy");
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    world.held().attached = attached;
    world.quiet();
    assert_eq!(world.cloud.take(), ["DetachRolePolicy"]);
}

#[test]
fn drift_of_trust_boundary_tags_and_attachment_is_repaired() {
    let mut world = World::with(bounded(), vec![role(&json!({})), policy("True")]);
    world.settle();
    world.quiet();
    world.cloud.take();
    let held = world.held();
    held.trust = document::closed("Epoch0").to_string();
    held.boundary = None;
    held.attached.clear();
    held.tags.remove("interlock.dev/fleet");
    let run = world.settle();
    assert_eq!(run.events.iter().filter(|event| event.reason == "DriftRepaired").count(), 4);
    let calls =
        ["TagRole", "UpdateAssumeRolePolicy", "PutRolePermissionsBoundary", "AttachRolePolicy"];
    assert_eq!(world.cloud.take(), calls);
    assert_eq!(world.ready_reason(), "True AsDeclared");
}

#[test]
fn attachments_of_others_are_left_alone_and_own_ones_are_detached() {
    let mut world = World::ready(&json!({"policyARNs": [OTHER_ARN]}));
    let foreign = "arn:aws:iam::aws:policy/SomebodyElses".to_owned();
    world.held().attached.insert(foreign.clone());
    world.change(&json!({"spec": {"policyARNs": null}}));
    world.settle();
    assert_eq!(world.cloud.take(), ["DetachRolePolicy"]);
    world.quiet();
    assert_eq!(world.json()["status"]["attached"], json!([POLICY_ARN]));
    assert!(world.held().attached.contains(&foreign));
}

#[test]
fn a_deleted_role_is_emptied_first() {
    let mut world = World::ready(&json!({}));
    world.held().inline.insert("hand".to_owned(), "{}".to_owned());
    world.held().profiles.insert("web".to_owned());
    world.delete();
    world.settle();
    assert_eq!(world.ready_reason(), "False AttachedElsewhere");
    world.held().profiles.clear();
    world.settle();
    let calls = ["DetachRolePolicy", "DeleteRole", "DeleteRolePolicy", "DeleteRole"];
    assert_eq!(world.cloud.take(), calls);
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    world.quiet();
    assert_eq!(world.json(), Value::Null);
}

#[test]
fn a_foreign_role_is_a_conflict_and_left_alone() {
    let mut world = World::ready(&json!({}));
    world.held().tags.insert("interlock.dev/owner-uid".to_owned(), "another".to_owned());
    let before = world.cloud.account.clone();
    world.settle();
    assert_eq!(world.ready_reason(), "False Conflict");
    world.delete();
    world.settle();
    assert_eq!((world.json(), &world.cloud.account), (Value::Null, &before));
}

#[test]
fn a_role_of_irsa_operator_is_adopted_if_it_trusts_this_account_and_no_other() {
    for (subject, is_adopted) in [("s3", true), ("other", false)] {
        let objects = vec![role(&json!({"adopt": "Legacy"})), policy("True")];
        let mut world = World::with(room(), objects);
        let provider = "arn:aws:iam::1:oidc-provider/issuer.example";
        let subject = format!("system:serviceaccount:shop:{subject}");
        let trusted = document::Trusted { provider, subject: &subject, audience: "sts" };
        let trust = trusted.document("x").to_string();
        let legacy = HeldRole { path: "/".to_owned(), id: 9, trust, ..HeldRole::default() };
        world.cloud.account.roles.insert("irsa-op-old-shop-s3".to_owned(), legacy);
        world.settle();
        let tagged = world.cloud.account.roles["irsa-op-old-shop-s3"].tags.len();
        assert_eq!(
            (tagged, world.cloud.account.roles.len()),
            if is_adopted { (3, 1) } else { (0, 2) }
        );
    }
}

#[test]
fn a_late_call_on_the_trust_is_waited_out() {
    let mut world = World::ready(&json!({}));
    world.cloud.calls = Calls::Unheard;
    world.held().trust = document::closed("Epoch0").to_string();
    world.settle();
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy"]);
    // Another trust is declared while the first call may still land.
    world.change(&json!({"spec": {"serviceAccountName": "other"}}));
    world.settle();
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    assert!(world.cloud.take().is_empty());
    world.quiet();
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy"]);
}

#[test]
fn a_role_of_a_placed_namespace_waits_for_its_grant() {
    let mut world = World::with(room(), vec![role(&json!({}))]);
    let placed = json!({"metadata": {"labels": {"interlock.dev/placed": "true"}}});
    world.hub.change(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"), &placed);
    world.settle();
    assert_eq!(world.ready_reason(), "False IssuerNotReady");
    assert!(world.cloud.account.roles.is_empty());
}

#[test]
fn a_boundary_other_than_the_operators_and_a_missing_provider_are_refused() {
    let spec = json!({"permissionsBoundariesPolicyARN": "arn:aws:iam::1:policy/mine"});
    let mut world = World::with(bounded(), vec![role(&spec)]);
    world.settle();
    assert_eq!(world.ready_reason(), "False Invalid");
    let settings = Settings { provider_arn: None, ..(*settings()).clone() };
    let unset = Roles { settings: Arc::new(settings) };
    let mut world = World::with(unset, vec![role(&json!({}))]);
    world.settle();
    assert_eq!(world.ready_reason(), "False Invalid");
    assert!(world.cloud.take().is_empty());
}

#[test]
fn broken_objects_do_not_break_it() {
    let world = World::ready(&json!({}));
    survives(&room(), &world.cloud, &[world.json(), policy("True"), namespace()]);
}

#[test]
fn a_role_is_not_compared_with_the_cloud_because_its_policy_or_its_grant_says_more() {
    let object = |value: Value| -> Object { Arc::new(serde_json::from_value(value).unwrap()) };
    let policy = |ready: &str, generation: i64, reason: &str| {
        object(json!({"apiVersion": "v1", "kind": "Policy",
            "metadata": {"name": "s3", "uid": "u", "generation": generation},
            "status": {"arn": POLICY_ARN, "observedGeneration": 1, "reason": reason,
                "conditions": [{"type": "Ready", "status": ready, "reason": "x", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
    };
    let ready = policy("True", 1, "a");
    assert!(observe::is_same_policy(&ready, &policy("True", 1, "b")));
    // A new document changes nothing for the role.
    assert!(observe::is_same_policy(&ready, &policy("True", 2, "a")));
    assert!(!observe::is_same_policy(&ready, &policy("False", 1, "a")));
    let mut deleting = (*ready).clone();
    deleting.metadata.uid = Some("another".to_owned());
    assert!(!observe::is_same_policy(&ready, &deleting));
    let grant = |status: &Value| {
        let mut whole = json!({"phase": "Granted", "epoch": 2, "owner": {"name": "a", "uid": "a"}});
        interlock_kernel::testing::merge(&mut whole, status);
        object(json!({"apiVersion": "v1", "kind": "Grant", "metadata": {"name": "g", "uid": "g"},
            "spec": {"namespace": {"name": "shop", "uid": "n"}}, "status": whole}))
    };
    let before = grant(&json!({}));
    assert!(observe::is_same_grant(
        &before,
        &grant(&json!({"phaseSince": "2026-01-01T00:00:00Z"}))
    ));
    // The role trusts an owner that leaves.
    for phase in ["Revoking", "Released", "Deleting"] {
        assert!(observe::is_same_grant(&before, &grant(&json!({"phase": phase, "owner": null}))));
    }
    for status in [
        json!({"phase": "Fenced"}),
        json!({"phase": "Revoking", "fencedEpoch": 1}),
        json!({"epoch": 3}),
        json!({"owner": {"name": "b", "uid": "b"}}),
        json!({"fencedEpoch": 1}),
        json!({"rights": [{"uid": "r", "name": "r", "epoch": 2, "state": "Ready"}]}),
    ] {
        assert!(!observe::is_same_grant(&before, &grant(&status)), "{status}");
    }
}
