//! Validation of a custom object, in upstream's words and order.

use super::MAX_REPORTED;
use super::constraints::{self, CheckedValue};
use super::lists::{correlate, find_duplicates, old_items};
use crate::schema::{Form, Shape, formats, rules};
use crate::status::{FieldError, Path, Problem};
use serde_json::{Map, Value};

/// What upstream writes where it has no field.
const NO_FIELD: &str = "<nil>";

/// Says what is wrong with an object. With the stored one in hand, what was wrong before and has
/// not changed is let pass, and transition rules apply. At most [`MAX_REPORTED`] errors are reported.
pub(crate) fn validate(value: &Value, old: Option<&Value>, shape: Shape<'_>) -> Vec<FieldError> {
    validate_at(value, old, shape, &Path::Root)
}

/// The same for a part of an object, such as its status.
pub(crate) fn validate_at(
    value: &Value,
    old: Option<&Value>,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(Pair { value, old }, shape, &Path::Root, &mut errors);
    let prefix = path.to_string();
    for error in &mut errors {
        // The sentences tell the path from here, only the field is that of the whole object.
        if !prefix.is_empty() && error.field != NO_FIELD {
            let has_dot = !error.field.is_empty() && !error.field.starts_with('[');
            let dot = if has_dot { "." } else { "" };
            error.field = format!("{prefix}{dot}{}", error.field);
        }
    }
    check_embedded(value, shape, path, &mut errors);
    let mut duplicates = Vec::new();
    find_duplicates(value, shape, path, &mut duplicates);
    if let (false, Some(old)) = (duplicates.is_empty(), old) {
        // Duplicates that are stored already do not stop other changes.
        let mut before = Vec::new();
        find_duplicates(old, shape, path, &mut before);
        if !before.is_empty() {
            duplicates.clear();
        }
    }
    errors.append(&mut duplicates);
    if !rules::has_rules(shape) {
        errors.truncate(MAX_REPORTED);
        return errors;
    }
    let blocks = |error: &FieldError| {
        matches!(
            error.problem,
            Problem::Required | Problem::TooLong | Problem::TooMany | Problem::TypeInvalid
        )
    };
    if errors.iter().any(blocks) {
        errors.truncate(MAX_REPORTED - 1);
        errors.push(FieldError::invalid(
            NO_FIELD,
            &Value::Null,
            "some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        ));
    } else {
        errors.append(&mut rules::evaluate(value, old, shape, path));
    }
    errors.truncate(MAX_REPORTED);
    errors
}

/// A value, and what stood there before if that is known.
#[derive(Clone, Copy)]
struct Pair<'v> {
    value: &'v Value,
    old: Option<&'v Value>,
}

impl<'v> Pair<'v> {
    /// Whether the value is what it was, so that what is wrong with it was wrong before.
    fn is_unchanged(self) -> bool {
        self.old == Some(self.value)
    }

    fn field(self, name: &str, value: &'v Value) -> Pair<'v> {
        Pair { value, old: self.old.and_then(|old| old.get(name)) }
    }
}

fn check(pair: Pair<'_>, shape: Shape<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_REPORTED {
        return;
    }
    let first = errors.len();
    check_type(pair.value, shape, path, errors);
    if let Some(checks) = shape.node().checks.as_deref() {
        constraints::check(CheckedValue { value: pair.value, path }, checks, errors);
    }
    if let (Form::Object(object), Value::Object(fields)) = (&shape.node().form, pair.value) {
        constraints::require(fields, &object.required, path, errors);
    }
    check_inside(pair, shape, path, errors);
    if errors.len() > first && pair.is_unchanged() {
        errors.truncate(first);
    }
}

fn check_inside(pair: Pair<'_>, shape: Shape<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (&shape.node().form, pair.value) {
        (Form::Object(object), Value::Object(fields)) => {
            for (name, value) in fields {
                let Some(field) = object.fields.get(name.as_str()) else { continue };
                let inner = shape.at(field.node);
                let path = path.field(name);
                if is_metadata(inner) {
                    check_metadata(pair.field(name, value), inner, &path, errors);
                } else {
                    check(pair.field(name, value), inner, &path, errors);
                }
            }
        }
        (Form::Map(map), Value::Object(fields)) => {
            for (key, value) in fields {
                check(pair.field(key, value), shape.at(map.values), &path.field(key), errors);
            }
        }
        (Form::List(list), Value::Array(items)) => {
            let before = old_items(pair.old, &list.kind);
            for (index, value) in items.iter().enumerate() {
                let old = correlate(value, &list.kind, &before);
                check(Pair { value, old }, shape.at(list.items), &path.index(index), errors);
            }
        }
        _ => {}
    }
}

/// ObjectMeta is checked by those who know it, not here.
fn is_metadata(shape: Shape<'_>) -> bool {
    shape.name.as_deref().is_some_and(|name| name.ends_with(".ObjectMeta"))
}

/// A CRD may bound the name of its objects, and nothing else in metadata.
fn check_metadata(pair: Pair<'_>, shape: Shape<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["name", "generateName"] {
        if let (Some(value), Some(inner)) = (pair.value.get(name), shape.field(name))
            && inner.checks.is_some()
        {
            check(pair.field(name, value), inner, &path.field(name), errors);
        }
    }
}

/// The word that JSON schemas have for the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(value: &Value, shape: Shape<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let checks = shape.node().checks.as_deref();
    if checks.is_some_and(|checks| checks.accepts_any_type) || (value.is_null() && shape.nullable) {
        return;
    }
    let (is_fine, wanted) = match &shape.node().form {
        Form::Any => return,
        Form::Boolean => (value.is_boolean(), "boolean"),
        Form::Integer => (is_whole(value), "integer"),
        Form::Number => (value.is_number(), "number"),
        Form::String => (value.is_string(), "string"),
        Form::IntOrString => (value.is_string() || is_whole(value), "integer,string"),
        Form::Object(_) | Form::Map(_) => (value.is_object(), "object"),
        Form::List(_) => (value.is_array(), "array"),
    };
    if is_fine {
        return;
    }
    let format = checks.and_then(|checks| checks.format.as_deref());
    let known = format.filter(|format| wanted == "string" && formats::is_known(format));
    let (wanted, got) = match (known, value) {
        (Some(format), Value::Bool(_) | Value::Object(_)) => (format, ""),
        (Some(format), Value::Number(number)) => {
            (format, if number.is_f64() { "float64" } else { "int64" })
        }
        _ => (wanted, type_name(value)),
    };
    errors.push(FieldError {
        problem: Problem::TypeInvalid,
        field: path.to_string(),
        value: format!("{got:?}"),
        detail: format!("{path} in body must be of type {wanted}: {got:?}"),
    });
}

/// Whether a number is whole: `1.0` is.
fn is_whole(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0
        }
        _ => true,
    }
}

/// Objects inside objects must say what they are, and have metadata as objects have them.
fn check_embedded(value: &Value, shape: Shape<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_REPORTED {
        return;
    }
    match (&shape.node().form, value) {
        (Form::Object(object), Value::Object(fields)) => {
            if object.is_embedded_resource {
                check_type_meta(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(field) = object.fields.get(name.as_str())
                    && !is_metadata(shape.at(field.node))
                {
                    check_embedded(value, shape.at(field.node), &path.field(name), errors);
                }
            }
        }
        (Form::Map(map), Value::Object(fields)) => {
            for (key, value) in fields {
                check_embedded(value, shape.at(map.values), &path.key(key), errors);
            }
        }
        (Form::List(list), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check_embedded(item, shape.at(list.items), &path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn check_type_meta(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let path = path.field(name);
        match fields.get(name) {
            None => errors.push(FieldError::required(path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(path, &fields[name], "must not be empty"));
            }
            Some(Value::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(path, &fields[name], detail));
            }
            Some(Value::String(text)) if name == "kind" => {
                let problems = crate::name::dns1035_label(&text.to_lowercase());
                if !problems.is_empty() {
                    let detail = format!(
                        "may have mixed case, but should otherwise match: {}",
                        problems.join(",")
                    );
                    errors.push(FieldError::invalid(path, &fields[name], detail));
                }
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(path, other, "must be a string")),
        }
    }
    let path = path.field("metadata");
    match fields.get("metadata") {
        None => {}
        Some(Value::Object(metadata)) => {
            let room = MAX_REPORTED.saturating_sub(errors.len());
            let wrong = crate::name::validate_embedded_metadata(metadata, &path);
            errors.extend(wrong.into_iter().take(room));
        }
        Some(other) => errors.push(FieldError::invalid(path, other, "must be an object")),
    }
}
