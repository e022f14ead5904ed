//! `interlock move`.

use super::harness::TIMEOUT;
use super::world::{TestHub, condition};
use serde_json::{Value, json};
use std::time::Instant;

/// Waits until the desired is written.
fn desired(world: &TestHub, namespace: &str, cluster: &str) {
    let began = Instant::now();
    while world.annotation(namespace)["interlock.dev/cluster"] != cluster {
        assert!(began.elapsed() < TIMEOUT, "no desired cluster on {namespace}");
    }
}

fn reference(world: &TestHub, cluster: &str) -> Value {
    json!({"name": cluster, "uid": world.uid_of_cluster(cluster)})
}

#[test]
fn a_move_writes_the_desired_cluster_and_leaves_the_rest_alone() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let said = world.run(&["move", "shop", "--to", "east"]);
    said.answers(
        0,
        &[
            "the desired cluster of shop is east; the owner is west (epoch 3)",
            "next: interlock status",
        ],
    );
    let annotations = world.annotation("shop");
    assert_eq!(annotations, json!({"interlock.dev/cluster": "east", "theirs": "stays"}));
}

#[test]
fn a_usage_error_exits_with_2_and_writes_nothing() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    world.namespace("alone", false);
    let nearest = "cluster `eats` does not exist; did you mean `east`?";
    world.run(&["move", "shop", "--to", "eats"]).refuses(&[nearest]);
    let nearest = "namespace `shpo` does not exist; did you mean `shop`?";
    world.run(&["move", "shpo", "--to", "east"]).refuses(&[nearest]);
    let label = "kubectl label namespace alone interlock.dev/placed=true";
    world.run(&["move", "alone", "--to", "east"]).refuses(&["is not placed", label]);
    world.run(&["move", "--all-from", "wets"]).refuses(&["did you mean `west`?"]);
    world.run(&["move", "--all-from", "west", "--to", "west"]).refuses(&["the same cluster"]);
    world.run(&["move", "shop"]).refuses(&["--to"]);
    world.run(&["move", "--to", "east"]).refuses(&["NAMESPACE"]);
    let time = ["move", "shop", "--to", "east", "--timeout", "soon"];
    world.run(&time).refuses(&["write 90s, 10m or 1h30m"]);
    assert_eq!(world.annotation("shop"), json!({"theirs": "stays"}));
}

#[test]
fn a_cluster_that_does_not_fit_is_warned_about() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let path = "/apis/interlock.dev/v1alpha1/workloadclusters/east";
    world.client().must("PATCH", path, Some(&json!({"spec": {"unschedulable": true}})));
    let said = world.run(&["move", "shop", "--to", "east"]);
    said.answers(0, &["the desired cluster of shop is east"]);
    let words =
        "warning: cluster east does not fit: Unschedulable, the cluster accepts no new namespaces";
    assert!(said.err.contains(words), "{said:#?}");
}

#[test]
fn a_namespace_that_runs_there_already_is_left_alone() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    world.run(&["move", "shop", "--to", "west", "--wait"]).answers(0, &["runs on west"]);
    world.run(&["move", "shop", "--to", "west"]).answers(0, &["shop already runs on west"]);
}

#[test]
fn a_move_is_followed_until_it_runs_there() {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    let mut moving = world.start(&["move", "shop", "--to", "east", "--wait"]);
    desired(&world, "shop", "east");
    moving.says("shop: Granted to west (waiting to be revoked)");
    world.status(&grant, &json!({"phase": "Revoking", "because": "Move"}));
    moving.says("shop: Revoking (stopping on west)");
    let stopped =
        [condition("Stopped", "True", "Stopped", ""), condition("Running", "False", "Stopped", "")];
    world.status(&grant, &json!({"phase": "Released", "conditions": stopped}));
    moving.says("shop: Released (waiting for the grant to east)");
    let claims = |fill: &str| json!([{"name": "data", "uid": "u", "fill": fill}]);
    let east = reference(&world, "east");
    world.status(
        &grant,
        &json!({"phase": "Granted", "epoch": 4, "owner": east, "claims": claims("Filling")}),
    );
    moving.says("shop: Granted to east (filling 0/1)");
    world.status(&grant, &json!({"claims": claims("Filled")}));
    moving.says("shop: Granted to east (starting)");
    world.status(&grant, &json!({"conditions": [condition("Running", "True", "Started", "")]}));
    moving.end().answers(0, &["shop runs on east (epoch 4), after "]);
}

#[test]
fn a_move_whose_owner_is_silent_stands_and_gives_the_exact_command() {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    world.heard("west", false);
    let moving = world.start(&["move", "shop", "--to", "east", "--wait"]);
    desired(&world, "shop", "east");
    let words = "west has sent no heartbeat since 12:00";
    let lost = condition("OwnerUnreachable", "True", "HeartbeatOld", words);
    world.status(&grant, &json!({"conditions": [lost]}));
    let command = "next: interlock force-release shop --owner west --epoch 3 --attest powered-off";
    moving.end().answers(1, &[&format!("shop is blocked: {words}"), command]);
}

#[test]
fn a_move_that_the_scheduler_refuses_is_blocked() {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    let moving = world.start(&["move", "shop", "--to", "east", "--wait"]);
    desired(&world, "shop", "east");
    let words = "its data would have to be copied, and nothing here can do that";
    let refused = condition("Placed", "False", "NeedsCopy", words);
    world.status(&grant, &json!({"conditions": [refused]}));
    moving.end().answers(1, &[&format!("shop is blocked: NeedsCopy: {words}")]);
}

#[test]
fn when_the_time_is_up_it_says_what_it_waits_for() {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    world.status(&grant, &json!({"phase": "Revoking"}));
    let said = world.run(&["move", "shop", "--to", "east", "--wait", "--timeout", "3s"]);
    said.answers(1, &["after 3 s, and the move continues", "waiting for west to stop"]);
}

#[test]
fn ctrl_c_leaves_the_move_going_on() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    let mut moving = world.start(&["move", "shop", "--to", "east", "--wait"]);
    moving.says("waiting to be revoked");
    moving.interrupt();
    let said = moving.end();
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(said.err.contains("interrupted: the move continues"), "{said:#?}");
    assert_eq!(world.annotation("shop")["interlock.dev/cluster"], "east");
}

#[test]
fn everything_on_a_cluster_goes_to_another() {
    let world = TestHub::new();
    world.granted("shop", "west", 3);
    world.granted("wiki", "west", 1);
    world.granted("blog", "east", 1);
    let said = world.run(&["move", "--all-from", "west", "--to", "east"]);
    said.answers(0, &["2 namespaces move from west to east"]);
    for (name, desired) in [("shop", json!("east")), ("wiki", json!("east")), ("blog", Value::Null)]
    {
        assert_eq!(world.annotation(name)["interlock.dev/cluster"], desired, "{name}");
    }
    assert_eq!(world.get("workloadclusters", "west")["spec"]["drain"], false);
}

#[test]
fn without_a_place_to_go_the_cluster_is_drained() {
    let world = TestHub::new();
    let grant = world.granted("shop", "west", 3);
    world.run(&["move", "shop", "--to", "west"]);
    let mut draining = world.start(&["move", "--all-from", "west", "--wait"]);
    draining.says("shop: Granted to west");
    assert_eq!(world.get("workloadclusters", "west")["spec"]["drain"], true);
    // A desired for the drained cluster would hold it there.
    assert_eq!(world.annotation("shop"), json!({"theirs": "stays"}));
    let east = reference(&world, "east");
    let conditions = [condition("Running", "True", "Started", "on east")];
    world.status(&grant, &json!({"phase": "Released"}));
    world.status(
        &grant,
        &json!({"phase": "Granted", "epoch": 4, "owner": east, "conditions": conditions}),
    );
    draining.end().answers(0, &["west is drained", "shop runs on east (epoch 4)"]);
}
