//! A step that is not explained.

use super::{Judges, Promise};
use interlock_kernel::Record;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Facts with more values than this are not searched for those that matter.
const MOST_VALUES: usize = 2000;

/// A step that is not explained: which promise it breaks, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The promise.
    pub promise: &'static str,
    /// What it says.
    pub sentence: &'static str,
    /// What is wrong.
    pub what: String,
    /// The room.
    pub controller: String,
    /// The servers that it works on, by place.
    pub at: BTreeMap<String, String>,
    /// What the step was about.
    pub subject: String,
    /// When it was decided.
    pub time: Timestamp,
    /// The number of the step in its process.
    pub number: u64,
    /// The version of the program that decided, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What was decided.
    pub decided: Value,
    /// What the rules of this program decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The facts that matter: were one of them another, the rules would decide what was decided. JSON pointers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turning_points: Vec<String>,
    /// All that the decision rests on.
    pub facts: Value,
}

impl Finding {
    /// A step breaks a promise.
    pub(super) fn of(promise: &Promise, record: &Record, what: String) -> Finding {
        Finding {
            promise: promise.name,
            sentence: promise.sentence,
            what,
            controller: record.controller.clone(),
            at: record.at.clone(),
            subject: record.subject.clone(),
            time: record.time,
            number: record.number,
            version: None,
            decided: record.decision.clone(),
            expected: None,
            turning_points: Vec::new(),
            facts: record.facts.clone(),
        }
    }
}

/// The facts on which a decision turns that the rules do not make: each of these, were it another one, would have
/// explained the step. A rule that was left out is found this way by the fact that it looks at.
pub fn turning_points(judges: &Judges, record: &Record) -> Vec<String> {
    let mut values = Vec::new();
    collect(&record.facts, String::new(), &mut values);
    if values.len() > MOST_VALUES {
        return Vec::new();
    }
    let explains = |path: &String, other: Value| {
        let mut facts = record.facts.clone();
        match facts.pointer_mut(path) {
            Some(value) => *value = other,
            None => return false,
        }
        matches!(judges.decide(&record.controller, &facts), Some(Ok(it)) if it == record.decision)
    };
    let turns = |(path, value): &(String, Value)| {
        others(value).into_iter().any(|other| explains(path, other))
    };
    values.iter().filter(|value| turns(value)).map(|(path, _)| path.clone()).collect()
}

fn collect(value: &Value, path: String, all: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(place, item)| collect(item, format!("{path}/{place}"), all)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            collect(field, format!("{path}/{name}"), all);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    if !path.is_empty() {
        all.push((path, value.clone()));
    }
}

/// What else a fact could be, as far as can be told without its type.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!(true), json!(false), json!([]), json!([null])],
        Value::Bool(is) => vec![json!(!is), Value::Null],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            let near = [number.saturating_add(1), number.saturating_sub(1), 0, i64::from(i32::MAX)];
            near.iter().map(|number| json!(number)).chain([Value::Null]).collect()
        }
        Value::Array(items) if items.is_empty() => vec![Value::Null],
        Value::Array(_) => vec![json!([]), Value::Null],
        Value::String(_) | Value::Object(_) => vec![Value::Null],
    }
}
