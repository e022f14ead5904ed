//! `interlock status` and `interlock explain`.

use super::world::{TestHub, condition};
use serde_json::{Value, json};

#[test]
fn a_fleet_at_rest_exits_with_0() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let words = ["the 1 placed namespace is settled", "east     yes    yes        0", "next: "];
    world.run(&["status"]).answers(0, &words);
    world.run(&["status", "shop"]).answers(0, &["shop runs on west, as desired (epoch 3)"]);
    world.run(&["explain", "shop"]).answers(0, &["next: interlock move shop --to east --wait"]);
}

#[test]
fn a_silent_owner_exits_with_1_and_gives_the_exact_command() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    world.heard("west", false);
    world.run(&["status"]).answers(1, &["1 namespace blocked", "OwnerUnreachable"]);
    let command = "next: interlock force-release shop --owner west --epoch 3 --attest powered-off";
    world.run(&["explain", "shop"]).answers(1, &["shop is blocked on west", command]);
    world.run(&["status", "--clusters"]).answers(1, &["west     yes    no, for "]);
}

#[test]
fn the_form_for_programs_is_json() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let answer = |args: &[&str]| -> Value {
        let said = world.run(args);
        assert_eq!(said.code, Some(0), "{said:#?}");
        serde_json::from_str(&said.out).expect("it is JSON")
    };
    let fleet = answer(&["status", "-o", "json"]);
    assert_eq!(fleet["health"], "settled");
    assert_eq!(fleet["phases"], json!({"Granted": 1}));
    assert_eq!(fleet["clusters"][1]["grants"], 1);
    assert_eq!(answer(&["status", "--clusters", "-o", "json"])[0]["name"], "east");
    let page = answer(&["status", "shop", "-o", "json"]);
    assert_eq!((&page["owner"], &page["epoch"]), (&json!("west"), &json!(3)));
    assert_eq!(page["copies"][0]["state"], "Live");
    let told = answer(&["explain", "shop", "-o", "json"]);
    assert_eq!((&told["health"], &told["reason"]), (&json!("settled"), &json!("Running")));
    assert_eq!(told["clusters"][0], json!({"name": "east", "unfit_reason": null}));
}

#[test]
fn events_of_the_namespace_are_on_its_page() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "shop.1"},
        "involvedObject": {"apiVersion": "v1", "kind": "Namespace", "name": "shop"},
        "reason": "Granted", "message": "west has it at epoch 3", "type": "Normal",
        "lastTimestamp": condition("", "", "", "")["lastTransitionTime"],
    });
    world.client().must("POST", "/api/v1/namespaces/default/events", Some(&event));
    world.run(&["status", "shop"]).answers(0, &["Granted  west has it at epoch 3"]);
}

#[test]
fn a_namespace_that_is_not_there_is_answered_with_the_nearest() {
    let world = TestHub::new();
    world.namespace("shop", true);
    for command in ["status", "explain"] {
        world
            .run(&[command, "shpo"])
            .refuses(&["namespace `shpo` does not exist; did you mean `shop`?"]);
    }
}

#[test]
fn a_watch_shows_each_change_and_ends_on_ctrl_c() {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    let mut watching = world.start(&["status", "shop", "--watch"]);
    watching.shows("shop runs on west, as desired");
    world.status(&grant, &json!({"phase": "Revoking", "because": "Move"}));
    watching.shows("phase      Revoking (Move)");
    watching.interrupt();
    let said = watching.end();
    assert_eq!(said.code, Some(0), "{said:#?}");
}
