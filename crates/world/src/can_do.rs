//! What the controllers of a program can do, and what that changes.

use crate::state::{CLUSTERS, State};

/// What a controller can do about a subject.
#[derive(Default)]
pub(crate) struct CanDo {
    pub(crate) actor: usize,
    pub(crate) subject: usize,
    /// What its whole step changes.
    pub(crate) change: Option<Change>,
    /// The flight of a step that something comes in between, by its number; 0: there is none.
    pub(crate) begins: u32,
    /// That step has decided on an effect that rests on the version of an object.
    pub(crate) is_guarded: bool,
    /// What is wrong with the controller itself; 0: nothing.
    pub(crate) trouble: u32,
}

/// What an effect changes, and what that is then, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Server(usize, u32),
    Machine(usize, u32),
}

impl Change {
    /// The servers after it, and all else.
    pub(crate) fn of(self, state: &State) -> ([u32; 1 + CLUSTERS], State) {
        let (mut servers, mut next) = (state.servers, *state);
        match self {
            Change::Server(server, content) => servers[server] = content,
            Change::Machine(place, machine) => next.machines[place] = machine,
        }
        (servers, next)
    }
}
