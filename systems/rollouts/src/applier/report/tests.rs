use super::decide::{Bundles, Decision, Extra, Facts, Listed, Wanted, decide};
use crate::applier::fenced::Fence;
use crate::applier::testing::{CLAIM, DEPLOYMENT, Pair, bundle, config, id, namespace};
use crate::applier::{ANNOTATION_PRUNE, CONFIG_MAP};
use crate::health::{Health, State};
use interlock_api::rollouts::{FenceMode, RolloutReportStatus, Verdict, event};
use interlock_kernel::{Name, Place, Write};
use serde_json::{Value, json};

fn health(state: State) -> Health {
    Health { state, reason: "Why".to_owned(), message: "as it says".to_owned() }
}

fn object(id: &str, wave: i32, is_applied: bool, state: State) -> Wanted {
    Wanted { id: id.to_owned(), wave, is_applied, is_served: true, health: health(state) }
}

/// All of a target of token 7 is there and healthy, under a fence that is exact.
fn facts(wanted: Vec<Wanted>) -> Facts {
    Facts {
        now: 1_000,
        token: 7,
        soak_seconds: 30,
        settle_seconds: 75,
        every_seconds: 1,
        said: RolloutReportStatus { token: 7, ..RolloutReportStatus::default() },
        fence: Some(Fence { token: Some(7), proven: 0, proven_at: None, mode: FenceMode::Exact }),
        bundles: Bundles::Read,
        are_kinds_known: true,
        listed: Some(Listed { wanted, is_watched: true, ..Listed::default() }),
        ..Facts::default()
    }
}

fn next(facts: &Facts) -> RolloutReportStatus {
    match decide(facts) {
        Decision::Write(next) => *next,
        other => panic!("{other:?}"),
    }
}

/// What follows once this was written and some time has passed.
fn after(facts: &Facts, seconds: i64) -> Facts {
    let said = next(facts);
    Facts { said, now: facts.now + seconds, ..facts.clone() }
}

#[test]
fn the_fence_is_read_first_and_the_objects_after_it() {
    let whole = facts(Vec::new());
    let unread = Facts { listed: None, ..whole.clone() };
    let unknown = Facts { are_kinds_known: false, ..unread.clone() };
    let unasked = Facts { bundles: Bundles::Unasked, ..unknown.clone() };
    let unsettled = Listed { is_unsettled: true, ..Listed::default() };
    for (facts, decision) in [
        (Facts { fence: None, ..unasked.clone() }, Decision::ReadFence),
        (unasked, Decision::AskBundles),
        (unknown, Decision::AskKinds),
        (unread, Decision::List),
        (Facts { listed: Some(unsettled), ..whole }, Decision::Try),
    ] {
        assert_eq!(decide(&facts), decision);
    }
}

#[test]
fn a_report_is_written_once_a_second_at_most_but_a_new_token_at_once() {
    let first = facts(vec![object("a", 0, false, State::Unknown)]);
    let soon = after(&first, 0);
    assert!(matches!(decide(&soon), Decision::Wait(_, 1)));
    let other = Facts { token: 8, ..soon.clone() };
    assert!(matches!(decide(&other), Decision::Write(_)));
    assert!(matches!(decide(&after(&first, 1)), Decision::Wait(..)));
}

#[test]
fn waves_follow_each_other_and_what_is_pruned_comes_last() {
    let wave = |first: bool, second: bool, state| {
        let wanted = vec![object("b", 1, second, State::Current), object("a", 0, first, state)];
        let listed = Listed {
            wanted,
            extra: vec![
                Extra { id: "x".to_owned(), wave: 0, is_kept: false },
                Extra { id: "y".to_owned(), wave: 2, is_kept: false },
                Extra { id: "z".to_owned(), wave: 2, is_kept: true },
            ],
            ..Listed::default()
        };
        let said = next(&Facts { listed: Some(listed), ..facts(Vec::new()) });
        assert_eq!((said.kept.clone(), said.verdict), (vec!["z".to_owned()], Verdict::Applying));
        (said.wave, said.pending)
    };
    assert_eq!(wave(false, false, State::Unknown), (0, vec!["a".to_owned()]));
    // It is there, and others need it to be healthy.
    assert_eq!(wave(true, false, State::InProgress), (0, Vec::new()));
    assert_eq!(wave(true, false, State::Current), (1, vec!["b".to_owned()]));
    assert_eq!(wave(true, true, State::Current), (1, vec!["y".to_owned()]));
}

#[test]
fn nothing_is_pending_without_a_fence_or_while_drift_is_only_reported() {
    let open = || vec![object("a", 0, false, State::Unknown)];
    let low = Fence { token: Some(6), proven: 0, proven_at: None, mode: FenceMode::Exact };
    let unfenced = Facts { fence: Some(low), ..facts(open()) };
    assert!(next(&unfenced).pending.is_empty());
    assert!(next(&Facts { is_quiet: true, ..facts(open()) }).pending.is_empty());
    assert_eq!(next(&facts(open())).pending, ["a"]);
}

#[test]
fn a_verdict_needs_the_fence_and_a_healthy_soak_without_a_break() {
    let healthy = facts(vec![object("a", 0, true, State::Current)]);
    let said = next(&healthy);
    assert_eq!(said.verdict, Verdict::Applied);
    assert_eq!(said.healthy_since.as_ref().map(|at| at.0.as_second()), Some(1_000));
    assert!(matches!(decide(&after(&healthy, 29)), Decision::Wait(_, 1)));
    assert_eq!(next(&after(&healthy, 30)).verdict, Verdict::Soaked);
    // A break starts the time again.
    let sick =
        Listed { wanted: vec![object("a", 0, true, State::InProgress)], ..Listed::default() };
    let broken = Facts { listed: Some(sick), ..after(&healthy, 10) };
    let said = next(&broken);
    assert_eq!((said.verdict, said.healthy_since.is_none()), (Verdict::Applied, true));
    assert_eq!(said.not_ready[0].code, "Why");
    let well = Facts { listed: healthy.listed.clone(), ..after(&broken, 10) };
    assert_eq!(next(&well).healthy_since.map(|at| at.0.as_second()), Some(1_020));
    let unfenced = Facts {
        fence: Some(Fence { token: Some(6), proven: 0, proven_at: None, mode: FenceMode::Exact }),
        ..healthy
    };
    assert_eq!(next(&unfenced).verdict, Verdict::Applying);
}

#[test]
fn without_an_exact_fence_the_objects_are_read_after_it_has_settled() {
    let fence = Fence { token: Some(7), proven: 7, proven_at: Some(950), mode: FenceMode::Probed };
    let healthy = facts(vec![object("a", 0, true, State::Current)]);
    let healthy = Facts { fence: Some(fence), soak_seconds: 0, ..healthy };
    assert_eq!(next(&healthy).verdict, Verdict::Applying);
    assert!(matches!(decide(&after(&healthy, 24)), Decision::Wait(..)));
    // It says first that it is so late, and only what is read after that counts.
    let settled = after(&healthy, 25);
    assert_eq!(next(&settled).verdict, Verdict::Applying);
    let read_after = Facts { every_seconds: 0, ..after(&settled, 0) };
    assert_eq!(next(&read_after).verdict, Verdict::Soaked);
    // Another proof starts the time again.
    let again =
        Fence { token: Some(7), proven: 7, proven_at: Some(1_020), mode: FenceMode::Probed };
    let again = Facts { fence: Some(again), ..read_after };
    assert_eq!(next(&again).verdict, Verdict::Applying);
}

#[test]
fn what_was_said_of_another_token_does_not_count() {
    let healthy = facts(vec![object("a", 0, true, State::Current)]);
    let soaked = Facts { said: next(&after(&healthy, 30)), ..healthy.clone() };
    assert_eq!(soaked.said.verdict, Verdict::Soaked);
    let raised = Fence { token: Some(8), proven: 0, proven_at: None, mode: FenceMode::Exact };
    let other = Facts { token: 8, fence: Some(raised), ..soaked };
    let said = next(&other);
    assert_eq!((said.token, said.verdict), (8, Verdict::Applied));
    assert_eq!(said.healthy_since.map(|at| at.0.as_second()), Some(1_000));
}

#[test]
fn an_old_view_of_the_record_says_nothing_but_the_fence() {
    let raised = Fence { token: Some(9), proven: 0, proven_at: None, mode: FenceMode::Exact };
    let healthy = facts(vec![object("a", 0, true, State::Current)]);
    let said = next(&Facts { fence: Some(raised.clone()), ..healthy.clone() });
    assert_eq!((said.token, said.verdict), (7, Verdict::Applying));
    assert_eq!(said.fence.as_ref().map(|fence| fence.token), Some(9));
    let known = Facts { said, fence: Some(raised), ..healthy.clone() };
    assert!(matches!(decide(&known), Decision::Wait(_, 60)));
    // The fence is still at its token, and the report is of a newer one.
    let mut newer = healthy;
    newer.said.token = 8;
    assert_eq!((next(&newer).token, next(&newer).verdict), (8, Verdict::Applying));
}

#[test]
fn a_failed_object_and_a_refused_one_are_named() {
    let said = next(&facts(vec![
        object("a", 0, true, State::Failed),
        // It is of the target before, and about to be replaced.
        object("b", 0, false, State::Failed),
    ]));
    assert_eq!(said.failed.len(), 1);
    assert_eq!((said.failed[0].id.as_str(), said.failed[0].code.as_str()), ("a", "Why"));
    let mut refused = facts(vec![object("b", 0, false, State::Unknown)]);
    refused.said.failed = said.failed.clone();
    refused.said.failed[0].id = "b".to_owned();
    assert_eq!(next(&refused).failed[0].id, "b");
    refused.listed =
        Some(Listed { wanted: vec![object("b", 0, true, State::Current)], ..Listed::default() });
    assert!(next(&refused).failed.is_empty());
    let unserved = Wanted { is_served: false, ..object("c", 0, false, State::Unknown) };
    assert_eq!(next(&facts(vec![unserved])).not_ready[0].code, "KindNotServed");
}

#[test]
fn a_bundle_that_cannot_be_read_is_reported_and_nothing_is_written_for_it() {
    let why = "there is none".to_owned();
    let said = next(&Facts { bundles: Bundles::Unreadable(why), ..facts(Vec::new()) });
    assert_eq!(said.failed[0].code, "RevisionMissing");
    assert!(said.pending.is_empty() && said.verdict == Verdict::Applying);
}

#[test]
fn a_verified_target_stays_verified_and_what_changes_is_drift() {
    let healthy = facts(vec![object("a", 0, true, State::Current)]);
    let soaked = after(&after(&healthy, 30), 5);
    assert!(matches!(decide(&soaked), Decision::Rest(_)));
    let unwatched = Listed { is_watched: false, ..soaked.listed.clone().expect("it is listed") };
    let unwatched = Facts { listed: Some(unwatched), ..soaked.clone() };
    assert!(matches!(decide(&unwatched), Decision::Wait(_, 60)));
    let gone = Listed { wanted: vec![object("a", 0, false, State::Unknown)], ..Listed::default() };
    let said = next(&Facts { listed: Some(gone), ..soaked });
    assert_eq!(
        (said.verdict, said.drifted, said.pending.len()),
        (Verdict::Soaked, vec!["a".to_owned()], 1)
    );
}

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1},
        "metadata": {"name": name, "namespace": "shop"}})
}

fn is_ready(pair: &mut Pair, name: &str) {
    let status = json!({"status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
        "readyReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}});
    pair.servers.change(Place::CLUSTER, &DEPLOYMENT, &Name::within("shop", name), &status);
}

#[test]
fn a_cluster_goes_from_one_target_to_the_next_and_back() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"}});
    let one = bundle(&[namespace("shop"), config("a", "1"), deployment("web"), claim]);
    let two = bundle(&[namespace("shop"), config("a", "2"), config("b", "2"), deployment("web")]);
    let target = |token: i64, digest: &str| json!({"token": token, "digest": digest});
    let status = json!({"target": target(1, one.digest()), "mayExist": [one.digest()]});
    let mut pair = Pair::new(&[&one, &two], json!({}), status);
    // The namespace is there already, and somebody else made it.
    pair.settle();
    assert_eq!(pair.said()["failed"][0]["code"], "NotOurs");
    pair.servers.delete(Place::CLUSTER, &crate::applier::NAMESPACE, &Name::cluster_wide("shop"));
    pair.servers.pass(60);
    pair.settle();
    assert_eq!(pair.object(&CONFIG_MAP, "a")["data"]["k"], "1");
    assert_eq!(pair.said()["verdict"], "Applied");
    assert_eq!(pair.said()["notReady"][1]["id"], "apps/Deployment/shop/web");
    is_ready(&mut pair, "web");
    let bound = json!({"status": {"phase": "Bound"}});
    pair.servers.change(Place::CLUSTER, &CLAIM, &Name::within("shop", "data"), &bound);
    pair.settle();
    assert_eq!(pair.said()["verdict"], "Soaked");
    assert!(pair.settle().is_empty());

    // The next target: what differs is written, what holds data is kept, and nothing else is touched.
    let may_exist = json!([one.digest(), two.digest()]);
    pair.aim(&json!({"target": target(2, two.digest()), "mayExist": may_exist}));
    let writes = pair.settle();
    let applied = |write: &&Write| matches!(write, Write::Apply { .. });
    assert_eq!(writes.iter().filter(applied).count(), 2);
    assert_eq!(pair.said()["verdict"], "Soaked");
    assert_eq!(pair.said()["kept"], json!(["/PersistentVolumeClaim/shop/data"]));
    assert_eq!(pair.object(&CONFIG_MAP, "b")["data"]["k"], "2");

    // Back again: what is not wanted is marked under the token, and then deleted.
    pair.aim(&json!({"target": target(3, one.digest())}));
    let writes = pair.settle();
    let b = Name::within("shop", "b");
    let of_b: Vec<&Write> = writes.iter().filter(|write| write.address().name == b).collect();
    let [Write::Patch { change, .. }, Write::Delete { resource_version: Some(_), .. }] =
        of_b.as_slice()
    else {
        panic!("{of_b:?}")
    };
    assert_eq!(change["metadata"]["annotations"][ANNOTATION_PRUNE], "3");
    assert!(pair.object(&CONFIG_MAP, "b").is_null());
    assert_eq!(pair.object(&CONFIG_MAP, "a")["data"]["k"], "1");
    assert_eq!(
        (pair.said()["verdict"].clone(), pair.said()["token"].clone()),
        (json!("Soaked"), json!(3))
    );
    assert_eq!(id("/ConfigMap/shop/b").to_string(), "/ConfigMap/shop/b");
}

#[test]
fn an_object_that_fails_has_an_event_once() {
    let one = bundle(&[deployment("web")]);
    let status = json!({"target": {"token": 1, "digest": one.digest()}});
    let mut pair = Pair::new(&[&one], json!({}), status);
    pair.settle();
    let failed = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    let name = Name::within("shop", "web");
    pair.servers.change(Place::CLUSTER, &DEPLOYMENT, &name, &failed);
    pair.servers.pass(5);
    let run = pair.report();
    let [said] = run.events.as_slice() else { panic!("{:?}", run.events) };
    assert_eq!(said.reason, event::UNHEALTHY);
    for words in ["apps/Deployment/shop/web does not get healthy", "ProgressDeadlineExceeded"] {
        assert!(said.note.contains(words), "no {words:?}: {}", said.note);
    }
    // It still fails, which is no news.
    pair.servers.pass(5);
    assert!(pair.report().events.is_empty());
}

#[test]
fn objects_that_cannot_be_read_do_no_harm() {
    use crate::applier::report::Reports;
    use crate::applier::testing::{RECORD, UID, serves};
    let cluster = json!({"name": "west", "uid": UID});
    let one = bundle(&[config("a", "1")]);
    let around = crate::applier::testing::Around {
        bundles: [(one.digest().to_owned(), one.clone())].into(),
        ..crate::applier::testing::Around::default()
    };
    let record = json!({"kind": "ClusterRollout", "metadata": {"name": RECORD, "uid": "r"},
        "spec": {"cluster": cluster}, "status": {"target": {"token": 1, "digest": one.digest()}}});
    let report = json!({"kind": "RolloutReport", "metadata": {"name": RECORD, "uid": "p"},
        "spec": {"cluster": cluster}, "status": {"token": 1, "pending": ["/ConfigMap/shop/a"],
        "fence": {"token": 1, "mode": "Exact"}}});
    let fence = crate::fence::config_map();
    let objects = [record, report, fence, config("a", "1")];
    interlock_kernel::testing::survives(&Reports::new(serves()), &around, &objects);
    let writes = crate::applier::object::Objects::new(serves());
    interlock_kernel::testing::survives(&writes, &around, &objects);
}
