//! `/scale`: the number of replicas, whatever the kind.

use crate::custom::{WIDGETS, widgets};
use crate::support::{Api, fields, version};
use serde_json::json;

#[tokio::test]
async fn a_deployment_is_scaled() {
    let api = Api::new().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let body = json!({
        "metadata": {"name": "a"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    });
    let made = api.post(deployments, &body).await.made();
    let path = format!("{deployments}/a/scale");
    let scale = api.get(&path).await.ok();
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(scale["status"], json!({"replicas": 0, "selector": "app=web"}));
    assert_eq!(scale["metadata"]["name"], "a");
    assert_eq!(version(&scale), version(&made));
    let mut more = scale.clone();
    more["spec"]["replicas"] = json!(5);
    let scaled = api.put(&path, &more).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 5);
    api.put(&path, &more).await.refused(409, "Conflict");
    let whole = api.get(&format!("{deployments}/a")).await.ok();
    assert_eq!(whole["spec"]["replicas"], 5);
    assert_eq!(whole["metadata"]["generation"], 2);
    let scaled = api.merge(&path, &json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let scaled = api.strategic(&path, &json!({"spec": {"replicas": 4}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 4);
    let test = json!([
        {"op": "test", "path": "/spec/replicas", "value": 4},
        {"op": "replace", "path": "/spec/replicas", "value": 6},
    ]);
    assert_eq!(api.json_patch(&path, &test).await.ok()["spec"]["replicas"], 6);
    api.json_patch(&path, &test).await.refused(422, "Invalid");
    let negative = api.merge(&path, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(fields(&negative.refused(422, "Invalid")), ["spec.replicas"]);
    api.get(&format!("{deployments}/b/scale")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_custom_kind_says_where_its_numbers_are() {
    let api = Api::new().await;
    widgets(&api).await;
    api.post(WIDGETS, &json!({"metadata": {"name": "a"}, "spec": {"replicas": 2}})).await.made();
    let status = json!({"status": {"replicas": 1, "selector": "app=web"}});
    api.merge(&format!("{WIDGETS}/a/status"), &status).await.ok();
    let path = format!("{WIDGETS}/a/scale");
    let scale = api.get(&path).await.ok();
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(scale["status"], json!({"replicas": 1, "selector": "app=web"}));
    let scaled = api.merge(&path, &json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let whole = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(whole["spec"]["replicas"], 3);
    assert_eq!(whole["metadata"]["generation"], 2);
}

#[tokio::test]
async fn what_has_no_replicas_has_no_scale() {
    let api = Api::new().await;
    let map = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt/scale";
    api.get(map).await.refused(404, "NotFound");
}
