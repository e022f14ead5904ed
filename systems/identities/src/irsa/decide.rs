//! What is done about an IamRoleServiceAccount. First matching rule wins.

use crate::standing::Standing;
use interlock_api::identities::{
    IamRoleServiceAccountStatus as Status, OldCondition, condition as words,
};
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the finalizer is on the object.
    pub has_finalizer: bool,
    /// Whether the object is being deleted.
    pub is_deleting: bool,
    /// The generation of the object.
    pub generation: Option<i64>,
    /// The status of the object.
    pub status: Status,
    /// What is wrong with the spec.
    pub invalid: Option<String>,
    /// The Policy of its name.
    pub policy: Child,
    /// The Role of its name.
    pub role: Child,
    /// The ServiceAccount of its name.
    pub account: Account,
    /// Whether the three were read live, after a cache did not show one of them.
    pub is_live: bool,
}

/// A child as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Child {
    /// There is none.
    Absent,
    /// One of that name belongs to another, or to nobody; whose it seems to be.
    Foreign(String),
    /// It is this object's.
    Ours {
        /// Whether its spec is as the object asks.
        is_as_declared: bool,
        /// Whether it is being deleted.
        is_deleting: bool,
        /// The ARN of its cloud object, once it is ready for its generation.
        arn: Option<String>,
        /// Why it is not ready.
        because: Because,
    },
}

/// Why a child is not ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Because {
    /// Why a person has to act, in one word; None: nobody has to.
    #[serde(deserialize_with = "interlock_kernel::word_or_none")]
    pub stalled: Option<interlock_kernel::Word>,
    /// The sentence.
    pub message: String,
}

/// The ServiceAccount as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Account {
    /// There is none.
    Absent,
    /// It is not this object's, and the object does not say that it may be annotated.
    Foreign(String),
    /// It may be annotated.
    There {
        /// Whether this object made it.
        is_made: bool,
        /// Whether it is being deleted.
        is_deleting: bool,
        /// The role that it names.
        role: Option<String>,
    },
}

/// Which child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Which {
    /// The Policy.
    Policy,
    /// The Role.
    Role,
    /// The ServiceAccount.
    Account,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Put the finalizer on the object.
    AddFinalizer,
    /// Read the children live.
    LiveRead,
    /// Create the Policy or the Role, or bring it to what is declared.
    Apply(Which),
    /// Annotate the ServiceAccount with this role; make it where there is none.
    Annotate(String),
    /// Delete a child.
    Delete(Which),
    /// Take the annotation off a ServiceAccount that this object did not make.
    TakeAnnotationOff,
    /// Write the status.
    Report(Box<Report>),
    /// Take the finalizer off.
    RemoveFinalizer,
}

/// What the status says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How far it is.
    pub standing: Standing,
    /// irsa-operator's word.
    pub old: OldCondition,
    /// The cloud role.
    pub role_arn: Option<String>,
    /// The cloud policy.
    pub policy_arn: Option<String>,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting {
        return delete(facts);
    }
    if let Some(wrong) = &facts.invalid {
        let standing = Standing::stalled(words::INVALID, wrong.clone());
        return facts.say(standing, OldCondition::Failed);
    }
    if !facts.has_finalizer {
        return Decision::AddFinalizer;
    }
    if let Account::Foreign(whose) = &facts.account {
        let message = format!("a ServiceAccount of that name exists: {whose}");
        let standing = Standing::stalled(words::CONFLICT, message)
            .next(Some("set spec.adoptServiceAccount to true to annotate it".to_owned()));
        return facts.say(standing, OldCondition::SaNameConflict);
    }
    for (child, kind) in [(&facts.policy, "Policy"), (&facts.role, "Role")] {
        if let Child::Foreign(whose) = child {
            let message = format!("a {kind} of that name exists: {whose}");
            let standing = Standing::stalled(words::CONFLICT, message);
            return facts.say(standing, OldCondition::Failed);
        }
    }
    for (child, which) in [(&facts.policy, Which::Policy), (&facts.role, Which::Role)] {
        match child {
            // Absence from a cache is not absence.
            Child::Absent if !facts.is_live => return Decision::LiveRead,
            Child::Absent => return Decision::Apply(which),
            Child::Ours { is_deleting: true, .. } => {
                let message = format!("the {which:?} of that name is being deleted");
                let standing = Standing::reconciling(words::PROGRESSING, message);
                return facts.say(standing, OldCondition::Progressing);
            }
            Child::Ours { is_as_declared: false, .. } => return Decision::Apply(which),
            Child::Ours { .. } | Child::Foreign(_) => {}
        }
    }
    serve(facts)
}

/// The children are as declared: once they are ready, the ServiceAccount names the role.
fn serve(facts: &Facts) -> Decision {
    let children = [
        (&facts.policy, words::WAITING_FOR_POLICY, "Policy"),
        (&facts.role, words::WAITING_FOR_ROLE, "Role"),
    ];
    for (child, reason, kind) in children {
        if let Child::Ours { arn: None, because, .. } = child {
            let message = format!("the {kind} is not ready: {}", because.message);
            let standing = match because.stalled {
                Some(stalled) => Standing::stalled(stalled, message),
                None => Standing::reconciling(reason, message),
            };
            let old = standing.old();
            return facts.say(standing, old);
        }
    }
    let (Some(role_arn), policy_arn) = (facts.role.arn(), facts.policy.arn()) else {
        return Decision::Rest("the children are not there");
    };
    match &facts.account {
        Account::Absent if !facts.is_live => return Decision::LiveRead,
        Account::There { role, .. } if role.as_ref() == Some(&role_arn) => {}
        Account::There { is_deleting: true, .. } => {
            let message = "the ServiceAccount of that name is being deleted";
            let standing = Standing::reconciling(words::PROGRESSING, message);
            return facts.say(standing, OldCondition::Progressing);
        }
        Account::Absent | Account::There { .. } => return Decision::Annotate(role_arn),
        Account::Foreign(_) => return Decision::Rest("the ServiceAccount is another's"),
    }
    facts.report(Report {
        standing: Standing::Ready("policy, role and ServiceAccount are as declared"),
        old: OldCondition::Created,
        role_arn: Some(role_arn),
        policy_arn,
    })
}

/// The ServiceAccount, then the Role, then the Policy, one after the other: no pod gets a role that is being
/// deleted, and no policy is deleted while it is attached.
fn delete(facts: &Facts) -> Decision {
    if !facts.has_finalizer {
        return Decision::Rest("the object is being deleted, and has no children");
    }
    match &facts.account {
        Account::There { is_made: true, is_deleting: false, .. } => {
            return Decision::Delete(Which::Account);
        }
        Account::There { is_made: false, role: Some(_), .. } => return Decision::TakeAnnotationOff,
        Account::There { .. } | Account::Absent | Account::Foreign(_) => {}
    }
    for (child, which) in [(&facts.role, Which::Role), (&facts.policy, Which::Policy)] {
        match child {
            Child::Ours { is_deleting: false, .. } => return Decision::Delete(which),
            Child::Ours { because, .. } => {
                let message = format!("the {which:?} is being deleted: {}", because.message);
                let standing = Standing::reconciling(words::PROGRESSING, message);
                return facts.say(standing, OldCondition::Progressing);
            }
            Child::Absent if !facts.is_live => return Decision::LiveRead,
            Child::Absent | Child::Foreign(_) => {}
        }
    }
    Decision::RemoveFinalizer
}

impl Child {
    fn arn(&self) -> Option<String> {
        match self {
            Child::Ours { arn, .. } => arn.clone(),
            Child::Absent | Child::Foreign(_) => None,
        }
    }
}

impl Facts {
    fn say(&self, standing: Standing, old: OldCondition) -> Decision {
        self.report(Report { standing, old, role_arn: None, policy_arn: None })
    }

    fn report(&self, report: Report) -> Decision {
        let status = &self.status;
        let arns = (&status.role_arn, &status.policy_arn);
        let is_same = report.standing.is_in(&status.conditions)
            && (status.condition, status.reason.as_str())
                == (report.old, report.standing.sentence())
            && status.observed_generation == self.generation
            && (report.role_arn.is_none() || arns == (&report.role_arn, &report.policy_arn));
        if is_same {
            return Decision::Rest("the status says how far it is");
        }
        Decision::Report(Box::new(report))
    }
}
