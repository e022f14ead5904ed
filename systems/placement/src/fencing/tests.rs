//! A ForceRelease takes exactly what it names, or is refused.

use super::*;
use crate::testing::{grant_in, grant_of, granted, listed, pin, reference};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Controller, Importance, Name};
use serde_json::{Value, json};

fn force(patch: Value) -> Value {
    let object = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ForceRelease",
        "metadata": {"name": "force", "uid": "uid-force"},
        "spec": {
            "grant": reference(&grant_of("shop")), "owner": reference("a"), "epoch": 7,
            "attestation": "PoweredOff", "reason": "the rack burnt down", "requester": "kim",
        },
    });
    patched(object, &patch)
}

fn settled(force: Value, grant: Option<Value>) -> (TestServers, Run<Nothing>) {
    let mut world = TestServers::of(&Fencing).with(grant.into_iter().chain([force]));
    let run = world.settle(&Fencing, &mut NoMachine, "force");
    (world, run)
}

fn outcome(world: &TestServers) -> (String, String) {
    let force = world.json(Place::HUB, &FORCE_RELEASE, &Name::cluster_wide("force"));
    let word = |key: &str| force["status"][key].as_str().unwrap_or_default().to_owned();
    (word("outcome"), word("because"))
}

fn with_data(fill: &str, last_snapshot: Value) -> Value {
    let mut data = listed("data", fill);
    data["lastSnapshot"] = last_snapshot;
    let incoming = pin("data", &json!({"restic": {"secret": "s", "snapshotID": "incoming"}}));
    granted("shop", "a", json!({"status": {"claims": [data], "pins": [incoming]}}))
}

#[test]
fn what_it_names_is_fenced_in_one_write_and_then_it_is_applied() {
    let last = pin("data", &json!({"restic": {"secret": "s", "snapshotID": "last"}}));
    let (world, run) = settled(force(json!({})), Some(with_data("Filled", last.clone())));
    assert_eq!(run.writes.len(), 2);
    let grant = grant_in(&world, &grant_of("shop"));
    let status = &grant["status"];
    assert_eq!(status["phase"], "Fenced");
    assert_eq!(status["epoch"], 7);
    assert_eq!(status["owner"], reference("a"));
    assert_eq!(status["fencedBy"], reference("force"));
    assert_eq!(status["fencedEpoch"], 7);
    assert_eq!(status["copies"][0]["state"], "Unclosed");
    assert_eq!(status["pins"][0]["snapshot"], last["snapshot"]);
    assert_eq!(condition(&grant, "Fenced")["status"], "True");
    let bound = condition(&grant, "DataLossBound")["message"].as_str().unwrap_or_default();
    assert!(
        bound.contains("claim data: last snapshot of 1970-01-12T13:00:00Z, 46m40s old"),
        "{bound}"
    );
    assert!(condition(&grant, "AtMostOneGivenUp").is_null());
    assert_eq!(outcome(&world).0, "Applied");
    let reasons: Vec<&str> = run.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["DataLossDeclared", "ForceApplied"]);
}

#[test]
fn the_epoch_that_was_ended_by_force_never_falls() {
    for (before, after) in [(json!(3), 7), (json!(9), 9)] {
        let grant = granted("shop", "a", json!({"status": {"fencedEpoch": before}}));
        let (world, run) = settled(force(json!({})), Some(grant));
        let status = &grant_in(&world, &grant_of("shop"))["status"];
        assert_eq!((&status["phase"], &status["fencedEpoch"]), (&json!("Fenced"), &json!(after)));
        assert_eq!(run.writes.len(), 2, "one write to the grant, one answer");
    }
}

#[test]
fn a_target_that_died_while_filling_loses_nothing() {
    let last = pin("data", &json!({"restic": {"secret": "s", "snapshotID": "old"}}));
    let (world, _) = settled(force(json!({})), Some(with_data("Filling", last)));
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["pins"][0]["snapshot"]["restic"]["snapshotID"], "incoming");
    let bound = condition(&grant, "DataLossBound")["message"].as_str().unwrap_or_default();
    assert!(bound.contains("nothing is lost"), "{bound}");
}

#[test]
fn a_volume_left_in_place_on_the_lost_cluster_gives_way_to_an_older_snapshot() {
    let last = pin("data", &json!({"restic": {"secret": "s", "snapshotID": "old"}}));
    let mut grant = with_data("Waiting", last);
    grant["status"]["pins"] =
        json!([pin("data", &json!({"inPlace": {"cluster": reference("a"), "volume": "v"}}))]);
    let (world, _) = settled(force(json!({})), Some(grant));
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["pins"][0]["snapshot"]["restic"]["snapshotID"], "old");
    let bound = condition(&grant, "DataLossBound")["message"].as_str().unwrap_or_default();
    assert!(bound.contains("what was written since is given up"), "{bound}");
}

#[test]
fn data_without_any_snapshot_is_said_to_be_given_up() {
    let mut grant = with_data("Filled", Value::Null);
    grant["status"]["pins"] = json!([pin("data", &json!({"fresh": {}}))]);
    let (world, _) = settled(force(json!({})), Some(grant));
    let grant = grant_in(&world, &grant_of("shop"));
    let bound = condition(&grant, "DataLossBound")["message"].as_str().unwrap_or_default();
    assert!(bound.contains("everything written to the claim is given up"), "{bound}");
}

#[test]
fn a_snapshot_that_went_with_its_copy_is_not_fallen_back_to() {
    let snapshot = |cluster: &str| {
        json!({"volumeSnapshot": {"cluster": reference(cluster), "namespace": "n", "name": "i",
            "uid": format!("snapshot-of-{cluster}")}})
    };
    let mut grant = with_data("Filled", pin("data", &snapshot("b")));
    grant["status"]["pins"] = json!([pin("data", &snapshot("c"))]);
    let copy = |cluster: &str, state: &str| json!({"cluster": reference(cluster), "epoch": 6, "state": state});
    grant["status"]["copies"] = json!([copy("a", "Live"), copy("c", "Superseded")]);
    let (world, _) = settled(force(json!({})), Some(grant.clone()));
    let left = grant_in(&world, &grant_of("shop"));
    assert_eq!(left["status"]["pins"][0]["snapshot"], snapshot("c"));
    grant["status"]["copies"] = json!([copy("a", "Live")]);
    let (world, _) = settled(force(json!({})), Some(grant));
    let left = grant_in(&world, &grant_of("shop"));
    assert_eq!(left["status"]["pins"], json!([]));
    assert_eq!(left["status"]["claims"][0]["fill"], "Filled", "it must not begin empty");
    let bound = condition(&left, "DataLossBound")["message"].as_str().unwrap_or_default();
    assert!(bound.contains("the data stays on the cluster that is gone"), "{bound}");
}

#[test]
fn whoever_accepts_two_writers_is_named() {
    let accepts = force(json!({"spec": {"attestation": "AcceptDivergence"}}));
    let (world, _) = settled(accepts, Some(granted("shop", "a", json!({}))));
    let grant = grant_in(&world, &grant_of("shop"));
    let given_up = condition(&grant, "AtMostOneGivenUp");
    assert_eq!(given_up["status"], "True");
    assert!(given_up["message"].as_str().unwrap_or_default().starts_with("kim accepted"));
}

#[test]
fn what_it_does_not_name_exactly_is_refused_and_untouched() {
    let cases = [
        (json!({"spec": {"epoch": 6}}), "the epoch is 7; the ForceRelease names 6"),
        (json!({"spec": {"owner": reference("b")}}), "the owner is a; the ForceRelease names b"),
        (
            json!({"spec": {"owner": {"uid": "another"}}}),
            "with uid uid-a; the ForceRelease names uid another",
        ),
        (json!({"spec": {"grant": {"uid": "another"}}}), "is another one"),
    ];
    for (patch, wanted) in cases {
        let (world, run) = settled(force(patch), Some(granted("shop", "a", json!({}))));
        let (outcome, because) = outcome(&world);
        assert_eq!(outcome, "Refused");
        assert!(because.contains(wanted), "{because}");
        assert_eq!(run.writes.len(), 1);
        assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Granted");
        assert_eq!(run.events[0].reason, "ForceRefused");
        assert_eq!(run.events[0].importance, Importance::Warning);
        assert!(run.events[0].note.starts_with("Refused: "), "{}", run.events[0].note);
    }
}

#[test]
fn nothing_is_taken_from_nobody() {
    let released = granted("shop", "a", json!({"status": {"phase": "Released"}}));
    let (world, _) = settled(force(json!({})), Some(released));
    assert_eq!(outcome(&world).0, "Refused");
    let (world, run) = settled(force(json!({})), None);
    assert_eq!(
        outcome(&world),
        ("Refused".into(), format!("there is no grant {}", grant_of("shop")))
    );
    assert_eq!(run.events[0].about.kind, FORCE_RELEASE);
}

#[test]
fn a_refusal_rests_on_a_live_read() {
    let world = TestServers::of(&Fencing).with([force(json!({}))]);
    let step = Fencing.step(&Subject::from("force"), &world.view(), &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
}

#[test]
fn it_was_applied_even_if_the_grant_has_moved_on_since() {
    let onward =
        granted("shop", "b", json!({"status": {"epoch": 8, "fencedBy": reference("force")}}));
    let (world, run) = settled(force(json!({})), Some(onward));
    assert_eq!(outcome(&world).0, "Applied");
    assert_eq!(run.writes.len(), 1);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Granted");
}

#[test]
fn one_that_was_answered_is_left_alone_whatever_it_names() {
    let answered = force(json!({"status": {"outcome": "Refused"}}));
    let (_, run) = settled(answered, Some(granted("shop", "a", json!({}))));
    assert!(run.writes.is_empty());
}

#[test]
fn a_grant_wakes_those_that_wait_for_an_answer() {
    let mut answered = force(json!({"status": {"outcome": "Applied"}}));
    answered["metadata"] = json!({"name": "answered", "uid": "uid-answered"});
    let world = TestServers::of(&Fencing).with([
        granted("shop", "a", json!({})),
        force(json!({})),
        answered,
    ]);
    let grant = world.get(Place::HUB, &GRANT, &Name::cluster_wide(&grant_of("shop")));
    let watch = Watch::all(Place::HUB, &GRANT);
    let woken = Fencing.subjects(&watch, &grant.expect("a grant"), &world.view());
    assert_eq!(woken, [Subject::from("force")]);
}

#[test]
fn broken_objects_do_not_break_it() {
    let last = pin("data", &json!({"restic": {"secret": "s", "snapshotID": "last"}}));
    survives(&Fencing, &NoMachine, &[force(json!({})), with_data("Filled", last)]);
}
