//! `fieldValidation`: what happens to fields that nobody knows, and of those that stand twice.

use crate::custom::{WIDGETS, widgets};
use crate::support::{Api, MAPS, text};
use serde_json::json;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn wrong() -> serde_json::Value {
    json!({
        "metadata": {"name": "a", "colour": "red"}, "unknown": 1,
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "replica": 2,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1", "imagine": "x"}]},
            },
        },
    })
}

#[tokio::test]
async fn strict_refuses_and_names_them_all() {
    let api = Api::new().await;
    let answer = api.post(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), &wrong()).await;
    let status = answer.refused(400, "BadRequest");
    let message = text(&status["message"]);
    assert!(message.contains("strict decoding error: "), "{message}");
    for path in [
        "unknown field \"unknown\"",
        "unknown field \"metadata.colour\"",
        "unknown field \"spec.replica\"",
        "unknown field \"spec.template.spec.containers[0].imagine\"",
    ] {
        assert!(message.contains(path), "{path} in {message}");
    }
    api.get(&format!("{DEPLOYMENTS}/a")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn warn_stores_and_tells_which_is_also_what_happens_when_nothing_is_said() {
    let api = Api::new().await;
    for query in ["", "?fieldValidation=Warn"] {
        let answer = api.post(&format!("{DEPLOYMENTS}{query}"), &wrong()).await;
        let warnings = answer.warnings();
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(
            warnings.contains(&"299 - \"unknown field \\\"spec.replica\\\"\"".to_owned()),
            "{warnings:?}"
        );
        let made = answer.made();
        assert_eq!(made.get("unknown"), None);
        assert_eq!(made["spec"].get("replica"), None);
        api.delete(&format!("{DEPLOYMENTS}/a")).await.ok();
    }
}

#[tokio::test]
async fn ignore_stores_and_says_nothing() {
    let api = Api::new().await;
    let answer = api.post(&format!("{DEPLOYMENTS}?fieldValidation=Ignore"), &wrong()).await;
    assert_eq!(answer.warnings().len(), 0);
    answer.made();
    let other = api.post(&format!("{DEPLOYMENTS}?fieldValidation=Perhaps"), &wrong()).await;
    other.refused(422, "Invalid");
}

#[tokio::test]
async fn a_field_that_stands_twice_is_an_error_too() {
    let api = Api::new().await;
    let body = r#"{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#;
    let headers = [("content-type", "application/json")];
    let strict = format!("{MAPS}?fieldValidation=Strict");
    let status = api.request("POST", &strict, &headers, body).await.refused(400, "BadRequest");
    assert!(text(&status["message"]).contains("duplicate field \"data.k\""), "{status}");
    let answer = api.request("POST", MAPS, &headers, body).await;
    assert_eq!(answer.warnings(), ["299 - \"duplicate field \\\"data.k\\\"\""]);
    assert_eq!(answer.made()["data"]["k"], "2");
    let yaml = "metadata:\n  name: b\ndata:\n  k: '1'\n  k: '2'\n";
    let headers = [("content-type", "application/yaml")];
    let answer = api.request("POST", &strict, &headers, yaml).await;
    answer.refused(400, "BadRequest");
}

#[tokio::test]
async fn patches_are_validated_with_422() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a?fieldValidation=Strict");
    api.config_map("a", json!({})).await;
    let patch = json!({"unknown": 1, "metadata": {"colour": "red"}});
    for answer in [api.merge(&path, &patch).await, api.strategic(&path, &patch).await] {
        let status = answer.refused(422, "Invalid");
        let message = text(&status["message"]);
        assert!(message.contains("unknown field \"unknown\""), "{message}");
        assert!(message.contains("unknown field \"metadata.colour\""), "{message}");
    }
    let steps = json!([{"op": "add", "path": "/unknown", "value": 1}]);
    api.json_patch(&path, &steps).await.refused(422, "Invalid");
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "unknown": 1,
    });
    let answer = api.apply(&format!("{path}&fieldManager=me"), &applied).await;
    assert!(matches!(answer.code, 400 | 500), "{}", answer.body);
    let answer = api.merge(&format!("{MAPS}/a"), &patch).await;
    assert_eq!(answer.warnings().len(), 2);
    answer.ok();
}

#[tokio::test]
async fn custom_kinds_are_validated_as_far_as_their_schema_goes() {
    let api = Api::new().await;
    widgets(&api).await;
    let body = json!({
        "metadata": {"name": "a"},
        "spec": {"unknown": 1, "free": {"anything": 1}, "parts": [{"name": "x", "weight": 2}]},
    });
    let status = api.post(&format!("{WIDGETS}?fieldValidation=Strict"), &body).await;
    let message = text(&status.refused(400, "BadRequest")["message"]);
    assert!(message.contains("unknown field \"spec.unknown\""), "{message}");
    assert!(message.contains("unknown field \"spec.parts[0].weight\""), "{message}");
    assert!(!message.contains("anything"), "{message}");
    let answer = api.post(WIDGETS, &body).await;
    assert_eq!(answer.warnings().len(), 2);
    let made = answer.made();
    assert_eq!(made["spec"]["free"], json!({"anything": 1}));
    assert_eq!(made["spec"].get("unknown"), None);
    let mut put = made.clone();
    put["spec"]["unknown"] = json!(2);
    let strict = format!("{WIDGETS}/a?fieldValidation=Strict");
    api.put(&strict, &put).await.refused(400, "BadRequest");
    api.merge(&strict, &json!({"spec": {"unknown": 2}})).await.refused(422, "Invalid");
}
