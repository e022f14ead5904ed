//! Patches: JSON, merge and strategic merge.

use crate::custom::{WIDGETS, widgets};
use crate::support::{Api, MAPS, fields, text, version};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_json_patch_is_done_step_by_step() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.config_map("a", json!({"k": "1", "gone": "x", "moved": "m"})).await;
    let steps = json!([
        {"op": "test", "path": "/data/k", "value": "1"},
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "remove", "path": "/data/gone"},
        {"op": "move", "from": "/data/moved", "path": "/data/there"},
        {"op": "copy", "from": "/data/there", "path": "/data/too"},
        {"op": "add", "path": "/metadata/labels", "value": {"a~b": "c"}},
    ]);
    let changed = api.json_patch(&path, &steps).await;
    changed.refused(422, "Invalid");
    let mut steps = steps;
    steps[5]["value"] = json!({"a": "b"});
    let changed = api.json_patch(&path, &steps).await.ok();
    assert_eq!(changed["data"], json!({"k": "2", "there": "m", "too": "m"}));
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
}

#[tokio::test]
async fn a_json_patch_that_fails_is_422_and_changes_nothing() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    let made = api.config_map("a", json!({"k": "1"})).await;
    for steps in [
        json!([{"op": "replace", "path": "/data/k", "value": "2"},
               {"op": "test", "path": "/data/k", "value": "1"}]),
        json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "x"}]),
        json!([{"op": "remove", "path": "/data/nothing"}]),
        json!([{"op": "replace", "path": "/nothing/k", "value": "1"}]),
        json!([{"op": "dance", "path": "/data"}]),
    ] {
        api.json_patch(&path, &steps).await.refused(422, "Invalid");
    }
    assert_eq!(api.get(&path).await.ok(), made);
}

#[tokio::test]
async fn a_patch_that_is_none_is_400() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.config_map("a", json!({})).await;
    api.json_patch(&path, &json!({"op": "add"})).await.refused(400, "BadRequest");
    for sort in ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json"] {
        let headers = [("content-type", format!("application/{sort}"))];
        let headers = [(headers[0].0, headers[0].1.as_str())];
        let broken = api.request("PATCH", &path, &headers, "{\"data\":").await;
        broken.refused(400, "BadRequest");
    }
    for sort in ["json", "yaml", "something"] {
        let headers = [("content-type", format!("application/{sort}"))];
        let headers = [(headers[0].0, headers[0].1.as_str())];
        let other = api.request("PATCH", &path, &headers, "{}").await;
        other.refused(415, "UnsupportedMediaType");
    }
}

#[tokio::test]
async fn a_json_patch_has_at_most_ten_thousand_steps() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.config_map("a", json!({"k": "v"})).await;
    let step = json!({"op": "test", "path": "/data/k", "value": "v"});
    let allowed: Vec<Value> = vec![step.clone(); 10_000];
    api.json_patch(&path, &json!(allowed)).await.ok();
    let too_many: Vec<Value> = vec![step; 10_001];
    let status = api.json_patch(&path, &json!(too_many)).await;
    status.refused(413, "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_merge_patch_puts_in_and_takes_out() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.config_map("a", json!({"k": "1", "gone": "x"})).await;
    let patch = json!({"data": {"gone": null, "new": "n"}, "metadata": {"labels": {"a": "b"}}});
    let changed = api.merge(&path, &patch).await.ok();
    assert_eq!(changed["data"], json!({"k": "1", "new": "n"}));
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
    api.merge(&path, &json!({"metadata": {"name": "b"}})).await.refused(400, "BadRequest");
    let elsewhere = json!({"metadata": {"namespace": "other"}});
    api.merge(&path, &elsewhere).await.refused(400, "BadRequest");
    api.merge(&path, &json!([])).await.refused(400, "BadRequest");
    let wrong = api.merge(&path, &json!({"data": {"k": 5}})).await;
    assert!(matches!(wrong.code, 400 | 422), "{}", wrong.body);
}

#[tokio::test]
async fn a_patch_can_name_the_version_it_is_for() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    let made = api.config_map("a", json!({})).await;
    let at =
        |version: &Value| json!({"metadata": {"resourceVersion": version}, "data": {"k": "v"}});
    let right = at(&made["metadata"]["resourceVersion"]);
    let changed = api.merge(&path, &right).await.ok();
    assert!(version(&changed) > version(&made));
    api.merge(&path, &right).await.refused(409, "Conflict");
    let other = json!({"metadata": {"uid": "another"}});
    api.merge(&path, &other).await.refused(409, "Conflict");
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_their_keys() {
    let api = Api::new().await;
    let body = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [
            {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "log", "image": "log:1"},
        ]},
    });
    api.post(&format!("{PODS}?dryRun=All"), &body).await.made();
    let templates = "/api/v1/namespaces/default/podtemplates";
    let template = json!({
        "metadata": {"name": "a"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": body["spec"]},
    });
    api.post(templates, &template).await.made();
    let path = format!("{templates}/a");
    let patch = json!({"template": {"spec": {"containers": [
        {"name": "web", "env": [{"name": "B", "value": "2"}]},
        {"name": "log", "$patch": "delete"},
        {"name": "new", "image": "new:1"},
    ]}}});
    let changed = api.strategic(&path, &patch).await.ok();
    let containers = changed["template"]["spec"]["containers"].as_array().expect("it is a list");
    let mut found: Vec<String> = containers.iter().map(|one| text(&one["name"])).collect();
    found.sort();
    assert_eq!(found, ["new", "web"]);
    let web = containers.iter().find(|one| one["name"] == "web").expect("it is there");
    assert_eq!(web["image"], "web:1");
    assert_eq!(web["env"].as_array().map(Vec::len), Some(2));
    let replace = json!({"template": {"spec": {"containers": [
        {"$patch": "replace"}, {"name": "only", "image": "only:1"},
    ]}}});
    let changed = api.strategic(&path, &replace).await.ok();
    assert_eq!(changed["template"]["spec"]["containers"].as_array().map(Vec::len), Some(1));
    let finalizers = json!({"metadata": {"finalizers": ["example.com/a"]}});
    api.strategic(&path, &finalizers).await.ok();
    let more = json!({"metadata": {"finalizers": ["example.com/b"]}});
    let both = api.strategic(&path, &more).await.ok();
    assert_eq!(both["metadata"]["finalizers"].as_array().map(Vec::len), Some(2));
    let less = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"],
    }});
    let none = api.strategic(&path, &less).await.ok();
    assert!(none["metadata"].get("finalizers").is_none_or(|list| list == &json!([])));
}

#[tokio::test]
async fn custom_kinds_have_no_strategic_patch() {
    let api = Api::new().await;
    widgets(&api).await;
    api.post(WIDGETS, &json!({"metadata": {"name": "a"}})).await.made();
    let path = format!("{WIDGETS}/a");
    let status = api.strategic(&path, &json!({})).await.refused(415, "UnsupportedMediaType");
    assert!(text(&status["message"]).contains("application/merge-patch+json"), "{status}");
    api.merge(&path, &json!({"spec": {"replicas": 3}})).await.ok();
    let test = json!([{"op": "test", "path": "/spec/replicas", "value": 4}]);
    api.json_patch(&path, &test).await.refused(422, "Invalid");
}

#[tokio::test]
async fn two_that_patch_one_finalizer_list_are_distinguished() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.config_map("a", json!({})).await;
    // What kube-rs does: put the finalizer in if there is none, take it off if it is where it was.
    let put = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/mine"]},
    ]);
    api.json_patch(&path, &put).await.ok();
    api.json_patch(&path, &put).await.refused(422, "Invalid");
    api.delete(&path).await.ok();
    let take = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/mine"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    api.json_patch(&path, &take).await.ok();
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn an_invalid_result_is_refused_like_an_invalid_object() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.config_map("a", json!({})).await;
    let status = api.merge(&path, &json!({"data": {"not a key": "v"}})).await;
    assert_eq!(fields(&status.refused(422, "Invalid")), ["data[not a key]"]);
}
