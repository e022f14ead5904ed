//! The answer to a list: small ones at once, large ones part by part as the client reads them.
//!
//! A list that waits for its client holds the stored objects, which are shared with the store, and one part of the answer;
//! not the answer.

use super::render::{Form, Rendering};
use crate::body::{Beside, PART_BYTES};
use crate::call::Call;
use crate::http::{self, Body};
use crate::object;
use ::http::Response;
use interlock_store::Versioned;
use serde_json::{Value, json};

/// No part is made of more objects.
const OBJECTS_AT_ONCE: usize = 256;
/// What an object adds to an answer beside its bytes, about.
const OBJECT_OVERHEAD: usize = 64;

/// A list that is being written.
pub(super) struct Listing {
    rendering: Rendering,
    /// What comes before the items, until it is written.
    opening: Vec<u8>,
    stored: std::vec::IntoIter<Versioned>,
    /// Objects that are not stored as they are shown. They come last.
    shared: std::vec::IntoIter<Value>,
    weight_bytes: usize,
    /// Where parts are made that take long.
    beside: Option<Beside>,
    has_items: bool,
    is_closed: bool,
}

impl Listing {
    /// Of these objects, with the metadata of the list.
    pub(super) fn new(
        call: &Call,
        rendering: Rendering,
        metadata: Value,
        stored: Vec<Versioned>,
    ) -> Listing {
        let weight_bytes =
            stored.iter().map(|item| item.value.bytes().len() + OBJECT_OVERHEAD).sum();
        let beside = rendering.takes_long().then(|| call.server.heavy().parts(&call.cluster.id));
        Listing {
            opening: opening(call, &rendering, metadata),
            rendering,
            beside,
            stored: stored.into_iter(),
            shared: Vec::new().into_iter(),
            weight_bytes,
            has_items: false,
            is_closed: false,
        }
    }

    /// With objects that are not stored.
    pub(super) fn with_shared(self, shared: Vec<Value>) -> Listing {
        Listing { shared: shared.into_iter(), ..self }
    }

    /// The answer.
    pub(super) fn answer(mut self) -> Response<Body> {
        let weight = self.weight_bytes;
        if weight > PART_BYTES {
            let beside = self.beside.take();
            let body = Body::parts(Box::new(move || self.next_part()), weight as u64);
            return http::json_body(match beside {
                Some(beside) => body.made_beside(beside),
                None => body,
            });
        }
        let mut out = Vec::with_capacity(weight + 256);
        while self.write_part(&mut out) {}
        http::json_bytes(200, out)
    }

    fn next_part(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(PART_BYTES);
        while out.len() < PART_BYTES / 2 && self.write_part(&mut out) {}
        (!out.is_empty()).then_some(out)
    }

    /// Writes some more; false if there is nothing more to write.
    fn write_part(&mut self, out: &mut Vec<u8>) -> bool {
        out.append(&mut self.opening);
        if self.is_closed {
            return false;
        }
        let batch = self.next_batch();
        if !batch.is_empty() {
            self.write_stored(out, &batch);
            return true;
        }
        let shared: Vec<Value> = self.shared.by_ref().take(OBJECTS_AT_ONCE).collect();
        if !shared.is_empty() {
            self.write_values(out, shared);
            return true;
        }
        out.extend_from_slice(b"]}");
        self.is_closed = true;
        false
    }

    fn next_batch(&mut self) -> Vec<Versioned> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < PART_BYTES / 2 && batch.len() < OBJECTS_AT_ONCE {
            let Some(item) = self.stored.next() else { break };
            bytes += item.value.bytes().len();
            batch.push(item);
        }
        batch
    }

    fn write_stored(&mut self, out: &mut Vec<u8>, batch: &[Versioned]) {
        if self.rendering.form() == Form::Json {
            for item in batch {
                self.next_item(out);
                let (value, row) = (&item.value, &item.key.row);
                self.rendering.write_in_list(out, value, row, item.modified);
            }
            return;
        }
        let whole =
            |item: &Versioned| self.rendering.whole(&item.value, &item.key.row, item.modified);
        let objects = batch.iter().map(whole).collect();
        self.write_values(out, objects);
    }

    fn write_values(&mut self, out: &mut Vec<u8>, objects: Vec<Value>) {
        match self.rendering.form() {
            Form::Json => {
                for object in objects {
                    self.next_item(out);
                    self.rendering.write_value_in_list(out, object);
                }
            }
            Form::Metadata => {
                for object in &objects {
                    self.next_item(out);
                    object::write_value(out, &self.rendering.partial(object));
                }
            }
            Form::Table(_) => {
                let table = self.rendering.table(&objects, false);
                for row in table["rows"].as_array().into_iter().flatten() {
                    self.next_item(out);
                    object::write_value(out, row);
                }
            }
        }
    }

    fn next_item(&mut self, out: &mut Vec<u8>) {
        if self.has_items {
            out.push(b',');
        }
        self.has_items = true;
    }
}

/// What comes before the first item.
fn opening(call: &Call, rendering: &Rendering, metadata: Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let (head, items) = match rendering.form() {
        Form::Json => {
            out.extend_from_slice(b"{\"kind\":");
            object::write_value(&mut out, &json!(&*call.resource.list_kind));
            out.extend_from_slice(b",\"apiVersion\":");
            object::write_value(&mut out, &json!(call.resource.api_version()));
            out.extend_from_slice(b",\"metadata\":");
            object::write_value(&mut out, &metadata);
            out.extend_from_slice(b",\"items\":[");
            return out;
        }
        Form::Metadata => {
            let api_version = rendering.meta_version().api_version();
            let kind = "PartialObjectMetadataList";
            let head = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
            (head, &b",\"items\":["[..])
        }
        Form::Table(_) => {
            let mut head = rendering.table(&[], true);
            head["metadata"] = metadata;
            if let Some(fields) = head.as_object_mut() {
                fields.remove("rows");
            }
            (head, &b",\"rows\":["[..])
        }
    };
    object::write_value(&mut out, &head);
    // The closing brace comes after the items.
    out.pop();
    out.extend_from_slice(items);
    out
}
