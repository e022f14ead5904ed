//! Patterns, signers, refusals in the audit log, and connections.

use crate::asking::{Asker, DEADLINE};
use crate::{CONFIG_MAPS, Tenants};
use interlock_apiserver::limits::Caps;
use interlock_apiserver::{Config, Server};
use serde_json::{Value, json};
use std::time::Instant;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition with many patterns, all of which are different, and large once they are compiled.
fn patterned(kind: usize, count: usize) -> Value {
    let properties: serde_json::Map<String, Value> = (0..count)
        .map(|number| {
            let pattern = format!("^({kind}x{number}[a-z0-9]{{0,60}}){{0,3}}$");
            (format!("f{number}"), json!({"type": "string", "pattern": pattern}))
        })
        .collect();
    let plural = format!("widgets{kind}");
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": format!("widget{kind}"), "kind": format!("Widget{kind}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties},
                }}},
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_that_were_forgotten_still_hold() {
    let tenants = Tenants::with(Caps::default()).await;
    tenants.quiet.make(DEFINITIONS, &patterned(0, 3)).await;
    // Enough to fill the room for compiled patterns more than once.
    for kind in 1..=4 {
        tenants.loud.make(DEFINITIONS, &patterned(kind, 600)).await;
    }
    let widgets = "/apis/example.com/v1/namespaces/default/widgets0";
    tenants.quiet.until(widgets, |answer| answer.code == 200).await;
    let widget = |text: &str| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget0", "metadata": {"generateName": "w-"},
            "spec": {"f1": text},
        })
    };
    tenants.quiet.make(widgets, &widget("0x1abc")).await;
    let refused = tenants.quiet.post(widgets, &widget("something else")).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    assert!(refused.text().contains("should match"), "{}", refused.text());
    tenants.neighbour_is_served().await;
}

#[tokio::test]
async fn whoever_approves_needs_the_right_for_the_signer() {
    let tenants = Tenants::with(Caps::default()).await;
    let admin = Asker::admin(&tenants.server).in_cluster("loud");
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({
        "metadata": {"name": "one"},
        "spec": {"request": REQUEST, "signerName": "example.com/mine", "usages": ["client auth"]},
    });
    admin.make(requests, &request).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin.make(accounts, &json!({"metadata": {"name": "approver"}})).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let group = "certificates.k8s.io";
    let rules = json!([{
        "apiGroups": [group], "verbs": ["get", "update", "patch"],
        "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"],
    }]);
    admin.make(roles, &json!({"metadata": {"name": "approver"}, "rules": rules})).await;
    let subject = json!({"kind": "ServiceAccount", "name": "approver", "namespace": "default"});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"});
    let binding = json!({"metadata": {"name": "approver"}, "subjects": [subject], "roleRef": role});
    admin.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let token = admin.make(&format!("{accounts}/approver/token"), &json!({})).await;
    let token = token["status"]["token"].as_str().expect("a token").to_owned();
    let approver = Asker::with_token(&tenants.server, &token).in_cluster("loud");
    let condition =
        json!({"type": "Approved", "status": "True", "reason": "Test", "message": "yes"});
    let approval = json!({"status": {"conditions": [condition]}});
    let path = format!("{requests}/one/approval");
    let refused = approver.merge(&path, &approval).await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    let why = "user not permitted to approve requests with signerName \\\"example.com/mine\\\"";
    assert!(refused.text().contains(why), "{}", refused.text());
    let rules = json!([
        rules[0],
        {"apiGroups": [group], "verbs": ["approve"], "resources": ["signers"], "resourceNames": ["example.com/*"]},
    ]);
    let raised = admin.merge(&format!("{roles}/approver"), &json!({"rules": rules})).await;
    assert_eq!(raised.code, 200, "{}", raised.text());
    let approved = approver.merge(&path, &approval).await;
    assert_eq!(approved.code, 200, "{}", approved.text());
}

/// Any bytes of the right form: nobody signs it here.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQg==";

#[tokio::test]
async fn refusals_do_not_fill_the_audit_log() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_directory = Some(directory.path().to_owned());
    let now: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    // All in one second, however slow the machine is.
    let config =
        Config { data_directory, clock: std::sync::Arc::new(move || now), ..Config::default() };
    let tenants = Tenants::of(Server::start(config).await.expect("a server")).await;
    for _ in 0..300 {
        assert_eq!(tenants.loud.post(CONFIG_MAPS, &json!({"metadata": {}})).await.code, 422);
    }
    tenants.quiet.make(CONFIG_MAPS, &json!({"metadata": {"name": "seen"}})).await;
    let path = directory.path().join("audit.log");
    let began = Instant::now();
    let lines = loop {
        let text = std::fs::read_to_string(&path).expect("there is a log");
        if text.contains("\"name\":\"seen\"") || text.contains("configmaps/seen") {
            break text;
        }
        if text.lines().any(|line| line.contains("/clusters/quiet") && line.contains("configmaps"))
        {
            break text;
        }
        assert!(began.elapsed() < DEADLINE, "the neighbour's write is not in the log");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let refused = lines.lines().filter(|line| line.contains("\"code\":422")).count();
    assert!((1..=20).contains(&refused), "{refused} refusals");
}
