//! `format`: texts with values put in.

use super::eval::{Evaluated, Evaluator, Fault, fault};
use super::functions::shown;
use super::value::Val;

/// More digits behind the point are refused.
const MAX_PRECISION: usize = 100;

pub(super) fn format<'a>(
    evaluator: &mut Evaluator<'a>,
    template: &str,
    values: &[Val<'a>],
) -> Evaluated<'a> {
    let mut out = String::with_capacity(template.len());
    let mut values = values.iter();
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut precision = None;
        if characters.next_if_eq(&'.').is_some() {
            let mut number = 0_usize;
            while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                number = number.saturating_mul(10).saturating_add(digit as usize - '0' as usize);
            }
            if number > MAX_PRECISION {
                return fault("error during formatting: precision is too large");
            }
            precision = Some(number);
        }
        let Some(verb) = characters.next() else {
            return fault("error during formatting: unexpected end of string");
        };
        let Some(value) = values.next() else {
            return fault("error during formatting: index out of range");
        };
        let before = out.len();
        put(evaluator, &mut out, Clause { verb, precision }, value)?;
        evaluator.charge_text(out.len() - before)?;
    }
    Ok(Val::text(out))
}

/// How one value is put in: `%.3f`.
#[derive(Clone, Copy)]
struct Clause {
    verb: char,
    precision: Option<usize>,
}

fn put(
    evaluator: &mut Evaluator<'_>,
    out: &mut String,
    clause: Clause,
    value: &Val<'_>,
) -> Result<(), Fault> {
    let Clause { verb, precision } = clause;
    let text = match (verb, value) {
        ('s', value) => return show(evaluator, out, value),
        ('d', Val::Int(_) | Val::Uint(_)) => shown(value),
        ('d', Val::Double(number)) if number.fract() == 0.0 => shown(value),
        ('f', value) => format!("{:.*}", precision.unwrap_or(6), double(value)?),
        ('e', value) => scientific(double(value)?, precision.unwrap_or(6)),
        ('b', Val::Int(number)) => signed(*number, |number| format!("{number:b}")),
        ('b', Val::Uint(number)) => format!("{number:b}"),
        ('b', Val::Bool(value)) => u8::from(*value).to_string(),
        ('o', Val::Int(number)) => signed(*number, |number| format!("{number:o}")),
        ('o', Val::Uint(number)) => format!("{number:o}"),
        ('x', Val::Int(number)) => signed(*number, |number| format!("{number:x}")),
        ('x', Val::Uint(number)) => format!("{number:x}"),
        ('X', Val::Int(number)) => signed(*number, |number| format!("{number:X}")),
        ('X', Val::Uint(number)) => format!("{number:X}"),
        ('x', Val::String(text)) => hex(text.as_bytes()),
        ('X', Val::String(text)) => hex(text.as_bytes()).to_uppercase(),
        ('x', Val::Bytes(bytes)) => hex(bytes),
        ('X', Val::Bytes(bytes)) => hex(bytes).to_uppercase(),
        _ => return fault(format!("error during formatting: no such verb {verb:?} for the value")),
    };
    out.push_str(&text);
    Ok(())
}

/// A value of any sort, as `%s` shows it.
fn show(evaluator: &mut Evaluator<'_>, out: &mut String, value: &Val<'_>) -> Result<(), Fault> {
    let before = out.len();
    match value {
        Val::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                show(evaluator, out, &item)?;
            }
            out.push(']');
        }
        Val::Map(map) => {
            let mut keys: Vec<(String, Val<'_>)> =
                map.keys().into_iter().map(|key| (shown(&key), key)).collect();
            keys.sort_by(|(one, _), (other, _)| one.cmp(other));
            out.push('{');
            for (index, (name, key)) in keys.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push_str(": ");
                show(evaluator, out, &map.get(key).unwrap_or(Val::Null))?;
            }
            out.push('}');
        }
        other => out.push_str(&shown(other)),
    }
    evaluator.charge_text(out.len() - before)
}

fn double(value: &Val<'_>) -> Result<f64, Fault> {
    match value {
        Val::Double(value) => Ok(*value),
        Val::Int(value) => Ok(*value as f64),
        Val::Uint(value) => Ok(*value as f64),
        _ => fault("error during formatting: a number was wanted"),
    }
}

fn signed(number: i64, show: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", show(number.unsigned_abs()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `1.500000e+00`: the exponent has a sign and two digits at least.
fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A double in the fewest digits that say it exactly.
pub(super) fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e6).contains(&size) {
        let text = format!("{number:e}");
        let Some((mantissa, exponent)) = text.split_once('e') else { return text };
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    number.to_string()
}
