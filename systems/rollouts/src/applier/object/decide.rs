//! What happens to an object. First matching rule wins.

use serde::{Deserialize, Serialize};

/// How long an object that is being deleted is left alone.
const DELETING_SECONDS: u64 = 2;
/// When an object that was refused is tried again.
const REFUSED_SECONDS: u64 = 30;
/// When a bundle that cannot be read, or a kind that is not served, is asked for again.
const MISSING_SECONDS: u64 = 5;
/// When an object that needs nothing is read again while the report names it.
const NAMED_SECONDS: u64 = 10;
/// When an object that changed under our eyes is read again.
const CHANGED_SECONDS: u64 = 1;

/// All that one decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Facts {
    /// The token of the target, as the cache shows it.
    pub token: i64,
    /// Whether the report of this token names the object.
    pub is_named: bool,
    /// Whether the report of this token says that the fence is in force.
    pub is_fenced: bool,
    /// Whether nothing is in flight, and what others changed is only reported.
    pub is_quiet: bool,
    /// Whether the target takes over what others have.
    pub is_forced: bool,
    /// Whether objects of its kind hold data, and the target does not say that these are pruned.
    pub is_kept: bool,
    /// What the bundles say of it.
    pub role: Role,
    /// Whether the cluster serves its kind.
    pub served: Served,
    /// The object itself.
    pub live: Live,
    /// The Grant that the namespace of the object belongs to.
    pub placed: Placed,
    /// What the server would make of the apply.
    pub tried: Tried,
    /// What the report says of a refusal, if it does.
    pub noted: Option<Refused>,
}

/// What the bundles say of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// They were not asked for yet.
    #[default]
    Unasked,
    /// One of them cannot be read. What it says of the object is not known, and nothing is deleted for that.
    Unreadable,
    /// It is in the target.
    Wanted,
    /// It is not in the target, and in another bundle of the record.
    Listed,
    /// It is in no bundle of the record: it is not the rollouts' to delete.
    Unlisted,
}

/// Whether a kind is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Served {
    /// It was not asked yet.
    #[default]
    Unasked,
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// The object, by a live read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Live {
    /// It was not read yet.
    #[default]
    Unread,
    /// There is none.
    Absent,
    /// There is one.
    There(There),
}

/// An object that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct There {
    /// Whether it has our label, and names itself.
    pub is_ours: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it lacks what the target states, as far as its text says.
    pub differs: bool,
    /// The token under which it was marked to be deleted.
    pub mark: Option<i64>,
}

/// Whether a namespace belongs to a Grant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Placed {
    /// It was not read, or does not.
    #[default]
    No,
    /// To this one.
    By(String),
}

/// What the server would make of the apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tried {
    /// It was not asked yet.
    #[default]
    Unasked,
    /// The object would stay as it is.
    Same,
    /// The object would change.
    Changes,
    /// The object has changed since it was read.
    Changed,
    /// It would refuse it.
    Refused(Refused),
}

/// A refusal, as the report has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Refused {
    /// In one word.
    pub code: String,
    /// In a sentence.
    pub message: String,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds, and why.
    Wait(&'static str, u64),
    /// Ask for the bundles.
    AskBundles,
    /// Ask whether the kind is served.
    AskKind,
    /// Read the object itself.
    Read,
    /// Ask what the server would make of the apply.
    Try,
    /// Apply the object where there is none.
    Make,
    /// Apply the object over the version that was read.
    Change,
    /// Mark the object, so that it may be deleted under this token.
    Mark,
    /// Delete the version that was read.
    Delete,
    /// Say in the report that the object is refused.
    Note(Refused),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.token == 0 || !facts.is_named {
        return Decision::Rest("the report of this token does not name the object");
    }
    // Nothing of a token is written before everything older is refused (NoLateWrite).
    if !facts.is_fenced {
        return Decision::Rest("the fence is not in force for this token");
    }
    if facts.is_quiet {
        return Decision::Rest("nothing is in flight, and drift is only reported");
    }
    match facts.role {
        Role::Unasked => Decision::AskBundles,
        Role::Unreadable => Decision::Wait("a bundle cannot be read", MISSING_SECONDS),
        Role::Unlisted => Decision::Rest("no bundle of the record lists the object"),
        Role::Listed if facts.is_kept => Decision::Rest("the object is kept for its data"),
        Role::Wanted | Role::Listed => match (facts.served, facts.live) {
            (Served::Unasked, _) => Decision::AskKind,
            (Served::No, _) if facts.role == Role::Listed => {
                Decision::Wait("the cluster does not serve the kind any more", NAMED_SECONDS)
            }
            (Served::No, _) => Decision::Wait("the kind is not served", MISSING_SECONDS),
            (Served::Yes, Live::Unread) => Decision::Read,
            (Served::Yes, Live::Absent) if facts.role == Role::Listed => {
                Decision::Wait("the object is gone", NAMED_SECONDS)
            }
            (Served::Yes, Live::Absent) => tried(facts, &Decision::Make),
            (Served::Yes, Live::There(there)) if there.is_deleting => {
                Decision::Wait("the object is being deleted", DELETING_SECONDS)
            }
            (Served::Yes, Live::There(there)) if facts.role == Role::Listed => pruned(facts, there),
            (Served::Yes, Live::There(there)) => applied(facts, there),
        },
    }
}

/// A wanted object that is there.
fn applied(facts: &Facts, there: There) -> Decision {
    if !there.is_ours && !facts.is_forced {
        let message = "the object is there, and no rollout of this cluster made it; leave it out of the \
                       bundle, delete it, or submit with force";
        return noted(facts, refused("NotOurs", message));
    }
    if !there.differs {
        return Decision::Wait("the object is as the target has it", NAMED_SECONDS);
    }
    tried(facts, &Decision::Change)
}

/// What the server says to the apply decides.
fn tried(facts: &Facts, write: &Decision) -> Decision {
    if let Placed::By(grant) = &facts.placed {
        let message = format!(
            "the namespace belongs to the Grant {grant}; apply the object to the namespace at the hub"
        );
        return noted(facts, refused("NamespaceIsPlaced", message));
    }
    match &facts.tried {
        Tried::Unasked => Decision::Try,
        Tried::Same => Decision::Wait("an apply would change nothing", NAMED_SECONDS),
        Tried::Changes => write.clone(),
        Tried::Changed => Decision::Wait("the object has just changed", CHANGED_SECONDS),
        Tried::Refused(refusal) => noted(facts, refusal.clone()),
    }
}

/// An object of an older target. It is marked first: the fence lets it be deleted only under a token that it carries, so
/// that whoever believes in an older target cannot delete what this one wants.
fn pruned(facts: &Facts, there: There) -> Decision {
    match there {
        There { is_ours: false, .. } => {
            Decision::Wait("the object is not ours to delete", NAMED_SECONDS)
        }
        There { mark: Some(token), .. } if token == facts.token => Decision::Delete,
        There { .. } => Decision::Mark,
    }
}

fn noted(facts: &Facts, refusal: Refused) -> Decision {
    match facts.noted.as_ref() == Some(&refusal) {
        true => Decision::Wait("the object is refused, and reported", REFUSED_SECONDS),
        false => Decision::Note(refusal),
    }
}

fn refused(code: &str, message: impl Into<String>) -> Refused {
    Refused { code: code.to_owned(), message: message.into() }
}
