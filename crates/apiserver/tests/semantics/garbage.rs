//! Garbage collection: what is owned follows its owners.

use crate::custom::{WIDGETS, widgets};
use crate::support::{Api, MAPS, text};
use serde_json::{Value, json};

fn owned_by(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    })
}

/// A config map with these owners.
async fn dependent(api: &Api, name: &str, owners: &[Value]) -> Value {
    let body = json!({"metadata": {"name": name, "ownerReferences": owners}});
    api.post(MAPS, &body).await.made()
}

fn path(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test]
async fn in_the_background_the_owner_goes_first() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    let child = dependent(&api, "child", &[owned_by(&owner, true)]).await;
    dependent(&api, "grandchild", &[owned_by(&child, true)]).await;
    api.config_map("stranger", json!({})).await;
    let options = json!({"propagationPolicy": "Background"});
    api.delete_with(&path("owner"), &options).await.ok();
    api.get(&path("owner")).await.refused(404, "NotFound");
    api.until_gone(&path("child")).await;
    api.until_gone(&path("grandchild")).await;
    api.get(&path("stranger")).await.ok();
}

#[tokio::test]
async fn without_a_word_dependents_go_in_the_background() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    dependent(&api, "child", &[owned_by(&owner, false)]).await;
    api.delete(&path("owner")).await.ok();
    api.until_gone(&path("child")).await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_waits_for_those_that_block_it() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    let body = json!({"metadata": {
        "name": "child", "ownerReferences": [owned_by(&owner, true)],
        "finalizers": ["example.com/hold"],
    }});
    api.post(MAPS, &body).await.made();
    let body = json!({"metadata": {
        "name": "loose", "ownerReferences": [owned_by(&owner, false)],
        "finalizers": ["example.com/hold"],
    }});
    api.post(MAPS, &body).await.made();
    let options = json!({"propagationPolicy": "Foreground"});
    let going = api.delete_with(&path("owner"), &options).await.ok();
    assert_eq!(going["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    let is_terminating =
        |answer: &crate::support::Answer| answer.body["metadata"]["deletionTimestamp"].is_string();
    api.until(&path("child"), is_terminating).await;
    api.until(&path("loose"), is_terminating).await;
    api.get(&path("owner")).await.ok();
    let free = json!({"metadata": {"finalizers": null}});
    api.merge(&path("child"), &free).await.ok();
    api.until_gone(&path("owner")).await;
    api.get(&path("loose")).await.ok();
}

#[tokio::test]
async fn the_foreground_goes_down_the_whole_tree() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    let child = dependent(&api, "child", &[owned_by(&owner, true)]).await;
    dependent(&api, "grandchild", &[owned_by(&child, true)]).await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true")).await;
    api.delete(&format!("{}?propagationPolicy=Foreground", path("owner"))).await.ok();
    let mut gone = Vec::new();
    while gone.len() < 3 {
        let (sort, name) = watch.seen().await;
        if sort == "DELETED" {
            gone.push(name);
        }
    }
    assert_eq!(gone, ["grandchild", "child", "owner"]);
}

#[tokio::test]
async fn orphans_are_let_go() {
    let api = Api::new().await;
    for options in [json!({"propagationPolicy": "Orphan"}), json!({"orphanDependents": true})] {
        let owner = api.config_map("owner", json!({})).await;
        let other = api.config_map("other", json!({})).await;
        dependent(&api, "child", &[owned_by(&owner, true)]).await;
        dependent(&api, "shared", &[owned_by(&owner, true), owned_by(&other, true)]).await;
        api.delete_with(&path("owner"), &options).await.ok();
        api.until_gone(&path("owner")).await;
        let child = api.get(&path("child")).await.ok();
        assert_eq!(child["metadata"].get("ownerReferences"), None);
        let shared = api.get(&path("shared")).await.ok();
        assert_eq!(shared["metadata"]["ownerReferences"], json!([owned_by(&other, true)]));
        for name in ["other", "child"] {
            api.delete(&path(name)).await.ok();
        }
        api.until_gone(&path("shared")).await;
    }
}

#[tokio::test]
async fn the_last_owner_takes_its_dependents_along() {
    let api = Api::new().await;
    let first = api.config_map("first", json!({})).await;
    let second = api.config_map("second", json!({})).await;
    let owners = [owned_by(&first, false), owned_by(&second, false)];
    dependent(&api, "child", &owners).await;
    api.delete(&path("first")).await.ok();
    let has_one_owner = |answer: &crate::support::Answer| {
        answer.body["metadata"]["ownerReferences"].as_array().is_some_and(|list| list.len() == 1)
    };
    let child = api.until(&path("child"), has_one_owner).await.ok();
    assert_eq!(child["metadata"]["ownerReferences"], json!([owners[1]]));
    api.delete(&path("second")).await.ok();
    api.until_gone(&path("child")).await;
}

#[tokio::test]
async fn an_owner_that_never_was_owns_nothing() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    let mut forged = owned_by(&owner, false);
    forged["uid"] = json!("00000000-0000-4000-8000-000000000000");
    dependent(&api, "of-another", &[forged]).await;
    api.until_gone(&path("of-another")).await;
    let mut nobody = owned_by(&owner, false);
    nobody["name"] = json!("nobody");
    dependent(&api, "of-nobody", &[nobody]).await;
    api.until_gone(&path("of-nobody")).await;
    api.get(&path("owner")).await.ok();
    let mut cluster_wide = owned_by(&api.namespace("n").await, false);
    dependent(&api, "of-a-namespace", &[cluster_wide.clone()]).await;
    cluster_wide["kind"] = json!("Nothing");
    cluster_wide["uid"] = json!("00000000-0000-4000-8000-000000000001");
    dependent(&api, "of-no-kind", &[cluster_wide]).await;
    api.delete("/api/v1/namespaces/n").await.ok();
    api.until_gone(&path("of-a-namespace")).await;
    // Whose kind nobody serves may come back.
    api.get(&path("of-no-kind")).await.ok();
}

#[tokio::test]
async fn an_owner_that_came_later_is_found_by_its_dependents() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    api.config_map("child", json!({})).await;
    let adopt = json!({"metadata": {"ownerReferences": [owned_by(&owner, false)]}});
    api.merge(&path("child"), &adopt).await.ok();
    api.delete(&path("owner")).await.ok();
    api.until_gone(&path("child")).await;
}

#[tokio::test]
async fn a_circle_of_owners_goes_as_a_whole() {
    let api = Api::new().await;
    let first = api.config_map("first", json!({})).await;
    let second = dependent(&api, "second", &[owned_by(&first, true)]).await;
    let third = dependent(&api, "third", &[owned_by(&second, true)]).await;
    let close = json!({"metadata": {"ownerReferences": [owned_by(&third, true)]}});
    api.merge(&path("first"), &close).await.ok();
    let options = json!({"propagationPolicy": "Foreground"});
    api.delete_with(&path("first"), &options).await.ok();
    for name in ["first", "second", "third"] {
        api.until_gone(&path(name)).await;
    }
}

#[tokio::test]
async fn custom_objects_own_and_are_owned() {
    let api = Api::new().await;
    widgets(&api).await;
    let owner = api.post(WIDGETS, &json!({"metadata": {"name": "owner"}})).await.made();
    let child = json!({"metadata": {"name": "child", "ownerReferences": [owned_by(&owner, true)]}});
    let child = api.post(WIDGETS, &child).await.made();
    dependent(&api, "grandchild", &[owned_by(&child, true)]).await;
    api.delete(&format!("{WIDGETS}/owner")).await.ok();
    api.until_gone(&format!("{WIDGETS}/child")).await;
    api.until_gone(&path("grandchild")).await;
}

#[tokio::test]
async fn what_is_owned_by_objects_of_a_kind_goes_with_the_kind() {
    let api = Api::new().await;
    widgets(&api).await;
    let owner = api.post(WIDGETS, &json!({"metadata": {"name": "owner"}})).await.made();
    dependent(&api, "child", &[owned_by(&owner, false)]).await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    api.delete(definition).await.ok();
    api.until_gone(definition).await;
    api.until_gone(&path("child")).await;
}

#[tokio::test]
async fn an_owner_reference_must_be_whole() {
    let api = Api::new().await;
    let owner = api.config_map("owner", json!({})).await;
    let mut reference = owned_by(&owner, false);
    reference["uid"] = json!("");
    let body = json!({"metadata": {"name": "a", "ownerReferences": [reference]}});
    let status = api.post(MAPS, &body).await.refused(422, "Invalid");
    assert!(text(&status["message"]).contains("metadata.ownerReferences"), "{status}");
    let mut first = owned_by(&owner, false);
    first["controller"] = json!(true);
    let mut second = first.clone();
    second["uid"] = json!("another");
    let body = json!({"metadata": {"name": "a", "ownerReferences": [first, second]}});
    api.post(MAPS, &body).await.refused(422, "Invalid");
}
