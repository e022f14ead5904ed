//! What a tenant stores: live bytes, and history.

use crate::asking::{Asker, DEADLINE};
use crate::{CONFIG_MAPS, Tenants};
use interlock_apiserver::limits::Caps;
use interlock_apiserver::{Config, Server};
use serde_json::{Value, json};
use std::time::Instant;

const CLUSTERS: &str = "/apis/interlock.dev/v1alpha1/logicalclusters";

fn large(name: &str, bytes: usize) -> Value {
    json!({"metadata": {"name": name}, "data": {"x": "y".repeat(bytes)}})
}

/// Stores until the quota is used up, and returns the refusal.
async fn fill_up(who: &Asker) -> Value {
    for number in 0..1000 {
        let answer = who.post(CONFIG_MAPS, &large(&format!("large-{number}"), 50_000)).await;
        if answer.code != 201 {
            assert_eq!(answer.code, 403, "{}", answer.text());
            return answer.json;
        }
    }
    panic!("a thousand are taken");
}

#[tokio::test]
async fn a_tenant_that_stores_too_much_is_refused_and_can_delete_and_the_neighbour_stores_on() {
    let tenants =
        Tenants::with(Caps { stored_bytes_per_cluster: 1 << 20, ..Caps::default() }).await;
    let refused = fill_up(&tenants.loud).await;
    assert_eq!(refused["reason"], "Forbidden");
    let message = refused["message"].as_str().expect("a message");
    assert!(message.starts_with("configmaps \"large-"), "{message}");
    assert!(
        message.contains("exceeded quota of bytes: the logical cluster \"loud\" stores"),
        "{message}"
    );
    assert!(message.contains("its limit is 1048576; delete objects"), "{message}");
    tenants.neighbour_is_served().await;
    // What is there can be changed a little, but not made much larger.
    let first = format!("{CONFIG_MAPS}/large-0");
    let small = tenants.loud.merge(&first, &json!({"data": {"note": "a little more"}})).await;
    assert_eq!(small.code, 200, "{}", small.text());
    let grown = tenants.loud.merge(&first, &json!({"data": {"more": "y".repeat(200_000)}})).await;
    assert_eq!(grown.code, 403, "{}", grown.text());
    let shrunk = tenants.loud.merge(&first, &json!({"data": {"x": "y".repeat(40_000)}})).await;
    assert_eq!(shrunk.code, 200, "{}", shrunk.text());
    // Deletions work, at once and by halves.
    let held = json!({"metadata": {"finalizers": ["example.com/wait"]}});
    assert_eq!(tenants.loud.merge(&first, &held).await.code, 200);
    assert_eq!(tenants.loud.delete(&first).await.code, 200);
    let freed = json!({"metadata": {"finalizers": null}});
    assert_eq!(tenants.loud.merge(&first, &freed).await.code, 200);
    assert_eq!(tenants.loud.get(&first).await.code, 404);
    assert_eq!(tenants.loud.delete(&format!("{CONFIG_MAPS}/large-1")).await.code, 200);
    assert_eq!(tenants.loud.post(CONFIG_MAPS, &large("again", 40_000)).await.code, 201);
}

#[tokio::test]
async fn a_logical_cluster_has_a_limit_of_its_own_if_it_says_so() {
    let tenants =
        Tenants::with(Caps { stored_bytes_per_cluster: 1 << 20, ..Caps::default() }).await;
    fill_up(&tenants.loud).await;
    let admin = Asker::admin(&tenants.server);
    let loud = format!("{CLUSTERS}/loud");
    let raised = admin.merge(&loud, &json!({"spec": {"storageLimitBytes": 2 << 20}})).await;
    assert_eq!(raised.code, 200, "{}", raised.text());
    assert_eq!(tenants.loud.post(CONFIG_MAPS, &large("now", 50_000)).await.code, 201);
    let none = admin.merge(&loud, &json!({"spec": {"storageLimitBytes": 0}})).await;
    assert_eq!(none.code, 422, "{}", none.text());
    let lowered = admin.merge(&loud, &json!({"spec": {"storageLimitBytes": 1000}})).await;
    assert_eq!(lowered.code, 200, "{}", lowered.text());
    assert_eq!(tenants.loud.post(CONFIG_MAPS, &large("then", 10)).await.code, 403);
    assert_eq!(tenants.loud.get(CONFIG_MAPS).await.code, 200);
}

#[tokio::test]
async fn what_is_stored_counts_after_a_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config {
        data_directory: Some(directory.path().to_owned()),
        limits: Caps { stored_bytes_per_cluster: 1 << 20, ..Caps::default() },
        ..Config::default()
    };
    let server = Server::start(config.clone()).await.expect("a server");
    let tenants = Tenants::of(server).await;
    fill_up(&tenants.loud).await;
    tenants.server.stop().await;
    drop(tenants);
    let server = Server::start(config).await.expect("a server");
    let admin = Asker::admin(&server);
    let loud = admin.clone().in_cluster("loud");
    assert_eq!(loud.post(CONFIG_MAPS, &large("more", 50_000)).await.code, 403);
    assert_eq!(admin.in_cluster("quiet").post(CONFIG_MAPS, &large("more", 50_000)).await.code, 201);
}

#[tokio::test]
async fn a_flood_of_changes_does_not_end_the_neighbours_watches() {
    let store =
        interlock_store::Options { history_bytes: 1 << 20, ..interlock_store::Options::default() };
    let config = Config { store, ..Config::default() };
    let tenants = Tenants::of(Server::start(config).await.expect("a server")).await;
    let version =
        |list: &Value| list["metadata"]["resourceVersion"].as_str().expect("one").to_owned();
    let before = version(&tenants.quiet.get(CONFIG_MAPS).await.json);
    tenants.quiet.make(CONFIG_MAPS, &large("mine", 10)).await;
    tenants.loud.make(CONFIG_MAPS, &large("theirs", 10)).await;
    let floor = tenants.metric("interlock_store_floor").await;
    let began = Instant::now();
    let mut number = 0;
    while tenants.metric("interlock_store_floor").await == floor {
        number += 1;
        let patch = json!({"data": {"x": format!("{number}{}", "y".repeat(100_000))}});
        assert_eq!(tenants.loud.merge(&format!("{CONFIG_MAPS}/theirs"), &patch).await.code, 200);
        assert!(began.elapsed() < DEADLINE, "the history is never cut");
    }
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={before}");
    let seen = tenants.quiet.watch(&path).await.1.next().await.expect("an event");
    assert_eq!(
        (&seen["type"], &seen["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("mine"))
    );
    let lost = tenants.loud.watch(&path).await.1.next().await.expect("an event");
    assert_eq!((&lost["type"], &lost["object"]["code"]), (&json!("ERROR"), &json!(410)));
}
