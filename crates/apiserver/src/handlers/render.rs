//! Rendering: stored objects as a client wants to see them.

use super::call::Call;
use crate::behaviour;
use crate::clusters;
use crate::negotiate;
use crate::object::{self, Head};
use crate::resource::Resource;
use crate::schema;
use crate::storage;
use crate::table;
use interlock_store::{Revision, Value as Stored};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// Which cluster an object is from, in answers about all clusters. Never stored.
const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// The form in which a client takes objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    Json,
    /// Rows, carrying this much of each object.
    Table(table::IncludeObject),
    /// The metadata only.
    Metadata,
}

impl Form {
    /// The form that was negotiated.
    pub(crate) fn of(asked: negotiate::Rendering, include: table::IncludeObject) -> Form {
        use negotiate::Rendering as Asked;
        match asked {
            Asked::Table => Form::Table(include),
            Asked::PartialObjectMetadata | Asked::PartialObjectMetadataList => Form::Metadata,
            Asked::Plain | Asked::AggregatedDiscovery => Form::Json,
        }
    }
}

/// How the objects of one request are rendered.
pub(crate) struct Rendering {
    resource: Arc<Resource>,
    head: Head,
    form: Form,
    /// Set when the request is about all clusters.
    is_wildcard: bool,
    /// Whether objects must be decoded: they are not served as they are stored.
    decodes: bool,
    now: Timestamp,
}

impl Rendering {
    /// For the objects of a call.
    pub(crate) fn new(call: &Call, form: Form, is_wildcard: bool) -> Self {
        let resource = Arc::clone(&call.resource);
        let has_defaults = resource.is_custom() && resource.schema.has_defaults();
        Rendering {
            head: Head::new(&resource.kind, &resource.api_version()),
            decodes: has_defaults || is_wildcard || &*resource.group == "events.k8s.io",
            form,
            is_wildcard,
            now: call.now,
            resource,
        }
    }

    /// The form.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Appends one object in the form that was asked for; as a table it is a table of one row.
    pub(crate) fn write(&self, out: &mut Vec<u8>, stored: &Stored, row: &str, revision: Revision) {
        match self.form {
            Form::Json if !self.decodes => {
                object::write_json(out, stored.bytes(), &self.head, revision);
            }
            Form::Json => object::write_value(out, &self.whole(stored, row, revision)),
            Form::Metadata => {
                object::write_value(out, &object::partial(&self.whole(stored, row, revision)));
            }
            Form::Table(_) => {
                object::write_value(out, &self.table(&[self.whole(stored, row, revision)], true));
            }
        }
    }

    /// The whole object as this request sees it.
    pub(crate) fn whole(&self, stored: &Stored, row: &str, revision: Revision) -> Value {
        let mut object = object::decode_at(stored, revision);
        self.face(&mut object);
        if self.is_wildcard {
            let (id, _, _) = storage::parts(row);
            object::put_at(
                &mut object,
                &["metadata", "annotations", CLUSTER_ANNOTATION],
                json!(clusters::name_in(id)),
            );
        }
        object
    }

    /// Turns an object from the stored form into the version that was asked for.
    pub(crate) fn face(&self, object: &mut Value) {
        if &*self.resource.group == "events.k8s.io" {
            behaviour::events::to_events_v1(object);
        } else if self.resource.is_custom() {
            schema::apply_defaults(object, self.resource.schema.shape());
            object["apiVersion"] = json!(self.resource.api_version());
        }
    }

    /// Whole objects as a table.
    pub(crate) fn table(&self, objects: &[Value], with_columns: bool) -> Value {
        let include = match self.form {
            Form::Table(include) => include,
            Form::Json | Form::Metadata => table::IncludeObject::Metadata,
        };
        let metadata = objects.first().map_or_else(|| json!({}), table::single_metadata);
        let options = table::TableOptions { include, with_columns, now: self.now };
        table::table(&self.resource, objects, metadata, options)
    }

    /// An object that was just written, from the bytes that were stored if they can be served as they are.
    pub(crate) fn written(&self, mut object: Value, stored: Option<(&[u8], Revision)>) -> Vec<u8> {
        let mut out = Vec::new();
        // It has all defaults: those of the schema were put in before it was stored.
        let is_as_stored = self.form == Form::Json && &*self.resource.group != "events.k8s.io";
        if let Some((bytes, revision)) = stored.filter(|_| is_as_stored) {
            object::write_json(&mut out, bytes, &self.head, revision);
            return out;
        }
        self.face(&mut object);
        object::write_value(&mut out, &self.value(object));
        out
    }

    /// A whole object in the form that was asked for.
    pub(crate) fn value(&self, object: Value) -> Value {
        match self.form {
            Form::Json => object,
            Form::Metadata => object::partial(&object),
            Form::Table(_) => self.table(&[object], true),
        }
    }
}
