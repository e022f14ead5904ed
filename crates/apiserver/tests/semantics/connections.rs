//! Connections to pods pass admission before anything else: commands in them, and their ports.
//!
//! Nobody runs pods here: the answer to a connection that admission lets pass is that the pod does not run.

use crate::support::{Answer, Api, text};
use crate::webhooks::{Hook, MUTATING, Reply, VALIDATING, rule};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A server with a pod `a`.
async fn with_pod() -> Api {
    let api = Api::new().await;
    let pod = json!({
        "metadata": {"name": "a"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    api.post(PODS, &pod).await.made();
    api
}

/// A policy, and a binding that enforces it.
async fn enforce(api: &Api, name: &str, constraints: Value, expression: &str) {
    let policy = json!({"metadata": {"name": name}, "spec": {
        "matchConstraints": constraints, "validations": [{"expression": expression}],
    }});
    api.post(POLICIES, &policy).await.made();
    let binding = json!({"metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]}});
    api.post(BINDINGS, &binding).await.made();
}

fn about(resources: &[&str], operations: &[&str]) -> Value {
    json!({"resourceRules": [rule(resources, operations)]})
}

async fn exec(api: &Api, query: &str) -> Answer {
    api.get(&format!("{PODS}/a/exec?stdout=true&{query}")).await
}

/// Admission let the connection pass.
fn passed(answer: Answer) {
    let status = answer.refused(404, "NotFound");
    let message = text(&status["message"]);
    assert!(message.contains("does not run"), "{message}");
}

#[tokio::test]
async fn a_policy_can_refuse_a_command_in_a_pod() {
    let api = with_pod().await;
    let no_shell = "!('sh' in object.command)";
    enforce(&api, "no-shell", about(&["pods/exec"], &["CONNECT"]), no_shell).await;
    let status = exec(&api, "command=sh&command=-c").await.refused(422, "Invalid");
    let why = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'no-shell' with binding 'no-shell' \
               denied request: failed expression: !('sh' in object.command)";
    assert_eq!(status["message"], why);
    let posted = api.post(&format!("{PODS}/a/exec?stdout=true&command=sh"), &json!({})).await;
    posted.refused(422, "Invalid");
    // As upstream: admission comes before the pod is looked for.
    let nobody = api.get(&format!("{PODS}/nobody/exec?stdout=true&command=sh")).await;
    nobody.refused(422, "Invalid");
    passed(exec(&api, "command=ls").await);
}

#[tokio::test]
async fn a_policy_sees_a_connection_as_upstream_shows_it() {
    let api = with_pod().await;
    let sees = "request.operation == 'CONNECT' && request.resource.resource == 'pods' \
                && request.subResource == 'exec' && request.name == 'a' \
                && request.namespace == 'default' && request.userInfo.username == 'alice' \
                && request.kind.group == '' && request.kind.version == 'v1' \
                && request.kind.kind == 'PodExecOptions' && object.kind == 'PodExecOptions' \
                && object.apiVersion == 'v1' && oldObject == null && object.container == 'web' \
                && object.command == ['ls', '-l'] && object.stdout == true \
                && !has(object.tty) && namespaceObject.metadata.name == 'default'";
    enforce(&api, "sees", about(&["pods/exec"], &["*"]), sees).await;
    let query = "command=ls&command=-l&container=web&tty=false";
    exec(&api, query).await.refused(422, "Invalid");
    passed(exec(&api.as_user("alice", &["system:masters"]), query).await);
}

#[tokio::test]
async fn policies_about_other_things_do_not_apply_to_connections() {
    let api = with_pod().await;
    enforce(&api, "writes", about(&["*/*"], &["CREATE", "UPDATE", "DELETE"]), "false").await;
    enforce(&api, "pods", about(&["pods"], &["*"]), "false").await;
    // Options have no labels, so no selector of objects takes them.
    let mut unlabelled = about(&["pods/exec"], &["CONNECT"]);
    unlabelled["objectSelector"] =
        json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    enforce(&api, "labelled", unlabelled, "false").await;
    passed(exec(&api, "command=sh").await);
    enforce(&api, "attach", about(&["pods/attach"], &["CONNECT"]), "false").await;
    api.get(&format!("{PODS}/a/attach?stdout=true")).await.refused(422, "Invalid");
    passed(exec(&api, "command=sh").await);
    passed(api.get(&format!("{PODS}/a/portforward")).await);
    let well_known = "has(object.ports) && object.ports.all(port, port < 1024)";
    enforce(&api, "ports", about(&["pods/*"], &["CONNECT"]), well_known).await;
    passed(api.get(&format!("{PODS}/a/portforward?ports=80,443")).await);
    let refused = api.get(&format!("{PODS}/a/portforward?ports=8080")).await;
    refused.refused(422, "Invalid");
    // A log is read, and nobody connects.
    passed(api.get(&format!("{PODS}/a/log")).await);
}

#[tokio::test]
async fn a_webhook_can_refuse_a_connection() {
    let api = with_pod().await;
    let hook =
        Hook::answering(|asked| json!({"allowed": asked["object"]["command"] != json!(["sh"])}))
            .await;
    hook.validates(&api, json!({"rules": [rule(&["pods/exec"], &["CONNECT"])]})).await;
    let status = exec(&api, "command=sh&tty=true").await.refused(400, "");
    let why = "admission webhook \"guard.example.com\" denied the request without explanation";
    assert_eq!(status["message"], why);
    passed(exec(&api, "command=ls").await);
    api.post(&format!("{PODS}/a/eviction"), &json!({"metadata": {"name": "a"}})).await.made();
    let asked = hook.asked();
    assert_eq!(asked.len(), 2);
    let options = json!({
        "apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"], "stdout": true, "tty": true,
    });
    assert_eq!(asked[0]["object"], options);
    assert_eq!((&asked[0]["oldObject"], &asked[0]["options"]), (&Value::Null, &Value::Null));
    let shown = ["operation", "subResource", "name", "namespace"].map(|field| &asked[0][field]);
    assert_eq!(shown, ["CONNECT", "exec", "a", "default"]);
    assert_eq!(asked[0]["userInfo"]["username"], "admin");
    assert_eq!(asked[0]["dryRun"], false);
}

#[tokio::test]
async fn a_webhook_that_cannot_be_called_refuses_connections_unless_it_may_fail() {
    let api = with_pod().await;
    let hook = Hook::replying(|_| Box::pin(async { Reply::Close })).await;
    let rules = json!({"rules": [rule(&["pods/exec"], &["CONNECT"])]});
    for path in [VALIDATING, MUTATING] {
        api.post(path, &hook.configuration("guard", rules.clone())).await.made();
        let status = exec(&api, "command=ls").await.refused(500, "InternalError");
        let message = text(&status["message"]);
        assert!(message.contains("failed calling webhook \"guard.example.com\""), "{message}");
        let skipped = json!([
            {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
        ]);
        api.json_patch(&format!("{path}/guard"), &skipped).await.ok();
        passed(exec(&api, "command=ls").await);
        api.delete(&format!("{path}/guard")).await.ok();
    }
}

#[tokio::test]
async fn a_mutating_webhook_can_change_the_command() {
    let api = with_pod().await;
    let patch = json!([{"op": "replace", "path": "/command", "value": ["ls"]}]);
    let hook = Hook::patching(patch).await;
    let rules = json!({"rules": [rule(&["pods/exec"], &["CONNECT"])]});
    hook.mutates(&api, "harmless", rules).await;
    let changed = "object.command == ['ls'] && object.kind == 'PodExecOptions'";
    enforce(&api, "changed", about(&["pods/exec"], &["CONNECT"]), changed).await;
    passed(exec(&api, "command=sh").await);
}

#[tokio::test]
async fn whoever_may_not_connect_is_not_shown_to_webhooks() {
    let api = with_pod().await;
    let hook = Hook::allowing().await;
    hook.validates(&api, json!({"rules": [rule(&["*/*"], &["CONNECT"])]})).await;
    exec(&api.as_user("eve", &["system:authenticated"]), "command=ls")
        .await
        .refused(403, "Forbidden");
    api.put(&format!("{PODS}/a/exec"), &json!({})).await.refused(405, "MethodNotAllowed");
    api.get(&format!("{PODS}/a/portforward?ports=many")).await.refused(400, "BadRequest");
    assert!(hook.asked().is_empty());
}
