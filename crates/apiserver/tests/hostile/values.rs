//! Values: texts and numbers that parsers trip over, random JSON, objects made from the server's own schemas, and
//! ways to damage all of them.

use crate::asking::Numbers;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Texts that mean something to one parser or another, or nearly do.
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "default",
    "x-y",
    "X",
    "-",
    ".",
    "..",
    "/",
    "a/b",
    "*",
    "%2f",
    "\u{0}",
    "\n",
    "ü",
    "𝒳",
    "\u{202e}",
    "true",
    "null",
    "0",
    "-1",
    "1e3",
    "9223372036854775808",
    "100m",
    "1Ki",
    "1.5Gi",
    "-1e-9",
    "1e999999999",
    "0.0000000001",
    "999999999999999999999999999999",
    "12E",
    "Infinity",
    "NaN",
    "10.0.0.1",
    "10.0.0.0/33",
    "::1",
    "fe80::/129",
    "1.2.3.4.5",
    "2026-01-01T00:00:00Z",
    "2026-13-41T99:99:99Z",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "1h",
    "-5m",
    "1y2w3d4h",
    "99999999999h",
    "*/5 * * * *",
    "@every 1s",
    "99 99 99 99 99",
    "0-59/0 * * * *",
    "TZ=x * * * * *",
    "aGVsbG8=",
    "aGVsbG8",
    "====",
    "v1",
    "apps/v1",
    "a/b/c",
    "50%",
    "101%",
    "-1%",
    "Always",
    "TCP",
    "ClusterIP",
    "Opaque",
    "Foreground",
    "self.x > 0",
    "[[",
    "(a{999}){999}",
    "(?P<x>",
    "^[a-z]+$",
    ".spec.x",
    "{.items[*]",
    "$patch",
    "kube-root-ca.crt",
    "system:masters",
    "kubernetes.io/tls",
    "kubernetes",
    "interlock.dev/contents",
    "orphan",
    "foregroundDeletion",
];

const NUMBERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    7,
    80,
    127,
    128,
    255,
    256,
    443,
    1000,
    3600,
    65535,
    65536,
    -65536,
    2147483647,
    2147483648,
    -2147483648,
    -2147483649,
    4294967295,
    4294967296,
    9007199254740993,
    9223372036854775807,
    -9223372036854775808,
];

pub(crate) fn text(numbers: &mut Numbers) -> String {
    match numbers.below(12) {
        0 => numbers.pick(TEXTS).repeat(1 + numbers.below(300)),
        1 => format!("{}{}", numbers.pick(TEXTS), numbers.pick(TEXTS)),
        2 => (0..numbers.below(12))
            .filter_map(|_| char::from_u32(numbers.below(0x11000) as u32))
            .collect(),
        _ => (*numbers.pick(TEXTS)).to_owned(),
    }
}

pub(crate) fn number(numbers: &mut Numbers) -> Value {
    match numbers.below(6) {
        0 => json!(numbers.next()),
        1 => json!(f64::from_bits(numbers.next())),
        2 => json!(*numbers.pick(NUMBERS) as f64 + 0.5),
        _ => json!(numbers.pick(NUMBERS)),
    }
}

/// Any JSON at all.
pub(crate) fn any(numbers: &mut Numbers, depth: usize) -> Value {
    match numbers.below(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(numbers.one_in(2)),
        2 => number(numbers),
        3 | 4 => json!(text(numbers)),
        5 => (0..numbers.below(4)).map(|_| any(numbers, depth - 1)).collect(),
        6 => {
            // Deep, but mostly not deeper than what is let in.
            let levels = 1 + numbers.below(140);
            let name = text(numbers);
            (0..levels).fold(json!(1), |inner, level| {
                if level % 2 == 0 { json!([inner]) } else { json!({ name.as_str(): inner }) }
            })
        }
        _ => {
            let fields = (0..numbers.below(4)).map(|_| (text(numbers), any(numbers, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

/// Damages a value somewhere.
pub(crate) fn damage(value: &mut Value, numbers: &mut Numbers) {
    let inner = match value {
        Value::Object(map) if !map.is_empty() && !numbers.one_in(4) => {
            let place = numbers.below(map.len());
            map.values_mut().nth(place)
        }
        Value::Array(list) if !list.is_empty() && !numbers.one_in(4) => {
            let place = numbers.below(list.len());
            list.get_mut(place)
        }
        _ => None,
    };
    if let Some(inner) = inner {
        return damage(inner, numbers);
    }
    match (value, numbers.below(6)) {
        (Value::Object(map), 0) => {
            map.insert(text(numbers), any(numbers, 2));
        }
        (Value::Object(map), 1) if !map.is_empty() => {
            let name = map.keys().nth(numbers.below(map.len())).cloned().unwrap_or_default();
            map.remove(&name);
        }
        (Value::Array(list), 0 | 1) if !list.is_empty() => {
            let copy = list[numbers.below(list.len())].clone();
            (0..1 + numbers.below(3)).for_each(|_| list.push(copy.clone()));
        }
        (value, 2) => *value = Value::Null,
        (value, 3) => *value = json!([value.take()]),
        (value, 4) => *value = json!({ "x": value.take() }),
        (value, _) => *value = any(numbers, 2),
    }
}

/// Damages bytes.
pub(crate) fn damage_bytes(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..1 + numbers.below(4) {
        let place = numbers.below(bytes.len() + 1);
        match numbers.below(6) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, numbers.next() as u8),
            2 => {
                let odd: &[&[u8]] = &[
                    b"\xff\xfe",
                    b"\"a\":1,\"a\":2,",
                    b"1e999",
                    b"[[[[",
                    b"\\ud800",
                    b"\0",
                    b"{}",
                ];
                let odd = *numbers.pick(odd);
                bytes.splice(place..place, odd.iter().copied());
            }
            3 => {
                let end = (place + numbers.below(64)).min(bytes.len());
                let piece: Vec<u8> = bytes[place..end].to_vec();
                let at = numbers.below(bytes.len() + 1);
                bytes.splice(at..at, piece);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << numbers.below(8);
                }
            }
        }
    }
}

/// The schemas that the server publishes, by their names.
#[derive(Default)]
pub(crate) struct Schemas {
    by_name: BTreeMap<String, Value>,
}

impl Schemas {
    /// Takes in an OpenAPI document.
    pub(crate) fn learn(&mut self, document: &Value) {
        let schemas = document["components"]["schemas"].as_object();
        for (name, schema) in schemas.into_iter().flatten() {
            self.by_name.insert(name.clone(), schema.clone());
        }
    }

    /// An object of a kind, with some of its fields.
    pub(crate) fn object(&self, numbers: &mut Numbers, group_version: &str, kind: &str) -> Value {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let is_it = |schema: &&Value| {
            let all = schema["x-kubernetes-group-version-kind"].as_array();
            all.into_iter().flatten().any(|one| {
                one["group"] == group && one["version"] == version && one["kind"] == kind
            })
        };
        let schema = self.by_name.values().find(is_it).cloned().unwrap_or_else(|| {
            let open = json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {"type": "integer"}}});
            json!({"type": "object", "properties": {"spec": open, "status": open, "metadata": {}}})
        });
        // Most objects with many fields are refused for one of them: some have few.
        let depth = 1 + numbers.below(7);
        let mut object = self.value(numbers, &schema, depth);
        if !object.is_object() {
            object = json!({});
        }
        object["apiVersion"] = json!(group_version);
        object["kind"] = json!(kind);
        object
    }

    fn value(&self, numbers: &mut Numbers, schema: &Value, depth: usize) -> Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        if let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) {
            let Some(inner) = self.by_name.get(name) else { return json!({}) };
            return self.value(numbers, inner, depth);
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !numbers.one_in(8)
        {
            return numbers.pick(allowed).clone();
        }
        match schema["type"].as_str() {
            Some("object") if schema["additionalProperties"].is_object() => {
                let fields = (0..numbers.below(3)).map(|_| {
                    (
                        text(numbers),
                        self.value(
                            numbers,
                            &schema["additionalProperties"],
                            depth.saturating_sub(1),
                        ),
                    )
                });
                Value::Object(fields.collect())
            }
            Some("object") => self.fields(numbers, schema, depth),
            Some("array") if depth == 0 => json!([]),
            Some("array") => {
                let count = numbers.below(3);
                (0..count).map(|_| self.value(numbers, &schema["items"], depth - 1)).collect()
            }
            Some("integer") => json!(numbers.pick(NUMBERS)),
            Some("number") => number(numbers),
            Some("boolean") => json!(numbers.one_in(2)),
            Some("string") => json!(text(numbers)),
            _ => any(numbers, 1),
        }
    }

    fn fields(&self, numbers: &mut Numbers, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let is_needed = required.iter().any(|one| one == name.as_str());
            let is_main = matches!(name.as_str(), "spec" | "metadata" | "data" | "rules");
            if is_needed || (depth > 0 && (is_main || numbers.one_in(6))) {
                object.insert(name.clone(), self.value(numbers, inner, depth.saturating_sub(1)));
            }
        }
        Value::Object(object)
    }
}
