//! Label selectors: `app=web,tier in (a,b),!legacy`, or `matchLabels` and `matchExpressions` of an
//! object.

use super::label_parse::parse;
use super::{REQUIREMENTS_LIMIT, SELECTOR_LIMIT_BYTES};
use crate::name::{label_value, qualified_name};
use crate::status::{FieldError, Status};
use serde_json::{Map, Value, json};
use std::fmt;

/// What the labels of an object must be like. An empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<LabelRequirement>,
}

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelRequirement {
    /// The label's key.
    pub(crate) key: String,
    /// How its value is compared.
    pub(crate) operator: LabelOperator,
    /// What with; in order, each once.
    pub(crate) values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelOperator {
    /// `a=b`.
    Equals,
    /// `a==b`, the same, but written differently when printed.
    DoubleEquals,
    /// `a!=b`, also if there is no `a`.
    NotEquals,
    /// `a in (b,c)`.
    In,
    /// `a notin (b,c)`, also if there is no `a`.
    NotIn,
    /// `a`.
    Exists,
    /// `!a`.
    DoesNotExist,
    /// `a>1`.
    GreaterThan,
    /// `a<1`.
    LessThan,
}

impl LabelSelector {
    /// Reads a selector from a query. Errors are 400 in upstream's words.
    pub(crate) fn parse(text: &str) -> Result<LabelSelector, Status> {
        if text.len() > SELECTOR_LIMIT_BYTES {
            let message = format!("the label selector is longer than {SELECTOR_LIMIT_BYTES} bytes");
            return Err(Status::bad_request(message));
        }
        LabelSelector::of(parse(text).map_err(Status::bad_request)?).map_err(Status::bad_request)
    }

    /// Reads a `LabelSelector` object. Both of its fields must hold; `null` and an empty object
    /// select everything (a kind for which an absent selector means nothing must look itself).
    pub(crate) fn from_object(selector: &Value) -> Result<LabelSelector, Status> {
        let mut requirements = Vec::new();
        for (key, value) in object_of(selector, "matchLabels")?.into_iter().flatten() {
            let Value::String(value) = value else {
                return Err(Status::bad_request("matchLabels: each value must be a string"));
            };
            let operator = LabelOperator::Equals;
            requirements.push(LabelRequirement::new(key, operator, vec![value.clone()]));
        }
        for expression in list_of(selector, "matchExpressions")? {
            requirements.push(match_expression(expression)?);
        }
        let requirements: Result<Vec<_>, String> = requirements.into_iter().collect();
        LabelSelector::of(requirements.map_err(Status::bad_request)?).map_err(Status::bad_request)
    }

    fn of(mut requirements: Vec<LabelRequirement>) -> Result<LabelSelector, String> {
        if requirements.len() > REQUIREMENTS_LIMIT {
            return Err(format!(
                "the label selector has more than {REQUIREMENTS_LIMIT} requirements"
            ));
        }
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(LabelSelector { requirements })
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches<'a>(&self, labels: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels(&requirement.key)))
    }
}

type Requirement = Result<LabelRequirement, String>;

fn match_expression(expression: &Value) -> Result<Requirement, Status> {
    let text = |name| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let operator = match text("operator") {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        other => {
            let message = format!("{other:?} is not a valid label selector operator");
            return Err(Status::bad_request(message));
        }
    };
    let mut values = Vec::new();
    for value in list_of(expression, "values")? {
        let Value::String(value) = value else {
            return Err(Status::bad_request("matchExpressions: each value must be a string"));
        };
        values.push(value.clone());
    }
    Ok(LabelRequirement::new(text("key"), operator, values))
}

fn object_of<'a>(object: &'a Value, name: &str) -> Result<Option<&'a Map<String, Value>>, Status> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(Status::bad_request(format!("{name} must be an object"))),
    }
}

fn list_of<'a>(object: &'a Value, name: &str) -> Result<&'a [Value], Status> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(Status::bad_request(format!("{name} must be a list"))),
    }
}

impl LabelRequirement {
    /// A requirement whose key and values may be labels. The error is upstream's text.
    pub(super) fn new(
        key: &str,
        operator: LabelOperator,
        mut values: Vec<String>,
    ) -> Result<LabelRequirement, String> {
        let mut errors = Vec::new();
        if let Err(text) = check_key(key, "key") {
            errors.push(text);
        }
        let is_wrong_count = match operator {
            LabelOperator::In | LabelOperator::NotIn => values.is_empty(),
            LabelOperator::Exists | LabelOperator::DoesNotExist => !values.is_empty(),
            LabelOperator::Equals
            | LabelOperator::DoubleEquals
            | LabelOperator::NotEquals
            | LabelOperator::GreaterThan
            | LabelOperator::LessThan => values.len() != 1,
        };
        if is_wrong_count {
            let detail = operator.count_text();
            errors.push(FieldError::invalid("values", &json!(values), detail).to_string());
        }
        if values.len() > REQUIREMENTS_LIMIT {
            errors.push(format!("values: more than {REQUIREMENTS_LIMIT} for one label"));
        }
        let is_compared = matches!(operator, LabelOperator::GreaterThan | LabelOperator::LessThan);
        for (index, value) in values.iter().enumerate().take(REQUIREMENTS_LIMIT) {
            if is_compared && integer(value).is_none() {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                let field = format!("values[{index}]");
                errors.push(FieldError::invalid(field, &json!(value), detail).to_string());
            }
            let problems = label_value(value);
            if !problems.is_empty() {
                let field = format!("values[{index}][{key}]");
                let detail = problems.join("; ");
                errors.push(FieldError::invalid(field, &json!(value), detail).to_string());
            }
        }
        values.sort_unstable();
        values.dedup();
        match errors.len() {
            0 => Ok(LabelRequirement { key: key.to_owned(), operator, values }),
            1 => Err(errors.swap_remove(0)),
            _ => Err(format!("[{}]", errors.join(", "))),
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let is_listed =
            |value: &str| self.values.binary_search_by(|listed| listed.as_str().cmp(value)).is_ok();
        match self.operator {
            LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => {
                value.is_some_and(is_listed)
            }
            LabelOperator::NotIn | LabelOperator::NotEquals => {
                value.is_none_or(|value| !is_listed(value))
            }
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
            LabelOperator::GreaterThan | LabelOperator::LessThan => {
                let bound = self.values.first().and_then(|bound| integer(bound));
                let (Some(value), Some(bound)) = (value.and_then(integer), bound) else {
                    return false;
                };
                let is_greater = self.operator == LabelOperator::GreaterThan;
                if is_greater { value > bound } else { value < bound }
            }
        }
    }
}

impl LabelOperator {
    fn count_text(self) -> &'static str {
        match self {
            LabelOperator::In | LabelOperator::NotIn => {
                "for 'in', 'notin' operators, values set can't be empty"
            }
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::NotEquals => {
                "exact-match compatibility requires one single value"
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist => {
                "values set must be empty for exists and does not exist"
            }
            LabelOperator::GreaterThan | LabelOperator::LessThan => {
                "for 'Gt', 'Lt' operators, exactly one value is required"
            }
        }
    }
}

/// A key that may be a label's, else upstream's text. `field` is empty while a text is parsed.
pub(super) fn check_key(key: &str, field: &str) -> Result<(), String> {
    let problems = qualified_name(key);
    if problems.is_empty() {
        return Ok(());
    }
    // Upstream prints the path of nothing as `<nil>`.
    let field = if field.is_empty() { "<nil>" } else { field };
    Err(FieldError::invalid(field, &json!(key), problems.join("; ")).to_string())
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            requirement.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = self.values.join(",");
        match self.operator {
            LabelOperator::Equals => write!(formatter, "{key}={values}"),
            LabelOperator::DoubleEquals => write!(formatter, "{key}=={values}"),
            LabelOperator::NotEquals => write!(formatter, "{key}!={values}"),
            LabelOperator::In => write!(formatter, "{key} in ({values})"),
            LabelOperator::NotIn => write!(formatter, "{key} notin ({values})"),
            LabelOperator::Exists => write!(formatter, "{key}"),
            LabelOperator::DoesNotExist => write!(formatter, "!{key}"),
            LabelOperator::GreaterThan => write!(formatter, "{key}>{values}"),
            LabelOperator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_object_makes_it_panic_and_what_it_prints_selects_the_same() {
        let names = ["a", "a.b/c", "", "A", "ü", "a/b/c", "-", "1", "99999999999999999999"];
        let operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in", ""];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from((state >> 11) % bound as u64).expect("below a usize")
        };
        let mut read = 0;
        for _ in 0..20_000 {
            let mut selector = json!({
                "matchLabels": {names[below(names.len())]: names[below(names.len())]},
                "matchExpressions": [{
                    "key": names[below(names.len())], "operator": operators[below(operators.len())],
                    "values": [names[below(names.len())]],
                }],
            });
            match below(8) {
                0 => selector["matchLabels"] = json!(["x"]),
                1 => selector["matchExpressions"][0]["values"] = json!({"x": 1}),
                2 => selector["matchExpressions"][0] = json!("x"),
                3 => selector = json!([selector]),
                _ => {}
            }
            let Ok(selector) = LabelSelector::from_object(&selector) else { continue };
            read += 1;
            let again = LabelSelector::parse(&selector.to_string()).expect("it was printed");
            for value in names {
                let label = |key: &str| (key == "a").then_some(value);
                assert_eq!(selector.matches(label), again.matches(label), "{selector}");
            }
        }
        assert!(read > 100, "only {read} were selectors");
    }
}
