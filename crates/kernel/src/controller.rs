//! What a controller is.

use crate::object::Object;
use crate::record::Decided;
use crate::right::Right;
use crate::step::{LiveReads, Outside, Step};
use crate::view::View;
use crate::watch::Watch;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a step is about, such as one grant: the key in the work queue. No two steps about one
/// subject run at the same time in one process.
pub type Subject = Arc<str>;

/// What a controller watches and may do, and whom a change concerns: all of it but the step.
pub trait Watcher: Send + Sync + 'static {
    /// Its name, as logs and metrics have it: `placement/scheduler`.
    fn name(&self) -> &'static str;

    /// What it watches. A step runs only after all of it was listed once.
    fn watches(&self) -> Vec<Watch>;

    /// What it does besides watching: all its writes, and looks at what it does not watch. Its role
    /// allows this and no more, so what is left out here is refused where roles are enforced.
    fn rights(&self) -> Vec<Right> {
        Vec::new()
    }

    /// What a change of this object is about. The object may be one that was just deleted.
    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject>;

    /// All subjects there are, if there is a shorter way to them than through every object of every
    /// watch: a syncer has its share of a fleet, and need not go through the whole of it.
    fn everything(&self, _view: &dyn View) -> Option<Vec<Subject>> {
        None
    }

    /// How often every subject has a turn although nothing changed, at most: the shell has its own
    /// idea where a controller has none. A step of some reads from a cloud that counts the reads.
    fn resync(&self) -> Option<Duration> {
        None
    }
}

/// One step at a time, with nothing kept in between. Every [`crate::Room`] is one.
pub trait Controller: Watcher {
    /// What it does outside of the API; [`crate::Nothing`] for most.
    type Outside: Outside;

    /// The one next thing to do about a subject. `live_reads` has what an earlier call with the same
    /// subject asked to see afresh, and is empty at first.
    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Self::Outside>,
    ) -> Step<Self::Outside>;

    /// The same step, with what was decided on which facts, for a record. None: there was nothing to
    /// decide on, or the controller is not a room.
    fn step_on_record(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Self::Outside>,
    ) -> (Step<Self::Outside>, Option<Decided>) {
        (self.step(subject, view, live_reads), None)
    }

    /// What the rules of the controller decide on facts that were recorded. None: it is not a room.
    /// An error: these are not its facts, and why.
    fn judge(&self, _facts: &Value) -> Result<Option<Value>, String> {
        Ok(None)
    }
}
