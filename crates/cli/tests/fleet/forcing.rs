//! `interlock force-release`.

use super::harness::TIMEOUT;
use super::world::{Said, TestHub};
use serde_json::{Value, json};
use std::time::Instant;

/// The command for `shop`, with these changes.
fn args<'a>(owner: &'a str, epoch: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["force-release", "shop", "--owner", owner, "--epoch", epoch];
    let attest = ["--attest", "powered-off", "--reason", "the rack burnt down"];
    [&fixed[..], &attest, more].concat()
}

fn silent_owner() -> (TestHub, String) {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    world.heard("west", false);
    (world, grant)
}

/// The one ForceRelease that there is, once it is there.
fn declared(world: &TestHub) -> Value {
    let began = Instant::now();
    loop {
        if let Some(force) = world.list("forcereleases").pop() {
            return force;
        }
        assert!(began.elapsed() < TIMEOUT, "no ForceRelease");
    }
}

fn answered(status: &Value) -> (Value, Said) {
    let (world, _) = silent_owner();
    let forcing = world.start(&args("west", "3", &["--yes"]));
    let force = declared(&world);
    let name = force["metadata"]["name"].as_str().expect("it has one");
    world.patch_status("forcereleases", name, status);
    (force, forcing.end())
}

#[test]
fn a_wrong_name_is_refused_and_what_is_there_is_said() {
    let (world, _) = silent_owner();
    let said = world.run(&args("west", "2", &["--yes"]));
    said.refuses(&[
        "the epoch of `shop` is 3, and --epoch is 2",
        "the owner is west at epoch 3 (Granted)",
    ]);
    let said = world.run(&args("east", "3", &["--yes"]));
    said.refuses(&["east does not own `shop`", "the owner is west at epoch 3"]);
    assert!(world.list("forcereleases").is_empty());
}

#[test]
fn without_an_owner_there_is_nothing_to_release() {
    let (world, grant) = silent_owner();
    world.status(&grant, &json!({"phase": "Released"}));
    world
        .run(&args("west", "3", &["--yes"]))
        .refuses(&["the grant of `shop` has no owner (Released"]);
}

#[test]
fn an_owner_that_sends_heartbeats_needs_more_than_a_word() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let said = world.run(&args("west", "3", &[]));
    said.refuses(&["west sends heartbeats", "interlock move shop --to CLUSTER", "--yes"]);
    assert!(world.list("forcereleases").is_empty());
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_done() {
    let (world, _) = silent_owner();
    world.run(&args("west", "3", &[])).refuses(&["no terminal to confirm on: add --yes"]);
    assert!(world.list("forcereleases").is_empty());
}

#[test]
fn the_loss_is_shown_for_each_claim_before_anything_is_done() {
    let (world, grant) = silent_owner();
    let taken = "2026-01-01T00:00:00Z";
    let snapshot = json!({
        "claim": "data", "claimUID": "u1", "epoch": 3, "taken": taken,
        "snapshot": {"restic": {"secret": "s", "snapshotID": "1"}},
    });
    world.status(
        &grant,
        &json!({"claims": [
            {"name": "data", "uid": "u1", "fill": "Filled", "lastSnapshot": snapshot},
            {"name": "logs", "uid": "u2", "fill": "Filled"},
        ]}),
    );
    let said = world.run(&args("west", "3", &[]));
    said.refuses(&[
        "data   ",
        "the writes of the last ",
        "logs   none",
        "all writes since the grant",
    ]);
}

#[test]
fn a_declaration_names_grant_owner_epoch_and_person() {
    let (force, said) = answered(&json!({"outcome": "Applied", "because": "west had epoch 3"}));
    said.answers(0, &["applied: west is declared gone for shop at epoch 3: west had epoch 3"]);
    let spec = &force["spec"];
    assert_eq!((&spec["epoch"], &spec["attestation"]), (&json!(3), &json!("PoweredOff")));
    assert_eq!(spec["owner"]["name"], "west");
    assert_eq!(spec["reason"], "the rack burnt down");
    assert_eq!(spec["requester"], "alice as operator");
    let grant = spec["grant"]["name"].as_str().expect("it names one");
    let name = force["metadata"]["name"].as_str().expect("it has one");
    assert!(name.starts_with(&format!("{grant}-3-")), "{name}");
}

#[test]
fn a_refusal_of_the_hub_exits_with_1() {
    let (_, said) = answered(
        &json!({"outcome": "Refused", "because": "the epoch is 4; the ForceRelease names 3"}),
    );
    said.answers(1, &["refused: the epoch is 4; the ForceRelease names 3"]);
}

#[test]
fn an_outcome_that_does_not_come_exits_with_1_and_the_declaration_stays() {
    let (world, _) = silent_owner();
    let said = world.run(&args("west", "3", &["--yes", "--timeout", "3s"]));
    said.answers(1, &["is not answered after 3 s", "next: kubectl get forcerelease shop-"]);
    assert_eq!(world.list("forcereleases").len(), 1);
}

#[test]
fn bad_words_are_refused_before_anything_is_asked() {
    let (world, _) = silent_owner();
    let said = world.run(&["force-release", "shop", "--owner", "west", "--epoch", "-1"]);
    said.refuses(&["--epoch"]);
    let base = ["force-release", "shop", "--owner", "west", "--epoch", "3", "--attest"];
    world
        .run(&[&base[..], &["hope", "--reason", "ten letters"]].concat())
        .refuses(&["powered-off"]);
    let said = world.run(&[&base[..], &["powered-off", "--reason", "short"]].concat());
    said.refuses(&["at least ten characters"]);
    assert!(world.list("forcereleases").is_empty());
}
