//! Each row of what a Policy gets.

use super::*;
use crate::testing::{Calls, FakeCloud, settings};
use crate::world::account::{HeldPolicy, arn};
use interlock_kernel::testing::{Machine, Run, TestServers, condition, survives};
use interlock_kernel::{LiveReads, MOST_LIVE_READS, Name, Step};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const SUBJECT: &str = "shop/s3";

fn room() -> Policies {
    Policies { settings: settings() }
}

fn name() -> Name {
    Name::within("shop", "s3")
}

fn statement(action: &str) -> Value {
    json!([{"resource": "arn:aws:s3:::bucket", "action": [action]}])
}

fn policy(spec: &Value) -> Value {
    let mut whole = json!({"statement": statement("s3:Get*")});
    interlock_kernel::testing::merge(&mut whole, spec);
    json!({"kind": "Policy", "spec": whole, "metadata": {"namespace": "shop", "name": "s3",
        "uid": "u-1", "generation": 1}})
}

struct World {
    hub: TestServers,
    cloud: FakeCloud,
}

impl World {
    fn with(spec: &Value) -> World {
        World { hub: TestServers::of(&room()).with([policy(spec)]), cloud: FakeCloud::new() }
    }

    fn ready(spec: &Value) -> World {
        let mut world = World::with(spec);
        let made = world.settle().events;
        assert!(made.iter().all(|event| event.reason != "DriftRepaired"), "{made:?}");
        world.quiet();
        world.cloud.take();
        world
    }

    fn settle(&mut self) -> Run<Cloud> {
        self.hub.settle(&room(), &mut self.cloud, SUBJECT)
    }

    fn quiet(&mut self) {
        self.cloud.pass(61);
        self.settle();
    }

    fn json(&self) -> Value {
        self.hub.json(Place::HUB, &POLICY, &name())
    }

    fn ready_reason(&self) -> String {
        let object = self.json();
        let ready = condition(&object, "Ready");
        format!("{} {}", ready["status"], ready["reason"]).replace('"', "")
    }

    fn change(&mut self, patch: &Value) {
        self.hub.change(Place::HUB, &POLICY, &name(), patch);
    }

    fn delete(&mut self) {
        self.hub.delete(Place::HUB, &POLICY, &name());
    }

    /// Who has a turn when a Role of its name changes.
    fn woken_by_its_role(&mut self) -> Vec<Subject> {
        let metadata = json!({"namespace": "shop", "name": "s3", "uid": "u-2"});
        self.hub.put(Place::HUB, json!({"kind": "Role", "metadata": metadata}));
        let role = self.hub.get(Place::HUB, &ROLE, &name()).expect("a Role");
        room().subjects(&room().watches()[1], &role, &self.hub.view())
    }

    fn held(&mut self) -> &mut HeldPolicy {
        self.cloud.account.policies.values_mut().next().expect("a policy")
    }
}

#[test]
fn a_policy_is_created_with_its_tags_after_finalizer_and_mark() {
    let mut world = World::with(&json!({}));
    let run = world.settle();
    assert_eq!(world.cloud.take(), ["CreatePolicy"]);
    let status = &world.json()["status"];
    assert_eq!(world.ready_reason(), "True AsDeclared");
    assert_eq!(
        (&status["condition"], &status["mark"]["instance"]),
        (&json!("created"), &json!("me"))
    );
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(world.held().tags["interlock.dev/owner-uid"], "u-1");
    // Finalizer, mark, status: the mark is removed once nothing can be under way.
    assert_eq!((run.writes.len(), run.waits_seconds), (3, Some(60)));
    // The account is read before the call and after it, and not when the mark is removed.
    assert_eq!(world.cloud.take_reads(), 2);
    world.cloud.pass(61);
    let step = world.hub.step(&room(), &world.cloud, SUBJECT);
    assert!(matches!(step, Step::Act(effect) if effect.then >= Some(Duration::from_secs(540))));
    assert_eq!(world.cloud.take_reads(), 0);
    world.settle();
    assert_eq!(world.json()["status"]["mark"], Value::Null);
    assert_eq!(world.cloud.take_reads(), 1);
    let run = world.settle();
    assert_eq!(world.cloud.take_reads(), 1);
    assert!(run.writes.is_empty() && run.actions.is_empty() && run.waits_seconds >= Some(540));
}

#[test]
fn a_changed_document_is_a_new_version_and_the_limit_is_kept() {
    let mut world = World::ready(&json!({}));
    for number in 0..7 {
        let statement = statement(&format!("s3:Put{number}"));
        world.change(
            &json!({"spec": {"statement": statement}, "metadata": {"generation": number + 2}}),
        );
        world.settle();
        world.quiet();
        let expected: &[&str] = match number {
            0..4 => &["CreatePolicyVersion"],
            _ => &["DeletePolicyVersion", "CreatePolicyVersion"],
        };
        assert_eq!(world.cloud.take(), expected, "{number}");
        assert_eq!(world.ready_reason(), "True AsDeclared");
        assert_eq!(world.json()["status"]["observedGeneration"], number + 2);
    }
    assert_eq!(world.held().versions.len(), 5);
}

#[test]
fn an_older_version_that_is_as_declared_becomes_the_default_again() {
    let mut world = World::ready(&json!({}));
    for action in ["s3:Put*", "s3:Get*"] {
        world.change(&json!({"spec": {"statement": statement(action)}}));
        world.settle();
    }
    assert_eq!(world.cloud.take(), ["CreatePolicyVersion", "SetDefaultPolicyVersion"]);
    assert_eq!(world.held().default, 1);
}

#[test]
fn drift_of_document_and_tags_is_repaired_and_a_policy_that_is_gone_is_made_again() {
    let mut world = World::ready(&json!({}));
    let held = world.held();
    held.versions.insert(2, r#"{"Statement": []}"#.to_owned());
    held.default = 2;
    let run = world.settle();
    assert_eq!(world.cloud.take(), ["SetDefaultPolicyVersion"]);
    assert!(run.events.iter().all(|event| event.reason == "DriftRepaired"), "{:?}", run.events);
    world.quiet();
    // The tag is gone, and the id in the status proves whose it is.
    world.held().tags.clear();
    world.settle();
    assert_eq!(world.cloud.take(), ["TagPolicy"]);
    world.quiet();
    world.cloud.account.policies.clear();
    world.settle();
    assert_eq!(world.cloud.take(), ["CreatePolicy"]);
}

#[test]
fn a_foreign_policy_is_a_conflict_and_left_alone() {
    let mut world = World::ready(&json!({}));
    world.held().tags.insert("interlock.dev/owner-uid".to_owned(), "another".to_owned());
    let before = world.cloud.account.clone();
    world.settle();
    assert_eq!(world.ready_reason(), "False Conflict");
    assert_eq!(world.json()["status"]["condition"], "failed");
    let object = world.json();
    assert_eq!(condition(&object, "Stalled")["next"], "set spec.adopt to SameName to take it over");
    world.delete();
    world.settle();
    world.quiet();
    assert_eq!(world.json(), Value::Null);
    assert_eq!(world.cloud.account, before);
}

#[test]
fn a_foreign_policy_is_adopted_by_explicit_choice() {
    let mut world = World::ready(&json!({"adopt": "SameName"}));
    world.held().tags.insert("interlock.dev/owner-uid".to_owned(), "another".to_owned());
    world.settle();
    assert_eq!(world.cloud.take(), ["TagPolicy"]);
    assert_eq!(world.ready_reason(), "True AsDeclared");
}

#[test]
fn a_policy_of_irsa_operator_is_adopted_where_it_is() {
    let mut world = World::with(&json!({"adopt": "Legacy"}));
    let (path, held) = ("/irsa-operator/old/shop/s3/policy/", "irsa-op-old-shop-s3");
    let legacy = HeldPolicy {
        path: path.to_owned(),
        id: 7,
        versions: BTreeMap::from([(1, r#"{"Version": "2012-10-17", "Statement": []}"#.to_owned())]),
        default: 1,
        ..HeldPolicy::default()
    };
    world.cloud.account.policies.insert(held.to_owned(), legacy);
    world.settle();
    assert_eq!(world.cloud.take(), ["TagPolicy", "CreatePolicyVersion"]);
    assert_eq!(world.json()["status"]["arn"], arn("policy", path, held));
    world.quiet();
    world.delete();
    world.settle();
    world.quiet();
    assert!(world.cloud.account.policies.is_empty() && world.json().is_null());
}

#[test]
fn an_arn_in_the_spec_that_is_not_ours_is_ignored() {
    let mut world = World::with(&json!({"arn": "arn:aws:iam::1:policy/admin"}));
    let admin = HeldPolicy { path: "/".to_owned(), id: 9, ..HeldPolicy::default() };
    world.cloud.account.policies.insert("admin".to_owned(), admin.clone());
    world.settle();
    let object = world.json();
    assert_eq!(condition(&object, "SpecArnIgnored")["status"], "True");
    assert_eq!(world.ready_reason(), "True AsDeclared");
    assert_eq!(world.cloud.account.policies["admin"], admin);
}

#[test]
fn a_cache_that_is_behind_and_a_policy_at_another_place_cost_few_rounds_of_live_reads() {
    let cached = World::ready(&json!({}));
    let mut now = World::ready(&json!({}));
    // Meanwhile somebody has made the cloud policy anew at another place, and another process has begun.
    let moved = "arn:aws:iam::1:policy/moved";
    let mark = json!({"instance": "me", "quietAt": 0});
    let status = json!({"policyId": "another", "documentHash": "another", "mark": mark});
    now.change(&json!({"spec": {"arn": moved}, "status": status}));
    let held = std::mem::take(&mut now.cloud.account.policies);
    let held = held
        .into_values()
        .map(|it| ("moved".to_owned(), HeldPolicy { path: "/".to_owned(), ..it }));
    now.cloud.account.policies.extend(held);
    let mut live_reads = LiveReads::default();
    let mut rounds = 0;
    while let Step::LiveRead { reads, .. } =
        cached.hub.view().step_with(&room(), SUBJECT, &live_reads)
    {
        rounds += 1;
        for read in reads {
            now.hub.view().read_live(read, |question| now.cloud.ask(question), &mut live_reads);
        }
    }
    assert_eq!(rounds, 4);
    assert!(rounds + 2 <= MOST_LIVE_READS);
}

#[test]
fn a_deleted_policy_is_deleted_in_order_and_stays_until_nothing_can_land() {
    let mut world = World::ready(&json!({}));
    world.change(&json!({"spec": {"statement": statement("s3:Put*")}}));
    world.settle();
    world.quiet();
    world.cloud.take();
    world.delete();
    world.settle();
    assert_eq!(world.cloud.take(), ["DeletePolicyVersion", "DeletePolicy"]);
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    world.quiet();
    assert_eq!(world.json(), Value::Null);
}

#[test]
fn a_policy_that_is_attached_is_waited_for() {
    let mut world = World::ready(&json!({}));
    let arn = world.json()["status"]["arn"].as_str().expect("an ARN").to_owned();
    let role = crate::world::account::HeldRole {
        attached: [arn].into(),
        ..crate::world::account::HeldRole::default()
    };
    world.cloud.account.roles.insert("ops".to_owned(), role);
    world.delete();
    world.settle();
    assert_eq!(world.ready_reason(), "False AttachedElsewhere");
    assert!(world.json()["status"]["reason"].as_str().is_some_and(|it| it.contains("ops")));
    world.cloud.account.roles.clear();
    world.settle();
    world.quiet();
    assert_eq!(world.json(), Value::Null);
}

#[test]
fn a_policy_waits_for_its_own_role_without_asking_for_a_person() {
    let mut world = World::ready(&json!({}));
    let arn = world.json()["status"]["arn"].as_str().expect("an ARN").to_owned();
    let cloud_name = arn.rsplit_once('/').expect("a name").1.to_owned();
    let attached = [arn].into();
    let role = crate::world::account::HeldRole { attached, ..Default::default() };
    world.cloud.account.roles.insert(cloud_name, role);
    world.delete();
    world.settle();
    assert_eq!(world.ready_reason(), "False WaitingForRole");
    assert_eq!(world.woken_by_its_role(), [Subject::from(SUBJECT)]);
}

#[test]
fn a_policy_that_stays_is_not_compared_because_its_role_changes() {
    let mut world = World::ready(&json!({}));
    assert!(world.woken_by_its_role().is_empty());
    world.delete();
    assert_eq!(world.woken_by_its_role(), [Subject::from(SUBJECT)]);
}

#[test]
fn a_role_that_attaches_more_has_let_go_of_nothing() {
    let with = |metadata: Value, attached: &[&str]| -> Object {
        let role = json!({"apiVersion": "v1", "kind": "Role", "metadata": metadata,
            "status": {"attached": attached}});
        Arc::new(serde_json::from_value(role).expect("a Role"))
    };
    let role = |attached: &[&str]| with(json!({"name": "s3", "uid": "u"}), attached);
    assert!(observe::is_same_role(&role(&["a"]), &role(&["a", "b"])));
    assert!(!observe::is_same_role(&role(&["a", "b"]), &role(&["b"])));
    let time = "2026-01-01T00:00:00Z";
    let deleting = json!({"name": "s3", "uid": "u", "deletionTimestamp": time});
    assert!(!observe::is_same_role(&role(&["a"]), &with(deleting, &["a"])));
}

#[test]
fn the_end_of_a_mark_is_no_reason_to_read_the_cloud_again() {
    let policy = |status: Value, labels: Value| -> Object {
        let policy = json!({"apiVersion": "v1", "kind": "Policy", "status": status,
            "metadata": {"name": "s3", "uid": "u", "labels": labels}});
        Arc::new(serde_json::from_value(policy).expect("a Policy"))
    };
    let marked = |settled: bool| {
        let mark = json!({"instance": "me", "quietAt": 0, "settled": settled});
        policy(json!({"arn": "a", "mark": mark}), json!({}))
    };
    let unmarked = policy(json!({"arn": "a"}), json!({}));
    assert!(is_only_unmarked(&marked(true), &unmarked));
    assert!(!is_only_unmarked(&marked(false), &unmarked), "nobody has compared it");
    assert!(!is_only_unmarked(&marked(true), &marked(true)));
    assert!(!is_only_unmarked(&marked(true), &policy(json!({"arn": "b"}), json!({}))));
    assert!(!is_only_unmarked(&marked(true), &policy(json!({"arn": "a"}), json!({"x": "y"}))));
}

#[test]
fn retain_lets_it_go_even_if_the_cloud_is_down() {
    let mut world = World::ready(&json!({"deletionPolicy": "Retain"}));
    world.cloud.failure = Some(crate::outside::Failure::Unavailable { why: "down".to_owned() });
    world.delete();
    let run = world.settle();
    assert_eq!(world.json(), Value::Null);
    assert_eq!(run.events[0].reason, "Retained");
    assert_eq!(world.cloud.account.policies.len(), 1);
}

#[test]
fn what_the_cloud_does_not_say_is_reported() {
    use crate::outside::Failure;
    let forbidden = Failure::Forbidden { right: "iam:GetPolicy".to_owned() };
    for (failure, reason) in [
        (Failure::Unavailable { why: "down".to_owned() }, "False Unavailable"),
        (Failure::Throttled { after: 3 }, "False Throttled"),
        (forbidden, "False Forbidden"),
    ] {
        let mut world = World::with(&json!({}));
        world.cloud.failure = Some(failure);
        world.settle();
        assert_eq!(world.ready_reason(), reason);
        assert!(world.cloud.take().is_empty());
    }
}

#[test]
fn what_the_cloud_refuses_is_reported_and_not_repeated_at_once() {
    use crate::outside::Code;
    for (code, reason) in [
        (Code::AccessDenied, "False Forbidden"),
        (Code::LimitExceeded, "False LimitExceeded"),
        (Code::MalformedPolicyDocument, "False Invalid"),
        (Code::Throttling, "False Throttled"),
        (Code::EntityAlreadyExists, "False Progressing"),
    ] {
        let mut world = World::with(&json!({}));
        world.cloud.calls = Calls::Refused(code);
        world.settle();
        assert_eq!((world.ready_reason().as_str(), world.cloud.take().len()), (reason, 1));
    }
}

#[test]
fn a_name_that_is_taken_under_another_path_is_a_conflict_in_the_end() {
    let mut world = World::with(&json!({}));
    world.cloud.calls = Calls::Refused(crate::outside::Code::EntityAlreadyExists);
    world.settle();
    world.quiet();
    assert_eq!(world.ready_reason(), "False Conflict");
}

#[test]
fn another_process_waits_until_late_calls_are_over() {
    let mut world = World::with(&json!({}));
    world.cloud.calls = Calls::Unheard;
    world.settle();
    world.cloud.restart();
    world.cloud.account.policies.clear();
    world.settle();
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    assert_eq!(world.json()["status"]["mark"], json!({"instance": "me-again", "quietAt": 65}));
    world.cloud.take();
    world.cloud.pass(60);
    world.settle();
    assert_eq!(world.cloud.take(), ["CreatePolicy"]);
}

#[test]
fn a_spec_that_makes_no_sense_is_reported_and_nothing_is_made() {
    for statement in [
        json!([]),
        json!([{"resource": "bucket", "action": ["s3:Get*"]}]),
        json!([{"resource": "arn:aws:s3:::a", "action": []}]),
        json!([{"resource": "arn:aws:s3:::a", "action": [""]}]),
        json!([{"resource": format!("arn:aws:s3:::{}", "a".repeat(6200)), "action": ["s3:*"]}]),
    ] {
        let mut world = World::with(&json!({"statement": statement}));
        world.settle();
        assert_eq!(world.ready_reason(), "False Invalid", "{statement}");
        assert!(world.cloud.take().is_empty());
    }
}

#[test]
fn broken_objects_do_not_break_it() {
    let mut world = World::ready(&json!({}));
    world.change(&json!({"status": {"mark": {"instance": "x", "quietAt": 3}}}));
    survives(&room(), &world.cloud, &[world.json()]);
}
