//! Cases about verdicts, messages and parameters.

use super::{Case, MAPS, map, rule};
use serde_json::{Value, json};

/// One validation.
fn rules(rule: Value) -> Value {
    json!({"validations": [rule]})
}

/// A policy whose parameter is a config map, with one validation.
fn with_param(rule: Value) -> Value {
    json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [rule],
    })
}

/// At least as much as the parameter says.
fn at_least() -> Value {
    json!({
        "expression": "int(object.data.n) >= int(params.data.least)",
        "messageExpression": "'at least ' + params.data.least + ', not ' + object.data.n",
    })
}

/// The binding with a parameter of this name in the namespace of the case.
fn named(name: &str, not_found: &str) -> Value {
    json!({"paramRef": {
        "name": name, "namespace": "{namespace}", "parameterNotFoundAction": not_found,
    }})
}

fn labelled(name: &str, data: Value) -> Value {
    let mut map = map(name, data);
    map["metadata"]["labels"] = json!({"limit": "yes"});
    map
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = verdicts();
    cases.extend(messages());
    cases.extend(params());
    cases.extend(params_by_label());
    cases
}

fn verdicts() -> Vec<Case> {
    let polite = json!({"expression": "object.data.n == 'yes'", "message": "say yes"});
    let mut cases = vec![
        Case::new("plain", rules(polite))
            .ask_map("a", json!({"n": "yes"}))
            .ask_map("a", json!({"n": "no"}))
            // No such key: an error, and the default is to refuse.
            .ask_map("a", json!({})),
        Case::new(
            "several",
            json!({"validations": [
                {"expression": "object.data.a == '1'", "message": "first"},
                {"expression": "object.data.b == '1'", "message": "second"},
                {"expression": "object.data.c == '1'"},
            ]}),
        )
        .ask_map("a", json!({"a": "0", "b": "0", "c": "0"}))
        .ask_map("a", json!({"a": "1", "b": "0", "c": "0"}))
        .ask_map("a", json!({"a": "1", "b": "1", "c": "0"}))
        .ask_map("a", json!({"a": "1", "b": "1", "c": "1"})),
        Case::new(
            "ignored-errors",
            json!({"failurePolicy": "Ignore", "validations": [
                {"expression": "object.data.none == '1'"},
                {"expression": "object.data.b == '1'", "message": "b is not 1"},
            ]}),
        )
        .ask_map("a", json!({"b": "1"}))
        .ask_map("a", json!({"b": "2"})),
    ];
    let reasons = [
        ("reason-forbidden", "Forbidden"),
        ("reason-invalid", "Invalid"),
        ("reason-unauthorized", "Unauthorized"),
        ("reason-too-large", "RequestEntityTooLarge"),
    ];
    cases.extend(reasons.map(|(name, reason)| {
        let rule = json!({"expression": "false", "message": "never", "reason": reason});
        Case::new(name, rules(rule)).ask_map("a", json!({}))
    }));
    let actions = [
        ("action-warn", json!(["Warn"])),
        ("action-audit", json!(["Audit"])),
        ("action-warn-audit", json!(["Warn", "Audit"])),
        ("action-deny-audit", json!(["Deny", "Audit"])),
    ];
    cases.extend(actions.map(|(name, actions)| {
        let rule = json!({"expression": "object.data.n == 'yes'", "message": "say yes"});
        Case::new(name, rules(rule))
            .bound(json!({"validationActions": actions}))
            .ask_map("a", json!({"n": "yes"}))
            .ask_map("a", json!({"n": "no"}))
            .ask_map("a", json!({}))
    }));
    cases
}

fn messages() -> Vec<Case> {
    let expression = |source: &str| json!({"expression": "object.data.n == 'yes'", "message": "say yes", "messageExpression": source});
    vec![
        Case::new("message", rules(expression("'not ' + object.data.n")))
            .ask_map("a", json!({"n": "no"}))
            .ask_map("a", json!({"n": "  "})),
        Case::new("message-fails", rules(expression("string(object.data.none)")))
            .ask_map("a", json!({"n": "no"})),
        Case::new("message-empty", rules(expression("'  '"))).ask_map("a", json!({"n": "no"})),
        Case::new("message-lines", rules(expression("'one\\ntwo'")))
            .ask_map("a", json!({"n": "no"})),
        Case::new("message-trimmed", rules(expression("'  in the middle  '")))
            .ask_map("a", json!({"n": "no"})),
        Case::new("message-none", rules(json!({"expression": "object.data.n ==  'yes' && true"})))
            .ask_map("a", json!({"n": "no"})),
        Case::new(
            "audit-annotation",
            json!({
                "validations": [{"expression": "true"}],
                "auditAnnotations": [{"key": "n", "valueExpression": "'n is ' + object.data.n"}],
            }),
        )
        .ask_map("a", json!({"n": "1"}))
        .ask_map("a", json!({})),
    ]
}

fn params() -> Vec<Case> {
    let case = |name: &'static str, not_found: &str| {
        Case::new(name, with_param(at_least())).bound(named("least", not_found))
    };
    let both = |case: Case| case.ask_map("a", json!({"n": "7"})).ask_map("a", json!({"n": "3"}));
    let mut ignoring = with_param(at_least());
    ignoring["failurePolicy"] = json!("Ignore");
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "least"},
        "spec": {"size": 5},
    });
    vec![
        both(case("param-found", "Deny").with_map("least", json!({"least": "5"})))
            .ask_map("a", json!({"n": "many"})),
        both(case("param-found-allow", "Allow").with_map("least", json!({"least": "5"}))),
        both(case("param-missing-deny", "Deny")),
        both(case("param-missing-allow", "Allow")),
        both(Case::new("param-missing-ignore", ignoring).bound(named("least", "Deny"))),
        // A parameter without the field that is asked of it.
        both(case("param-lacks-field", "Deny").with_map("least", json!({}))),
        // Without a namespace it is in that of the object.
        both(
            Case::new("param-beside", with_param(at_least()))
                .bound(json!({"paramRef": {"name": "least", "parameterNotFoundAction": "Deny"}}))
                .with_map("least", json!({"least": "5"})),
        ),
        // Nothing is referred to: the parameter is null.
        Case::new(
            "param-none",
            with_param(json!({"expression": "params == null", "message": "there is one"})),
        )
        .ask_map("a", json!({})),
        // A reference without a kind means nothing.
        Case::new("param-no-kind", rules(json!({"expression": "object.data.n == 'yes'"})))
            .bound(named("least", "Deny"))
            .ask_map("a", json!({"n": "yes"}))
            .ask_map("a", json!({"n": "no"})),
        both(
            Case::new(
                "param-custom",
                json!({
                    "paramKind": {"apiVersion": "example.com/v1", "kind": "Widget"},
                    "validations": [{"expression": "int(object.data.n) >= params.spec.size",
                        "messageExpression": "'at least ' + string(params.spec.size)"}],
                }),
            )
            .bound(named("least", "Deny"))
            .with("/apis/example.com/v1/namespaces/{namespace}/widgets", widget),
        ),
        Case::new(
            "param-kind-unknown",
            json!({
                "paramKind": {"apiVersion": "example.com/v1", "kind": "Nothing"},
                // The policy itself is refused, whatever its bindings are about.
                "matchConstraints": {
                    "resourceRules": [rule("", "v1", "configmaps")],
                    "namespaceSelector": {"matchLabels": {"case": "param-kind-unknown"}},
                },
                "validations": [{"expression": "true"}],
            }),
        )
        .bound(named("least", "Allow"))
        .ask_map("a", json!({})),
    ]
}

fn params_by_label() -> Vec<Case> {
    let selected = |not_found: &str| {
        json!({"paramRef": {
            "selector": {"matchLabels": {"limit": "yes"}}, "namespace": "{namespace}",
            "parameterNotFoundAction": not_found,
        }})
    };
    let case = |name: &'static str, not_found: &str| {
        Case::new(name, with_param(at_least()))
            .bound(selected(not_found))
            .ask_map("a", json!({"n": "9"}))
            .ask_map("a", json!({"n": "3"}))
    };
    vec![
        case("selector-one", "Deny").with(MAPS, labelled("five", json!({"least": "5"}))),
        // Both hold, or one does not: which of two is named first is not said anywhere.
        case("selector-two", "Deny")
            .with(MAPS, labelled("five", json!({"least": "5"})))
            .with(MAPS, labelled("two", json!({"least": "2"}))),
        case("selector-none-deny", "Deny").with_map("unlabelled", json!({"least": "5"})),
        case("selector-none-allow", "Allow").with_map("unlabelled", json!({"least": "5"})),
    ]
}
