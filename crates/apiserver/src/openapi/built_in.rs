//! The schemas of built-in types, from their tables.

use super::{descriptions, reference, short_name};
use crate::kinds::{Merge, Scalar, TypeField, TypeId, TypeShape, built_in};
use serde_json::{Map, Value, json};

/// The schema of a type by its name in OpenAPI; nothing if it is not built in.
pub(super) fn named(name: &str) -> Option<Value> {
    if let Some(id) = built_in().tables().find(name) {
        return Some(object(id));
    }
    let scalar = Scalar::ALL.into_iter().find(|scalar| scalar.openapi_name() == Some(name))?;
    let short = name.rsplit('.').next().unwrap_or(name);
    Some(descriptions::put(special(scalar), short, ""))
}

fn object(id: TypeId) -> Value {
    let tables = built_in().tables();
    let declared = tables.get(id);
    let short = short_name(id);
    let mut properties = Map::new();
    if declared.is_kind {
        for name in ["apiVersion", "kind"] {
            let text = descriptions::put(json!({"type": "string"}), "", name);
            properties.insert(name.to_owned(), text);
        }
    }
    for field in &declared.fields {
        let schema = descriptions::put(property(field), short, &field.name);
        properties.insert(field.name.to_string(), schema);
    }
    let mut schema = json!({"type": "object"});
    if !properties.is_empty() {
        schema["properties"] = properties.into();
    }
    let required: Vec<&str> =
        declared.fields.iter().filter(|f| f.is_required).map(|f| &*f.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if declared.is_atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    if declared.is_kind {
        let group = &tables.groups[declared.group];
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": group.group, "version": group.version, "kind": short}]);
    }
    descriptions::put(schema, short, "")
}

/// A field. Nothing may stand beside a reference, so one that has more to say wraps it.
fn property(field: &TypeField) -> Value {
    let mut schema = match &field.shape {
        TypeShape::Named(_) => json!({"allOf": [shape(&field.shape)]}),
        TypeShape::Scalar(scalar) if scalar.openapi_name().is_some() => {
            json!({"allOf": [shape(&field.shape)]})
        }
        other => shape(other),
    };
    let is_list = matches!(field.shape, TypeShape::List(_));
    let merge_key = if is_list { "x-kubernetes-list-type" } else { "x-kubernetes-map-type" };
    match &field.merge {
        Merge::Unsaid => {}
        Merge::Atomic => schema[merge_key] = "atomic".into(),
        Merge::Granular => schema[merge_key] = "granular".into(),
        Merge::Set => schema[merge_key] = "set".into(),
        Merge::Keyed(keys) => {
            schema[merge_key] = "map".into();
            schema["x-kubernetes-list-map-keys"] =
                keys.iter().map(|key| Value::from(&**key)).collect();
        }
    }
    let strategy = match (field.patch.merge, field.patch.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) if field.is_replaced => "replace",
        (false, false) => "",
    };
    if !strategy.is_empty() {
        schema["x-kubernetes-patch-strategy"] = strategy.into();
    }
    if let Some(key) = &field.patch.merge_key {
        schema["x-kubernetes-patch-merge-key"] = (&**key).into();
    }
    if let Some(default) = &field.default {
        schema["default"] = default.clone();
    }
    schema
}

fn shape(shape_of: &TypeShape) -> Value {
    match shape_of {
        TypeShape::Scalar(scalar) => match scalar.openapi_name() {
            Some(name) => reference(name),
            None => special(*scalar),
        },
        TypeShape::Named(id) => reference(&built_in().tables().get(*id).name),
        TypeShape::List(items) | TypeShape::WrappedList(items) => {
            json!({"type": "array", "items": shape(items)})
        }
        TypeShape::Map(values) => json!({"type": "object", "additionalProperties": shape(values)}),
    }
}

/// What a type without fields looks like.
fn special(scalar: Scalar) -> Value {
    let mut schema = match scalar {
        Scalar::String | Scalar::Bytes | Scalar::Time | Scalar::MicroTime => {
            json!({"type": "string"})
        }
        Scalar::Bool => json!({"type": "boolean"}),
        Scalar::Int32 | Scalar::Int64 => json!({"type": "integer"}),
        Scalar::Double => json!({"type": "number"}),
        Scalar::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Scalar::IntOrString => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Scalar::Raw | Scalar::Fields => json!({"type": "object"}),
        Scalar::Json | Scalar::PropsOrArray | Scalar::PropsOrBool | Scalar::PropsOrStrings => {
            json!({})
        }
    };
    if let Some(format) = scalar.format() {
        schema["format"] = format.into();
    }
    schema
}
