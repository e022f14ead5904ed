//! The words of a JSON schema, read leniently: a word of the wrong type is as if it were not there,
//! because the CRD's own types were checked when it was decoded.

use serde_json::{Map, Value};

pub(super) type Json = Map<String, Value>;

static NOTHING: std::sync::LazyLock<Json> = std::sync::LazyLock::new(Map::new);

/// A text; empty if there is none.
pub(super) fn text<'j>(schema: &'j Json, word: &str) -> &'j str {
    schema.get(word).and_then(Value::as_str).unwrap_or("")
}

/// A flag; false if there is none.
pub(super) fn flag(schema: &Json, word: &str) -> bool {
    schema.get(word).and_then(Value::as_bool).unwrap_or(false)
}

/// A number.
pub(super) fn number(schema: &Json, word: &str) -> Option<f64> {
    schema.get(word).and_then(Value::as_f64)
}

/// A count.
pub(super) fn count(schema: &Json, word: &str) -> Option<u64> {
    let value = schema.get(word)?;
    value.as_u64().or_else(|| value.as_i64().map(|_| 0))
}

/// The schemas in an object: `properties`.
pub(super) fn schemas_by_name<'j>(
    schema: &'j Json,
    word: &str,
) -> impl Iterator<Item = (&'j str, &'j Json)> + use<'j> {
    let object = schema.get(word).and_then(Value::as_object).unwrap_or(&NOTHING);
    object.iter().map(|(name, value)| (name.as_str(), value.as_object().unwrap_or(&NOTHING)))
}

/// The schema of one property.
pub(super) fn property<'j>(schema: &'j Json, name: &str) -> Option<&'j Json> {
    let properties = schema.get("properties")?.as_object()?;
    properties.get(name).map(|value| value.as_object().unwrap_or(&NOTHING))
}

/// The schemas in a list: `allOf`.
pub(super) fn schemas<'j>(
    schema: &'j Json,
    word: &str,
) -> impl Iterator<Item = &'j Json> + use<'j> {
    let list = schema.get(word).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().map(|value| value.as_object().unwrap_or(&NOTHING))
}

/// The schema under a word: `items`, `not`.
pub(super) fn schema_at<'j>(schema: &'j Json, word: &str) -> Option<&'j Json> {
    schema.get(word).and_then(Value::as_object)
}

/// The texts in a list: `required`.
pub(super) fn texts<'j>(schema: &'j Json, word: &str) -> Vec<&'j str> {
    let list = schema.get(word).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect()
}

/// Whether something stands under a word; `null` is nothing.
pub(super) fn is_set(schema: &Json, word: &str) -> bool {
    schema.get(word).is_some_and(|value| !value.is_null())
}

/// Whether it is the list `[{type: integer}, {type: string}]` that goes with
/// `x-kubernetes-int-or-string`.
pub(super) fn is_int_or_string_list(list: Option<&Value>) -> bool {
    let Some(Value::Array(list)) = list else { return false };
    let is_only_type = |value: &Value, name: &str| {
        value.as_object().is_some_and(|object| object.len() == 1 && text(object, "type") == name)
    };
    matches!(&list[..], [one, two] if is_only_type(one, "integer") && is_only_type(two, "string"))
}

/// Whether `anyOf` only repeats what `x-kubernetes-int-or-string` says.
pub(super) fn repeats_in_any_of(schema: &Json) -> bool {
    is_int_or_string_list(schema.get("anyOf"))
}

/// Whether the first of `allOf` only repeats it.
pub(super) fn repeats_in_all_of(schema: &Json) -> bool {
    schemas(schema, "allOf").next().is_some_and(repeats_in_any_of)
}
