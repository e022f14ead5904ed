use crate::schema::{custom, walk};
use crate::status::Path;
use serde_json::{Value, json};

fn texts(openapi: &Value, value: Value, old: Option<Value>) -> Vec<String> {
    let schema = custom::compile(openapi, None, &Path::Root).expect("the schema is sound");
    let errors = walk::validate(&value, old.as_ref(), schema.shape());
    errors.iter().map(ToString::to_string).collect()
}

/// A `spec` with two numbers and a rule.
fn with_rule(rule: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "min": {"type": "integer"}},
        "x-kubernetes-validations": [rule]}}})
}

#[test]
fn a_broken_rule_is_reported_with_its_message() {
    let openapi = with_rule(json!({"rule": "self.replicas >= self.min",
        "message": "replicas must be >= min"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 1, "min": 2}}), None),
        ["spec: Invalid value: replicas must be >= min"]
    );
    assert_eq!(texts(&openapi, json!({"spec": {"replicas": 2, "min": 2}}), None), [""; 0]);
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 2}}), None),
        [
            "spec: Invalid value: \"object\": no such key: min evaluating rule: replicas must be >= min"
        ]
    );
}

#[test]
fn without_a_message_the_rule_itself_is_reported() {
    let openapi = with_rule(json!({"rule": "self.replicas >= self.min"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 1, "min": 2}}), None),
        ["spec: Invalid value: failed rule: self.replicas >= self.min"]
    );
}

#[test]
fn an_expression_may_make_the_message() {
    let openapi = with_rule(json!({"rule": "self.replicas >= self.min", "message": "plain",
        "messageExpression": "'%d is less than %d'.format([self.replicas, self.min])"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 1, "min": 2}}), None),
        ["spec: Invalid value: 1 is less than 2"]
    );
    let openapi = with_rule(json!({"rule": "self.replicas >= self.min", "message": "plain",
        "messageExpression": "string(1 / (self.min - 2))"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 1, "min": 2}}), None),
        ["spec: Invalid value: plain"]
    );
}

#[test]
fn a_rule_may_say_which_field_and_why() {
    let openapi = with_rule(json!({"rule": "self.replicas >= self.min", "message": "no",
        "fieldPath": ".replicas", "reason": "FieldValueForbidden"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 1, "min": 2}}), None),
        ["spec.replicas: Forbidden: no"]
    );
}

#[test]
fn transition_rules_apply_to_changes_only() {
    let openapi =
        with_rule(json!({"rule": "self.replicas >= oldSelf.replicas", "message": "never less"}));
    let at = |replicas: i64| json!({"spec": {"replicas": replicas}});
    assert_eq!(texts(&openapi, at(1), None), [""; 0]);
    assert_eq!(texts(&openapi, at(3), Some(at(2))), [""; 0]);
    assert_eq!(texts(&openapi, at(1), Some(at(2))), ["spec: Invalid value: never less"]);
    assert_eq!(texts(&openapi, at(1), Some(json!({}))), [""; 0]);
}

#[test]
fn an_optional_old_self_applies_always() {
    let openapi =
        with_rule(json!({"rule": "!oldSelf.hasValue() || oldSelf.value().min == self.min",
        "optionalOldSelf": true, "message": "min is for ever"}));
    let at = |min: i64| json!({"spec": {"min": min}});
    assert_eq!(texts(&openapi, at(1), None), [""; 0]);
    assert_eq!(texts(&openapi, at(1), Some(at(1))), [""; 0]);
    assert_eq!(texts(&openapi, at(1), Some(at(2))), ["spec: Invalid value: min is for ever"]);
}

#[test]
fn rules_stand_at_items_and_values() {
    let rule = json!([{"rule": "self.size() < 3", "message": "too long"}]);
    let text = json!({"type": "string", "x-kubernetes-validations": rule});
    let openapi = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": text},
        "map": {"type": "object", "additionalProperties": text}}});
    assert_eq!(
        texts(&openapi, json!({"list": ["a", "abc"], "map": {"k": "abc"}}), None),
        ["list[1]: Invalid value: \"abc\": too long", "map[k]: Invalid value: \"abc\": too long"]
    );
}

#[test]
fn what_was_broken_before_may_stay_broken() {
    let openapi = with_rule(json!({"rule": "self.replicas > 5", "message": "more"}));
    let before = json!({"spec": {"replicas": 1}});
    let relabelled = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}});
    assert_eq!(texts(&openapi, relabelled, Some(before.clone())), [""; 0]);
    let changed = json!({"spec": {"replicas": 1, "min": 1}});
    assert_eq!(texts(&openapi, changed, Some(before)), ["spec: Invalid value: more"]);
}

#[test]
fn rules_see_the_names_of_an_object() {
    let openapi = json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self.metadata.name.startsWith('a') && self.kind == 'A'", "message": "name"}]});
    let named = |name: &str| json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": name}});
    assert_eq!(texts(&openapi, named("ab"), None), [""; 0]);
    assert_eq!(texts(&openapi, named("b"), None), ["Invalid value: name"]);
}

#[test]
fn an_object_that_is_malformed_is_not_put_to_the_rules() {
    let openapi = with_rule(json!({"rule": "self.replicas > 5"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": "x"}}), None),
        [
            "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \
             \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was \
             invalid; correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn a_rule_that_takes_too_long_is_stopped() {
    let openapi = with_rule(json!({"message": "slow",
        "rule": "lists.range(2000).all(a, lists.range(2000).all(b, a + b >= 0))"}));
    assert_eq!(
        texts(&openapi, json!({"spec": {"replicas": 1}}), None),
        ["spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no \
          further validation rules will be run due to call cost exceeds limit for rule: slow"]
    );
}
