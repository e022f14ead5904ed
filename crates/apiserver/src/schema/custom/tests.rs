use super::{compile, graft};
use crate::schema::{Field, Form, Node, Object, Schema};
use crate::status::Path;
use serde_json::{Value, json};

fn errors(openapi: &Value) -> Vec<String> {
    match compile(openapi, None, &Path::Root.field("s")) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// A schema with one property `a`.
fn with(property: Value) -> Value {
    json!({"type": "object", "properties": {"a": property}})
}

#[track_caller]
fn refuses(openapi: Value, wanted: &[&str]) {
    assert_eq!(errors(&openapi), wanted, "{openapi}");
}

#[test]
fn every_value_has_a_type() {
    refuses(json!({}), &["s.type: Required value: must not be empty at the root"]);
    refuses(
        with(json!({})),
        &["s.properties[a].type: Required value: must not be empty for specified object fields"],
    );
    refuses(
        with(json!({"type": "array", "items": {}})),
        &[
            "s.properties[a].items.type: Required value: must not be empty for specified array items",
        ],
    );
    refuses(
        with(json!({"type": "array"})),
        &["s.properties[a].items: Required value: must be specified"],
    );
    refuses(with(json!({"x-kubernetes-int-or-string": true})), &[]);
    refuses(with(json!({"x-kubernetes-preserve-unknown-fields": true})), &[]);
    refuses(
        with(json!({"type": "thing"})),
        &["s.properties[a].type: Unsupported value: \"thing\": supported values: \"array\", \
           \"boolean\", \"integer\", \"number\", \"object\", \"string\""],
    );
    refuses(
        json!({"type": "string"}),
        &["s.type: Invalid value: \"string\": must be object at the root"],
    );
}

#[test]
fn some_words_are_not_for_kubernetes() {
    refuses(
        with(json!({"type": "string", "$ref": "#/x"})),
        &["s.properties[a].$ref: Forbidden: $ref is not supported"],
    );
    refuses(
        with(json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})),
        &["s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the \
           runtime complexity becomes quadratic"],
    );
    refuses(
        with(json!({"type": "object", "properties": {"b": {"type": "string"}},
            "additionalProperties": {"type": "string"}})),
        &["s.properties[a].additionalProperties: Forbidden: additionalProperties and properties \
           are mutual exclusive"],
    );
    refuses(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        &["s.additionalProperties: Forbidden: must not be used at the root"],
    );
    refuses(
        json!({"type": "object", "nullable": true}),
        &["s.nullable: Forbidden: nullable cannot be true at the root"],
    );
    let error = &errors(&with(json!({"type": "string", "pattern": "("})))[0];
    assert!(
        error.starts_with(
            "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but \
             isn't: "
        ),
        "{error}"
    );
}

#[test]
fn constraints_describe_nothing() {
    refuses(
        with(json!({"type": "string", "anyOf": [{"type": "string", "default": "x"}]})),
        &[
            "s.properties[a].anyOf[0].default: Forbidden: must be undefined to be structural",
            "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    refuses(
        json!({"type": "object", "allOf": [{"properties": {"b": {"minimum": 1}}}]}),
        &["s.properties[b]: Required value: because it is defined in s.allOf[0].properties[b]"],
    );
    refuses(
        with(json!({"x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}]})),
        &[],
    );
    refuses(
        with(json!({"x-kubernetes-int-or-string": true,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}]})),
        &[],
    );
}

#[test]
fn metadata_is_what_it_is() {
    let names = json!({"type": "object", "properties": {"metadata": {"type": "object",
        "properties": {"name": {"type": "string", "maxLength": 5}}}}});
    refuses(names, &[]);
    refuses(
        json!({"type": "object", "properties": {"metadata": {"type": "object",
            "properties": {"labels": {"type": "object"}}}}}),
        &["s.properties[metadata]: Forbidden: must not specify anything other than name and \
           generateName, but metadata is implicitly specified"],
    );
    refuses(
        json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
        &["s.properties[kind].type: Invalid value: \"integer\": must be string"],
    );
}

#[test]
fn keys_of_lists_are_there_and_scalar() {
    let list = |items: Value, keys: Value| {
        with(json!({"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys, "items": items}))
    };
    let item = json!({"type": "object", "required": ["k"],
        "properties": {"k": {"type": "string"}, "o": {"type": "string"}}});
    refuses(list(item.clone(), json!(["k"])), &[]);
    refuses(
        list(item.clone(), json!([])),
        &["s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if \
           x-kubernetes-list-type is map"],
    );
    refuses(
        list(item.clone(), json!(["z"])),
        &[
            "s.properties[a].x-kubernetes-list-map-keys: Invalid value: [\"z\"]: entries must all be \
           names of item properties",
        ],
    );
    refuses(
        list(item, json!(["o"])),
        &["s.properties[a].items.properties[o].default: Required value: this property is in \
           x-kubernetes-list-map-keys, so it must have a default or be a required property"],
    );
    refuses(
        with(json!({"type": "array", "x-kubernetes-list-type": "set",
            "items": {"type": "object", "properties": {"b": {"type": "string"}}}})),
        &[
            "s.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item \
           of a list with x-kubernetes-list-type=set",
        ],
    );
    refuses(
        with(json!({"type": "string", "x-kubernetes-list-type": "set"})),
        &["s.properties[a].type: Invalid value: \"string\": must be array if \
           x-kubernetes-list-type is specified"],
    );
}

#[test]
fn defaults_are_valid_and_have_nothing_to_prune() {
    refuses(with(json!({"type": "integer", "default": 3})), &[]);
    refuses(
        with(json!({"type": "integer", "minimum": 5, "default": 3})),
        &["s.properties[a].default: Invalid value: 3:  in body should be \
           greater than or equal to 5"],
    );
    refuses(
        with(json!({"type": "object", "properties": {"b": {"type": "string"}},
            "default": {"c": 1}})),
        &["s.properties[a].default: Invalid value: {\"c\":1}: must not have unknown fields"],
    );
    refuses(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "default": {}}}}),
        &["s.properties[metadata].default: Forbidden: must not be set in top-level metadata"],
    );
    let rule = json!([{"rule": "self > 5", "message": "too small"}]);
    refuses(
        with(json!({"type": "integer", "default": 3, "x-kubernetes-validations": rule})),
        &["s.properties[a].default: Invalid value: 3: too small"],
    );
}

#[test]
fn rules_are_compiled_with_the_schema() {
    let with_rule = |rule: Value| {
        with(json!({"type": "object", "properties": {"b": {"type": "integer"}},
            "x-kubernetes-validations": [rule]}))
    };
    refuses(with_rule(json!({"rule": "self.b > 0"})), &[]);
    refuses(
        with_rule(json!({"rule": "self.c > 0"})),
        &[
            "s.properties[a].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.c \\u003e \
           0\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\
           \"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'c'\n | self.c > 0\n | \
           ....^",
        ],
    );
    refuses(
        with_rule(json!({"rule": "self.b"})),
        &["s.properties[a].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.b\",\
           \"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\
           \"OptionalOldSelf\":null}: cel expression must evaluate to a bool"],
    );
    refuses(
        with_rule(json!({"rule": " "})),
        &["s.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not \
           specified"],
    );
    refuses(
        with_rule(json!({"rule": "self.b > 0", "fieldPath": ".z"})),
        &[
            "s.properties[a].x-kubernetes-validations[0].fieldPath: Invalid value: \".z\": must be a \
           valid path",
        ],
    );
    refuses(
        with(json!({"type": "array", "items": {"type": "integer",
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}})),
        &["s.properties[a].items.x-kubernetes-validations[0].rule: Invalid value: \"self == \
           oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within \
           s.properties[a]"],
    );
    refuses(
        with_rule(json!({"rule": "self.b > 0", "optionalOldSelf": true})),
        &["s.properties[a].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may \
           not be set if oldSelf is not used in rule"],
    );
}

#[test]
fn the_schema_of_object_meta_is_copied_in() {
    let mut metadata = Schema::default();
    let name = metadata.add(Node { form: Form::String, ..Node::default() });
    let field = Field { node: name, ..Field::default() };
    let object = Object { fields: [("name".into(), field)].into(), ..Object::default() };
    metadata.root = metadata.add(Node {
        name: Some("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".into()),
        form: Form::Object(object),
        ..Node::default()
    });
    let openapi = with(json!({"type": "string"}));
    let schema = compile(&openapi, Some(&metadata), &Path::Root).expect("the schema is sound");
    let shape = schema.shape();
    let grafted = shape.field("metadata").expect("metadata is implied");
    assert!(matches!(grafted.field("name").expect("it has a name").form, Form::String));
    assert!(shape.field("kind").is_some() && shape.field("apiVersion").is_some());
    let mut twice = schema.clone();
    let copy = graft(&mut twice, &schema);
    assert!(twice.at(copy).field("metadata").is_some_and(|found| found.field("name").is_some()));
}

#[test]
fn descriptions_are_kept() {
    let openapi = with(json!({"type": "string", "description": "what it is"}));
    let schema = compile(&openapi, None, &Path::Root).expect("the schema is sound");
    let a = schema.shape().field("a").expect("it is described");
    assert_eq!(a.description.as_deref(), Some("what it is"));
}
