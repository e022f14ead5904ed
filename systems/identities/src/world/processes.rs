//! What processes have sent and marked, as the specifications of the mark and of rights speak of it.

use super::clients::{Machine, PROCESSES};
use crate::outside::Call;
use interlock_api::identities::Mark;

/// The place of calls whose sender died, behind those of the processes.
pub(super) const DEAD: usize = PROCESSES;

/// What processes have sent and marked; `C` is a call as a specification has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Processes<C> {
    /// The mark on the object.
    pub(super) mark: Option<Marked>,
    /// How often each process was started before.
    pub(super) starts: [u32; PROCESSES],
    /// What each sent within the late-call window, and whether it was answered.
    pub(super) sent: [Vec<(C, bool)>; PROCESSES],
    /// The call whose answer each waits for.
    pub(super) waiting: [Option<C>; PROCESSES],
    /// Calls that were sent and have not taken effect, though nobody waits for them, by sender.
    pub(super) late: [Vec<C>; PROCESSES + 1],
}

/// A mark on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Marked {
    pub(super) by: Life,
    /// Calls of another process may still land.
    pub(super) is_early: bool,
}

/// One life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Life {
    pub(super) process: usize,
    pub(super) starts: u32,
}

impl Life {
    fn named(instance: &str) -> Option<Life> {
        let (process, starts) = instance.strip_prefix("process-")?.split_once('-')?;
        let process = process.parse().ok().filter(|process| *process < PROCESSES)?;
        Some(Life { process, starts: starts.parse().ok()? })
    }
}

impl<C: Copy + PartialEq> Processes<C> {
    /// Reads them off the machine; `read` says which calls the specification speaks of.
    pub(super) fn of(
        machine: &Machine,
        mark: Option<&Mark>,
        read: impl Fn(&Call) -> Option<C>,
    ) -> Processes<C> {
        let clients = &machine.clients;
        let mark = mark.and_then(|mark| {
            let by = Life::named(&mark.instance)?;
            let uptime = clients[by.process].uptime;
            let is_early = mark.quiet_at.is_none_or(|quiet_at| uptime < quiet_at);
            Some(Marked { by, is_early })
        });
        let mut all = Processes {
            mark,
            starts: std::array::from_fn(|process| clients[process].starts),
            sent: Default::default(),
            waiting: [None; PROCESSES],
            late: Default::default(),
        };
        for (sent, client) in all.sent.iter_mut().zip(clients) {
            let known = client.sent.iter();
            sent.extend(known.filter_map(|(_, it)| Some((read(&it.call)?, it.is_answered))));
        }
        for under_way in &machine.calls {
            let Some(call) = read(&under_way.request.call) else { continue };
            if let Some(process) = under_way.awaited_by {
                all.waiting[process] = Some(call);
                continue;
            }
            let sender = Life::named(&under_way.request.decided.instance);
            let sender = sender.filter(|life| all.is_alive(*life));
            all.late[sender.map_or(DEAD, |life| life.process)].push(call);
        }
        all
    }

    /// Whether a process is still the one that it was in this life.
    pub(super) fn is_alive(&self, life: Life) -> bool {
        self.starts[life.process] == life.starts
    }

    /// Calls that a process gave up waiting for.
    pub(super) fn unanswered(&self, process: usize) -> Vec<C> {
        let sent = self.sent[process].iter().filter(|(_, is_answered)| !is_answered);
        let mut unanswered: Vec<C> = sent.map(|(call, _)| *call).collect();
        let waiting = self.waiting[process];
        let awaited = unanswered.iter().rposition(|call| Some(*call) == waiting);
        awaited.map(|place| unanswered.remove(place));
        unanswered
    }
}

/// How much a mark proves, in the words of both specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Proves {
    /// It was taken over: calls of another process may be under way.
    Wait,
    /// Calls of its own process may be under way.
    Clear,
    /// Nothing that was sent can still land.
    #[default]
    Quiet,
}

/// Whose the last mark was, and what it proves: a mark that was removed, or whose process died, counts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct LastMark {
    pub(super) by: Option<Life>,
    pub(super) proves: Proves,
    /// The processes that wrote a mark in this life, a bit for each.
    pub(super) once: u8,
}

impl LastMark {
    /// After a step.
    pub(super) fn after<C: Copy + PartialEq>(
        self,
        before: &Processes<C>,
        now: &Processes<C>,
    ) -> LastMark {
        let mut once = self.once;
        for process in 0..PROCESSES {
            if before.starts[process] != now.starts[process] {
                once &= !(1 << process);
            }
        }
        let by = now.mark.map(|mark| mark.by).or(self.by);
        let Some(life) = by.filter(|life| now.is_alive(*life)) else {
            return LastMark { by, once, ..self };
        };
        let proves = match now.mark {
            Some(mark) if mark.is_early => Proves::Wait,
            _ if !now.sent[life.process].is_empty() => Proves::Clear,
            _ => Proves::Quiet,
        };
        LastMark { by, proves, once: once | 1 << life.process }
    }
}
