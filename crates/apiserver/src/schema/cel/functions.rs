//! Functions: finds the right one by name and by what it was given.

use super::ast::Call;
use super::eval::{Evaluated, Evaluator, Fault, fault};
use super::value::{MapVal, Val};
use super::{authorizer, lists, networks, operators, printf, strings, time};
use crate::schema::formats;
use interlock_quantity::{NANOS, Quantity};
use std::cmp::Ordering;

/// Calls a function. The target of a method is its first argument.
pub(super) fn call<'a>(evaluator: &mut Evaluator<'a>, call: &'a Call) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(call.arguments.len() + 1);
    for argument in call.target.iter().chain(&call.arguments) {
        values.push(evaluator.value(argument)?);
    }
    let name = &*call.function;
    match values.first() {
        Some(Val::String(_)) if call.target.is_some() => strings::method(evaluator, name, &values),
        Some(Val::List(_)) if call.target.is_some() => lists::method(evaluator, name, &values),
        Some(Val::Timestamp(_) | Val::Duration(_)) if call.target.is_some() => {
            time::method(name, &values)
        }
        Some(Val::Quantity(own)) if call.target.is_some() => quantity(name, *own, &values[1..]),
        Some(Val::Ip(_) | Val::Cidr(..) | Val::Url(_) | Val::Semver(_))
            if call.target.is_some() =>
        {
            networks::method(name, &values)
        }
        Some(Val::Authority(_)) if call.target.is_some() => {
            authorizer::method(evaluator, name, &values)
        }
        Some(Val::Optional(_)) if call.target.is_some() => optional(name, values),
        Some(Val::Format(format)) if call.target.is_some() && name == "validate" => {
            validate(evaluator, format, values.get(1))
        }
        _ => global(evaluator, name, values),
    }
}

fn global<'a>(evaluator: &mut Evaluator<'a>, name: &str, values: Vec<Val<'a>>) -> Evaluated<'a> {
    match (name, &values[..]) {
        ("size", [value]) => size(evaluator, value),
        ("dyn", [value]) => Ok(value.clone()),
        ("type", [value]) => Ok(Val::Type(value.type_name())),
        ("bool" | "int" | "uint" | "double" | "string" | "bytes", [value]) => {
            convert(evaluator, name, value)
        }
        ("timestamp" | "duration", [value]) => time::convert(name, value),
        ("matches", [Val::String(_), Val::String(_)]) => strings::method(evaluator, name, &values),
        ("strings.quote", [Val::String(text)]) => {
            evaluator.charge_text(text.len())?;
            Ok(Val::text(format!("{:?}", &**text)))
        }
        ("optional.none", []) => Ok(Val::Optional(None)),
        ("optional.of", [value]) => Ok(Val::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if is_zero(value) { Val::Optional(None) } else { Val::some(value.clone()) })
        }
        ("quantity", [Val::String(text)]) => match Quantity::parse(text) {
            Ok(read) => Ok(Val::Quantity(read.nanos())),
            Err(reason) => fault(reason),
        },
        ("isQuantity", [Val::String(text)]) => Ok(Val::Bool(Quantity::parse(text).is_ok())),
        ("sign", [Val::Quantity(value)]) => Ok(Val::Int(value.signum() as i64)),
        ("format.named", [Val::String(text)]) => {
            let known = FORMATS.iter().find(|(name, _)| *name == &**text);
            Ok(known.map_or(Val::Optional(None), |(name, _)| Val::some(Val::Format(name))))
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects" | "lists.range", _) => {
            lists::global(evaluator, name, &values)
        }
        (name, []) if name.starts_with("format.") => {
            let known =
                FORMATS.iter().find(|(format, _)| name.strip_prefix("format.") == Some(format));
            known.map_or(Err(Fault::NoSuchOverload), |(name, _)| Ok(Val::Format(name)))
        }
        _ => networks::global(name, &values),
    }
}

fn size<'a>(evaluator: &mut Evaluator<'a>, value: &Val<'a>) -> Evaluated<'a> {
    let size = match value {
        Val::String(text) => {
            evaluator.charge_text(text.len())?;
            text.chars().count()
        }
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.len(),
        Val::Map(map) => {
            evaluator.charge(if matches!(map, MapVal::Object { .. }) { 10 } else { 1 })?;
            map.len()
        }
        _ => return Err(Fault::NoSuchOverload),
    };
    Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn convert<'a>(evaluator: &mut Evaluator<'a>, to: &str, value: &Val<'a>) -> Evaluated<'a> {
    if let Val::String(text) = value {
        evaluator.charge_text(text.len())?;
    }
    let from = value.type_name();
    let wrong = || Fault::Other(format!("type conversion error from '{from}' to '{to}'"));
    match (to, value) {
        ("bool", Val::Bool(_))
        | ("int", Val::Int(_))
        | ("uint", Val::Uint(_))
        | ("double", Val::Double(_))
        | ("string", Val::String(_))
        | ("bytes", Val::Bytes(_)) => Ok(value.clone()),
        ("bool", Val::String(text)) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(wrong()),
        },
        ("int", Val::Uint(value)) => operators::int(i64::try_from(*value).ok()),
        ("int", Val::Double(value)) => {
            let fits =
                *value > -9_223_372_036_854_775_808.0 && *value < 9_223_372_036_854_775_808.0;
            operators::int(fits.then_some(*value as i64))
        }
        ("int", Val::String(text)) => text.parse().map(Val::Int).map_err(|_| wrong()),
        ("int", Val::Timestamp(at)) => Ok(Val::Int(at.seconds)),
        ("int", Val::Duration(span)) => Ok(Val::Int(*span)),
        ("uint", Val::Int(value)) => operators::uint(u64::try_from(*value).ok()),
        ("uint", Val::Double(value)) => {
            let fits = *value > -1.0 && *value < 18_446_744_073_709_551_616.0;
            operators::uint(fits.then_some(*value as u64))
        }
        ("uint", Val::String(text)) => text.parse().map(Val::Uint).map_err(|_| wrong()),
        ("double", Val::Int(value)) => Ok(Val::Double(*value as f64)),
        ("double", Val::Uint(value)) => Ok(Val::Double(*value as f64)),
        ("double", Val::String(text)) => text.parse().map(Val::Double).map_err(|_| wrong()),
        ("bytes", Val::String(text)) => Ok(Val::Bytes(text.as_bytes().into())),
        ("string", Val::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Val::text(text)),
            Err(_) => fault("invalid UTF-8 in bytes, cannot convert to string"),
        },
        (
            "string",
            Val::List(_)
            | Val::Map(_)
            | Val::Optional(_)
            | Val::Null
            | Val::Type(_)
            | Val::Authority(_),
        ) => Err(Fault::NoSuchOverload),
        ("string", other) => Ok(Val::text(shown(other))),
        _ => Err(Fault::NoSuchOverload),
    }
}

/// A scalar as a person would write it.
pub(super) fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => printf::shortest(*value),
        Val::String(text) => text.to_string(),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Timestamp(at) => time::rfc3339(*at),
        Val::Duration(span) => time::seconds(*span),
        Val::List(_) | Val::Map(_) | Val::Optional(_) | Val::Authority(_) => {
            value.type_name().to_owned()
        }
        Val::Type(name) | Val::Format(name) => (*name).to_owned(),
        Val::Quantity(value) => value.to_string(),
        Val::Semver(version) => version.to_string(),
        Val::Ip(address) => address.to_string(),
        Val::Cidr(address, prefix) => format!("{address}/{prefix}"),
        Val::Url(url) => url.text.to_string(),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Duration(0) => true,
        Val::Double(value) => *value == 0.0,
        Val::String(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len() == 0,
        Val::Optional(inner) => inner.is_none(),
        _ => false,
    }
}

fn optional<'a>(name: &str, mut values: Vec<Val<'a>>) -> Evaluated<'a> {
    let other = if values.len() > 1 { values.pop() } else { None };
    let Some(Val::Optional(own)) = values.pop() else { return Err(Fault::NoSuchOverload) };
    match (name, own, other) {
        ("hasValue", own, None) => Ok(Val::Bool(own.is_some())),
        ("value", Some(value), None) => Ok((*value).clone()),
        ("value", None, None) => fault("optional.none() dereference"),
        ("orValue", Some(value), Some(_)) => Ok((*value).clone()),
        ("orValue", None, Some(other)) => Ok(other),
        ("or", Some(value), Some(_)) => Ok(Val::Optional(Some(value))),
        ("or", None, Some(other @ Val::Optional(_))) => Ok(other),
        _ => Err(Fault::NoSuchOverload),
    }
}

/// One whole, in the unit that quantities are counted in.
const ONE: i128 = NANOS as i128;

fn quantity<'a>(name: &str, own: i128, others: &[Val<'a>]) -> Evaluated<'a> {
    let checked = |value: Option<i128>| {
        value.map_or_else(|| fault("quantity overflow"), |value| Ok(Val::Quantity(value)))
    };
    let whole = |value: &i64| i128::from(*value) * ONE;
    match (name, others) {
        ("isGreaterThan", [Val::Quantity(other)]) => Ok(Val::Bool(own > *other)),
        ("isLessThan", [Val::Quantity(other)]) => Ok(Val::Bool(own < *other)),
        ("compareTo", [Val::Quantity(other)]) => Ok(Val::Int(sign(own.cmp(other)))),
        ("asApproximateFloat", []) => Ok(Val::Double(own as f64 / ONE as f64)),
        ("isInteger", []) => Ok(Val::Bool(own % ONE == 0 && i64::try_from(own / ONE).is_ok())),
        ("asInteger", []) => match i64::try_from(own / ONE) {
            Ok(value) if own % ONE == 0 => Ok(Val::Int(value)),
            _ => fault("cannot convert value to integer"),
        },
        ("sign", []) => Ok(Val::Int(own.signum() as i64)),
        ("add", [Val::Quantity(other)]) => checked(own.checked_add(*other)),
        ("add", [Val::Int(other)]) => checked(own.checked_add(whole(other))),
        ("sub", [Val::Quantity(other)]) => checked(own.checked_sub(*other)),
        ("sub", [Val::Int(other)]) => checked(own.checked_sub(whole(other))),
        _ => Err(Fault::NoSuchOverload),
    }
}

/// -1, 0 or 1.
pub(super) fn sign(order: Ordering) -> i64 {
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

type FormatCheck = fn(&str) -> Vec<String>;

/// The formats that rules can name.
const FORMATS: [(&str, FormatCheck); 13] = [
    ("dns1123Label", |text| crate::name::dns1123_label(text)),
    ("dns1123Subdomain", |text| crate::name::dns1123_subdomain(text)),
    ("dns1035Label", |text| crate::name::dns1035_label(text)),
    ("qualifiedName", |text| crate::name::qualified_name(text)),
    ("dns1123LabelPrefix", |text| crate::name::dns1123_label(as_prefix(text).as_ref())),
    ("dns1123SubdomainPrefix", |text| crate::name::dns1123_subdomain(as_prefix(text).as_ref())),
    ("dns1035LabelPrefix", |text| crate::name::dns1035_label(as_prefix(text).as_ref())),
    ("labelValue", |text| crate::name::label_value(text)),
    ("uri", |text| complain(formats::is_request_uri(text), "invalid URI for request")),
    ("uuid", |text| check_format("uuid", text, "does not match the UUID format")),
    ("byte", |text| check_format("byte", text, "invalid base64")),
    ("date", |text| check_format("date", text, "invalid date")),
    ("datetime", |text| check_format("datetime", text, "invalid datetime")),
];

/// Names that something is appended to may end with a hyphen.
fn as_prefix(text: &str) -> std::borrow::Cow<'_, str> {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a").into(),
        _ => text.into(),
    }
}

fn complain(is_fine: bool, problem: &str) -> Vec<String> {
    if is_fine { Vec::new() } else { vec![problem.to_owned()] }
}

fn check_format(format: &str, text: &str, problem: &str) -> Vec<String> {
    complain(formats::has_format(format, text) != Some(false), problem)
}

/// The names of those formats, for the type checker.
pub(super) fn is_format(name: &str) -> bool {
    FORMATS.iter().any(|(format, _)| *format == name)
}

fn validate<'a>(
    evaluator: &mut Evaluator<'a>,
    format: &str,
    value: Option<&Val<'a>>,
) -> Evaluated<'a> {
    let Some(Val::String(text)) = value else { return Err(Fault::NoSuchOverload) };
    evaluator.charge_text(10 * text.len())?;
    let problems = FORMATS
        .iter()
        .find(|(name, _)| *name == format)
        .map(|(_, check)| check(text))
        .unwrap_or_default();
    if problems.is_empty() {
        return Ok(Val::Optional(None));
    }
    Ok(Val::some(Val::list(problems.into_iter().map(Val::text).collect())))
}
