//! Pruning: drops what the schema does not describe.

use super::MAX_REPORTED;
use crate::schema::{Form, Shape};
use crate::status::Path;
use serde_json::Value;

/// Drops every field that the schema does not describe, unless it says to keep them, and returns
/// where they were: `spec.foo`, `spec.list[0].x`. At most [`MAX_REPORTED`] places are reported, in
/// order; all are dropped.
pub(crate) fn prune(value: &mut Value, shape: Shape<'_>) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(value, shape, &Path::Root, &mut dropped);
    dropped.sort();
    dropped
}

fn walk(value: &mut Value, shape: Shape<'_>, path: &Path<'_>, dropped: &mut Vec<String>) {
    match (&shape.node().form, value) {
        (Form::Any, _) => {}
        (Form::Object(object), Value::Object(fields)) => {
            // Looking first is cheap, and most objects have nothing to drop.
            let is_known = |name: &String| object.fields.contains_key(name.as_str());
            if !object.keeps_unknown && !fields.keys().all(is_known) {
                fields.retain(|name, _| {
                    let is_known = is_known(name);
                    if !is_known && dropped.len() < MAX_REPORTED {
                        dropped.push(path.field(name).to_string());
                    }
                    is_known
                });
            }
            for (name, value) in fields.iter_mut() {
                if let Some(field) = object.fields.get(name.as_str()) {
                    walk(value, shape.at(field.node), &path.field(name), dropped);
                }
            }
        }
        (Form::Map(map), Value::Object(fields)) => {
            let values = shape.at(map.values);
            for (key, value) in fields.iter_mut() {
                walk(value, values, &path.field(key), dropped);
            }
        }
        (Form::List(list), Value::Array(items)) => {
            let shape = shape.at(list.items);
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, shape, &path.index(index), dropped);
            }
        }
        (Form::Object(object), Value::Array(_)) if object.keeps_unknown => {}
        // Nothing is known of what is in a value that has the wrong form, or may have any.
        (
            Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString
            | Form::Object(_)
            | Form::Map(_)
            | Form::List(_),
            value,
        ) => empty(value, path, dropped),
    }
}

/// Drops all fields, also of the objects in a list.
fn empty(value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for name in fields.keys() {
                if dropped.len() < MAX_REPORTED {
                    dropped.push(path.field(name).to_string());
                }
            }
            fields.clear();
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                empty(item, &path.index(index), dropped);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
