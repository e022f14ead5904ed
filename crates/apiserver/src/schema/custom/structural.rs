//! Structural schemas: each value has one description, and `allOf`, `anyOf`, `oneOf`, `not` only
//! bound it.

use super::keywords::{
    Json, flag, is_set, property, repeats_in_all_of, repeats_in_any_of, schema_at, schemas,
    schemas_by_name, text, texts,
};
use crate::schema::checks::Pattern;
use crate::status::{FieldError, Path};
use serde_json::Value;

/// A pattern may take so much when it is compiled.
pub(super) const MAX_PATTERN_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural, in upstream's words.
pub(super) fn check(schema: &Json, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), Paths { structure: path, constraint: path }, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

fn invariants(schema: &Json, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let type_name = text(schema, "type");
    if type_name == "array" && !is_set(schema, "items") {
        errors.push(FieldError::required(path.field("items"), "must be specified"));
    }
    if let Some(items) = schema_at(schema, "items") {
        invariants(items, Level::Item, &path.field("items"), errors);
    }
    for (name, inner) in schemas_by_name(schema, "properties") {
        invariants(inner, Level::Field, &path.field("properties").key(name), errors);
    }
    let additional = path.field("additionalProperties");
    if is_set(schema, "additionalProperties") {
        if level == Level::Root {
            errors.push(FieldError::forbidden(additional, "must not be used at the root"));
        }
        if let Some(inner) = schema_at(schema, "additionalProperties") {
            invariants(inner, Level::Field, &additional, errors);
        }
    }
    let is_int_or_string = flag(schema, "x-kubernetes-int-or-string");
    if is_int_or_string {
        for word in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, word) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(path.field(word), &Value::Bool(true), detail));
            }
        }
    }
    let skips =
        Skips { any_of: repeats_in_any_of(schema), first_all_of: repeats_in_all_of(schema) };
    constraint_lists(schema, skips, path, errors);
    object_invariants(schema, level, path, errors);
}

fn object_invariants(schema: &Json, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let type_name = text(schema, "type");
    let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
    let keeps_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let type_path = path.field("type");
    let type_value = || schema.get("type").cloned().unwrap_or_else(|| Value::from(""));
    if is_embedded && type_name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if type_name.is_empty() {
            FieldError::required(type_path, detail)
        } else {
            FieldError::invalid(type_path, &type_value(), detail)
        });
    } else if type_name.is_empty() && !flag(schema, "x-kubernetes-int-or-string") && !keeps_unknown
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(type_path, detail));
    }
    if is_embedded && is_set(schema, "additionalProperties") {
        errors.push(FieldError::forbidden(
            path.field("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !type_name.is_empty() && type_name != "object" {
        errors.push(FieldError::invalid(type_path, &type_value(), "must be object at the root"));
    }
    meta_invariants(schema, level, path, errors);
    if is_embedded && !keeps_unknown && schemas_by_name(schema, "properties").next().is_none() {
        errors.push(FieldError::required(
            path.field("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// `kind`, `apiVersion` and `metadata` are what they are everywhere; only the name may be bounded.
fn meta_invariants(schema: &Json, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is_whole = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let properties = path.field("properties");
    for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(inner) = property(schema, name) else { continue };
        let path = properties.key(name);
        if is_whole && text(inner, "type") != wanted {
            let got = Value::from(text(inner, "type"));
            let detail = format!("must be {wanted}");
            errors.push(FieldError::invalid(path.field("type"), &got, detail));
        }
        if name == "metadata" && level == Level::Root && !bounds_only_names(inner) {
            errors.push(FieldError::forbidden(
                path,
                "must not specify anything other than name and generateName, \
                 but metadata is implicitly specified",
            ));
        }
    }
}

fn bounds_only_names(metadata: &Json) -> bool {
    let is_name = |name: &str| matches!(name, "name" | "generateName");
    metadata.iter().all(|(word, value)| match word.as_str() {
        "type" | "default" => true,
        "properties" => schemas_by_name(metadata, "properties").all(|(name, _)| is_name(name)),
        _ => matches!(value, Value::Null | Value::Bool(false)),
    })
}

/// Where the two spellings of `int-or-string` stand, which may name types.
#[derive(Clone, Copy, Default)]
struct Skips {
    any_of: bool,
    first_all_of: bool,
}

fn constraint_lists(schema: &Json, skips: Skips, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for word in ["anyOf", "allOf", "oneOf"] {
        if word == "anyOf" && skips.any_of {
            continue;
        }
        for (index, inner) in schemas(schema, word).enumerate() {
            let any_of = word == "allOf" && index == 0 && skips.first_all_of;
            let skips = Skips { any_of, first_all_of: false };
            nested(inner, skips, &path.field(word).index(index), errors);
        }
    }
    if let Some(inner) = schema_at(schema, "not") {
        nested(inner, Skips::default(), &path.field("not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = Pattern::new(pattern, MAX_PATTERN_BYTES)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(path.field("pattern"), &Value::from(pattern), detail));
    }
}

fn nested(schema: &Json, skips: Skips, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    constraint_lists(schema, skips, path, errors);
    if let Some(items) = schema_at(schema, "items") {
        nested(items, Skips::default(), &path.field("items"), errors);
    }
    for (name, inner) in schemas_by_name(schema, "properties") {
        nested(inner, Skips::default(), &path.field("properties").key(name), errors);
    }
    let is_empty = |word: &str| match schema.get(word) {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    };
    let forbidden = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (word, detail) in forbidden {
        let is_undefined = detail.contains("undefined");
        if (is_undefined && is_set(schema, word)) || (!is_undefined && !is_empty(word)) {
            errors.push(FieldError::forbidden(path.field(word), detail));
        }
    }
    if property(schema, "metadata").is_some() {
        errors.push(FieldError::forbidden(
            path.field("properties").key("metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// Where the walk is in the structure, and where in the constraint beside it.
#[derive(Clone, Copy)]
struct Paths<'p> {
    structure: &'p Path<'p>,
    constraint: &'p Path<'p>,
}

/// Each value that a constraint bounds must be described by the structure.
fn completeness(
    constraint: &Json,
    structure: Option<&Json>,
    paths: Paths<'_>,
    errors: &mut Vec<FieldError>,
) {
    for word in ["not", "allOf", "anyOf", "oneOf"] {
        let at = paths.constraint.field(word);
        if let Some(inner) = schema_at(constraint, word).filter(|_| word == "not") {
            nested_completeness(inner, structure, Paths { constraint: &at, ..paths }, errors);
        }
        for (index, inner) in schemas(constraint, word).enumerate() {
            let paths = Paths { constraint: &at.index(index), ..paths };
            nested_completeness(inner, structure, paths, errors);
        }
    }
}

fn nested_completeness(
    constraint: &Json,
    structure: Option<&Json>,
    paths: Paths<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(structure) = structure else {
        let detail = format!("because it is defined in {}", paths.constraint);
        errors.push(FieldError::required(paths.structure, detail));
        return;
    };
    completeness(constraint, Some(structure), paths, errors);
    if let Some(items) = schema_at(constraint, "items") {
        let (inner, at) = (paths.structure.field("items"), paths.constraint.field("items"));
        let paths = Paths { structure: &inner, constraint: &at };
        nested_completeness(items, schema_at(structure, "items"), paths, errors);
    }
    for (name, inner) in schemas_by_name(constraint, "properties") {
        let (fields, bounds) =
            (paths.structure.field("properties"), paths.constraint.field("properties"));
        let paths = Paths { structure: &fields.key(name), constraint: &bounds.key(name) };
        nested_completeness(inner, property(structure, name), paths, errors);
    }
}

/// The names in `required` of keyed lists, for those who look whether keys are there.
pub(super) fn is_required(schema: &Json, name: &str) -> bool {
    texts(schema, "required").contains(&name)
}
