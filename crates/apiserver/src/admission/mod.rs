//! Admission: what the objects of a logical cluster say about writes in it. It is enforced, or its objects are
//! refused; none is stored that would be ignored in silence.
//!
//! A write is judged by what is stored, and committed under guards on what it was judged by: if a parameter of a
//! policy changes meanwhile, the write is judged again.

mod amounts;
mod compiled;
mod evaluate;
mod expressions;
mod held;
mod judge;
mod limit_ranges;
mod matching;
mod params;
mod policy;
pub(crate) mod quota;
mod request;
mod runtime_class;
mod type_check;
mod validation;
mod validation_of_matching;
mod webhooks;

pub(crate) use held::{Held, Policies, hold};
pub(crate) use judge::judge;
pub(crate) use limit_ranges::LimitRanges;
pub(crate) use request::{Change, Operation};
pub(crate) use runtime_class::fill_in as fill_in_runtime_class;
pub(crate) use type_check::fill_status;
pub(crate) use validation::check_param_rights;
pub(crate) use webhooks::{
    Admitting, Webhooks, ask as ask_webhooks, is_table as is_webhook_table, mutate, mutate_posted,
};
pub use webhooks::{Network, WebhookReach};

use crate::handlers::call::Call;
use crate::resource::Resource;
use crate::status::FieldError;
use serde_json::Value;

/// The API group of what says who admits what.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// A transaction has room for so many guards of one sort.
const MOST_GUARDS: usize = 32;

/// Whether a resource is one of those that say what is admitted.
pub(crate) fn is_configuration(resource: &Resource) -> bool {
    &*resource.group == GROUP && !resource.is_custom()
}

/// Whether policies or their bindings are kept in a table.
pub(crate) fn is_policy_table(table: &str) -> bool {
    table.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with("/validatingadmissionpolic"))
}

/// Longer annotations of the audit log are cut.
const MAX_ANNOTATION_BYTES: usize = 10 * 1024;

/// The text of an annotation of the audit log.
fn cut(mut text: String) -> String {
    let mut end = text.len().min(MAX_ANNOTATION_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Whether no policy and no webhook judges what a call writes: what says what is admitted could lock itself in, and the
/// server's own background work must be able to delete what a tenant protects.
fn is_exempt(call: &Call) -> bool {
    call.is_own || is_configuration(&call.resource)
}

/// What is wrong with an object that says what is admitted.
pub(crate) fn validate(call: &Call, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    match &*call.resource.kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            webhooks::configuration(call, old, new)
        }
        "ValidatingAdmissionPolicy" => validation::policy(call, old, new),
        "ValidatingAdmissionPolicyBinding" => validation::binding(new),
        _ => Vec::new(),
    }
}
