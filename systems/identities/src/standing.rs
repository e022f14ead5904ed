//! How far an object is, in its conditions and in irsa-operator's words.

use crate::outside::{Code, Failure, Refusal};
use interlock_api::identities::{OldCondition, condition as words};
use interlock_kernel::Object;
use interlock_kernel::conditions::{Condition, Finding, find, is_true, with};
use interlock_kernel::metadata::is_deleting;
use jiff::Timestamp;
use serde::Serialize;

/// After how many seconds a read that failed is repeated.
const REPEATED_SECONDS: i64 = 15;

/// How far an object is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Standing {
    /// The cloud is as declared; the sentence says what.
    Ready(&'static str),
    /// It goes on by itself.
    Reconciling(Why),
    /// A person has to act.
    Stalled(Why),
}

/// Why an object is not ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// What a person does next.
    pub next: Option<String>,
}

impl Why {
    fn new(reason: &'static str, message: impl Into<String>) -> Why {
        Why { reason, message: message.into(), next: None }
    }
}

impl Standing {
    /// It goes on by itself.
    pub fn reconciling(reason: &'static str, message: impl Into<String>) -> Standing {
        Standing::Reconciling(Why::new(reason, message))
    }

    /// A person has to act.
    pub fn stalled(reason: &'static str, message: impl Into<String>) -> Standing {
        Standing::Stalled(Why::new(reason, message))
    }

    /// The same, with what a person does next.
    #[must_use]
    pub fn next(self, next: Option<String>) -> Standing {
        match self {
            Standing::Ready(_) => self,
            Standing::Reconciling(why) => Standing::Reconciling(Why { next, ..why }),
            Standing::Stalled(why) => Standing::Stalled(Why { next, ..why }),
        }
    }

    /// A call may still take effect.
    pub fn late() -> Standing {
        let message =
            "a call of another process, or one whose answer was lost, may still take effect";
        Standing::reconciling(words::WAITING_FOR_LATE_CALL, message)
    }

    /// The cloud could not be read; and after how many seconds it is read again.
    pub fn failed(failure: &Failure) -> (Standing, i64) {
        let repeated = |standing| (standing, REPEATED_SECONDS);
        match failure {
            Failure::Throttled { after } => {
                let message = "the rate limit of the cloud account is reached";
                let after = i64::try_from(*after).unwrap_or(REPEATED_SECONDS).max(1);
                (Standing::reconciling(words::THROTTLED, message), after)
            }
            Failure::Unavailable { why } => repeated(Standing::reconciling(
                words::UNAVAILABLE,
                format!("the cloud does not answer: {why}"),
            )),
            Failure::Credentials { why } => repeated(Standing::reconciling(
                words::UNAVAILABLE,
                format!("the credentials of the controller are not valid: {why}"),
            )),
            Failure::Forbidden { right } => repeated(
                Standing::stalled(words::FORBIDDEN, format!("the controller may not {right}"))
                    .next(Some(format!("allow {right} in the policy of the controller"))),
            ),
        }
    }

    /// The cloud refused a call.
    pub fn refused(refusal: &Refusal) -> Standing {
        let (call, said) = (refusal.call.name(), &refusal.message);
        let sentence = format!("the cloud refuses {call}: {said}");
        match refusal.code {
            Code::AccessDenied => Standing::stalled(words::FORBIDDEN, sentence)
                .next(Some(format!("allow iam:{call} in the policy of the controller"))),
            Code::LimitExceeded => Standing::stalled(words::LIMIT_EXCEEDED, sentence).next(Some(
                "raise the quota of the cloud account, or delete what is not used".into(),
            )),
            Code::MalformedPolicyDocument
            | Code::InvalidInput
            | Code::PolicyNotAttachable
            | Code::IssuerUnreachable => Standing::stalled(words::INVALID, sentence),
            Code::UnmodifiableEntity | Code::EntityAlreadyExists => {
                Standing::stalled(words::CONFLICT, sentence)
            }
            Code::Throttling => Standing::reconciling(words::THROTTLED, sentence),
            Code::NoSuchEntity | Code::DeleteConflict | Code::ConcurrentModification => {
                Standing::reconciling(words::PROGRESSING, sentence)
            }
        }
    }

    /// As conditions.
    pub fn findings(&self) -> [Finding; 3] {
        let finding = |kind, holds: bool, why: &Why| Finding {
            kind,
            holds: Some(holds),
            reason: why.reason,
            message: why.message.clone(),
            next: why.next.clone(),
        };
        match self {
            Standing::Ready(sentence) => {
                let why = Why::new(words::AS_DECLARED, *sentence);
                [
                    finding(words::READY, true, &why),
                    finding(words::RECONCILING, false, &why),
                    finding(words::STALLED, false, &why),
                ]
            }
            Standing::Reconciling(why) => [
                finding(words::READY, false, why),
                finding(words::RECONCILING, true, why),
                finding(words::STALLED, false, why),
            ],
            Standing::Stalled(why) => [
                finding(words::READY, false, why),
                finding(words::RECONCILING, false, why),
                finding(words::STALLED, true, why),
            ],
        }
    }

    /// Whether the conditions say it already.
    pub fn is_in(&self, conditions: &[Condition]) -> bool {
        self.findings().iter().all(|finding| finding.is_in(conditions))
    }

    /// These conditions with it.
    pub fn added_to(
        &self,
        conditions: &[Condition],
        now: Timestamp,
        generation: Option<i64>,
    ) -> Vec<Condition> {
        let all = self.findings();
        all.iter().fold(conditions.to_vec(), |all, finding| with(&all, finding, now, generation))
    }

    /// irsa-operator's word.
    pub fn old(&self) -> OldCondition {
        match self {
            Standing::Ready(_) => OldCondition::Created,
            Standing::Reconciling(_) => OldCondition::Progressing,
            Standing::Stalled(why) if why.reason == words::FORBIDDEN => OldCondition::Forbidden,
            Standing::Stalled(_) => OldCondition::Failed,
        }
    }

    /// Why, in a sentence; empty if it is ready.
    pub fn sentence(&self) -> &str {
        match self {
            Standing::Ready(_) => "",
            Standing::Reconciling(why) | Standing::Stalled(why) => &why.message,
        }
    }
}

/// Whether the ARN in a spec is not that of the cloud object. Where there is no such ARN, and nobody ever found
/// one, there is nothing to say.
pub fn is_spec_arn_ignored(spec: Option<&str>, arn: &str, known: &[Condition]) -> Option<bool> {
    let is_ignored = spec.is_some_and(|spec| spec != arn);
    (is_ignored || find(known, words::SPEC_ARN_IGNORED).is_some()).then_some(is_ignored)
}

/// The condition about the ARN in a spec.
pub fn spec_arn_ignored(is_ignored: Option<bool>) -> Option<Finding> {
    let other = "the ARN in the spec is not this object's; what it names is left alone";
    Some(match is_ignored? {
        true => Finding::holds(words::SPEC_ARN_IGNORED, words::CONFLICT, other),
        false => Finding::fails(words::SPEC_ARN_IGNORED, words::AS_DECLARED, "it is used"),
    })
}

/// Whether a status is about the spec as it is.
pub fn is_observed(observed: Option<i64>, generation: Option<i64>) -> bool {
    observed.is_some() && observed == generation
}

/// Whether a status says that the cloud is as an object declares it now.
pub fn was_as_declared(object: &Object, conditions: &[Condition], observed: Option<i64>) -> bool {
    is_observed(observed, object.metadata.generation)
        && !is_deleting(object)
        && is_true(conditions, words::READY)
}
