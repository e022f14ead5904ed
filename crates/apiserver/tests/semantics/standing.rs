//! A watch ends soon after its client would not be let in any more.

use crate::support::{Api, Watch, text};
use serde_json::{Value, json};
use std::time::Duration;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// A service account that may watch Secrets, and its watch.
async fn watching(api: &Api) -> Watch {
    api.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.made();
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]}]);
    api.post(ROLES, &json!({"metadata": {"name": "reader"}, "rules": rules})).await.made();
    let binding = json!({
        "metadata": {"name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    });
    api.post(BINDINGS, &binding).await.made();
    let made = api.post(&format!("{ACCOUNTS}/robot/token"), &json!({})).await.made();
    let path = format!("{SECRETS}?watch=true");
    let mut watch = api.watch_with_token(&text(&made["status"]["token"]), &path).await;
    api.post(SECRETS, &json!({"metadata": {"name": "first"}})).await.made();
    watch.expect("ADDED", "first").await;
    watch
}

/// The Status with which a watch ends, within two minutes.
async fn ends_with(watch: &mut Watch) -> Value {
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let event = watch.read().await.expect("the client learns why");
    assert_eq!(event["type"], "ERROR");
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    assert_eq!(watch.read().await, None);
    event["object"].clone()
}

#[tokio::test]
async fn the_watch_of_a_deleted_account_ends() {
    let api = Api::new().await;
    let mut watch = watching(&api).await;
    api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    assert_eq!(ends_with(&mut watch).await["code"], 401);
}

#[tokio::test]
async fn the_watch_of_somebody_who_lost_the_right_ends() {
    let api = Api::new().await;
    let mut watch = watching(&api).await;
    api.delete(&format!("{BINDINGS}/reader")).await.ok();
    let status = ends_with(&mut watch).await;
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
}

#[tokio::test]
async fn the_watch_of_somebody_who_still_may_goes_on_for_an_hour_at_most() {
    let api = Api::new().await;
    watching(&api).await;
    let made = api.post(&format!("{ACCOUNTS}/robot/token"), &json!({})).await.made();
    let path = format!("{SECRETS}?watch=true&timeoutSeconds=1000000");
    let mut watch = api.watch_with_token(&text(&made["status"]["token"]), &path).await;
    watch.expect("ADDED", "first").await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    assert_eq!(watch.read().await, None);
    assert!((3500..=3700).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}
