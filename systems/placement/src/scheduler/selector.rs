//! Whether labels are selected, as Kubernetes has it.

//!
//! `kube_core` does the matching: an empty selector selects everything, and `NotIn` selects what
//! has no such label, as Kubernetes has it. Two rules that Kubernetes refuses it takes: `NotIn`
//! without values, which would select everything, and `Exists` or `DoesNotExist` with values, which
//! it ignores. So [`flaw`] comes first.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube_core::{Selector, SelectorExt};
use std::collections::BTreeMap;

/// Whether a selector selects these labels. An empty one selects everything; one that makes no
/// sense selects nothing.
pub fn is_selected(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    const NONE: &BTreeMap<String, String> = &BTreeMap::new();
    flaw(selector).is_none()
        && Selector::try_from(selector.clone())
            .is_ok_and(|selector| selector.matches(labels.unwrap_or(NONE)))
}

/// What is wrong with a selector, in words.
pub(crate) fn flaw(selector: &LabelSelector) -> Option<String> {
    selector.match_expressions.iter().flatten().find_map(flaw_of)
}

fn flaw_of(rule: &LabelSelectorRequirement) -> Option<String> {
    let has_values = rule.values.as_ref().is_some_and(|values| !values.is_empty());
    match (rule.operator.as_str(), has_values) {
        ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false) => None,
        ("In" | "NotIn", false) => Some(format!("{} of {} needs values", rule.operator, rule.key)),
        ("Exists" | "DoesNotExist", true) => {
            Some(format!("{} of {} takes no values", rule.operator, rule.key))
        }
        (operator, _) => Some(format!(
            "{operator:?} of {} is none of In, NotIn, Exists and DoesNotExist",
            rule.key
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn selects(selector: Value, labels: &[(&str, &str)]) -> bool {
        let selector: LabelSelector = serde_json::from_value(selector).expect("a selector");
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        is_selected(&selector, Some(&labels))
    }

    fn rule(operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": "region", "operator": operator, "values": values}]})
    }

    #[test]
    fn an_empty_selector_selects_everything() {
        assert!(selects(json!({}), &[]));
        assert!(is_selected(&LabelSelector::default(), None));
    }

    #[test]
    fn every_label_that_is_named_must_be_there() {
        let both = json!({"matchLabels": {"region": "eu", "disk": "ssd"}});
        assert!(selects(both.clone(), &[("region", "eu"), ("disk", "ssd"), ("x", "y")]));
        assert!(!selects(both, &[("region", "eu")]));
    }

    #[test]
    fn in_wants_one_of_the_values_and_not_in_none_of_them() {
        assert!(selects(rule("In", &["eu", "us"]), &[("region", "us")]));
        assert!(!selects(rule("In", &["eu"]), &[("region", "us")]));
        assert!(!selects(rule("In", &["eu"]), &[]));
        assert!(!selects(rule("NotIn", &["eu"]), &[("region", "eu")]));
        assert!(selects(rule("NotIn", &["eu"]), &[]), "as Kubernetes has it");
    }

    #[test]
    fn exists_looks_at_the_key_alone() {
        assert!(selects(rule("Exists", &[]), &[("region", "")]));
        assert!(!selects(rule("Exists", &[]), &[("zone", "a")]));
        assert!(selects(rule("DoesNotExist", &[]), &[("zone", "a")]));
        assert!(!selects(rule("DoesNotExist", &[]), &[("region", "eu")]));
    }

    #[test]
    fn a_rule_that_makes_no_sense_selects_nothing_and_is_named() {
        for (operator, values) in
            [("Maybe", vec![]), ("NotIn", vec![]), ("Exists", vec!["eu"]), ("In", vec![])]
        {
            let broken = rule(operator, &values);
            assert!(!selects(broken.clone(), &[("region", "eu")]), "{operator}");
            assert!(!selects(broken.clone(), &[]), "{operator}");
            let selector: LabelSelector = serde_json::from_value(broken).expect("a selector");
            assert!(flaw(&selector).is_some_and(|flaw| flaw.contains("region")), "{operator}");
        }
    }
}
