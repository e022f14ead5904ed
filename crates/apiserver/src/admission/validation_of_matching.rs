//! What is refused of `matchConstraints`, `matchResources` and `paramKind`, in upstream's words.

use crate::behaviour::read::{at, is_set, list, text};
use crate::behaviour::selector::validate as validate_selector;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// A value that breaks the rules of names.
pub(super) fn by_rule(
    value: &str,
    problems: Vec<String>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for problem in problems {
        errors.push(FieldError::invalid(path, &json!(value), problem));
    }
}

/// `paramKind`.
pub(super) fn param_kind(kind: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (version, place) = (text(kind, "apiVersion"), path.field("apiVersion"));
    let parts: Vec<&str> = version.split('/').collect();
    match (version, &parts[..]) {
        ("", _) => errors.push(FieldError::required(place, "")),
        (_, [version]) => by_rule(version, name::dns1035_label(version), &place, errors),
        (_, [group, version]) => {
            if !group.is_empty() {
                let problems = name::dns1123_subdomain(group).join(",");
                by_rule(group, some(problems), &place, errors);
            }
            if version.is_empty() {
                let detail = "version must be specified";
                errors.push(FieldError::invalid(place, at(kind, "apiVersion"), detail));
            } else {
                let problems = name::dns1035_label(version).join(",");
                by_rule(version, some(problems), &place, errors);
            }
        }
        _ => {
            let detail = format!("unexpected GroupVersion string: {version}");
            errors.push(FieldError::invalid(place, at(kind, "apiVersion"), detail));
        }
    }
    let word = text(kind, "kind");
    if word.is_empty() {
        errors.push(FieldError::required(path.field("kind"), ""));
        return;
    }
    let problems = name::dns1035_label(&word.to_lowercase());
    if !problems.is_empty() {
        let detail =
            format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        errors.push(FieldError::invalid(path.field("kind"), &json!(word), detail));
    }
}

fn some(problems: String) -> Vec<String> {
    if problems.is_empty() { Vec::new() } else { vec![problems] }
}

/// `matchConstraints` and `matchResources`.
pub(super) fn resources(matching: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match text(matching, "matchPolicy") {
        "" => errors.push(FieldError::required(path.field("matchPolicy"), "")),
        "Exact" | "Equivalent" => {}
        _ => {
            let policy = at(matching, "matchPolicy");
            let place = path.field("matchPolicy");
            errors.push(FieldError::not_supported(place, policy, &["Equivalent", "Exact"]));
        }
    }
    for field in ["namespaceSelector", "objectSelector"] {
        if is_set(matching, field) {
            validate_selector(at(matching, field), &path.field(field), errors);
        } else {
            errors.push(FieldError::required(path.field(field), ""));
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, one) in list(matching, field).iter().enumerate() {
            rule(one, &path.field(field).index(index), errors);
        }
    }
}

pub(super) fn rule(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut names: Vec<&str> = Vec::new();
    for (index, given) in list(rule, "resourceNames").iter().enumerate() {
        let place = path.field("resourceNames");
        let name = given.as_str().unwrap_or_default();
        by_rule(name, name::path_segment(name), &place.index(index), errors);
        if names.contains(&name) {
            errors.push(FieldError::duplicate(place.index(index), given));
        }
        names.push(name);
    }
    words(rule, "operations", "operations", path, errors);
    for (index, operation) in list(rule, "operations").iter().enumerate() {
        if !OPERATIONS.contains(&operation.as_str().unwrap_or_default()) {
            let place = path.field("operations");
            errors.push(FieldError::not_supported(place.index(index), operation, &OPERATIONS));
        }
    }
    words(rule, "apiGroups", "API groups", path, errors);
    words(rule, "apiVersions", "API versions", path, errors);
    for (index, version) in list(rule, "apiVersions").iter().enumerate() {
        if version == "" {
            errors.push(FieldError::required(path.field("apiVersions").index(index), ""));
        }
    }
    resource_names(rule, &path.field("resources"), errors);
    if is_set(rule, "scope") && !SCOPES.contains(&text(rule, "scope")) {
        errors.push(FieldError::not_supported(path.field("scope"), at(rule, "scope"), &SCOPES));
    }
}

/// A list that must not be empty, and in which `*` stands alone.
fn words(rule: &Value, field: &str, what: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let given = list(rule, field);
    if given.is_empty() {
        errors.push(FieldError::required(path.field(field), ""));
    }
    if given.len() > 1 && given.iter().any(|word| word == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path.field(field), at(rule, field), detail));
    }
}

fn resource_names(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let given = list(rule, "resources");
    if given.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut below_all, mut all_below): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut has_plain = false;
    for (index, resource) in given.iter().enumerate() {
        let resource = resource.as_str().unwrap_or_default();
        let place = path.index(index);
        if resource.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let Some((parent, below)) = resource.split_once('/') else {
            has_plain |= resource != "*";
            continue;
        };
        if all_below.contains(&parent) {
            let detail = format!("if '{parent}/*' is present, must not specify {resource}");
            errors.push(FieldError::invalid(place, &json!(resource), detail));
        }
        if below_all.contains(&below) {
            let detail = format!("if '*/{below}' is present, must not specify {resource}");
            errors.push(FieldError::invalid(place, &json!(resource), detail));
        }
        if below == "*" {
            all_below.push(parent);
        }
        if parent == "*" {
            below_all.push(below);
        }
    }
    let shown = at(rule, "resources");
    if given.len() > 1 && given.iter().any(|resource| resource == "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, shown, detail));
    }
    if has_plain && given.iter().any(|resource| resource == "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, shown, detail));
    }
}
