//! A controller as three functions: observe, decide, act.

use crate::controller::{Controller, Subject, Watcher};
use crate::object::Object;
use crate::record::Decided;
use crate::right::Right;
use crate::step::{LiveReads, Outside, Step};
use crate::view::View;
use crate::watch::Watch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;
use tracing::{Level, debug, enabled};

/// One controller: pure, stateless, at most one effect a step.
///
/// Every branch that changes whether something is written, or what, is in [`Room::decide`]. The two
/// other functions translate: [`Room::observe`] turns API objects into facts, [`Room::act`] turns
/// the decision into a write. The model checker runs all three as they are, and a mutant replaces
/// any one of them ([`Bent`]).
pub trait Room: Watcher {
    /// What the room asks and does outside of the API; [`crate::Nothing`] for most.
    type Outside: Outside;
    /// What the decision depends on: small, comparable, printable. Read back from a record, they give the same
    /// decision: the world of each system checks this of all facts that it meets.
    type Facts: Debug + Clone + PartialEq + Serialize + DeserializeOwned;
    /// What to do. The reason is in it, or follows from it.
    type Decision: Debug + Clone + PartialEq + Serialize;
    /// The exact objects that were seen, for `act` to name in its writes.
    type Scene;

    /// Reads the objects that a step is about.
    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Self::Outside>,
    ) -> Observed<Self::Facts, Self::Scene>;

    /// The rules: the same facts always give the same decision.
    fn decide(facts: &Self::Facts) -> Self::Decision;

    /// The decision as one step. There is no view here: `act` cannot read again, and chooses only
    /// how to write what was decided.
    fn act(&self, scene: &Self::Scene, decision: Self::Decision) -> Step<Self::Outside>;
}

/// What [`Room::observe`] found.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<F, S> {
    /// There is nothing to decide, and why: the object is not in the cache, or cannot be read.
    Nothing(String),
    /// The facts, and the objects that they were read from.
    Seen {
        /// What the decision depends on.
        facts: F,
        /// The objects that `act` writes to.
        scene: S,
    },
}

impl<F, S> Observed<F, S> {
    /// There is nothing to decide, and why.
    pub fn nothing(because: impl Into<String>) -> Self {
        Observed::Nothing(because.into())
    }
}

impl<R: Room> Controller for R {
    type Outside = R::Outside;

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<R::Outside>,
    ) -> Step<R::Outside> {
        match self.observe(subject, view, live_reads) {
            Observed::Nothing(because) => Step::rest(because),
            Observed::Seen { facts, scene } => {
                let decision = R::decide(&facts);
                log(self, subject, &facts, &decision);
                self.act(&scene, decision)
            }
        }
    }

    fn step_on_record(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<R::Outside>,
    ) -> (Step<R::Outside>, Option<Decided>) {
        match self.observe(subject, view, live_reads) {
            Observed::Nothing(because) => (Step::rest(because), None),
            Observed::Seen { facts, scene } => {
                let decision = R::decide(&facts);
                log(self, subject, &facts, &decision);
                let decided = Decided::of(&facts, &decision);
                (self.act(&scene, decision), Some(decided))
            }
        }
    }

    fn judge(&self, facts: &Value) -> Result<Option<Value>, String> {
        judge::<R>(R::decide, facts).map(Some)
    }
}

/// What these rules decide on facts of a room that were recorded.
fn judge<R: Room>(decide: Decide<R>, facts: &Value) -> Result<Value, String> {
    let facts = R::Facts::deserialize(facts).map_err(|error| error.to_string())?;
    serde_json::to_value(decide(&facts)).map_err(|error| error.to_string())
}

/// Replaces [`Room::observe`]; the shipped one is called through the room.
pub type Observe<R> = fn(
    &R,
    &Subject,
    &dyn View,
    &LiveReads<<R as Room>::Outside>,
) -> Observed<<R as Room>::Facts, <R as Room>::Scene>;

/// Replaces [`Room::decide`].
pub type Decide<R> = fn(&<R as Room>::Facts) -> <R as Room>::Decision;

/// Replaces [`Room::act`].
pub type Act<R> = fn(&R, &<R as Room>::Scene, <R as Room>::Decision) -> Step<<R as Room>::Outside>;

/// A shipped room with one of its functions replaced: a mistake made on purpose, to see that the
/// model checker finds it.
#[derive(Clone, Copy)]
pub struct Bent<R: Room> {
    room: R,
    observe: Observe<R>,
    decide: Decide<R>,
    act: Act<R>,
}

impl<R: Room> Bent<R> {
    /// The room as it ships.
    pub fn new(room: R) -> Self {
        Bent { room, observe: R::observe, decide: R::decide, act: R::act }
    }

    /// The same, observing by another function.
    #[must_use]
    pub fn observing(mut self, observe: Observe<R>) -> Self {
        self.observe = observe;
        self
    }

    /// The same, deciding by another function.
    #[must_use]
    pub fn deciding(mut self, decide: Decide<R>) -> Self {
        self.decide = decide;
        self
    }

    /// The same, acting by another function.
    #[must_use]
    pub fn acting(mut self, act: Act<R>) -> Self {
        self.act = act;
        self
    }
}

impl<R: Room> Watcher for Bent<R> {
    fn name(&self) -> &'static str {
        self.room.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.room.watches()
    }

    fn rights(&self) -> Vec<Right> {
        self.room.rights()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        self.room.subjects(watch, object, view)
    }

    fn everything(&self, view: &dyn View) -> Option<Vec<Subject>> {
        self.room.everything(view)
    }

    fn resync(&self) -> Option<Duration> {
        self.room.resync()
    }
}

impl<R: Room> Controller for Bent<R> {
    type Outside = R::Outside;

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<R::Outside>,
    ) -> Step<R::Outside> {
        match (self.observe)(&self.room, subject, view, live_reads) {
            Observed::Nothing(because) => Step::rest(because),
            Observed::Seen { facts, scene } => {
                let decision = (self.decide)(&facts);
                (self.act)(&self.room, &scene, decision)
            }
        }
    }

    fn step_on_record(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<R::Outside>,
    ) -> (Step<R::Outside>, Option<Decided>) {
        match (self.observe)(&self.room, subject, view, live_reads) {
            Observed::Nothing(because) => (Step::rest(because), None),
            Observed::Seen { facts, scene } => {
                let decision = (self.decide)(&facts);
                let decided = Decided::of(&facts, &decision);
                ((self.act)(&self.room, &scene, decision), Some(decided))
            }
        }
    }

    fn judge(&self, facts: &Value) -> Result<Option<Value>, String> {
        judge::<R>(self.decide, facts).map(Some)
    }
}

/// An alternative [`Controller::step`], which may call the shipped one.
pub type AlteredStep<C> = fn(
    &C,
    &Subject,
    &dyn View,
    &LiveReads<<C as Controller>::Outside>,
) -> Step<<C as Controller>::Outside>;

/// An alternative [`Watcher::subjects`], which may call the shipped one.
pub type AlteredSubjects<C> = fn(&C, &Watch, &Object, &dyn View) -> Vec<Subject>;

/// A shipped controller that reads, writes or wakes differently: a mistake made on purpose where it
/// is at the edge of the controller, and not in one of the three functions of a room.
pub struct Altered<C: Controller> {
    controller: C,
    step: AlteredStep<C>,
    subjects: AlteredSubjects<C>,
}

impl<C: Controller> Altered<C> {
    /// The controller as it ships.
    pub fn new(controller: C) -> Self {
        Altered { controller, step: C::step, subjects: C::subjects }
    }

    /// The same, with another step.
    #[must_use]
    pub fn stepping(mut self, step: AlteredStep<C>) -> Self {
        self.step = step;
        self
    }

    /// The same, with other subjects for a change.
    #[must_use]
    pub fn waking(mut self, subjects: AlteredSubjects<C>) -> Self {
        self.subjects = subjects;
        self
    }
}

impl<C: Controller> Watcher for Altered<C> {
    fn name(&self) -> &'static str {
        self.controller.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.controller.watches()
    }

    fn rights(&self) -> Vec<Right> {
        self.controller.rights()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        (self.subjects)(&self.controller, watch, object, view)
    }

    fn everything(&self, view: &dyn View) -> Option<Vec<Subject>> {
        self.controller.everything(view)
    }

    fn resync(&self) -> Option<Duration> {
        self.controller.resync()
    }
}

impl<C: Controller> Controller for Altered<C> {
    type Outside = C::Outside;

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<C::Outside>,
    ) -> Step<C::Outside> {
        (self.step)(&self.controller, subject, view, live_reads)
    }

    fn judge(&self, facts: &Value) -> Result<Option<Value>, String> {
        self.controller.judge(facts)
    }
}

fn log<R: Room>(room: &R, subject: &Subject, facts: &R::Facts, decision: &R::Decision) {
    if !enabled!(Level::DEBUG) {
        return;
    }
    let json = |part: serde_json::Result<String>| part.unwrap_or_default();
    debug!(
        controller = room.name(),
        subject = &**subject,
        facts = json(serde_json::to_string(facts)),
        decision = json(serde_json::to_string(decision)),
        "decided"
    );
}
