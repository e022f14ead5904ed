//! What is known after a call: done, certainly not done, or not known.

use std::fmt;

/// What is known after a call.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It is done, and this is the answer.
    Done(T),
    /// It is certainly not done.
    Refused(Refusal),
    /// It may be done, now or later: read before doing it again.
    Unknown(Unknown),
}

/// Why a call was certainly not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What sort of refusal.
    pub class: Class,
    /// The code as the server gave it; empty if no server answered.
    pub code: String,
    /// What the server says about it.
    pub message: String,
}

/// Sorts of refusals: what a controller does next depends on them and on nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Too many calls: ask less often.
    Throttled,
    /// The request was never sent: no connection.
    NotSent,
    /// What the call is about does not exist.
    NoSuchEntity,
    /// Something of that name exists.
    EntityAlreadyExists,
    /// Something else still depends on what was to be deleted.
    DeleteConflict,
    /// A quota of the account or of the object.
    LimitExceeded,
    /// The policy document is not one.
    MalformedPolicyDocument,
    /// A parameter has a value that it cannot have.
    InvalidInput,
    /// Somebody else is changing the same thing: requeue.
    ConcurrentModification,
    /// Only a service of AWS may change it.
    UnmodifiableEntity,
    /// This policy can be attached to no role.
    PolicyNotAttachable,
    /// The caller has no right to make this call.
    AccessDenied,
    /// The caller's credentials are not good, for any call.
    Credentials,
    /// IAM or STS could not reach the issuer.
    IssuerUnreachable,
    /// A web identity token is not good.
    IdentityToken,
    /// A code that is not listed here.
    Other,
}

/// Why the outcome of a call is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// No answer within the deadline.
    Deadline,
    /// The connection broke before the answer was complete.
    Broken(String),
    /// The server failed.
    ServerError {
        /// The HTTP status.
        status: u16,
        /// The code, if the answer has one.
        code: String,
    },
    /// The answer is not what this call answers with.
    Unreadable(String),
}

impl Class {
    /// The class of a code of IAM or STS.
    pub fn of(code: &str) -> Class {
        // The Query protocol writes some codes with the ending of their exception.
        match code.strip_suffix("Exception").unwrap_or(code) {
            "Throttling"
            | "Throttled"
            | "RequestLimitExceeded"
            | "TooManyRequests"
            | "RequestThrottled" => Class::Throttled,
            "NoSuchEntity" => Class::NoSuchEntity,
            "EntityAlreadyExists" => Class::EntityAlreadyExists,
            "DeleteConflict" => Class::DeleteConflict,
            "LimitExceeded" => Class::LimitExceeded,
            "MalformedPolicyDocument" => Class::MalformedPolicyDocument,
            "InvalidInput"
            | "ValidationError"
            | "Validation"
            | "InvalidParameterValue"
            | "MissingParameter"
            | "InvalidParameterCombination" => Class::InvalidInput,
            "ConcurrentModification" => Class::ConcurrentModification,
            "UnmodifiableEntity" => Class::UnmodifiableEntity,
            "PolicyNotAttachable" => Class::PolicyNotAttachable,
            "AccessDenied" | "UnauthorizedOperation" | "NotAuthorized" => Class::AccessDenied,
            "ExpiredToken"
            | "InvalidClientTokenId"
            | "UnrecognizedClient"
            | "SignatureDoesNotMatch"
            | "IncompleteSignature"
            | "MissingAuthenticationToken"
            | "RequestExpired"
            | "OptInRequired" => Class::Credentials,
            "OpenIdIdpCommunicationError" | "IDPCommunicationError" => Class::IssuerUnreachable,
            "InvalidIdentityToken" | "IDPRejectedClaim" => Class::IdentityToken,
            _ => Class::Other,
        }
    }
}

impl<T> Outcome<T> {
    /// The same outcome with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Outcome::Done(value) => Outcome::Done(change(value)),
            Outcome::Refused(refusal) => Outcome::Refused(refusal),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        }
    }

    /// The value, if the call is done.
    pub fn done(self) -> Option<T> {
        match self {
            Outcome::Done(value) => Some(value),
            Outcome::Refused(_) | Outcome::Unknown(_) => None,
        }
    }

    /// The class of the refusal, if the call was refused.
    pub fn class(&self) -> Option<Class> {
        match self {
            Outcome::Refused(refusal) => Some(refusal.class),
            Outcome::Done(_) | Outcome::Unknown(_) => None,
        }
    }

    /// Whether the call may be done although nobody said so.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Outcome::Unknown(_))
    }
}

impl Refusal {
    /// A refusal with the code that a server gave.
    pub(crate) fn of(code: &str, message: &str) -> Refusal {
        Refusal { class: Class::of(code), code: code.to_owned(), message: message.to_owned() }
    }

    /// A request that never left this process, since nobody could sign it.
    pub(crate) fn no_credentials(why: impl Into<String>) -> Refusal {
        Refusal { class: Class::Credentials, code: String::new(), message: why.into() }
    }

    /// A request that never left this process.
    pub(crate) fn not_sent(why: impl Into<String>) -> Refusal {
        Refusal { class: Class::NotSent, code: String::new(), message: why.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_empty() {
            return write!(formatter, "the request was not sent: {}", self.message);
        }
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Deadline => write!(formatter, "no answer within the deadline"),
            Unknown::Broken(why) => write!(formatter, "the connection broke: {why}"),
            Unknown::ServerError { status, code } if code.is_empty() => {
                write!(formatter, "the server failed with status {status}")
            }
            Unknown::ServerError { status, code } => {
                write!(formatter, "the server failed with status {status}: {code}")
            }
            Unknown::Unreadable(why) => write!(formatter, "the answer cannot be read: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_design_has_its_class() {
        for (code, class) in [
            ("Throttling", Class::Throttled),
            ("ThrottlingException", Class::Throttled),
            ("RequestLimitExceeded", Class::Throttled),
            ("NoSuchEntity", Class::NoSuchEntity),
            ("NoSuchEntityException", Class::NoSuchEntity),
            ("DeleteConflict", Class::DeleteConflict),
            ("ConcurrentModification", Class::ConcurrentModification),
            ("AccessDenied", Class::AccessDenied),
            ("AccessDeniedException", Class::AccessDenied),
            ("ExpiredToken", Class::Credentials),
            ("InvalidClientTokenId", Class::Credentials),
            ("OpenIdIdpCommunicationError", Class::IssuerUnreachable),
            ("SomethingNew", Class::Other),
        ] {
            assert_eq!(Class::of(code), class, "{code}");
        }
    }
}
