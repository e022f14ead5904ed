//! The `Table` form of objects: the columns that `kubectl get` shows, with upstream's texts.

mod custom;
pub(crate) mod jsonpath;
mod printers;

use crate::resource::Resource;
pub(crate) use custom::MOST_COLUMNS;

use custom::Custom;
use jiff::Timestamp;
use printers::Printer;
use serde_json::{Value, json};

/// What each row holds of its object, beside the cells: `includeObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, as a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter `includeObject`; nothing means the metadata. None: 400,
    /// unrecognized.
    pub(crate) fn parse(text: &str) -> Option<IncludeObject> {
        match text {
            "None" => Some(IncludeObject::None),
            "" | "Metadata" => Some(IncludeObject::Metadata),
            "Object" => Some(IncludeObject::Object),
            _ => None,
        }
    }
}

/// How a Table is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableOptions {
    /// What each row holds of its object.
    pub(crate) include: IncludeObject,
    /// Whether the columns are described: in a watch only the first event does.
    pub(crate) with_columns: bool,
    /// The version of the table itself, and of the metadata in its rows.
    pub(crate) api_version: &'static str,
    /// What ages are counted from.
    pub(crate) now: Timestamp,
}

/// How the objects of a kind are laid out in rows.
enum Layout {
    BuiltIn(Printer),
    Custom(Custom),
}

impl Layout {
    fn of(resource: &Resource) -> Layout {
        if resource.is_custom() || !resource.columns.is_empty() {
            return Layout::Custom(Custom::new(&resource.columns));
        }
        match printers::snapshot_columns(resource) {
            Some(columns) => Layout::Custom(Custom::new(&columns)),
            None => Layout::BuiltIn(printers::printer(resource)),
        }
    }

    fn columns(&self, resource: &Resource) -> Value {
        match self {
            Layout::BuiltIn(printer) => printer.columns(resource),
            Layout::Custom(custom) => custom.columns(resource),
        }
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Layout::BuiltIn(printer) => (printer.cells)(object, now),
            Layout::Custom(custom) => custom.cells(object, now),
        }
    }
}

/// The column definitions of a kind.
#[cfg(test)]
pub(crate) fn columns(resource: &Resource) -> Value {
    Layout::of(resource).columns(resource)
}

/// The cells of one object, as many as there are columns.
#[cfg(test)]
pub(crate) fn row(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    Layout::of(resource).cells(object, now)
}

/// The whole Table. `metadata` is the list's; for a single object see [`single_metadata`].
pub(crate) fn table<'a>(
    resource: &Resource,
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: Value,
    options: TableOptions,
) -> Value {
    let layout = Layout::of(resource);
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let mut row = json!({
                "cells": layout.cells(object, options.now),
                "object": included(object, options),
            });
            if let Some(conditions) = printers::row_conditions(resource, object) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    let columns = if options.with_columns { layout.columns(resource) } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": options.api_version,
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// The metadata of a Table that shows one object: its resourceVersion.
pub(crate) fn single_metadata(object: &Value) -> Value {
    match object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
        Some(version) => json!({"resourceVersion": version}),
        None => json!({}),
    }
}

fn included(object: &Value, options: TableOptions) -> Value {
    match options.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": options.api_version,
            "metadata": object.get("metadata").filter(|metadata| metadata.is_object())
                .cloned().unwrap_or_else(|| json!({})),
        }),
    }
}

#[cfg(test)]
mod tests;
