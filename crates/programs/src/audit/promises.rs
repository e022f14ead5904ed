//! What must never happen, over the recorded steps of all programs together.
//!
//! A promise is one sentence and one small function over the steps, in the order in which they were decided. It rests
//! on nothing but what was recorded: a step whose end nobody knows counts as what makes no alarm, and after a gap in a log
//! the promise is audited anew.

mod identities;
mod nodes;
mod placement;
mod rollouts;
mod turns;
mod volumes;

use interlock_kernel::{End, Record};
use serde_json::Value;

/// A promise.
#[derive(Clone, Copy)]
pub struct Promise {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub sentence: &'static str,
    /// Begins to remember what it rests on.
    pub keeper: fn() -> Box<dyn Keeper>,
}

/// Remembers what a promise rests on, and hears every step.
pub trait Keeper: Send {
    /// The next step, and what is wrong with it.
    fn hear(&mut self, record: &Record) -> Result<(), String>;
}

/// All promises.
pub fn all() -> Vec<Promise> {
    let placement = [placement::ONE_PERMIT, placement::ONE_OWNER, placement::EPOCHS_GROW];
    let volumes = [volumes::HELD_STAYS, volumes::HELD_WHILE_FILLED];
    let nodes = [nodes::ONE_TENANT, nodes::FLOORS_HOLD, nodes::BOUND_ONCE];
    let others = [identities::ONE_WORKER, rollouts::ONE_ACTIVE, turns::ONE_TURN];
    [&placement[..], &volumes, &nodes, &others].concat()
}

/// Remembers nothing, and finds nothing wrong.
pub(super) struct Nothing;

impl Keeper for Nothing {
    fn hear(&mut self, _: &Record) -> Result<(), String> {
        Ok(())
    }
}

/// What a decision with data is called, and its data; those of rooms with several subjects are nested.
fn named<'a>(decision: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(decision, |value, name| value.get(name))
}

/// Whether the effect was done for certain.
fn is_done(record: &Record) -> bool {
    record.effect.is_some() && record.end == End::Done
}

/// Whether the effect may be there. That a driver refused an action does not say that nothing of it was done.
fn may_be_done(record: &Record) -> bool {
    let is_outside = record.effect.as_ref().is_some_and(|effect| effect.place.is_none());
    record.effect.is_some()
        && (record.end.may_be_done() || is_outside && record.end == End::Refused)
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer)?.as_i64()
}

#[cfg(test)]
mod tests;
