//! Defaulting: fills in what was not given.

use crate::schema::{Form, Shape};
use serde_json::Value;

/// Fills in defaults, also inside lists and maps, after dropping `null` where it may not stand and
/// no default would replace it. Doing it twice changes nothing more.
pub(crate) fn apply_defaults(value: &mut Value, shape: Shape<'_>) {
    match (&shape.node().form, value) {
        (Form::Object(object), Value::Object(fields)) => {
            // Looking first is cheap, and most objects have nothing to drop.
            if fields.values().any(Value::is_null) {
                fields.retain(|name, value| {
                    let Some(field) = object.fields.get(name.as_str()) else { return true };
                    let node = shape.at(field.node);
                    !value.is_null() || node.nullable || node.default.is_some()
                });
            }
            for (name, field) in &object.fields {
                let node = shape.at(field.node);
                let Some(default) = &node.default else { continue };
                match fields.get_mut(&**name) {
                    None => {
                        fields.insert(name.to_string(), default.clone());
                    }
                    Some(current) if current.is_null() && !node.nullable => {
                        *current = default.clone();
                    }
                    Some(_) => {}
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(field) = object.fields.get(name.as_str()) {
                    apply_defaults(value, shape.at(field.node));
                }
            }
        }
        (Form::Map(map), Value::Object(fields)) => {
            let values = shape.at(map.values);
            if fields.values().any(Value::is_null) {
                fields.retain(|_, value| {
                    !value.is_null()
                        || values.nullable
                        || values.default.is_some()
                        || takes_anything(values)
                });
            }
            for value in fields.values_mut() {
                default_element(value, values);
            }
        }
        (Form::List(list), Value::Array(items)) => {
            let shape = shape.at(list.items);
            for item in items {
                default_element(item, shape);
            }
        }
        _ => {}
    }
}

/// Values of `additionalProperties: true` have no schema, so a `null` among them is data.
fn takes_anything(shape: Shape<'_>) -> bool {
    shape.checks.as_ref().is_some_and(|checks| checks.accepts_any_type)
        && matches!(&shape.node().form, Form::Object(object) if !object.keeps_unknown)
}

fn default_element(value: &mut Value, shape: Shape<'_>) {
    if value.is_null()
        && !shape.nullable
        && let Some(default) = &shape.node().default
    {
        *value = default.clone();
    }
    apply_defaults(value, shape);
}
