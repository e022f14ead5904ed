//! Mutating webhooks: what they change, in which order, and what is checked after them.

use super::{Hook, MUTATING, patched, rule};
use crate::custom::{DEFINITIONS, WIDGETS, definition};
use crate::support::{Api, MAPS, text};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}})
}

#[tokio::test]
async fn a_patch_changes_the_object_and_the_next_webhook_sees_it() {
    let (api, second) = (Api::new().await, Hook::allowing().await);
    let first =
        Hook::patching(json!([{"op": "add", "path": "/data", "value": {"added": "yes"}}])).await;
    first.mutates(&api, "a", json!({})).await;
    second.mutates(&api, "b", json!({})).await;
    let guard = Hook::allowing().await;
    guard.validates(&api, json!({})).await;
    let made = api.post(MAPS, &map("a")).await.made();
    assert_eq!(made["data"], json!({"added": "yes"}));
    assert_eq!(api.get(&format!("{MAPS}/a")).await.ok(), made);
    assert_eq!(first.asked()[0]["object"].get("data"), None);
    assert_eq!(second.asked()[0]["object"]["data"]["added"], "yes");
    assert_eq!(guard.asked()[0]["object"]["data"]["added"], "yes");
    assert_eq!(guard.asked()[0]["object"]["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn what_a_webhook_adds_gets_defaults_and_is_validated() {
    let api = Api::new().await;
    let sidecar = json!([{
        "op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "side:1"},
    }]);
    let hook = Hook::patching(sidecar).await;
    hook.mutates(&api, "side", json!({"rules": [rule(&["pods"], &["CREATE"])]})).await;
    let made = api.post(PODS, &pod("a")).await.made();
    let side = &made["spec"]["containers"][1];
    assert_eq!(side["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(side["imagePullPolicy"], "IfNotPresent");
    // The webhook's own container is there already: two of one name are refused.
    let mut twice = pod("b");
    twice["spec"]["containers"][0]["name"] = json!("side");
    let status = api.post(PODS, &twice).await.refused(422, "Invalid");
    assert!(text(&status["message"]).contains("Duplicate value"), "{status}");
}

#[tokio::test]
async fn what_the_schema_does_not_know_of_a_patch_is_dropped() {
    let api = Api::new().await;
    api.post(DEFINITIONS, &definition()).await.made();
    let hook = Hook::patching(json!([
        {"op": "add", "path": "/spec/unknown", "value": 1},
        {"op": "remove", "path": "/spec/size"},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]))
    .await;
    hook.mutates(&api, "widgets", json!({"rules": [rule(&["widgets"], &["CREATE"])]})).await;
    let widget = json!({"metadata": {"name": "a"}, "spec": {"size": "large"}});
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let made = api.post(&strict, &widget).await.made();
    assert_eq!(made["spec"], json!({"replicas": 2, "size": "medium"}));
    let wrong =
        Hook::patching(json!([{"op": "replace", "path": "/spec/replicas", "value": -1}])).await;
    wrong.mutates(&api, "wrong", json!({"rules": [rule(&["widgets"], &["CREATE"])]})).await;
    let mut other = widget;
    other["metadata"]["name"] = json!("b");
    api.post(WIDGETS, &other).await.refused(422, "Invalid");
}

/// A webhook that appends a letter to a list in the object's data, unless it is there.
async fn appending(letter: &'static str) -> Hook {
    Hook::answering(move |asked| {
        let list = asked["object"]["data"]["list"].as_str().unwrap_or_default().to_owned();
        if list.contains(letter) {
            return json!({"allowed": true});
        }
        patched(
            &json!([{"op": "add", "path": "/data", "value": {"list": format!("{list}{letter}")}}]),
        )
    })
    .await
}

#[tokio::test]
async fn a_webhook_is_called_again_once_if_another_changed_the_object_after_it() {
    let api = Api::new().await;
    let (first, second, third) = (appending("a").await, appending("b").await, appending("c").await);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    first.mutates(&api, "1", again.clone()).await;
    second.mutates(&api, "2", json!({})).await;
    third.mutates(&api, "3", again).await;
    let made = api.post(MAPS, &map("x")).await.made();
    assert_eq!(made["data"]["list"], "abc");
    let counts = [&first, &second, &third].map(|hook| hook.asked().len());
    // Nothing changed after the third one.
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!(first.asked()[1]["object"]["data"]["list"], "abc");
}

#[tokio::test]
async fn two_webhooks_that_undo_each_other_end_after_two_rounds() {
    let api = Api::new().await;
    let set =
        |to: &str| Hook::patching(json!([{"op": "add", "path": "/data", "value": {"x": to}}]));
    let (left, right) = (set("left").await, set("right").await);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    left.mutates(&api, "left", again.clone()).await;
    right.mutates(&api, "right", again).await;
    let made = api.post(MAPS, &map("x")).await.made();
    assert_eq!(made["data"]["x"], "right");
    assert_eq!((left.asked().len(), right.asked().len()), (2, 2));
}

#[tokio::test]
async fn a_patch_that_cannot_be_applied_refuses_the_write_whatever_the_failure_policy() {
    let api = Api::new().await;
    let hook = Hook::patching(json!([{"op": "remove", "path": "/data/none"}])).await;
    hook.mutates(&api, "bad", json!({"failurePolicy": "Ignore"})).await;
    api.post(MAPS, &map("a")).await.refused(500, "InternalError");
    api.delete(&format!("{MUTATING}/bad")).await.ok();
    for patch in [json!({"op": "add"}), json!([{"op": "replace", "path": "", "value": 1}])] {
        let hook = Hook::patching(patch).await;
        hook.mutates(&api, "bad", json!({})).await;
        api.post(MAPS, &map("a")).await.refused(500, "InternalError");
        api.delete(&format!("{MUTATING}/bad")).await.ok();
    }
    let hook = Hook::patching(json!([{"op": "add", "path": "/data", "value": 7}])).await;
    hook.mutates(&api, "bad", json!({})).await;
    let status = api.post(MAPS, &map("a")).await.refused(500, "InternalError");
    assert!(text(&status["message"]).contains("bad.example.com"), "{status}");
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_webhook_cannot_move_or_rename_an_object() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let path = "/metadata/name";
    let hook = Hook::patching(json!([{"op": "replace", "path": path, "value": "b"}])).await;
    hook.mutates(&api, "name", json!({"rules": [rule(&["configmaps"], &["UPDATE"])]})).await;
    api.merge(&format!("{MAPS}/a"), &json!({"data": {"a": "b"}})).await.refused(400, "BadRequest");
    api.delete(&format!("{MUTATING}/name")).await.ok();
    let uid = json!([{"op": "replace", "path": "/metadata/uid", "value": "x"}]);
    let hook = Hook::patching(uid).await;
    hook.mutates(&api, "uid", json!({})).await;
    let before = api.get(&format!("{MAPS}/a")).await.ok();
    let after = api.merge(&format!("{MAPS}/a"), &json!({"data": {"a": "b"}})).await.ok();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test]
async fn an_update_and_an_apply_are_changed_too() {
    let api = Api::new().await;
    let labelled = Hook::patching(json!([
        {"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}},
    ]))
    .await;
    labelled.mutates(&api, "label", json!({})).await;
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"},
    });
    let path = format!("{MAPS}/a?fieldManager=me");
    let made = api.apply(&path, &applied).await.made();
    assert_eq!(made["metadata"]["labels"], json!({"by": "hook"}));
    let owned = made["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(!owned.contains("f:labels"), "{owned}");
    // The same again changes nothing.
    let again = api.apply(&path, &applied).await.ok();
    assert_eq!(again["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let mut bare = made.clone();
    bare["metadata"].as_object_mut().expect("an object").remove("labels");
    let put = api.put(&format!("{MAPS}/a"), &bare).await.ok();
    assert_eq!(put["metadata"]["labels"], json!({"by": "hook"}));
    assert_eq!(put["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn subresources_are_changed_in_their_own_form() {
    let api = Api::new().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod("a")["spec"]},
        },
    });
    api.post(deployments, &deployment).await.made();
    api.post(PODS, &pod("a")).await.made();
    let scale =
        Hook::patching(json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])).await;
    scale.mutates(&api, "scale", json!({"rules": [rule(&["*/scale"], &["*"])]})).await;
    let path = format!("{deployments}/a/scale");
    let scaled = api.merge(&path, &json!({"spec": {"replicas": 2}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 7);
    let status = Hook::patching(json!([
        {"op": "add", "path": "/status/message", "value": "changed"},
        {"op": "add", "path": "/spec/nodeName", "value": "elsewhere"},
    ]))
    .await;
    status.mutates(&api, "status", json!({"rules": [rule(&["pods/status"], &["*"])]})).await;
    let changed = api.merge(&format!("{PODS}/a/status"), &json!({"status": {"reason": "r"}})).await;
    let changed = changed.ok();
    assert_eq!(changed["status"]["message"], "changed");
    assert_eq!(changed["spec"].get("nodeName"), None);
    let evicting = Hook::patching(json!([
        {"op": "add", "path": "/deleteOptions", "value": {"dryRun": ["All"]}},
    ]))
    .await;
    evicting.mutates(&api, "evict", json!({"rules": [rule(&["pods/eviction"], &["*"])]})).await;
    api.post(&format!("{PODS}/a/eviction"), &json!({"metadata": {"name": "a"}})).await.made();
    api.get(&format!("{PODS}/a")).await.ok();
    let binding = Hook::patching(json!([
        {"op": "add", "path": "/metadata/labels", "value": {"bound": "yes"}},
    ]))
    .await;
    binding.mutates(&api, "bind", json!({"rules": [rule(&["pods/binding"], &["*"])]})).await;
    let target = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    api.post(&format!("{PODS}/a/binding"), &target).await.made();
    let bound = api.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(bound["metadata"]["labels"]["bound"], "yes");
}

#[tokio::test]
async fn a_deletion_cannot_be_patched() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let hook = Hook::patching(json!([{"op": "add", "path": "/data", "value": {}}])).await;
    hook.mutates(&api, "delete", json!({"rules": [rule(&["configmaps"], &["DELETE"])]})).await;
    let status = api.delete(&format!("{MAPS}/a")).await.refused(500, "InternalError");
    let message = text(&status["message"]);
    assert!(
        message.contains("attempted to modify the object, which is not supported"),
        "{message}"
    );
    api.get(&format!("{MAPS}/a")).await.ok();
}

#[tokio::test]
async fn a_mutating_webhook_can_refuse() {
    let api = Api::new().await;
    let hook = Hook::answering(|_| json!({"allowed": false, "status": {"message": "no"}})).await;
    hook.mutates(&api, "no", json!({})).await;
    let status = api.post(MAPS, &map("a")).await.refused(400, "");
    let denied = "admission webhook \"no.example.com\" denied the request: no";
    assert_eq!(status["message"], denied);
}

#[tokio::test]
async fn a_kind_with_two_forms_is_shown_in_the_one_that_the_rule_names() {
    let api = Api::new().await;
    let only = |version: &str| {
        json!([{
            "apiGroups": ["autoscaling"], "apiVersions": [version], "operations": ["CREATE"],
            "resources": ["horizontalpodautoscalers"],
        }])
    };
    let first = Hook::patching(json!([
        {"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 60},
    ]))
    .await;
    first.mutates(&api, "first", json!({"rules": only("v1")})).await;
    let second = Hook::patching(json!([
        {"op": "test", "path": "/spec/metrics/0/resource/target/averageUtilization", "value": 60},
        {"op": "replace", "path": "/spec/maxReplicas", "value": 9},
    ]))
    .await;
    second.mutates(&api, "second", json!({"rules": only("v2")})).await;
    let scaler = json!({
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        },
    });
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let made = api.post(path, &scaler).await.made();
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 60);
    assert_eq!(made["spec"]["maxReplicas"], 9);
    assert_eq!(second.asked()[0]["object"]["apiVersion"], "autoscaling/v2");
    assert_eq!(second.asked()[0]["requestKind"]["version"], "v1");
}
