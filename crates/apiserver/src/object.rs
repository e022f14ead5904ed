//! Objects: reading their metadata, and the form in which they are stored and served.
//!
//! A stored object is a format byte, the place where its metadata begins, and its JSON without
//! `resourceVersion`. Serving it is copying: the head is written for the version that was asked for, the
//! resourceVersion is the revision at which it was stored, and the rest stands as it is.

use interlock_store::{Revision, Value as Stored, Versioned};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The only format there is. Room for compression and encryption.
const PLAIN: u8 = 1;
const HEADER_BYTES: usize = 3;
/// Objects are not nested deeper, with all that we add to them. Readers of JSON stop at 128, we ourselves and
/// kube-rs among them, and an event with a table in it is four levels around the object.
pub(crate) const DEPTH_LIMIT: usize = 120;

/// What selectors and guards look at, parsed once for each stored version.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct View {
    #[serde(default)]
    metadata: MetadataView,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetadataView {
    #[serde(default)]
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

impl View {
    /// The view of a stored version.
    pub(crate) fn of(stored: &Stored) -> Arc<View> {
        stored.view(|bytes| {
            bytes
                .get(HEADER_BYTES..)
                .and_then(|json| serde_json::from_slice(json).ok())
                .unwrap_or_default()
        })
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(|value| &**value)
    }

    /// Whether somebody asked for the object's deletion.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// The stored form of an object that is in the version it is stored in.
pub(crate) fn encode(object: &Value) -> Vec<u8> {
    encode_as(object, text(object, "apiVersion"))
}

/// The stored form of an object, in the version it is to be stored in.
pub(crate) fn encode_as(object: &Value, api_version: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(512);
    json.extend_from_slice(&[PLAIN, 0, 0]);
    write_head(&mut json, text(object, "kind"), api_version);
    let offset = json.len() - HEADER_BYTES;
    let offset = u16::try_from(offset).expect("kinds and versions have bounded lengths");
    json[1..HEADER_BYTES].copy_from_slice(&offset.to_le_bytes());
    let mut first = true;
    for (key, value) in metadata(object) {
        if key == "resourceVersion" {
            continue;
        }
        write_member(&mut json, &mut first, key, value);
    }
    json.push(b'}');
    first = false;
    for (key, value) in object.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            write_member(&mut json, &mut first, key, value);
        }
    }
    json.push(b'}');
    json
}

/// Whether a value is nested deeper than what is stored may be.
pub(crate) fn is_too_deep(value: &Value) -> bool {
    fn is_deeper(value: &Value, levels: usize) -> bool {
        match value {
            Value::Array(list) => {
                levels == 0 || list.iter().any(|inner| is_deeper(inner, levels - 1))
            }
            Value::Object(map) => {
                levels == 0 || map.values().any(|inner| is_deeper(inner, levels - 1))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    is_deeper(value, DEPTH_LIMIT)
}

/// The object as it was stored, with its resourceVersion.
pub(crate) fn decode(versioned: &Versioned) -> Value {
    decode_at(&versioned.value, versioned.modified)
}

/// The object as it was stored, with a resourceVersion of the caller's choice: a deletion's, in a watch.
pub(crate) fn decode_at(stored: &Stored, revision: Revision) -> Value {
    let json = stored.bytes().get(HEADER_BYTES..).unwrap_or_default();
    let mut object: Value = serde_json::from_slice(json).unwrap_or_else(|_| json!({}));
    set_resource_version(&mut object, revision);
    object
}

/// Appends a stored object as JSON in the named version, without decoding it.
pub(crate) fn write_json(out: &mut Vec<u8>, bytes: &[u8], head: &Head, revision: Revision) {
    let offset = match bytes {
        [_, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => return,
    };
    let Some(rest) = bytes.get(HEADER_BYTES + offset..) else { return };
    out.reserve(head.0.len() + rest.len() + 48);
    out.extend_from_slice(&head.0);
    out.extend_from_slice(b"\"resourceVersion\":\"");
    out.extend_from_slice(revision.to_string().as_bytes());
    out.push(b'"');
    if rest.first() != Some(&b'}') {
        out.push(b',');
    }
    out.extend_from_slice(rest);
}

/// The first bytes of every object of one kind and version, up to the inside of its metadata.
pub(crate) struct Head(Vec<u8>);

impl Head {
    /// The head for a kind in a version.
    pub(crate) fn new(kind: &str, api_version: &str) -> Self {
        let mut head = Vec::new();
        write_head(&mut head, kind, api_version);
        Head(head)
    }

    /// The head of an object that does not name its kind.
    pub(crate) fn none() -> &'static Self {
        static NONE: std::sync::LazyLock<Head> =
            std::sync::LazyLock::new(|| Head(b"{\"metadata\":{".to_vec()));
        &NONE
    }
}

fn write_head(out: &mut Vec<u8>, kind: &str, api_version: &str) {
    out.extend_from_slice(b"{\"kind\":");
    write_value(out, &Value::from(kind));
    out.extend_from_slice(b",\"apiVersion\":");
    write_value(out, &Value::from(api_version));
    out.extend_from_slice(b",\"metadata\":{");
}

fn write_member(out: &mut Vec<u8>, first: &mut bool, key: &str, value: &Value) {
    if !*first {
        out.push(b',');
    }
    *first = false;
    write_value(out, &Value::from(key));
    out.push(b':');
    write_value(out, value);
}

/// Appends a value as JSON.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("a vector takes every byte");
}

/// A text field of the object itself.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The object's metadata; empty if it has none.
pub(crate) fn metadata(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The object's metadata, made if it has none. Whatever else stood there is gone.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("it was made an object above")
}

/// A text field of the metadata.
pub(crate) fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The object's name.
pub(crate) fn name(object: &Value) -> &str {
    meta_text(object, "name")
}

/// The object's namespace; empty if it has none.
pub(crate) fn namespace(object: &Value) -> &str {
    meta_text(object, "namespace")
}

/// The object's uid.
pub(crate) fn uid(object: &Value) -> &str {
    meta_text(object, "uid")
}

/// Whether somebody asked for its deletion.
pub(crate) fn is_deleting(object: &Value) -> bool {
    metadata(object).get("deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Its finalizers.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    metadata(object)
        .get("finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Takes one of its finalizers off.
pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let kept: Vec<String> =
        finalizers(object).filter(|name| *name != finalizer).map(str::to_owned).collect();
    metadata_mut(object).insert("finalizers".to_owned(), json!(kept));
}

/// Its owners.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    metadata(object).get("ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

/// Writes the resourceVersion.
pub(crate) fn set_resource_version(object: &mut Value, revision: Revision) {
    metadata_mut(object).insert("resourceVersion".to_owned(), json!(revision.to_string()));
}

/// The metadata alone, as a `PartialObjectMetadata`.
pub(crate) fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata(object),
    })
}

/// The value at a path of field names.
pub(crate) fn at<'a, S: AsRef<str>>(object: &'a Value, path: &[S]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name.as_ref()))
}

/// Puts a value at a path of field names, making the objects on the way.
pub(crate) fn put_at<S: AsRef<str>>(object: &mut Value, path: &[S], value: Value) {
    let mut place = object;
    for name in path {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name.as_ref()];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_store::Key;

    fn stored(object: &Value, modified: Revision) -> Versioned {
        Versioned {
            key: Key::new("core/configmaps/-", "root/default/a"),
            created: modified,
            modified,
            value: Arc::new(Stored::new(encode(object))),
        }
    }

    #[test]
    fn an_object_comes_back_as_it_was_stored_with_its_revision() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"x": "y"}, "resourceVersion": "3"},
            "data": {"k": "v"},
        });
        let mut expected = object.clone();
        set_resource_version(&mut expected, 7);
        assert_eq!(decode(&stored(&object, 7)), expected);
        let mut bytes = Vec::new();
        let version = stored(&object, 7);
        write_json(&mut bytes, version.value.bytes(), &Head::new("ConfigMap", "v1"), 7);
        assert_eq!(serde_json::from_slice::<Value>(&bytes).expect("it is JSON"), expected);
        assert_eq!(View::of(&version.value).label("x"), Some("y"));
        assert!(!View::of(&version.value).is_deleting());
    }

    #[test]
    fn a_deletion_mark_is_seen_without_decoding_the_object() {
        for (mark, is_deleting) in [(json!("2026-01-01T00:00:00Z"), true), (json!(null), false)] {
            let object = json!({"metadata": {"name": "a", "deletionTimestamp": mark}});
            assert_eq!(View::of(&stored(&object, 1).value).is_deleting(), is_deleting);
            assert_eq!(super::is_deleting(&object), is_deleting);
        }
    }

    #[test]
    fn depth_counts_lists_and_objects() {
        let nested = |levels: usize| {
            (0..levels).fold(json!(1), |inner, level| {
                if level % 2 == 0 { json!([inner]) } else { json!({"a": inner, "b": []}) }
            })
        };
        assert!(!is_too_deep(&nested(DEPTH_LIMIT)));
        assert!(is_too_deep(&nested(DEPTH_LIMIT + 1)));
    }

    #[test]
    fn an_object_is_served_in_the_version_that_was_asked_for() {
        let object =
            json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": 1});
        let mut bytes = Vec::new();
        write_json(&mut bytes, stored(&object, 9).value.bytes(), &Head::new("A", "a/v2"), 9);
        let served: Value = serde_json::from_slice(&bytes).expect("it is JSON");
        assert_eq!(served["apiVersion"], "a/v2");
        assert_eq!(served["metadata"]["resourceVersion"], "9");
        assert_eq!(served["spec"], 1);
    }
}
