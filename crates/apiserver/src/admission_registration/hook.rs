//! One webhook of a configuration, compiled.

use super::expressions::{Environment, Gives};
use super::matching::Matching;
use super::policy::Expression;
use super::target::Target;
use crate::behaviour::read::{at, integer, list, text};
use crate::object;
use serde_json::Value;
use std::time::Duration;

/// How long a webhook may take that does not say it.
const DEFAULT_TIMEOUT_SECONDS: i64 = 10;

/// What a webhook does with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It may change the object.
    Mutating,
    /// It only answers yes or no.
    Validating,
}

/// The versions of AdmissionReview. They differ in what is demanded of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V1Beta1,
}

impl Version {
    /// The first version of a webhook's list that this server speaks.
    pub(crate) fn chosen(versions: &[Value]) -> Version {
        let known = versions.iter().find_map(|version| match version.as_str() {
            Some("v1") => Some(Version::V1),
            Some("v1beta1") => Some(Version::V1Beta1),
            Some(_) | None => None,
        });
        known.unwrap_or(Version::V1)
    }

    /// The word in `apiVersion`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V1Beta1 => "v1beta1",
        }
    }
}

/// One webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    /// The object that it is part of.
    pub(crate) configuration: String,
    pub(crate) name: String,
    pub(crate) sort: Sort,
    pub(crate) matching: Matching,
    pub(crate) conditions: Vec<Expression>,
    /// Whether a write passes if the webhook cannot be called.
    pub(crate) ignores_failures: bool,
    pub(crate) timeout: Duration,
    /// Whether it may be called for a write that is not stored.
    pub(crate) takes_dry_run: bool,
    /// Whether it is called again if another webhook changed the object after it.
    pub(crate) is_reinvoked: bool,
    pub(crate) version: Version,
    pub(crate) target: Target,
}

impl Hook {
    /// Compiles a webhook; none if it is about no write.
    pub(crate) fn read(configuration: &Value, webhook: &Value, sort: Sort) -> Option<Hook> {
        let matching = Matching::of_webhook(webhook)?;
        let environment = Environment::new(false);
        let condition =
            |condition: &Value| environment.compile(text(condition, "expression"), Gives::Bool);
        let seconds = integer(webhook, "timeoutSeconds").unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let seconds = u64::try_from(seconds.clamp(1, 30)).unwrap_or(1);
        Some(Hook {
            configuration: object::name(configuration).to_owned(),
            name: text(webhook, "name").to_owned(),
            sort,
            matching,
            conditions: list(webhook, "matchConditions").iter().map(condition).collect(),
            ignores_failures: text(webhook, "failurePolicy") == "Ignore",
            timeout: Duration::from_secs(seconds),
            takes_dry_run: matches!(text(webhook, "sideEffects"), "None" | "NoneOnDryRun"),
            is_reinvoked: text(webhook, "reinvocationPolicy") == "IfNeeded",
            version: Version::chosen(list(webhook, "admissionReviewVersions")),
            target: Target::read(at(webhook, "clientConfig")),
        })
    }

    /// Whether its conditions ask what the caller may do.
    pub(crate) fn asks_authorizer(&self) -> bool {
        let asks = |condition: &Expression| {
            condition.as_ref().is_ok_and(|program| {
                program.uses("authorizer") || program.uses("authorizer.requestResource")
            })
        };
        self.conditions.iter().any(asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_webhook_without_side_effects_is_called_for_a_dry_run() {
        for (effects, takes) in [
            (json!("None"), true),
            (json!("NoneOnDryRun"), true),
            (json!("Some"), false),
            (json!("Unknown"), false),
            (Value::Null, false),
        ] {
            let webhook = json!({"rules": [{}], "sideEffects": effects});
            let hook = Hook::read(&json!({}), &webhook, Sort::Validating).expect("it has rules");
            assert_eq!(hook.takes_dry_run, takes, "{effects}");
        }
    }

    #[test]
    fn a_webhook_without_rules_is_about_nothing() {
        let webhook = json!({"rules": [], "clientConfig": {"url": "https://example.com"}});
        assert!(Hook::read(&json!({}), &webhook, Sort::Mutating).is_none());
    }
}
