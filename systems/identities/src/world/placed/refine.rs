//! The world in the words of the protocol, `spec/identities-rights` as the rooms that ship have it.
//!
//! A role that is not in the cloud trusts nobody, so its creation is no step of the protocol. What the protocol
//! never forgets, and the world does, is remembered here: the highest claims, whose mark was the last one, and
//! which calls a process gave up that has no mark any more.

use super::Placed;
use super::truth::Truth;
use crate::outside;
use crate::rights::IdentitiesRights;
use crate::rights::state::{
    self as protocol, Call, Grant, Mark, Pending, Process, Proof, Session, State as Picture,
};
use crate::world::clients::{Machine, PROCESSES};
use crate::world::kept::admitted;
use crate::world::processes::{LastMark, Processes, Proves};
use interlock_api::identities::RoleStatus;
use interlock_api::placement::{Phase, RightsState};
use interlock_checker::Refinement;
use interlock_world::{Basis, Comparison, State, World};

/// The name of the refinement: a mutant says that it breaks this.
pub(super) const REFINED: &str = "spec/identities-rights, as shipped";

/// One step of the world is at most so many of the protocol. Most are four: a call lands, is shown everywhere, is
/// answered, and somebody gets a session. That a role which was never made has no sessions to deny is one write, and
/// the protocol puts a fence, lets its time pass and waits until all is quiet.
const MOST_STEPS: usize = 8;

pub(super) fn refines(system: &Placed, world: &World<Placed>) -> Vec<Refinement<State>> {
    let size = &system.size;
    let instances = size.processes as usize;
    let specification = IdentitiesRights::shipped(instances, size.epochs as u8, size.same == 1);
    vec![world.compared(Comparison {
        name: REFINED.to_owned(),
        specification,
        most: MOST_STEPS,
        picture,
        between: is_between,
    })]
}

/// What a step of the world does not change does not change on the way, either.
fn is_between(from: &Picture, way: &Picture, to: &Picture) -> bool {
    let is_kept = |of: fn(&Picture) -> [u8; 8]| {
        let [from, way, to] = [of(from), of(way), of(to)];
        (0..way.len()).all(|place| way[place] == from[place] || way[place] == to[place])
    };
    let grants = [from.grant, to.grant].contains(&way.grant);
    grants
        && [from.mark, to.mark].contains(&way.mark)
        && way.issued & !to.issued == 0
        && is_kept(|it| {
            let [a, b] = it.running;
            [it.ready, it.said_fenced, a, b, it.trust, it.fence, it.recorded, it.past]
        })
}

/// What the protocol speaks of, and the promises of the world do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Inside {
    processes: Processes<Call>,
    /// The epoch that the role trusts; 0: it trusts nobody, or is not there.
    trust: u8,
    /// The highest fence in the cloud.
    put: u8,
    /// Whether reads and sessions rest on the past.
    lags: bool,
    /// The epoch of the recorded fence, and its time, if it has one.
    fence: Option<(u8, Option<i64>)>,
    date: i64,
}

impl Inside {
    pub(super) fn of(machine: &Machine, status: &RoleStatus) -> Inside {
        let roles = machine.account.roles.values();
        let fence = status.fence.as_ref().map(|fence| {
            (fence.epoch as u8, fence.before.as_ref().map(|before| before.0.as_second()))
        });
        Inside {
            processes: Processes::of(machine, status.mark.as_ref(), read),
            trust: roles.clone().map(|role| trusted(&role.trust)).max().unwrap_or(0),
            put: roles.flat_map(|it| it.inline.keys()).map(|name| fenced(name)).max().unwrap_or(0),
            lags: machine.shown.is_some(),
            fence,
            date: machine.date,
        }
    }
}

fn read(call: &outside::Call) -> Option<Call> {
    match call {
        outside::Call::UpdateAssumeRolePolicy { trust } => Some(Call::Trust(trusted(trust))),
        outside::Call::PutRolePolicy { name, .. } => Some(Call::Fence(fenced(name))),
        // A role is created closed: to the protocol it always was.
        _ => None,
    }
}

/// The epoch that a trust policy names; 0: nobody is trusted.
fn trusted(trust: &str) -> u8 {
    admitted(trust).into_iter().map(|(epoch, _)| epoch as u8).max().unwrap_or(0)
}

fn fenced(name: &str) -> u8 {
    name.rsplit('-').next().and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}

/// What the protocol remembers, and the world does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Past {
    ready: u8,
    said_fenced: u8,
    /// The highest fence whose time has passed.
    past: u8,
    /// The highest fence that was not needed, since the role was not there: to the protocol it is in the cloud.
    needless: u8,
    /// Older trusts that reads and sessions may rest on, a bit for each.
    stale: u8,
    /// The sessions that there are, a bit for each.
    issued: u16,
    mark: LastMark,
    known: [Known; PROCESSES],
}

/// What a process knows of its own calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Known {
    unanswered: u8,
    last: Option<u8>,
}

impl Past {
    /// After a step.
    pub(super) fn after(&self, before: &Truth, after: &Truth) -> Past {
        let (Some(was), Some(now)) = (&before.inside, &after.inside) else { return self.clone() };
        let said = |state: RightsState| {
            let entries = after.rights.iter().filter(|(_, it)| *it == state);
            entries.map(|(epoch, _)| *epoch as u8).max().unwrap_or(0)
        };
        let changed = if was.trust == now.trust { 0 } else { 1 << was.trust };
        let stale = if now.lags { (self.stale | changed) & !(1 << now.trust) } else { 0 };
        let past = match now.fence {
            Some((epoch, None)) => epoch,
            Some((epoch, Some(time))) if now.date >= time && now.put >= epoch && stale == 0 => {
                epoch
            }
            Some(_) | None => 0,
        };
        let past = self.past.max(past);
        let needless = now.fence.filter(|(_, time)| time.is_none()).map_or(0, |(epoch, _)| epoch);
        let is_new = |epoch: &i64| before.sessions.get(epoch) != after.sessions.get(epoch);
        let epochs = after.sessions.keys().filter(|epoch| is_new(epoch));
        let issued = epochs.map(|epoch| Session { epoch: *epoch as u8, after: past }.bit());
        let mark = self.mark.after(&was.processes, &now.processes);
        Past {
            ready: self.ready.max(said(RightsState::Ready)),
            said_fenced: self.said_fenced.max(said(RightsState::Fenced)),
            past,
            needless: self.needless.max(needless),
            stale,
            issued: issued.fold(self.issued, |all, bit| all | bit),
            mark,
            known: std::array::from_fn(|process| {
                let is_new = was.processes.starts[process] != now.processes.starts[process];
                let known = if is_new { Known::default() } else { self.known[process] };
                known.after(process, &now.processes, mark)
            }),
        }
    }
}

impl Known {
    fn after(self, process: usize, now: &Processes<Call>, mark: LastMark) -> Known {
        let given_up = now.unanswered(process).into_iter();
        let given_up = given_up.fold(0, |all, call| all | call.bit());
        let has_mark = mark.by.is_some_and(|life| life.process == process && now.is_alive(life));
        if !has_mark {
            return Known { unanswered: self.unanswered | given_up, ..self };
        }
        let trusts = now.sent[process].iter().rev().find_map(|(call, is_answered)| match call {
            Call::Trust(epoch) => Some((*epoch, *is_answered)),
            Call::Fence(_) => None,
        });
        let last = trusts.filter(|(_, is_answered)| *is_answered).map(|(epoch, _)| epoch);
        match mark.proves {
            Proves::Wait => Known { unanswered: self.unanswered | given_up, last: None },
            Proves::Clear => Known { unanswered: self.unanswered | given_up, last },
            Proves::Quiet => Known { unanswered: given_up, last },
        }
    }
}

fn picture(_: &Placed, basis: &Basis<Placed>) -> Picture {
    let (truth, past) = (&*basis.truth, &*basis.past);
    let Some(inside) = &truth.inside else { return Picture::first() };
    let processes = &inside.processes;
    let phase = match truth.phase {
        Phase::Granted => protocol::Phase::Granted,
        Phase::Revoking => protocol::Phase::Revoking,
        Phase::Fenced => protocol::Phase::Fenced,
        Phase::Released | Phase::Unassigned | Phase::Deleting => protocol::Phase::Released,
    };
    let fence = inside.put.max(past.needless);
    // A call that would change nothing counts as lost: of two equal ones the protocol knows one.
    let is_due = |call: &&Call| match **call {
        Call::Trust(epoch) => epoch != inside.trust,
        Call::Fence(epoch) => epoch > fence,
    };
    let late = |sender: usize| {
        processes.late[sender].iter().filter(is_due).fold(0, |all, call| all | call.bit())
    };
    Picture {
        grant: Grant { epoch: truth.epoch as u8, phase },
        forced: truth.fenced_epoch as u8,
        ready: past.ready,
        said_fenced: past.said_fenced,
        running: truth.running.map(|epoch| epoch as u8),
        mark: match past.mark.by {
            None => Mark::None,
            Some(life) if processes.is_alive(life) => Mark::Of(life.process as u8),
            Some(_) => Mark::Dead,
        },
        proof: match past.mark.proves {
            Proves::Wait => Proof::Wait,
            Proves::Clear => Proof::Clear,
            Proves::Quiet => Proof::Quiet,
        },
        trust: inside.trust,
        stale: past.stale,
        fence,
        recorded: inside.fence.map_or(0, |(epoch, _)| epoch),
        past: past.past,
        late: std::array::from_fn(late),
        processes: std::array::from_fn(|process| Process {
            unanswered: past.known[process].unanswered,
            last: past.known[process].last,
            pending: processes.waiting[process].map_or(Pending::Idle, Pending::Wait),
            marked_once: past.mark.once >> process & 1 == 1,
        }),
        issued: past.issued,
        ..Picture::first()
    }
}
