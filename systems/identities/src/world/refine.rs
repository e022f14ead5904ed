//! The world in the words of the protocol, `spec/identities-mark`, for the one policy that is declared.
//!
//! Calls that neither create nor delete the policy are no steps of the protocol. A mark that is gone with its
//! object is remembered: the protocol keeps it.

use super::Identities;
use super::clients::{Machine, PROCESSES};
use super::processes::{DEAD, LastMark, Processes, Proves};
use super::truth::Truth;
use crate::mark::{self, Call, IdentitiesMark, Mark, Pending, Phase, Proof, State as Picture};
use crate::outside;
use interlock_api::identities::Mark as Written;
use interlock_checker::Refinement;
use interlock_world::{Basis, State, World};

/// The name of the refinement: a mutant says that it breaks this.
pub(super) const REFINED: &str = "spec/identities-mark";

/// One step of the world is at most so many of the protocol: a call lands, is shown everywhere, and is answered.
const MOST_STEPS: usize = 3;

pub(super) fn refines(system: &Identities, world: &World<Identities>) -> Vec<Refinement<State>> {
    let protocol = IdentitiesMark::shipped(system.size.processes as usize);
    vec![world.refinement(REFINED, protocol, MOST_STEPS, picture)]
}

/// What the protocol speaks of, and the promises of the world do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Inside {
    processes: Processes<Call>,
    exists: bool,
    /// Whether reads show it, if they lag.
    shown: Option<bool>,
}

impl Inside {
    pub(super) fn of(machine: &Machine, mark: Option<&Written>) -> Inside {
        Inside {
            processes: Processes::of(machine, mark, read),
            exists: !machine.account.policies.is_empty(),
            shown: machine.shown.as_ref().map(|shown| !shown.policies.is_empty()),
        }
    }
}

fn read(call: &outside::Call) -> Option<Call> {
    match call {
        outside::Call::CreatePolicy { .. } => Some(Call::Create),
        outside::Call::DeletePolicy => Some(Call::Delete),
        _ => None,
    }
}

/// What the protocol remembers, and the world does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Past {
    mark: LastMark,
    is_removed: bool,
}

impl Past {
    /// After a step.
    pub(super) fn after(self, before: &Truth, after: &Truth) -> Past {
        let (Some(was), Some(now)) = (&before.inside, &after.inside) else { return self };
        // A mark that goes while its object stays was removed.
        let is_removed = match after.policy {
            Some(_) => now.processes.mark.is_none(),
            None => self.is_removed,
        };
        Past { mark: self.mark.after(&was.processes, &now.processes), is_removed }
    }
}

fn picture(_: &Identities, basis: &Basis<Identities>) -> Picture {
    let (truth, past) = (&*basis.truth, &*basis.past);
    let Some(inside) = &truth.inside else { return Picture::default() };
    let processes = &inside.processes;
    let mut picture = Picture {
        phase: match &truth.policy {
            None => Phase::Gone,
            Some(policy) if policy.is_deleting => Phase::Deleting,
            Some(_) => Phase::Live,
        },
        mark: match past.mark.by.filter(|_| !past.is_removed) {
            None => Mark::None,
            Some(life) if processes.is_alive(life) => Mark::Of(life.process as u8),
            Some(_) => Mark::Dead,
        },
        proof: match past.mark.proves {
            _ if past.is_removed => Proof::Quiet,
            Proves::Wait => Proof::Wait,
            Proves::Clear => Proof::Clear,
            Proves::Quiet => Proof::Quiet,
        },
        exists: inside.exists,
        once: past.mark.once,
        ..Picture::default()
    };
    if let Some(shown) = inside.shown.filter(|shown| *shown != inside.exists) {
        picture.stale[usize::from(shown)] = true;
    }
    for process in 0..PROCESSES {
        if let Some(call) = processes.waiting[process] {
            picture.pending[process] = Pending::Wait(call);
            picture.in_flight[call as usize][process] += 1;
        }
    }
    for (sender, late) in processes.late.iter().enumerate() {
        let sender = if sender == DEAD { mark::DEAD } else { sender };
        for call in late {
            picture.in_flight[*call as usize][sender] += 1;
        }
    }
    picture
}
