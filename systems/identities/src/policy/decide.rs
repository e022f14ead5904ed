//! What is done about a Policy. First matching rule wins.

use crate::document;
use crate::journal::{Gate, Going, Journal, Resting};
use crate::outside::{At, Call, Failure, PolicyFound, Version};
use crate::owner::{Owner, Whose};
use crate::standing::{Standing, is_observed, is_spec_arn_ignored, spec_arn_ignored};
use interlock_api::identities::{Mark, PolicyStatus, condition as words};
use interlock_kernel::conditions::is_true;
use serde::{Deserialize, Serialize};

/// How many versions a policy has at most.
const MOST_VERSIONS: usize = 5;
/// After how many seconds it is checked whether somebody detached the policy.
const DETACHED_SECONDS: i64 = 30;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the finalizer is on the Policy.
    pub has_finalizer: bool,
    /// Whether the Policy is being deleted.
    pub is_deleting: bool,
    /// Whether the cloud policy stays when the Policy is deleted.
    pub is_retained: bool,
    /// The generation of the Policy.
    pub generation: Option<i64>,
    /// The ARN in the spec.
    pub spec_arn: Option<String>,
    /// The status of the Policy.
    pub status: PolicyStatus,
    /// What is wrong with the spec.
    pub invalid: Option<String>,
    /// The document that the spec asks for.
    pub document: String,
    /// The Policy as the owner of a cloud policy.
    pub owner: Owner,
    /// Where the cloud policy may be, in the order in which it is looked for.
    pub places: Vec<At>,
    /// What was read live: first the cloud, or only what this process sent, then the Policy. None: nothing yet.
    pub look: Option<Look>,
}

/// What was read live.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct Look {
    /// What is known of calls.
    pub journal: Journal,
    /// What is where; none: the cloud was not read.
    pub places: Vec<CloudPlace>,
}

/// What is at one place.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct CloudPlace {
    /// Where.
    pub at: At,
    /// What.
    pub state: State,
}

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum State {
    /// Nothing.
    Absent,
    /// A policy.
    Policy {
        /// As it is.
        found: PolicyFound,
        /// Whose it is.
        whose: Whose,
        /// The line that would adopt it.
        adopting: Option<String>,
    },
    /// Nobody can tell.
    Failed(Failure),
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Put the finalizer on the Policy.
    AddFinalizer,
    /// Read so many of the places, and then the Policy; whole: whatever is known already.
    LiveRead {
        /// How many; none: only what this process sent.
        places: usize,
        /// Whether versions are read even if the default version is known.
        whole: bool,
    },
    /// Write this mark.
    Mark(Mark),
    /// Remove the mark: nothing is under way, and nothing is to be done.
    Unmark {
        /// Whether the cloud was found as declared under it: nothing is to do until the next resync.
        is_compared: bool,
    },
    /// Make this call.
    Call(At, Call),
    /// Write the status.
    Report(Box<Report>),
    /// Nothing for so many seconds.
    Wait(&'static str, i64),
    /// Nothing until the cloud is compared again.
    Resync,
    /// Take the finalizer off.
    RemoveFinalizer(Left),
}

/// What the status says of a cloud policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How far it is.
    pub standing: Standing,
    /// The cloud policy, its id, its default version, and the digest of that version.
    pub known: Option<Known>,
    /// Whether the ARN in the spec names something else; None: nothing is said about it.
    pub is_spec_arn_ignored: Option<bool>,
    /// The mark that says so, too; None: it stays as it is.
    pub mark: Option<Mark>,
}

/// What is known of a cloud policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Its ARN.
    pub arn: String,
    /// Its id.
    pub id: String,
    /// Its default version.
    pub version: String,
    /// The digest of that version.
    pub digest: String,
}

/// What is left in the cloud when the finalizer is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// The cloud policy, as the spec asks.
    Retained,
    /// A policy of that name that belongs to another.
    Foreign,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting && !facts.has_finalizer {
        return Decision::Rest("the Policy is being deleted, and nothing of it is in the cloud");
    }
    if facts.is_deleting && facts.is_retained {
        return Decision::RemoveFinalizer(Left::Retained);
    }
    if let Some(wrong) = facts.invalid.as_ref().filter(|_| !facts.is_deleting) {
        let standing = Standing::stalled(words::INVALID, wrong.clone());
        return facts.say(standing, Decision::Rest("the spec is not valid"));
    }
    if !facts.has_finalizer {
        return Decision::AddFinalizer;
    }
    let Some(look) = &facts.look else {
        let places = usize::from(!facts.is_under_way());
        return Decision::LiveRead { places, whole: false };
    };
    if look.places.is_empty() {
        return begin(facts, &look.journal);
    }
    let failure = look.places.iter().find_map(|place| match &place.state {
        State::Failed(failure) => Some(failure),
        State::Absent | State::Policy { .. } => None,
    });
    if let Some(failure) = failure {
        let (standing, seconds) = Standing::failed(failure);
        return facts.say(standing, Decision::Wait("the cloud could not be read", seconds));
    }
    match find(facts, look) {
        // Nothing is known of what is at other places.
        None => Decision::LiveRead { places: facts.places.len(), whole: true },
        Some(Where::Ours(at, found)) if facts.is_deleting => delete(facts, look, at, found),
        Some(Where::Ours(at, found)) => keep(facts, look, at, found),
        Some(Where::Proven(at)) if !facts.is_deleting => {
            call(facts, look, at, Call::TagPolicy { tags: facts.owner.tags() })
        }
        Some(Where::Absent(at)) if !facts.is_deleting => create(facts, look, at),
        Some(Where::Foreign(whose, adopting)) if !facts.is_deleting => {
            let message = format!("a policy of that name is in the cloud: {whose}");
            let standing = Standing::stalled(words::CONFLICT, message).next(adopting.clone());
            facts.say(standing, rest(&look.journal))
        }
        Some(Where::Foreign(..) | Where::Proven(_)) => gone(facts, look, Left::Foreign),
        Some(Where::Absent(_)) => gone(facts, look, Left::Nothing),
    }
}

/// What can be done before the cloud is read: each read costs requests.
fn begin(facts: &Facts, journal: &Journal) -> Decision {
    let read = Decision::LiveRead { places: 1, whole: false };
    if facts.is_deleting {
        // Whatever the cloud shows, it is believed only when no call can be late any more.
        if journal.has_done(&Call::DeletePolicy) && !journal.is_quiet() {
            return late(facts, journal.quiet_in());
        }
        return journal.mark_first().map_or(read, Decision::Mark);
    }
    if journal.is_settled() && facts.is_as_declared() {
        return rest(journal);
    }
    let mark = journal.mark_first().filter(|_| !facts.is_observed());
    mark.map_or(read, Decision::Mark)
}

/// What there is in the cloud for a Policy.
enum Where<'a> {
    Ours(&'a At, &'a PolicyFound),
    Proven(&'a At),
    Foreign(&'a str, &'a Option<String>),
    Absent(&'a At),
}

/// Whatever is ours is taken, wherever it is; then what may be adopted; then what is at the own place. None: a
/// place was not read yet.
fn find<'a>(facts: &'a Facts, look: &'a Look) -> Option<Where<'a>> {
    let policies = || {
        look.places.iter().filter_map(|place| match &place.state {
            State::Policy { found, whose, adopting } => Some((&place.at, found, whose, adopting)),
            State::Absent | State::Failed(_) => None,
        })
    };
    if let Some((at, found, ..)) = policies().find(|(_, _, whose, _)| **whose == Whose::Ours) {
        return Some(Where::Ours(at, found));
    }
    if look.places.len() < facts.places.len() {
        return None;
    }
    if let Some((at, ..)) = policies().find(|(_, _, whose, _)| **whose == Whose::Proven) {
        return Some(Where::Proven(at));
    }
    let own = facts.owner.at();
    let own = facts.places.iter().find(|at| **at == own)?;
    let there = policies().find(|(at, ..)| *at == own);
    Some(match there {
        Some((_, _, Whose::Foreign(whose), adopting)) => Where::Foreign(whose, adopting),
        Some(_) | None => Where::Absent(own),
    })
}

fn create(facts: &Facts, look: &Look, at: &At) -> Decision {
    let (document, tags) = (facts.document.clone(), facts.owner.tags());
    call(facts, look, at, Call::CreatePolicy { document, tags })
}

/// A cloud policy that is ours is brought to what is declared.
fn keep(facts: &Facts, look: &Look, at: &At, found: &PolicyFound) -> Decision {
    let is_known = Some(&found.id) == facts.status.policy_id.as_ref();
    let Some(versions) = &found.versions else {
        // The version that is known is one of the policy that is known.
        if !is_known {
            return Decision::LiveRead { places: look.places.len(), whole: true };
        }
        return compared(facts, look, at, found);
    };
    let is_wanted = |version: &Version| document::is_same(&version.document, &facts.document);
    let default = versions.iter().find(|version| version.id == found.default_version);
    if !default.is_some_and(is_wanted) {
        return update(facts, look, at, versions);
    }
    compared(facts, look, at, found)
}

/// The default version has another document.
fn update(facts: &Facts, look: &Look, at: &At, versions: &[Version]) -> Decision {
    let is_wanted = |version: &&Version| document::is_same(&version.document, &facts.document);
    let next = match versions.iter().find(is_wanted) {
        Some(older) => Call::SetDefaultPolicyVersion { version: older.id.clone() },
        None => Call::CreatePolicyVersion { document: facts.document.clone() },
    };
    if look.journal.has_done(&next) {
        let standing = Standing::reconciling(
            words::PROGRESSING,
            "the cloud does not show the new version yet",
        );
        return facts.say(standing, Decision::Wait("reads lag", look.journal.quiet_in()));
    }
    let is_full =
        versions.len() >= MOST_VERSIONS && matches!(next, Call::CreatePolicyVersion { .. });
    match versions.iter().find(|it| is_full && !is_default(look, at, it)) {
        Some(oldest) => {
            let version = oldest.id.clone();
            call(facts, look, at, Call::DeletePolicyVersion { version })
        }
        None => call(facts, look, at, next),
    }
}

fn is_default(look: &Look, at: &At, version: &Version) -> bool {
    look.places.iter().any(|place| match &place.state {
        State::Policy { found, .. } => place.at == *at && found.default_version == version.id,
        State::Absent | State::Failed(_) => false,
    })
}

/// The document is as declared.
fn compared(facts: &Facts, look: &Look, at: &At, found: &PolicyFound) -> Decision {
    if !facts.owner.has_tagged(&found.tags) {
        return call(facts, look, at, Call::TagPolicy { tags: facts.owner.tags() });
    }
    let known = Known {
        arn: found.arn.clone(),
        id: found.id.clone(),
        version: found.default_version.clone(),
        digest: document::digest(&facts.document),
    };
    let report = Report {
        standing: Standing::Ready("the cloud policy is as declared"),
        is_spec_arn_ignored: is_spec_arn_ignored(
            facts.spec_arn.as_deref(),
            &found.arn,
            &facts.status.conditions,
        ),
        known: Some(known),
        mark: look.journal.settling(true),
    };
    if !report.is_in(facts) {
        return Decision::Report(Box::new(report));
    }
    rest(&look.journal)
}

/// Nothing is to be done: the mark is removed once nothing is under way.
fn rest(journal: &Journal) -> Decision {
    match journal.resting() {
        Resting::Quiet | Resting::Another => Decision::Resync,
        Resting::Unmark { is_compared } => Decision::Unmark { is_compared },
        Resting::Wait { seconds } => Decision::Wait("calls may be under way", seconds),
    }
}

/// The Policy is being deleted, and its cloud policy is there.
fn delete(facts: &Facts, look: &Look, at: &At, found: &PolicyFound) -> Decision {
    let again = Decision::LiveRead { places: look.places.len(), whole: true };
    let Some(attached) = &found.attached_to else { return again };
    if !attached.is_empty() {
        let standing = attached_standing(facts, attached);
        return facts.say(standing, Decision::Wait("the policy is attached", DETACHED_SECONDS));
    }
    let Some(versions) = &found.versions else { return again };
    match versions.iter().find(|version| version.id != found.default_version) {
        Some(other) => {
            call(facts, look, at, Call::DeletePolicyVersion { version: other.id.clone() })
        }
        None => call(facts, look, at, Call::DeletePolicy),
    }
}

/// The role of the same identity lets go by itself when it is deleted; a person has to see to any other.
fn attached_standing(facts: &Facts, attached: &[String]) -> Standing {
    let is_own =
        |name: &String| matches!(facts.owner.at(), At::Name { name: own, .. } if own == *name);
    if attached.iter().all(is_own) {
        let message = format!("the Role {} has the policy attached", facts.owner.name);
        return Standing::reconciling(words::WAITING_FOR_ROLE, message);
    }
    let message = format!("the cloud policy is attached to {}", attached.join(", "));
    Standing::reconciling(words::ATTACHED_ELSEWHERE, message)
        .next(Some("detach the policy, or set spec.deletionPolicy to Retain".to_owned()))
}

/// The Policy is being deleted, and the cloud shows nothing of it: that is believed once nothing can land.
fn gone(facts: &Facts, look: &Look, left: Left) -> Decision {
    match look.journal.going() {
        Going::Gone => Decision::RemoveFinalizer(left),
        Going::Mark(mark) => Decision::Mark(mark),
        Going::Late { seconds } => late(facts, seconds),
    }
}

/// A call may still take effect.
fn late(facts: &Facts, seconds: i64) -> Decision {
    facts.say(Standing::late(), Decision::Wait("a late call may still land", seconds))
}

/// A call, if it may be made now.
fn call(facts: &Facts, look: &Look, at: &At, call: Call) -> Decision {
    match look.journal.gate(&call) {
        // To repeat it would change nothing: either reads lag, or somebody has undone it since.
        Gate::Open if look.journal.has_done(&call) => {
            let message = "the cloud does not show yet what was done";
            let standing = Standing::reconciling(words::PROGRESSING, message);
            facts.say(standing, Decision::Wait("reads lag", look.journal.quiet_in()))
        }
        Gate::Open => Decision::Call(at.clone(), call),
        Gate::Mark(mark) => Decision::Mark(mark),
        Gate::Late { seconds } => late(facts, seconds),
        Gate::Hidden { seconds } => {
            let message = "the cloud does not show the policy yet";
            let standing = Standing::reconciling(words::PROGRESSING, message);
            facts.say(standing, Decision::Wait("reads lag", seconds))
        }
        Gate::Refused { refusal, seconds } => {
            facts.say(Standing::refused(&refusal), Decision::Wait("the cloud refuses", seconds))
        }
    }
}

impl Facts {
    /// Whether calls are to be expected: what this process sent, and whose mark it is, is then read first.
    fn is_under_way(&self) -> bool {
        self.is_deleting || self.status.mark.is_some() || !self.is_observed()
    }

    /// Whether the status is about the spec as it is.
    fn is_observed(&self) -> bool {
        is_observed(self.status.observed_generation, self.generation)
    }

    /// Whether the status says that the cloud has what the spec asks for.
    fn is_as_declared(&self) -> bool {
        self.is_observed()
            && is_true(&self.status.conditions, words::READY)
            && self.status.document_hash == Some(document::digest(&self.document))
    }

    /// The status says how far it is, and then this is done.
    fn say(&self, standing: Standing, then: Decision) -> Decision {
        let report = Report { standing, known: None, is_spec_arn_ignored: None, mark: None };
        if report.is_in(self) { then } else { Decision::Report(Box::new(report)) }
    }
}

impl Report {
    /// Whether the status says all of it already.
    fn is_in(&self, facts: &Facts) -> bool {
        let status = &facts.status;
        if self.mark.is_some() {
            return false;
        }
        let is_known = self.known.as_ref().is_none_or(|known| {
            status.arn.as_ref() == Some(&known.arn)
                && status.policy_id.as_ref() == Some(&known.id)
                && status.version_id.as_ref() == Some(&known.version)
                && status.document_hash.as_ref() == Some(&known.digest)
        });
        is_known
            && self.standing.is_in(&status.conditions)
            && spec_arn_ignored(self.is_spec_arn_ignored)
                .is_none_or(|finding| finding.is_in(&status.conditions))
            && (status.condition, status.reason.as_str())
                == (self.standing.old(), self.standing.sentence())
            && status.observed_generation == facts.generation
    }
}
