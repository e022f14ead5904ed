//! Quiet refusals: what a refused write of a Secret says must not show what is in it. Clients log refusals.

use crate::brought::Brought;
use crate::call::{Call, decode_body};
use crate::decode;
use crate::object;
use crate::request::Verb;
use crate::status::Status;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

/// What is where a value stood.
const HIDDEN: &str = "***";
/// Shorter values are words that refusals have anyway, and no secrets.
const SHORTEST_BYTES: usize = 4;

/// The values of a Secret that is to be written: those that came, and those that are stored.
pub(super) struct Values {
    call: Call,
    content_type: String,
    body: Bytes,
}

impl Values {
    /// What to look for in the refusal of this request; nothing if it is no write of a Secret.
    pub(super) fn of(call: &Call, brought: &Brought) -> Option<Values> {
        let is_secret = call.resource.group.is_empty() && &*call.resource.plural == "secrets";
        let is_write = matches!(brought.verb, Verb::Create | Verb::Update | Verb::Patch);
        (is_secret && is_write).then(|| Values {
            call: call.for_name(&call.name, &call.namespace),
            content_type: brought.content_type.clone(),
            body: brought.body.clone(),
        })
    }

    /// The refusal without them.
    pub(super) async fn taken_out_of(&self, mut status: Status) -> Status {
        let mut values = Vec::new();
        if let Ok(Some(live)) = self.call.live().await {
            gather_data(&live.object, &mut values);
        }
        for body in self.bodies() {
            gather_data(&body, &mut values);
            for operation in body.as_array().into_iter().flatten() {
                gather(&operation["value"], &mut values);
            }
        }
        // A long one first: a short one may be a part of it.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        let hide = |text: &mut String| {
            for value in
                values.iter().filter(|value| text.contains(value.as_str())).collect::<Vec<_>>()
            {
                *text = text.replace(value.as_str(), HIDDEN);
            }
        };
        status.details.warnings.iter_mut().for_each(hide);
        hide(&mut status.message);
        hide(&mut status.details.name);
        for cause in &mut status.details.causes {
            hide(&mut cause.message);
            hide(&mut cause.field);
        }
        status
    }

    /// The body in each form in which it can be read.
    fn bodies(&self) -> impl Iterator<Item = Value> {
        let as_object = decode_body(&self.content_type, &self.body, false).ok();
        let as_json = decode::json(&self.body).ok().map(|decoded| decoded.value);
        let as_yaml = decode::yaml(&self.body).ok().map(|decoded| decoded.value);
        as_object.map(|incoming| incoming.value).into_iter().chain(as_json).chain(as_yaml)
    }
}

fn gather_data(secret: &Value, values: &mut Vec<String>) {
    for field in ["data", "stringData"] {
        gather(secret.get(field).unwrap_or(&Value::Null), values);
    }
    // `kubectl apply` keeps the whole object here.
    let annotations = object::metadata(secret).get("annotations");
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    gather(annotations.and_then(|all| all.get(applied)).unwrap_or(&Value::Null), values);
}

/// All texts, as they are, decoded and encoded.
fn gather(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= SHORTEST_BYTES => {
            values.push(text.clone());
            values.push(STANDARD.encode(text));
            let decoded =
                STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            values.extend(decoded.filter(|decoded| decoded.len() >= SHORTEST_BYTES));
        }
        Value::Array(list) => list.iter().for_each(|inner| gather(inner, values)),
        Value::Object(map) => map.values().for_each(|inner| gather(inner, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
