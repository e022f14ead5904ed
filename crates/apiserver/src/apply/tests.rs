//! What apply and updates do to objects and their owners, one behaviour each.

mod appliers;
mod lists;
mod random;
mod updates;

use super::{ApplyError, Write, apply, track_update};
use crate::schema::{Field, Form, List, ListKind, Map, Node, NodeId, Object, Schema};
use serde_json::{Value, json};
use std::sync::Arc;

/// One object, and those who write it. Each write is a second later than the one before.
struct Desk {
    schema: Schema,
    live: Option<Value>,
    api_version: &'static str,
    subresource: &'static str,
    reset: &'static [&'static [&'static str]],
    second: u32,
}

impl Desk {
    /// An object whose `spec` has these fields, in the short form of [`build`].
    fn with_spec(fields: Value) -> Desk {
        Desk::with_schema(&json!({"fields": {
            "spec": {"fields": fields},
            "status": {"fields": {"phase": "text", "ready": "number"}},
        }}))
    }

    fn with_schema(root: &Value) -> Desk {
        let mut schema = Schema::default();
        schema.root = build(&mut schema, root);
        let (api_version, subresource, reset): (_, _, &[&[&str]]) = ("apps/v1", "", &[]);
        Desk { schema, live: None, api_version, subresource, reset, second: 0 }
    }

    fn write(
        &mut self,
        work: impl FnOnce(&Write<'_>, Option<&Value>) -> Result<Value, ApplyError>,
    ) -> Result<(), ApplyError> {
        self.second += 1;
        let now = format!("2024-01-01T00:00:{:02}Z", self.second);
        let write = Write {
            shape: self.schema.shape(),
            api_version: self.api_version,
            manager: "",
            subresource: self.subresource,
            now: &now,
            reset: self.reset,
        };
        let mut result = work(&write, self.live.as_ref())?;
        result["metadata"]["uid"] = json!("some-uid");
        self.live = Some(result);
        Ok(())
    }

    fn whole(&self, object: Value) -> Value {
        let mut whole =
            json!({"apiVersion": self.api_version, "kind": "Thing", "metadata": {"name": "a"}});
        for (field, value) in object.as_object().into_iter().flatten() {
            match (field.as_str(), value) {
                ("metadata", Value::Object(metadata)) => {
                    for (name, value) in metadata {
                        whole["metadata"][name] = value.clone();
                    }
                }
                _ => whole[field] = value.clone(),
            }
        }
        whole
    }

    fn try_apply(&mut self, manager: &str, object: Value, force: bool) -> Result<(), ApplyError> {
        let applied = self.whole(object);
        self.write(|write, live| apply(&Write { manager, ..*write }, live, &applied, force))
    }

    /// Applies a `spec`, which nobody objects to.
    fn apply(&mut self, manager: &str, spec: Value) {
        self.try_apply(manager, json!({"spec": spec}), false).expect("there is no conflict");
    }

    fn force(&mut self, manager: &str, spec: Value) {
        self.try_apply(manager, json!({"spec": spec}), true).expect("force has no conflicts");
    }

    /// Why applying a `spec` is refused, in the words that the client gets.
    fn refused(&mut self, manager: &str, spec: Value) -> String {
        let refused = self.try_apply(manager, json!({"spec": spec}), false);
        refused.expect_err("it is refused").into_status("apps", "things", "Thing", "a").message
    }

    /// Replaces the object but for its metadata's entries, which the client does not send.
    fn update_object(&mut self, manager: &str, object: Value) {
        let mut new = self.whole(object);
        new["metadata"]["uid"] = json!("some-uid");
        let done = self.write(|write, live| {
            track_update(&Write { manager, ..*write }, live, &mut new)?;
            Ok(new)
        });
        done.expect("updates are not refused");
    }

    fn update(&mut self, manager: &str, spec: Value) {
        self.update_object(manager, json!({"spec": spec}));
    }

    fn live(&self) -> &Value {
        self.live.as_ref().expect("the object was written")
    }

    fn spec(&self) -> &Value {
        &self.live()["spec"]
    }

    fn entries(&self) -> &[Value] {
        self.live()["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
    }

    /// `operation manager` of each entry, in order.
    fn owners(&self) -> Vec<String> {
        let name = |entry: &Value| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("operation"), text("manager"))
        };
        self.entries().iter().map(name).collect()
    }

    fn entry(&self, owner: &str) -> &Value {
        let place = self.owners().iter().position(|name| name == owner);
        place.map_or(&Value::Null, |place| &self.entries()[place])
    }

    /// What an owner owns of the `spec`.
    fn owned(&self, owner: &str) -> &Value {
        &self.entry(owner)["fieldsV1"]["f:spec"]
    }
}

/// Reads a schema in a short form: a scalar's name, `{"fields"}`, `{"map"}`, `{"list"}`, `{"set"}`,
/// `{"keyed", "by"}`, with `"atomic"`, `"open"`, `"default"`, `"name"` beside them.
fn build(schema: &mut Schema, short: &Value) -> NodeId {
    let flag = |name: &str| short.get(name).is_some_and(|flag| *flag == true);
    let list = |schema: &mut Schema, items: &Value, kind| {
        Form::List(List { items: build(schema, items), kind })
    };
    let form = match short.as_str() {
        Some("text") => Form::String,
        Some("number") => Form::Integer,
        Some("flag") => Form::Boolean,
        Some("int-or-string") => Form::IntOrString,
        Some(_) => Form::Any,
        None => {
            if let Some(values) = short.get("map") {
                Form::Map(Map { values: build(schema, values), is_atomic: flag("atomic") })
            } else if let Some(items) = short.get("list") {
                list(schema, items, ListKind::Atomic)
            } else if let Some(items) = short.get("set") {
                list(schema, items, ListKind::Set)
            } else if let Some(items) = short.get("keyed") {
                let by = short["by"].as_array().into_iter().flatten();
                let by = by.filter_map(Value::as_str).map(Arc::from).collect();
                list(schema, items, ListKind::Keyed(by))
            } else if let Some(scalar) = short.get("scalar") {
                let node = build(schema, scalar);
                schema.nodes[node.0 as usize].form.clone()
            } else {
                let mut object = Object { is_atomic: flag("atomic"), ..Object::default() };
                object.keeps_unknown = flag("open");
                object.is_embedded_resource = flag("embedded");
                for (name, field) in short["fields"].as_object().into_iter().flatten() {
                    let node = build(schema, field);
                    object.fields.insert(Arc::from(&**name), Field { node, ..Field::default() });
                }
                Form::Object(object)
            }
        }
    };
    let name = short.get("name").and_then(Value::as_str).map(Arc::from);
    schema.add(Node { form, name, default: short.get("default").cloned(), ..Node::default() })
}
