//! The columns of custom kinds: the name, and what their CRD lists.

use super::jsonpath::JsonPath;
use super::printers::described;
use crate::age;
use crate::resource::{Column, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;

/// No kind has more columns.
pub(crate) const MOST_COLUMNS: usize = 64;
/// Longer texts in a cell are cut: a cell is for people, and each of many columns can show the same long text.
const MOST_CELL_BYTES: usize = 4 * 1024;

/// The columns of one custom kind, read.
pub(super) struct Custom {
    columns: Vec<(Column, JsonPath)>,
}

impl Custom {
    /// Reads the columns. As upstream, one whose path cannot be read ends the table: it and all
    /// after it are not shown. No columns at all mean the age.
    pub(super) fn new(columns: &[Column]) -> Custom {
        if columns.is_empty() {
            return Custom::new(&[Column {
                name: "Age".into(),
                type_name: "date".into(),
                json_path: ".metadata.creationTimestamp".into(),
                ..Column::default()
            }]);
        }
        let columns = columns
            .iter()
            .take(MOST_COLUMNS)
            .map_while(|column| Some((column.clone(), JsonPath::parse(&column.json_path).ok()?)))
            .collect();
        Custom { columns }
    }

    /// The column definitions.
    pub(super) fn columns(&self, resource: &Resource) -> Value {
        let mut definitions = vec![json!({
            "name": "Name", "type": "string", "format": "name", "priority": 0,
            "description": described(resource, ".metadata.name"),
        })];
        definitions.extend(self.columns.iter().map(|(column, _)| {
            let description = if column.description.is_empty() {
                format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    column.json_path
                )
            } else {
                column.description.to_string()
            };
            json!({
                "name": &*column.name, "type": &*column.type_name, "format": &*column.format,
                "description": description, "priority": column.priority,
            })
        }));
        Value::Array(definitions)
    }

    /// The cells of one object.
    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![object.pointer("/metadata/name").cloned().unwrap_or(json!(""))];
        cells.extend(self.columns.iter().map(|(column, path)| {
            path.first(object).map_or(Value::Null, |value| cell(&column.type_name, value, now))
        }));
        cells
    }
}

/// A value as a cell of a column of this type; null where it is of another.
fn cell(type_name: &str, value: &Value, now: Timestamp) -> Value {
    match type_name {
        "string" => match value {
            Value::String(text) => json!(cut(text)),
            Value::Null => json!("<no value>"),
            Value::Number(number) if number.is_f64() => {
                json!(go_float(number.as_f64().unwrap_or_default()))
            }
            other => json!(short_json(other)),
        },
        "integer" => match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => json!(whole),
            // Go cuts the fraction as well.
            (None, Some(float)) => json!(float as i64),
            (None, None) => Value::Null,
        },
        "number" => value.as_f64().map_or(Value::Null, go_number),
        "boolean" => value.as_bool().map_or(Value::Null, Value::Bool),
        "date" => match value.as_str() {
            Some("" | "null") => json!("<unknown>"),
            Some(text) if age::parse(text).is_none() => json!("<invalid>"),
            Some(_) => json!(age::since(value, now)),
            None => Value::Null,
        },
        _ => Value::Null,
    }
}

/// A text that is not too long for a cell.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_CELL_BYTES {
        return Cow::Borrowed(text);
    }
    let end = (0..=MOST_CELL_BYTES).rev().find(|end| text.is_char_boundary(*end));
    Cow::Owned(format!("{}...", &text[..end.unwrap_or(0)]))
}

/// A value as JSON, as far as there is room in a cell.
fn short_json(value: &Value) -> String {
    let mut room = vec![0; MOST_CELL_BYTES];
    let mut left = &mut room[..];
    let is_whole = serde_json::to_writer(&mut left, value).is_ok();
    let written = MOST_CELL_BYTES - left.len();
    let text = String::from_utf8_lossy(&room[..written]);
    // What was cut may end within a letter.
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    if is_whole { text.to_owned() } else { format!("{text}...") }
}

/// Go writes a float that is whole without a fraction.
fn go_number(float: f64) -> Value {
    let is_exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    if is_exact { json!(float as i64) } else { json!(float) }
}

/// A float as Go prints it: the shortest digits, with an exponent when it is very small or large.
fn go_float(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_of_their_columns_type_or_empty() {
        let now = age::parse("2024-01-01T00:01:00Z").expect("a good time");
        for (type_name, value, shown) in [
            ("string", json!("a"), json!("a")),
            ("string", json!(3), json!("3")),
            ("string", json!(1.5), json!("1.5")),
            ("string", json!(1e21), json!("1e+21")),
            ("string", json!(0.00001), json!("1e-05")),
            ("string", json!(true), json!("true")),
            ("string", json!({"a": [1]}), json!("{\"a\":[1]}")),
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.9), json!(3)),
            ("integer", json!("3"), json!(null)),
            ("number", json!(3), json!(3)),
            ("number", json!(0.5), json!(0.5)),
            ("boolean", json!(true), json!(true)),
            ("boolean", json!("true"), json!(null)),
            ("date", json!("2024-01-01T00:00:00Z"), json!("60s")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", json!(7), json!(null)),
        ] {
            assert_eq!(cell(type_name, &value, now), shown, "{type_name} {value}");
        }
    }

    #[test]
    fn a_cell_is_cut_and_columns_are_few() {
        let now = Timestamp::UNIX_EPOCH;
        let long = "\u{e9}".repeat(MOST_CELL_BYTES);
        for value in [json!(long), json!([long]), json!({"a": [long, long]})] {
            let cell = cell("string", &value, now);
            let text = cell.as_str().expect("a text");
            assert!(text.ends_with("\u{e9}..."), "{}", &text[text.len() - 10..]);
            assert!(
                (MOST_CELL_BYTES - 4..=MOST_CELL_BYTES + 3).contains(&text.len()),
                "{}",
                text.len()
            );
        }
        let column = Column {
            name: "A".into(),
            type_name: "string".into(),
            json_path: ".a".into(),
            ..Column::default()
        };
        let custom = Custom::new(&vec![column; 1000]);
        assert_eq!(custom.cells(&json!({"a": "x"}), now).len(), 1 + MOST_COLUMNS);
    }

    #[test]
    fn a_column_that_cannot_be_read_ends_the_table() {
        let column = |name: &str, path: &str| Column {
            name: name.into(),
            type_name: "string".into(),
            json_path: path.into(),
            ..Column::default()
        };
        let custom = Custom::new(&[column("A", ".a"), column("B", ".b["), column("C", ".c")]);
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(custom.cells(&json!({"a": "x", "c": "y"}), now), [json!(""), json!("x")]);
    }
}
