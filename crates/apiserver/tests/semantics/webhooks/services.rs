//! Webhooks behind a service of the cluster.

use super::{Hook, VALIDATING};
use crate::support::{Api, MAPS, text};
use interlock_apiserver::Config;
use serde_json::{Value, json};

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A configuration whose webhook is behind a service.
fn behind(hook: &Hook, service: Value) -> Value {
    let mut changes = json!({"service": service, "caBundle": hook.bundle});
    changes["service"]["namespace"] = json!("default");
    hook.configuration("guard", json!({"clientConfig": changes}))
}

fn service(name: &str, extra: Value) -> Value {
    let mut spec = json!({"ports": [{"name": "https", "port": 443}, {"name": "other", "port": 1}]});
    for (field, value) in extra.as_object().expect("fields") {
        spec[field.as_str()] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn message(api: &Api) -> String {
    let map = json!({"metadata": {"name": "a"}});
    text(&api.post(MAPS, &map).await.refused(500, "InternalError")["message"])
}

/// A server that calls no webhook outside of this machine. Endpoints on this machine are refused, so that a refusal to
/// call an address shows which one was found.
async fn on_this_machine() -> Api {
    let reach = "127.0.0.1".parse().expect("a network");
    Api::with(Config { root_webhooks: reach, ..Config::default() }).await
}

#[tokio::test]
async fn a_webhook_is_found_by_the_endpoint_slices_of_its_service() {
    let (api, hook) = (on_this_machine().await, Hook::allowing().await);
    api.post(VALIDATING, &behind(&hook, json!({"name": "hook", "path": "/a"}))).await.made();
    let why = message(&api).await;
    assert!(why.contains("failed calling webhook \"guard.example.com\": failed to call webhook: "));
    assert!(why.contains("Post \"https://hook.default.svc:443/a?timeout=30s\""), "{why}");
    assert!(why.contains("service \"hook\" not found"), "{why}");
    api.post(SERVICES, &service("hook", json!({"clusterIP": "None"}))).await.made();
    let why = message(&api).await;
    assert!(why.contains("no endpoints available for service \"hook\""), "{why}");
    let slice = json!({
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "ports": [{"name": "other", "port": 1}, {"name": "https", "port": 8443}],
        "endpoints": [
            {"addresses": ["192.0.2.1"], "conditions": {"ready": false}},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": true}},
        ],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    api.post(slices, &slice).await.made();
    let why = message(&api).await;
    assert!(why.contains("the address 192.0.2.2 is outside of the networks"), "{why}");
    assert!(why.contains("--root-webhooks"), "{why}");
}

#[tokio::test]
async fn a_webhook_is_found_by_the_endpoints_of_its_service() {
    let (api, hook) = (on_this_machine().await, Hook::allowing().await);
    api.post(VALIDATING, &behind(&hook, json!({"name": "hook"}))).await.made();
    api.post(SERVICES, &service("hook", json!({}))).await.made();
    let endpoints = json!({
        "metadata": {"name": "hook"},
        "subsets": [{
            "addresses": [{"ip": "192.0.2.3"}], "ports": [{"name": "https", "port": 8443}],
        }],
    });
    api.post("/api/v1/namespaces/default/endpoints", &endpoints).await.made();
    let why = message(&api).await;
    assert!(why.contains("the address 192.0.2.3 is outside of the networks"), "{why}");
}

#[tokio::test]
async fn a_service_with_an_address_needs_no_endpoints() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    let port = hook.address.port();
    api.post(VALIDATING, &behind(&hook, json!({"name": "hook", "port": port}))).await.made();
    let ports = json!({"clusterIP": "127.0.0.1", "ports": [{"port": port}]});
    api.post(SERVICES, &service("hook", ports)).await.made();
    api.config_map("a", json!({})).await;
    assert_eq!(hook.names(), ["a"]);
}

#[tokio::test]
async fn a_port_that_the_service_does_not_have_and_the_server_itself_are_clear_errors() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    api.post(SERVICES, &service("hook", json!({}))).await.made();
    api.post(VALIDATING, &behind(&hook, json!({"name": "hook", "port": 8443}))).await.made();
    let why = message(&api).await;
    assert!(why.contains("no service port 8443 found for service \"hook\""), "{why}");
    api.delete(&format!("{VALIDATING}/guard")).await.ok();
    api.post(VALIDATING, &behind(&hook, json!({"name": "kubernetes"}))).await.made();
    let why = message(&api).await;
    assert!(why.contains("is this API server, which is no webhook"), "{why}");
}

#[tokio::test]
async fn the_certificate_must_name_the_service() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    let port = hook.address.port();
    api.post(VALIDATING, &behind(&hook, json!({"name": "other", "port": port}))).await.made();
    let ports = json!({"clusterIP": "127.0.0.1", "ports": [{"port": port}]});
    api.post(SERVICES, &service("other", ports)).await.made();
    let why = message(&api).await;
    assert!(why.contains("TLS: invalid peer certificate"), "{why}");
    assert!(hook.asked().is_empty());
}
