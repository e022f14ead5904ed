//! What a webhook configuration must say, and whose webhooks are called at all.

use super::{Hook, MUTATING, VALIDATING, rule};
use crate::clusters::CLUSTERS;
use crate::support::{Api, MAPS, fields, text};
use interlock_apiserver::Config;
use serde_json::{Value, json};

fn sound() -> Value {
    json!({
        "name": "guard.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/guard"},
        "rules": [rule(&["configmaps"], &["CREATE"])],
    })
}

fn with(webhook: Value) -> Value {
    json!({"metadata": {"name": "guard"}, "webhooks": [webhook]})
}

#[tokio::test]
async fn a_configuration_that_could_not_work_is_refused() {
    let api = Api::new().await;
    for (field, value, wrong, why) in [
        ("name", json!("guard"), "name", "at least three segments"),
        ("name", json!("Guard.example.com"), "name", "RFC 1123"),
        ("failurePolicy", json!("Perhaps"), "failurePolicy", "supported values"),
        ("matchPolicy", json!("Alike"), "matchPolicy", "supported values"),
        ("sideEffects", json!("Some"), "sideEffects", "supported values"),
        ("sideEffects", json!(null), "sideEffects", "must specify one of None, NoneOnDryRun"),
        ("timeoutSeconds", json!(31), "timeoutSeconds", "between 1 and 30 seconds"),
        ("timeoutSeconds", json!(0), "timeoutSeconds", "between 1 and 30 seconds"),
        ("admissionReviewVersions", json!([]), "admissionReviewVersions", "must specify one of"),
        ("admissionReviewVersions", json!(["v2"]), "admissionReviewVersions", "at least one of"),
        ("clientConfig", json!({}), "clientConfig", "exactly one of url or service is required"),
        (
            "clientConfig",
            json!({"url": "http://example.com"}),
            "clientConfig.url",
            "'https' is the only allowed URL scheme",
        ),
        (
            "clientConfig",
            json!({"url": "https://a@example.com"}),
            "clientConfig.url",
            "user information is not permitted",
        ),
        (
            "clientConfig",
            json!({"url": "https://example.com/#part"}),
            "clientConfig.url",
            "fragments are not permitted",
        ),
        (
            "clientConfig",
            json!({"url": "https://example.com/?a=b"}),
            "clientConfig.url",
            "query parameters are not permitted",
        ),
        ("clientConfig", json!({"url": "https:///path"}), "clientConfig.url", "host must be"),
        (
            "clientConfig",
            json!({"service": {"name": "", "namespace": "a"}}),
            "clientConfig.service.name",
            "service name is required",
        ),
        (
            "clientConfig",
            json!({"service": {"name": "a", "namespace": "a", "port": 70000}}),
            "clientConfig.service.port",
            "port is not valid",
        ),
        (
            "clientConfig",
            json!({"service": {"name": "a", "namespace": "a", "path": "a//b"}}),
            "clientConfig.service.path",
            "must start with a '/'",
        ),
        (
            "namespaceSelector",
            json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            "namespaceSelector.matchExpressions[0].operator",
            "not a valid selector operator",
        ),
        (
            "matchConditions",
            json!([{"name": "a", "expression": "objekt.spec == 1"}]),
            "matchConditions[0].expression",
            "undeclared reference",
        ),
        (
            "matchConditions",
            json!([{"name": "a", "expression": "params.a == 1"}]),
            "matchConditions[0].expression",
            "undeclared reference",
        ),
        ("rules", json!([rule(&[], &["CREATE"])]), "rules[0].resources", ""),
        ("rules", json!([rule(&["pods"], &["LOOK"])]), "rules[0].operations[0]", "supported"),
    ] {
        let mut webhook = sound();
        webhook[field] = value;
        for path in [VALIDATING, MUTATING] {
            let status = api.post(path, &with(webhook.clone())).await.refused(422, "Invalid");
            let wrong = format!("webhooks[0].{wrong}");
            assert!(fields(&status).contains(&wrong), "{wrong}: {status}");
            assert!(text(&status["message"]).contains(why), "{why}: {status}");
        }
    }
    let mut eager = sound();
    eager["reinvocationPolicy"] = json!("Always");
    api.post(MUTATING, &with(eager)).await.refused(422, "Invalid");
    let twice = json!({"metadata": {"name": "guard"}, "webhooks": [sound(), sound()]});
    let status = api.post(VALIDATING, &twice).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["webhooks[1].name"]);
    api.post(VALIDATING, &with(sound())).await.made();
    api.post(MUTATING, &with(sound())).await.made();
}

#[tokio::test]
async fn the_webhooks_of_a_tenant_are_refused_unless_the_operator_says_where_they_may_be() {
    let api = Api::new().await;
    api.post(CLUSTERS, &json!({"metadata": {"name": "one"}})).await.made();
    let tenant = api.in_cluster("one");
    for path in [VALIDATING, MUTATING] {
        let status = tenant.post(path, &with(sound())).await.refused(422, "Invalid");
        assert_eq!(fields(&status), ["webhooks[0].failurePolicy"]);
        assert!(text(&status["message"]).contains("--tenant-webhooks"), "{status}");
    }
    let mut skippable = sound();
    skippable["failurePolicy"] = json!("Ignore");
    let answer = tenant.post(VALIDATING, &with(skippable)).await;
    let warnings = answer.warnings();
    answer.made();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("guard.example.com") && warnings[0].contains("never called"));
    let path = format!("{VALIDATING}/guard");
    let harden = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]);
    tenant.json_patch(&path, &harden).await.refused(422, "Invalid");
    // What is stored can be labelled without another warning.
    let answer = tenant.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert!(answer.warnings().is_empty());
    answer.ok();
    tenant.config_map("a", json!({})).await;
    let mut quiet = sound();
    quiet["rules"] = json!([]);
    let answer = tenant.post(MUTATING, &with(quiet)).await;
    assert!(answer.warnings().is_empty());
    answer.made();
}

#[tokio::test]
async fn a_webhook_outside_of_the_networks_of_tenants_is_not_called() {
    let reach = "10.0.0.0/8".parse().expect("a network");
    let api = Api::with(Config { tenant_webhooks: reach, ..Config::default() }).await;
    api.post(CLUSTERS, &json!({"metadata": {"name": "one"}})).await.made();
    let (tenant, hook) = (api.in_cluster("one"), Hook::allowing().await);
    hook.validates(&tenant, json!({})).await;
    let map = json!({"metadata": {"name": "a"}});
    let status = tenant.post(MAPS, &map).await.refused(500, "InternalError");
    let message = text(&status["message"]);
    assert!(message.contains("127.0.0.1 is outside of the networks"), "{message}");
    assert!(message.contains("--tenant-webhooks"), "{message}");
    assert!(hook.asked().is_empty());
    // What one cluster asks for is no business of another.
    api.config_map("a", json!({})).await;
}

#[tokio::test]
async fn a_webhook_inside_of_the_networks_of_tenants_is_called() {
    let reach = "10.0.0.0/8,127.0.0.0/8".parse().expect("networks");
    let api = Api::with(Config { tenant_webhooks: reach, ..Config::default() }).await;
    api.post(CLUSTERS, &json!({"metadata": {"name": "one"}})).await.made();
    let (tenant, hook) = (api.in_cluster("one"), Hook::allowing().await);
    hook.validates(&tenant, json!({})).await;
    tenant.config_map("a", json!({})).await;
    api.config_map("b", json!({})).await;
    assert_eq!(hook.names(), ["a"]);
}
