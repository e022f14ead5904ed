//! Clusters and namespaces that are deleted.

use super::fleet::{Fleet, GROUP, condition, until};
use serde_json::json;

#[test]
fn a_cluster_that_holds_something_is_not_deleted() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let uid = fleet.place("ledger", "west", &numbers);
    let grant = fleet.writes_on("ledger", &uid, "west");
    let name = grant["metadata"]["name"].as_str().expect("it has one");
    let west = format!("{GROUP}/workloadclusters/west");
    fleet.client().must("DELETE", &west, None);
    let told = |words: &[&str]| {
        until("the cluster says what it has", || {
            let cluster = fleet.get(&west);
            let emptied = condition(&cluster, "Emptied");
            let said = format!("{} {}", emptied["message"], emptied["next"]);
            let is_reported = words.iter().all(|word| said.contains(word));
            if is_reported { Ok(()) } else { Err(fleet.story(&cluster)) }
        });
    };
    told(&[name, "the cluster owns 1 grant", "interlock move --all-from west"]);

    let said = fleet.run(&["move", "ledger", "--to", "east", "--wait", "--timeout", "180s"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let grant = fleet.writes_on("ledger", &uid, "east");
    let grant_uid = grant["metadata"]["uid"].as_str().expect("it has one");
    told(&["Superseded", &format!("interlock.dev/forget-copies={grant_uid}")]);

    let forget = json!({"metadata": {"annotations": {"interlock.dev/forget-copies": grant_uid}}});
    fleet.client().must("PATCH", &west, Some(&forget));
    until("the cluster is deleted", || {
        let cluster = fleet.get(&west);
        if cluster.is_null() { Ok(()) } else { Err(fleet.story(&cluster)) }
    });
    assert_eq!(numbers.prove_one_writer_after_another(), [1, 2]);
    fleet.end(&["ledger"]);
}

#[test]
fn a_namespace_made_again_never_inherits_the_grant() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let uid = fleet.place("ledger", "west", &numbers);
    let first = fleet.writes_on("ledger", &uid, "west");

    // In the middle of a move: west is reported to let go, and cannot answer.
    fleet.kill("west");
    fleet.place_on("ledger", "east");
    until("west is reported to let go", || {
        let grant = fleet.grant("ledger", &uid);
        if grant["status"]["phase"] == "Revoking" { Ok(()) } else { Err(fleet.story(&grant)) }
    });
    fleet.client().must("DELETE", "/api/v1/namespaces/ledger", None);
    fleet.start("west");
    until("the namespace is being deleted", || {
        let found = fleet.get("/api/v1/namespaces/ledger");
        let grant = fleet.grant("ledger", &uid);
        if found.is_null() { Ok(()) } else { Err(fleet.story(&json!([found, grant]))) }
    });
    assert_eq!(numbers.prove_one_writer_after_another(), [1], "east never had it");

    let again = fleet.place("ledger", "east", &numbers);
    let second = fleet.writes_on("ledger", &again, "east");
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
    assert_eq!(second["status"]["epoch"], 1);
    assert!(fleet.grant("ledger", &uid).is_null(), "the first one's grant went with it");
    assert!(fleet.downstream("west", "ledger", &uid).is_null(), "and what it had on west");
    assert!(!fleet.downstream("east", "ledger", &again).is_null());
    assert!(fleet.downstream("west", "ledger", &again).is_null());
    fleet.end(&["ledger"]);
}
