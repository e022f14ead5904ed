//! Values of expressions. What comes from an object is borrowed from it.

use super::authorizer::Authority;
use super::networks::{Semver, Url};
use crate::schema::formats::{self, Moment};
use crate::schema::{Form, ListKind, Shape};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Moment),
    /// Nanoseconds.
    Duration(i64),
    List(ListVal<'a>),
    Map(MapVal<'a>),
    Optional(Option<Arc<Val<'a>>>),
    Type(&'static str),
    /// Billionths.
    Quantity(i128),
    Semver(Arc<Semver>),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Url(Arc<Url>),
    Format(&'static str),
    /// What `authorizer` leads to.
    Authority(Arc<Authority>),
}

/// A text, borrowed or made.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Made(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Made(text) => text,
        }
    }
}

/// A list, borrowed or made.
#[derive(Debug, Clone)]
pub(crate) enum ListVal<'a> {
    Json { items: &'a [Value], shape: Option<Shape<'a>>, kind: &'a ListKind },
    Made(Arc<Vec<Val<'a>>>),
}

/// A map, borrowed or made.
#[derive(Debug, Clone)]
pub(crate) enum MapVal<'a> {
    /// An object whose fields are known: only those can be seen.
    Object {
        fields: &'a Map<String, Value>,
        shape: Shape<'a>,
    },
    /// An object whose keys are data.
    Json {
        fields: &'a Map<String, Value>,
        values: Option<Shape<'a>>,
    },
    Made(Arc<Vec<(Val<'a>, Val<'a>)>>),
}

static ATOMIC: ListKind = ListKind::Atomic;

impl<'a> Val<'a> {
    /// A text that was computed.
    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Val::String(Text::Made(text.into()))
    }

    /// A list that was computed.
    pub(super) fn list(items: Vec<Val<'a>>) -> Self {
        Val::List(ListVal::Made(Arc::new(items)))
    }

    /// An optional with something in it.
    pub(super) fn some(value: Val<'a>) -> Self {
        Val::Optional(Some(Arc::new(value)))
    }

    /// A value of an object, read as its schema says.
    pub(crate) fn from_json(value: &'a Value, shape: Option<Shape<'a>>) -> Val<'a> {
        let form = shape.map(|shape| &shape.node().form);
        match (value, form) {
            (Value::Null, _) => Val::Null,
            (Value::Bool(value), _) => Val::Bool(*value),
            (Value::Number(number), Some(Form::Number)) => {
                Val::Double(number.as_f64().unwrap_or(f64::NAN))
            }
            (Value::Number(number), form) => match number.as_i64() {
                Some(value) => Val::Int(value),
                // A whole number may be written with a fraction of nothing.
                None => match (number.as_f64(), form) {
                    (Some(float), Some(Form::Integer | Form::IntOrString)) => {
                        Val::Int(float as i64)
                    }
                    (float, _) => Val::Double(float.unwrap_or(f64::NAN)),
                },
            },
            (Value::String(text), _) => {
                let checks = shape.and_then(|shape| shape.node().checks.as_deref());
                let format = checks.and_then(|checks| checks.format.as_deref());
                formatted(text, format).unwrap_or(Val::String(Text::Borrowed(text)))
            }
            (Value::Array(items), Some(Form::List(list))) => Val::List(ListVal::Json {
                items,
                shape: shape.map(|shape| shape.at(list.items)),
                kind: &list.kind,
            }),
            (Value::Array(items), _) => {
                Val::List(ListVal::Json { items, shape: None, kind: &ATOMIC })
            }
            (Value::Object(fields), Some(Form::Map(map))) => {
                let values = shape.map(|shape| shape.at(map.values));
                Val::Map(MapVal::Json { fields, values })
            }
            (Value::Object(fields), _) => Val::Map(match shape {
                Some(shape) if matches!(form, Some(Form::Object(_))) => {
                    MapVal::Object { fields, shape }
                }
                _ => MapVal::Json { fields, values: None },
            }),
        }
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::String(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::List(_) => "list",
            Val::Map(_) => "map",
            Val::Optional(_) => "optional_type",
            Val::Type(_) => "type",
            Val::Quantity(_) => "kubernetes.Quantity",
            Val::Semver(_) => "kubernetes.Semver",
            Val::Ip(_) => "net.IP",
            Val::Cidr(..) => "net.CIDR",
            Val::Url(_) => "kubernetes.URL",
            Val::Format(_) => "kubernetes.NamedFormat",
            Val::Authority(authority) => authority.type_name(),
        }
    }
}

/// Texts whose format makes them something else.
fn formatted<'a>(text: &str, format: Option<&str>) -> Option<Val<'a>> {
    match format? {
        "date-time" | "datetime" => formats::parse_rfc3339(text).map(Val::Timestamp),
        "date" => {
            let seconds = formats::parse_date(text)? * 86_400;
            Some(Val::Timestamp(Moment { seconds, nanoseconds: 0 }))
        }
        "duration" => formats::parse_duration(text).map(Val::Duration),
        "byte" => formats::decode_base64(text).ok().map(|bytes| Val::Bytes(bytes.into())),
        _ => None,
    }
}

impl<'a> ListVal<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            ListVal::Json { items, .. } => items.len(),
            ListVal::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            ListVal::Json { items, shape, .. } => {
                items.get(index).map(|item| Val::from_json(item, *shape))
            }
            ListVal::Made(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Val<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// How its elements are distinguished.
    pub(super) fn kind(&self) -> &'a ListKind {
        match self {
            ListVal::Json { kind, .. } => kind,
            ListVal::Made(_) => &ATOMIC,
        }
    }
}

impl<'a> MapVal<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            MapVal::Object { .. } => self.keys().len(),
            MapVal::Json { fields, .. } => fields.len(),
            MapVal::Made(entries) => entries.len(),
        }
    }

    /// The value of a field or under a key that is a text.
    pub(super) fn field(&self, name: &str) -> Option<Val<'a>> {
        match self {
            MapVal::Object { fields, shape } => {
                let (name, inner) = declared(*shape, name)?;
                // A field that is null is as if it were not there.
                let value = fields.get(name).filter(|value| !value.is_null());
                value.map(|value| Val::from_json(value, Some(inner)))
            }
            MapVal::Json { fields, values } => {
                fields.get(name).map(|value| Val::from_json(value, *values))
            }
            MapVal::Made(entries) => {
                let is_named = |key: &Val<'_>| matches!(key, Val::String(text) if **text == *name);
                entries.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value.clone())
            }
        }
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &Val<'_>) -> Option<Val<'a>> {
        if let Val::String(text) = key {
            return self.field(text);
        }
        let MapVal::Made(entries) = self else { return None };
        let is_same = |other: &Val<'_>| super::operators::is_same_scalar(other, key);
        entries.iter().find(|(other, _)| is_same(other)).map(|(_, value)| value.clone())
    }

    pub(super) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            MapVal::Object { fields, shape } => {
                let Form::Object(object) = &shape.node().form else { return Vec::new() };
                let fields: &'a Map<String, Value> = fields;
                let known = fields.iter().filter(|(name, value)| {
                    object.fields.contains_key(name.as_str()) && !value.is_null()
                });
                known.map(|(name, _)| Val::String(Text::Borrowed(name))).collect()
            }
            MapVal::Json { fields, .. } => {
                let fields: &'a Map<String, Value> = fields;
                fields.keys().map(|name| Val::String(Text::Borrowed(name))).collect()
            }
            MapVal::Made(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

/// The field that a rule means by a name, which may be escaped: `x__dash__y` is `x-y`.
pub(super) fn declared<'a>(shape: Shape<'a>, name: &str) -> Option<(&'a str, Shape<'a>)> {
    let Form::Object(object) = &shape.node().form else { return None };
    if let Some((known, field)) = object.fields.get_key_value(name)
        && !needs_escape(known)
    {
        return Some((known, shape.at(field.node)));
    }
    let plain = unescape(name)?;
    let (known, field) = object.fields.get_key_value(plain.as_str())?;
    Some((known, shape.at(field.node)))
}

fn needs_escape(name: &str) -> bool {
    name.contains("__") || name.contains(['-', '.', '/'])
}

/// The field's name behind an escaped one, if it is escaped at all.
fn unescape(name: &str) -> Option<String> {
    if let Some(inner) = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && super::lex::is_reserved(inner)
    {
        return Some(inner.to_owned());
    }
    if !name.contains("__") {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(place) = rest.find("__") {
        out.push_str(&rest[..place]);
        let escaped = &rest[place..];
        let escapes =
            [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];
        let (code, plain) = escapes.into_iter().find(|(code, _)| escaped.starts_with(code))?;
        out.push_str(plain);
        rest = &escaped[code.len()..];
    }
    out.push_str(rest);
    Some(out)
}
