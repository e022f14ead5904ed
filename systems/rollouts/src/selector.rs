//! Whether labels are selected, as Kubernetes has it.
//!
//! `kube_core` does the matching. Two rules that Kubernetes refuses it takes: `NotIn` without values, which would select
//! everything, and `Exists` or `DoesNotExist` with values, which it ignores. A selector with such a rule selects nothing
//! here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube_core::{Selector, SelectorExt};
use std::collections::BTreeMap;

/// Whether a selector selects these labels. An empty one selects everything.
pub(crate) fn is_selected(
    selector: &LabelSelector,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    const NONE: &BTreeMap<String, String> = &BTreeMap::new();
    selector.match_expressions.iter().flatten().all(makes_sense)
        && Selector::try_from(selector.clone())
            .is_ok_and(|selector| selector.matches(labels.unwrap_or(NONE)))
}

/// Whether a selector selects everything.
pub(crate) fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_expressions.iter().flatten().next().is_none()
        && selector.match_labels.iter().flatten().next().is_none()
}

fn makes_sense(rule: &LabelSelectorRequirement) -> bool {
    let has_values = rule.values.as_ref().is_some_and(|values| !values.is_empty());
    matches!(
        (rule.operator.as_str(), has_values),
        ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).expect("a selector")
    }

    fn selects(value: Value, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        is_selected(&selector(value), Some(&labels))
    }

    #[test]
    fn an_empty_selector_selects_everything() {
        assert!(selects(json!({}), &[]) && is_selected(&LabelSelector::default(), None));
        assert!(is_empty(&selector(json!({"matchLabels": {}, "matchExpressions": []}))));
        assert!(!is_empty(&selector(json!({"matchLabels": {"a": "b"}}))));
    }

    #[test]
    fn a_rule_that_makes_no_sense_selects_nothing() {
        for (operator, values) in [("Maybe", vec![]), ("NotIn", vec![]), ("Exists", vec!["eu"])] {
            let rule = json!({"key": "region", "operator": operator, "values": values});
            assert!(
                !selects(json!({"matchExpressions": [rule]}), &[("region", "eu")]),
                "{operator}"
            );
        }
        let rule = json!({"key": "region", "operator": "In", "values": ["eu"]});
        assert!(selects(json!({"matchExpressions": [rule]}), &[("region", "eu")]));
    }
}
