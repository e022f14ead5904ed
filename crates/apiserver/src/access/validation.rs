//! Roles and bindings as objects: what is filled in, and what is wrong with them, in upstream's
//! words.

use super::rbac::GROUP;
use crate::name::{dns1123_subdomain, path_segment};
use crate::selector::LabelSelector;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

/// Fills in the API groups of a binding's role and subjects. Roles have nothing to fill in.
pub fn defaults(object: &mut Value) {
    let role = object.get_mut("roleRef").and_then(Value::as_object_mut);
    if let Some(role) = role.filter(|role| is_empty(role.get("apiGroup"))) {
        role.insert("apiGroup".to_owned(), json!(GROUP));
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten().filter_map(Value::as_object_mut) {
        let kind = subject.get("kind").and_then(Value::as_str).unwrap_or_default();
        let is_ours = matches!(kind, "User" | "Group");
        if is_ours && is_empty(subject.get("apiGroup")) {
            subject.insert("apiGroup".to_owned(), json!(GROUP));
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value == "")
}

/// What is wrong with a role or a binding, beyond its metadata and its schema. The kind is the
/// object's own.
pub fn validate(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match new.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "Role" => validate_rules(new, true, &mut errors),
        "ClusterRole" => {
            validate_rules(new, false, &mut errors);
            validate_aggregation(new, &mut errors);
        }
        "RoleBinding" => validate_binding(new, true, &mut errors),
        "ClusterRoleBinding" => validate_binding(new, false, &mut errors),
        _ => return errors,
    }
    if let Some(old) = old {
        validate_same_role(old, new, &mut errors);
    }
    errors
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn validate_rules(role: &Value, is_namespaced: bool, errors: &mut Vec<FieldError>) {
    let rules = Path::Root.field("rules");
    for (index, rule) in list(role, "rules").iter().enumerate() {
        validate_rule(rule, is_namespaced, &rules.index(index), errors);
    }
}

fn validate_rule(rule: &Value, is_namespaced: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let has = |field: &str| !list(rule, field).is_empty();
    if !has("verbs") {
        let detail = "verbs must contain at least one value";
        errors.push(FieldError::required(path.field("verbs"), detail));
    }
    if has("nonResourceURLs") {
        let mut refuse = |detail: &str| {
            let field = path.field("nonResourceURLs");
            errors.push(FieldError::invalid(field, &rule["nonResourceURLs"], detail));
        };
        if is_namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if !has("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.push(FieldError::required(path.field("apiGroups"), detail));
    }
    if !has("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.push(FieldError::required(path.field("resources"), detail));
    }
}

fn validate_aggregation(role: &Value, errors: &mut Vec<FieldError>) {
    let Some(rule) = role.get("aggregationRule").filter(|rule| !rule.is_null()) else { return };
    let aggregation = Path::Root.field("aggregationRule");
    let path = aggregation.field("clusterRoleSelectors");
    let selectors = list(rule, "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, detail));
    }
    for (index, selector) in selectors.iter().enumerate() {
        if LabelSelector::from_object(selector).is_err() {
            let place = path.index(index);
            errors.push(FieldError::invalid(place, selector, "invalid label selector."));
        }
    }
}

fn validate_binding(binding: &Value, is_namespaced: bool, errors: &mut Vec<FieldError>) {
    let empty = json!({});
    let role = binding.get("roleRef").unwrap_or(&empty);
    let path = Path::Root.field("roleRef");
    if text(role, "apiGroup") != GROUP {
        let given = json!(text(role, "apiGroup"));
        errors.push(FieldError::not_supported(path.field("apiGroup"), &given, &[GROUP]));
    }
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        let given = json!(text(role, "kind"));
        errors.push(FieldError::not_supported(path.field("kind"), &given, kinds));
    }
    let name = text(role, "name");
    if name.is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    for problem in path_segment(name) {
        errors.push(FieldError::invalid(path.field("name"), &json!(name), problem));
    }
    let subjects = Path::Root.field("subjects");
    for (index, subject) in list(binding, "subjects").iter().enumerate() {
        validate_subject(subject, is_namespaced, &subjects.index(index), errors);
    }
}

fn validate_subject(
    subject: &Value,
    is_namespaced: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    let mut group_must_be = |wanted: &str| {
        if group != wanted {
            let field = path.field("apiGroup");
            errors.push(FieldError::not_supported(field, &json!(group), &[wanted]));
        }
    };
    match text(subject, "kind") {
        "User" | "Group" => group_must_be(GROUP),
        "ServiceAccount" => {
            group_must_be("");
            if !name.is_empty() {
                for problem in dns1123_subdomain(name) {
                    errors.push(FieldError::invalid(path.field("name"), &json!(name), problem));
                }
            }
            if !is_namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(path.field("namespace"), ""));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(path.field("kind"), &json!(other), &kinds));
        }
    }
}

/// A binding keeps its role: who may write a binding of a harmless role must not turn it into
/// another.
fn validate_same_role(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    let role = |binding: &Value| {
        let role = binding.get("roleRef")?;
        Some(["apiGroup", "kind", "name"].map(|field| text(role, field).to_owned()))
    };
    if role(old) != role(new) {
        let given = new.get("roleRef").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("roleRef", &given, "cannot change roleRef"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(object: Value) -> Vec<String> {
        validate(None, &object).iter().map(FieldError::to_string).collect()
    }

    fn binding(kind: &str, role: Value, subjects: Value) -> Value {
        json!({"kind": kind, "roleRef": role, "subjects": subjects})
    }

    #[test]
    fn groups_of_roles_and_subjects_are_filled_in() {
        let mut object = binding(
            "RoleBinding",
            json!({"kind": "Role", "name": "r"}),
            json!([
                {"kind": "User", "name": "u"},
                {"kind": "Group", "name": "g", "apiGroup": ""},
                {"kind": "ServiceAccount", "name": "s"},
                {"kind": "User", "name": "v", "apiGroup": "other"},
            ]),
        );
        defaults(&mut object);
        assert_eq!(object["roleRef"]["apiGroup"], GROUP);
        assert_eq!(object["subjects"][0]["apiGroup"], GROUP);
        assert_eq!(object["subjects"][1]["apiGroup"], GROUP);
        assert_eq!(object["subjects"][2].get("apiGroup"), None);
        assert_eq!(object["subjects"][3]["apiGroup"], "other");
        assert_eq!(
            problems(object),
            [format!(
                r#"subjects[3].apiGroup: Unsupported value: "other": supported values: "{GROUP}""#
            )]
        );
    }

    #[test]
    fn a_rule_needs_verbs_and_something_to_do_them_to() {
        let role = |kind: &str, rule: Value| json!({"kind": kind, "rules": [rule]});
        assert_eq!(
            problems(role("Role", json!({}))),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ]
        );
        let url = json!({"verbs": ["get"], "nonResourceURLs": ["/x"]});
        assert_eq!(
            problems(role("Role", url.clone())),
            [
                r#"rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs"#
            ]
        );
        assert!(problems(role("ClusterRole", url)).is_empty());
        let both = json!({"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]});
        assert_eq!(problems(role("ClusterRole", both)).len(), 1);
        assert!(problems(json!({"kind": "ClusterRole", "rules": null})).is_empty());
    }

    #[test]
    fn an_aggregation_needs_selectors_that_can_be_read() {
        let role = |rule: Value| json!({"kind": "ClusterRole", "aggregationRule": rule});
        assert_eq!(problems(role(json!({}))).len(), 1);
        assert!(problems(role(json!(null))).is_empty());
        assert!(problems(role(json!({"clusterRoleSelectors": [{}]}))).is_empty());
        let odd = json!({"clusterRoleSelectors": [
            {"matchExpressions": [{"key": "a", "operator": "Maybe"}]},
        ]});
        assert_eq!(problems(role(odd)).len(), 1);
    }

    #[test]
    fn a_binding_needs_a_role_and_subjects_that_can_be() {
        let cluster = |role, subjects| problems(binding("ClusterRoleBinding", role, subjects));
        let good = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"});
        assert!(cluster(good.clone(), json!([])).is_empty());
        assert!(cluster(good.clone(), json!(null)).is_empty());
        assert_eq!(
            cluster(json!({"apiGroup": GROUP, "kind": "Role", "name": "a/b"}), json!([])),
            [
                r#"roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole""#,
                r#"roleRef.name: Invalid value: "a/b": may not contain '/'"#,
            ]
        );
        assert_eq!(
            cluster(
                good,
                json!([
                    {"kind": "ServiceAccount", "name": "s"},
                    {"kind": "Robot", "name": "r"},
                    {"kind": "User", "apiGroup": GROUP},
                ])
            ),
            [
                "subjects[0].namespace: Required value",
                r#"subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group""#,
                "subjects[2].name: Required value",
            ]
        );
        assert_eq!(problems(json!({"kind": "RoleBinding"})).len(), 3);
    }

    #[test]
    fn a_binding_keeps_its_role() {
        let with = |name: &str| {
            let role = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": name});
            binding("ClusterRoleBinding", role, json!([]))
        };
        assert!(validate(Some(&with("a")), &with("a")).is_empty());
        let errors = validate(Some(&with("a")), &with("b"));
        assert_eq!(
            errors[0].to_string(),
            format!(
                r#"roleRef: Invalid value: {{"apiGroup":"{GROUP}","kind":"ClusterRole","name":"b"}}: cannot change roleRef"#
            )
        );
    }

    #[test]
    fn objects_of_any_shape_are_judged_without_panic() {
        let odd = [json!(null), json!(7), json!("x"), json!([[]]), json!({"a": {}})];
        for kind in ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Pod"] {
            for field in ["rules", "aggregationRule", "roleRef", "subjects"] {
                for value in &odd {
                    let mut object = json!({"kind": kind, field: value});
                    defaults(&mut object);
                    validate(Some(&object), &object);
                    object[field] = json!([value, value]);
                    defaults(&mut object);
                    validate(None, &object);
                }
            }
        }
    }
}
