//! Decodes protobuf bodies into JSON objects and encodes answers, by the tables of the built-in kinds.
//!
//! A body is `k8s\0` and an envelope (`runtime.Unknown`) that says which kind is inside. What comes
//! out is what upstream's own JSON encoder would have written for the same object.

mod encode;
mod scalar;
mod wire;

#[cfg(test)]
mod tests;

use crate::kinds::{Scalar, Tables, TypeId, TypeShape, built_in, complete_fields};
pub(crate) use encode::{encode, is_known, watch_frame};
use serde_json::{Map, Value};
use wire::{Reader, Wire};

/// What each body begins with.
pub(crate) const MAGIC: &[u8; 4] = b"k8s\0";

/// How deep messages may be in each other.
const DEEPEST: usize = 100;

/// How many values one body may hold. Two bytes on the wire can become a whole struct of empty
/// fields, so the size of the body alone does not bound the memory.
const MOST_VALUES: usize = 500_000;

/// Decodes a body whose envelope says what is in it.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    decode_as(bytes, "", "")
}

/// Decodes a body; the version and kind count if its envelope does not say them.
pub(crate) fn decode_as(bytes: &[u8], api_version: &str, kind: &str) -> Result<Value, String> {
    let mut decoder = Decoder { tables: built_in().tables(), values_left: MOST_VALUES };
    decoder.envelope(bytes, TypeMeta { api_version, kind }, 0)
}

/// What a body is of.
#[derive(Clone, Copy, Default)]
struct TypeMeta<'a> {
    api_version: &'a str,
    kind: &'a str,
}

struct Decoder<'t> {
    tables: &'t Tables,
    values_left: usize,
}

impl Decoder<'_> {
    fn envelope(
        &mut self,
        bytes: &[u8],
        default: TypeMeta<'_>,
        depth: usize,
    ) -> Result<Value, String> {
        let Some(envelope) = bytes.strip_prefix(MAGIC) else {
            return Err("the body does not begin as protobuf bodies do".to_owned());
        };
        let TypeMeta { mut api_version, mut kind } = default;
        let mut raw = &[][..];
        let mut fields = Reader::new(envelope);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => {
                    let mut type_meta = Reader::new(value.bytes()?);
                    while let Some((number, value)) = type_meta.next()? {
                        match (number, value.text()) {
                            (1, Ok(text)) if !text.is_empty() => api_version = text,
                            (2, Ok(text)) if !text.is_empty() => kind = text,
                            _ => {}
                        }
                    }
                }
                2 => raw = value.bytes()?,
                3 if !value.bytes()?.is_empty() => {
                    return Err("the content of the body is encoded once more".to_owned());
                }
                _ => {}
            }
        }
        if api_version.is_empty() || kind.is_empty() {
            return Err("the body does not say what kind it is of".to_owned());
        }
        let id = kind_of(self.tables, api_version, kind).ok_or_else(|| {
            format!("no kind \"{kind}\" is registered for version \"{api_version}\"")
        })?;
        let mut object = Map::new();
        self.message(id, raw, &mut object, depth)?;
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        Ok(Value::Object(object))
    }

    /// Decodes one message into an object that may hold an earlier part of it.
    fn message(
        &mut self,
        id: TypeId,
        bytes: &[u8],
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("messages are in each other more than {DEEPEST} deep"));
        }
        self.part(Part { id, path: &[], depth }, bytes, object)?;
        let added = complete_fields(self.tables, id, object);
        self.count(added)
    }

    /// Decodes the fields that protobuf has under one path of numbers.
    fn part(
        &mut self,
        part: Part<'_>,
        bytes: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let tables = self.tables;
        let declared = tables.get(part.id);
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            let found = declared.fields.iter().find(|field| {
                field.numbers.starts_with(part.path)
                    && field.numbers.get(part.path.len()) == Some(&number)
            });
            // A newer client may know fields that we do not.
            let Some(field) = found else { continue };
            let in_field = |error| format!("{}: {error}", field.name);
            if field.numbers.len() > part.path.len() + 1 {
                let path = &field.numbers[..part.path.len() + 1];
                self.part(Part { path, ..part }, value.bytes()?, object)?;
                continue;
            }
            let slot = object.entry(&*field.name).or_insert(Value::Null);
            self.field(&field.shape, value, slot, part.depth + 1).map_err(in_field)?;
        }
        Ok(())
    }

    /// Takes one more value for a field: lists and maps grow by it, messages are merged.
    fn field(
        &mut self,
        shape: &TypeShape,
        value: Wire<'_>,
        slot: &mut Value,
        depth: usize,
    ) -> Result<(), String> {
        self.count(1)?;
        match shape {
            TypeShape::Scalar(scalar) => *slot = self.scalar(*scalar, value, depth)?,
            TypeShape::Named(id) => {
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(object) = slot {
                    self.message(*id, value.bytes()?, object, depth)?;
                }
            }
            TypeShape::List(items) => {
                if !slot.is_array() {
                    *slot = Value::Array(Vec::new());
                }
                if let Value::Array(list) = slot {
                    self.items(items, value, list, depth)?;
                }
            }
            TypeShape::WrappedList(items) => {
                if !slot.is_array() {
                    *slot = Value::Array(Vec::new());
                }
                let mut reader = Reader::new(value.bytes()?);
                while let Some((number, value)) = reader.next()? {
                    if number == 1 {
                        self.field(&TypeShape::List(items.clone()), value, slot, depth + 1)?;
                    }
                }
            }
            TypeShape::Map(values) => {
                let (key, value) = self.entry(values, value.bytes()?, depth)?;
                match slot {
                    Value::Object(map) => drop(map.insert(key, value)),
                    other => *other = Value::Object(Map::from_iter([(key, value)])),
                }
            }
        }
        Ok(())
    }

    /// Numbers may come many in one: all the others come one by one.
    fn items(
        &mut self,
        items: &TypeShape,
        value: Wire<'_>,
        list: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), String> {
        let is_number =
            matches!(items, TypeShape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Bool));
        if let (true, Wire::Bytes(packed)) = (is_number, value) {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                let mut item = Value::Null;
                self.field(items, Wire::Varint(reader.varint()?), &mut item, depth)?;
                list.push(item);
            }
            return Ok(());
        }
        let mut item = Value::Null;
        self.field(items, value, &mut item, depth)?;
        list.push(item);
        Ok(())
    }

    /// An entry of a map is a message of a key and a value. Either may be left out if it is empty.
    fn entry(
        &mut self,
        values: &TypeShape,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(String, Value), String> {
        let mut key = String::new();
        let mut found = None;
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match number {
                1 => key = value.text()?.to_owned(),
                2 => found = Some(value),
                _ => {}
            }
        }
        let mut value = Value::Null;
        let is_message_or_text = !matches!(
            values,
            TypeShape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Bool | Scalar::Double)
        );
        let found = found.or(is_message_or_text.then_some(Wire::Bytes(&[])));
        if let Some(found) = found {
            self.field(values, found, &mut value, depth)
                .map_err(|error| format!("{key}: {error}"))?;
        }
        Ok((key, value))
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        let left = self.values_left.checked_sub(values);
        self.values_left =
            left.ok_or_else(|| format!("it holds more than {MOST_VALUES} values"))?;
        Ok(())
    }
}

/// The fields of a type that protobuf has under one path of numbers.
#[derive(Clone, Copy)]
struct Part<'a> {
    id: TypeId,
    path: &'a [u32],
    depth: usize,
}

/// The type of a kind. Options and statuses belong to every group.
fn kind_of(tables: &Tables, api_version: &str, kind: &str) -> Option<TypeId> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_group = tables.groups.iter().filter(|g| g.group == group && g.version == version);
    let shared = tables.groups.iter().take(1);
    of_group.chain(shared).find_map(|group| {
        let id = tables.find(&format!("{}.{kind}", group.package))?;
        let declared = tables.get(id);
        let is_known = declared.is_kind && declared.fields.iter().all(|f| !f.numbers.is_empty());
        is_known.then_some(id)
    })
}
