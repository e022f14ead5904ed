//! Label selectors: whether they are valid, what they match, how they are shown.

use super::read::{at, entries, list, text};
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Map, Value, json};

/// A selector that cannot be read: an operator that does not exist, or values where none may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// A selector as `kubectl` shows it, `a=b,c in (d,e)`. Nothing at all is the empty text.
pub(crate) fn shown(selector: &Value) -> Result<String, Unreadable> {
    let mut requirements: Vec<(String, String)> = entries(selector, "matchLabels")
        .map(|(key, value)| {
            (key.to_owned(), format!("{key}={}", value.as_str().unwrap_or_default()))
        })
        .collect();
    for expression in list(selector, "matchExpressions") {
        requirements.push(shown_expression(expression)?);
    }
    requirements.sort_by(|left, right| left.0.cmp(&right.0));
    let texts: Vec<String> = requirements.into_iter().map(|(_, shown)| shown).collect();
    Ok(texts.join(","))
}

fn shown_expression(expression: &Value) -> Result<(String, String), Unreadable> {
    let key = text(expression, "key").to_owned();
    let mut values: Vec<&str> =
        list(expression, "values").iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let joined = values.join(",");
    let shown = match (text(expression, "operator"), values.is_empty()) {
        ("In", false) => format!("{key} in ({joined})"),
        ("NotIn", false) => format!("{key} notin ({joined})"),
        ("Exists", true) => key.clone(),
        ("DoesNotExist", true) => format!("!{key}"),
        _ => return Err(Unreadable),
    };
    Ok((key, shown))
}

/// A set of labels as `kubectl` shows it, `a=b,c=d`, or `<none>`.
pub(crate) fn shown_labels(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// Whether nothing is asked for: such a selector matches everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none()
        && list(selector, "matchExpressions").is_empty()
}

/// Whether the labels have all that is asked for.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let by_labels =
        entries(selector, "matchLabels").all(|(key, value)| labels.get(key) == Some(value));
    by_labels
        && list(selector, "matchExpressions").iter().all(|expression| {
            let value = labels.get(text(expression, "key"));
            let is_listed = value.is_some_and(|value| list(expression, "values").contains(value));
            match text(expression, "operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// What is wrong with a selector, in upstream's words.
pub(crate) fn validate(selector: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_labels(at(selector, "matchLabels"), &path.field("matchLabels"), errors);
    let expressions_path = path.field("matchExpressions");
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        validate_expression(expression, &expressions_path.index(index), errors);
    }
}

fn validate_expression(expression: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let values = list(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            path.field("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            path.field("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.push(FieldError::invalid(
            path.field("operator"),
            &json!(text(expression, "operator")),
            "not a valid selector operator",
        )),
    }
    validate_label_key(text(expression, "key"), &path.field("key"), errors);
    let values_path = path.field("values");
    for (index, value) in values.iter().enumerate() {
        let value_path = values_path.index(index);
        for problem in name::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(value_path, value, problem));
        }
    }
}

/// What is wrong with a set of labels, in upstream's words.
pub(crate) fn validate_labels(labels: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let none = Map::new();
    for (key, value) in labels.as_object().unwrap_or(&none) {
        validate_label_key(key, path, errors);
        for problem in name::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(path, value, problem));
        }
    }
}

fn validate_label_key(key: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for problem in name::qualified_name(key) {
        errors.push(FieldError::invalid(path, &json!(key), problem));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_shown_as_kubectl_shows_it() {
        let selector = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist"},
                {"key": "e", "operator": "NotIn", "values": ["z"]},
            ],
        });
        assert_eq!(shown(&selector), Ok("a in (x,y),b=1,c,!d,e notin (z)".to_owned()));
        assert_eq!(shown(&json!(null)), Ok(String::new()));
        assert_eq!(shown(&json!({"matchExpressions": [{"operator": "Is"}]})), Err(Unreadable));
    }

    #[test]
    fn a_selector_matches_labels_that_have_all_it_asks_for() {
        let selector = json!({
            "matchLabels": {"a": "1"},
            "matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["2"]}],
        });
        assert!(matches(&selector, &json!({"a": "1"})));
        assert!(!matches(&selector, &json!({"a": "1", "b": "2"})));
        assert!(!matches(&selector, &json!(null)));
        assert!(matches(&json!({}), &json!(null)));
    }

    #[test]
    fn what_is_wrong_with_a_selector_is_said_field_by_field() {
        let selector = json!({
            "matchLabels": {"-a": "b c"},
            "matchExpressions": [{"key": "k", "operator": "In"}],
        });
        let mut errors = Vec::new();
        validate(&selector, &Path::Root.field("spec").field("selector"), &mut errors);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.selector.matchLabels",
                "spec.selector.matchLabels",
                "spec.selector.matchExpressions[0].values"
            ]
        );
    }
}
