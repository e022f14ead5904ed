//! What a YAML scalar means. YAML 1.1 as upstream's parser reads it: `yes`, `on` and `y` are
//! booleans, `010` is eight.

use serde_json::{Number, Value};

/// What an untagged, unquoted scalar means; what means nothing else is a text. The error is for
/// numbers that JSON does not have.
pub(super) fn plain(text: &str) -> Result<Value, &'static str> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" => return Err("json: unsupported value: NaN"),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Err("json: unsupported value: +Inf");
        }
        "-.inf" | "-.Inf" | "-.INF" => return Err("json: unsupported value: -Inf"),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => float(text),
        Some(b'0'..=b'9' | b'+' | b'-') => {
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| float(&digits))
        }
        Some(_) | None => None,
    };
    Ok(number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// A scalar with one of YAML's own tags, `int` and so on. Nothing if it is not such a thing.
pub(super) fn tagged(tag: &str, text: &str) -> Option<Value> {
    let value = plain(text).ok()?;
    match tag {
        "str" => Some(Value::String(text.to_owned())),
        "null" => value.is_null().then_some(value),
        "bool" => value.is_boolean().then_some(value),
        "int" => (value.is_i64() || value.is_u64()).then_some(value),
        "float" => value.is_number().then_some(value),
        // Upstream keeps what looks like a time as a text; so is everything else that it does not
        // know.
        "timestamp" => Some(Value::String(text.to_owned())),
        _ => None,
    }
}

/// The text that a scalar key stands for: numbers and booleans are written out. Nothing for `null`.
pub(super) fn key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_f64() => number.as_f64().map(short_float),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A whole number as Go's `ParseInt` takes it with base 0: decimal, `0x`, `0o`, `0b`, or a zero for
/// octal.
fn integer(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some(_) if lower.starts_with('0') => (8, &lower[1..]),
        Some(_) | None => (10, lower.as_str()),
    };
    // The standard library would take a second sign here.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if !is_negative {
        return Some(Number::from(magnitude));
    }
    i64::try_from(-i128::from(magnitude)).ok().map(Number::from)
}

/// A number with a fraction or an exponent. One without a fraction comes out whole, because
/// upstream writes it as JSON and reads it again. One that is too large is no number but a text.
fn float(text: &str) -> Option<Number> {
    if !is_float(text) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    const WHOLE_LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() == 0.0 && (-WHOLE_LIMIT..WHOLE_LIMIT).contains(&value) {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mantissa = match text.split_once(['e', 'E']) {
        None => text,
        Some((mantissa, exponent)) => {
            if !is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)) {
                return false;
            }
            mantissa
        }
    };
    match mantissa.split_once('.') {
        None => is_digits(mantissa),
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
    }
}

/// A float as Go's `%g` writes it with 32 bits.
fn short_float(value: f64) -> String {
    let scientific = format!("{:e}", value as f32);
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        Ok(_) | Err(_) => format!("{}", value as f32),
    }
}
