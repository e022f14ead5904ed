//! The checks that many kinds share.

use crate::behaviour::read::{at, text};
use crate::name;
use crate::status::{FieldError, Path, Problem};
use interlock_quantity::Quantity;
use serde_json::{Value, json};

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Refuses numbers below 0 in these fields of a part.
pub(super) fn not_negative(
    part: &Value,
    fields: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for field in fields {
        if at(part, field).as_i64().is_some_and(|number| number < 0) {
            errors.push(FieldError::invalid(path.field(field), at(part, field), NOT_NEGATIVE));
        }
    }
}

/// Refuses a text that is not one of a few; an empty one where one is needed.
pub(super) fn one_of(
    value: &Value,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    match value.as_str().unwrap_or_default() {
        "" => errors.push(FieldError::required(path, "")),
        text if supported.contains(&text) => {}
        _ => errors.push(FieldError::not_supported(path, value, supported)),
    }
}

/// As [`one_of`], for a field that may be left out.
pub(super) fn none_or_one_of(
    value: &Value,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !value.is_null() && !value.as_str().is_some_and(|text| supported.contains(&text)) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

/// Refuses a text by the rule it is given.
pub(super) fn by_rule(
    value: &str,
    rule: fn(&str) -> Vec<String>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for problem in rule(value) {
        errors.push(FieldError::invalid(path, &json!(value), problem));
    }
}

/// A name that must be there and be a DNS label.
pub(super) fn label_name(part: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("name");
    match text(part, "name") {
        "" => errors.push(FieldError::required(path, "")),
        given => by_rule(given, name::dns1123_label, &path, errors),
    }
}

/// A port's number.
pub(super) fn port_number(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let number = value.as_i64().unwrap_or_default();
    if !(1..=65_535).contains(&number) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path, &json!(number), detail));
    }
}

/// What is wrong with a port's name.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut problems: Vec<&str> = Vec::new();
    if name.len() > 15 {
        problems.push("must be no more than 15 characters");
    }
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_allowed) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems.into_iter().map(str::to_owned).collect()
}

/// A port by number or by name.
pub(super) fn port(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value.as_str() {
        Some(name) => by_rule(name, port_name, path, errors),
        None => port_number(value, path, errors),
    }
}

/// What is wrong with a key of a ConfigMap or a Secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 characters".to_owned());
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(is_allowed) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => problems.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// A whole number or a percentage, not below 0.
pub(super) fn amount_or_percent(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let detail = "a valid percent string must be a numeric string followed by an \
                    ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.push(FieldError::invalid(path, value, detail));
            }
        }
        _ if value.as_i64().is_some_and(|number| number < 0) => {
            errors.push(FieldError::invalid(path, value, NOT_NEGATIVE));
        }
        _ => {}
    }
}

/// A percentage's number, or the number itself.
pub(super) fn amount(value: &Value) -> i64 {
    match value.as_str() {
        Some(text) => text.trim_end_matches('%').parse().unwrap_or(0),
        None => value.as_i64().unwrap_or(0),
    }
}

/// Refuses more than all.
pub(super) fn at_most_all(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.as_str().is_some_and(|text| text.ends_with('%')) && amount(value) > 100 {
        errors.push(FieldError::invalid(path, value, "must not be greater than 100%"));
    }
}

/// A quantity that can be read and is not below 0.
pub(super) fn quantity(
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> Option<Quantity> {
    match Quantity::from_value(value) {
        Ok(quantity) => {
            if quantity.is_negative() {
                let shown = json!(quantity.to_string());
                errors.push(FieldError::invalid(path, &shown, NOT_NEGATIVE));
            }
            Some(quantity)
        }
        Err(problem) => {
            errors.push(FieldError::invalid(path, value, problem));
            None
        }
    }
}

/// A quantity that is more than nothing.
pub(super) fn positive_quantity(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match Quantity::from_value(value) {
        Ok(quantity) if quantity.is_zero() || quantity.is_negative() => {
            let shown = json!(quantity.to_string());
            errors.push(FieldError::invalid(path, &shown, "must be greater than zero"));
        }
        Ok(_) => {}
        Err(problem) => errors.push(FieldError::invalid(path, value, problem)),
    }
}

/// Too many bytes.
pub(super) fn too_long(path: impl std::fmt::Display, limit_bytes: usize) -> FieldError {
    let detail = format!("may not be more than {limit_bytes} bytes");
    FieldError::new(Problem::TooLong, path, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ports_and_keys_follow_their_rules() {
        assert!(port_name("http-1").is_empty());
        assert_eq!(port_name("1"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("a--b-").len(), 2);
        assert_eq!(port_name("").len(), 2);
        assert!(config_key(".dockerconfigjson").is_empty());
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert_eq!(config_key("a b").len(), 1);
    }
}
