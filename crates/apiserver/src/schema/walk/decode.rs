//! Types of built-in kinds: what upstream's decoder would refuse.

use crate::schema::{Form, Shape, formats};
use crate::status::Path;
use interlock_quantity::Quantity;
use serde_json::{Number, Value};

/// Says in upstream's words what could not be decoded: the first value of a wrong type, or a time,
/// quantity or base64 that does not parse. `null` is "not set" everywhere.
pub(crate) fn decode_check(value: &Value, shape: Shape<'_>) -> Result<(), String> {
    walk(value, shape, &Decoding { path: &Path::Root, within: shape })
}

/// Where the decoder is: the path without indexes, and the named type it is in.
struct Decoding<'p, 's> {
    path: &'p Path<'p>,
    within: Shape<'s>,
}

fn walk(value: &Value, shape: Shape<'_>, at: &Decoding<'_, '_>) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    if let Some(name) = shape.name.as_deref() {
        if name.ends_with(".Quantity") {
            return Quantity::from_value(value).map(drop).map_err(str::to_owned);
        }
        if name.ends_with(".Time") || name.ends_with(".MicroTime") {
            return check_time(value, at);
        }
    }
    let format = shape.node().checks.as_deref().and_then(|checks| checks.format.as_deref());
    match (&shape.node().form, value) {
        (Form::Any, _)
        | (Form::Boolean, Value::Bool(_))
        | (Form::Number, Value::Number(_))
        | (Form::IntOrString, Value::String(_)) => Ok(()),
        (Form::Integer, Value::Number(number)) => {
            check_whole(number, format.unwrap_or("int64"), at)
        }
        (Form::IntOrString, Value::Number(number)) => check_whole(number, "int32", at),
        (Form::String, Value::String(text)) => check_text(text, format),
        (Form::Object(object), Value::Object(fields)) => {
            let within = if shape.name.is_some() { shape } else { at.within };
            for (name, value) in fields {
                if let Some(field) = object.fields.get(name.as_str()) {
                    let inner = Decoding { path: &at.path.field(name), within };
                    walk(value, shape.at(field.node), &inner)?;
                }
            }
            Ok(())
        }
        (Form::Map(map), Value::Object(fields)) => {
            fields.values().try_for_each(|value| walk(value, shape.at(map.values), at))
        }
        (Form::List(list), Value::Array(items)) => {
            items.iter().try_for_each(|item| walk(item, shape.at(list.items), at))
        }
        (
            Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString
            | Form::Object(_)
            | Form::Map(_)
            | Form::List(_),
            _,
        ) => Err(mismatch(kind_of(value), &type_at(shape, at), at)),
    }
}

/// What Go calls the type of a field. Identifiers have a type of their own.
fn type_at(shape: Shape<'_>, at: &Decoding<'_, '_>) -> String {
    let is_uid = matches!(shape.node().form, Form::String) && at.path.to_string().ends_with(".uid");
    if is_uid { "types.UID".to_owned() } else { type_of(shape) }
}

fn mismatch(got: &str, wanted: &str, at: &Decoding<'_, '_>) -> String {
    let path = at.path.to_string();
    if path.is_empty() {
        return format!("json: cannot unmarshal {got} into Go value of type {wanted}");
    }
    let within = at.within.name.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or("");
    format!("json: cannot unmarshal {got} into Go struct field {within}.{path} of type {wanted}")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Go's name of a type, as well as it can be known from the schema.
fn type_of(shape: Shape<'_>) -> String {
    let format = shape.node().checks.as_deref().and_then(|checks| checks.format.as_deref());
    match &shape.node().form {
        Form::Any => "interface {}".to_owned(),
        Form::Boolean => "bool".to_owned(),
        Form::Integer => format.unwrap_or("int64").to_owned(),
        Form::Number => "float64".to_owned(),
        Form::String if format == Some("byte") => "[]uint8".to_owned(),
        Form::String => "string".to_owned(),
        Form::IntOrString => "intstr.IntOrString".to_owned(),
        Form::Object(_) => match shape.name.as_deref() {
            None => "struct".to_owned(),
            Some(name) => {
                let parts: Vec<&str> = name.rsplit('.').take(2).collect();
                parts.into_iter().rev().collect::<Vec<_>>().join(".")
            }
        },
        // The inner type is named, but no further: types may refer to themselves.
        Form::Map(map) => format!("map[string]{}", leaf(shape.at(map.values))),
        Form::List(list) => format!("[]{}", leaf(shape.at(list.items))),
    }
}

fn leaf(shape: Shape<'_>) -> String {
    match &shape.node().form {
        Form::Map(_) => "map[string]interface {}".to_owned(),
        Form::List(_) => "[]interface {}".to_owned(),
        _ => type_of(shape),
    }
}

fn check_whole(number: &Number, wanted: &str, at: &Decoding<'_, '_>) -> Result<(), String> {
    let fits = match (wanted, number.as_i64()) {
        (_, None) => false,
        ("int32", Some(value)) => i32::try_from(value).is_ok(),
        (_, Some(_)) => true,
    };
    if fits { Ok(()) } else { Err(mismatch(&format!("number {number}"), wanted, at)) }
}

fn check_text(text: &str, format: Option<&str>) -> Result<(), String> {
    if format == Some("byte")
        && let Err(place) = formats::decode_base64(text)
    {
        return Err(format!("illegal base64 data at input byte {place}"));
    }
    Ok(())
}

fn check_time(value: &Value, at: &Decoding<'_, '_>) -> Result<(), String> {
    let Value::String(text) = value else { return Err(mismatch(kind_of(value), "string", at)) };
    if formats::parse_rfc3339(text).is_some() {
        return Ok(());
    }
    Err(format!(
        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
    ))
}
