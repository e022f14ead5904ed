//! Clusters that are drained before they are updated.

use super::super::fleet::{Fleet, GROUP, condition, until};
use super::{Asked, OUTCOMES, UPDATES, ends_as, has_exactly, map, story, until_one_of};
use serde_json::{Value, json};

/// How long a request may wait for its drain: an agent has checked it long before that.
const START_DEADLINE_SECONDS: u32 = 20;

fn cluster(fleet: &Fleet, name: &str) -> Value {
    fleet.get(&format!("{GROUP}/workloadclusters/{name}"))
}

fn drains(cluster: &Value) -> usize {
    cluster["spec"]["drains"].as_array().map_or(0, Vec::len)
}

/// A namespace stays where it is, and no longer asks for that cluster by name: it may be moved away.
fn unpin(fleet: &Fleet, namespace: &str) {
    let body = json!({"metadata": {"annotations": {"interlock.dev/cluster": null}}});
    fleet.client().must("PATCH", &format!("/api/v1/namespaces/{namespace}"), Some(&body));
}

/// Waits until nobody drains a cluster any more, and it says so.
fn takes_namespaces_again(fleet: &Fleet, name: &str) {
    until(&format!("{name} is drained for nobody"), || {
        let found = cluster(fleet, name);
        let is_said = found["status"]["drained"].as_array().is_none_or(Vec::is_empty);
        let is_over = drains(&found) == 0 && is_said && condition(&found, "Drained").is_null();
        if is_over { Ok(()) } else { Err(story(fleet, &found)) }
    });
}

fn drained_first(name: &'static str, cluster: &'static str) -> Asked<'static> {
    let how = json!({"drainFirst": true, "startDeadlineSeconds": START_DEADLINE_SECONDS});
    Asked { name, cluster, objects: vec![map("app", name)], how }
}

#[test]
fn a_namespace_moves_away_with_its_data_before_the_update_and_may_come_back_after_it() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let uid = fleet.place_in_claim("ledger", "west", &numbers);
    fleet.writes_on("ledger", &uid, "west");
    let before = numbers.prove_all_are_in(&fleet.volumes("west"));
    unpin(&fleet, "ledger");
    let mut asked = drained_first("v1", "west");
    asked.how["startDeadlineSeconds"] = json!(600);
    asked.submit(&fleet);

    // Nothing is applied while the cluster has the namespace.
    let begun = ["Applying", "Verifying", "RollingBack"];
    until_one_of(&fleet, "v1", &[&begun[..], &OUTCOMES[..]].concat());
    let grant = fleet.grant("ledger", &uid);
    let is_held = ["Granted", "Revoking"].iter().any(|phase| grant["status"]["phase"] == *phase);
    assert!(!is_held || grant["status"]["owner"]["name"] != "west", "{grant:#}");
    ends_as(&fleet, "v1", "Succeeded");
    has_exactly(&fleet, &[("app", "v1")]);
    fleet.writes_on("ledger", &uid, "east");
    let after = numbers.prove_all_are_in(&fleet.volumes("east"));
    assert!(after > before, "{before} records before the update, and {after} after it");

    takes_namespaces_again(&fleet, "west");
    fleet.place_on("ledger", "west");
    fleet.writes_on("ledger", &uid, "west");
    assert!(numbers.prove_all_are_in(&fleet.volumes("west")) > after);
    assert_eq!(numbers.prove_one_writer_after_another(), [1, 2, 3]);
    fleet.end(&["ledger"]);
}

/// A namespace on a cluster, whose pod takes its whole grace period to stop: it does not leave within a moment.
fn place_slow(fleet: &Fleet, namespace: &str, cluster: &str) -> String {
    let mark = fleet.path(&format!("{namespace}.runs"));
    let script = format!("trap '' TERM; touch {}; while :; do sleep 0.1; done", mark.display());
    let uid = fleet.place_command(namespace, cluster, &json!(["sh", "-c", script]));
    until(&format!("{namespace} runs on {cluster}"), || {
        if mark.exists() { Ok(()) } else { Err(story(fleet, &Value::Null)) }
    });
    unpin(fleet, namespace);
    uid
}

fn unschedulable(fleet: &Fleet, name: &str, is_so: bool) {
    let path = format!("{GROUP}/workloadclusters/{name}");
    fleet.client().must("PATCH", &path, Some(&json!({"spec": {"unschedulable": is_so}})));
}

#[test]
fn two_clusters_that_drain_into_each_other_give_up_and_keep_no_drain() {
    let fleet = Fleet::of(&["west", "east"]);
    let both = ["west", "east"];
    let placed = [
        ("green", place_slow(&fleet, "green", "west")),
        ("blue", place_slow(&fleet, "blue", "east")),
    ];
    // No namespace leaves before both clusters are to be drained.
    for name in both {
        unschedulable(&fleet, name, true);
    }
    drained_first("v1-west", "west").submit(&fleet);
    drained_first("v1-east", "east").submit(&fleet);
    until("both clusters are to be drained", || {
        let found = both.map(|name| cluster(&fleet, name));
        match found.iter().all(|it| drains(it) == 1) {
            true => Ok(()),
            false => Err(story(&fleet, &fleet.get(UPDATES))),
        }
    });
    for name in both {
        unschedulable(&fleet, name, false);
    }
    for name in ["v1-west", "v1-east"] {
        let status = ends_as(&fleet, name, "Failed");
        assert_eq!(status["reason"], "DrainStuck", "{status:#}");
        let message = status["message"].as_str().unwrap_or_default();
        assert!(message.contains("the cluster owns 1 grant ("), "{status:#}");
        let seconds = format!("within {START_DEADLINE_SECONDS} s");
        assert!(message.contains(&seconds), "{status:#}");
    }
    for name in both {
        takes_namespaces_again(&fleet, name);
    }
    for (namespace, uid) in &placed {
        until(&format!("{namespace} has an owner"), || {
            let grant = fleet.grant(namespace, uid);
            match grant["status"]["phase"] == "Granted" {
                true => Ok(()),
                false => Err(story(&fleet, &grant)),
            }
        });
    }
    has_exactly(&fleet, &[]);
    fleet.end(&["green", "blue"]);
}
