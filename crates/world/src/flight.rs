//! Steps under way: what a controller has read, or what it has decided and not yet done.

use crate::actor::{Done, Found};
use crate::server::{Servers, Slot, old};

/// A step of one controller about one subject that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    /// The controller, by its place among all.
    pub(crate) actor: usize,
    /// The subject, by its place in the controller's list.
    pub(crate) subject: usize,
    pub(crate) stage: Stage,
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// It reads, one thing after the other, and decides when nothing is left to read.
    Reading { done: Done, left: Vec<u32> },
    /// It has decided; the effect, by its number, has not happened yet.
    Decided(u32),
}

impl Flight {
    /// The same flight after an object changed: what it read of that object is out of date, and
    /// never matches the object again.
    pub(crate) fn outdated(
        &self,
        servers: &Servers,
        is_read_there: impl Fn(u32) -> bool,
        changed: &[Slot],
    ) -> Flight {
        let Stage::Reading { done, left } = &self.stage else { return self.clone() };
        let mark = |version: &mut u32| {
            if *version != 0 && changed.contains(&servers.slot_of(*version)) {
                *version = old(*version);
            }
        };
        let mut done = done.clone();
        for (read, found) in &mut done {
            if !is_read_there(*read) {
                continue;
            }
            match found {
                Found::Object(version) => mark(version),
                Found::List(versions) => versions.iter_mut().for_each(mark),
                Found::Tried(_) | Found::Answer(_) => {}
            }
        }
        Flight { stage: Stage::Reading { done, left: left.clone() }, ..self.clone() }
    }
}
