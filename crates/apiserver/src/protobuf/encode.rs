//! Encodes JSON objects as protobuf, by the same tables.

use super::scalar::SCHEMA_PROPS;
use super::wire::Writer;
use super::{DEEPEST, MAGIC, kind_of};
use crate::kinds::{Scalar, Tables, TypeId, TypeShape, built_in};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Whether objects of a kind can be encoded: upstream has no protobuf for custom kinds.
pub(crate) fn is_known(api_version: &str, kind: &str) -> bool {
    kind_of(built_in().tables(), api_version, kind).is_some()
}

/// An answer as a body: an object, a list, a status, or the metadata of either. None: it has no such form.
pub(crate) fn encode(answer: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (answer["apiVersion"].as_str()?, answer["kind"].as_str()?);
    let raw =
        Encoder { tables: built_in().tables() }.answer(api_version, kind, answer.as_object()?)?;
    let mut meta = Writer::default();
    meta.bytes(1, api_version.as_bytes());
    meta.bytes(2, kind.as_bytes());
    let mut envelope = Writer::after(MAGIC);
    envelope.bytes(1, meta.written());
    envelope.bytes(2, raw.written());
    envelope.bytes(3, b"");
    envelope.bytes(4, b"");
    Some(envelope.into_bytes())
}

/// A change of a watch as it is on the wire: its length, and the change.
pub(crate) fn watch_frame(event: &str, object: &[u8]) -> Option<Vec<u8>> {
    let object = encode(&serde_json::from_slice(object).ok()?)?;
    let mut raw = Writer::default();
    raw.bytes(1, &object);
    let mut change = Writer::default();
    change.bytes(1, event.as_bytes());
    change.bytes(2, raw.written());
    let change = change.into_bytes();
    let length = u32::try_from(change.len()).ok()?;
    Some([&length.to_be_bytes()[..], &change].concat())
}

struct Encoder<'t> {
    tables: &'t Tables,
}

impl Encoder<'_> {
    fn answer(&self, api_version: &str, kind: &str, answer: &Map<String, Value>) -> Option<Writer> {
        let is_meta = api_version.starts_with("meta.k8s.io/");
        let of_kind = || kind_of(self.tables, api_version, kind);
        match kind {
            "PartialObjectMetadata" if is_meta => self.metadata_only(answer),
            "PartialObjectMetadataList" if is_meta => {
                self.list(answer, |item| self.metadata_only(item))
            }
            _ => match (of_kind(), kind.strip_suffix("List")) {
                (Some(id), _) => self.message(id, answer, 0),
                (None, Some(items)) => {
                    let id = kind_of(self.tables, api_version, items)?;
                    self.list(answer, |item| self.message(id, item, 0))
                }
                (None, None) => None,
            },
        }
    }

    /// All lists have these two fields.
    fn list(
        &self,
        answer: &Map<String, Value>,
        item: impl Fn(&Map<String, Value>) -> Option<Writer>,
    ) -> Option<Writer> {
        let mut out = Writer::default();
        let meta = TypeShape::Named(self.tables.find(LIST_META)?);
        self.field(&meta, 1, answer.get("metadata").unwrap_or(&Value::Null), &mut out, 0)?;
        for value in answer.get("items").and_then(Value::as_array).into_iter().flatten() {
            out.bytes(2, item(value.as_object()?)?.written());
        }
        Some(out)
    }

    fn metadata_only(&self, object: &Map<String, Value>) -> Option<Writer> {
        let mut out = Writer::default();
        let meta = TypeShape::Named(self.tables.find(OBJECT_META)?);
        self.field(&meta, 1, object.get("metadata").unwrap_or(&Value::Null), &mut out, 0)?;
        Some(out)
    }

    fn message(&self, id: TypeId, object: &Map<String, Value>, depth: usize) -> Option<Writer> {
        let mut out = Writer::default();
        if depth < DEEPEST {
            self.part(id, &[], object, &mut out, depth)?;
            return Some(out);
        }
        None
    }

    /// Encodes the fields that protobuf has under one path of numbers: JSON inlines what protobuf nests.
    fn part(
        &self,
        id: TypeId,
        path: &[u32],
        object: &Map<String, Value>,
        out: &mut Writer,
        depth: usize,
    ) -> Option<()> {
        let mut nested = Vec::new();
        for field in &self.tables.get(id).fields {
            let Some((number, deeper)) =
                field.numbers.strip_prefix(path).and_then(<[u32]>::split_first)
            else {
                continue;
            };
            if deeper.is_empty() {
                let value = object.get(&*field.name).unwrap_or(&Value::Null);
                self.field(&field.shape, *number, value, out, depth + 1)?;
            } else if !nested.contains(number) {
                nested.push(*number);
                let mut inner = Writer::default();
                self.part(id, &[path, &[*number]].concat(), object, &mut inner, depth + 1)?;
                if !inner.written().is_empty() {
                    out.bytes(*number, inner.written());
                }
            }
        }
        Some(())
    }

    fn field(
        &self,
        shape: &TypeShape,
        number: u32,
        value: &Value,
        out: &mut Writer,
        depth: usize,
    ) -> Option<()> {
        if value.is_null() {
            return Some(());
        }
        match shape {
            TypeShape::Scalar(scalar) => self.scalar(*scalar, number, value, out, depth)?,
            TypeShape::Named(id) => {
                out.bytes(number, self.message(*id, value.as_object()?, depth + 1)?.written());
            }
            TypeShape::List(items) => {
                for item in value.as_array()? {
                    self.item(items, number, item, out, depth)?;
                }
            }
            TypeShape::WrappedList(items) => {
                let mut list = Writer::default();
                for item in value.as_array()? {
                    self.item(items, 1, item, &mut list, depth)?;
                }
                out.bytes(number, list.written());
            }
            TypeShape::Map(values) => {
                for (key, value) in value.as_object()? {
                    let mut entry = Writer::default();
                    entry.bytes(1, key.as_bytes());
                    self.item(values, 2, value, &mut entry, depth)?;
                    out.bytes(number, entry.written());
                }
            }
        }
        Some(())
    }

    /// A list has as many items on the wire as in JSON: one that is null is empty there.
    fn item(
        &self,
        shape: &TypeShape,
        number: u32,
        value: &Value,
        out: &mut Writer,
        depth: usize,
    ) -> Option<()> {
        if value.is_null() {
            out.bytes(number, b"");
            return Some(());
        }
        self.field(shape, number, value, out, depth + 1)
    }

    fn scalar(
        &self,
        scalar: Scalar,
        number: u32,
        value: &Value,
        out: &mut Writer,
        depth: usize,
    ) -> Option<()> {
        match scalar {
            Scalar::String => out.bytes(number, value.as_str()?.as_bytes()),
            Scalar::Bool => out.number(number, u64::from(value.as_bool()?)),
            Scalar::Int32 | Scalar::Int64 => {
                out.number(number, value.as_i64()?.cast_unsigned());
            }
            Scalar::Double => out.double(number, value.as_f64()?),
            Scalar::Bytes => out.bytes(number, &STANDARD.decode(value.as_str()?).ok()?),
            Scalar::Time | Scalar::MicroTime => {
                let time: Timestamp = value.as_str()?.parse().ok()?;
                let mut inner = Writer::default();
                inner.number(1, time.as_second().cast_unsigned());
                inner.number(2, i64::from(time.subsec_nanosecond()).cast_unsigned());
                out.bytes(number, inner.written());
            }
            Scalar::Quantity => {
                let mut inner = Writer::default();
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                inner.bytes(1, text.as_bytes());
                out.bytes(number, inner.written());
            }
            Scalar::IntOrString => {
                let mut inner = Writer::default();
                match value.as_str() {
                    Some(text) => {
                        inner.number(1, 1);
                        inner.bytes(3, text.as_bytes());
                    }
                    None => {
                        inner.number(1, 0);
                        inner.number(2, value.as_i64()?.cast_unsigned());
                    }
                }
                out.bytes(number, inner.written());
            }
            Scalar::Raw | Scalar::Fields | Scalar::Json => {
                let mut inner = Writer::default();
                inner.bytes(1, value.to_string().as_bytes());
                out.bytes(number, inner.written());
            }
            Scalar::PropsOrArray | Scalar::PropsOrBool | Scalar::PropsOrStrings => {
                let mut inner = Writer::default();
                self.props_or(scalar, value, &mut inner, depth)?;
                out.bytes(number, inner.written());
            }
        }
        Some(())
    }

    /// A JSON schema, or the one other thing that may stand in its place.
    fn props_or(
        &self,
        scalar: Scalar,
        value: &Value,
        out: &mut Writer,
        depth: usize,
    ) -> Option<()> {
        let props = TypeShape::Named(self.tables.find(SCHEMA_PROPS)?);
        let strings = || TypeShape::List(Box::new(TypeShape::Scalar(Scalar::String)));
        match (scalar, value) {
            (Scalar::PropsOrBool, Value::Bool(allows)) => {
                out.number(1, u64::from(*allows));
                Some(())
            }
            (Scalar::PropsOrBool, schema) => {
                out.number(1, 1);
                self.field(&props, 2, schema, out, depth + 1)
            }
            (Scalar::PropsOrStrings, Value::Array(_)) => {
                self.field(&strings(), 2, value, out, depth + 1)
            }
            (_, Value::Array(_)) => {
                self.field(&TypeShape::List(Box::new(props)), 2, value, out, depth + 1)
            }
            (_, schema) => self.field(&props, 1, schema, out, depth + 1),
        }
    }
}
