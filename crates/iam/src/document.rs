//! Policy documents: read, and compared in a canonical form.
//!
//! AWS gives documents back URL-encoded, and does not promise to keep their white space, the order of
//! their lists, or whether a single value is in a list. Two documents are the same if their canonical
//! forms are.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

mod grammar;

pub(crate) use grammar::bare_operator;
pub use grammar::{Kind, check, size};

/// The version of the policy language if a document names none.
const OLD_VERSION: &str = "2008-10-17";

/// Why a text is no policy document: which statement, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON.
    #[error("the policy document is not JSON: {0}")]
    Json(String),
    /// Wrong at the top.
    #[error("the policy document is wrong: {0}")]
    Top(String),
    /// Wrong in a statement, counted from 1.
    #[error("statement {number} of the policy document is wrong: {what}")]
    Statement {
        /// Which, from 1 on.
        number: usize,
        /// What is wrong.
        what: String,
    },
}

/// A policy document in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Document {
    /// The version of the language.
    pub version: String,
    /// The document's own id.
    pub id: Option<String>,
    /// Sorted, each once.
    pub statements: BTreeSet<Statement>,
}

/// One statement in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statement {
    /// Its name.
    pub sid: Option<String>,
    /// Whether it allows or denies.
    pub effect: Effect,
    /// Who, in trust policies.
    pub principal: Option<Principals>,
    /// What is done. Actions have no case.
    pub action: Patterns,
    /// To what; none in trust policies.
    pub resource: Option<Patterns>,
    /// Operator, then key in small letters, then values.
    pub condition: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// It is allowed if nothing denies it.
    Allow,
    /// It is denied, whatever allows it.
    Deny,
}

/// What matches, or with `is_not`, what does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Patterns {
    /// `NotAction`, `NotResource`.
    pub is_not: bool,
    /// With `*` and `?`.
    pub any: BTreeSet<String>,
}

/// Who, by sort: `AWS`, `Federated`, `Service`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Principals {
    /// `NotPrincipal`.
    pub is_not: bool,
    /// The names of each sort.
    pub any: BTreeMap<String, BTreeSet<String>>,
}

/// A document as it was written: statements in their order.
struct Ordered {
    version: String,
    id: Option<String>,
    statements: Vec<Statement>,
}

impl Document {
    /// The canonical form of a text, plain or URL-encoded.
    pub fn read(text: &str) -> Result<Document, DocumentError> {
        Ordered::read(text).map(Document::from)
    }
}

impl From<Ordered> for Document {
    fn from(ordered: Ordered) -> Document {
        let Ordered { version, id, statements } = ordered;
        Document { version, id, statements: statements.into_iter().collect() }
    }
}

impl Ordered {
    fn read(text: &str) -> Result<Ordered, DocumentError> {
        let text = plain(text);
        let value: Value =
            serde_json::from_str(&text).map_err(|error| DocumentError::Json(error.to_string()))?;
        let Value::Object(top) = value else {
            return Err(DocumentError::Top("it must be an object".to_owned()));
        };
        let text_of = |name: &str| match top.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(DocumentError::Top(format!("{name} must be a string"))),
        };
        let statements = match top.get("Statement") {
            Some(Value::Array(many)) => many.iter().collect(),
            Some(one @ Value::Object(_)) => vec![one],
            Some(_) => {
                return Err(DocumentError::Top("Statement must be a list of objects".to_owned()));
            }
            None => return Err(DocumentError::Top("it has no Statement".to_owned())),
        };
        let known = ["Version", "Id", "Statement"];
        if let Some(unknown) = top.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(DocumentError::Top(format!("{unknown} is not part of a policy document")));
        }
        let read = |(index, value): (usize, &Value)| {
            statement(value).map_err(|what| DocumentError::Statement { number: index + 1, what })
        };
        Ok(Ordered {
            version: text_of("Version")?.unwrap_or_else(|| OLD_VERSION.to_owned()),
            id: text_of("Id")?,
            statements: statements.into_iter().enumerate().map(read).collect::<Result<_, _>>()?,
        })
    }
}

/// Whether two texts are the same document. Texts that are no documents are the same only if they
/// are equal.
pub fn is_same(one: &str, other: &str) -> bool {
    match (Document::read(one), Document::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => plain(one) == plain(other),
    }
}

/// The text of a document without URL encoding.
pub fn plain(text: &str) -> String {
    // A document begins with a brace, which URL encoding hides.
    if text.trim_start().starts_with('{') {
        return text.to_owned();
    }
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn statement(value: &Value) -> Result<Statement, String> {
    let Value::Object(fields) = value else { return Err("it must be an object".to_owned()) };
    const KNOWN: [&str; 9] = [
        "Sid",
        "Effect",
        "Principal",
        "NotPrincipal",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Condition",
    ];
    if let Some(unknown) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("{unknown} is not part of a statement"));
    }
    let effect = match fields.get("Effect").and_then(Value::as_str) {
        Some("Allow") => Effect::Allow,
        Some("Deny") => Effect::Deny,
        _ => return Err("Effect must be Allow or Deny".to_owned()),
    };
    let sid = match fields.get("Sid") {
        None => None,
        Some(Value::String(sid)) => Some(sid.clone()).filter(|sid| !sid.is_empty()),
        Some(_) => return Err("Sid must be a string".to_owned()),
    };
    let mut action = patterns(fields, "Action")?.ok_or("it has no Action")?;
    action.any = action.any.iter().map(|action| action.to_ascii_lowercase()).collect();
    Ok(Statement {
        sid,
        effect,
        principal: principals(fields)?,
        action,
        resource: patterns(fields, "Resource")?,
        condition: condition(fields.get("Condition"))?,
    })
}

/// `name` or `Not<name>`, of which there may be one.
fn either<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<(bool, &'a Value)>, String> {
    let not = format!("Not{name}");
    match (fields.get(name), fields.get(&not)) {
        (Some(_), Some(_)) => Err(format!("it has both {name} and {not}")),
        (Some(value), None) => Ok(Some((false, value))),
        (None, Some(value)) => Ok(Some((true, value))),
        (None, None) => Ok(None),
    }
}

fn patterns(fields: &Map<String, Value>, name: &str) -> Result<Option<Patterns>, String> {
    let Some((is_not, value)) = either(fields, name)? else { return Ok(None) };
    let any = strings(value, name)?;
    if any.is_empty() {
        return Err(format!("{name} is empty"));
    }
    Ok(Some(Patterns { is_not, any }))
}

fn principals(fields: &Map<String, Value>) -> Result<Option<Principals>, String> {
    let Some((is_not, value)) = either(fields, "Principal")? else { return Ok(None) };
    let mut any: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    match value {
        Value::String(all) if all == "*" => {
            any.entry("AWS".to_owned()).or_default().insert("*".to_owned());
        }
        Value::Object(sorts) => {
            for (sort, names) in sorts {
                const SORTS: [&str; 4] = ["AWS", "Federated", "Service", "CanonicalUser"];
                if !SORTS.contains(&sort.as_str()) {
                    return Err(format!("{sort} is no sort of principal"));
                }
                let names = strings(names, "Principal")?;
                any.insert(sort.clone(), names.into_iter().map(account_root).collect());
            }
        }
        _ => return Err("Principal must be an object or *".to_owned()),
    }
    Ok(Some(Principals { is_not, any }))
}

/// An account is short for its root.
fn account_root(name: String) -> String {
    let is_account = name.len() == 12 && name.bytes().all(|it| it.is_ascii_digit());
    if is_account { format!("arn:aws:iam::{name}:root") } else { name }
}

fn condition(
    value: Option<&Value>,
) -> Result<BTreeMap<String, BTreeMap<String, BTreeSet<String>>>, String> {
    let Some(value) = value else { return Ok(BTreeMap::new()) };
    let Value::Object(operators) = value else {
        return Err("Condition must be an object".to_owned());
    };
    let mut found = BTreeMap::new();
    for (operator, keys) in operators {
        let Value::Object(keys) = keys else {
            return Err(format!("the condition {operator} must be an object"));
        };
        let mut of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (key, values) in keys {
            of.entry(key.to_ascii_lowercase()).or_default().extend(strings(values, key)?);
        }
        // An operator without keys says nothing.
        if !of.is_empty() {
            found.insert(operator.clone(), of);
        }
    }
    Ok(found)
}

/// A value, or a list of values. Numbers and booleans are what their texts are.
fn strings(value: &Value, name: &str) -> Result<BTreeSet<String>, String> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(is) => Ok(is.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("{name} must be a string or a list of strings"))
        }
    };
    match value {
        Value::Array(many) => many.iter().map(one).collect(),
        single => Ok(BTreeSet::from([one(single)?])),
    }
}

#[cfg(test)]
mod tests;
