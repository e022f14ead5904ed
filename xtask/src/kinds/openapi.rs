//! Reads the schemas of upstream's OpenAPI v3 documents.

use super::read_json;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The schemas of all documents that were read, by name.
#[derive(Debug, Default)]
pub(super) struct Documents {
    schemas: BTreeMap<String, Value>,
}

/// What a document says about one type.
pub(super) struct Schema {
    /// Whether it has `apiVersion` and `kind` of its own.
    pub(super) is_kind: bool,
    pub(super) is_atomic: bool,
    pub(super) properties: BTreeMap<String, Property>,
}

/// What a document says about one field.
pub(super) struct Property {
    pub(super) is_required: bool,
    /// The type in our own form, with `@` for the type that it refers to.
    pub(super) shape: String,
    /// The full name of the type that it refers to.
    pub(super) refers_to: Option<String>,
    declared: Value,
}

const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

impl Documents {
    /// Takes in one document.
    pub(super) fn read(&mut self, path: &Path) -> Result<()> {
        let mut document = read_json(path)?;
        let schemas = document["components"]["schemas"].take();
        let Value::Object(schemas) = schemas else {
            bail!("{} has no schemas", path.display());
        };
        self.schemas.extend(schemas);
        Ok(())
    }

    /// One type by its full name.
    pub(super) fn schema(&self, name: &str) -> Result<Schema> {
        let declared = self.schemas.get(name).with_context(|| format!("no schema {name}"))?;
        let required = declared["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut properties = BTreeMap::new();
        if let Some(all) = declared["properties"].as_object() {
            for (field, property) in all {
                let (shape, refers_to) =
                    shape(property).with_context(|| format!("in {name}.{field}"))?;
                let is_required = required.iter().any(|other| other == field);
                let declared = property.clone();
                properties
                    .insert(field.clone(), Property { is_required, shape, refers_to, declared });
            }
        }
        Ok(Schema {
            is_kind: properties.contains_key("apiVersion")
                && properties.contains_key("kind")
                && declared.get("x-kubernetes-group-version-kind").is_some(),
            is_atomic: declared["x-kubernetes-map-type"] == "atomic",
            properties,
        })
    }
}

impl Property {
    /// What is behind the type: how lists merge, and the default as the last thing.
    pub(super) fn attributes(&self) -> String {
        let mut text = String::new();
        let declared = &self.declared;
        match declared["x-kubernetes-list-type"].as_str() {
            Some("map") => {
                let keys = super::words(declared, "x-kubernetes-list-map-keys");
                let _ = write!(text, " keys={keys}");
            }
            Some("set") => text.push_str(" set"),
            Some("atomic") => text.push_str(" atomic"),
            _ => {}
        }
        if let Some(word @ ("atomic" | "granular")) = declared["x-kubernetes-map-type"].as_str() {
            let _ = write!(text, " {word}");
        }
        if let Some(strategy) = declared["x-kubernetes-patch-strategy"].as_str() {
            let _ = write!(text, " patch={strategy}");
        }
        if let Some(key) = declared["x-kubernetes-patch-merge-key"].as_str() {
            let _ = write!(text, " mergekey={key}");
        }
        // The zero value of a required field is no default: upstream's generator adds it to every
        // field that is no pointer, and nothing applies it.
        if let Some(default) = declared.get("default")
            && !self.is_required
            && !default.is_object()
        {
            let _ = write!(text, " default={default}");
        }
        text
    }
}

/// A type in our own form, and the name of what it refers to.
fn shape(declared: &Value) -> Result<(String, Option<String>)> {
    let reference = declared["$ref"].as_str().or_else(|| declared["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return Ok(match special(name) {
            Some(word) => (word.to_owned(), None),
            None => ("@".to_owned(), Some(name.to_owned())),
        });
    }
    let word = match (declared["type"].as_str(), declared["format"].as_str()) {
        (Some("array"), _) => {
            let (items, name) = shape(&declared["items"])?;
            return Ok((format!("[{items}]"), name));
        }
        (Some("object"), _) if declared.get("additionalProperties").is_some() => {
            let values = &declared["additionalProperties"];
            let (mut items, name) = shape(values)?;
            // Protobuf has no map of lists: the list is in a message of its own.
            if items.starts_with('[') {
                items = format!("<{}>", &items[1..items.len() - 1]);
            }
            return Ok((format!("{{{items}}}"), name));
        }
        (Some("string"), None) => "string",
        (Some("string"), Some("byte")) => "bytes",
        (Some("boolean"), _) => "bool",
        (Some("integer"), Some("int32")) => "int32",
        (Some("integer"), Some("int64") | None) => "int64",
        (Some("number"), Some("double")) => "double",
        other => bail!("a type that is not known: {other:?}"),
    };
    Ok((word.to_owned(), None))
}

/// Types that are not what their struct says: they have JSON forms of their own.
fn special(name: &str) -> Option<&'static str> {
    if let Some(name) = name.strip_prefix(EXTENSIONS) {
        return match name {
            ".JSON" => Some("json"),
            ".JSONSchemaPropsOrArray" => Some("props-or-array"),
            ".JSONSchemaPropsOrBool" => Some("props-or-bool"),
            ".JSONSchemaPropsOrStringArray" => Some("props-or-strings"),
            _ => None,
        };
    }
    if let Some(name) = name.strip_prefix(META) {
        return match name {
            ".Time" => Some("time"),
            ".MicroTime" => Some("microtime"),
            ".FieldsV1" => Some("fields"),
            _ => None,
        };
    }
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Some("quantity"),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Some("intorstring"),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => Some("raw"),
        _ => None,
    }
}
