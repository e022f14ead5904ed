//! What a CRD must be, in upstream's words. Its schemas are checked where they are compiled.

use super::text;
use super::versions::{self, Paths};
use crate::name;
use crate::status::{FieldError, Path, Problem};
use crate::table::MOST_COLUMNS;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// What is wrong with a CRD that has its defaults, but for its schemas.
pub(super) fn validate(crd: &Value) -> Vec<FieldError> {
    let empty = Map::new();
    let spec = crd.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let path = Path::Root.field("spec");
    let mut errors = Vec::new();
    check_name(crd, spec, &mut errors);
    check_group_and_scope(spec, &path, &mut errors);
    check_versions(spec, &path, &mut errors);
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    check_names(names, &path.field("names"), &mut errors);
    check_conversion(spec, &path, &mut errors);
    check_stored_versions(crd, spec, &mut errors);
    check_approval(crd, spec, &mut errors);
    errors
}

/// What is wrong with a change of a CRD, beyond what is wrong with it anyway: some names are for
/// ever.
pub(crate) fn validate_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut places = vec!["/spec/group", "/spec/names/plural"];
    if super::is_established(old) {
        places.extend(["/spec/scope", "/spec/names/kind"]);
    }
    let changed = places.into_iter().filter(|place| old.pointer(place) != new.pointer(place));
    changed
        .map(|place| {
            let value = new.pointer(place).cloned().unwrap_or_default();
            FieldError::invalid(place[1..].replace('/', "."), &value, "field is immutable")
        })
        .collect()
}

fn check_name(crd: &Value, spec: &Object, errors: &mut Vec<FieldError>) {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
    let plural = spec.get("names").and_then(|names| names.get("plural")).and_then(Value::as_str);
    let mut problems = crate::name::dns1123_subdomain(name);
    if name != format!("{}.{}", plural.unwrap_or(""), text(spec, "group")) {
        problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    let value = Value::from(name);
    for problem in problems {
        errors.push(FieldError::invalid("metadata.name", &value, problem));
    }
}

fn check_group_and_scope(spec: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let group_path = path.field("group");
    let problems = name::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(group_path, ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid(group_path, &json!(group), problems.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(group_path, &json!(group), detail));
    }
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(path.field("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported(path.field("scope"), &json!(other), &supported));
        }
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        errors.push(FieldError::invalid(
            path.field("preserveUnknownFields"),
            &Value::Bool(true),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
}

fn check_versions(spec: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let paths = Paths::of(spec);
    let list = path.field("versions");
    let mut seen: Vec<&str> = Vec::new();
    let mut has_twins = false;
    for (index, version) in versions::of(spec).enumerate() {
        let name = text(version, "name");
        let own = list.index(index);
        has_twins |= seen.contains(&name);
        seen.push(name);
        if versions::schema(version).is_none() {
            let path = own.field("schema");
            errors.push(FieldError::required(path.field("openAPIV3Schema"), ""));
        }
        let problems = name::dns1035_label(name);
        if !problems.is_empty() {
            let detail = problems.join(",");
            errors.push(FieldError::invalid(own.field("name"), &json!(name), detail));
        }
        check_deprecation(version, &own, errors);
        // What all versions have in common is reported once.
        if !paths.subresources_are_equal || index == 0 {
            let base = if paths.subresources_are_equal { path } else { &own };
            check_scale(version, &base.field("subresources"), errors);
        }
        if !paths.columns_are_equal || index == 0 {
            let base = if paths.columns_are_equal { path } else { &own };
            check_columns(version, &base.field("additionalPrinterColumns"), errors);
        }
        check_root_schema(version, &paths, index, errors);
        check_selectable(version, &own, errors);
    }
    // Whole versions are not shown: their schemas may be very long.
    let value = json!(seen);
    if has_twins {
        errors.push(FieldError::invalid(list, &value, "must contain unique version names"));
    }
    if versions::of(spec).filter(|version| versions::is_storage(version)).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(list, &value, detail));
    }
}

fn check_deprecation(version: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut problems = Vec::new();
    if version.get("deprecated").and_then(Value::as_bool) != Some(true) {
        problems.push("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        problems.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        problems.push("must not be an empty string".to_owned());
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        problems.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        ));
    }
    let path = path.field("deprecationWarning");
    for problem in problems {
        errors.push(FieldError::invalid(path, &json!(warning), problem));
    }
}

/// The words that may stand at the root of a schema if the status is written apart.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

fn check_root_schema(version: &Object, paths: &Paths, index: usize, errors: &mut Vec<FieldError>) {
    let has_status = version.get("subresources").and_then(|sub| sub.get("status"));
    let schema = versions::schema(version).and_then(Value::as_object);
    let (Some(schema), Some(_)) = (schema, has_status.filter(|status| !status.is_null())) else {
        return;
    };
    if paths.schemas_are_equal && index > 0 {
        return;
    }
    let is_zero = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    let is_known = |word: &str| AT_ROOT.iter().any(|(known, _)| *known == word);
    if schema.iter().any(|(word, value)| !is_known(word) && !is_zero(value)) {
        let base = if paths.schemas_are_equal {
            "spec.validation".to_owned()
        } else {
            format!("spec.versions[{index}].schema")
        };
        let words: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            words.join(" ")
        );
        // The schema itself is not shown: it may be very long.
        let field = format!("{base}.openAPIV3Schema");
        errors.push(FieldError::new(crate::status::Problem::Invalid, field, detail));
    }
}

fn check_simple_path(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let is_fine = text.starts_with('.');
    if !is_fine {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(path, &json!(text), detail));
    }
    is_fine
}

fn check_scale(version: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let scale = version.get("subresources").and_then(|sub| sub.get("scale"));
    let Some(scale) = scale.and_then(Value::as_object) else { return };
    for (word, prefixes, detail) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."][..], "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let value = text(scale, word);
        let name = format!("scale.{word}");
        let path = path.field(&name);
        if value.is_empty() {
            if word != "labelSelectorPath" {
                errors.push(FieldError::required(path, ""));
            }
            continue;
        }
        let has_prefix = prefixes.iter().any(|prefix| value.starts_with(prefix));
        if check_simple_path(value, &path, errors) && !has_prefix {
            errors.push(FieldError::invalid(path, &json!(value), detail));
        }
    }
}

fn check_columns(version: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let list = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let count = list.map_or(0, Vec::len);
    if count > MOST_COLUMNS {
        // Each one is read from each object of each table.
        let detail = format!("must have at most {MOST_COLUMNS} items, but has {count}");
        errors.push(FieldError::new(Problem::TooMany, path, detail));
        return;
    }
    for (index, column) in list.into_iter().flatten().enumerate() {
        let Some(column) = column.as_object() else { continue };
        let path = path.index(index);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        }
        let type_name = text(column, "type");
        let detail = format!("must be one of {}", TYPES.join(","));
        if type_name.is_empty() {
            errors.push(FieldError::required(path.field("type"), detail));
        } else if !TYPES.contains(&type_name) {
            errors.push(FieldError::invalid(path.field("type"), &json!(type_name), detail));
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(path.field("format"), &json!(format), detail));
        }
        // Upstream calls the field by its name in Go.
        let json_path = path.field("JSONPath");
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(json_path, "")),
            value => {
                check_simple_path(value, &json_path, errors);
            }
        }
    }
}

/// Field selectors on custom fields are not served, and a CRD that relies on them reports that.
/// As upstream: more than this are refused.
const SELECTABLE_LIMIT: usize = 8;

fn check_selectable(version: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let list = version.get("selectableFields").and_then(Value::as_array);
    let fields = path.field("selectableFields");
    let mut seen: Vec<&str> = Vec::new();
    for (index, field) in list.into_iter().flatten().enumerate() {
        let one = fields.index(index);
        let path = one.field("jsonPath");
        let given = field["jsonPath"].as_str().unwrap_or_default();
        let mut refuse = |detail: &str| {
            errors.push(FieldError::invalid(path, &json!(given), detail));
        };
        if given.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        match selected_type(version, given) {
            None => refuse("is an invalid path: does not refer to a valid field"),
            Some(_) if given == ".metadata" || given.starts_with(".metadata.") => {
                refuse("must not point to fields in metadata");
            }
            Some("string" | "boolean" | "integer") => {}
            Some(_) => refuse(
                "must point to a field of type string, boolean or integer. Enum string fields and \
                 strings with formats are allowed.",
            ),
        }
        if seen.contains(&given) {
            errors.push(FieldError::duplicate(path, &json!(given)));
        }
        seen.push(given);
    }
    if seen.len() > SELECTABLE_LIMIT {
        let detail = format!("must have at most {SELECTABLE_LIMIT} items");
        errors.push(FieldError::invalid(fields, &json!(seen.len()), detail));
    }
}

/// The type of the field at a plain path, `.spec.color`, if the schema has it.
fn selected_type<'v>(version: &'v Object, path: &str) -> Option<&'v str> {
    let mut schema = versions::schema(version)?.as_object()?;
    for name in path.strip_prefix('.')?.split('.') {
        schema = schema.get("properties")?.get(name)?.as_object()?;
    }
    Some(text(schema, "type"))
}

fn check_names(own: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mixed = "may have mixed case, but should otherwise match: ";
    for word in ["plural", "singular", "kind", "listKind"] {
        let value = text(own, word);
        if value.is_empty() {
            errors.push(FieldError::required(path.field(word), ""));
            continue;
        }
        let is_kind = word.ends_with("ind");
        let problems = if is_kind {
            name::dns1035_label(&value.to_lowercase())
        } else {
            name::dns1035_label(value)
        };
        if !problems.is_empty() {
            let detail = format!("{}{}", if is_kind { mixed } else { "" }, problems.join(","));
            errors.push(FieldError::invalid(path.field(word), &json!(value), detail));
        }
    }
    for word in ["shortNames", "categories"] {
        let list = own.get(word).and_then(Value::as_array);
        let path = path.field(word);
        for (index, value) in list.into_iter().flatten().enumerate() {
            let problems = name::dns1035_label(value.as_str().unwrap_or(""));
            if !problems.is_empty() {
                errors.push(FieldError::invalid(path.index(index), value, problems.join(",")));
            }
        }
    }
    let kind = text(own, "kind");
    if !kind.is_empty() && kind == text(own, "listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path.field("listKind"), &json!(kind), detail));
    }
}

fn check_conversion(spec: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").and_then(Value::as_object) else { return };
    let path = path.field("conversion");
    match text(conversion, "strategy") {
        "" => errors.push(FieldError::required(path.field("strategy"), "")),
        "None" => {
            if conversion.get("webhook").is_some_and(|webhook| !webhook.is_null()) {
                let detail = "should not be set when strategy is not set to Webhook";
                errors.push(FieldError::forbidden(path.field("webhookClientConfig"), detail));
            }
        }
        "Webhook" => errors.push(FieldError::forbidden(
            path.field("strategy"),
            "conversion webhooks are not supported by this server: versions may differ in their \
             schemas, but objects are not converted",
        )),
        other => {
            let supported = ["None", "Webhook"];
            let path = path.field("strategy");
            errors.push(FieldError::not_supported(path, &json!(other), &supported));
        }
    }
}

/// A version that objects may be stored in cannot go.
fn check_stored_versions(crd: &Value, spec: &Object, errors: &mut Vec<FieldError>) {
    let value = crd.pointer("/status/storedVersions").cloned().unwrap_or_default();
    let field = "status.storedVersions";
    let stored: Vec<&str> =
        value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        errors.push(FieldError::invalid(field, &value, "must have at least one stored version"));
        return;
    }
    for version in versions::of(spec).filter(|version| versions::is_storage(version)) {
        let name = text(version, "name");
        if !stored.contains(&name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(field, &value, detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if versions::of(spec).any(|version| text(version, "name") == *name) {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain \
             in spec.versions until a storage migration ensures no data remains persisted in {name} \
             and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{field}[{index}]"), &json!(name), detail));
    }
}

/// Groups of Kubernetes itself need its approval.
fn check_approval(crd: &Value, spec: &Object, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if !is_protected {
        return;
    }
    let annotations = crd.pointer("/metadata/annotations").and_then(Value::as_object);
    let word = "api-approved.kubernetes.io";
    let approval = annotations.and_then(|all| all.get(word)).and_then(Value::as_str).unwrap_or("");
    let field = "metadata.annotations[api-approved.kubernetes.io]";
    let is_url = approval.starts_with("https://") || approval.starts_with("http://");
    if approval.is_empty() {
        let detail = "protected groups must have approval annotation \
            \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
        errors.push(FieldError::required(field, detail));
    } else if !is_url && !approval.starts_with("unapproved") {
        let detail = format!(
            "protected groups must have approval annotation \"{word}\" with either a URL or a \
             reason starting with \"unapproved\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::invalid(field, &json!(approval), detail));
    }
}
