//! ResourceQuotas: what is used is counted, and never is more than the quota.

use crate::support::{Api, MAPS, text};
use serde_json::{Value, json};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn quota(api: &Api, name: &str, spec: Value) {
    api.post(QUOTAS, &json!({"metadata": {"name": name}, "spec": spec})).await.made();
}

/// Waits until a quota says that so much is used.
async fn until_used(api: &Api, name: &str, used: Value) -> Value {
    let path = format!("{QUOTAS}/{name}");
    api.until(&path, |answer| answer.body["status"]["used"] == used).await.ok()
}

#[tokio::test]
async fn the_status_follows_what_is_there() {
    let api = Api::new().await;
    let hard = json!({"secrets": "5", "count/deployments.apps": "2"});
    api.post(SECRETS, &json!({"metadata": {"name": "before"}})).await.made();
    quota(&api, "q", json!({"hard": hard})).await;
    let seen = until_used(&api, "q", json!({"secrets": "1", "count/deployments.apps": "0"})).await;
    assert_eq!(seen["status"]["hard"], hard);
    api.post(SECRETS, &json!({"metadata": {"name": "a"}})).await.made();
    // A write that is acknowledged is counted.
    let seen = api.get(&format!("{QUOTAS}/q")).await.ok();
    assert_eq!(seen["status"]["used"]["secrets"], "2");
    api.delete(&format!("{SECRETS}/a")).await.ok();
    until_used(&api, "q", json!({"secrets": "1", "count/deployments.apps": "0"})).await;
    api.merge(&format!("{QUOTAS}/q"), &json!({"spec": {"hard": {"secrets": "7"}}})).await.ok();
    let raised = |answer: &crate::support::Answer| answer.body["status"]["hard"]["secrets"] == "7";
    api.until(&format!("{QUOTAS}/q"), raised).await;
}

#[tokio::test]
async fn what_is_too_much_is_refused_in_upstreams_words() {
    let api = Api::new().await;
    quota(&api, "few", json!({"hard": {"secrets": "1"}})).await;
    api.post(SECRETS, &json!({"metadata": {"name": "a"}})).await.made();
    let status =
        api.post(SECRETS, &json!({"metadata": {"name": "b"}})).await.refused(403, "Forbidden");
    assert_eq!(
        status["message"],
        "secrets \"b\" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=1, \
         limited: secrets=1"
    );
    // Changes use nothing more, and other kinds are not concerned.
    api.merge(&format!("{SECRETS}/a"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    api.post(MAPS, &json!({"metadata": {"name": "a"}})).await.made();
}

#[tokio::test]
async fn pods_are_counted_by_what_they_ask_for() {
    let api = Api::new().await;
    let hard = json!({"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi"});
    quota(&api, "q", json!({"hard": hard})).await;
    quota(&api, "short", json!({"hard": {"pods": "1"}, "scopes": ["Terminating"]})).await;
    let pod = |name: &str, cpu: &str| {
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"requests": {"cpu": cpu}, "limits": {"memory": "256Mi"}}}]}})
    };
    api.post(PODS, &pod("a", "600m")).await.made();
    let status = api.post(PODS, &pod("b", "600m")).await.refused(403, "Forbidden");
    let why = "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: \
               requests.cpu=1";
    assert!(text(&status["message"]).ends_with(why), "{status}");
    let mut silent = pod("b", "1m");
    silent["spec"]["containers"][0]["resources"] = json!({});
    let status = api.post(PODS, &silent).await.refused(403, "Forbidden");
    let why = "failed quota: q: must specify limits.memory for: c; requests.cpu for: c";
    assert!(text(&status["message"]).ends_with(why), "{status}");
    // Two quotas are about these.
    for (name, code) in [("c", 201), ("d", 403)] {
        let mut short = pod(name, "100m");
        short["spec"]["activeDeadlineSeconds"] = json!(5);
        assert_eq!(api.post(PODS, &short).await.code, code);
    }
    let used = json!({"pods": "2", "requests.cpu": "700m", "limits.memory": "512Mi"});
    until_used(&api, "q", used).await;
    until_used(&api, "short", json!({"pods": "1"})).await;
    // A pod that has ended uses nothing.
    api.merge(&format!("{PODS}/a/status"), &json!({"status": {"phase": "Succeeded"}})).await.ok();
    let used = json!({"pods": "1", "requests.cpu": "100m", "limits.memory": "256Mi"});
    until_used(&api, "q", used).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_together_never_use_more_than_the_quota() {
    let api = Api::new().await;
    quota(&api, "q", json!({"hard": {"secrets": "40"}})).await;
    let mut writers = Vec::new();
    for writer in 0..8 {
        let api = api.clone();
        writers.push(tokio::spawn(async move {
            let mut made = 0;
            for round in 0..20 {
                let name = format!("s-{writer}-{round}");
                let answer = api.post(SECRETS, &json!({"metadata": {"name": name}})).await;
                match answer.code {
                    201 => made += 1,
                    403 => {}
                    _ => panic!("{answer:?}"),
                }
            }
            made
        }));
    }
    let mut made = 0;
    for writer in writers {
        made += writer.await.expect("a writer ends");
    }
    assert_eq!(made, 40);
    let list = api.get(SECRETS).await.ok();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(40));
    until_used(&api, "q", json!({"secrets": "40"})).await;
}
