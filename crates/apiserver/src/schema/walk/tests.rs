use super::{apply_defaults, decode_check, prune, validate};
use crate::schema::checks::Checks;
use crate::schema::{Field, Form, List, Map, Node, Object, Schema, custom};
use crate::status::Path;
use serde_json::{Value, json};

fn compiled(spec: Value) -> Schema {
    let openapi = json!({"type": "object", "properties": {"spec": spec}});
    custom::compile(&openapi, None, &Path::Root).expect("the schema is sound")
}

fn texts(spec: Value, value: Value, old: Option<Value>) -> Vec<String> {
    let schema = compiled(spec);
    let old = old.map(|old| json!({"spec": old}));
    let value = json!({"spec": value});
    let errors = validate(&value, old.as_ref(), schema.shape());
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refuses(spec: Value, value: Value, wanted: &[&str]) {
    assert_eq!(texts(spec, value, None), wanted);
}

#[test]
fn types_are_checked() {
    refuses(
        json!({"type": "integer"}),
        json!("x"),
        &["spec: Invalid value: \"string\": spec in body must be of type integer: \"string\""],
    );
    refuses(json!({"type": "integer"}), json!(1.0), &[]);
    refuses(
        json!({"type": "integer"}),
        json!(1.5),
        &["spec: Invalid value: \"number\": spec in body must be of type integer: \"number\""],
    );
    refuses(json!({"type": "number"}), json!(1), &[]);
    refuses(json!({"x-kubernetes-int-or-string": true}), json!("80%"), &[]);
    refuses(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &["spec: Invalid value: \"boolean\": spec in body must be of type integer,string: \
           \"boolean\""],
    );
    refuses(json!({"type": "string", "nullable": true}), json!(null), &[]);
    refuses(
        json!({"type": "array", "items": {"type": "string"}}),
        json!([1, null]),
        &[
            "spec[0]: Invalid value: \"integer\": spec[0] in body must be of type string: \
             \"integer\"",
            "spec[1]: Invalid value: \"null\": spec[1] in body must be of type string: \"null\"",
        ],
    );
}

#[test]
fn bounds_are_checked() {
    let object = json!({"type": "object", "required": ["a"], "minProperties": 1, "maxProperties": 1,
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}}});
    refuses(object.clone(), json!({"b": "x"}), &["spec.a: Required value"]);
    refuses(
        object.clone(),
        json!({"a": "", "b": ""}),
        &["spec: Too many: 2: must have at most 1 item"],
    );
    refuses(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("c"),
        &["spec: Unsupported value: \"c\": supported values: \"a\", \"b\""],
    );
    refuses(
        json!({"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": true}),
        json!(0),
        &["spec: Invalid value: 0: spec in body should be greater than or equal to 1"],
    );
    refuses(
        json!({"type": "integer", "maximum": 5, "exclusiveMaximum": true}),
        json!(5),
        &["spec: Invalid value: 5: spec in body should be less than 5"],
    );
    refuses(
        json!({"type": "integer", "multipleOf": 5}),
        json!(7),
        &["spec: Invalid value: 7: spec in body should be a multiple of 5"],
    );
    refuses(
        json!({"type": "string", "maxLength": 2}),
        json!("abc"),
        &["spec: Too long: may not be more than 2 bytes"],
    );
    refuses(
        json!({"type": "string", "minLength": 2}),
        json!("a"),
        &["spec: Invalid value: \"a\": spec in body should be at least 2 chars long"],
    );
    refuses(
        json!({"type": "string", "pattern": "^[a-z]+$"}),
        json!("A"),
        &["spec: Invalid value: \"A\": spec in body should match '^[a-z]+$'"],
    );
    refuses(
        json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
        json!(["a", "b"]),
        &["spec: Too many: 2: must have at most 1 item"],
    );
    refuses(
        json!({"type": "string", "format": "date-time"}),
        json!("x"),
        &["spec: Invalid value: \"x\": spec in body must be of type date-time: \"x\""],
    );
    refuses(json!({"type": "string", "format": "unheard-of"}), json!("x"), &[]);
}

#[test]
fn constraints_are_checked() {
    let fields = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let one = json!({"type": "object", "properties": fields,
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    refuses(one.clone(), json!({"a": ""}), &[]);
    refuses(
        one.clone(),
        json!({"a": "", "b": ""}),
        &["<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). \
           Found 2 valid alternatives"],
    );
    refuses(
        one,
        json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). \
             Found none valid",
            "spec.a: Required value",
        ],
    );
    refuses(
        json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}),
        json!(3),
        &[
            "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)",
            "spec: Invalid value: 3: spec in body should be greater than or equal to 5",
        ],
    );
    refuses(
        json!({"type": "integer", "allOf": [{"minimum": 5}]}),
        json!(3),
        &[
            "spec: Invalid value: 3: spec in body should be greater than or equal to 5",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None \
             validated",
        ],
    );
    refuses(
        json!({"type": "integer", "not": {"enum": [3]}}),
        json!(3),
        &["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"],
    );
}

fn keyed() -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"],
        "properties": {"k": {"type": "string"}, "v": {"type": "integer", "minimum": 5}}}})
}

#[test]
fn elements_that_are_distinguished_stand_once() {
    refuses(
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        json!(["a", "b", "a", "a"]),
        &["spec[2]: Duplicate value: \"a\""],
    );
    refuses(keyed(), json!([{"k": "a"}, {"k": "a"}]), &["spec[1]: Duplicate value: {\"k\":\"a\"}"]);
}

#[test]
fn what_was_wrong_before_and_has_not_changed_is_let_pass() {
    let spec = json!({"type": "object", "properties": {
        "a": {"type": "integer", "minimum": 5}, "b": {"type": "string"}, "l": keyed(),
        "atomic": {"type": "array", "items": {"type": "integer", "minimum": 5}}}});
    let old = json!({"a": 1, "l": [{"k": "x", "v": 1}], "atomic": [1]});
    let update = |new: Value| texts(spec.clone(), new, Some(old.clone()));
    assert_eq!(update(json!({"a": 1, "b": "new"})), [""; 0]);
    assert_eq!(update(json!({"l": [{"k": "y"}, {"k": "x", "v": 1}], "atomic": [1]})), [""; 0]);
    assert_eq!(
        update(json!({"a": 2})),
        ["spec.a: Invalid value: 2: spec.a in body should be greater than or equal to 5"]
    );
    assert_eq!(
        update(json!({"atomic": [1, 6]})),
        [
            "spec.atomic[0]: Invalid value: 1: spec.atomic[0] in body should be greater than or equal \
          to 5"
        ]
    );
    let set = json!({"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "string"}});
    let twice = json!(["a", "a"]);
    assert_eq!(texts(set, json!(["a", "a", "b"]), Some(twice)), [""; 0]);
}

#[test]
fn errors_are_bounded() {
    let many: Vec<Value> = (0..5000).map(|_| json!(1)).collect();
    let errors = texts(json!({"type": "array", "items": {"type": "string"}}), json!(many), None);
    assert_eq!(errors.len(), super::MAX_REPORTED);
}

#[test]
fn embedded_objects_say_what_they_are() {
    let spec = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    refuses(spec.clone(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "x": 1}), &[]);
    refuses(
        spec,
        json!({"kind": "a/b"}),
        &[
            "spec.apiVersion: Required value",
            "spec.kind: Invalid value: \"a/b\": may have mixed case, but should otherwise match: a \
             DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
             'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ],
    );
}

#[test]
fn embedded_objects_have_metadata_like_others() {
    let spec = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let pod = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    let whole = json!({"name": "a", "namespace": "b", "labels": {"c": "d"}});
    refuses(spec.clone(), pod(whole), &[]);
    refuses(spec.clone(), pod(json!({"generateName": "a-", "name": ""})), &[]);
    let wrong = [
        (json!({"name": "a/b"}), "spec.metadata.name"),
        (json!({"namespace": "A"}), "spec.metadata.namespace"),
        (json!({"labels": {"-": "a"}}), "spec.metadata.labels"),
    ];
    for (metadata, field) in wrong {
        let found = texts(spec.clone(), pod(metadata.clone()), None);
        assert!(found.iter().any(|text| text.starts_with(field)), "{metadata}: {found:?}");
    }
}

#[test]
fn what_is_not_described_is_dropped() {
    let spec = json!({"type": "object", "properties": {
        "known": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"inner": {"type": "object"}}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "loose": {"type": "object", "additionalProperties": true},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}}}});
    let schema = compiled(spec);
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "labels": {"a": "b"}},
        "other": 1,
        "spec": {"known": "x", "unknown": 1, "list": [{"a": "", "x": 1}], "any": {"deep": {"a": 1}},
            "kept": {"free": {"a": 1}, "inner": {"gone": 1}}, "map": {"k": {"gone": 1}},
            "loose": {"a": 1, "b": {"gone": 1}},
            "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "x": 1}}
    });
    let dropped = prune(&mut object, schema.shape());
    assert_eq!(
        dropped,
        [
            "other",
            "spec.kept.inner.gone",
            "spec.list[0].x",
            "spec.loose.b.gone",
            "spec.map.k.gone",
            "spec.pod.x",
            "spec.unknown"
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "labels": {"a": "b"}},
            "spec": {"known": "x", "list": [{"a": ""}], "any": {"deep": {"a": 1}},
                "kept": {"free": {"a": 1}, "inner": {}}, "map": {"k": {}},
                "loose": {"a": 1, "b": {}},
                "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}}
        })
    );
    assert_eq!(prune(&mut object, schema.shape()), [""; 0]);
}

#[test]
fn defaults_fill_what_is_not_there() {
    let inner = json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}});
    let spec = json!({"type": "object", "properties": {
        "set": {"type": "integer", "default": 3}, "gone": {"type": "string"},
        "nullable": {"type": "string", "nullable": true, "default": "d"},
        "object": {"type": "object", "default": {}, "properties": {"a": {"type": "string",
            "default": "x"}}},
        "list": {"type": "array", "items": inner}, "map": {"type": "object",
            "additionalProperties": inner}}});
    let schema = compiled(spec);
    let mut object = json!({"spec": {"set": null, "gone": null, "nullable": null,
        "list": [{}, {"a": "y"}], "map": {"k": {}}}});
    apply_defaults(&mut object, schema.shape());
    let wanted = json!({"spec": {"set": 3, "nullable": null, "object": {"a": "x"},
        "list": [{"a": "x"}, {"a": "y"}], "map": {"k": {"a": "x"}}}});
    assert_eq!(object, wanted);
    apply_defaults(&mut object, schema.shape());
    assert_eq!(object, wanted);
}

/// A small built-in kind.
fn built_in() -> Schema {
    let mut schema = Schema::default();
    let mut add = |name: Option<&str>, form: Form, format: Option<&str>| {
        let checks = format
            .map(|format| Box::new(Checks { format: Some(format.into()), ..Checks::default() }));
        schema.add(Node { name: name.map(Into::into), form, checks, ..Node::default() })
    };
    let text = add(None, Form::String, None);
    let fields = [
        ("replicas", add(None, Form::Integer, Some("int32"))),
        ("big", add(None, Form::Integer, Some("int64"))),
        ("data", add(None, Form::String, Some("byte"))),
        ("at", add(Some("io.k8s.meta.v1.Time"), Form::String, Some("date-time"))),
        ("cpu", add(Some("io.k8s.api.resource.Quantity"), Form::IntOrString, None)),
        ("port", add(Some("io.k8s.util.intstr.IntOrString"), Form::IntOrString, None)),
        ("names", add(None, Form::List(List { items: text, ..List::default() }), None)),
        ("labels", add(None, Form::Map(Map { values: text, is_atomic: false }), None)),
        ("on", add(None, Form::Boolean, None)),
    ];
    let fields =
        fields.into_iter().map(|(name, node)| (name.into(), Field { node, ..Field::default() }));
    let spec = Form::Object(Object { fields: fields.collect(), ..Object::default() });
    let spec = add(Some("io.k8s.api.apps.v1.DeploymentSpec"), spec, None);
    let field = Field { node: spec, ..Field::default() };
    let root =
        Form::Object(Object { fields: [("spec".into(), field)].into(), ..Object::default() });
    schema.root = add(Some("io.k8s.api.apps.v1.Deployment"), root, None);
    schema
}

#[test]
fn what_a_decoder_would_refuse_is_refused() {
    let schema = built_in();
    let check = |spec: Value| decode_check(&json!({"spec": spec}), schema.shape());
    let refused = |spec: Value| check(spec).expect_err("it has a wrong type");
    let start = "json: cannot unmarshal";
    assert_eq!(
        refused(json!({"replicas": "x"})),
        format!("{start} string into Go struct field DeploymentSpec.spec.replicas of type int32")
    );
    assert_eq!(
        refused(json!({"replicas": 3_000_000_000_u32})),
        format!(
            "{start} number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type \
             int32"
        )
    );
    assert_eq!(
        refused(json!({"names": "x"})),
        format!("{start} string into Go struct field DeploymentSpec.spec.names of type []string")
    );
    assert_eq!(
        refused(json!({"labels": {"a": 1}})),
        format!("{start} number into Go struct field DeploymentSpec.spec.labels of type string")
    );
    assert_eq!(
        refused(json!("x")),
        format!("{start} string into Go struct field Deployment.spec of type v1.DeploymentSpec")
    );
    assert_eq!(refused(json!({"data": "a"})), "illegal base64 data at input byte 1");
    assert!(refused(json!({"cpu": "x"})).starts_with("quantities must match"));
    assert!(refused(json!({"at": "x"})).starts_with("parsing time \"x\" as"));
    assert!(
        check(json!({"replicas": 1, "big": 1_u64 << 40, "data": "YQ==", "cpu": 1.5, "port": 80,
        "at": "2024-01-01T00:00:00Z", "names": null, "on": null, "labels": {"a": "b"}}))
        .is_ok()
    );
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % most
    }
}

const NAMES: [&str; 5] = ["a", "b", "metadata", "kind", "x-y"];

fn random_value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(random.below(10)),
        3 => json!(random.below(10) as f64 / 2.0),
        4 => json!("abc"[..random.below(4)]),
        5 => json!("2024-01-01T00:00:00Z"),
        6 => (0..random.below(4)).map(|_| random_value(random, depth - 1)).collect(),
        _ => {
            let fields = (0..random.below(4))
                .map(|_| (NAMES[random.below(5)].to_owned(), random_value(random, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

fn random_schema(random: &mut Random, depth: usize) -> Value {
    let mut schema = match random.below(if depth == 0 { 5 } else { 10 }) {
        0 => json!({"type": "boolean"}),
        1 => json!({"type": "integer", "minimum": random.below(9)}),
        2 => json!({"type": "number", "maximum": random.below(9)}),
        3 => json!({"type": "string", "maxLength": random.below(4)}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => json!({"x-kubernetes-preserve-unknown-fields": true}),
        6 => json!({"type": "array", "items": random_schema(random, depth - 1),
            "maxItems": random.below(5)}),
        7 => json!({"type": "object", "additionalProperties": random_schema(random, depth - 1)}),
        _ => {
            let names: Vec<&str> = (0..random.below(4)).map(|_| NAMES[random.below(5)]).collect();
            let fields: serde_json::Map<String, Value> = names
                .into_iter()
                .map(|name| (name.to_owned(), random_schema(random, depth - 1)))
                .collect();
            let required: Vec<&String> = fields.keys().filter(|_| random.below(4) == 0).collect();
            json!({"type": "object", "properties": fields, "required": required,
                "x-kubernetes-preserve-unknown-fields": true})
        }
    };
    if random.below(4) == 0 {
        schema["nullable"] = json!(true);
    }
    if random.below(4) == 0 {
        schema["default"] = random_value(random, 2);
    }
    if random.below(6) == 0 {
        schema["anyOf"] = json!([{"minimum": 2}, {"maxLength": 1}, {"required": ["a"]}]);
    }
    if schema["type"] == "object" && random.below(2) == 0 {
        schema.as_object_mut().expect("it is one").remove("x-kubernetes-preserve-unknown-fields");
    }
    schema
}

#[test]
fn random_objects_keep_the_laws_of_the_walks() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut sound, mut valid) = (0, 0);
    for _ in 0..30_000 {
        let mut openapi = random_schema(&mut random, 3);
        openapi["type"] = json!("object");
        let Ok(schema) = custom::compile(&openapi, None, &Path::Root) else { continue };
        sound += 1;
        for _ in 0..4 {
            let shape = schema.shape();
            let mut value = random_value(&mut random, 4);
            let raw = value.clone();
            validate(&raw, None, shape);
            let _ = decode_check(&raw, shape);
            prune(&mut value, shape);
            let pruned = value.clone();
            assert_eq!(prune(&mut value, shape), [""; 0], "{openapi} {raw}");
            assert_eq!(value, pruned);
            apply_defaults(&mut value, shape);
            let filled = value.clone();
            apply_defaults(&mut value, shape);
            assert_eq!(value, filled, "{openapi} {raw}");
            assert_eq!(prune(&mut value, shape), [""; 0], "{openapi} {raw}");
            assert_eq!(value, filled);
            if validate(&value, None, shape).is_empty() {
                valid += 1;
            }
            // What is stored already may be stored again.
            assert_eq!(validate(&value, Some(&value), shape), [], "{openapi} {value}");
        }
    }
    assert!(sound > 1_000 && valid > 200, "only {sound} schemas, {valid} valid objects");
}
