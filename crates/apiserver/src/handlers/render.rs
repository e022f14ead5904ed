//! Rendering: stored objects as a client wants to see them.

use crate::behaviour;
use crate::call::Call;
use crate::clusters;
use crate::negotiate::{self, Accepted, Encoding, MetaVersion};
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
    /// In which version tables and metadata are made.
    meta_version: MetaVersion,
    /// How the events of a watch are written down.
    encoding: Encoding,
    now: Timestamp,
}

impl Rendering {
    /// For the objects of a call.
    pub(crate) fn new(call: &Call, form: Form, is_wildcard: bool) -> Self {
        let resource = Arc::clone(&call.resource);
        let has_defaults = resource.is_custom() && resource.schema.has_defaults();
        Rendering {
            head: Head::new(&resource.kind, &resource.api_version()),
            decodes: has_defaults || is_wildcard || behaviour::has_face(&resource),
            form,
            is_wildcard,
            meta_version: MetaVersion::default(),
            encoding: Encoding::default(),
            now: call.now,
            resource,
        }
    }

    /// The same in the version and the encoding that the client accepts.
    #[must_use]
    pub(crate) fn for_client(self, accepted: &Accepted) -> Self {
        Rendering { meta_version: accepted.meta_version, encoding: accepted.encoding, ..self }
    }

    /// How the events of a watch are written down.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The metadata of an object alone.
    pub(crate) fn partial(&self, object: &Value) -> Value {
        let mut partial = object::partial(object);
        partial["apiVersion"] = json!(self.meta_version.api_version());
        partial
    }

    /// Whether the objects of a list name their kind. Those of built-in kinds do not, as upstream has it: the list
    /// says it for all of them, and typed clients compare.
    fn names_kind_in_lists(&self) -> bool {
        self.resource.is_custom()
    }

    /// Appends one object of a list of whole objects.
    pub(crate) fn write_in_list(
        &self,
        out: &mut Vec<u8>,
        stored: &Stored,
        row: &str,
        revision: Revision,
    ) {
        if self.names_kind_in_lists() {
            self.write(out, stored, row, revision);
        } else if self.decodes {
            self.write_value_in_list(out, self.whole(stored, row, revision));
        } else {
            object::write_json(out, stored.bytes(), Head::none(), revision);
        }
    }

    /// The same for an object that is not stored.
    pub(crate) fn write_value_in_list(&self, out: &mut Vec<u8>, mut object: Value) {
        as_in_list(&mut object, &self.resource);
        object::write_value(out, &object);
    }

    /// Whether objects are taken apart before they are shown: that takes many times as long as a copy.
    pub(crate) fn takes_long(&self) -> bool {
        self.form != Form::Json || self.decodes
    }

    /// In which version tables and metadata are made.
    pub(crate) fn meta_version(&self) -> MetaVersion {
        self.meta_version
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
                object::write_value(out, &self.partial(&self.whole(stored, row, revision)));
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
        behaviour::to_face(&self.resource, object);
        if self.resource.is_custom() {
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
        table::table(&self.resource, objects, metadata, self.table_options(include, with_columns))
    }

    /// A bookmark as a table. What marks the end of the first part of a watch is shown also to those who want to see
    /// nothing of the objects.
    pub(crate) fn bookmark(&self, object: Value, with_columns: bool) -> Value {
        let include = match self.form {
            Form::Table(table::IncludeObject::Object) => table::IncludeObject::Object,
            Form::Table(_) | Form::Json | Form::Metadata => table::IncludeObject::Metadata,
        };
        let metadata = table::single_metadata(&object);
        let options = self.table_options(include, with_columns);
        table::table(&self.resource, &[object], metadata, options)
    }

    fn table_options(
        &self,
        include: table::IncludeObject,
        with_columns: bool,
    ) -> table::TableOptions {
        let api_version = self.meta_version.api_version();
        table::TableOptions { include, with_columns, api_version, now: self.now }
    }

    /// An object that was just written, from the bytes that were stored if they can be served as they are.
    pub(crate) fn written(&self, mut object: Value, stored: Option<(&[u8], Revision)>) -> Vec<u8> {
        let mut out = Vec::new();
        // It has all defaults: those of the schema were put in before it was stored.
        let is_as_stored = self.form == Form::Json && !behaviour::has_face(&self.resource);
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
            Form::Metadata => self.partial(&object),
            Form::Table(_) => self.table(&[object], true),
        }
    }
}

/// An object as a list shows it: lists of built-in kinds name the kind once, for all.
pub(crate) fn as_in_list(object: &mut Value, resource: &Resource) {
    if let Some(fields) = object.as_object_mut().filter(|_| !resource.is_custom()) {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
}
