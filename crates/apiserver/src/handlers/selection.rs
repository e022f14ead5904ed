//! Selection: which of the objects in a range a list, a watch or a collection's deletion is about.

use super::render::Rendering;
use crate::behaviour;
use crate::call::Call;
use crate::object::{self, View};
use crate::request::ListOptions;
use crate::resource::Resource;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::Status;
use interlock_store::Versioned;
use serde_json::{Value, json};
use std::sync::Arc;

/// Label and field selectors of one request.
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// Only in namespaces of this name; empty where the range says so already.
    namespace: String,
    resource: Arc<Resource>,
}

/// That objects cannot be selected by a field, in upstream's words: kinds with fields of their own have others.
fn not_selectable(resource: &Resource, field: &str) -> String {
    match (&*resource.group, &*resource.plural) {
        ("batch", "jobs") => format!("field label {field:?} not supported for Job"),
        (
            "",
            "pods"
            | "nodes"
            | "replicationcontrollers"
            | "events"
            | "namespaces"
            | "secrets"
            | "services",
        )
        | ("certificates.k8s.io", _) => format!("field label not supported: {field}"),
        _ if resource.is_custom() => format!("field label not supported: {field}"),
        _ => format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        ),
    }
}

impl Selection {
    /// The selectors of a request; what cannot be selected by is refused.
    pub(crate) fn new(call: &Call, options: &ListOptions) -> Result<Self, Status> {
        let selection = Selection {
            labels: LabelSelector::parse(&options.label_selector)?,
            fields: FieldSelector::parse(&options.field_selector)?,
            namespace: String::new(),
            resource: Arc::clone(&call.resource),
        };
        let nothing = json!({});
        selection.fields.only_fields(
            |field| behaviour::selectable_fields(&call.resource, &nothing, field).is_some(),
            |field| not_selectable(&call.resource, field),
        )?;
        Ok(selection)
    }

    /// The same, but only in namespaces of this name, for a range that goes over all clusters.
    #[must_use]
    pub(crate) fn in_namespaces(mut self, name: &str) -> Self {
        name.clone_into(&mut self.namespace);
        self
    }

    /// Whether everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.namespace.is_empty()
    }

    /// The one name that can be selected, if there is only one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    /// Whether a stored object is selected.
    pub(crate) fn takes(&self, versioned: &Versioned) -> bool {
        if !self.namespace.is_empty()
            && crate::storage::parts(&versioned.key.row).1 != self.namespace
        {
            return false;
        }
        if !self.labels.is_empty() {
            let view = View::of(&versioned.value);
            if !self.labels.matches(|key| view.label(key)) {
                return false;
            }
        }
        if self.fields.is_empty() {
            return true;
        }
        let (_, namespace, name) = crate::storage::parts(&versioned.key.row);
        let mut decoded: Option<Value> = None;
        // Names are in the row: most field selectors ask for nothing else.
        let only_names = self.fields.requirements().iter().all(|requirement| {
            matches!(requirement.field.as_str(), "metadata.name" | "metadata.namespace")
        });
        if !only_names {
            let mut object = object::decode(versioned);
            behaviour::to_face(&self.resource, &mut object);
            decoded = Some(object);
        }
        self.fields.matches(|field| match (field, &decoded) {
            ("metadata.name", _) => Some(name.to_owned()),
            ("metadata.namespace", _) => Some(namespace.to_owned()),
            (_, Some(object)) => behaviour::selectable_fields(&self.resource, object, field),
            (_, None) => None,
        })
    }

    /// Whether an object of the shared layer is selected.
    pub(crate) fn takes_object(&self, object: &Value) -> bool {
        let labels = object::metadata(object).get("labels");
        self.labels.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
            && self
                .fields
                .matches(|field| behaviour::selectable_fields(&self.resource, object, field))
    }
}

/// How a request's objects are found and shown.
pub(crate) struct Reading {
    /// Which.
    pub(crate) selection: Selection,
    /// How.
    pub(crate) rendering: Rendering,
    /// Whether the request is about all clusters.
    pub(crate) is_wildcard: bool,
}
