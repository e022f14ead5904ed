//! Cases about what a policy matches, and what its expressions know.

use super::{Asked, Case, MAPS, map, rule};
use serde_json::{Value, json};

const ONE: &str = "/api/v1/namespaces/{namespace}/configmaps/there";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/{namespace}/widgets";
const SCALERS: &str = "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = matching();
    cases.extend(conditions());
    cases.extend(variables());
    cases.extend(operations());
    cases.extend(context());
    cases.extend(types());
    cases.extend(schemas_and_costs());
    cases
}

fn never() -> Value {
    json!([{"expression": "false", "message": "it matches"}])
}

fn labelled(name: &str, labels: Value) -> Value {
    let mut map = map(name, json!({}));
    map["metadata"]["labels"] = labels;
    map
}

fn matching() -> Vec<Case> {
    let maps = rule("", "v1", "configmaps");
    let mut only = maps.clone();
    only["resourceNames"] = json!(["named"]);
    let mut created = maps.clone();
    created["operations"] = json!(["CREATE"]);
    let about =
        |constraints: Value| json!({"matchConstraints": constraints, "validations": never()});
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}},
    });
    let old_scalers = rule("autoscaling", "v1", "horizontalpodautoscalers");
    vec![
        Case::new("match-object", about(json!({
            "resourceRules": [maps.clone()],
            "objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]},
        })))
        .ask(Asked::post(MAPS, labelled("a", json!({"free": "yes"}))))
        .ask(Asked::post(MAPS, labelled("a", json!({"other": "yes"})))),
        Case::new("match-excluded", about(json!({
            "resourceRules": [rule("", "v1", "*")], "excludeResourceRules": [maps.clone()],
        })))
        .ask_map("a", json!({}))
        .ask(Asked::post("/api/v1/namespaces/{namespace}/secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}))),
        Case::new("match-name", about(json!({"resourceRules": [only]})))
            .ask_map("named", json!({}))
            .ask_map("other", json!({})),
        Case::new("match-operation", about(json!({"resourceRules": [created]})))
            .with_map("there", json!({}))
            .ask_map("a", json!({}))
            .ask(Asked::merge(ONE, json!({"data": {"a": "b"}}))),
        Case::new("match-equivalent", about(json!({
            "resourceRules": [old_scalers.clone()], "matchPolicy": "Equivalent",
        })))
        .ask(Asked::post(SCALERS, scaler.clone())),
        Case::new("match-exact", about(json!({
            "resourceRules": [old_scalers], "matchPolicy": "Exact",
        })))
        .ask(Asked::post(SCALERS, scaler)),
        // The binding narrows what the policy is about.
        Case::new("match-binding", about(json!({"resourceRules": [maps]})))
            .bound(json!({"matchResources": {"objectSelector": {"matchLabels": {"strict": "yes"}}}}))
            .ask(Asked::post(MAPS, labelled("a", json!({"strict": "yes"}))))
            .ask(Asked::post(MAPS, labelled("a", json!({"strict": "no"})))),
    ]
}

fn conditions() -> Vec<Case> {
    let with = |conditions: Value, failure: &str| json!({"failurePolicy": failure, "matchConditions": conditions, "validations": never()});
    let named = json!([
        {"name": "not-free", "expression": "object.metadata.name != 'free'"},
        {"name": "has-data", "expression": "has(object.data)"},
    ]);
    let broken = json!([{"name": "broken", "expression": "object.data.none == 'yes'"}]);
    let decided = json!([
        {"name": "broken", "expression": "object.data.none == 'yes'"},
        {"name": "decides", "expression": "object.metadata.name == 'other'"},
    ]);
    vec![
        Case::new("condition", with(named, "Fail"))
            .ask_map("free", json!({"a": "b"}))
            .ask_map("bound", json!({"a": "b"}))
            .ask(Asked::post(MAPS, labelled("bound", json!({})))),
        Case::new("condition-fails", with(broken.clone(), "Fail")).ask_map("a", json!({})),
        Case::new("condition-ignored", with(broken, "Ignore")).ask_map("a", json!({})),
        // One that does not hold decides, whatever the others come to.
        Case::new("condition-decides", with(decided, "Fail"))
            .ask_map("a", json!({}))
            .ask_map("other", json!({})),
    ]
}

fn variables() -> Vec<Case> {
    let spec = json!({
        "variables": [
            {"name": "keys", "expression": "has(object.data) ? object.data.map(k, k) : []"},
            {"name": "count", "expression": "size(variables.keys)"},
            {"name": "unused", "expression": "object.data.none"},
        ],
        "validations": [{
            "expression": "variables.count <= 2",
            "messageExpression": "'at most 2 keys, not ' + string(variables.count)",
        }],
    });
    let failing = json!({
        "variables": [{"name": "none", "expression": "object.data.none"}],
        "validations": [{"expression": "variables.none == 'yes'"}],
    });
    vec![
        Case::new("variables", spec)
            .ask_map("a", json!({"a": "1", "b": "2"}))
            .ask_map("a", json!({"a": "1", "b": "2", "c": "3"}))
            .ask(Asked::post(MAPS, labelled("a", json!({})))),
        Case::new("variable-fails", failing).ask_map("a", json!({"a": "1"})),
    ]
}

fn operations() -> Vec<Case> {
    let fixed = json!({"validations": [{
        "expression": "oldObject == null || object == null || object.data.fixed == oldObject.data.fixed",
        "messageExpression": "'fixed is ' + oldObject.data.fixed",
    }]});
    let kept = json!({"validations": [{
        "expression": "request.operation != 'DELETE' || oldObject.data.kept != 'yes'",
        "message": "it is kept",
    }]});
    let mut scale = rule("example.com", "v1", "widgets/scale");
    scale["operations"] = json!(["UPDATE"]);
    let few = json!({
        "matchConstraints": {"resourceRules": [scale]},
        "validations": [{"expression": "object.spec.replicas <= 5",
            "messageExpression": "request.subResource + ': ' + string(object.spec.replicas) + ' are too many'"}],
    });
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {"size": 3},
    });
    let scale = "/apis/example.com/v1/namespaces/{namespace}/widgets/a/scale";
    vec![
        Case::new("old-object", fixed)
            .with_map("there", json!({"fixed": "1"}))
            .ask(Asked::merge(ONE, json!({"data": {"fixed": "2"}})))
            .ask(Asked::merge(ONE, json!({"data": {"other": "2"}})))
            .ask(Asked::new("PUT", ONE, map("there", json!({"fixed": "3"}))))
            .ask(Asked::new("DELETE", ONE, Value::Null)),
        Case::new("deletion", kept)
            .with_map("there", json!({"kept": "yes"}))
            .with_map("free", json!({"kept": "no"}))
            .ask(Asked::new("DELETE", ONE, Value::Null))
            .ask(Asked::merge(ONE, json!({"data": {"a": "b"}}))),
        Case::new("subresource", few)
            .with(WIDGETS, widget)
            .ask(Asked::merge(scale, json!({"spec": {"replicas": 5}})))
            .ask(Asked::merge(scale, json!({"spec": {"replicas": 6}}))),
    ]
}

fn context() -> Vec<Case> {
    let says = |expression: &str| json!({"validations": [{"expression": "false", "messageExpression": expression}]});
    let may = |expression: &str| json!({"validations": [{"expression": expression, "message": "the user may not"}]});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "writer"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "update", "patch", "get"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    let with_alice = |case: Case| {
        case.with(ROLES, role.clone())
            .with(BINDINGS, binding.clone())
            .ask(Asked::post(MAPS, map("a", json!({}))).by("alice"))
    };
    vec![
        Case::new("namespace-object", json!({"validations": [{
            "expression": "namespaceObject.metadata.labels.tier == object.data.tier",
            "messageExpression": "'the namespace ' + namespaceObject.metadata.name + ' is ' + namespaceObject.metadata.labels.tier",
        }]}))
        .ask_map("a", json!({"tier": "gold"}))
        .ask_map("a", json!({"tier": "iron"})),
        Case::new("request-place", says(
            "request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + ' ' + request.namespace + '/' + request.name + ' ' + string(request.dryRun)",
        ))
        .with_map("there", json!({}))
        .ask_map("a", json!({}))
        .ask(Asked::merge(ONE, json!({"data": {"a": "b"}})))
        .ask(Asked::new("DELETE", ONE, Value::Null)),
        with_alice(Case::new("request-user", says(
            "request.userInfo.username + ' of ' + request.userInfo.groups.join(',')",
        ))),
        with_alice(Case::new("authorizer", may(
            "authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
        )))
        .ask_map("a", json!({})),
        with_alice(Case::new("authorizer-granted", may(
            "authorizer.group('').resource('configmaps').namespace(request.namespace).check('update').allowed()",
        ))),
        with_alice(Case::new("authorizer-request", may(
            "authorizer.requestResource.check('delete').allowed()",
        ))),
        with_alice(Case::new("authorizer-path", may("authorizer.path('/metrics').check('get').allowed()"))),
    ]
}

/// Expressions about one text: the policy of each holds for the first text, and not for the second.
const OF_TEXT: [(&str, &str, &str, &str); 18] = [
    ("type-quantity", "quantity(object.data.n).isGreaterThan(quantity('1Gi'))", "2Gi", "512Mi"),
    ("type-quantity-wrong", "quantity(object.data.n).isLessThan(quantity('1'))", "100m", "many"),
    ("type-address", "ip(object.data.n).family() == 4", "10.0.0.1", "fd00::1"),
    ("type-network", "cidr('10.0.0.0/8').containsIP(object.data.n)", "10.1.2.3", "192.0.2.1"),
    (
        "type-url",
        "url(object.data.n).getHost() == 'example.com'",
        "https://example.com/a",
        "https://a.example",
    ),
    ("type-pattern", "object.data.n.matches('^[a-z]+-[0-9]+$')", "abc-12", "ABC"),
    ("type-find", "object.data.n.find('[0-9]+') == '42'", "a42b", "a4b"),
    ("type-split", "object.data.n.split(',').isSorted()", "a,b,c", "c,a"),
    ("type-integer", "int(object.data.n) % 2 == 0", "4", "3"),
    ("type-integer-wrong", "int(object.data.n) > 0", "1", "one"),
    ("type-float", "double(object.data.n) < 1.5", "1.25", "1.75"),
    ("type-duration", "duration(object.data.n) <= duration('1h')", "30m", "2h"),
    (
        "type-time",
        "timestamp(object.data.n).getFullYear() == 2026",
        "2026-01-02T03:04:05Z",
        "2025-01-02T03:04:05Z",
    ),
    ("type-format", "!format.dns1123Label().validate(object.data.n).hasValue()", "a-b", "A_B"),
    (
        "type-optional",
        "object.data[?'none'].orValue('no') == 'no' && object.data.?n.orValue('') == 'yes'",
        "yes",
        "no",
    ),
    (
        "type-semver",
        "isSemver(object.data.n) && semver(object.data.n).isGreaterThan(semver('1.2.0'))",
        "1.10.0",
        "1.1.9",
    ),
    ("type-division", "10 / int(object.data.n) > 1", "5", "0"),
    ("type-exists", "object.data.exists_one(k, object.data[k] == 'x')", "x", "y"),
];

fn types() -> Vec<Case> {
    OF_TEXT
        .into_iter()
        .map(|(name, expression, good, bad)| {
            Case::new(name, json!({"validations": [{"expression": expression}]}))
                .ask_map("a", json!({"n": good}))
                .ask_map("a", json!({"n": bad}))
        })
        .collect()
}

/// Types of a schema, and an expression that costs more than it may.
fn schemas_and_costs() -> Vec<Case> {
    let sized = json!({
        "matchConstraints": {"resourceRules": [rule("example.com", "v1", "widgets")]},
        "validations": [{
            "expression": "object.spec.size > 2 && object.spec.size < 10.5 && type(object.spec.size) == int",
            "messageExpression": "'a size of %d and %s'.format([object.spec.size, object.spec.colour])",
        }],
    });
    let widget = |size: u64| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": {"size": size, "colour": "red"}})
    };
    let many: serde_json::Map<String, Value> =
        (0..400).map(|number| (format!("k{number}"), json!("v"))).collect();
    let all = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'none')))";
    vec![
        Case::new("type-custom", sized)
            .ask(Asked::post(WIDGETS, widget(5)))
            .ask(Asked::post(WIDGETS, widget(50))),
        Case::new("cost", json!({"validations": [{"expression": all}]}))
            .ask_map("a", json!({"k": "v"}))
            .ask_map("a", Value::Object(many)),
    ]
}
