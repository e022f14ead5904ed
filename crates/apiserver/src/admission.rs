//! Admission: what the objects of a logical cluster say about writes in it. It is enforced, or its objects are
//! refused; none is stored that would be ignored in silence.
//!
//! A write is judged by what is stored, and committed under guards on what it was judged by: if a parameter of a
//! policy changes meanwhile, the write is judged again.

mod amounts;
mod connect;
mod evaluate;
mod held;
mod judge;
mod limit_ranges;
mod matching;
mod params;
pub(crate) mod quota;
mod request;
mod runtime_class;
mod signers;
mod type_check;
mod validation;
mod validation_of_matching;
mod webhooks;

pub(crate) use connect::connect;
pub(crate) use held::{Held, hold};
pub(crate) use judge::judge;
pub(crate) use limit_ranges::LimitRanges;
pub(crate) use request::{Change, Operation};
pub(crate) use runtime_class::fill_in as fill_in_runtime_class;
pub(crate) use signers::check_signer;
pub(crate) use type_check::fill_status;
pub(crate) use validation::check_param_rights;
pub(crate) use webhooks::{Admitting, ask as ask_webhooks, mutate, mutate_posted};

use crate::admission_registration::is_configuration;
use crate::call::Call;
use crate::status::FieldError;
use serde_json::Value;

/// A transaction has room for so many guards of one sort.
const MOST_GUARDS: usize = 32;

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
