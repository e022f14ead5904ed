//! What is refused of FlowSchemas and PriorityLevelConfigurations.

use super::checks::{by_rule, one_of};
use crate::behaviour::read::{at, integer, is_set, is_true, list, number, text};
use crate::flowcontrol;
use crate::name;
use crate::object;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

const HIGHEST_PRECEDENCE: i64 = 10_000;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// A FlowSchema.
pub(super) fn schema(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = at(object, "spec");
    let root = Path::Root;
    let path = root.field("spec");
    let precedence = number(spec, "matchingPrecedence");
    let mut refuse = |detail: String| {
        let field = path.field("matchingPrecedence");
        errors.push(FieldError::invalid(field, &json!(precedence), detail));
    };
    if precedence <= 0 {
        refuse("must be a positive value".to_owned());
    }
    if precedence > HIGHEST_PRECEDENCE {
        refuse(format!("must not be greater than {HIGHEST_PRECEDENCE}"));
    }
    if precedence == 1 && object::name(object) != "exempt" {
        refuse("only the schema named 'exempt' may have matchingPrecedence 1".to_owned());
    }
    if is_set(spec, "distinguisherMethod") {
        let method = path.field("distinguisherMethod");
        let kinds = ["ByNamespace", "ByUser"];
        one_of(at(spec, "distinguisherMethod.type"), &kinds, &method.field("type"), errors);
    }
    let level = path.field("priorityLevelConfiguration");
    match text(spec, "priorityLevelConfiguration.name") {
        "" => {
            let detail = "must reference a priority level";
            errors.push(FieldError::required(level.field("name"), detail));
        }
        given => by_rule(given, name::dns1123_subdomain, &level.field("name"), errors),
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        let rules = path.field("rules");
        validate_rule(rule, &rules.index(index), errors);
    }
    must_stay("flowschemas", object, errors);
}

/// Those that a cluster cannot be without may not be changed.
fn must_stay(plural: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let given = object::name(object);
    if !matches!(given, "exempt" | "catch-all") {
        return;
    }
    let fixed = flowcontrol::objects(plural).iter().find(|one| object::name(one) == given);
    let (mut wanted, mut spec) = (fixed.map(|one| one["spec"].clone()), at(object, "spec").clone());
    let may_change_exempt = plural == "prioritylevelconfigurations" && given == "exempt";
    let detail = if may_change_exempt {
        for one in wanted.iter_mut().chain([&mut spec]) {
            one.as_object_mut().map(|fields| fields.remove("exempt"));
        }
        format!("spec of '{given}' except the 'spec.exempt' field must equal the fixed value")
    } else {
        format!("spec of '{given}' must equal the fixed value")
    };
    if wanted.as_ref() != Some(&spec) {
        errors.push(FieldError::invalid("spec", at(object, "spec"), detail));
    }
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if list(rule, "subjects").is_empty() {
        let detail = "subjects must contain at least one value";
        errors.push(FieldError::required(path.field("subjects"), detail));
    }
    for (index, subject) in list(rule, "subjects").iter().enumerate() {
        let subjects = path.field("subjects");
        validate_subject(subject, &subjects.index(index), errors);
    }
    let (resources, others) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    for (index, rule) in resources.iter().enumerate() {
        let rules = path.field("resourceRules");
        let path = rules.index(index);
        validate_verbs(rule, &path, errors);
        errors.extend(starred(
            rule,
            "apiGroups",
            "resource rules must supply at least one api group",
            &path,
        ));
        errors.extend(starred(
            rule,
            "resources",
            "resource rules must supply at least one resource",
            &path,
        ));
        if list(rule, "namespaces").is_empty() && !is_true(rule, "clusterScope") {
            let detail = "resource rules that are not cluster scoped must supply at least one \
                          namespace";
            errors.push(FieldError::required(path.field("namespaces"), detail));
        }
    }
    for (index, rule) in others.iter().enumerate() {
        let rules = path.field("nonResourceRules");
        let path = rules.index(index);
        validate_verbs(rule, &path, errors);
        let missing = "nonResourceURLs must contain at least one value";
        errors.extend(starred(rule, "nonResourceURLs", missing, &path));
    }
}

fn validate_verbs(rule: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    errors.extend(starred(rule, "verbs", "verbs must contain at least one value", path));
    let verbs = list(rule, "verbs");
    let is_known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if !verbs.iter().any(|verb| verb == "*") && !verbs.iter().all(is_known) {
        errors.push(FieldError::not_supported(path.field("verbs"), at(rule, "verbs"), &VERBS));
    }
}

/// A list that must not be empty, and in which a star stands alone.
fn starred(rule: &Value, field: &str, missing: &str, path: &Path<'_>) -> Option<FieldError> {
    let values = list(rule, field);
    if values.is_empty() {
        return Some(FieldError::required(path.field(field), missing));
    }
    if values.len() == 1 || !values.iter().any(|value| value == "*") {
        return None;
    }
    let others = match field {
        "apiGroups" => "api groups",
        "nonResourceURLs" => "non-resource URLs",
        other => other,
    };
    let detail = format!("if '*' is present, must not specify other {others}");
    Some(FieldError::invalid(path.field(field), at(rule, field), detail))
}

fn validate_subject(subject: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kinds = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
    let kind = text(subject, "kind");
    let Some((_, own)) = kinds.iter().find(|(name, _)| *name == kind) else {
        let names = kinds.map(|(name, _)| name);
        let field = path.field("kind");
        errors.push(FieldError::not_supported(field, at(subject, "kind"), &names));
        return;
    };
    let field = path.field(own);
    if !is_set(subject, own) {
        let detail = format!("{own} is required when subject kind is '{kind}'");
        errors.push(FieldError::required(field, detail));
    } else {
        let given = at(subject, own);
        if text(given, "name").is_empty() {
            errors.push(FieldError::required(field.field("name"), ""));
        }
        if kind == "ServiceAccount" && text(given, "namespace").is_empty() {
            let detail = "must specify namespace for service account";
            errors.push(FieldError::required(field.field("namespace"), detail));
        }
    }
    for (name, other) in kinds.iter().filter(|(name, _)| *name != kind) {
        if is_set(subject, other) {
            let detail = format!("{other} is forbidden when subject kind is not '{name}'");
            errors.push(FieldError::forbidden(path.field(other), detail));
        }
    }
}

/// A PriorityLevelConfiguration.
pub(super) fn level(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = at(object, "spec");
    let root = Path::Root;
    let path = root.field("spec");
    let kind = text(spec, "type");
    if (object::name(object) == "exempt") != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(path.field("type"), at(spec, "type"), detail));
    }
    match kind {
        "Exempt" => {
            if is_set(spec, "limited") {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(path.field("limited"), detail));
            }
            shares(at(spec, "exempt"), &path.field("exempt"), errors);
        }
        "Limited" => {
            if is_set(spec, "exempt") {
                let detail = "must be nil if the type is Limited";
                errors.push(FieldError::forbidden(path.field("exempt"), detail));
            }
            if is_set(spec, "limited") {
                let limited = path.field("limited");
                shares(at(spec, "limited"), &limited, errors);
                let response = at(spec, "limited.limitResponse");
                limit_response(response, &limited.field("limitResponse"), errors);
            } else {
                let detail = "must not be empty when type is Limited";
                errors.push(FieldError::required(path.field("limited"), detail));
            }
        }
        _ => {
            let kinds = ["Exempt", "Limited"];
            errors.push(FieldError::not_supported(path.field("type"), at(spec, "type"), &kinds));
        }
    }
    must_stay("prioritylevelconfigurations", object, errors);
}

fn shares(part: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (field, most, detail) in [
        ("nominalConcurrencyShares", i64::MAX, "must be a non-negative integer"),
        ("lendablePercent", 100, "must be between 0 and 100, inclusive"),
        ("borrowingLimitPercent", i64::MAX, "if specified, must be a non-negative integer"),
    ] {
        if integer(part, field).is_some_and(|given| !(0..=most).contains(&given)) {
            errors.push(FieldError::invalid(path.field(field), at(part, field), detail));
        }
    }
}

fn limit_response(response: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let queuing = path.field("queuing");
    match text(response, "type") {
        "Reject" if is_set(response, "queuing") => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(queuing, detail));
        }
        "Reject" => {}
        "Queue" if is_set(response, "queuing") => {
            let given = at(response, "queuing");
            for field in ["queues", "handSize", "queueLengthLimit"] {
                if number(given, field) <= 0 {
                    let detail = "must be positive";
                    errors.push(FieldError::invalid(
                        queuing.field(field),
                        at(given, field),
                        detail,
                    ));
                }
            }
            let (queues, hand) = (number(given, "queues"), number(given, "handSize"));
            if hand > queues {
                let detail = format!("should not be greater than queues ({queues})");
                errors.push(FieldError::invalid(queuing.field("handSize"), &json!(hand), detail));
            }
        }
        "Queue" => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(queuing, detail));
        }
        _ => {
            let kinds = ["Queue", "Reject"];
            let field = path.field("type");
            errors.push(FieldError::not_supported(field, at(response, "type"), &kinds));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(check: fn(&Value, &mut Vec<FieldError>), object: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        check(object, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_mandatory_schema_may_not_be_changed() {
        let mut catch_all = flowcontrol::objects("flowschemas")[0].clone();
        assert_eq!(problems(schema, &catch_all), [""; 0]);
        catch_all["spec"]["matchingPrecedence"] = json!(9_999);
        let found = problems(schema, &catch_all);
        assert!(found[0].contains("spec of 'catch-all' must equal the fixed value"), "{found:?}");
    }

    #[test]
    fn a_level_says_what_is_missing() {
        let found =
            problems(level, &json!({"metadata": {"name": "a"}, "spec": {"type": "Limited"}}));
        assert_eq!(found, ["spec.limited: Required value: must not be empty when type is Limited"]);
        let found =
            problems(level, &json!({"metadata": {"name": "a"}, "spec": {"type": "Exempt"}}));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_subject_is_of_the_kind_that_it_says() {
        let found = problems(
            schema,
            &json!({"metadata": {"name": "a"}, "spec": {"matchingPrecedence": 5,
                "priorityLevelConfiguration": {"name": "exempt"},
                "rules": [{"subjects": [{"kind": "User", "group": {"name": "a"}}]}]}}),
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("spec.rules[0].subjects[0].user: Required value"));
    }
}
