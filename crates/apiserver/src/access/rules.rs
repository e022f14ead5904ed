//! One rule of a role: verbs on resources, or verbs on paths.

use super::rbac::Attributes;
use serde_json::{Map, Value, json};
use std::fmt;

/// What a role allows: each of the verbs on each of the resources, or on each of the paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    /// `apiGroups`.
    pub groups: Vec<String>,
    /// `resources`: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// `resourceNames`; empty means all names.
    pub resource_names: Vec<String>,
    /// `nonResourceURLs`: `/healthz`, `/openapi/*`, `*`.
    pub urls: Vec<String>,
    /// `verbs`.
    pub verbs: Vec<String>,
}

impl Rule {
    /// Reads a `PolicyRule`. What is not a text is not there, which can only make the rule allow
    /// less: only `resourceNames` narrows a rule, and a rule with an unreadable one allows nothing.
    pub fn read(rule: &Value) -> Rule {
        let mut read = Rule {
            groups: texts(rule, "apiGroups"),
            resources: texts(rule, "resources"),
            resource_names: texts(rule, "resourceNames"),
            urls: texts(rule, "nonResourceURLs"),
            verbs: texts(rule, "verbs"),
        };
        let names = rule.get("resourceNames").filter(|names| !names.is_null());
        if names.is_some_and(|names| !is_list_of_texts(names)) {
            read.verbs.clear();
        }
        read
    }

    /// Reads the `rules` of a role.
    pub fn read_all(role: &Value) -> Vec<Rule> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Rule::read).collect()
    }

    /// The `PolicyRule`.
    pub fn to_value(&self) -> Value {
        let mut rule = Map::new();
        for (field, texts) in [
            ("apiGroups", &self.groups),
            ("nonResourceURLs", &self.urls),
            ("resourceNames", &self.resource_names),
            ("resources", &self.resources),
        ] {
            if !texts.is_empty() {
                rule.insert(field.to_owned(), json!(texts));
            }
        }
        rule.insert("verbs".to_owned(), json!(self.verbs));
        Value::Object(rule)
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has_or_all(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.path {
            Some(path) => self.urls.iter().any(|url| url_covers(url, path)),
            None => {
                has_or_all(&self.groups, attributes.group)
                    && self.has_resource(attributes.resource, attributes.subresource)
                    && (self.resource_names.is_empty()
                        || has(&self.resource_names, attributes.name))
            }
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|held| {
            if held == "*" {
                return true;
            }
            match held.split_once('/') {
                None => subresource.is_empty() && held == resource,
                Some((of, sub)) => {
                    !subresource.is_empty() && sub == subresource && (of == "*" || of == resource)
                }
            }
        })
    }
}

/// As error texts show it: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`.
impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(name, texts)| format!("{name}:{}", quoted_list(texts)))
        .collect();
        write!(formatter, "{{{}}}", parts.join(", "))
    }
}

/// `["a" "b"]`, as Go prints a list of texts.
pub(super) fn quoted_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Whether a path of a rule stands for another path. A trailing `*` stands for any rest.
pub(super) fn url_covers(held: &str, wanted: &str) -> bool {
    held == wanted || (held.ends_with('*') && wanted.starts_with(held.trim_end_matches('*')))
}

pub(super) fn has(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == wanted)
}

pub(super) fn has_or_all(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == wanted || text == "*")
}

fn texts(object: &Value, field: &str) -> Vec<String> {
    let list = object.get(field).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rule: Value) -> Rule {
        Rule::read(&rule)
    }

    fn on<'a>(verb: &'a str, group: &'a str, resource: &'a str) -> Attributes<'a> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes { verb, group, resource, subresource, ..Attributes::default() }
    }

    #[test]
    fn a_resource_does_not_hold_its_subresources() {
        let rule = rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}));
        assert!(rule.allows(&on("get", "", "pods")));
        assert!(!rule.allows(&on("get", "", "pods/log")));
        assert!(!rule.allows(&on("list", "", "pods")));
        assert!(!rule.allows(&on("get", "apps", "pods")));
    }

    #[test]
    fn a_star_before_a_slash_is_that_subresource_of_everything() {
        let rule = rule(json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}));
        assert!(rule.allows(&on("get", "apps", "deployments/scale")));
        assert!(!rule.allows(&on("get", "apps", "deployments/status")));
        assert!(!rule.allows(&on("get", "apps", "deployments")));
        assert!(!rule.allows(&on("get", "apps", "scale")));
    }

    #[test]
    fn a_star_is_every_resource_and_subresource() {
        let rule = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(rule.allows(&on("patch", "apps", "deployments/scale")));
        assert!(!rule.allows(&Attributes::path("get", "/metrics")));
    }

    #[test]
    fn names_narrow_a_rule() {
        let rule = rule(json!({
            "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"],
        }));
        assert!(rule.allows(&Attributes { name: "a", ..on("get", "", "secrets") }));
        assert!(!rule.allows(&Attributes { name: "b", ..on("get", "", "secrets") }));
        assert!(!rule.allows(&on("get", "", "secrets")));
    }

    #[test]
    fn paths_match_exactly_or_by_what_they_begin_with() {
        let rule = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/openapi/*"]}));
        for (path, allowed) in [
            ("/healthz", true),
            ("/healthz/etcd", false),
            ("/openapi/v3", true),
            ("/openapi/", true),
            ("/openapi", false),
        ] {
            assert_eq!(rule.allows(&Attributes::path("get", path)), allowed, "{path}");
        }
        assert!(!rule.allows(&Attributes::path("post", "/healthz")));
    }

    #[test]
    fn a_rule_whose_names_cannot_be_read_allows_nothing() {
        for names in [json!("a"), json!([1]), json!({}), json!(["a", null])] {
            let rule = rule(json!({
                "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": names,
            }));
            assert!(!rule.allows(&Attributes { name: "a", ..on("get", "", "secrets") }));
        }
    }

    #[test]
    fn a_rule_is_shown_as_upstream_shows_it() {
        let rule = rule(json!({
            "verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["deployments"],
        }));
        assert_eq!(
            rule.to_string(),
            r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}"#
        );
    }
}
