//! The schemas of custom kinds, from the nodes that their objects are checked by.

use super::{descriptions, reference};
use crate::kinds::OBJECT_META;
use crate::resource::Resource;
use crate::schema::{Checks, Form, ListKind, Object, Shape};
use serde_json::{Map, Value, json};

/// How deep a schema is written out. Custom schemas are trees of bounded depth; this bounds
/// whatever else comes.
const DEEPEST: usize = 128;

/// The schema of the whole object.
pub(super) fn whole_object(resource: &Resource) -> Value {
    let mut schema = node(resource.schema.shape(), DEEPEST);
    if !schema.is_object() {
        schema = json!({});
    }
    schema["type"] = "object".into();
    // A schema may leave these out: every object has them all the same.
    for name in ["apiVersion", "kind"] {
        schema["properties"][name] = descriptions::put(json!({"type": "string"}), "", name);
    }
    let metadata = json!({"allOf": [reference(OBJECT_META)]});
    schema["properties"]["metadata"] = descriptions::put(metadata, "", "metadata");
    schema["x-kubernetes-group-version-kind"] = json!([{
        "group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind,
    }]);
    schema
}

fn node(shape: Shape<'_>, levels_left: usize) -> Value {
    let mut schema = Map::new();
    let Some(below) = levels_left.checked_sub(1) else { return Value::Object(schema) };
    if let Some(description) = &shape.description {
        schema.insert("description".to_owned(), (&**description).into());
    }
    let type_name = match &shape.form {
        Form::Any => {
            put(&mut schema, "x-kubernetes-preserve-unknown-fields", true);
            ""
        }
        Form::Boolean => "boolean",
        Form::Integer => "integer",
        Form::Number => "number",
        Form::String => "string",
        Form::IntOrString => {
            put(&mut schema, "x-kubernetes-int-or-string", true);
            ""
        }
        Form::Object(object) => {
            put_object(&mut schema, shape, object, below);
            "object"
        }
        Form::Map(map) => {
            put(&mut schema, "additionalProperties", node(shape.at(map.values), below));
            if map.is_atomic {
                put(&mut schema, "x-kubernetes-map-type", "atomic");
            }
            "object"
        }
        Form::List(list) => {
            put(&mut schema, "items", node(shape.at(list.items), below));
            put_list_kind(&mut schema, &list.kind);
            "array"
        }
    };
    if !type_name.is_empty() {
        put(&mut schema, "type", type_name);
    }
    if shape.nullable {
        put(&mut schema, "nullable", true);
    }
    if let Some(default) = &shape.default {
        put(&mut schema, "default", default.clone());
    }
    if let Some(checks) = &shape.checks {
        put_checks(&mut schema, checks);
    }
    Value::Object(schema)
}

fn put(schema: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    schema.insert(key.to_owned(), value.into());
}

fn put_object(schema: &mut Map<String, Value>, shape: Shape<'_>, object: &Object, below: usize) {
    if !object.fields.is_empty() {
        let properties: Map<String, Value> = object
            .fields
            .iter()
            .map(|(name, field)| (name.to_string(), node(shape.at(field.node), below)))
            .collect();
        put(schema, "properties", properties);
    }
    if !object.required.is_empty() {
        let required: Vec<Value> = object.required.iter().map(|name| (&**name).into()).collect();
        put(schema, "required", required);
    }
    if object.keeps_unknown {
        put(schema, "x-kubernetes-preserve-unknown-fields", true);
    }
    if object.is_embedded_resource {
        put(schema, "x-kubernetes-embedded-resource", true);
    }
    if object.is_atomic {
        put(schema, "x-kubernetes-map-type", "atomic");
    }
}

fn put_list_kind(schema: &mut Map<String, Value>, kind: &ListKind) {
    match kind {
        // What is not said is atomic.
        ListKind::Atomic => {}
        ListKind::Set => put(schema, "x-kubernetes-list-type", "set"),
        ListKind::Keyed(keys) => {
            put(schema, "x-kubernetes-list-type", "map");
            let keys: Vec<Value> = keys.iter().map(|key| (&**key).into()).collect();
            put(schema, "x-kubernetes-list-map-keys", keys);
        }
    }
}

/// The bounds that OpenAPI has words for. Rules and alternatives are checked, but not published.
fn put_checks(schema: &mut Map<String, Value>, checks: &Checks) {
    if let Some(format) = &checks.format {
        put(schema, "format", &**format);
    }
    if !checks.enumeration.is_empty() {
        put(schema, "enum", checks.enumeration.clone());
    }
    if let Some(pattern) = &checks.pattern {
        put(schema, "pattern", pattern.source());
    }
    let limits = [
        ("minimum", "exclusiveMinimum", &checks.minimum),
        ("maximum", "exclusiveMaximum", &checks.maximum),
    ];
    for (key, exclusive_key, limit) in limits {
        let Some(limit) = limit else { continue };
        put(schema, key, number(limit.value));
        if limit.is_exclusive {
            put(schema, exclusive_key, true);
        }
    }
    if let Some(multiple) = checks.multiple_of {
        put(schema, "multipleOf", number(multiple));
    }
    for (key, count) in [
        ("minLength", checks.min_length),
        ("maxLength", checks.max_length),
        ("minItems", checks.min_items),
        ("maxItems", checks.max_items),
        ("minProperties", checks.min_properties),
        ("maxProperties", checks.max_properties),
    ] {
        if let Some(count) = count {
            put(schema, key, count);
        }
    }
}

/// Whole numbers are written without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
