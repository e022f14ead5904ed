//! What the objects of `admissionregistration.k8s.io` say, compiled: the admission policies, their bindings and the
//! webhooks of a logical cluster.
//!
//! A cluster keeps them, so nothing here knows of a request: `admission` judges writes by them.

mod compiled;
pub(crate) mod expressions;
pub(crate) mod hook;
pub(crate) mod matching;
mod policies;
pub(crate) mod policy;
mod reach;
pub(crate) mod target;
mod trust;
mod webhooks;

pub(crate) use policies::Policies;
pub use reach::{Network, WebhookReach};
pub(crate) use webhooks::{HookSet, Webhooks};

use crate::resource::Resource;

/// The API group of what says who admits what.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Whether a resource is one of those that say what is admitted.
pub(crate) fn is_configuration(resource: &Resource) -> bool {
    &*resource.group == GROUP && !resource.is_custom()
}

/// Whether policies or their bindings are kept in a table.
pub(crate) fn is_policy_table(table: &str) -> bool {
    table.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with("/validatingadmissionpolic"))
}

/// Whether webhook configurations are kept in a table.
pub(crate) fn is_webhook_table(table: &str) -> bool {
    table.strip_prefix(GROUP).is_some_and(|rest| {
        rest.starts_with("/validatingwebhook") || rest.starts_with("/mutatingwebhook")
    })
}
