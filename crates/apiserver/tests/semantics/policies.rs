//! ValidatingAdmissionPolicies: what they refuse, warn of and write down, and that nothing slips past them.

use crate::support::{Answer, Api, MAPS, fields, text};
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// The rules of a policy about config maps.
fn about_maps() -> Value {
    json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }]})
}

/// A policy about config maps, with other fields of its spec.
fn policy(name: &str, spec: Value) -> Value {
    let mut whole = json!({"matchConstraints": about_maps()});
    for (field, value) in spec.as_object().expect("a spec is an object") {
        whole[field.as_str()] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": whole})
}

fn binding(name: &str, spec: Value) -> Value {
    let mut whole = json!({"policyName": name, "validationActions": ["Deny"]});
    for (field, value) in spec.as_object().expect("a spec is an object") {
        whole[field.as_str()] = value.clone();
    }
    json!({"metadata": {"name": format!("{name}-binding")}, "spec": whole})
}

async fn enforce(api: &Api, name: &str, spec: Value, bound: Value) {
    api.post(POLICIES, &policy(name, spec)).await.made();
    api.post(BINDINGS, &binding(name, bound)).await.made();
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// The message of a refusal by a policy.
fn denied(answer: Answer) -> String {
    text(&answer.refused(422, "Invalid")["message"])
}

#[tokio::test]
async fn a_policy_refuses_what_it_does_not_hold_for_in_upstreams_words() {
    let api = Api::new().await;
    let rule =
        json!({"expression": "object == null || object.data.n == 'yes'", "message": "say yes"});
    enforce(&api, "polite", json!({"validations": [rule]}), json!({})).await;
    let status = api.post(MAPS, &map("a", json!({"n": "no"}))).await.refused(422, "Invalid");
    let why = "ValidatingAdmissionPolicy 'polite' with binding 'polite-binding' denied request: \
               say yes";
    assert_eq!(status["message"], format!("configmaps \"a\" is forbidden: {why}"));
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps", "causes": [{"message": why}]})
    );
    api.post(MAPS, &map("a", json!({"n": "yes"}))).await.made();
    let path = format!("{MAPS}/a");
    let no = json!({"data": {"n": "no"}});
    assert!(denied(api.put(&path, &map("a", json!({"n": "no"}))).await).ends_with("say yes"));
    assert!(denied(api.merge(&path, &no).await).ends_with("say yes"));
    assert!(denied(api.strategic(&path, &no).await).ends_with("say yes"));
    let patch = json!([{"op": "replace", "path": "/data/n", "value": "no"}]);
    assert!(denied(api.json_patch(&path, &patch).await).ends_with("say yes"));
    let apply = format!("{path}?fieldManager=t&force=true");
    assert!(denied(api.apply(&apply, &map("a", json!({"n": "no"}))).await).ends_with("say yes"));
    let new = format!("{MAPS}/b?fieldManager=t");
    assert!(denied(api.apply(&new, &map("b", json!({"n": "no"}))).await).ends_with("say yes"));
    let dry = format!("{MAPS}?dryRun=All");
    denied(api.post(&dry, &map("c", json!({"n": "no"}))).await);
    // A policy without a binding is about nothing.
    api.delete(&format!("{BINDINGS}/polite-binding")).await.ok();
    api.merge(&path, &no).await.ok();
}

#[tokio::test]
async fn deletions_are_judged_one_by_one() {
    let api = Api::new().await;
    let rule = json!({
        "expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'",
        "reason": "Forbidden",
    });
    enforce(&api, "keep", json!({"validations": [rule]}), json!({})).await;
    api.config_map("kept", json!({})).await;
    api.config_map("other", json!({})).await;
    let status = api.delete(&format!("{MAPS}/kept")).await.refused(403, "Forbidden");
    assert!(text(&status["message"]).contains("failed expression: request.operation != 'DELETE'"));
    api.delete(&format!("{MAPS}/other")).await.ok();
    api.delete(MAPS).await.refused(403, "Forbidden");
    api.get(&format!("{MAPS}/kept")).await.ok();
}

#[tokio::test]
async fn variables_messages_and_conditions_are_composed() {
    let api = Api::new().await;
    let spec = json!({
        "matchConditions": [{"name": "not-kept", "expression": "request.name != 'skipped'"}],
        "variables": [
            {"name": "count", "expression": "object == null ? 0 : size(object.data)"},
            {"name": "double", "expression": "variables.count * 2"},
            {"name": "broken", "expression": "object.nothing == 1"},
        ],
        "validations": [{
            "expression": "variables.double < 4",
            "messageExpression": "'%d is too much in %s'.format([variables.double, \
                                  namespaceObject.metadata.name])",
        }, {"expression": "variables.count < 2 || variables.broken"}],
    });
    enforce(&api, "few", spec, json!({})).await;
    let two = json!({"a": "1", "b": "2"});
    let message = denied(api.post(MAPS, &map("a", two.clone())).await);
    assert!(message.ends_with("denied request: 4 is too much in default"), "{message}");
    api.post(MAPS, &map("skipped", two)).await.made();
    api.post(MAPS, &map("a", json!({"a": "1"}))).await.made();
}

#[tokio::test]
async fn an_expression_that_fails_refuses_unless_failures_are_ignored() {
    let api = Api::new().await;
    let spec = json!({"validations": [{"expression": "object.data.missing == 'a'"}]});
    enforce(&api, "strict", spec.clone(), json!({})).await;
    let message = denied(api.post(MAPS, &map("a", json!({"k": "v"}))).await);
    let why = "expression 'object.data.missing == 'a'' resulted in error: no such key: missing";
    assert!(message.ends_with(why), "{message}");
    let lenient = json!({"spec": {"failurePolicy": "Ignore"}});
    api.merge(&format!("{POLICIES}/strict"), &lenient).await.ok();
    api.post(MAPS, &map("a", json!({"k": "v"}))).await.made();
    api.post(MAPS, &map("b", json!({"missing": "b"}))).await.refused(422, "Invalid");
}

#[tokio::test]
async fn an_expression_that_takes_too_long_is_stopped() {
    let api = Api::new().await;
    let slow = "lists.range(2000).all(a, lists.range(2000).all(b, a + b >= 0))";
    let spec = json!({"validations": [{"expression": slow}]});
    enforce(&api, "slow", spec, json!({})).await;
    let message = denied(api.post(MAPS, &map("a", json!({}))).await);
    assert!(message.ends_with("operation cancelled: actual cost limit exceeded"), "{message}");
    let variables: Vec<Value> = (0..30)
        .map(|n| json!({"name": format!("v{n}"), "expression": slow.replace("2000", "640")}))
        .collect();
    let uses: Vec<String> = (0..30).map(|n| format!("variables.v{n}")).collect();
    let spec = json!({"spec": {
        "variables": variables, "validations": [{"expression": uses.join(" && ")}],
    }});
    api.merge(&format!("{POLICIES}/slow"), &spec).await.ok();
    let message = denied(api.post(MAPS, &map("a", json!({}))).await);
    assert!(message.contains("running out of cost budget"), "{message}");
}

#[tokio::test]
async fn warnings_are_headers_and_refusals_are_not_doubled() {
    let api = Api::new().await;
    let spec = json!({"validations": [{"expression": "false", "message": "think again"}]});
    enforce(&api, "nag", spec, json!({"validationActions": ["Warn", "Audit"]})).await;
    let answer = api.post(MAPS, &map("a", json!({}))).await;
    assert_eq!(
        answer.warnings(),
        ["299 - \"Validation failed for ValidatingAdmissionPolicy 'nag' with binding \
          'nag-binding': think again\""]
    );
    answer.made();
    let both = binding("nag", json!({"validationActions": ["Deny", "Warn"]}));
    let status = api.post(BINDINGS, &both).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["spec.validationActions"]);
    // A warning comes with a refusal, too.
    let spec = json!({"validations": [{"expression": "false"}]});
    enforce(&api, "zealot", spec, json!({})).await;
    let answer = api.post(MAPS, &map("b", json!({}))).await;
    assert_eq!(answer.warnings().len(), 1);
    answer.refused(422, "Invalid");
}

#[tokio::test]
async fn rules_selectors_and_scopes_say_what_a_policy_is_about() {
    let api = Api::new().await;
    let spec = json!({
        "matchConstraints": {
            "resourceRules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
                "operations": ["CREATE"], "scope": "Namespaced",
            }],
            "excludeResourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
                "operations": ["*"],
            }],
            "namespaceSelector": {"matchLabels": {"guarded": "yes"}},
            "objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]},
        },
        "validations": [{"expression": "false"}],
    });
    enforce(&api, "none", spec, json!({})).await;
    let labelled = json!({"metadata": {"name": "guarded", "labels": {"guarded": "yes"}}});
    api.post("/api/v1/namespaces", &labelled).await.made();
    api.config_map("elsewhere", json!({})).await;
    let maps = "/api/v1/namespaces/guarded/configmaps";
    denied(api.post(maps, &map("a", json!({}))).await);
    let mut free = map("b", json!({}));
    free["metadata"]["labels"] = json!({"free": ""});
    api.post(maps, &free).await.made();
    let secret = json!({"metadata": {"name": "a"}});
    api.post("/api/v1/namespaces/guarded/secrets", &secret).await.made();
    // A binding may be about less.
    let narrow = json!({"spec": {"matchResources": {"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE"], "resourceNames": ["only"],
    }]}}});
    api.merge(&format!("{BINDINGS}/none-binding"), &narrow).await.ok();
    api.post(maps, &map("a", json!({}))).await.made();
    denied(api.post(maps, &map("only", json!({}))).await);
}

#[tokio::test]
async fn subresources_are_judged_as_what_they_are() {
    let api = Api::new().await;
    let rules = json!({"resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["deployments/scale", "deployments/status"],
    }]});
    let spec = json!({"matchConstraints": rules, "validations": [{
        "expression": "request.subResource == 'status' ? object.kind == 'Deployment' && \
                       object.status.replicas < 3 : object.kind == 'Scale' && \
                       request.kind.group == 'autoscaling' && \
                       object.spec.replicas <= oldObject.spec.replicas + 1",
    }]});
    enforce(&api, "slowly", spec, json!({})).await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let pod = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}});
    api.post(path, &deployment).await.made();
    let scale = |replicas: u32| json!({"spec": {"replicas": replicas}});
    denied(api.merge(&format!("{path}/d/scale"), &scale(3)).await);
    api.merge(&format!("{path}/d/scale"), &scale(2)).await.ok();
    let status = |replicas: u32| json!({"status": {"replicas": replicas}});
    denied(api.merge(&format!("{path}/d/status"), &status(3)).await);
    api.merge(&format!("{path}/d/status"), &status(2)).await.ok();
    // The object itself is another matter.
    api.merge(&format!("{path}/d"), &scale(9)).await.ok();
}

#[tokio::test]
async fn what_a_caller_may_do_can_be_asked() {
    let api = Api::new().await;
    let asks = "authorizer.group('').resource('secrets').namespace('default').check('get')\
                .allowed() && authorizer.requestResource.check('create').allowed()";
    let spec = json!({"validations": [{"expression": asks, "message": "readers of secrets only"}]});
    enforce(&api, "readers", spec, json!({})).await;
    api.post(MAPS, &map("a", json!({}))).await.made();
    let role = json!({"metadata": {"name": "writer"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]});
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.made();
    let bound = json!({"metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]});
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &bound).await.made();
    let eve = api.as_user("eve", &[]);
    let message = denied(eve.post(MAPS, &map("b", json!({}))).await);
    assert!(message.ends_with("readers of secrets only"), "{message}");
}

#[tokio::test]
async fn policies_of_one_cluster_are_not_those_of_another() {
    let api = Api::new().await;
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    for name in ["one", "two"] {
        api.post(clusters, &json!({"metadata": {"name": name}})).await.made();
    }
    let (one, two) = (api.in_cluster("one"), api.in_cluster("two"));
    enforce(&one, "none", json!({"validations": [{"expression": "false"}]}), json!({})).await;
    denied(one.post(MAPS, &map("a", json!({}))).await);
    two.post(MAPS, &map("a", json!({}))).await.made();
    // A policy cannot keep the cluster from being deleted.
    api.delete(&format!("{clusters}/one")).await.ok();
    api.until_gone(&format!("{clusters}/one")).await;
}

#[tokio::test]
async fn a_policy_that_could_never_work_is_refused_when_it_is_written() {
    let api = Api::new().await;
    let refusal = |field: &str, value: Value| {
        let mut whole = policy("p", json!({"validations": [{"expression": "true"}]}));
        whole["spec"][field] = value;
        whole
    };
    for (field, value, place, words) in [
        (
            "validations",
            json!([{"expression": "object."}]),
            "spec.validations[0].expression",
            "compilation failed",
        ),
        (
            "validations",
            json!([{"expression": "1"}]),
            "spec.validations[0].expression",
            "must evaluate to bool but got int",
        ),
        (
            "validations",
            json!([{"expression": "params.a == 1"}]),
            "spec.validations[0].expression",
            "undeclared reference to 'params'",
        ),
        (
            "validations",
            json!([{"expression": "true", "reason": "Odd"}]),
            "spec.validations[0].reason",
            "Unsupported value",
        ),
        (
            "validations",
            json!([{"expression": "true", "messageExpression": "1"}]),
            "spec.validations[0].messageExpression",
            "must evaluate to string",
        ),
        (
            "variables",
            json!([{"name": "a-b", "expression": "1"}]),
            "spec.variables[0].name",
            "valid CEL identifier",
        ),
        (
            "matchConditions",
            json!([{"name": "a", "expression": "variables.x"}]),
            "spec.matchConditions[0].expression",
            "undeclared reference",
        ),
        ("paramKind", json!({"apiVersion": "v1"}), "spec.paramKind.kind", "Required value"),
        ("failurePolicy", json!("Maybe"), "spec.failurePolicy", "Unsupported value"),
        (
            "auditAnnotations",
            json!([{"key": "k", "valueExpression": "1"}]),
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of [string null_type] but got int",
        ),
        (
            "matchConstraints",
            json!({"resourceRules": []}),
            "spec.matchConstraints.resourceRules",
            "Required value",
        ),
    ] {
        let status = api.post(POLICIES, &refusal(field, value)).await.refused(422, "Invalid");
        assert!(fields(&status).contains(&place.to_owned()), "{status}");
        assert!(text(&status["message"]).contains(words), "{status}");
    }
    let nothing = binding("p", json!({"paramRef": {"parameterNotFoundAction": "Deny"}}));
    let status = api.post(BINDINGS, &nothing).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["spec.paramRef"]);
}

#[tokio::test]
async fn the_status_says_what_the_schemas_say() {
    let api = Api::new().await;
    let rules = json!({"resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
        "operations": ["CREATE"],
    }]});
    let spec = json!({"matchConstraints": rules, "validations": [
        {"expression": "object.spec.replicas > 1"},
        {"expression": "object.spec.replicas > '1'", "messageExpression": "'a' + object.spec.nothing"},
    ]});
    let made = api.post(POLICIES, &policy("typed", spec)).await.made();
    let status = &made["status"];
    assert_eq!(status["observedGeneration"], 1);
    let warnings = status["typeChecking"]["expressionWarnings"].as_array().expect("there are some");
    assert_eq!(warnings.len(), 2, "{status}");
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[1].expression");
    let warning = text(&warnings[0]["warning"]);
    assert!(
        warning.starts_with("apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching"),
        "{warning}"
    );
    assert!(text(&warnings[1]["warning"]).contains("undefined field 'nothing'"));
    let exact = &status["conditions"][0];
    assert_eq!((&exact["type"], &exact["status"]), (&json!("interlock.dev/Exact"), &json!("True")));
    let fixed = json!({"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}});
    let changed = api.merge(&format!("{POLICIES}/typed"), &fixed).await.ok();
    assert_eq!(changed["status"]["observedGeneration"], 2);
    assert_eq!(changed["status"]["typeChecking"], json!({}));
}

#[tokio::test]
async fn what_a_policy_says_stands_in_the_audit_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = interlock_apiserver::Config {
        data_directory: Some(directory.path().to_owned()),
        ..interlock_apiserver::Config::default()
    };
    let api = Api::with(config).await;
    let spec = json!({
        "validations": [{"expression": "object == null || size(object.data) < 2"}],
        "auditAnnotations": [
            {"key": "keys", "valueExpression": "string(size(object.data))"},
        ],
    });
    let broken = json!([{"key": "keys", "valueExpression": "object.data"}]);
    let mut refused = policy("sizes", spec.clone());
    refused["spec"]["auditAnnotations"] = broken;
    api.post(POLICIES, &refused).await.refused(422, "Invalid");
    enforce(&api, "sizes", spec, json!({"validationActions": ["Audit"]})).await;
    api.post(MAPS, &map("a", json!({"a": "1", "b": "2"}))).await.made();
    api.server.stop().await;
    let log = std::fs::read_to_string(directory.path().join("audit.log")).expect("an audit log");
    let line = log.lines().find(|line| line.contains("sizes/keys")).expect("it is noted");
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    assert_eq!(line["annotations"]["sizes/keys"], "2");
    let failure =
        text(&line["annotations"]["validation.policy.admission.k8s.io/validation_failure"]);
    let failure: Value = serde_json::from_str(&failure).expect("it is JSON");
    assert_eq!(failure[0]["policy"], "sizes");
    assert_eq!(failure[0]["binding"], "sizes-binding");
    assert_eq!(failure[0]["validationActions"], json!(["Audit"]));
    assert_eq!(line["annotations"]["interlock.dev/cluster"], "root");
}
