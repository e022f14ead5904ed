//! Stopping runs, and saying so only when it is true.

use super::error::{Error, Result};
use super::lock::{Lock, RecordsGuard};
use super::table::Seen;
use super::{Living, Processes, durable};
use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How long a killed process may take to go before it is reported instead of waited for.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// For how long a kill goes after processes that are born while it is carried out.
const CATCHING_UP: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: please.
    Term,
    /// SIGKILL: no choice.
    Kill,
}

/// A run with living processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StillThere {
    /// The run.
    pub id: String,
    /// Its processes.
    pub processes: Vec<Living>,
}

impl Processes {
    /// Sends the signal to every process of the run that can be seen, and returns their pids. One
    /// that is born meanwhile may be missed by SIGTERM: read again with [`Processes::is_gone`].
    /// SIGKILL goes after those, for a while: nobody kills a run a second time, and one that makes
    /// processes all the time would else go on in those that were born in this moment.
    pub fn signal(&self, id: &str, signal: Signal) -> Result<Vec<i32>> {
        let mut reached = BTreeSet::new();
        let give_up_at = Instant::now() + CATCHING_UP;
        while self.signal_among(&self.others()?, id, signal, &mut reached)? {
            if signal == Signal::Term || Instant::now() >= give_up_at {
                break;
            }
        }
        Ok(reached.into_iter().map(|(pid, _)| pid).collect())
    }

    /// Signals those of the run that were not reached yet, by pid and start time. Whether there were any.
    fn signal_among(
        &self,
        others: &[Seen],
        id: &str,
        signal: Signal,
        reached: &mut BTreeSet<(i32, u64)>,
    ) -> Result<bool> {
        let mut members = self.members_among(others, id)?;
        members
            .retain(|member| !reached.contains(&(member.process.pid, member.process.start_time)));
        if !members.is_empty() {
            info!(run = id, ?signal, processes = members.len(), "signalling a run");
            self.note_asked(id, signal);
        }
        let in_group = members.iter().find(|member| member.is_in_group);
        if let Some(member) = in_group
            && let Some(group) = Pid::from_raw(member.process.group)
        {
            let sent = process::kill_process_group(group, signal.number());
            ended_is_fine(sent).map_err(|source| Error::Signal {
                id: id.to_owned(),
                pid: member.process.group,
                source,
            })?;
        }
        for member in members.iter().filter(|member| member.is_proven && !member.is_in_group) {
            let (pid, start_time) = (member.process.pid, member.process.start_time);
            ended_is_fine(signal_exactly(pid, start_time, signal.number()))
                .map_err(|source| Error::Signal { id: id.to_owned(), pid, source })?;
        }
        let before = reached.len();
        let proven = members.iter().filter(|member| member.is_proven);
        reached.extend(proven.map(|member| (member.process.pid, member.process.start_time)));
        Ok(reached.len() > before)
    }

    /// Whether no process of the run lives and none of them holds its lock.
    pub fn is_gone(&self, id: &str) -> Result<bool> {
        if let Some(record) = self.record(id)?
            && record.boot_id == self.boot_id
            && !self.was_taken_since(&record)?
            && !self.is_unlocked(&self.lock_path(&record.lock)?)?
        {
            return Ok(false);
        }
        Ok(self.members(id)?.is_empty())
    }

    /// Removes the record and the folder of a run that is gone. Its volumes and its log stay.
    pub fn forget(&self, id: &str) -> Result<()> {
        let _guard = RecordsGuard::take(&self.directory)?;
        if !self.is_gone(id)? {
            return Err(Error::NotGone { id: id.to_owned() });
        }
        self.remove_run(id)
    }

    /// Removes a record that cannot be read. Whoever holds the lock of that run has the proof that
    /// it is over; which lock that is, only the caller can know.
    pub fn discard_damaged(&self, id: &str, lock: &Lock) -> Result<()> {
        let _guard = RecordsGuard::take(&self.directory)?;
        match self.record(id) {
            Err(Error::DamagedRecord { .. }) => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(Error::NotDamaged { id: id.to_owned() }),
        }
        if !self.members(id)?.is_empty() {
            return Err(Error::NotGone { id: id.to_owned() });
        }
        warn!(run = id, lock = lock.name, "discarding a damaged record");
        self.remove_run(id)
    }

    /// The runs of which any process lives.
    pub fn running(&self) -> Result<Vec<StillThere>> {
        self.running_among(&self.others()?)
    }

    fn running_among(&self, others: &[Seen]) -> Result<Vec<StillThere>> {
        let mut running = Vec::new();
        for id in self.run_ids()? {
            let members = self.members_among(others, &id)?;
            let processes: Vec<_> =
                members.iter().map(|member| Living::of(&member.process)).collect();
            if !processes.is_empty() {
                running.push(StillThere { id, processes });
            }
        }
        Ok(running)
    }

    /// Stops every run: asks, waits for its grace period but not longer than `grace`, then kills.
    /// Nothing is started here any more. Returns what would not die; else nothing is left behind.
    /// Waits, so async callers give it a thread of its own.
    pub fn stop_all(&self, grace: Duration) -> Result<Vec<StillThere>> {
        *self.stopping.write().unwrap_or_else(PoisonError::into_inner) = true;
        let asked_at = Instant::now();
        let mut kill_at = BTreeMap::new();
        let others = self.others()?;
        for run in self.running_among(&others)? {
            kill_at.insert(run.id.clone(), asked_at + self.grace_of(&run.id).min(grace));
            self.signal_if_possible(&others, &run.id, Signal::Term);
        }
        let give_up_at = kill_at.values().max().copied().unwrap_or(asked_at) + KILL_WAIT;
        loop {
            let others = self.others()?;
            let left = self.running_among(&others)?;
            if left.is_empty() || Instant::now() >= give_up_at {
                return Ok(left);
            }
            for run in &left {
                // One that appeared since was started by another program: it is asked by a kill.
                let due = kill_at.get(&run.id).copied().unwrap_or(asked_at);
                if Instant::now() >= due {
                    self.signal_if_possible(&others, &run.id, Signal::Kill);
                }
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// One run that cannot be signalled must not keep the others from being stopped. It is still
    /// there in the end, and reported so.
    fn signal_if_possible(&self, others: &[Seen], id: &str, signal: Signal) {
        if let Err(error) = self.signal_among(others, id, signal, &mut BTreeSet::new()) {
            warn!(run = id, ?signal, %error, "cannot signal a run");
        }
    }

    fn grace_of(&self, id: &str) -> Duration {
        let record = self.record(id).ok().flatten();
        record.map_or(Duration::ZERO, |record| Duration::from_secs(record.grace_seconds))
    }

    /// The record goes first and for good: without it, the rest is litter that a start clears away.
    fn remove_run(&self, id: &str) -> Result<()> {
        durable::remove(&self.record_path(id)?)?;
        let folder = self.run_folder(id)?;
        remove_folder(&folder).map_err(|source| Error::Remove { path: folder, source })
    }
}

impl Signal {
    fn number(self) -> process::Signal {
        match self {
            Signal::Term => process::Signal::TERM,
            Signal::Kill => process::Signal::KILL,
        }
    }
}

/// Signals this very process, never one that came to have its pid.
pub(super) fn signal_exactly(
    pid: i32,
    start_time: u64,
    signal: process::Signal,
) -> rustix::io::Result<()> {
    let number = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    let handle = process::pidfd_open(number, PidfdFlags::empty())?;
    // The handle stays with its process. So if the pid means the right one after it was opened,
    // the handle does too.
    match super::table::look(pid) {
        Some(process) if process.start_time == start_time => {
            process::pidfd_send_signal(&handle, signal)
        }
        _ => Err(Errno::SRCH),
    }
}

pub(super) fn ended_is_fine(sent: rustix::io::Result<()>) -> io::Result<()> {
    match sent {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes the folder with all in it. Links are removed, not followed: volumes stay.
fn remove_folder(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // How the run ended may have been written in this very moment.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            std::fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}
