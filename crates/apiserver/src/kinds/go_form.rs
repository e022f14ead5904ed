//! The form in which upstream's encoder writes an object: which empty values are there, and which
//! are not.
//!
//! Upstream's objects are Go structs. A struct inside a struct is always written (`resources: {}`);
//! numbers and texts are written unless the tag says `omitempty`; a list that is required is
//! written as `null`.

use super::table::{Scalar, Tables, TypeField, TypeId, TypeShape};
use serde_json::{Map, Value, json};

/// Completes an object and everything below it.
pub(crate) fn complete_deeply(tables: &Tables, id: TypeId, object: &mut Map<String, Value>) {
    for field in &tables.get(id).fields {
        if let Some(value) = object.get_mut(&*field.name) {
            inside(tables, &field.shape, value);
        }
    }
    complete(tables, id, object);
}

fn inside(tables: &Tables, shape: &TypeShape, value: &mut Value) {
    match (shape, value) {
        (TypeShape::Named(id), Value::Object(object)) => complete_deeply(tables, *id, object),
        (TypeShape::List(items), Value::Array(list)) => {
            list.iter_mut().for_each(|item| inside(tables, items, item));
        }
        (TypeShape::Map(values), Value::Object(map)) => {
            map.values_mut().for_each(|value| inside(tables, values, value));
        }
        _ => {}
    }
}

/// Completes the fields of one object; what is in them is complete already. Returns how many were
/// added.
pub(crate) fn complete(tables: &Tables, id: TypeId, object: &mut Map<String, Value>) -> usize {
    let mut added = 0;
    for field in tables.get(id).fields.iter().filter(|field| !field.numbers.is_empty()) {
        let is_empty = match object.get(&*field.name) {
            None | Some(Value::Null) => true,
            Some(value) => !field.is_pointer && is_zero(&field.shape, value),
        };
        if !is_empty {
            continue;
        }
        match when_empty(tables, field) {
            Some(Value::Null) if object.get(&*field.name).is_some_and(is_empty_list) => {}
            Some(value) => {
                added += 1;
                object.insert(field.name.to_string(), value);
            }
            None => {
                object.remove(&*field.name);
            }
        }
    }
    added
}

/// A list that is there but empty is written as it is, unlike one that is not there.
fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// Whether upstream's encoder takes a value for an empty one.
fn is_zero(shape: &TypeShape, value: &Value) -> bool {
    match shape {
        TypeShape::Named(_) => false,
        TypeShape::List(_) | TypeShape::Map(_) | TypeShape::WrappedList(_) => is_empty_list(value),
        TypeShape::Scalar(Scalar::String | Scalar::Bytes) => value == "",
        TypeShape::Scalar(Scalar::Bool) => value == false,
        TypeShape::Scalar(Scalar::Int32 | Scalar::Int64) => value.as_i64() == Some(0),
        TypeShape::Scalar(Scalar::Double) => value.as_f64() == Some(0.0),
        // Structs with a form of their own: never empty once they are there.
        TypeShape::Scalar(
            Scalar::Time
            | Scalar::MicroTime
            | Scalar::Quantity
            | Scalar::IntOrString
            | Scalar::Raw
            | Scalar::Fields
            | Scalar::Json
            | Scalar::PropsOrArray
            | Scalar::PropsOrBool
            | Scalar::PropsOrStrings,
        ) => false,
    }
}

/// What upstream's encoder writes for an empty value; nothing if it leaves the field out.
fn when_empty(tables: &Tables, field: &TypeField) -> Option<Value> {
    if field.omits_zero {
        return None;
    }
    if field.is_pointer {
        return (!field.omits_empty).then_some(Value::Null);
    }
    let zero = match &field.shape {
        TypeShape::Named(id) => {
            let mut object = Map::new();
            complete_deeply(tables, *id, &mut object);
            return Some(Value::Object(object));
        }
        TypeShape::List(_) | TypeShape::Map(_) | TypeShape::WrappedList(_) => Value::Null,
        TypeShape::Scalar(scalar) => match scalar {
            Scalar::String => json!(""),
            Scalar::Bool => json!(false),
            Scalar::Int32 | Scalar::Int64 | Scalar::Double => json!(0),
            Scalar::Bytes => Value::Null,
            Scalar::Quantity => return Some(json!("0")),
            Scalar::IntOrString => return Some(json!(0)),
            Scalar::PropsOrBool => return Some(json!(false)),
            Scalar::Time
            | Scalar::MicroTime
            | Scalar::Raw
            | Scalar::Fields
            | Scalar::Json
            | Scalar::PropsOrArray
            | Scalar::PropsOrStrings => return Some(Value::Null),
        },
    };
    (!field.omits_empty).then_some(zero)
}
