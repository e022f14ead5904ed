//! Checks of where a pod may run: tolerations, affinity, topology spread; and of a node's taints.

use super::checks::{by_rule, one_of};
use crate::behaviour::read::{at, is_set, list, number, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path, Problem};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What a pod says about where it may run.
pub(super) fn pod(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    tolerations(spec, &path.field("tolerations"), errors);
    let affinity = path.field("affinity");
    node_affinity(at(spec, "affinity.nodeAffinity"), &affinity.field("nodeAffinity"), errors);
    for kind in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(at(at(spec, "affinity"), kind), &affinity.field(kind), errors);
    }
    spread(spec, &path.field("topologySpreadConstraints"), errors);
}

fn tolerations(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            by_rule(key, name::qualified_name, &path.field("key"), errors);
        }
        let mut refuse = |field: &str, given: &str, detail: &str| {
            errors.push(FieldError::invalid(path.field(field), &json!(given), detail));
        };
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            refuse("operator", operator, detail);
        }
        if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
            refuse("effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator {
            "" | "Equal" => {
                let problems = name::label_value(value);
                if !problems.is_empty() {
                    refuse("operator", value, &problems.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                refuse("operator", value, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            _ => errors.push(FieldError::not_supported(
                path.field("operator"),
                &json!(operator),
                &["Equal", "Exists"],
            )),
        }
        if !effect.is_empty() {
            one_of(at(toleration, "effect"), &EFFECTS, &path.field("effect"), errors);
        }
    }
}

/// The taints of a node.
pub(super) fn taints(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        let path = path.index(index);
        by_rule(text(taint, "key"), name::qualified_name, &path.field("key"), errors);
        let problems = name::label_value(text(taint, "value"));
        if !problems.is_empty() {
            let field = path.field("value");
            errors.push(FieldError::invalid(field, at(taint, "value"), problems.join(";")));
        }
        one_of(at(taint, "effect"), &EFFECTS, &path.field("effect"), errors);
        if !seen.insert((text(taint, "key"), text(taint, "effect"))) {
            let detail = "taints must be unique by key and effect pair";
            let mut twice = FieldError::new(Problem::Duplicate, path, detail);
            twice.value = taint.to_string();
            errors.push(twice);
        }
    }
}

fn node_affinity(affinity: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if is_set(affinity, REQUIRED) {
        let required = path.field(REQUIRED);
        let path = required.field("nodeSelectorTerms");
        let terms = list(at(affinity, REQUIRED), "nodeSelectorTerms");
        if terms.is_empty() {
            let detail = "must have at least one node selector term";
            errors.push(FieldError::required(path, detail));
        }
        for (index, term) in terms.iter().enumerate() {
            node_term(term, &path.index(index), errors);
        }
    }
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let preferred = path.field(PREFERRED);
        let path = preferred.index(index);
        weight(term, &path, errors);
        node_term(at(term, "preference"), &path.field("preference"), errors);
    }
}

fn weight(term: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !(1..=100).contains(&number(term, "weight")) {
        let detail = "must be in the range 1-100";
        errors.push(FieldError::invalid(path.field("weight"), at(term, "weight"), detail));
    }
}

fn node_term(term: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let expressions = path.field("matchExpressions");
        node_requirement(requirement, &expressions.index(index), errors);
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        let fields = path.field("matchFields");
        let path = fields.index(index);
        if text(requirement, "key") != "metadata.name" {
            let detail = "not a valid field selector key";
            errors.push(FieldError::invalid(path.field("key"), at(requirement, "key"), detail));
        }
        if !matches!(text(requirement, "operator"), "In" | "NotIn") {
            let detail = "not a valid selector operator";
            let field = path.field("operator");
            errors.push(FieldError::invalid(field, at(requirement, "operator"), detail));
        } else if list(requirement, "values").len() != 1 {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field \
                          selector";
            errors.push(FieldError::required(path.field("values"), detail));
        }
    }
}

fn node_requirement(requirement: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let values = list(requirement, "values");
    let field = path.field("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(field, detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(field, detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(field, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => {
            let detail = "not a valid selector operator";
            let field = path.field("operator");
            errors.push(FieldError::invalid(field, at(requirement, "operator"), detail));
        }
    }
    by_rule(text(requirement, "key"), name::qualified_name, &path.field("key"), errors);
}

fn pod_affinity(affinity: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, term) in list(affinity, REQUIRED).iter().enumerate() {
        let required = path.field(REQUIRED);
        pod_term(term, &required.index(index), errors);
    }
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let preferred = path.field(PREFERRED);
        let path = preferred.index(index);
        weight(term, &path, errors);
        pod_term(at(term, "podAffinityTerm"), &path.field("podAffinityTerm"), errors);
    }
}

fn pod_term(term: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector::validate(at(term, field), &path.field(field), errors);
    }
    for namespace in list(term, "namespaces") {
        let given = namespace.as_str().unwrap_or_default();
        by_rule(given, name::dns1123_label, &path.field("namespace"), errors);
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
    }
    by_rule(key, name::qualified_name, &path.field("topologyKey"), errors);
}

fn spread(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let all = list(spec, "topologySpreadConstraints");
    for (index, constraint) in all.iter().enumerate() {
        let path = path.index(index);
        for field in ["maxSkew", "minDomains"] {
            let is_given = field == "maxSkew" || is_set(constraint, field);
            if is_given && number(constraint, field) <= 0 {
                let detail = "must be greater than 0";
                let value = json!(number(constraint, field));
                errors.push(FieldError::invalid(path.field(field), &value, detail));
            }
        }
        let (key, action) =
            (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
        }
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let actions = ["DoNotSchedule", "ScheduleAnyway"];
            let field = path.field("whenUnsatisfiable");
            errors.push(FieldError::not_supported(field, &json!(action), &actions));
        }
        if is_set(constraint, "minDomains") && action != "DoNotSchedule" {
            let detail =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            let field = path.field("minDomains");
            errors.push(FieldError::invalid(field, at(constraint, "minDomains"), detail));
        }
        let is_same = |other: &Value| {
            text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action
        };
        if all[index + 1..].iter().any(is_same) {
            let field = path.field("{topologyKey, whenUnsatisfiable}");
            let value = json!(format!("{{{key}, {action}}}"));
            errors.push(FieldError::duplicate(field, &value));
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if is_set(constraint, field) {
                one_of(at(constraint, field), &["Honor", "Ignore"], &path.field(field), errors);
            }
        }
        selector::validate(at(constraint, "labelSelector"), &path.field("labelSelector"), errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(spec: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        pod(spec, &Path::Root.field("spec"), &mut errors);
        errors.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn tolerations_are_checked() {
        let of = |toleration: Value| fields(&json!({"tolerations": [toleration]}));
        assert_eq!(of(json!({"operator": "Exists"})), [""; 0]);
        assert_eq!(of(json!({"key": "a", "value": "b", "effect": "NoExecute"})), [""; 0]);
        assert_eq!(of(json!({"operator": "Equal"})), ["spec.tolerations[0].operator"]);
        assert_eq!(of(json!({"key": "a", "operator": "In"})), ["spec.tolerations[0].operator"]);
        assert_eq!(of(json!({"key": "a", "effect": "Never"})), ["spec.tolerations[0].effect"]);
        let seconds = json!({"key": "a", "tolerationSeconds": 3, "effect": "NoSchedule"});
        assert_eq!(of(seconds), ["spec.tolerations[0].effect"]);
        assert_eq!(of(json!({"key": "-", "operator": "Exists"})), ["spec.tolerations[0].key"]);
    }

    #[test]
    fn affinity_is_checked() {
        let node = |required: Value| {
            fields(&json!({"affinity": {"nodeAffinity": {REQUIRED: required}}})).len()
        };
        assert_eq!(node(json!({"nodeSelectorTerms": []})), 1);
        let term = |operator: &str, values: Value| {
            json!({"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "a", "operator": operator, "values": values}]}]})
        };
        assert_eq!(node(term("In", json!(["b"]))), 0);
        assert_eq!(node(term("In", json!([]))), 1);
        assert_eq!(node(term("Exists", json!(["b"]))), 1);
        assert_eq!(node(term("Gt", json!(["1", "2"]))), 1);
        assert_eq!(node(term("Near", json!([]))), 1);
        let pods = json!({"affinity": {"podAntiAffinity": {PREFERRED: [
            {"weight": 0, "podAffinityTerm": {"topologyKey": ""}}]}}});
        assert!(fields(&pods)[0].ends_with("[0].weight"));
        assert!(fields(&pods)[1].ends_with("[0].podAffinityTerm.topologyKey"));
    }

    #[test]
    fn topology_spread_is_checked() {
        let one =
            json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
        assert_eq!(fields(&json!({"topologySpreadConstraints": [one]})), [""; 0]);
        assert_eq!(fields(&json!({"topologySpreadConstraints": [one, one]})).len(), 1);
        let wrong = json!({"maxSkew": 0, "whenUnsatisfiable": "Maybe", "minDomains": 2});
        assert_eq!(fields(&json!({"topologySpreadConstraints": [wrong]})).len(), 4);
    }

    #[test]
    fn taints_are_checked() {
        let mut errors = Vec::new();
        let twice = json!({"key": "a", "effect": "NoExecute"});
        let wrong = json!({"key": "", "effect": "Soon"});
        taints(&json!({"taints": [twice, twice, wrong]}), &Path::Root, &mut errors);
        assert!(errors.len() >= 3, "{errors:?}");
        assert_eq!(errors[0].problem, Problem::Duplicate);
    }
}
