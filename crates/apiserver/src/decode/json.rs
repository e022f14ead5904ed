//! JSON into values, watching for keys that stand twice.

use super::{Decoded, Duplicates};
use crate::status::{Path, Status};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Decodes a JSON text. What is none is 400, with its position. Whole numbers stay whole, all
/// others become `f64`.
pub(crate) fn json(bytes: &[u8]) -> Result<Decoded, Status> {
    let duplicates = RefCell::new(Duplicates::default());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed { path: Path::Root, duplicates: &duplicates };
    let value = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| Status::bad_request(format!("json parse error: {error}")))?;
    Ok(Decoded { value, duplicates: duplicates.into_inner().paths, lines: Vec::new() })
}

/// Reads one value, and knows where it is. The depth is limited by `serde_json` itself.
#[derive(Clone, Copy)]
struct Seed<'a> {
    path: Path<'a>,
    duplicates: &'a RefCell<Duplicates>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = elements.next_element_seed(Seed {
            path: self.path.index(list.len()),
            duplicates: self.duplicates,
        })? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(Key)? {
            let path = self.path.field(&key);
            let value = entries.next_value_seed(Seed { path, duplicates: self.duplicates })?;
            if map.contains_key(&key) {
                self.duplicates.borrow_mut().note(|| path.to_string());
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Keys are texts in JSON, whatever else `serde` would take.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        String::deserialize(deserializer)
    }
}
