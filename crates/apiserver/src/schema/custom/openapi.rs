//! What a CRD's schema may say beyond being structural: no references, sound list types, defaults
//! only where they can be kept.

use super::keywords::{
    Json, flag, is_set, property, schema_at, schemas, schemas_by_name, text, texts,
};
use super::structural::is_required;
use crate::status::{FieldError, Path};
use serde_json::Value;

/// Where the walk is.
#[derive(Clone, Copy, Default)]
pub(super) struct SchemaPosition {
    /// The schema of the whole object.
    pub(super) is_root: bool,
    /// Inside `metadata`, `kind` or `apiVersion` of an object.
    pub(super) is_in_meta: bool,
    /// Why there may be no default here.
    pub(super) no_default_because: Option<&'static str>,
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Checks a schema and all in it.
pub(super) fn check(
    schema: &Json,
    place: SchemaPosition,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    check_words(schema, place, path, errors);
    check_children(schema, place, path, errors);
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        errors.push(FieldError::invalid(
            path.field("x-kubernetes-preserve-unknown-fields"),
            &Value::Bool(false),
            "must be true or undefined",
        ));
    }
    check_map_type(schema, path, errors);
    check_list_type(schema, path, errors);
    check_rules(schema, path, errors);
}

fn check_words(
    schema: &Json,
    place: SchemaPosition,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let type_name = text(schema, "type");
    if !type_name.is_empty() && !TYPES.contains(&type_name) {
        let value = Value::from(type_name);
        errors.push(FieldError::not_supported(path.field("type"), &value, &TYPES));
    }
    if is_set(schema, "default")
        && let Some(because) = place.no_default_because
    {
        let detail = format!("must not be set {because}");
        errors.push(FieldError::forbidden(path.field("default"), detail));
    }
    for word in
        ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        let is_empty = match schema.get(word) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty() && word == "id",
            Some(Value::Object(object)) => {
                object.is_empty() && matches!(word, "patternProperties" | "definitions")
            }
            Some(_) => false,
        };
        if !is_empty {
            let detail = format!("{word} is not supported");
            errors.push(FieldError::forbidden(path.field(word), detail));
        }
    }
    if type_name == "null" {
        errors.push(FieldError::forbidden(
            path.field("type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(path.field("items"), detail));
    }
    if place.is_in_meta && flag(schema, "x-kubernetes-embedded-resource") {
        errors.push(FieldError::forbidden(
            path.field("x-kubernetes-embedded-resource"),
            "must not be used inside of resource meta",
        ));
    }
    if flag(schema, "uniqueItems") {
        errors.push(FieldError::forbidden(
            path.field("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    let has_properties = schemas_by_name(schema, "properties").next().is_some();
    let additional = schema.get("additionalProperties");
    if has_properties && matches!(additional, Some(Value::Bool(false) | Value::Object(_))) {
        errors.push(FieldError::forbidden(
            path.field("additionalProperties"),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
}

fn check_children(
    schema: &Json,
    place: SchemaPosition,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let inside = SchemaPosition { is_root: false, ..place };
    if let Some(inner) = schema_at(schema, "additionalProperties") {
        let because = "inside additionalProperties applying to object metadata";
        let no_default_because =
            if place.is_in_meta { Some(because) } else { place.no_default_because };
        let place = SchemaPosition { no_default_because, ..inside };
        check(inner, place, &path.field("additionalProperties"), errors);
    }
    let is_root = place.is_root;
    let is_whole = is_root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, inner) in schemas_by_name(schema, "properties") {
        let mut place = inside;
        let because = match name {
            "metadata" => Some("in top-level metadata"),
            "kind" => Some("in top-level kind"),
            "apiVersion" => Some("in top-level apiVersion"),
            _ => None,
        };
        place.is_in_meta |= is_whole && because.is_some();
        if is_root {
            place.no_default_because = because.or(place.no_default_because);
        }
        check(inner, place, &path.field("properties").key(name), errors);
    }
    for word in ["allOf", "oneOf", "anyOf"] {
        for (index, inner) in schemas(schema, word).enumerate() {
            check(inner, inside, &path.field(word).index(index), errors);
        }
    }
    for word in ["not", "items"] {
        if let Some(inner) = schema_at(schema, word) {
            check(inner, inside, &path.field(word), errors);
        }
    }
}

fn check_map_type(schema: &Json, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let word = "x-kubernetes-map-type";
    if !is_set(schema, word) {
        return;
    }
    errors.extend(goes_with(schema, word, "object", path));
    if !matches!(text(schema, word), "atomic" | "granular") {
        let supported = ["atomic", "granular"];
        errors.push(FieldError::not_supported(path.field(word), &schema[word], &supported));
    }
}

/// A word that only goes with one type.
fn goes_with(schema: &Json, word: &str, wanted: &str, path: &Path<'_>) -> Option<FieldError> {
    let type_name = text(schema, "type");
    if type_name == wanted {
        return None;
    }
    let detail = format!("must be {wanted} if {word} is specified");
    Some(if type_name.is_empty() {
        FieldError::required(path.field("type"), detail)
    } else {
        FieldError::invalid(path.field("type"), &Value::from(type_name), detail)
    })
}

fn check_list_type(schema: &Json, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let word = "x-kubernetes-list-type";
    let kind = text(schema, word);
    let items = schema_at(schema, "items");
    if is_set(schema, word) {
        errors.extend(goes_with(schema, word, "array", path));
        if !matches!(kind, "atomic" | "set" | "map") {
            let supported = ["atomic", "set", "map"];
            errors.push(FieldError::not_supported(path.field(word), &schema[word], &supported));
        }
    }
    if !texts(schema, "x-kubernetes-list-map-keys").is_empty() && kind != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if kind.is_empty() {
            FieldError::required(path.field(word), detail)
        } else {
            FieldError::invalid(path.field(word), &Value::from(kind), detail)
        });
    }
    let Some(items) = items else {
        if kind == "map" {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(path.field("items"), detail));
        }
        return;
    };
    if matches!(kind, "set" | "map") && flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(path.field("items").field("nullable"), detail));
    }
    match kind {
        "set" if text(schema, "type") == "array" => check_set_items(items, path, errors),
        "map" => check_keys(schema, items, path, errors),
        _ => {}
    }
}

/// The elements of a set are compared as a whole, so they must be merged as a whole too.
fn check_set_items(items: &Json, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let (word, is_fine) = match text(items, "type") {
        "array" => (
            "x-kubernetes-list-type",
            matches!(text(items, "x-kubernetes-list-type"), "" | "atomic"),
        ),
        "object" => ("x-kubernetes-map-type", text(items, "x-kubernetes-map-type") == "atomic"),
        _ => return,
    };
    if !is_fine {
        let value = items.get(word).cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(path.field("items").field(word), &value, detail));
    }
}

fn check_keys(schema: &Json, items: &Json, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let word = "x-kubernetes-list-map-keys";
    let keys = texts(schema, word);
    let items_path = path.field("items");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(path.field(word), detail));
    }
    let item_type = Value::from(text(items, "type"));
    if item_type != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(items_path.field("type"), &item_type, detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(path.field(word), &schema[word], detail));
        }
        let Some(inner) = property(items, key) else {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(path.field(word), &schema[word], detail));
            continue;
        };
        let properties = items_path.field("properties");
        let path = properties.key(key);
        if matches!(text(inner, "type"), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(path.field("type"), &item_type, detail));
        }
        if !is_required(items, key) && !is_set(inner, "default") {
            errors.push(FieldError::required(
                path.field("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be \
                 a required property",
            ));
        }
        if flag(inner, "nullable") {
            errors.push(FieldError::forbidden(
                path.field("nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
    }
}

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The texts around the rules; the rules themselves are compiled once the schema is known to be
/// sound.
fn check_rules(schema: &Json, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let word = path.field("x-kubernetes-validations");
    for (index, rule) in schemas(schema, "x-kubernetes-validations").enumerate() {
        let path = word.index(index);
        let has_break = |text: &str| text.contains(['\n', '\r']);
        let expression = text(rule, "rule").trim();
        let (message, trimmed) = (text(rule, "message"), text(rule, "message").trim());
        let invalid = |name: &str, detail: &str| {
            FieldError::invalid(path.field(name), &Value::from(text(rule, name)), detail)
        };
        if expression.is_empty() {
            errors.push(FieldError::required(path.field("rule"), "rule is not specified"));
        } else if !message.is_empty() && trimmed.is_empty() {
            errors.push(invalid("message", "must be non-empty if specified"));
        } else if has_break(trimmed) {
            errors.push(invalid("message", "must not contain line breaks"));
        } else if has_break(expression) && trimmed.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(path.field("message"), detail));
        }
        let from = text(rule, "messageExpression");
        if !from.is_empty() && from.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(path.field("messageExpression"), detail));
        }
        if is_set(rule, "reason") && !REASONS.contains(&text(rule, "reason")) {
            errors.push(FieldError::not_supported(path.field("reason"), &rule["reason"], &REASONS));
        }
        let field = text(rule, "fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            errors.push(invalid("fieldPath", "must be non-empty if specified"));
        }
        if has_break(field) {
            errors.push(invalid("fieldPath", "must not contain line breaks"));
        }
    }
}
