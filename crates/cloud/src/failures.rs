//! What an outcome means to a room: why nobody can tell, or why a call was refused.

use interlock_iam::outcome::{Class, Refusal};
use interlock_identities::outside::{Call, Code, Failure};
use std::time::Duration;

/// After how many seconds the cloud is asked again if it throttles.
const THROTTLED_SECONDS: u64 = 2;

/// The rate limit of the account is reached for this long.
pub(crate) fn no_token(wait: Duration) -> Failure {
    let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Failure::Throttled { after: whole.max(1) }
}

/// What a refused read means; `right` is what the client needs for it. Absence is no failure, and is not
/// asked for here.
pub(crate) fn of_read(right: &str, refusal: &Refusal) -> Failure {
    let unavailable = || Failure::Unavailable { why: format!("{right}: {refusal}") };
    match refusal.class {
        Class::Throttled => Failure::Throttled { after: THROTTLED_SECONDS },
        Class::AccessDenied => Failure::Forbidden { right: right.to_owned() },
        Class::Credentials => Failure::Credentials { why: refusal.to_string() },
        Class::NotSent
        | Class::NoSuchEntity
        | Class::EntityAlreadyExists
        | Class::DeleteConflict
        | Class::LimitExceeded
        | Class::MalformedPolicyDocument
        | Class::InvalidInput
        | Class::ConcurrentModification
        | Class::UnmodifiableEntity
        | Class::PolicyNotAttachable
        | Class::IssuerUnreachable
        | Class::IdentityToken
        | Class::Other => unavailable(),
    }
}

/// What a refused call means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// What was to be removed is not there: that is what was wanted.
    Done,
    /// Nothing was sent.
    NotSent,
    /// The credentials are not good, whatever the call. No object is to blame.
    Credentials,
    /// The cloud refused this call.
    Refused(Code),
}

/// What a refused call means.
pub(crate) fn of_call(call: &Call, class: Class) -> Meaning {
    Meaning::Refused(match class {
        Class::NotSent => return Meaning::NotSent,
        Class::Credentials => return Meaning::Credentials,
        Class::NoSuchEntity if removes(call) => return Meaning::Done,
        Class::NoSuchEntity => Code::NoSuchEntity,
        Class::Throttled => Code::Throttling,
        Class::EntityAlreadyExists => Code::EntityAlreadyExists,
        Class::DeleteConflict => Code::DeleteConflict,
        Class::LimitExceeded => Code::LimitExceeded,
        Class::MalformedPolicyDocument => Code::MalformedPolicyDocument,
        Class::InvalidInput => Code::InvalidInput,
        Class::ConcurrentModification => Code::ConcurrentModification,
        Class::UnmodifiableEntity => Code::UnmodifiableEntity,
        Class::PolicyNotAttachable => Code::PolicyNotAttachable,
        Class::AccessDenied => Code::AccessDenied,
        Class::IssuerUnreachable => Code::IssuerUnreachable,
        // A code that nobody knows is a refusal all the same; its message has the code.
        Class::IdentityToken | Class::Other => Code::InvalidInput,
    })
}

/// Whether a call is done when there is nothing to do it to.
fn removes(call: &Call) -> bool {
    match call {
        Call::DeletePolicyVersion { .. }
        | Call::DeletePolicy
        | Call::DetachRolePolicy { .. }
        | Call::DeleteRolePolicy { .. }
        | Call::DeleteRole
        | Call::DeleteOpenIdConnectProvider => true,
        Call::CreatePolicy { .. }
        | Call::TagPolicy { .. }
        | Call::CreatePolicyVersion { .. }
        | Call::SetDefaultPolicyVersion { .. }
        | Call::CreateRole { .. }
        | Call::TagRole { .. }
        | Call::UpdateAssumeRolePolicy { .. }
        | Call::PutRolePermissionsBoundary { .. }
        | Call::AttachRolePolicy { .. }
        | Call::PutRolePolicy { .. }
        | Call::CreateOpenIdConnectProvider { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes as IAM writes them, what a read makes of each, and what a call makes of it.
    const CODES: [(&str, &str, Meaning); 22] = [
        ("Throttling", "throttled", Meaning::Refused(Code::Throttling)),
        ("ThrottlingException", "throttled", Meaning::Refused(Code::Throttling)),
        ("RequestLimitExceeded", "throttled", Meaning::Refused(Code::Throttling)),
        ("NoSuchEntity", "unavailable", Meaning::Refused(Code::NoSuchEntity)),
        ("EntityAlreadyExists", "unavailable", Meaning::Refused(Code::EntityAlreadyExists)),
        ("DeleteConflict", "unavailable", Meaning::Refused(Code::DeleteConflict)),
        ("LimitExceeded", "unavailable", Meaning::Refused(Code::LimitExceeded)),
        ("MalformedPolicyDocument", "unavailable", Meaning::Refused(Code::MalformedPolicyDocument)),
        ("InvalidInput", "unavailable", Meaning::Refused(Code::InvalidInput)),
        ("ValidationError", "unavailable", Meaning::Refused(Code::InvalidInput)),
        ("ConcurrentModification", "unavailable", Meaning::Refused(Code::ConcurrentModification)),
        ("UnmodifiableEntity", "unavailable", Meaning::Refused(Code::UnmodifiableEntity)),
        ("PolicyNotAttachable", "unavailable", Meaning::Refused(Code::PolicyNotAttachable)),
        ("AccessDenied", "forbidden", Meaning::Refused(Code::AccessDenied)),
        ("AccessDeniedException", "forbidden", Meaning::Refused(Code::AccessDenied)),
        ("ExpiredToken", "credentials", Meaning::Credentials),
        ("InvalidClientTokenId", "credentials", Meaning::Credentials),
        ("SignatureDoesNotMatch", "credentials", Meaning::Credentials),
        ("OpenIdIdpCommunicationError", "unavailable", Meaning::Refused(Code::IssuerUnreachable)),
        ("InvalidIdentityToken", "unavailable", Meaning::Refused(Code::InvalidInput)),
        ("SomethingNew", "unavailable", Meaning::Refused(Code::InvalidInput)),
        ("", "unavailable", Meaning::Refused(Code::InvalidInput)),
    ];

    fn refusal(code: &str) -> Refusal {
        Refusal { class: Class::of(code), code: code.to_owned(), message: "m".to_owned() }
    }

    #[test]
    fn every_code_means_something_to_a_read() {
        for (code, wanted, _) in CODES {
            let word = match of_read("iam:GetRole", &refusal(code)) {
                Failure::Throttled { after } => {
                    assert_eq!(after, THROTTLED_SECONDS);
                    "throttled"
                }
                Failure::Forbidden { right } => {
                    assert_eq!(right, "iam:GetRole");
                    "forbidden"
                }
                Failure::Credentials { .. } => "credentials",
                Failure::Unavailable { .. } => "unavailable",
            };
            assert_eq!(word, wanted, "{code}");
        }
    }

    #[test]
    fn every_code_means_something_to_a_call() {
        let create = Call::CreatePolicyVersion { document: String::new() };
        for (code, _, wanted) in CODES {
            assert_eq!(of_call(&create, Class::of(code)), wanted, "{code}");
        }
        assert_eq!(of_call(&create, Class::NotSent), Meaning::NotSent);
    }

    #[test]
    fn to_remove_what_is_not_there_is_done_and_a_delete_conflict_never_is() {
        let detach = Call::DetachRolePolicy { arn: "a".to_owned() };
        for call in [Call::DeleteRole, Call::DeletePolicy, detach] {
            assert_eq!(of_call(&call, Class::NoSuchEntity), Meaning::Done);
            let conflict = of_call(&call, Class::DeleteConflict);
            assert_eq!(conflict, Meaning::Refused(Code::DeleteConflict));
        }
        let attach = Call::AttachRolePolicy { arn: "a".to_owned() };
        let refused = Meaning::Refused(Code::NoSuchEntity);
        assert_eq!(of_call(&attach, Class::NoSuchEntity), refused);
    }

    #[test]
    fn a_wait_for_a_token_is_rounded_up() {
        let after = |milliseconds| no_token(Duration::from_millis(milliseconds));
        assert_eq!(after(0), Failure::Throttled { after: 1 });
        assert_eq!(after(1_000), Failure::Throttled { after: 1 });
        assert_eq!(after(1_001), Failure::Throttled { after: 2 });
    }
}
