//! CustomResourceDefinitions: what they must be, and the resources that they make.

mod shared;
mod spec;
mod status;
mod versions;

#[cfg(test)]
mod tests;

pub(crate) use spec::validate_update;
pub(crate) use status::{accept_names, established, is_established, terminating};

use crate::resource::{Column, Resource, Scale};
use crate::schema::Schema;
use crate::status::{FieldError, Path};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Fills in what a CRD may leave out: the singular, the name of lists, no conversion, and the
/// stored versions.
pub(crate) fn defaults(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let storage = versions::of(spec).find(|version| versions::is_storage(version));
    let storage = storage.map(|version| version.get("name").cloned().unwrap_or_default());
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let kind = text(names, "kind").to_owned();
        if text(names, "singular").is_empty() {
            names.insert("singular".to_owned(), json!(kind.to_lowercase()));
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), json!(format!("{kind}List")));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let (Some(storage), Some(crd)) = (storage, crd.as_object_mut()) else { return };
    let status = crd.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        let stored = status.get("storedVersions").and_then(Value::as_array);
        if stored.is_none_or(Vec::is_empty) {
            status.insert("storedVersions".to_owned(), json!([storage]));
        }
    }
}

/// What is wrong with a CRD that has its defaults.
pub(crate) fn validate(crd: &Value) -> Vec<FieldError> {
    compiled(crd, None).err().unwrap_or_default()
}

/// Validates a CRD that has its defaults, and makes one resource for each served version.
/// `metadata` is the schema of ObjectMeta. Equal schemas are compiled once and shared by all who
/// use them.
pub(crate) fn read(
    crd: &Value,
    identity: &str,
    metadata: Option<&Schema>,
) -> Result<Vec<Resource>, Vec<FieldError>> {
    let Some(spec) = crd.get("spec").and_then(Value::as_object) else {
        return Err(vec![FieldError::required("spec", "")]);
    };
    let schemas = compiled(crd, metadata)?;
    let with_schemas = versions::of(spec).zip(schemas);
    let served = with_schemas.filter(|(version, _)| version.get("served") == Some(&json!(true)));
    Ok(served.map(|(version, schema)| resource(spec, version, schema, identity)).collect())
}

/// The schemas of all versions, in order, if nothing is wrong with the CRD.
fn compiled(crd: &Value, metadata: Option<&Schema>) -> Result<Vec<Arc<Schema>>, Vec<FieldError>> {
    let mut errors = spec::validate(crd);
    let Some(spec) = crd.get("spec").and_then(Value::as_object) else { return Err(errors) };
    let are_equal = versions::Paths::of(spec).schemas_are_equal;
    let path = Path::Root.field("spec");
    let (list, common) = (path.field("versions"), path.field("validation"));
    let mut schemas: Vec<Arc<Schema>> = Vec::new();
    for (index, version) in versions::of(spec).enumerate() {
        let Some(openapi) = versions::schema(version) else { continue };
        if are_equal && index > 0 {
            // The same schema as in the first version, and so the same errors.
            schemas.extend(schemas.first().cloned());
            continue;
        }
        let own = list.index(index);
        let own = own.field("schema");
        let path = if are_equal { &common } else { &own };
        match shared::compile(openapi, metadata, &path.field("openAPIV3Schema")) {
            Ok(schema) => schemas.push(schema),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(schemas) } else { Err(errors) }
}

fn text<'v>(object: &'v Map<String, Value>, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or("")
}

fn texts(value: Option<&Value>) -> Vec<Arc<str>> {
    let list = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).map(Arc::from).collect()
}

fn resource(
    spec: &Map<String, Value>,
    version: &Map<String, Value>,
    schema: Arc<Schema>,
    identity: &str,
) -> Resource {
    let empty = Map::new();
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    let storage = versions::of(spec).find(|version| versions::is_storage(version));
    let subresources = version.get("subresources").and_then(Value::as_object).unwrap_or(&empty);
    Resource {
        group: text(spec, "group").into(),
        version: text(version, "name").into(),
        storage_version: text(storage.unwrap_or(version), "name").into(),
        kind: text(names, "kind").into(),
        list_kind: text(names, "listKind").into(),
        plural: text(names, "plural").into(),
        singular: text(names, "singular").into(),
        short_names: texts(names.get("shortNames")),
        categories: texts(names.get("categories")),
        is_namespaced: text(spec, "scope") == "Namespaced",
        has_status: subresources.get("status").is_some_and(|status| !status.is_null()),
        scale: subresources.get("scale").and_then(Value::as_object).map(scale),
        identity: identity.into(),
        schema,
        columns: columns(version),
        selectable: selectable(version),
        deprecation: deprecation(spec, version),
    }
}

/// The fields that objects can be selected by, as selectors name them: `spec.color`.
fn selectable(version: &Map<String, Value>) -> Vec<Arc<str>> {
    let list = version.get("selectableFields").and_then(Value::as_array);
    let paths = list.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
    paths.map(|path| Arc::from(path.trim_start_matches('.'))).collect()
}

/// The warning for clients that use a deprecated version.
fn deprecation(spec: &Map<String, Value>, version: &Map<String, Value>) -> Option<Arc<str>> {
    if version.get("deprecated") != Some(&json!(true)) {
        return None;
    }
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(Arc::from(warning));
    }
    let kind = spec.get("names").and_then(|names| names["kind"].as_str()).unwrap_or_default();
    let (group, version) = (text(spec, "group"), text(version, "name"));
    Some(Arc::from(format!("{group}/{version} {kind} is deprecated")))
}

fn scale(scale: &Map<String, Value>) -> Scale {
    let path = |name: &str| {
        let path = text(scale, name);
        let names = path.split('.').filter(|name| !name.is_empty());
        names.map(Arc::from).collect::<Vec<Arc<str>>>()
    };
    let label_selector = Some(path("labelSelectorPath")).filter(|path| !path.is_empty());
    Scale {
        spec_replicas: path("specReplicasPath"),
        status_replicas: path("statusReplicasPath"),
        label_selector,
    }
}

/// The columns of a version. Without any, there is the age alone, as upstream shows it.
fn columns(version: &Map<String, Value>) -> Vec<Column> {
    let list = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        return vec![Column {
            name: "Age".into(),
            type_name: "date".into(),
            description: AGE.into(),
            json_path: ".metadata.creationTimestamp".into(),
            ..Column::default()
        }];
    };
    let column = |column: &Map<String, Value>| Column {
        name: text(column, "name").into(),
        type_name: text(column, "type").into(),
        format: text(column, "format").into(),
        description: text(column, "description").into(),
        priority: column
            .get("priority")
            .and_then(Value::as_i64)
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or(0),
        json_path: text(column, "jsonPath").into(),
    };
    list.iter().filter_map(Value::as_object).map(column).collect()
}

/// What the column `Age` says about itself.
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object \
    was created. It is not guaranteed to be set in happens-before order across separate operations. \
    Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by \
    the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
