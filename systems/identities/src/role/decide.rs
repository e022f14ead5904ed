//! What is done about a Role. First matching rule wins.

use super::keep::{Held, Wanted, delete, keep};
use super::placed::{Issuer, Placement};
use super::rights;
use crate::journal::{Gate, Going, Journal, Resting};
use crate::outside::{At, Call, Failure, RoleFound};
use crate::owner::{Owner, Whose};
use crate::standing::{Standing, is_observed};
use interlock_api::identities::{Mark, RoleStatus, condition as words};
use interlock_api::placement::{Phase, RoleRights};
use interlock_kernel::conditions::is_true;
use serde::{Deserialize, Serialize};

/// After how many seconds something that another controller or the API server does is checked again.
pub(super) const CHECKED_SECONDS: i64 = 15;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the finalizer is on the Role.
    pub has_finalizer: bool,
    /// Whether the Role is being deleted.
    pub is_deleting: bool,
    /// Whether the cloud role stays when the Role is deleted.
    pub is_retained: bool,
    /// The generation of the Role.
    pub generation: Option<i64>,
    /// The ARN in the spec.
    pub spec_arn: Option<String>,
    /// The status of the Role.
    pub status: RoleStatus,
    /// Whether a cloud role that somebody else made may be taken over.
    pub may_adopt: bool,
    /// What is wrong with the spec.
    pub invalid: Option<String>,
    /// The Role as the owner of a cloud role.
    pub owner: Owner,
    /// The permissions boundary that the cloud role must have.
    pub boundary: Option<String>,
    /// Where the cloud role may be, in the order in which it is looked for.
    pub places: Vec<At>,
    /// Whether the owner of the Grant waits for the role, as a cache shows it: then calls are to be expected.
    pub is_awaited: bool,
    /// Whom the role must trust, by a live read; None: not read yet.
    pub home: Option<Home>,
    /// What was read live, in this order: the cloud (or only what this process sent), the Role, its namespace, the Grant of the namespace, the
    /// Policy of its name, the WorkloadCluster that owns the Grant. None: nothing yet.
    pub look: Option<Look>,
}

/// What was read live.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Look {
    /// What is known of calls.
    pub journal: Journal,
    /// What is where; none: the cloud was not read.
    pub places: Vec<CloudPlace>,
    /// The time on the clock of the cloud, in seconds since 1970.
    pub date: Option<i64>,
    /// The policies that must be attached, by ARN.
    pub policies: Vec<String>,
    /// Whether a policy that must be attached is not ready.
    pub awaits_policy: bool,
}

/// Whom the role must trust.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Home {
    /// Nobody can tell, and why: the namespace is not what the cache shows, so its Grant has another name; or the
    /// Grant cannot be read.
    Unknown(#[serde(deserialize_with = "interlock_kernel::word")] interlock_kernel::Word),
    /// The namespace is not placed; this is the trust policy, if a provider is configured.
    Unplaced(Option<String>),
    /// The namespace is placed: its Grant says which cluster runs it. None: there is no Grant yet.
    Placed(Option<Box<Placement>>),
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
    /// A role.
    Role {
        /// As it is.
        found: Box<RoleFound>,
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
    /// Put the finalizer on the Role.
    AddFinalizer,
    /// Read so many of the places, and then the objects.
    LiveRead {
        /// How many; none: only what this process sent.
        places: usize,
    },
    /// Write this mark.
    Mark(Mark),
    /// Write this mark, and which policies Interlock attaches.
    Begin {
        /// The mark.
        mark: Mark,
        /// The policies, by ARN.
        attached: Vec<String>,
    },
    /// Remove the mark: nothing is under way, and nothing is to be done.
    Unmark {
        /// Whether the cloud was found as declared under it: nothing is to do until the next resync.
        is_compared: bool,
    },
    /// Write which policies Interlock attaches.
    Record(Vec<String>),
    /// Write which sessions are denied: those of epochs up to this one, issued before this time of the cloud, in
    /// seconds since 1970; None: there are none.
    Fence {
        /// The epoch.
        epoch: i64,
        /// The time.
        before: Option<i64>,
    },
    /// Write into the Grant what is true of the roles of the namespace.
    Rights(Rights),
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

/// What the status says of a cloud role.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How far it is.
    pub standing: Standing,
    /// The cloud role: its ARN and its id.
    pub known: Option<(String, String)>,
    /// Whether the ARN in the spec names something else; None: nothing is said about it.
    pub is_spec_arn_ignored: Option<bool>,
    /// The mark that says that the cloud is as declared; None: it stays as it is.
    pub mark: Option<Mark>,
}

/// What the Grant says of the roles of the namespace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rights {
    /// All of it.
    pub all: Vec<RoleRights>,
    /// What is new.
    pub change: Change,
}

/// What is new in a Grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Change {
    /// The role waits.
    Waiting,
    /// The role trusts the owner.
    Ready,
    /// The sessions of an owner that lost the namespace by force are denied.
    Fenced,
    /// The role is gone.
    Removed,
}

/// What is left in the cloud when the finalizer is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// The cloud role, as the spec asks.
    Retained,
    /// A role of that name that belongs to another.
    Foreign,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting && !facts.has_finalizer {
        return Decision::Rest("the Role is being deleted, and nothing of it is in the cloud");
    }
    if facts.is_deleting && facts.is_retained {
        return leave(facts, Left::Retained);
    }
    if let Some(wrong) = facts.invalid.as_ref().filter(|_| !facts.is_deleting) {
        let standing = Standing::stalled(words::INVALID, wrong.clone());
        return facts.say(standing, Decision::Rest("the spec is not valid"));
    }
    if !facts.has_finalizer {
        return Decision::AddFinalizer;
    }
    let Some(look) = &facts.look else {
        return Decision::LiveRead { places: usize::from(!facts.is_under_way()) };
    };
    if look.places.is_empty() {
        return begin(facts, look);
    }
    let failure = look.places.iter().find_map(|place| match &place.state {
        State::Failed(failure) => Some(failure),
        State::Absent | State::Role { .. } => None,
    });
    if let Some(failure) = failure {
        let (standing, seconds) = Standing::failed(failure);
        return facts.say(standing, Decision::Wait("the cloud could not be read", seconds));
    }
    let Some(found) = find(facts, look) else {
        return Decision::LiveRead { places: facts.places.len() };
    };
    if facts.is_deleting {
        return match found {
            Where::Ours(at, found) => delete(facts, look, at, found),
            Where::Foreign(..) | Where::Proven(_) => gone(facts, look, Left::Foreign),
            Where::Absent(_) => gone(facts, look, Left::Nothing),
        };
    }
    match wanted(facts, look) {
        Ok(wanted) => live(facts, look, &found, &wanted),
        Err(decision) => *decision,
    }
}

/// What can be done before the cloud is read: each read costs requests.
fn begin(facts: &Facts, look: &Look) -> Decision {
    let (journal, read) = (&look.journal, Decision::LiveRead { places: 1 });
    if facts.is_deleting {
        // Whatever the cloud shows, it is believed only when no call can be late any more.
        if journal.has_done(&Call::DeleteRole) && !journal.is_quiet() {
            return late(facts, journal.quiet_in());
        }
        return journal.mark_first().map_or(read, Decision::Mark);
    }
    if journal.is_settled() && facts.is_as_declared(look) {
        return idle(look);
    }
    // Of a role that Interlock makes it is known beforehand what is attached to it by Interlock.
    let is_made = facts.status.arn.is_none() && !facts.may_adopt;
    let recorded = &facts.status.attached;
    let missing = || look.policies.iter().filter(|arn| !recorded.contains(arn)).cloned();
    if let Some(mark) = journal.mark_first() {
        return match facts.awaits_call() {
            false => read,
            true if is_made && recorded.is_empty() && !look.policies.is_empty() => {
                Decision::Begin { mark, attached: look.policies.clone() }
            }
            true => Decision::Mark(mark),
        };
    }
    if !is_made || !journal.remembered.is_made {
        return read;
    }
    if missing().next().is_some() {
        return Decision::Record(recorded.iter().cloned().chain(missing()).collect());
    }
    // It trusts whom it has to trust since it was made; what is missing is its Policy.
    match &facts.home {
        Some(Home::Unplaced(Some(_))) if look.awaits_policy => {
            let seconds = journal.quiet_in().max(CHECKED_SECONDS);
            facts.say(awaiting_policy(), Decision::Wait("the Policy is not ready", seconds))
        }
        Some(Home::Unplaced(_) | Home::Placed(_) | Home::Unknown(_)) | None => read,
    }
}

/// The Policy of the role is not ready.
pub(super) fn awaiting_policy() -> Standing {
    Standing::reconciling(words::WAITING_FOR_POLICY, "the Policy of the role is not ready")
}

/// Nothing is to be done: the mark is removed once nothing is under way.
pub(super) fn idle(look: &Look) -> Decision {
    match look.journal.resting() {
        Resting::Quiet | Resting::Another => Decision::Resync,
        Resting::Unmark { is_compared } => Decision::Unmark { is_compared },
        Resting::Wait { seconds } => Decision::Wait("calls may be under way", seconds),
    }
}

/// The Role is not being deleted, and it is known whom its cloud role must trust.
fn live(facts: &Facts, look: &Look, found: &Where<'_>, wanted: &Wanted<'_>) -> Decision {
    // A conflict is not listed: nothing is made for it.
    let unlisted = match wanted {
        Wanted::Trust(_) => None,
        Wanted::Grant(placement) => rights::list(facts, placement),
    };
    match (unlisted, found) {
        (_, Where::Foreign(whose, adopting)) => {
            let message = format!("a role of that name is in the cloud: {whose}");
            let standing = Standing::stalled(words::CONFLICT, message).next((*adopting).clone());
            facts.say(standing, idle(look))
        }
        (Some(decision), _) => decision,
        (None, Where::Ours(at, found)) => keep(facts, look, &Held { at, found }, wanted),
        (None, Where::Absent(at)) => match wanted {
            Wanted::Trust(trust) => {
                let (trust, boundary) = ((*trust).to_owned(), facts.boundary.clone());
                let tags = facts.owner.tags();
                call(facts, look, at, Call::CreateRole { trust, boundary, tags })
            }
            Wanted::Grant(placement) => rights::create(facts, look, at, placement),
        },
        (None, Where::Proven(at)) => {
            call(facts, look, at, Call::TagRole { tags: facts.owner.tags() })
        }
    }
}

/// Whom the role must trust, or what is done while nobody can tell.
fn wanted<'a>(facts: &'a Facts, look: &Look) -> Result<Wanted<'a>, Box<Decision>> {
    // Whatever was read so far is read again, with what is missing.
    let again = || Err(Box::new(Decision::LiveRead { places: look.places.len() }));
    match &facts.home {
        None => again(),
        Some(Home::Unplaced(Some(trust))) => Ok(Wanted::Trust(trust)),
        Some(Home::Unplaced(None)) => {
            let message = "no OIDC provider is configured for namespaces that are not placed";
            let standing = Standing::stalled(words::INVALID, message)
                .next(Some("start the controllers with --oidc-provider-arn".to_owned()));
            Err(Box::new(facts.say(standing, idle(look))))
        }
        Some(Home::Placed(None)) => {
            let message = "the namespace is placed, and has no Grant yet";
            let standing = Standing::reconciling(words::ISSUER_NOT_READY, message);
            Err(Box::new(facts.say(standing, idle(look))))
        }
        Some(Home::Placed(Some(placement))) => match (placement.phase, &placement.issuer) {
            (Phase::Granted, Issuer::Unread) => again(),
            _ => Ok(Wanted::Grant(placement)),
        },
        Some(Home::Unknown(why)) => Err(Box::new(Decision::Wait(why, CHECKED_SECONDS))),
    }
}

/// What there is in the cloud for a Role.
enum Where<'a> {
    Ours(&'a At, &'a RoleFound),
    Proven(&'a At),
    Foreign(&'a str, &'a Option<String>),
    Absent(&'a At),
}

/// Whatever is ours is taken, wherever it is; then what may be adopted; then what is at the own place. None: a
/// place was not read yet.
fn find<'a>(facts: &'a Facts, look: &'a Look) -> Option<Where<'a>> {
    let roles = || {
        look.places.iter().filter_map(|place| match &place.state {
            State::Role { found, whose, adopting } => Some((&place.at, found, whose, adopting)),
            State::Absent | State::Failed(_) => None,
        })
    };
    if let Some((at, found, ..)) = roles().find(|(_, _, whose, _)| **whose == Whose::Ours) {
        return Some(Where::Ours(at, found));
    }
    if look.places.len() < facts.places.len() {
        return None;
    }
    if let Some((at, ..)) = roles().find(|(_, _, whose, _)| **whose == Whose::Proven) {
        return Some(Where::Proven(at));
    }
    let own = facts.owner.at();
    let own = facts.places.iter().find(|at| **at == own)?;
    Some(match roles().find(|(at, ..)| *at == own) {
        Some((_, _, Whose::Foreign(whose), adopting)) => Where::Foreign(whose, adopting),
        Some(_) | None => Where::Absent(own),
    })
}

/// The Role is being deleted, and the cloud shows nothing of it: that is believed once nothing can land.
fn gone(facts: &Facts, look: &Look, left: Left) -> Decision {
    match look.journal.going() {
        Going::Gone => leave(facts, left),
        Going::Mark(mark) => Decision::Mark(mark),
        Going::Late { seconds } => late(facts, seconds),
    }
}

/// The Role is let go. A Grant that lists a role that is gone would wait for it for ever.
fn leave(facts: &Facts, left: Left) -> Decision {
    match &facts.home {
        None => Decision::LiveRead { places: 0 },
        Some(Home::Unknown(why)) => Decision::Wait(why, CHECKED_SECONDS),
        Some(Home::Placed(Some(placement))) if placement.entry(&facts.owner.uid).is_some() => {
            let all = placement.without(&facts.owner.uid);
            Decision::Rights(Rights { all, change: Change::Removed })
        }
        Some(Home::Placed(_) | Home::Unplaced(_)) => Decision::RemoveFinalizer(left),
    }
}

/// A call may still take effect.
pub(super) fn late(facts: &Facts, seconds: i64) -> Decision {
    facts.say(Standing::late(), Decision::Wait("a late call may still land", seconds))
}

/// A call, if it may be made now.
pub(super) fn call(facts: &Facts, look: &Look, at: &At, call: Call) -> Decision {
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
            let message = "the cloud does not show the role yet";
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
        let is_marked = self.status.mark.is_some();
        self.is_deleting || self.is_awaited || is_marked || !self.is_observed()
    }

    /// Whether the status is about the spec as it is.
    fn is_observed(&self) -> bool {
        is_observed(self.status.observed_generation, self.generation)
    }

    /// Whether the cloud cannot be as declared yet. A role that its Grant does not list is read first: one of
    /// somebody else is not listed, and nothing is made for it.
    fn awaits_call(&self) -> bool {
        match &self.home {
            Some(Home::Placed(Some(placement))) => {
                let is_listed = placement.entry(&self.owner.uid).is_some();
                let awaits_trust = placement.phase == Phase::Granted
                    && matches!(placement.issuer, Issuer::Usable(_))
                    && !placement.is_ready(&self.owner.uid);
                is_listed && (awaits_trust || !self.is_observed())
            }
            Some(Home::Unplaced(_) | Home::Placed(None) | Home::Unknown(_)) | None => {
                !self.is_observed()
            }
        }
    }

    /// Whether the status says that the cloud has what the spec and the Grant ask for.
    fn is_as_declared(&self, look: &Look) -> bool {
        let is_trusted = match &self.home {
            Some(Home::Unplaced(Some(_))) => true,
            Some(Home::Placed(Some(placement))) => {
                placement.phase == Phase::Granted && placement.is_ready(&self.owner.uid)
            }
            Some(Home::Unplaced(None) | Home::Placed(None) | Home::Unknown(_)) | None => false,
        };
        let attached = &self.status.attached;
        let is_attached = attached.len() == look.policies.len()
            && look.policies.iter().all(|arn| attached.contains(arn));
        is_trusted
            && is_attached
            && !look.awaits_policy
            && self.is_observed()
            && is_true(&self.status.conditions, words::READY)
            && self.status.fence.as_ref().is_none_or(|fence| fence.before.is_none())
    }

    /// The status says how far it is, and then this is done.
    pub(super) fn say(&self, standing: Standing, then: Decision) -> Decision {
        let report = Report { standing, known: None, is_spec_arn_ignored: None, mark: None };
        self.report(report, then)
    }

    /// The status says this, and then that is done.
    pub(super) fn report(&self, report: Report, then: Decision) -> Decision {
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
        let is_known = self.known.as_ref().is_none_or(|(arn, id)| {
            (status.arn.as_ref(), status.role_id.as_ref()) == (Some(arn), Some(id))
        });
        let ignored = crate::standing::spec_arn_ignored(self.is_spec_arn_ignored);
        is_known
            && self.standing.is_in(&status.conditions)
            && ignored.is_none_or(|finding| finding.is_in(&status.conditions))
            && (status.condition, status.reason.as_str())
                == (self.standing.old(), self.standing.sentence())
            && status.observed_generation == facts.generation
    }
}
