//! Why a call is refused, in AWS's codes.

use crate::document::DocumentError;

/// A refusal: status, code and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Fault {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Fault {
        Fault { status, code, message: message.into() }
    }

    pub(super) fn no_such_entity(message: impl Into<String>) -> Fault {
        Fault::new(404, "NoSuchEntity", message)
    }

    pub(super) fn already_exists(message: impl Into<String>) -> Fault {
        Fault::new(409, "EntityAlreadyExists", message)
    }

    pub(super) fn delete_conflict(message: &str) -> Fault {
        Fault::new(409, "DeleteConflict", message)
    }

    /// A quota, by AWS's name for it.
    pub(super) fn limit(quota: &str, most: usize) -> Fault {
        Fault::new(409, "LimitExceeded", format!("Cannot exceed quota for {quota}: {most}"))
    }

    pub(super) fn invalid_input(message: impl Into<String>) -> Fault {
        Fault::new(400, "InvalidInput", message)
    }

    /// A parameter that breaks a rule of the API's model.
    pub(super) fn validation(parameter: &str, rule: &str) -> Fault {
        let message = format!(
            "1 validation error detected: Value at '{}' failed to satisfy constraint: {rule}",
            first_small(parameter)
        );
        Fault::new(400, "ValidationError", message)
    }

    pub(super) fn malformed(error: &DocumentError) -> Fault {
        Fault::new(400, "MalformedPolicyDocument", error.to_string())
    }

    pub(super) fn access_denied(message: impl Into<String>) -> Fault {
        Fault::new(403, "AccessDenied", message)
    }

    /// The store did not take or give something. The outcome of the call is not known.
    pub(super) fn service_failure(message: impl Into<String>) -> Fault {
        Fault::new(500, "ServiceFailure", message)
    }
}

/// AWS writes the names of parameters with a small first letter in messages.
fn first_small(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
