//! Values without fields, and the types that have a JSON form of their own.

use super::{Decoder, MAGIC, TypeMeta, Wire};
use crate::kinds::{Scalar, TypeId, TypeShape};
use crate::protobuf::wire::Reader;
use crate::timestamp::date;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value, json};

pub(super) const SCHEMA_PROPS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

impl Decoder<'_> {
    pub(super) fn scalar(
        &mut self,
        scalar: Scalar,
        value: Wire<'_>,
        depth: usize,
    ) -> Result<Value, String> {
        Ok(match scalar {
            Scalar::String => value.text()?.into(),
            Scalar::Bool => (value.number()? != 0).into(),
            // Both are written as 64 bits with the sign; what does not fit is cut as upstream cuts
            // it.
            Scalar::Int32 => (value.number()? as i32).into(),
            Scalar::Int64 => value.number()?.cast_signed().into(),
            Scalar::Double => number(value.double()?)?,
            Scalar::Bytes => STANDARD.encode(value.bytes()?).into(),
            Scalar::Time => time(value.bytes()?, false)?,
            Scalar::MicroTime => time(value.bytes()?, true)?,
            Scalar::Quantity => match first(value.bytes()?)? {
                Some(text) => text.text()?.into(),
                None => json!("0"),
            },
            Scalar::IntOrString => int_or_string(value.bytes()?)?,
            Scalar::Raw | Scalar::Fields | Scalar::Json => match first(value.bytes()?)? {
                Some(raw) => self.raw(raw.bytes()?, depth)?,
                None => Value::Null,
            },
            Scalar::PropsOrArray | Scalar::PropsOrBool | Scalar::PropsOrStrings => {
                self.props_or(scalar, value.bytes()?, depth)?
            }
        })
    }

    /// An object inside an object, as JSON or once more as protobuf.
    fn raw(&mut self, bytes: &[u8], depth: usize) -> Result<Value, String> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        if bytes.starts_with(MAGIC) {
            return self.envelope(bytes, TypeMeta::default(), depth + 1);
        }
        serde_json::from_slice(bytes)
            .map_err(|error| format!("what is inside is not JSON: {error}"))
    }

    /// A JSON schema, or the one other thing that may stand in its place.
    fn props_or(&mut self, scalar: Scalar, bytes: &[u8], depth: usize) -> Result<Value, String> {
        let props = self.tables.find(SCHEMA_PROPS).ok_or("JSON schemas are not known")?;
        let mut schema = Value::Null;
        let mut other = Value::Null;
        let schema_number = if scalar == Scalar::PropsOrBool { 2 } else { 1 };
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            if number == schema_number {
                self.field(&TypeShape::Named(props), value, &mut schema, depth + 1)?;
            } else if number <= 2 {
                self.field(&instead_of_props(scalar, props), value, &mut other, depth + 1)?;
            }
        }
        Ok(match (scalar, schema, other) {
            (Scalar::PropsOrBool, Value::Null, Value::Null) => Value::Bool(false),
            (Scalar::PropsOrBool, Value::Null, allows) => allows,
            (Scalar::PropsOrBool, schema, _) => schema,
            (_, schema, Value::Null) => schema,
            (_, _, list) => list,
        })
    }
}

fn instead_of_props(scalar: Scalar, props: TypeId) -> TypeShape {
    match scalar {
        Scalar::PropsOrBool => TypeShape::Scalar(Scalar::Bool),
        Scalar::PropsOrArray => TypeShape::List(Box::new(TypeShape::Named(props))),
        _ => TypeShape::List(Box::new(TypeShape::Scalar(Scalar::String))),
    }
}

/// The value with the number 1, for messages that hold nothing else.
fn first(bytes: &[u8]) -> Result<Option<Wire<'_>>, String> {
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if number == 1 {
            found = Some(value);
        }
    }
    Ok(found)
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    let mut reader = Reader::new(bytes);
    while let Some((field, value)) = reader.next()? {
        match field {
            1 => is_text = value.number()? != 0,
            2 => number = value.number()? as i32,
            3 => text = value.text()?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

/// Whole numbers are written without a fraction.
fn number(value: f64) -> Result<Value, String> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Ok((value as i64).into());
    }
    Number::from_f64(value)
        .map(Value::Number)
        .ok_or_else(|| format!("{value} is no number in JSON"))
}

/// A time in UTC, to the second or to the microsecond. A message without content is no time at all.
fn time(bytes: &[u8], has_micros: bool) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut reader = Reader::new(bytes);
    while let Some((field, value)) = reader.next()? {
        match field {
            1 => seconds = value.number()?.cast_signed(),
            2 => nanos = value.number()? as i32,
            _ => {}
        }
    }
    // From the year 0 to the end of the year 9999: outside, the text would not have the usual form.
    if !(-62_167_219_200..253_402_300_800).contains(&seconds) {
        return Err(format!("{seconds} seconds since 1970 is no time we can write"));
    }
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if has_micros {
        let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        let nanos = nanos.ok_or("a second has 1,000,000,000 nanoseconds")?;
        text.push_str(&format!(".{:06}", nanos / 1000));
    }
    text.push('Z');
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_base64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(STANDARD.encode(bytes), text);
        }
    }
}
