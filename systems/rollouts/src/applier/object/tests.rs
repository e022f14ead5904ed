use super::decide::{Decision, Facts, Live, Placed, Refused, Role, Served, There, Tried, decide};
use crate::applier::testing::{Pair, UID, bundle, config, namespace};
use crate::applier::{ANNOTATION_PRUNE, CONFIG_MAP};
use interlock_api::rollouts::{ANNOTATION_CONTENT, ANNOTATION_TOKEN, LABEL_ROLLOUT, event};
use interlock_kernel::{Event, Importance, Name, Place, Write};
use serde_json::json;

/// A wanted object that is absent, up to the dry run.
fn wanted() -> Facts {
    Facts {
        token: 7,
        is_named: true,
        is_fenced: true,
        role: Role::Wanted,
        served: Served::Yes,
        live: Live::Absent,
        tried: Tried::Changes,
        ..Facts::default()
    }
}

fn there(is_ours: bool, differs: bool) -> Live {
    Live::There(There { is_ours, differs, ..There::default() })
}

fn listed(mark: Option<i64>) -> Facts {
    let live = Live::There(There { is_ours: true, mark, ..There::default() });
    Facts { role: Role::Listed, live, ..wanted() }
}

fn refusal() -> Refused {
    Refused { code: "Forbidden".to_owned(), message: "no".to_owned() }
}

#[test]
fn nothing_is_written_before_the_report_names_it_under_a_fence() {
    for facts in [
        Facts { token: 0, ..wanted() },
        Facts { is_named: false, ..wanted() },
        Facts { is_fenced: false, ..wanted() },
        Facts { is_quiet: true, ..wanted() },
        Facts { role: Role::Unlisted, ..wanted() },
        Facts { is_kept: true, ..listed(Some(7)) },
    ] {
        assert!(matches!(decide(&facts), Decision::Rest(_)), "{facts:?}");
    }
}

#[test]
fn each_thing_is_asked_before_the_next_one() {
    for (facts, decision) in [
        (Facts { role: Role::Unasked, ..wanted() }, Decision::AskBundles),
        (Facts { served: Served::Unasked, ..wanted() }, Decision::AskKind),
        (Facts { live: Live::Unread, ..wanted() }, Decision::Read),
        (Facts { tried: Tried::Unasked, ..wanted() }, Decision::Try),
        (wanted(), Decision::Make),
        (Facts { live: there(true, true), ..wanted() }, Decision::Change),
        (Facts { live: there(false, true), is_forced: true, ..wanted() }, Decision::Change),
        (listed(None), Decision::Mark),
        (listed(Some(6)), Decision::Mark),
        (listed(Some(7)), Decision::Delete),
    ] {
        assert_eq!(decide(&facts), decision, "{facts:?}");
    }
}

#[test]
fn what_cannot_be_known_is_waited_for_and_nothing_is_deleted_for_it() {
    let deleting = There { is_ours: true, is_deleting: true, ..There::default() };
    for facts in [
        Facts { role: Role::Unreadable, ..wanted() },
        Facts { served: Served::No, ..wanted() },
        Facts { live: Live::There(deleting), ..wanted() },
        Facts { live: Live::There(deleting), ..listed(None) },
        Facts { tried: Tried::Changed, ..wanted() },
        Facts { tried: Tried::Refused(refusal()), noted: Some(refusal()), ..wanted() },
    ] {
        assert!(matches!(decide(&facts), Decision::Wait(..)), "{facts:?}");
    }
}

#[test]
fn what_is_as_wanted_or_not_ours_is_left_alone() {
    let alien = Live::There(There::default());
    for facts in [
        Facts { live: there(true, false), ..wanted() },
        Facts { live: there(true, true), tried: Tried::Same, ..wanted() },
        Facts { live: Live::Absent, ..listed(None) },
        Facts { live: alien, ..listed(None) },
        Facts { served: Served::No, ..listed(None) },
    ] {
        assert!(matches!(decide(&facts), Decision::Wait(..)), "{facts:?}");
    }
}

#[test]
fn a_refusal_is_said_in_the_report() {
    let code = |facts: &Facts| match decide(facts) {
        Decision::Note(refused) => refused.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(&Facts { live: there(false, true), ..wanted() }), "NotOurs");
    assert_eq!(
        code(&Facts { placed: Placed::By("g".to_owned()), ..wanted() }),
        "NamespaceIsPlaced"
    );
    assert_eq!(code(&Facts { tried: Tried::Refused(refusal()), ..wanted() }), "Forbidden");
    let other = Refused { code: "Invalid".to_owned(), ..refusal() };
    let facts = Facts { tried: Tried::Refused(refusal()), noted: Some(other), ..wanted() };
    assert_eq!(code(&facts), "Forbidden");
}

const ID: &str = "/ConfigMap/shop/a";

/// A cluster on which the report names one object.
fn named(with: &[serde_json::Value]) -> Pair {
    let bundle = bundle(with);
    let target = json!({"token": 1, "digest": bundle.digest()});
    let mut pair = Pair::new(&[&bundle], json!({}), json!({"target": target}));
    pair.raise();
    pair.report();
    pair
}

#[test]
fn an_object_is_made_and_changed_by_one_apply_that_says_what_it_rests_on() {
    let mut pair = named(&[config("a", "1")]);
    let run = pair.write(ID);
    let [Write::Apply { uid: None, resource_version: None, is_forced: false, manager, .. }] =
        run.writes.as_slice()
    else {
        panic!("{:?}", run.writes)
    };
    assert_eq!(*manager, "interlock-rollouts");
    let name = Name::within("shop", "a");
    pair.servers.change(Place::CLUSTER, &CONFIG_MAP, &name, &json!({"data": {"k": "other"}}));
    let version = pair.object(&CONFIG_MAP, "a")["metadata"]["resourceVersion"].clone();
    let run = pair.write(ID);
    let [Write::Apply { uid: Some(_), resource_version: Some(seen), .. }] = run.writes.as_slice()
    else {
        panic!("{:?}", run.writes)
    };
    assert_eq!(version, **seen);
    assert_eq!(pair.object(&CONFIG_MAP, "a")["data"]["k"], "1");
    assert!(pair.write(ID).writes.is_empty());
}

#[test]
fn an_object_of_somebody_else_is_left_alone_and_reported_once() {
    let mut pair = named(&[config("a", "1")]);
    pair.make(&CONFIG_MAP, &Name::within("shop", "a"), config("a", "theirs"));
    let run = pair.write(ID);
    assert_eq!((run.writes.len(), run.events.len()), (1, 1));
    assert_eq!(pair.said()["failed"][0]["code"], "NotOurs");
    assert!(pair.write(ID).writes.is_empty());
    assert_eq!(pair.object(&CONFIG_MAP, "a")["data"]["k"], "theirs");
}

#[test]
fn a_namespace_of_a_grant_is_not_written_to() {
    // Where there is a policy it refuses the dry run; here there is none, and the record can do without.
    let bundle = bundle(&[config("a", "1")]);
    let target = json!({"token": 1, "digest": bundle.digest()});
    let spec = json!({"fence": "BestEffort"});
    let mut pair = Pair::new(&[&bundle], spec, json!({"target": target}));
    let policy = Name::cluster_wide(interlock_api::rollouts::FENCE_POLICY);
    pair.servers.delete(Place::CLUSTER, &crate::fence::POLICY, &policy);
    pair.raise();
    pair.report();
    let home = Name::cluster_wide("shop");
    let grant = json!({"metadata": {"annotations": {"interlock.dev/grant": "shop-1"}}});
    pair.servers.change(Place::CLUSTER, &crate::applier::NAMESPACE, &home, &grant);
    pair.write(ID);
    assert_eq!(pair.said()["failed"][0]["code"], "NamespaceIsPlaced");
    assert!(pair.object(&CONFIG_MAP, "a").is_null());
}

#[test]
fn an_object_that_no_bundle_lists_is_not_deleted() {
    let mut pair = named(&[namespace("shop"), config("a", "1")]);
    pair.settle();
    let ours = pair.object(&CONFIG_MAP, "a")["metadata"].clone();
    let mut alike = config("b", "1");
    alike["metadata"]["labels"] = ours["labels"].clone();
    alike["metadata"]["annotations"] = json!({"interlock.dev/id": "/ConfigMap/shop/b"});
    pair.make(&CONFIG_MAP, &Name::within("shop", "b"), alike);
    pair.servers.pass(60);
    pair.settle();
    assert!(!pair.object(&CONFIG_MAP, "b").is_null());
    assert!(pair.object(&CONFIG_MAP, "b")["metadata"]["annotations"][ANNOTATION_PRUNE].is_null());
}

/// A cluster that is back at its first target, and that is verified: token 3. What was only in the second one is pruned.
fn rolled_back() -> (Pair, Vec<Event>) {
    let one = bundle(&[config("a", "1")]);
    let two = bundle(&[config("a", "2"), config("b", "2")]);
    let may_exist = json!([one.digest(), two.digest()]);
    let target = |token: i64, digest: &str| json!({"target": {"token": token, "digest": digest}});
    let status = json!({"target": {"token": 2, "digest": two.digest()}, "mayExist": may_exist});
    let mut pair = Pair::new(&[&one, &two], json!({}), status);
    pair.settle();
    assert!(!pair.object(&CONFIG_MAP, "b").is_null());
    pair.aim(&target(3, one.digest()));
    pair.raise();
    pair.report();
    let mut events = pair.write(ID).events;
    pair.servers.pass(5);
    pair.report();
    events.extend(pair.write(B).events);
    pair.servers.pass(5);
    pair.settle();
    assert!(pair.object(&CONFIG_MAP, "b").is_null());
    assert_eq!(pair.said()["verdict"], "Soaked");
    pair.servers.pass(5);
    (pair, events)
}

const B: &str = "/ConfigMap/shop/b";

#[test]
fn what_a_late_write_left_is_removed_and_an_event_says_so() {
    let (mut pair, events) = rolled_back();
    // What was there before the target was verified is of no late write.
    assert!(events.is_empty(), "{events:?}");

    // A server that is slower than the settle time makes what an agent asked for under token 2.
    let mut late = config("b", "2");
    late["metadata"]["labels"] = json!({LABEL_ROLLOUT: UID});
    late["metadata"]["annotations"] = json!({"interlock.dev/id": B, ANNOTATION_TOKEN: "2"});
    pair.make(&CONFIG_MAP, &Name::within("shop", "b"), late);
    pair.report();
    let run = pair.write(B);
    assert!(
        matches!(run.writes.as_slice(), [Write::Patch { .. }, Write::Delete { .. }]),
        "{run:?}"
    );
    let [said] = run.events.as_slice() else { panic!("{:?}", run.events) };
    assert_eq!((said.reason, said.importance), (event::LATE_WRITE_REMOVED, Importance::Warning));
    for words in [B, "was deleted", "written under token 2", "the fence was at 3"] {
        assert!(said.note.contains(words), "no {words:?}: {}", said.note);
    }
}

#[test]
fn what_a_late_write_changed_is_put_right_and_what_people_change_is_drift() {
    let (mut pair, _) = rolled_back();
    let name = Name::within("shop", "a");
    let annotations = json!({ANNOTATION_TOKEN: "2", ANNOTATION_CONTENT: "another"});
    for (annotations, events) in [(annotations, 1), (json!({}), 0)] {
        let change = json!({"data": {"k": "2"}, "metadata": {"annotations": annotations}});
        pair.servers.change(Place::CLUSTER, &CONFIG_MAP, &name, &change);
        pair.servers.pass(5);
        pair.report();
        let run = pair.write(ID);
        assert!(matches!(run.writes.as_slice(), [Write::Apply { .. }]), "{run:?}");
        assert_eq!(run.events.len(), events, "{:?}", run.events);
        assert!(run.events.iter().all(|it| it.reason == event::LATE_WRITE_REMOVED));
        assert_eq!(pair.object(&CONFIG_MAP, "a")["data"]["k"], "1");
        pair.servers.pass(5);
        let run = pair.report();
        let reasons: Vec<&str> = run.events.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [event::DRIFT_REPAIRED]);
    }
}
