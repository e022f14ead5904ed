//! What a step says: rest, wait, read, or act.

use crate::kind::{Address, Kind, Place};
use crate::object::{Object, Seen};
use crate::selector::Selector;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// What a controller asks and does outside of the Kubernetes API.
pub trait Outside: Debug + Clone + Eq + Hash + Send + Sync + 'static {
    /// A question to the world, such as whether a lock is free. Asking changes nothing.
    type Question: Debug + Clone + Eq + Hash + Send + Sync;
    /// What the world answered.
    type Answer: Debug + Clone + Send + Sync;
    /// Something done to the world, such as starting a process.
    type Action: Debug + Clone + Send + Sync;
}

/// For controllers that live within the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nothing {}

impl Outside for Nothing {
    type Question = Nothing;
    type Answer = Nothing;
    type Action = Nothing;
}

/// The outcome of one step.
#[derive(Debug)]
pub enum Step<O: Outside> {
    /// Nothing to do until something changes.
    Rest {
        /// Why nothing.
        because: String,
    },
    /// Nothing to do until something changes or this time has passed.
    Wait {
        /// What it waits for.
        because: String,
        /// How long at most.
        at_most: Duration,
    },
    /// The caches are not enough: these objects must be read live, after which the step is asked again.
    LiveRead {
        /// What must be seen.
        reads: Vec<Read<O>>,
        /// Why.
        because: String,
    },
    /// One effect.
    Act(Box<Effect<O>>),
}

impl<O: Outside> Step<O> {
    /// Nothing to do until something changes.
    pub fn rest(because: impl Into<String>) -> Self {
        Step::Rest { because: because.into() }
    }

    /// One write to an API server.
    pub fn write(write: Write, because: impl Into<String>) -> Self {
        Step::act(Action::Write(write), because.into())
    }

    /// One action outside of the API.
    pub fn outside(action: O::Action, because: impl Into<String>) -> Self {
        Step::act(Action::Outside(action), because.into())
    }

    fn act(action: Action<O>, because: String) -> Self {
        Step::Act(Box::new(Effect { action, because, event: None, then: None }))
    }

    /// The same; if a time is given, nothing is to be done afterwards until something else changes or it has passed.
    #[must_use]
    pub fn then_waiting(mut self, at_most: Option<Duration>) -> Self {
        if let Step::Act(effect) = &mut self {
            effect.then = at_most;
        }
        self
    }

    /// The same, with an event for the owner of the object once it is done.
    #[must_use]
    pub fn telling(mut self, event: Event) -> Self {
        if let Step::Act(effect) = &mut self {
            effect.event = Some(event);
        }
        self
    }
}

/// A read that goes to the server itself, and so shows all that was acknowledged before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Read<O: Outside> {
    /// One object.
    Object(Address),
    /// The objects of a kind in a namespace, or in all.
    List {
        /// On which server.
        place: Place,
        /// Of which kind.
        kind: Kind,
        /// In which namespace; all if it does not say.
        namespace: Option<String>,
    },
    /// The objects of a kind that a selector selects, in all namespaces: the server leaves the others out.
    Selected {
        /// On which server.
        place: Place,
        /// Of which kind.
        kind: Kind,
        /// Which of them.
        selector: Selector,
    },
    /// What the server would make of an apply, or why it would refuse it. Nothing is written.
    DryRun(Box<DryRun>),
    /// A question to the world outside of the API.
    Ask(O::Question),
}

/// A server-side apply that the server judges with all that it judges a write by, and does not do.
/// It is the very request of [`Write::Apply`] but for that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DryRun {
    /// The object.
    pub address: Address,
    /// All of the manager's fields, but for apiVersion, kind, name and namespace.
    pub object: Value,
    /// Under which name the server would note whose fields they are.
    pub manager: &'static str,
    /// Whether fields of others would be taken over; if not, the server refuses.
    pub is_forced: bool,
    /// If an object is known to be there: its uid.
    pub uid: Option<String>,
    /// The version that the question rests on.
    pub resource_version: Option<String>,
}

impl DryRun {
    /// The write that it asks about.
    pub fn write(&self) -> Write {
        let DryRun { address, object, manager, is_forced, uid, resource_version } = self.clone();
        let part = Part::Main;
        Write::Apply { address, part, object, manager, is_forced, uid, resource_version }
    }
}

/// Why a server would not do a write, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status: 403, 404, 409, 422.
    pub code: u16,
    /// One word: `Forbidden`, `Invalid`, `Conflict`.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

impl Refusal {
    /// The reason of a refusal because a field is another manager's, which stays so however often it is asked. A
    /// `Conflict` is about the version of the object, and is over with the next read.
    pub const FIELD_OWNED: &str = "FieldManagerConflict";
}

/// How often one step may ask for live reads where nothing changes while it reads: once more than in the longest chain
/// of questions, each of which follows from the answer to the last. That chain is five long (rollouts' `applier/report`).
/// Worlds and unit tests hold controllers to it. On real servers objects change meanwhile, and a chain begins anew: the
/// shell allows a multiple of this (`MOST_ROUNDS`), so this bound must stay near to the longest chain.
pub const MOST_LIVE_READS: usize = 6;

/// What was read live. Reads are made in the order in which they were asked for, each after the
/// one before was answered.
#[derive(Debug)]
pub struct LiveReads<O: Outside> {
    /// Objects that were asked for; None: the server says that there is none.
    pub objects: HashMap<Address, Option<Object>>,
    /// Lists that were asked for.
    pub lists: HashMap<(Place, Kind, Option<String>), Vec<Object>>,
    /// Selections that were asked for.
    pub selected: HashMap<(Place, Kind, Selector), Vec<Object>>,
    /// What the servers said to dry runs: the object as it would be, or why they refuse it.
    pub dry_runs: HashMap<DryRun, Result<Object, Refusal>>,
    /// Answers from outside.
    pub answers: HashMap<O::Question, O::Answer>,
}

impl<O: Outside> Default for LiveReads<O> {
    fn default() -> Self {
        LiveReads {
            objects: HashMap::new(),
            lists: HashMap::new(),
            selected: HashMap::new(),
            dry_runs: HashMap::new(),
            answers: HashMap::new(),
        }
    }
}

impl<O: Outside> LiveReads<O> {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        let is_unlisted = self.lists.is_empty() && self.selected.is_empty();
        let is_unasked = self.dry_runs.is_empty() && self.answers.is_empty();
        self.objects.is_empty() && is_unlisted && is_unasked
    }
}

/// One effect, and why.
#[derive(Debug)]
pub struct Effect<O: Outside> {
    /// What is done.
    pub action: Action<O>,
    /// Why, in words for the log.
    pub because: String,
    /// The event for the owner of an object once it is done.
    pub event: Option<Event>,
    /// Once it is done, there is nothing to do until something else changes or this time has passed. None: the
    /// next step is at once. It saves work and decides nothing: a shell may take the next step at any time.
    pub then: Option<Duration>,
}

/// What is done.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "an effect is boxed as a whole")]
pub enum Action<O: Outside> {
    /// One write to one API server.
    Write(Write),
    /// One action outside of the API.
    Outside(O::Action),
}

/// Which part of an object a change is made to; each has its own way into the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Metadata and spec.
    Main,
    /// The status subresource.
    Status,
}

/// Under this name the API server notes which fields are ours.
pub const MANAGER: &str = "interlock";

/// One write to one API server. Each carries what it saw, or can only ever make something new.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Make an object that is not there. If one of that name is there, this does nothing.
    Create {
        /// The object.
        address: Address,
        /// All of it, but for apiVersion, kind, name and namespace.
        object: Value,
    },
    /// A JSON merge patch on the very version that was seen.
    Patch {
        /// The object.
        address: Address,
        /// The version that the decision rests on.
        seen: Seen,
        /// Which part.
        part: Part,
        /// The patch; uid and resourceVersion are added.
        change: Value,
    },
    /// Server-side apply: these fields are the manager's from now on, and those that it stated
    /// before and does not state any more go.
    Apply {
        /// The object.
        address: Address,
        /// Which part.
        part: Part,
        /// All of the manager's fields, but for apiVersion, kind, name and namespace.
        object: Value,
        /// Under which name the server notes whose fields they are.
        manager: &'static str,
        /// Whether fields of others are taken over; if not, the server refuses the write.
        is_forced: bool,
        /// If an object is known to be there: its uid, so that a namesake is left alone.
        uid: Option<String>,
        /// The version that the decision rests on, where a change since would be a reason not to.
        resource_version: Option<String>,
    },
    /// Delete exactly the object that was seen.
    Delete {
        /// The object.
        address: Address,
        /// Its identity.
        uid: String,
        /// The version that the decision rests on, where a change since would be a reason not to.
        resource_version: Option<String>,
        /// How long it may take to stop; the server's default if it does not say.
        grace_seconds: Option<u32>,
    },
}

impl Write {
    /// The object that is written.
    pub fn address(&self) -> &Address {
        match self {
            Write::Create { address, .. }
            | Write::Patch { address, .. }
            | Write::Apply { address, .. }
            | Write::Delete { address, .. } => address,
        }
    }

    /// A patch of the main part of an object that was seen.
    pub fn patch(place: Place, kind: &Kind, object: &Object, change: Value) -> Self {
        let address = Address::new(place, kind, crate::Name::of(object));
        Write::Patch { address, seen: Seen::of(object), part: Part::Main, change }
    }

    /// A patch of the status of an object that was seen.
    pub fn patch_status(place: Place, kind: &Kind, object: &Object, change: Value) -> Self {
        let address = Address::new(place, kind, crate::Name::of(object));
        Write::Patch { address, seen: Seen::of(object), part: Part::Status, change }
    }

    /// Applies the main part of an object, whoever has the fields now; `there` is the object that was
    /// seen in its place.
    pub fn apply(address: Address, object: Value, there: Option<&Object>) -> Self {
        let uid = there.and_then(|there| there.metadata.uid.clone());
        let (part, manager, resource_version) = (Part::Main, MANAGER, None);
        Write::Apply { address, part, object, manager, is_forced: true, uid, resource_version }
    }

    /// Deletion of an object that was seen.
    pub fn delete(place: Place, kind: &Kind, object: &Object) -> Self {
        let address = Address::new(place, kind, crate::Name::of(object));
        let uid = object.metadata.uid.clone().unwrap_or_default();
        Write::Delete { address, uid, resource_version: None, grace_seconds: None }
    }

    /// Deletion of the very version of an object that was seen: refused once it has changed.
    pub fn delete_seen(place: Place, kind: &Kind, object: &Object) -> Self {
        let address = Address::new(place, kind, crate::Name::of(object));
        let Seen { uid, resource_version } = Seen::of(object);
        let resource_version = Some(resource_version);
        Write::Delete { address, uid, resource_version, grace_seconds: None }
    }
}

/// How much an event wants to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// Things go their way.
    Normal,
    /// Somebody may have to act.
    Warning,
}

/// The event for the owner of an object: what happened, why, and what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The object that it is about.
    pub about: Address,
    /// The object's identity.
    pub uid: String,
    /// How much it wants to be read.
    pub importance: Importance,
    /// One word: `Granted`, `MoveDelayed`.
    pub reason: &'static str,
    /// The sentence.
    pub note: String,
}
