//! Custom kinds: reads the schema of a CRD's version into the form that all objects are walked
//! with.

mod build;
mod keywords;
mod openapi;
mod structural;

#[cfg(test)]
mod tests;

use crate::schema::{Form, NodeId, Schema, rules, walk};
use crate::status::{FieldError, Path, Problem};
use serde_json::Value;

/// A schema may have so many nodes: above that it is refused.
const MAX_NODES: usize = 32_768;

/// Reads `openAPIV3Schema`. `metadata` is the schema of ObjectMeta, copied in wherever a whole
/// object stands; without it, metadata is kept as it comes. The errors are upstream's; `path` is
/// where the schema stands in its CRD.
pub(crate) fn compile(
    openapi: &Value,
    metadata: Option<&Schema>,
    path: &Path<'_>,
) -> Result<Schema, Vec<FieldError>> {
    let Some(json) = openapi.as_object() else {
        return Err(vec![FieldError::required(path, "")]);
    };
    let mut errors = Vec::new();
    if keywords::flag(json, "nullable") {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(path.field("nullable"), detail));
    }
    errors.extend(structural::check(json, path));
    let root = openapi::SchemaPosition { is_root: true, ..openapi::SchemaPosition::default() };
    openapi::check(json, root, path, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut built = build::build(json, metadata, path)?;
    if built.schema.nodes.len() > MAX_NODES {
        let detail = format!("must have at most {MAX_NODES} schemas in it");
        return Err(vec![FieldError::new(Problem::TooMany, path, detail)]);
    }
    let mut errors = check_defaults(&built);
    if errors.is_empty() {
        // Rules are compiled against a sound schema, and defaults must obey them.
        errors = compile_rules(&mut built);
    }
    if errors.is_empty() {
        errors = check_rules_of_defaults(&built);
    }
    if errors.is_empty() { Ok(built.schema) } else { Err(errors) }
}

/// Copies all nodes of one schema into another, and says where its root is now.
pub(crate) fn graft(into: &mut Schema, from: &Schema) -> NodeId {
    let offset = u32::try_from(into.nodes.len()).expect("no schema has 2^32 nodes");
    let moved = |id: NodeId| NodeId(id.0 + offset);
    for node in &from.nodes {
        let mut node = node.clone();
        match &mut node.form {
            Form::Object(object) => {
                for field in object.fields.values_mut() {
                    field.node = moved(field.node);
                }
            }
            Form::Map(map) => map.values = moved(map.values),
            Form::List(list) => list.items = moved(list.items),
            Form::Any
            | Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString => {}
        }
        into.nodes.push(node);
    }
    moved(from.root)
}

/// Defaults must be valid, and have nothing in them that would be pruned.
fn check_defaults(built: &build::Built<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for place in &built.defaults {
        let shape = built.schema.at(place.node);
        let Some(default) = &shape.node().default else { continue };
        let field = format!("{}.default", place.path);
        let mut pruned = default.clone();
        walk::prune(&mut pruned, shape);
        if !place.is_in_meta && pruned != *default {
            errors.push(FieldError::invalid(&field, default, "must not have unknown fields"));
        }
        errors.extend(walk::validate_at(default, None, shape, &Path::Field(&Path::Root, &field)));
    }
    errors
}

fn compile_rules(built: &mut build::Built<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for place in &built.rules {
        let path = format!("{}.x-kubernetes-validations", place.path);
        let scope = rules::Scope {
            shape: built.schema.at(place.node),
            is_whole_object: place.is_whole_object,
            uncorrelatable: place.uncorrelatable.as_deref(),
        };
        match rules::compile(place.rules, &scope, &Path::Field(&Path::Root, &path)) {
            Ok(compiled) => {
                let node = &mut built.schema.nodes[place.node.0 as usize];
                node.checks.get_or_insert_default().rules = compiled;
            }
            Err(found) => errors.extend(found),
        }
    }
    errors
}

fn check_rules_of_defaults(built: &build::Built<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for place in &built.defaults {
        let shape = built.schema.at(place.node);
        let Some(default) = &shape.node().default else { continue };
        let field = format!("{}.default", place.path);
        let path = Path::Field(&Path::Root, &field);
        errors.extend(rules::evaluate(default, Some(default), shape, &path));
        if errors.is_empty() {
            errors.extend(rules::evaluate(default, None, shape, &path));
        }
    }
    errors
}
