//! Moves between clusters that share no folder: the data goes through a restic repository.

use super::chaos::{Done, MOVES, Random, seed};
use super::fleet::{Fleet, GROUP, until};
use super::processes::{Watcher, writers};
use serde_json::{Value, json};
use std::path::PathBuf;

const SECRETS: &str = "/api/v1/namespaces/ledger/secrets";

/// Has every namespace moved through a repository; the Secret is made with it, or not yet.
fn through_repository(fleet: &Fleet, keep_superseded: &str) {
    let placement = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Placement",
        "metadata": {"name": "through-repository"},
        "spec": {
            "namespaceSelector": {}, "clusterSelector": {},
            "volumes": {"transport": "Restic", "repository": "backup",
                "keepSuperseded": keep_superseded},
        },
    });
    fleet.client().must("POST", &format!("{GROUP}/placements"), Some(&placement));
}

fn secret(fleet: &Fleet) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "backup"},
        "stringData": {
            "RESTIC_REPOSITORY": fleet.path("repository"), "RESTIC_PASSWORD": "a long one",
        },
    })
}

/// The snapshots in the repository.
fn snapshots(fleet: &Fleet) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fleet.path("repository/snapshots"));
    let paths = entries.into_iter().flatten().map(|entry| entry.expect("readable").path());
    paths.collect()
}

#[test]
fn a_writer_moves_ten_times_through_a_repository_under_random_kills_and_loses_nothing() {
    let fleet = Fleet::apart(&["west", "east"]);
    through_repository(&fleet, "168h");
    let numbers = fleet.numbers();
    let watcher = Watcher::of(numbers.directory());
    let uid = fleet.place_in_claim("ledger", "west", &numbers);
    fleet.client().must("POST", SECRETS, Some(&secret(&fleet)));
    fleet.writes_on("ledger", &uid, "west");
    let (mut random, mut done) = (Random(seed()), Done::default());
    for to in ["east", "west"].iter().cycle().take(MOVES) {
        fleet.place_on("ledger", to);
        done.disturb(&fleet, "ledger", &uid, &mut random);
        let grant = fleet.writes_on("ledger", &uid, to);
        let count = numbers.prove_all_are_in(&fleet.volumes(to));
        let pin = &grant["status"]["pins"][0];
        assert_eq!(pin["snapshot"]["restic"]["secret"], "backup", "{grant:#}");
        assert_ne!(pin["digest"], "", "what arrived was held against what left");
        eprintln!("on {to}: {count} records, all there");
    }
    let (found, grant) = (writers(numbers.directory()), fleet.grant("ledger", &uid));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(grant["status"]["epoch"], 1 + MOVES as i64, "every move is one epoch");
    assert!(snapshots(&fleet).len() >= MOVES, "each epoch left its own");
    let seen = watcher.saw();
    assert!(seen.together.is_empty(), "two writers at once (seed {}): {seen:?}", seed());
    assert!(done.in_the_middle > 0, "too little: {done:?}");
    fleet.delete("ledger");
    let epochs: Vec<i64> = (1..=1 + MOVES as i64).collect();
    assert_eq!(numbers.prove_one_writer_after_another(), epochs, "every owner wrote");
    fleet.end(&[]);
}

#[test]
fn a_missing_secret_stops_a_move_with_a_word_and_it_goes_on_when_it_comes() {
    let fleet = Fleet::apart(&["west", "east"]);
    through_repository(&fleet, "168h");
    let numbers = fleet.numbers();
    let uid = fleet.place_in_claim("ledger", "west", &numbers);
    fleet.writes_on("ledger", &uid, "west");
    // The command looks first, and stops nothing.
    let said = fleet.run(&["move", "ledger", "--to", "east"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("kubectl create secret generic backup"), "{said:?}");
    fleet.writes_on("ledger", &uid, "west");
    fleet.place_on("ledger", "east");
    let said = until("it says what is missing", || {
        let grant = fleet.grant("ledger", &uid);
        let conditions = grant["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|found| found["reason"] == "SecretIncomplete");
        found.ok_or_else(|| fleet.story(&grant))
    });
    let next = said["next"].as_str().expect("a command");
    assert!(next.contains("kubectl create secret generic backup -n ledger"), "{said}");
    fleet.client().must("POST", SECRETS, Some(&secret(&fleet)));
    fleet.writes_on("ledger", &uid, "east");
    numbers.prove_all_are_in(&fleet.volumes("east"));
    fleet.end(&["ledger"]);
}

#[test]
fn what_earlier_moves_saved_leaves_the_repository_in_time() {
    let fleet = Fleet::apart(&["west", "east"]);
    // Long enough that each move is over before, and short enough to be waited for.
    through_repository(&fleet, "5s");
    let numbers = fleet.numbers();
    let uid = fleet.place_in_claim("ledger", "west", &numbers);
    fleet.client().must("POST", SECRETS, Some(&secret(&fleet)));
    fleet.writes_on("ledger", &uid, "west");
    for to in ["east", "west", "east"] {
        fleet.place_on("ledger", to);
        fleet.writes_on("ledger", &uid, to);
    }
    let pinned = fleet.grant("ledger", &uid)["status"]["pins"][0]["snapshot"]["restic"].clone();
    let pinned = pinned["snapshotID"].as_str().expect("a snapshot").to_owned();
    until("only the snapshot that it started from is left", || {
        let left = snapshots(&fleet);
        let is_pinned = |path: &PathBuf| path.ends_with(&pinned);
        assert!(left.iter().any(is_pinned), "{pinned} is gone: {left:?}");
        match left.len() {
            1 => Ok(()),
            _ => Err(fleet.story(&json!(left))),
        }
    });
    // And it can still be started from.
    fleet.place_on("ledger", "west");
    fleet.writes_on("ledger", &uid, "west");
    numbers.prove_all_are_in(&fleet.volumes("west"));
    fleet.end(&["ledger"]);
}
