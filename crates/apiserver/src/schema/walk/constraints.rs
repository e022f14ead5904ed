//! Bounds on one value, and what `allOf`, `anyOf`, `oneOf` and `not` ask of it.

use super::MAX_REPORTED;
use crate::schema::checks::{Checks, Constraint, Limit};
use crate::schema::formats;
use crate::status::{FieldError, Path, Problem};
use serde_json::{Map, Number, Value};
use std::sync::Arc;

/// What upstream writes where it has no field.
const NO_FIELD: &str = "<nil>";

/// A value and where it is.
#[derive(Clone, Copy)]
pub(super) struct CheckedValue<'v, 'p> {
    pub(super) value: &'v Value,
    pub(super) path: &'p Path<'p>,
}

/// All bounds, in upstream's order.
pub(super) fn check(at: CheckedValue<'_, '_>, checks: &Checks, errors: &mut Vec<FieldError>) {
    let value = at.value;
    check_junctors(at, checks, errors);
    match value {
        Value::String(text) => check_text(text, checks, at.path, errors),
        Value::Number(number) => check_number(number, checks, at.path, errors),
        Value::Array(items) => check_count(Counted::Items(items.len()), checks, at.path, errors),
        Value::Object(fields) => {
            check_count(Counted::Properties(fields.len()), checks, at.path, errors);
        }
        Value::Null | Value::Bool(_) => {}
    }
    check_enumeration(value, checks, at.path, errors);
}

/// The fields that must be there.
pub(super) fn require(
    fields: &Map<String, Value>,
    required: &[Arc<str>],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for name in required {
        if !fields.contains_key(&**name) && errors.len() < MAX_REPORTED {
            errors.push(FieldError::required(path.field(name), ""));
        }
    }
}

fn invalid(path: &Path<'_>, value: &Value, detail: impl std::fmt::Display) -> FieldError {
    let mut error = FieldError::invalid(path, value, format!("{path} in body {detail}"));
    // Numbers without a fraction are shown without one.
    if let Some(float) = value.as_f64().filter(|_| value.is_f64()) {
        error.value = float.to_string();
    }
    error
}

fn check_text(text: &str, checks: &Checks, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let value = || Value::String(text.to_owned());
    let length = || text.chars().count() as u64;
    if let Some(most) = checks.max_length
        && length() > most
    {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {unit}");
        errors.push(FieldError::new(Problem::TooLong, path, detail));
    } else if let Some(fewest) = checks.min_length
        && length() < fewest
    {
        let detail = format!("should be at least {fewest} chars long");
        errors.push(invalid(path, &value(), detail));
    } else if let Some(pattern) = &checks.pattern
        && !pattern.regex().is_match(text)
    {
        errors.push(invalid(path, &value(), format!("should match '{}'", pattern.source())));
    }
    if let Some(format) = &checks.format
        && formats::has_format(format, text) == Some(false)
    {
        errors.push(FieldError {
            problem: Problem::TypeInvalid,
            ..invalid(path, &value(), format!("must be of type {format}: {text:?}"))
        });
    }
}

fn check_number(number: &Number, checks: &Checks, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let value = Value::Number(number.clone());
    if let Some(factor) = checks.multiple_of
        && !is_multiple(number, factor)
    {
        errors.push(invalid(path, &value, format!("should be a multiple of {factor}")));
    }
    if let Some(limit) = checks.minimum {
        let order = compare(number, limit);
        if order.is_lt() || (limit.is_exclusive && order.is_eq()) {
            let words =
                if limit.is_exclusive { "greater than" } else { "greater than or equal to" };
            errors.push(invalid(path, &value, format!("should be {words} {}", limit.value)));
        }
    }
    if let Some(limit) = checks.maximum {
        let order = compare(number, limit);
        if order.is_gt() || (limit.is_exclusive && order.is_eq()) {
            let words = if limit.is_exclusive { "less than" } else { "less than or equal to" };
            errors.push(invalid(path, &value, format!("should be {words} {}", limit.value)));
        }
    }
}

/// Whole numbers are compared as whole numbers, with the bound cut to one, as upstream does.
fn compare(number: &Number, limit: Limit) -> std::cmp::Ordering {
    if let Some(whole) = number.as_i64() {
        return whole.cmp(&(limit.value as i64));
    }
    let float = number.as_f64().unwrap_or(f64::MAX);
    float.partial_cmp(&limit.value).unwrap_or(std::cmp::Ordering::Equal)
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    if let (Some(whole), true) = (number.as_i64(), factor >= 1.0 && factor.fract() == 0.0) {
        // The bound is at least one, and what is too large for the cast is cut to the largest
        // number.
        return whole % (factor as i64) == 0;
    }
    let quotient = number.as_f64().unwrap_or(f64::NAN) / factor;
    let nearest = quotient.round();
    quotient.is_finite() && (quotient - nearest).abs() <= 1e-9 * nearest.abs().max(1.0)
}

enum Counted {
    Items(usize),
    Properties(usize),
}

fn check_count(counted: Counted, checks: &Checks, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (count, fewest, most, words) = match counted {
        Counted::Items(count) => (count, checks.min_items, checks.max_items, "items"),
        Counted::Properties(count) => {
            (count, checks.min_properties, checks.max_properties, "properties")
        }
    };
    if fewest.is_some_and(|fewest| (count as u64) < fewest) {
        let detail = format!("should have at least {} {words}", fewest.unwrap_or_default());
        errors.push(invalid(path, &Value::from(count), detail));
    }
    if let Some(most) = most
        && count as u64 > most
    {
        let unit = if most == 1 { "item" } else { "items" };
        // The number stands in front of the sentence: for this problem it is the value that
        // upstream shows.
        let detail = format!("{count}: must have at most {most} {unit}");
        errors.push(FieldError::new(Problem::TooMany, path, detail));
    }
}

fn check_enumeration(
    value: &Value,
    checks: &Checks,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if checks.enumeration.is_empty() || checks.enumeration.iter().any(|one| is_same(one, value)) {
        return;
    }
    let words: Vec<String> = checks
        .enumeration
        .iter()
        .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    errors.push(FieldError::not_supported(path, value, &words));
}

/// Numbers are the same if they have the same value: `1` and `1.0`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        _ => one == other,
    }
}

fn check_junctors(at: CheckedValue<'_, '_>, checks: &Checks, errors: &mut Vec<FieldError>) {
    let path = at.path;
    let about_all = |text: String| FieldError::invalid(NO_FIELD, &Value::from(""), text);
    // Nearly every value has bounds and nearly none breaks them: the path is written only for those.
    let name = || format!("{:?}", path.to_string());
    if !checks.any_of.is_empty() {
        let attempt = attempt(at, &checks.any_of);
        if attempt.valid == 0 {
            errors.push(about_all(format!("{} must validate at least one schema (anyOf)", name())));
            errors.extend(attempt.best);
        }
    }
    if !checks.one_of.is_empty() {
        let attempt = attempt(at, &checks.one_of);
        if attempt.valid != 1 {
            let found = match attempt.valid {
                0 => "Found none valid".to_owned(),
                many => format!("Found {many} valid alternatives"),
            };
            let text = format!("{} must validate one and only one schema (oneOf). {found}", name());
            errors.push(about_all(text));
            errors.extend(attempt.best);
        }
    }
    let mut failed = 0;
    for constraint in &checks.all_of {
        let first = errors.len();
        constrain(at, constraint, errors);
        failed += usize::from(errors.len() > first);
    }
    if failed > 0 {
        let none = if failed == checks.all_of.len() { ". None validated" } else { "" };
        errors.push(about_all(format!("{} must validate all the schemas (allOf){none}", name())));
    }
    if let Some(constraint) = &checks.not {
        let mut inner = Vec::new();
        constrain(at, constraint, &mut inner);
        if inner.is_empty() {
            errors.push(about_all(format!("{} must not validate the schema (not)", name())));
        }
    }
}

/// How many of several constraints hold, and what is wrong with the one that came closest.
struct Attempt {
    valid: usize,
    best: Vec<FieldError>,
}

fn attempt(at: CheckedValue<'_, '_>, constraints: &[Constraint]) -> Attempt {
    let mut valid = 0;
    let mut best: Option<Vec<FieldError>> = None;
    for constraint in constraints {
        let mut errors = Vec::new();
        constrain(at, constraint, &mut errors);
        if errors.is_empty() {
            valid += 1;
        } else if best.as_ref().is_none_or(|best| errors.len() < best.len()) {
            best = Some(errors);
        }
    }
    let best = if valid == 0 { best.unwrap_or_default() } else { Vec::new() };
    Attempt { valid, best }
}

fn constrain(at: CheckedValue<'_, '_>, constraint: &Constraint, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_REPORTED {
        return;
    }
    check(at, &constraint.checks, errors);
    match at.value {
        Value::Object(fields) => {
            for (name, inner) in &constraint.fields {
                let Some(value) = fields.get(&**name) else { continue };
                constrain(CheckedValue { value, path: &at.path.field(name) }, inner, errors);
            }
            require(fields, &constraint.required, at.path, errors);
        }
        Value::Array(items) => {
            let Some(inner) = &constraint.items else { return };
            for (index, value) in items.iter().enumerate() {
                constrain(CheckedValue { value, path: &at.path.index(index) }, inner, errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
