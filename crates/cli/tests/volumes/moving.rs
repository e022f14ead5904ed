//! A namespace moves: what saved it where it was saves nothing there any more.

use super::harness::until;
use super::up::{Space, Up, VOLSYNC, condition, typed};
use serde_json::{Value, json};
use std::path::Path;

const SOURCE: &str = "ReplicationSource";

/// The snapshots of a repository, by id.
fn snapshots(repository: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(repository.join("snapshots")).expect("there is a repository");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// Has sources written at the hub, and carried down to both clusters.
fn carry_sources(up: &Up) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in interlock_api::volume_definitions() {
        let definition = serde_json::to_value(definition).expect("a definition");
        up.client().must("POST", definitions, Some(&definition));
    }
    let (group, version) = VOLSYNC.split_once('/').expect("it has both");
    let kind = json!({
        "group": group, "version": version, "kind": SOURCE, "plural": "replicationsources",
    });
    for cluster in ["west", "east"] {
        let path = format!("/apis/interlock.dev/v1alpha1/workloadclusters/{cluster}");
        let change = json!({"spec": {"resources": [kind]}});
        up.client().must("PATCH", &path, Some(&change));
    }
    up.kill_and_start_again();
}

/// The source on a cluster that does not run its namespace, which it says.
fn is_left_alone(space: &Space<'_>) -> Value {
    let source = space.get(SOURCE, "data");
    assert_eq!(condition(&source, "interlock.dev/Healthy")["reason"], "NotHere", "{source:#}");
    source
}

#[test]
fn a_source_of_a_namespace_that_left_saves_nothing_until_it_is_back() {
    let up = Up::start_two();
    carry_sources(&up);
    let west = up.place("shop", "echo first > data/file; sleep 600");
    let east = Space { cluster: "east", ..west.clone() };
    let written = west.bound("data").join("file");
    until("the pod has written", || written.is_file().then_some(()).ok_or(String::new()));
    let repository = up.path("repository");
    let hub = |plural: &str, object: &Value| {
        let path = match plural {
            "secrets" => "/api/v1/namespaces/shop/secrets".to_owned(),
            other => format!("/apis/{VOLSYNC}/namespaces/shop/{other}"),
        };
        up.client().must("POST", &path, Some(object));
    };
    let keys = json!({"RESTIC_REPOSITORY": repository, "RESTIC_PASSWORD": "correct horse"});
    hub("secrets", &json!({"metadata": {"name": "repo"}, "stringData": keys}));
    let restic = json!({"repository": "repo", "copyMethod": "Snapshot"});
    let spec = json!({"sourcePVC": "data", "trigger": {"manual": "first"}, "restic": restic});
    let source = json!({"metadata": {"name": "data"}, "spec": spec});
    hub("replicationsources", &typed(SOURCE, &source));
    west.answers(SOURCE, "data", "first");

    up.place_on("shop", "east");
    let message = west.fails(SOURCE, "data", "NotHere");
    assert!(message.contains(&format!("kubectl get grant {}", west.name)), "{message}");
    east.bound("data");
    // Somebody sets a tag at the hub, and somebody else one on the cluster that was left.
    let path = format!("/apis/{VOLSYNC}/namespaces/shop/replicationsources/data");
    let change = json!({"spec": {"trigger": {"manual": "second"}}});
    up.client().must("PATCH", &path, Some(&change));
    west.trigger(SOURCE, "data", "second");
    let saved = east.answers(SOURCE, "data", "second");
    let id = saved["status"]["external"]["snapshotID"].as_str().expect("it says which");
    assert_eq!(snapshots(&repository), [id], "the newest one is of where it runs");
    let left = is_left_alone(&west);
    assert_eq!(left["status"]["lastManualSync"], "first", "{left:#}");
    // One that was left behind is nobody's trouble.
    let (code, said) = up.run(&["status", "volumes"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("NotHere"), "{said}");

    // It comes back, and so does what saves it; now the other one holds still.
    up.place_on("shop", "west");
    east.fails(SOURCE, "data", "NotHere");
    west.answers(SOURCE, "data", "second");
    is_left_alone(&east);
}
