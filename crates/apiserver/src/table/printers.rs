//! How built-in kinds are shown: their columns and the cells of a row.

mod apps;
mod autoscaling;
mod batch;
mod core;
mod networking;
mod pod;
mod rbac;
mod small_groups;
mod storage;

use crate::age;
use crate::behaviour::read::{at, list, text};
use crate::behaviour::selector;
use crate::resource::{Column, Resource};
use interlock_quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Value, json};

/// How one built-in kind is shown.
#[derive(Clone, Copy)]
pub(super) struct Printer {
    headings: &'static [Heading],
    /// The cells of one object, as many as there are headings.
    pub(super) cells: Cells,
}

type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// One column.
pub(super) struct Heading {
    name: &'static str,
    type_name: &'static str,
    format: &'static str,
    priority: i32,
    /// What it shows: a sentence, or `.spec.replicas` for what the schema says about that field.
    about: &'static str,
}

const NAME: Heading = Heading {
    name: "Name",
    type_name: "string",
    format: "name",
    priority: 0,
    about: ".metadata.name",
};
const AGE: Heading = text_column("Age", ".metadata.creationTimestamp");
const CONTAINERS: Heading = wide("Containers", "The names of the template's containers.");
const IMAGES: Heading = wide("Images", "The images of the template's containers.");
const SELECTOR: Heading = wide("Selector", ".spec.selector");

const fn column(name: &'static str, type_name: &'static str, about: &'static str) -> Heading {
    Heading { name, type_name, format: "", priority: 0, about }
}

const fn text_column(name: &'static str, about: &'static str) -> Heading {
    column(name, "string", about)
}

const fn integer_column(name: &'static str, about: &'static str) -> Heading {
    column(name, "integer", about)
}

const fn boolean_column(name: &'static str, about: &'static str) -> Heading {
    column(name, "boolean", about)
}

/// A column that is shown with `-o wide` only.
const fn wide(name: &'static str, about: &'static str) -> Heading {
    Heading { name, type_name: "string", format: "", priority: 1, about }
}

impl Printer {
    /// The column definitions.
    pub(super) fn columns(&self, resource: &Resource) -> Value {
        let define = |heading: &Heading| {
            json!({
                "name": heading.name,
                "type": heading.type_name,
                "format": heading.format,
                "description": described(resource, heading.about),
                "priority": heading.priority,
            })
        };
        Value::Array(self.headings.iter().map(define).collect())
    }
}

/// What the schema says about a field, or the sentence itself if it names none.
pub(super) fn described(resource: &Resource, about: &str) -> String {
    let Some(path) = about.strip_prefix('.') else { return about.to_owned() };
    if resource.schema.nodes.is_empty() {
        return String::new();
    }
    let mut shape = Some(resource.schema.shape());
    for name in path.split('.') {
        shape = shape.and_then(|shape| shape.field(name));
    }
    shape
        .and_then(|shape| shape.node().description.clone())
        .map_or(String::new(), |text| text.to_string())
}

/// How a built-in kind is shown. Kinds without a printer of their own show when they were made.
pub(super) fn printer(resource: &Resource) -> Printer {
    let found = match &*resource.group {
        "" => core::printer(&resource.kind),
        "apps" => apps::printer(&resource.kind),
        "batch" => batch::printer(&resource.kind),
        "autoscaling" => autoscaling::printer(&resource.kind),
        "networking.k8s.io" | "discovery.k8s.io" => networking::printer(&resource.kind),
        "rbac.authorization.k8s.io" => rbac::printer(&resource.kind),
        "storage.k8s.io" => storage::printer(&resource.kind),
        "events.k8s.io" => core::event_printer(&resource.kind),
        group => small_groups::printer(group, &resource.kind),
    };
    found.unwrap_or(Printer { headings: &CREATED, cells: created })
}

static CREATED: [Heading; 2] = [NAME, column("Created At", "date", ".metadata.creationTimestamp")];

fn created(object: &Value, _now: Timestamp) -> Vec<Value> {
    let created = text(object, "metadata.creationTimestamp");
    let shown = if created.is_empty() { "0001-01-01T00:00:00Z" } else { created };
    vec![name(object), json!(shown)]
}

/// What a row says about an object that will not change any more.
pub(super) fn row_conditions(resource: &Resource, object: &Value) -> Option<Value> {
    if !resource.group.is_empty() || &*resource.kind != "Pod" {
        return None;
    }
    let (reason, message) = match text(object, "status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// The columns that the CRDs of volume snapshots have; with us these kinds are built in.
pub(super) fn snapshot_columns(resource: &Resource) -> Option<Vec<Column>> {
    if &*resource.group != "snapshot.storage.k8s.io" {
        return None;
    }
    storage::snapshot_columns(&resource.kind)
}

fn name(object: &Value) -> Value {
    json!(text(object, "metadata.name"))
}

fn age(object: &Value, now: Timestamp) -> Value {
    json!(age::since(at(object, "metadata.creationTimestamp"), now))
}

/// The text, or what is shown in its place if it is empty.
fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}

fn quantity(value: &Value) -> String {
    Quantity::from_value(value).map_or_else(|_| "0".to_owned(), |quantity| quantity.to_string())
}

/// The names and the images of a template's containers.
fn containers(object: &Value, path: &str) -> [Value; 2] {
    ["name", "image"].map(|field| {
        let texts: Vec<&str> =
            list(object, path).iter().map(|container| text(container, field)).collect();
        json!(texts.join(","))
    })
}

fn shown_selector(selector: &Value) -> Value {
    match selector::shown(selector) {
        Ok(shown) => json!(or(&shown, "<none>")),
        Err(selector::Unreadable) => json!("<error>"),
    }
}

/// The texts of a list's elements, with commas between.
fn joined(object: &Value, path: &str) -> String {
    let texts: Vec<&str> = list(object, path).iter().filter_map(Value::as_str).collect();
    texts.join(",")
}

/// Whether a condition of this type has this status.
fn has_condition(object: &Value, condition: &str, status: &str) -> bool {
    list(object, "status.conditions")
        .iter()
        .find(|found| text(found, "type") == condition)
        .is_some_and(|found| text(found, "status") == status)
}
