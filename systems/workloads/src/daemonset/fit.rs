//! Which nodes a DaemonSet runs on: its node selector, its required node affinity, and the taints that its pods tolerate.

use interlock_kernel::metadata::{label, name_of};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Taints that pods of every DaemonSet tolerate, as upstream has it: they are there to serve the node.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Whether a node is to have a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Fit {
    /// It is to have one.
    Runs,
    /// It gets none, and keeps the one that it has: a taint keeps new pods away.
    Keeps,
    /// It is to have none.
    Not,
}

/// The tolerations of the pods of a DaemonSet.
pub fn tolerations(spec: &Value) -> Vec<Value> {
    let own = spec["tolerations"].as_array().cloned().unwrap_or_default();
    let added =
        TOLERATED.map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}));
    let added: Vec<Value> = added.into_iter().filter(|it| !own.contains(it)).collect();
    own.into_iter().chain(added).collect()
}

/// Whether a node is to have a pod with this spec.
pub fn fit(spec: &Value, node: &DynamicObject) -> Fit {
    let named = spec["nodeName"].as_str().filter(|name| !name.is_empty());
    if named.is_some_and(|name| name != name_of(node)) || !is_selected(spec, node) {
        return Fit::Not;
    }
    let tolerations = tolerations(spec);
    let taints = node.data["spec"]["taints"].as_array().into_iter().flatten();
    let untolerated = |effect: &str| {
        let mut all = taints.clone().filter(|taint| taint["effect"] == effect);
        all.any(|taint| !tolerations.iter().any(|it| tolerates(it, taint)))
    };
    if untolerated("NoExecute") {
        return Fit::Not;
    }
    if untolerated("NoSchedule") { Fit::Keeps } else { Fit::Runs }
}

fn is_selected(spec: &Value, node: &DynamicObject) -> bool {
    let mut labels = spec["nodeSelector"].as_object().into_iter().flatten();
    let has_all = labels.all(|(key, value)| label(node, key) == value.as_str());
    let required =
        &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    if required.is_null() {
        return has_all;
    }
    let mut terms = required["nodeSelectorTerms"].as_array().into_iter().flatten();
    has_all && terms.any(|term| is_met(term, node))
}

/// All of a term must hold; one that says nothing selects nothing.
fn is_met(term: &Value, node: &DynamicObject) -> bool {
    let rules = |field: &str| term[field].as_array().cloned().unwrap_or_default();
    let (labels, fields) = (rules("matchExpressions"), rules("matchFields"));
    let says_something = !labels.is_empty() || !fields.is_empty();
    let holds = |rule: &Value| holds(rule, label(node, rule["key"].as_str().unwrap_or_default()));
    let is_named =
        |rule: &Value| rule["key"] == "metadata.name" && self::holds(rule, Some(name_of(node)));
    says_something && labels.iter().all(holds) && fields.iter().all(is_named)
}

fn holds(rule: &Value, found: Option<&str>) -> bool {
    let values: Vec<&str> =
        rule["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_in = found.is_some_and(|found| values.contains(&found));
    let compared = || {
        let found: i64 = found?.parse().ok()?;
        let [value] = values[..] else { return None };
        Some(found.cmp(&value.parse().ok()?))
    };
    match rule["operator"].as_str() {
        Some("In") => is_in,
        Some("NotIn") => !is_in,
        Some("Exists") => found.is_some(),
        Some("DoesNotExist") => found.is_none(),
        Some("Gt") => compared().is_some_and(std::cmp::Ordering::is_gt),
        Some("Lt") => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (key, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
    let is_of_effect = effect.is_empty() || effect == text(&taint["effect"]);
    let is_of_key = key == text(&taint["key"]);
    is_of_effect
        && match toleration["operator"].as_str() {
            Some("Exists") => key.is_empty() || is_of_key,
            None | Some("" | "Equal") => {
                is_of_key && text(&toleration["value"]) == text(&taint["value"])
            }
            Some(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(labels: Value, taints: Value) -> DynamicObject {
        let object = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}});
        serde_json::from_value(object).expect("a node")
    }

    fn of(spec: Value, labels: Value) -> Fit {
        fit(&spec, &node(labels, Value::Null))
    }

    fn required(terms: Value) -> Value {
        json!({"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    }

    fn rule(operator: &str, values: &[&str]) -> Value {
        let rule = json!({"key": "size", "operator": operator, "values": values});
        required(json!([{"matchExpressions": [rule]}]))
    }

    #[test]
    fn a_node_is_selected_by_its_labels_and_its_name() {
        let big = || json!({"size": "9"});
        assert_eq!(of(json!({}), json!({})), Fit::Runs);
        assert_eq!(of(json!({"nodeSelector": {"size": "9"}}), big()), Fit::Runs);
        assert_eq!(of(json!({"nodeSelector": {"size": "8"}}), big()), Fit::Not);
        assert_eq!(of(json!({"nodeSelector": {"size": "9"}}), json!({})), Fit::Not);
        assert_eq!(of(json!({"nodeName": "n1"}), json!({})), Fit::Runs);
        assert_eq!(of(json!({"nodeName": "n2"}), json!({})), Fit::Not);
        for (operator, values, wanted) in [
            ("In", &["9"][..], true),
            ("In", &["8"], false),
            ("NotIn", &["8"], true),
            ("Exists", &[], true),
            ("DoesNotExist", &[], false),
            ("Gt", &["8"], true),
            ("Gt", &["9"], false),
            ("Lt", &["10"], true),
            ("Lt", &["x"], false),
            ("Maybe", &["9"], false),
        ] {
            let fits = of(rule(operator, values), big()) == Fit::Runs;
            assert_eq!(fits, wanted, "{operator} {values:?}");
        }
    }

    #[test]
    fn one_term_is_enough_and_an_empty_one_selects_nothing() {
        let named = |name: &str| {
            let rule = json!({"key": "metadata.name", "operator": "In", "values": [name]});
            json!({"matchFields": [rule]})
        };
        assert_eq!(of(required(json!([named("n2"), named("n1")])), json!({})), Fit::Runs);
        assert_eq!(of(required(json!([named("n2")])), json!({})), Fit::Not);
        for terms in [json!([]), json!([{}]), json!([null]), json!("x")] {
            assert_eq!(of(required(terms.clone()), json!({})), Fit::Not, "{terms}");
        }
    }

    #[test]
    fn taints_keep_pods_away_that_do_not_tolerate_them() {
        let taint = |key: &str, effect: &str| json!([{"key": key, "value": "v", "effect": effect}]);
        let tolerating = |toleration: Value| json!({"tolerations": [toleration]});
        for (spec, taints, wanted) in [
            (json!({}), taint("k", "NoSchedule"), Fit::Keeps),
            (json!({}), taint("k", "NoExecute"), Fit::Not),
            (json!({}), taint("k", "PreferNoSchedule"), Fit::Runs),
            (json!({}), taint("node.kubernetes.io/unschedulable", "NoSchedule"), Fit::Runs),
            (tolerating(json!({"operator": "Exists"})), taint("k", "NoExecute"), Fit::Runs),
            (tolerating(json!({"key": "k", "value": "v"})), taint("k", "NoExecute"), Fit::Runs),
            (tolerating(json!({"key": "k", "value": "w"})), taint("k", "NoExecute"), Fit::Not),
            (
                tolerating(json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"})),
                taint("k", "NoExecute"),
                Fit::Not,
            ),
        ] {
            assert_eq!(fit(&spec, &node(json!({}), taints.clone())), wanted, "{spec} {taints}");
        }
    }

    #[test]
    fn the_tolerations_of_the_template_come_first_and_none_comes_twice() {
        let first = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists",
            "effect": "NoExecute"});
        let all = tolerations(&json!({"tolerations": [first]}));
        assert_eq!((all.len(), &all[0]), (TOLERATED.len(), &first));
    }
}
