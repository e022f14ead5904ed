//! One step of a field path: a field's name, a list element's key, a set's value, or an index.

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// One step of a field path. Names and values are borrowed from the objects they were found in.
#[derive(Debug, Clone)]
pub(super) enum Element<'a> {
    /// A field of an object, or a key of a map.
    Field(&'a str),
    /// An element of a keyed list, by its keys in the order of their names.
    Key(Vec<(Cow<'a, str>, Cow<'a, Value>)>),
    /// An element of a set.
    Value(Cow<'a, Value>),
    /// An element of a list by its place. Nothing here makes them; old entries may hold them.
    Index(i64),
}

/// A key of `fieldsV1` that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl<'a> Element<'a> {
    /// Reads a key of `fieldsV1`. None: a sort of element that a later version may know; it is
    /// dropped.
    pub(super) fn parse(key: &'a str) -> Result<Option<Self>, Unreadable> {
        let bytes = key.as_bytes();
        if bytes.len() < 2 || bytes[1] != b':' {
            return Err(Unreadable);
        }
        let rest = &key[2..];
        match bytes[0] {
            b'f' => Ok(Some(Element::Field(rest))),
            b'k' => {
                let Ok(Value::Object(keys)) = serde_json::from_str(rest) else {
                    return Err(Unreadable);
                };
                let keys =
                    keys.into_iter().map(|(name, value)| (Cow::Owned(name), Cow::Owned(value)));
                Ok(Some(Element::Key(keys.collect())))
            }
            b'v' => {
                let value = serde_json::from_str(rest).map_err(|_| Unreadable)?;
                Ok(Some(Element::Value(Cow::Owned(value))))
            }
            b'i' => rest.parse().map(|index| Some(Element::Index(index))).map_err(|_| Unreadable),
            _ => Ok(None),
        }
    }

    /// The key in `fieldsV1`.
    pub(super) fn key(&self) -> String {
        match self {
            Element::Field(name) => {
                let mut out = String::with_capacity(name.len() + 2);
                out.push_str("f:");
                out.push_str(name);
                out
            }
            Element::Key(keys) => {
                let mut out = String::from("k:{");
                for (place, (name, value)) in keys.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    write_text(&mut out, name, false);
                    out.push(':');
                    write_json(&mut out, value);
                }
                out.push('}');
                out
            }
            Element::Value(value) => {
                let mut out = String::from("v:");
                write_json(&mut out, value);
                out
            }
            Element::Index(index) => format!("i:{index}"),
        }
    }

    /// The order of elements: fields, keys, values, indices.
    pub(super) fn order(&self, other: &Element<'_>) -> Ordering {
        match (self, other) {
            (Element::Field(left), Element::Field(right)) => left.cmp(right),
            (Element::Key(left), Element::Key(right)) => order_keys(left, right),
            (Element::Value(left), Element::Value(right)) => order_values(left, right),
            (Element::Index(left), Element::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl Eq for Element<'_> {}

impl PartialOrd for Element<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Element<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

/// As people read it: `.spec`, `[name="web"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(formatter, ".{name}"),
            Element::Key(keys) => {
                formatter.write_str("[")?;
                for (place, (name, value)) in keys.iter().enumerate() {
                    if place > 0 {
                        formatter.write_str(",")?;
                    }
                    write!(formatter, "{name}={}", Shown(value))?;
                }
                formatter.write_str("]")
            }
            Element::Value(value) => write!(formatter, "[={}]", Shown(value)),
            Element::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// A value inside a path.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => write!(formatter, "{text:?}"),
            other => {
                let mut text = String::new();
                write_json(&mut text, other);
                formatter.write_str(&text)
            }
        }
    }
}

fn order_keys(
    left: &[(Cow<'_, str>, Cow<'_, Value>)],
    right: &[(Cow<'_, str>, Cow<'_, Value>)],
) -> Ordering {
    for ((left_name, left_value), (right_name, right_value)) in left.iter().zip(right) {
        let order = left_name.cmp(right_name).then_with(|| order_values(left_value, right_value));
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

/// A total order over values: numbers by size, then texts, truth values, lists, objects, null.
pub(super) fn order_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differing = left.iter().zip(right).map(|(left, right)| order_values(left, right));
            first_difference(differing).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let differing = left.iter().zip(right).map(|(left, right)| {
                left.0.cmp(right.0).then_with(|| order_values(left.1, right.1))
            });
            first_difference(differing).then(left.len().cmp(&right.len()))
        }
        _ => rank_of_value(left).cmp(&rank_of_value(right)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
}

fn rank_of_value(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Whether two values say the same: `1` and `1.0` do.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| left.0 == right.0 && is_same(left.1, right.1))
        }
        _ => order_values(left, right) == Ordering::Equal,
    }
}

/// JSON as upstream writes it inside a key and in annotations: HTML's special characters are
/// escaped, and a number without a fraction has no point, because other servers and clients compare
/// these keys as texts.
pub(super) fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (place, (name, field)) in fields.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_text(out, name, true);
                out.push(':');
                write_json(out, field);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &serde_json::Number) {
    if let Some(whole) = number.as_i64() {
        out.push_str(&whole.to_string());
        return;
    }
    let number = number.as_f64().unwrap_or_default();
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        out.push_str(&format!("{digits}e{sign}{exponent:0>2}"));
        return;
    }
    out.push_str(&number.to_string());
}

fn write_text(out: &mut String, text: &str, escapes_html: bool) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escapes_html => {
                out.push_str(&format!("\\u{:04x}", character as u32));
            }
            control if (control as u32) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", control as u32));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_fields_v1_are_read_and_written_alike() {
        for key in [
            "f:spec",
            "f:",
            "f:a.b/c",
            r#"k:{"name":"web"}"#,
            r#"k:{"containerPort":80,"protocol":"TCP"}"#,
            r#"v:"a\u003cb""#,
            "v:1.5",
            "v:true",
            "i:7",
            "v:1e+21",
            "v:1e-07",
        ] {
            let element = Element::parse(key).expect("it is well formed").expect("it is known");
            assert_eq!(element.key(), key);
        }
    }

    #[test]
    fn a_whole_number_has_no_point() {
        let element = Element::parse("v:80.0").expect("well formed").expect("known");
        assert_eq!(element.key(), "v:80");
    }

    #[test]
    fn broken_keys_are_refused_and_unknown_sorts_are_dropped() {
        for key in ["", "f", "spec", "k:7", "k:{", "v:", "v:{", "i:x", "é"] {
            assert_eq!(Element::parse(key).err(), Some(Unreadable), "{key}");
        }
        assert_eq!(Element::parse("z:later"), Ok(None));
    }

    #[test]
    fn ports_are_ordered_as_numbers() {
        let small = Element::parse(r#"k:{"port":80}"#).expect("well formed").expect("known");
        let large = Element::parse(r#"k:{"port":443}"#).expect("well formed").expect("known");
        assert!(small < large);
        assert!(Element::Field("z") < small);
    }

    #[test]
    fn elements_are_shown_as_people_write_them() {
        let key = Element::parse(r#"k:{"port":80,"protocol":"TCP"}"#);
        let key = key.expect("well formed").expect("known");
        assert_eq!(key.to_string(), r#"[port=80,protocol="TCP"]"#);
        assert_eq!(Element::Field("spec").to_string(), ".spec");
        assert_eq!(Element::Value(Cow::Owned("x".into())).to_string(), r#"[="x"]"#);
        assert_eq!(Element::Index(2).to_string(), "[2]");
    }
}
