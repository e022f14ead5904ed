//! Pods: nothing runs them here, but they are bound, evicted and deleted as everywhere.

use crate::support::{Api, names, text};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(api: &Api, name: &str) -> Value {
    let body = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    api.post(PODS, &body).await.made()
}

async fn bind(api: &Api, name: &str, node: &str) -> crate::support::Answer {
    let body = json!({
        "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    api.post(&format!("{PODS}/{name}/binding"), &body).await
}

#[tokio::test]
async fn a_new_pod_waits_for_a_node() {
    let api = Api::new().await;
    let made = pod(&api, "a").await;
    assert_eq!(made["status"]["phase"], "Pending");
    assert_eq!(made["status"]["qosClass"], "BestEffort");
    assert_eq!(made["spec"]["restartPolicy"], "Always");
    assert_eq!(made["spec"]["terminationGracePeriodSeconds"], 30);
    let path = format!("{PODS}?fieldSelector=status.phase%3DPending,spec.nodeName%3D");
    assert_eq!(names(&api.get(&path).await.ok()), ["a"]);
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let api = Api::new().await;
    pod(&api, "a").await;
    let answer = bind(&api, "a", "node-1").await.made();
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let bound = api.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "node-1");
    let scheduled = bound["status"]["conditions"]
        .as_array()
        .and_then(|list| list.iter().find(|condition| condition["type"] == "PodScheduled"));
    assert_eq!(scheduled.map(|condition| &condition["status"]), Some(&json!("True")));
    let status = bind(&api, "a", "node-2").await.refused(409, "Conflict");
    assert!(text(&status["message"]).contains("already assigned to node \"node-1\""), "{status}");
    bind(&api, "nobody", "node-1").await.refused(404, "NotFound");
    pod(&api, "b").await;
    bind(&api, "b", "").await.refused(422, "Invalid");
}

#[tokio::test]
async fn a_pod_on_a_node_is_given_time() {
    let api = Api::new().await;
    pod(&api, "waits").await;
    api.delete(&format!("{PODS}/waits")).await.ok();
    api.get(&format!("{PODS}/waits")).await.refused(404, "NotFound");

    pod(&api, "runs").await;
    bind(&api, "runs", "node-1").await.made();
    let path = format!("{PODS}/runs");
    let going = api.delete(&path).await.ok();
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    let longer = api.delete_with(&path, &json!({"gracePeriodSeconds": 60})).await.ok();
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 30);
    let shorter = api.delete_with(&path, &json!({"gracePeriodSeconds": 5})).await.ok();
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    api.delete_with(&path, &json!({"gracePeriodSeconds": 0})).await.ok();
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_pod_that_has_ended_goes_at_once() {
    let api = Api::new().await;
    pod(&api, "a").await;
    bind(&api, "a", "node-1").await.made();
    let path = format!("{PODS}/a");
    api.merge(&format!("{path}/status"), &json!({"status": {"phase": "Succeeded"}})).await.ok();
    api.delete(&path).await.ok();
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_pod_can_be_evicted() {
    let api = Api::new().await;
    pod(&api, "a").await;
    let path = format!("{PODS}/a");
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "default"},
        "deleteOptions": {"dryRun": ["All"]},
    });
    api.post(&format!("{path}/eviction"), &eviction).await.made();
    api.get(&path).await.ok();
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"},
    });
    api.post(&format!("{path}/eviction"), &eviction).await.made();
    api.get(&path).await.refused(404, "NotFound");
    api.post(&format!("{path}/eviction"), &eviction).await.refused(404, "NotFound");
}

#[tokio::test]
async fn most_of_a_pod_cannot_be_changed() {
    let api = Api::new().await;
    pod(&api, "a").await;
    let path = format!("{PODS}/a");
    let image = json!({"spec": {"containers": [{"name": "web", "image": "web:2"}]}});
    let changed = api.strategic(&path, &image).await.ok();
    assert_eq!(changed["spec"]["containers"][0]["image"], "web:2");
    let node = json!({"spec": {"nodeName": "node-1"}});
    let status = api.merge(&path, &node).await.refused(422, "Invalid");
    assert!(text(&status["message"]).contains("Forbidden: pod updates may not change fields"));
}

#[tokio::test]
async fn a_namespace_does_not_wait_for_pods_that_nobody_runs() {
    let api = Api::new().await;
    api.namespace("n").await;
    let body = json!({
        "metadata": {"name": "a"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    api.post("/api/v1/namespaces/n/pods", &body).await.made();
    api.delete("/api/v1/namespaces/n").await.ok();
    api.until_gone("/api/v1/namespaces/n").await;
}
