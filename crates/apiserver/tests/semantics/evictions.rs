//! Evictions: a pod is deleted as far as its PodDisruptionBudget allows it, and each eviction takes one from it.

use crate::support::{Answer, Api, text, version};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod in this phase, ready or not.
async fn pod(api: &Api, name: &str, phase: &str, ready: &str) {
    let body = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    api.post(PODS, &body).await.made();
    let status = json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
    api.merge(&format!("{PODS}/{name}/status"), &json!({"status": status})).await.ok();
}

async fn running(api: &Api, name: &str) {
    pod(api, name, "Running", "True").await;
}

/// A budget for all of these pods, with a status as its controller writes it.
async fn budget(api: &Api, name: &str, status: Value) -> Value {
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    api.post(BUDGETS, &json!({"metadata": {"name": name}, "spec": spec})).await.made();
    let mut whole = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
        "expectedPods": 1,
    });
    for (field, value) in status.as_object().expect("a status is an object") {
        whole[field.as_str()] = value.clone();
    }
    let path = format!("{BUDGETS}/{name}/status");
    api.merge(&path, &json!({"status": whole})).await.ok()
}

async fn evict(api: &Api, name: &str) -> Answer {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
    });
    api.post(&format!("{PODS}/{name}/eviction"), &eviction).await
}

fn cause(status: &Value) -> (String, String) {
    let cause = &status["details"]["causes"][0];
    (text(&cause["reason"]), text(&cause["message"]))
}

/// The budget is as it was.
async fn is_untouched(api: &Api, before: &Value) {
    let path = format!("{BUDGETS}/{}", text(&before["metadata"]["name"]));
    assert_eq!(version(&api.get(&path).await.ok()), version(before));
}

#[tokio::test]
async fn a_budget_that_is_used_up_refuses_an_eviction() {
    let api = Api::new().await;
    running(&api, "a").await;
    let before = budget(&api, "web", json!({})).await;
    let answer = evict(&api, "a").await;
    assert_eq!(answer.headers.get("retry-after"), None);
    let status = answer.refused(429, "TooManyRequests");
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(status["message"], why);
    let needs = "The disruption budget web needs 1 healthy pods and has 1 currently";
    assert_eq!(cause(&status), ("DisruptionBudget".to_owned(), needs.to_owned()));
    let live = api.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(live["metadata"].get("deletionTimestamp"), None);
    is_untouched(&api, &before).await;
    // A deletion is no eviction.
    api.delete(&format!("{PODS}/a")).await.ok();
}

#[tokio::test]
async fn an_eviction_takes_one_from_its_budget() {
    let api = Api::new().await;
    running(&api, "a").await;
    running(&api, "b").await;
    budget(&api, "web", json!({"disruptionsAllowed": 1, "currentHealthy": 2})).await;
    evict(&api, "a").await.made();
    api.get(&format!("{PODS}/a")).await.refused(404, "NotFound");
    let after = api.get(&format!("{BUDGETS}/web")).await.ok();
    assert_eq!(after["status"]["disruptionsAllowed"], 0);
    assert!(after["status"]["disruptedPods"]["a"].is_string(), "{after}");
    let condition = &after["status"]["conditions"][0];
    let said = ["type", "status", "reason"].map(|field| &condition[field]);
    assert_eq!(said, ["DisruptionAllowed", "False", "InsufficientPods"]);
    assert_eq!(after["metadata"]["generation"], 1);
    evict(&api, "b").await.refused(429, "TooManyRequests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn evictions_at_the_same_time_take_no_more_than_there_is() {
    let api = Api::new().await;
    for pod in 0..8 {
        running(&api, &format!("p{pod}")).await;
    }
    budget(&api, "web", json!({"disruptionsAllowed": 3, "currentHealthy": 8})).await;
    let evictions: Vec<_> = (0..8)
        .map(|pod| {
            let api = api.clone();
            tokio::spawn(async move { evict(&api, &format!("p{pod}")).await.code })
        })
        .collect();
    let mut codes = Vec::new();
    for eviction in evictions {
        codes.push(eviction.await.expect("it ends"));
    }
    codes.sort_unstable();
    assert_eq!(codes, [201, 201, 201, 429, 429, 429, 429, 429]);
    let after = api.get(&format!("{BUDGETS}/web")).await.ok();
    assert_eq!(after["status"]["disruptionsAllowed"], 0);
    let disrupted = after["status"]["disruptedPods"].as_object().map(serde_json::Map::len);
    assert_eq!(disrupted, Some(3));
}

#[tokio::test]
async fn pods_that_serve_nobody_need_no_budget() {
    let api = Api::new().await;
    let before = budget(&api, "web", json!({})).await;
    for phase in ["Pending", "Succeeded", "Failed"] {
        pod(&api, "a", phase, "False").await;
        evict(&api, "a").await.made();
        api.get(&format!("{PODS}/a")).await.refused(404, "NotFound");
    }
    running(&api, "deleted").await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    api.merge(&format!("{PODS}/deleted"), &held).await.ok();
    evict(&api, "deleted").await.refused(429, "TooManyRequests");
    api.delete(&format!("{PODS}/deleted")).await.ok();
    evict(&api, "deleted").await.made();
    is_untouched(&api, &before).await;
}

#[tokio::test]
async fn a_budget_is_for_the_pods_that_it_selects() {
    let api = Api::new().await;
    running(&api, "a").await;
    let other = json!({"metadata": {"name": "other"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "other"}},
    }});
    api.post(BUDGETS, &other).await.made();
    api.post(BUDGETS, &json!({"metadata": {"name": "none"}, "spec": {"minAvailable": 1}}))
        .await
        .made();
    evict(&api, "a").await.made();
    running(&api, "a").await;
    let all = json!({"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}});
    api.post(BUDGETS, &all).await.made();
    evict(&api, "a").await.refused(429, "TooManyRequests");
    budget(&api, "web", json!({"disruptionsAllowed": 1})).await;
    let status = evict(&api, "a").await.refused(500, "");
    let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
               not support.";
    assert_eq!(status["message"], why);
}

#[tokio::test]
async fn a_budget_whose_controller_has_not_seen_it_yet_is_asked_later() {
    let api = Api::new().await;
    running(&api, "a").await;
    budget(&api, "web", json!({"disruptionsAllowed": 1})).await;
    let changed = json!({"spec": {"minAvailable": 2}});
    api.merge(&format!("{BUDGETS}/web"), &changed).await.ok();
    let answer = evict(&api, "a").await;
    assert_eq!(answer.headers["retry-after"], "10");
    let status = answer.refused(429, "TooManyRequests");
    let why = "The disruption budget web is still being processed by the server.";
    assert_eq!(cause(&status), ("DisruptionBudget".to_owned(), why.to_owned()));
    let seen = json!({"status": {"observedGeneration": 2}});
    api.merge(&format!("{BUDGETS}/web/status"), &seen).await.ok();
    evict(&api, "a").await.made();
}

#[tokio::test]
async fn pods_that_are_not_ready_follow_the_policy_of_their_budget() {
    let api = Api::new().await;
    pod(&api, "a", "Running", "False").await;
    let before = budget(&api, "web", json!({"currentHealthy": 0})).await;
    evict(&api, "a").await.refused(429, "TooManyRequests");
    is_untouched(&api, &before).await;
    // Those that are ready are enough: the pod takes nothing from the budget.
    let healthy = json!({"status": {"currentHealthy": 1}});
    let before = api.merge(&format!("{BUDGETS}/web/status"), &healthy).await.ok();
    evict(&api, "a").await.made();
    is_untouched(&api, &before).await;
    pod(&api, "a", "Running", "False").await;
    let spec = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    api.merge(&format!("{BUDGETS}/web"), &spec).await.ok();
    let unhealthy = json!({"status": {"currentHealthy": 0, "observedGeneration": 2}});
    let before = api.merge(&format!("{BUDGETS}/web/status"), &unhealthy).await.ok();
    evict(&api, "a").await.made();
    is_untouched(&api, &before).await;
    running(&api, "ready").await;
    evict(&api, "ready").await.refused(429, "TooManyRequests");
}

#[tokio::test]
async fn a_dry_run_of_an_eviction_changes_nothing() {
    let api = Api::new().await;
    running(&api, "a").await;
    let before = budget(&api, "web", json!({"disruptionsAllowed": 1})).await;
    let eviction = json!({"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}});
    let path = format!("{PODS}/a/eviction");
    api.post(&path, &eviction).await.made();
    let plain = json!({"metadata": {"name": "a"}});
    api.post(&format!("{path}?dryRun=All"), &plain).await.made();
    let live = api.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(live["metadata"].get("deletionTimestamp"), None);
    is_untouched(&api, &before).await;
    let used_up = json!({"status": {"disruptionsAllowed": 0}});
    api.merge(&format!("{BUDGETS}/web/status"), &used_up).await.ok();
    api.post(&path, &eviction).await.refused(429, "TooManyRequests");
}

#[tokio::test]
async fn an_eviction_that_is_refused_takes_nothing() {
    let api = Api::new().await;
    running(&api, "a").await;
    let before = budget(&api, "web", json!({"disruptionsAllowed": 1})).await;
    let other_name = json!({"metadata": {"name": "b"}});
    let path = format!("{PODS}/a/eviction");
    let status = api.post(&path, &other_name).await.refused(400, "BadRequest");
    assert_eq!(status["message"], "name in URL does not match name in Eviction object");
    let other_pod = json!({
        "metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": "other"}},
    });
    api.post(&path, &other_pod).await.refused(409, "Conflict");
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "no"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/eviction"],
            "operations": ["CREATE"],
        }]},
        "validations": [{"expression": "false"}],
    }});
    api.post(&format!("{admission}/validatingadmissionpolicies"), &policy).await.made();
    let binding = json!({
        "metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]},
    });
    api.post(&format!("{admission}/validatingadmissionpolicybindings"), &binding).await.made();
    evict(&api, "a").await.refused(422, "Invalid");
    is_untouched(&api, &before).await;
}

#[tokio::test]
async fn an_evicted_pod_says_why_it_is_deleted() {
    let api = Api::new().await;
    running(&api, "a").await;
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    api.post(&format!("{PODS}/a/binding"), &binding).await.made();
    evict(&api, "a").await.made();
    let live = api.get(&format!("{PODS}/a")).await.ok();
    assert!(live["metadata"]["deletionTimestamp"].is_string(), "{live}");
    let conditions = live["status"]["conditions"].as_array().expect("it has conditions");
    let target = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget");
    let target = target.unwrap_or_else(|| panic!("{live}"));
    let said = ["status", "reason", "message"].map(|field| &target[field]);
    assert_eq!(said, ["True", "EvictionByEvictionAPI", "Eviction API: evicting"]);
    // Once more is no mistake, and changes nothing.
    evict(&api, "a").await.made();
    assert_eq!(version(&api.get(&format!("{PODS}/a")).await.ok()), version(&live));
}
