//! A StatefulSet whose ordinals write into the claim of its namespace, which is moved while everything is killed.

use super::chaos::{Done, MOVES, Random, seed};
use super::fleet::{Fleet, until};
use super::numbers::Numbers;
use super::processes::{Watcher, writers};
use serde_json::{Value, json};
use std::path::PathBuf;

const NAMESPACE: &str = "ledger";
const ORDINALS: [&str; 2] = ["db-0", "db-1"];

/// A StatefulSet each of whose pods writes into a folder of the claim `data` that is called like it, and acknowledges
/// in one outside.
fn stateful_set(outside: &str) -> Value {
    let script = format!(
        "mkdir -p data/$HOSTNAME && exec {} write-numbers {outside}/$HOSTNAME --into data/$HOSTNAME",
        env!("CARGO_BIN_EXE_interlock")
    );
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
        "replicas": ORDINALS.len(), "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [{
                "name": "db", "image": "none", "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }},
    }})
}

fn last_of(numbers: &Numbers) -> u64 {
    numbers.last().map_or(0, |record| record.number)
}

/// Waits until every ordinal writes on this cluster, in the epoch of the grant, which is then returned.
fn all_write_on(fleet: &Fleet, uid: &str, all: &[Numbers], cluster: &str) -> Value {
    let before: Vec<u64> = all.iter().map(last_of).collect();
    until(&format!("every ordinal writes on {cluster}"), || {
        let grant = fleet.grant(NAMESPACE, uid);
        let status = &grant["status"];
        let is_there = status["phase"] == "Granted" && status["owner"]["name"] == cluster;
        let writes = |numbers: &Numbers, before: u64| {
            numbers.prove_that_none_met();
            let new = numbers.last().filter(|record| record.number > before);
            new.is_some_and(|record| status["epoch"] == record.epoch)
        };
        let do_all = all.iter().zip(&before).all(|(numbers, before)| writes(numbers, *before));
        if is_there && do_all {
            return Ok(grant);
        }
        let name = interlock_api::names::downstream_namespace(NAMESPACE, uid);
        let pods = fleet.get(&format!("/clusters/{cluster}/api/v1/namespaces/{name}/pods"));
        let last: Vec<String> = all.iter().map(|it| format!("{:?}", it.last())).collect();
        Err(fleet.story(&json!([grant, pods, last])))
    })
}

/// Everything that an ordinal has acknowledged is in its folder of the claim on this cluster.
fn prove_all_are_there(fleet: &Fleet, all: &[Numbers], cluster: &str) {
    for (numbers, ordinal) in all.iter().zip(ORDINALS) {
        let volumes = fleet.volumes(cluster);
        let folders: Vec<PathBuf> = volumes.iter().map(|volume| volume.join(ordinal)).collect();
        let count = numbers.prove_all_are_in(&folders);
        eprintln!("on {cluster}: {count} records of {ordinal}, all there");
    }
}

#[test]
fn a_stateful_set_with_its_claim_moves_ten_times_under_random_kills_and_loses_nothing() {
    let fleet = Fleet::of(&["west", "east"]);
    let outside = fleet.path("ordinals");
    let all: Vec<Numbers> =
        ORDINALS.iter().map(|ordinal| Numbers::in_new(outside.join(ordinal))).collect();
    let watchers: Vec<Watcher> =
        all.iter().map(|numbers| Watcher::of(numbers.directory())).collect();
    let uid = fleet.place_empty(NAMESPACE, "west");
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}},
    }});
    let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
    fleet.client().must("POST", &claims, Some(&claim));
    let sets = format!("/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets");
    let set = stateful_set(&outside.display().to_string());
    fleet.client().must("POST", &sets, Some(&set));
    all_write_on(&fleet, &uid, &all, "west");

    let (mut random, mut done) = (Random(seed()), Done::default());
    for to in ["east", "west"].into_iter().cycle().take(MOVES) {
        fleet.place_on(NAMESPACE, to);
        done.disturb(&fleet, NAMESPACE, &uid, &mut random);
        let grant = all_write_on(&fleet, &uid, &all, to);
        let snapshot = &grant["status"]["pins"][0]["snapshot"]["volumeSnapshot"];
        assert_ne!(snapshot["cluster"]["name"], to, "its data came from the other one: {grant:#}");
        prove_all_are_there(&fleet, &all, to);
    }
    let grant = fleet.grant(NAMESPACE, &uid);
    assert_eq!(grant["status"]["epoch"], 1 + MOVES as i64, "every move is one epoch");
    for numbers in &all {
        let found = writers(numbers.directory());
        assert_eq!(found.len(), 1, "{found:?}");
    }
    fleet.delete(NAMESPACE);
    let epochs: Vec<i64> = (1..=1 + MOVES as i64).collect();
    for ((numbers, watcher), ordinal) in all.iter().zip(watchers).zip(ORDINALS) {
        let seen = watcher.saw();
        let twice = &seen.together;
        assert!(twice.is_empty(), "two processes of {ordinal} (seed {}): {seen:?}", seed());
        assert!(seen.with_one > 100, "too little: {seen:?}");
        let left = writers(numbers.directory());
        assert!(left.is_empty(), "{ordinal} outlived its namespace: {left:?}");
        assert_eq!(numbers.prove_one_writer_after_another(), epochs, "every owner wrote");
    }
    assert!(done.in_the_middle > 0, "too little: {done:?}");
    eprintln!("{done:?}");
    fleet.end(&[]);
}
