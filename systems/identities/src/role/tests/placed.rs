//! Each row of what the Role of a placed namespace gets.

use super::*;
use crate::providers::Providers;
use interlock_api::identities::Fence;
use interlock_kernel::testing::Run;

const ISSUERS: [(&str, &str); 2] =
    [("east", "https://east.example/issuers/1"), ("west", "https://west.example/issuers/2")];

fn grant_address() -> Name {
    Name::cluster_wide("shop-n1")
}

fn grant(status: &Value) -> Value {
    json!({"kind": "Grant", "metadata": {"name": "shop-n1", "uid": "g-1"}, "status": status,
        "spec": {"namespace": {"name": "shop", "uid": "n-1"}}})
}

fn cluster(name: &str, issuer: &str, is_ready: &str) -> Value {
    let (reason, message) = match is_ready {
        "True" => ("ProviderFound", format!("the cloud trusts the issuer {issuer}")),
        _ => ("x", "not yet".to_owned()),
    };
    json!({"kind": "WorkloadCluster", "metadata": {"name": name, "uid": format!("uid-{name}")},
        "status": {"issuer": issuer, "conditions": [{"type": "IssuerReady", "status": is_ready,
            "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

fn owned(phase: &str, epoch: i64, owner: &str) -> Value {
    json!({"phase": phase, "epoch": epoch,
        "owner": {"name": owner, "uid": format!("uid-{owner}")}})
}

fn placed(status: &Value) -> World {
    let room = room();
    let mut world = World::with(room, vec![role(&json!({})), policy("True")]);
    world.hub.show(&Providers { settings: settings() });
    world.hub.put(Place::HUB, grant(status));
    for (name, issuer) in ISSUERS {
        world.hub.put(Place::HUB, cluster(name, issuer, "True"));
    }
    world
}

impl World {
    fn grants(&mut self, status: &Value) -> Run<Cloud> {
        let patch = json!({"status": status});
        self.hub.change(Place::HUB, &GRANT, &grant_address(), &patch);
        self.settle()
    }

    fn entry(&self) -> (i64, String) {
        let grant = self.hub.json(Place::HUB, &GRANT, &grant_address());
        let entry = &grant["status"]["rights"][0];
        let epoch = entry["epoch"].as_i64().unwrap_or(-1);
        (epoch, entry["state"].as_str().unwrap_or("none").to_owned())
    }

    fn fence(&self) -> Option<Fence> {
        serde_json::from_value(self.json()["status"]["fence"].clone()).expect("a fence")
    }

    fn trusts(&mut self) -> (String, Option<String>) {
        let trust = self.held().trust.clone();
        let document: Value = serde_json::from_str(&trust).expect("a document");
        let sid = document["Statement"][0]["Sid"].as_str().expect("a name").to_owned();
        let provider = document["Statement"][0]["Principal"]["Federated"].as_str();
        (sid, provider.map(str::to_owned))
    }

    /// Past the time of a fence that was just recorded.
    fn past_the_fence(&mut self) {
        self.cloud.pass(61);
        self.settle();
    }
}

fn provider(number: usize) -> Option<String> {
    let host = ISSUERS[number].1.strip_prefix("https://").expect("a URL");
    Some(format!("arn:aws:iam::1:oidc-provider/{host}"))
}

#[test]
fn a_role_is_listed_before_the_first_call_and_trusts_the_owner_of_the_epoch() {
    let mut world = placed(&owned("Granted", 1, "east"));
    let run = world.settle();
    assert_eq!(world.cloud.take(), ["CreateRole", "UpdateAssumeRolePolicy", "AttachRolePolicy"]);
    let listed = run.writes.iter().position(|write| write.address().kind == GRANT);
    assert_eq!(listed, Some(1), "after the finalizer, before the mark: {:#?}", run.writes);
    assert_eq!(world.entry(), (1, "Ready".to_owned()));
    assert_eq!(world.trusts(), ("Epoch1".to_owned(), provider(0)));
    let trust = world.held().trust.clone();
    assert!(trust.contains("system:serviceaccount:shop-n1:s3"), "{trust}");
    assert!(trust.contains("east.example/issuers/1:aud"), "{trust}");
    assert_eq!(world.ready_reason(), "True AsDeclared");
    assert!(run.events.iter().any(|event| event.reason == "RightsMoved"));
}

#[test]
fn in_a_planned_move_the_trust_stays_until_the_next_owner_is_granted() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.quiet();
    world.cloud.take();
    for phase in ["Revoking", "Released"] {
        world.grants(&json!({"phase": phase}));
        assert!(world.cloud.take().is_empty());
        assert_eq!(world.trusts(), ("Epoch1".to_owned(), provider(0)));
        assert_eq!(world.ready_reason(), "True AsDeclared");
    }
    world.cloud.take_reads();
    let run = world.grants(&owned("Granted", 2, "west"));
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy"]);
    // Before the call, after it, and once the Grant knows.
    assert_eq!(world.cloud.take_reads(), 3);
    // The mark, the entry, and that the cloud is as declared.
    assert_eq!(run.writes.len(), 3);
    assert_eq!(world.entry(), (2, "Ready".to_owned()));
    assert_eq!(world.trusts(), ("Epoch2".to_owned(), provider(1)));
}

#[test]
fn rights_wait_for_an_issuer_that_the_cloud_knows() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.hub.put(Place::HUB, cluster("east", ISSUERS[0].1, "False"));
    let run = world.settle();
    assert_eq!(world.cloud.take(), ["CreateRole", "AttachRolePolicy"]);
    assert_eq!(world.trusts(), ("Epoch1".to_owned(), None));
    assert_eq!(world.entry(), (1, "Waiting".to_owned()));
    assert_eq!(world.ready_reason(), "False IssuerNotReady");
    assert!(run.waits_seconds.is_some_and(|seconds| seconds <= 60));
    world.quiet();
    assert_eq!(world.settle().waits_seconds, Some(15));
    // Another cluster of that name is not the owner.
    let mut other = cluster("east", ISSUERS[0].1, "True");
    other["metadata"]["uid"] = json!("uid-another");
    world.hub.put(Place::HUB, other);
    world.settle();
    assert_eq!(world.entry(), (1, "Waiting".to_owned()));
    world.hub.put(Place::HUB, cluster("east", ISSUERS[0].1, "True"));
    world.settle();
    assert_eq!(world.entry(), (1, "Ready".to_owned()));
    assert_eq!(world.ready_reason(), "True AsDeclared");
}

#[test]
fn an_issuer_that_a_cluster_reports_instead_of_the_one_that_was_checked_is_not_trusted() {
    let mut world = placed(&owned("Granted", 1, "east"));
    let mut changed = cluster("east", ISSUERS[0].1, "True");
    // West has it, and nobody has noticed yet.
    changed["status"]["issuer"] = json!(ISSUERS[1].1);
    world.hub.put(Place::HUB, changed);
    world.settle();
    assert_eq!(world.trusts(), ("Epoch1".to_owned(), None));
    assert_eq!(world.entry(), (1, "Waiting".to_owned()));
    assert_eq!(world.ready_reason(), "False IssuerNotReady");
    world.hub.put(Place::HUB, cluster("east", ISSUERS[0].1, "True"));
    world.settle();
    assert_eq!(world.entry(), (1, "Ready".to_owned()));
}

#[test]
fn a_forced_release_closes_the_trust_denies_old_sessions_and_only_then_opens() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.quiet();
    world.cloud.take();
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 1}));
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy", "PutRolePolicy"]);
    assert_eq!(world.trusts(), ("Epoch1".to_owned(), None));
    let fence = world.fence().expect("it is recorded");
    let before = fence.before.expect("a time").0.as_second();
    assert_eq!((fence.epoch, before), (1, 1_000_000 + world.cloud.process.uptime + 60));
    let put = world.held().inline["interlock-fence-1"].clone();
    assert!(put.contains("aws:TokenIssueTime") && put.contains("\"Deny\""), "{put}");
    assert_eq!(world.entry(), (1, "Ready".to_owned()), "the time of the fence is not past");
    // The next owner is granted meanwhile: it waits.
    world.grants(&owned("Granted", 2, "west"));
    assert!(world.cloud.take().is_empty());
    world.cloud.pass(60);
    world.settle();
    assert!(world.cloud.take().is_empty(), "not before, and not at that time");
    world.cloud.pass(1);
    world.settle();
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy"]);
    assert_eq!(world.trusts(), ("Epoch2".to_owned(), provider(1)));
    assert_eq!(world.entry(), (2, "Ready".to_owned()));
}

#[test]
fn the_grant_reports_when_the_sessions_of_a_forced_owner_are_denied() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 1}));
    world.cloud.pass(61);
    let run = world.settle();
    assert_eq!(world.entry(), (1, "Fenced".to_owned()));
    assert!(run.events.iter().any(|event| event.reason == "RightsFenced"));
    // Somebody opens it again, and it is closed again.
    world.quiet();
    world.cloud.take();
    world.held().trust = r#"{"Statement": []}"#.to_owned();
    world.settle();
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy"]);
}

#[test]
fn a_lost_answer_to_closing_the_trust_costs_one_more_call_and_no_waiting() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.quiet();
    world.cloud.take();
    let close = document::closed("Epoch1").to_string();
    let sent = crate::outside::Sent {
        call: crate::outside::Call::UpdateAssumeRolePolicy { trust: close },
        is_answered: false,
        at: world.cloud.process.uptime,
    };
    world.cloud.sent.push(sent);
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 1}));
    assert_eq!(world.cloud.take(), ["UpdateAssumeRolePolicy", "PutRolePolicy"]);
}

#[test]
fn a_fence_that_comes_late_gets_a_later_time_first() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.quiet();
    // Closed and recorded; the process dies before the fence is put.
    world.hub.change(
        Place::HUB,
        &GRANT,
        &grant_address(),
        &json!({"status": {
        "phase": "Fenced", "fencedEpoch": 1}}),
    );
    while world.fence().is_none() {
        let step = world.hub.step(&world.room, &world.cloud, SUBJECT);
        let interlock_kernel::Step::Act(effect) = step else { panic!("{step:?}") };
        match effect.action {
            interlock_kernel::Action::Write(write) => world.hub.apply(&write).expect("a write"),
            interlock_kernel::Action::Outside(request) => {
                interlock_kernel::testing::Machine::perform(&mut world.cloud, &request);
            }
        }
    }
    let first = world.fence();
    world.cloud.take();
    world.cloud.pass(40);
    world.settle();
    assert_ne!(world.fence(), first);
    assert_eq!(world.cloud.take(), ["PutRolePolicy"]);
    world.past_the_fence();
    assert_eq!(world.entry(), (1, "Fenced".to_owned()));
}

#[test]
fn a_fence_that_somebody_deletes_is_put_back_and_denies_no_session_of_the_next_owner() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 1}));
    world.past_the_fence();
    world.grants(&owned("Granted", 2, "west"));
    world.quiet();
    let (fence, text) = (world.fence(), world.held().inline["interlock-fence-1"].clone());
    world.held().inline.clear();
    world.settle();
    assert_eq!((world.fence(), &world.held().inline["interlock-fence-1"]), (fence, &text));
}

#[test]
fn each_fence_has_a_name_of_its_own_and_all_go_when_no_session_is_left() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 1}));
    world.past_the_fence();
    world.grants(&owned("Granted", 2, "west"));
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 2}));
    world.past_the_fence();
    let names: Vec<String> = world.held().inline.keys().cloned().collect();
    assert_eq!(names, ["interlock-fence-1", "interlock-fence-2"]);
    world.held().inline.insert("hand".to_owned(), "{}".to_owned());
    world.grants(&owned("Granted", 3, "east"));
    world.cloud.take();
    world.cloud.pass(12 * 3600);
    world.settle();
    assert!(world.cloud.take().is_empty());
    world.cloud.pass(120);
    world.settle();
    assert_eq!(world.cloud.take(), ["DeleteRolePolicy", "DeleteRolePolicy"]);
    let names: Vec<String> = world.held().inline.keys().cloned().collect();
    assert_eq!(names, ["hand"]);
    assert_eq!(world.fence(), Some(Fence { epoch: 2, before: None }));
}

#[test]
fn a_role_that_is_made_after_a_forced_release_needs_no_fence() {
    let mut status = owned("Fenced", 1, "east");
    status["fencedEpoch"] = json!(1);
    let mut world = placed(&status);
    world.settle();
    assert_eq!(world.cloud.take(), ["CreateRole", "AttachRolePolicy"]);
    assert_eq!(world.fence(), Some(Fence { epoch: 1, before: None }));
    assert_eq!(world.entry(), (1, "Fenced".to_owned()));
}

#[test]
fn a_role_that_the_cloud_does_not_show_is_not_without_sessions_while_reads_may_lag() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.cloud.account.roles.clear();
    world.grants(&json!({"phase": "Fenced", "fencedEpoch": 1}));
    assert_eq!(world.fence(), None);
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    world.quiet();
    assert_eq!(world.fence(), Some(Fence { epoch: 1, before: None }));
}

#[test]
fn a_lost_answer_about_the_trust_is_waited_out_before_the_grant_reports_it() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.quiet();
    world.cloud.take();
    world.cloud.calls = Calls::Unheard;
    world.grants(&json!({"phase": "Released"}));
    world.grants(&owned("Granted", 2, "west"));
    assert_eq!(world.trusts(), ("Epoch2".to_owned(), provider(1)));
    assert_eq!(world.entry(), (1, "Ready".to_owned()));
    assert_eq!(world.ready_reason(), "False WaitingForLateCall");
    world.quiet();
    assert_eq!(world.entry(), (2, "Ready".to_owned()));
}

#[test]
fn another_process_waits_before_it_tells_the_grant() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.cloud.restart();
    world.grants(&json!({"phase": "Released"}));
    world.grants(&owned("Granted", 2, "west"));
    assert_eq!(world.entry(), (1, "Ready".to_owned()));
    assert_eq!(world.trusts().0, "Epoch1");
    world.cloud.pass(61);
    world.settle();
    assert_eq!((world.trusts().0.as_str(), world.entry()), ("Epoch2", (2, "Ready".to_owned())));
}

#[test]
fn a_role_that_is_deleted_leaves_the_grant_before_its_finalizer_goes() {
    for retained in [false, true] {
        let mut world = placed(&owned("Granted", 1, "east"));
        if retained {
            world.change(&json!({"spec": {"deletionPolicy": "Retain"}}));
        }
        world.settle();
        world.delete();
        let run = world.settle();
        let run = if retained {
            run
        } else {
            world.cloud.pass(61);
            world.settle()
        };
        assert_eq!((world.json(), world.entry().0), (Value::Null, -1));
        let last: Vec<_> = run.writes.iter().rev().take(2).map(|it| &it.address().kind).collect();
        assert_eq!(last, [&ROLE, &GRANT]);
        assert_eq!(world.cloud.account.roles.is_empty(), !retained);
    }
}

#[test]
fn a_conflict_is_not_listed_and_a_namesake_that_is_gone_is_replaced() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.hub.change(
        Place::HUB,
        &GRANT,
        &grant_address(),
        &json!({"status": {"rights": [
        {"uid": "gone", "name": "s3"}, {"uid": "u-9", "name": "other"}]}}),
    );
    world.settle();
    let grant = world.hub.json(Place::HUB, &GRANT, &grant_address());
    let uids: Vec<&Value> =
        grant["status"]["rights"].as_array().expect("a list").iter().map(|it| &it["uid"]).collect();
    assert_eq!(uids, ["u-9", "u-2"]);
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    world.hub.change(Place::HUB, &GRANT, &grant_address(), &json!({"status": {"rights": null}}));
    world.held().tags.insert("interlock.dev/owner-uid".to_owned(), "another".to_owned());
    world.settle();
    assert_eq!(world.entry().0, -1);
    assert_eq!(world.ready_reason(), "False Conflict");
}

#[test]
fn a_grant_of_another_namespace_is_not_followed() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.hub.put(
        Place::HUB,
        json!({"kind": "Grant", "metadata": {"name": "shop-n1", "uid": "g-2"},
        "spec": {"namespace": {"name": "shop", "uid": "n-1-again"}}}),
    );
    world.settle();
    assert!(world.cloud.take().is_empty());
}

#[test]
fn a_forced_owner_is_fenced_though_the_grant_has_moved_on() {
    let mut world = placed(&owned("Granted", 1, "east"));
    world.settle();
    let mut status = owned("Revoking", 2, "west");
    status["fencedEpoch"] = json!(1);
    world.grants(&status);
    assert!(world.held().inline.contains_key("interlock-fence-1"));
    assert_eq!(world.trusts(), ("Epoch1".to_owned(), None));
}

#[test]
fn broken_grants_and_clusters_do_not_break_it() {
    let world = placed(&owned("Granted", 1, "east"));
    let grant = grant(&json!({"phase": "Fenced", "epoch": 3, "fencedEpoch": 3, "rights": [
        {"uid": "u-2", "name": "s3"}], "owner": {"name": "east", "uid": "uid-east"}}));
    let objects = [role(&json!({})), namespace(), grant, cluster("east", "x", "True")];
    survives(&room(), &world.cloud, &objects);
}
