//! Which writes a policy, a binding or a webhook says it is about.

use crate::behaviour::read::{at, list, text};
use crate::selector::LabelSelector;
use serde_json::Value;

/// `matchConstraints` of a policy, `matchResources` of a binding.
#[derive(Debug)]
pub(crate) struct Matching {
    pub(crate) rules: Vec<Rule>,
    pub(crate) excluded: Vec<Rule>,
    /// Whether other versions of a resource do not count as the same.
    pub(crate) is_exact: bool,
    pub(crate) namespaces: Result<LabelSelector, String>,
    pub(crate) objects: Result<LabelSelector, String>,
}

/// One of its rules.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    /// Resources and subresources: `pods`, `pods/*`, `*/scale`.
    pub(crate) resources: Vec<String>,
    pub(crate) operations: Vec<String>,
    pub(crate) scope: String,
    pub(crate) names: Vec<String>,
}

impl Matching {
    /// What a policy or a binding says.
    pub(crate) fn read(matching: &Value) -> Self {
        let rules = |field: &str| list(matching, field).iter().map(Rule::read).collect();
        let selector = |field: &str| {
            LabelSelector::from_object(at(matching, field)).map_err(|status| status.message)
        };
        Matching {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_exact: text(matching, "matchPolicy") == "Exact",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// The rules and selectors of a webhook. Without rules it is about no write.
    pub(crate) fn of_webhook(webhook: &Value) -> Option<Self> {
        let rules: Vec<Rule> = list(webhook, "rules").iter().map(Rule::read).collect();
        (!rules.is_empty()).then(|| Matching { rules, ..Matching::read(webhook) })
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            list(rule, field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Rule {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            operations: texts("operations"),
            scope: text(rule, "scope").to_owned(),
            names: texts("resourceNames"),
        }
    }
}
