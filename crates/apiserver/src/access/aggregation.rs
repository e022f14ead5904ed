//! Aggregated cluster roles: their rules are those of the cluster roles that their selectors name.

use super::rules::Rule;
use crate::selector::LabelSelector;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// How many selector checks one compilation may make. Ten roles that aggregate among five hundred
/// need a few thousand; a cluster whose roles all aggregate each other must not stall the server,
/// and rights that were not gathered are not given.
const CHECKS: usize = 4_000_000;

/// The rules of one role, shared.
pub(super) type Rules = Arc<[Rule]>;

/// A cluster role as far as rights are concerned.
#[derive(Debug)]
pub(super) struct ClusterRole {
    labels: BTreeMap<String, String>,
    /// None for a role with rules of its own. A selector that cannot be read selects nothing.
    selectors: Option<Vec<LabelSelector>>,
    rules: Rules,
}

impl ClusterRole {
    pub(super) fn read(role: &Value) -> ClusterRole {
        let labels = role.pointer("/metadata/labels").and_then(Value::as_object);
        let text =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let selectors = role
            .pointer("/aggregationRule/clusterRoleSelectors")
            .and_then(Value::as_array)
            .filter(|selectors| !selectors.is_empty());
        ClusterRole {
            labels: labels.into_iter().flatten().filter_map(text).collect(),
            selectors: selectors.map(|selectors| {
                selectors.iter().filter_map(|one| LabelSelector::from_object(one).ok()).collect()
            }),
            rules: Rule::read_all(role).into(),
        }
    }

    fn is_selected(&self, selector: &LabelSelector) -> bool {
        selector.matches(|key| self.labels.get(key).map(String::as_str))
    }
}

/// All cluster roles by name, and how much gathering is still allowed.
#[derive(Debug)]
pub(super) struct ClusterRoles {
    roles: BTreeMap<Arc<str>, Arc<ClusterRole>>,
    checks_left: usize,
}

impl ClusterRoles {
    pub(super) fn new(roles: BTreeMap<Arc<str>, Arc<ClusterRole>>) -> Self {
        ClusterRoles { roles, checks_left: CHECKS }
    }

    /// The rules of a cluster role, its own or gathered; none if there is no such role.
    ///
    /// What an aggregated role stores as its rules is what somebody gathered earlier, so it does
    /// not count: here roles that aggregate aggregating roles are followed to those with rules of
    /// their own.
    pub(super) fn rules_of(&mut self, name: &str) -> Option<Vec<Rules>> {
        let role = self.roles.get(name)?;
        let mut gathered = Vec::new();
        let mut seen: HashSet<&str> = HashSet::from([name]);
        let mut waiting = vec![Arc::clone(role)];
        while let Some(role) = waiting.pop() {
            let Some(selectors) = &role.selectors else {
                gathered.push(Arc::clone(&role.rules));
                continue;
            };
            let mut selected = Vec::new();
            for selector in selectors {
                if self.checks_left < self.roles.len() {
                    break;
                }
                self.checks_left -= self.roles.len();
                for (name, other) in &self.roles {
                    if other.is_selected(selector) && seen.insert(name) {
                        selected.push(Arc::clone(other));
                    }
                }
            }
            // The first one selected is read first, as upstream gathers by name.
            waiting.extend(selected.into_iter().rev());
        }
        Some(gathered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn roles(all: &[(&str, Value)]) -> ClusterRoles {
        let read =
            |(name, role): &(&str, Value)| (Arc::from(*name), Arc::new(ClusterRole::read(role)));
        ClusterRoles::new(all.iter().map(read).collect())
    }

    fn leaf(label: &str, verb: &str) -> Value {
        json!({"metadata": {"labels": {label: "yes"}}, "rules": [{"verbs": [verb]}]})
    }

    fn gathers(label: &str, own_label: &str) -> Value {
        json!({
            "metadata": {"labels": {own_label: "yes"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]},
            "rules": [{"verbs": ["stale"]}],
        })
    }

    fn verbs(roles: &mut ClusterRoles, name: &str) -> Vec<String> {
        let rules = roles.rules_of(name).expect("the role is there");
        rules.iter().flat_map(|rules| rules.iter()).flat_map(|rule| rule.verbs.clone()).collect()
    }

    #[test]
    fn an_aggregated_role_has_the_rules_of_those_it_selects_and_not_its_stored_ones() {
        let mut roles = roles(&[
            ("top", gathers("to-top", "none")),
            ("b", leaf("to-top", "get")),
            ("a", leaf("to-top", "list")),
            ("c", leaf("other", "delete")),
        ]);
        assert_eq!(verbs(&mut roles, "top"), ["list", "get"]);
        assert_eq!(verbs(&mut roles, "c"), ["delete"]);
        assert!(roles.rules_of("nobody").is_none());
    }

    #[test]
    fn aggregation_passes_through_aggregated_roles() {
        let mut roles = roles(&[
            ("admin", gathers("to-admin", "none")),
            ("edit", gathers("to-edit", "to-admin")),
            ("view", gathers("to-view", "to-edit")),
            ("x", leaf("to-view", "get")),
            ("y", leaf("to-edit", "update")),
        ]);
        assert_eq!(verbs(&mut roles, "admin"), ["get", "update"]);
        assert_eq!(verbs(&mut roles, "view"), ["get"]);
    }

    #[test]
    fn roles_that_aggregate_each_other_end() {
        let mut roles = roles(&[
            ("a", gathers("to-a", "to-b")),
            ("b", gathers("to-b", "to-a")),
            ("x", leaf("to-a", "get")),
        ]);
        assert_eq!(verbs(&mut roles, "a"), ["get"]);
        assert_eq!(verbs(&mut roles, "b"), ["get"]);
    }

    #[test]
    fn a_selector_that_cannot_be_read_selects_nothing() {
        let broken = json!({"aggregationRule": {"clusterRoleSelectors": [
            {"matchExpressions": [{"key": "a", "operator": "Maybe"}]}, {"matchLabels": {"a": 1}},
        ]}});
        let mut roles = roles(&[("top", broken), ("a", leaf("a", "get"))]);
        assert_eq!(verbs(&mut roles, "top"), Vec::<String>::new());
    }

    #[test]
    fn gathering_without_end_gives_less_instead_of_taking_longer() {
        let many: Vec<(String, Value)> =
            (0..400).map(|number| (format!("r{number:03}"), gathers("all", "all"))).collect();
        let borrowed: Vec<(&str, Value)> =
            many.iter().map(|(name, role)| (name.as_str(), role.clone())).collect();
        let mut roles = roles(&borrowed);
        for (name, _) in &many {
            assert_eq!(verbs(&mut roles, name), Vec::<String>::new());
        }
        assert!(roles.checks_left < 400);
    }
}
