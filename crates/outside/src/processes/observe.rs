//! What became of a run.

use super::error::Result;
use super::record::{Exit, Record, time_of};
use super::{Processes, Started, durable, table};
use std::time::SystemTime;
use tracing::warn;

/// What is known of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It was never started here, or is forgotten.
    NoRecord,
    /// A start was begun. Its command has not run yet; if its lock can be taken, it never will.
    Starting,
    /// The process that leads it lives.
    Running {
        /// That process.
        pid: i32,
        /// When it was started.
        since: SystemTime,
        /// How long it may take to stop before it is killed.
        grace_seconds: u64,
    },
    /// The process that led it has ended. Others of the run may live: see [`Processes::is_gone`].
    Exited {
        /// How.
        ending: Ending,
        /// When, if one of us was there to see it.
        when: Option<SystemTime>,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It did nothing: the command could not be executed, for the reason with this number of the kernel.
    NotExecuted(i32),
    /// Nobody of us was there: the program that started it, or the machine, was restarted.
    Unknown,
}

impl Processes {
    /// What became of the run. `Exited` is exact; how it ended may be unknown.
    pub fn observe(&self, id: &str) -> Result<Observed> {
        let Some(record) = self.record(id)? else { return Ok(Observed::NoRecord) };
        let Some(leader) = record.leader else { return Ok(Observed::Starting) };
        if let Some(exited) = self.recorded_end(&record)? {
            return Ok(exited);
        }
        let process = table::look(leader.pid).filter(|process| {
            process.start_time == leader.start_time && record.boot_id == self.boot_id
        });
        match process {
            Some(process) if process.lives() => Ok(Observed::Running {
                pid: leader.pid,
                since: time_of(leader.since_unix_milliseconds),
                grace_seconds: record.grace_seconds,
            }),
            Some(zombie) => Ok(Observed::Exited { ending: ending_of(&zombie), when: None }),
            // It leaves the process table after its end is written: so a second look is exact.
            None => {
                let unknown = Observed::Exited { ending: Ending::Unknown, when: None };
                Ok(self.recorded_end(&record)?.unwrap_or(unknown))
            }
        }
    }

    /// The process that leads the run, or led it; None if its command never ran.
    pub fn leader(&self, id: &str) -> Result<Option<Started>> {
        let leader = self.record(id)?.and_then(|record| record.leader);
        Ok(leader.map(|leader| Started {
            pid: leader.pid,
            since: time_of(leader.since_unix_milliseconds),
        }))
    }

    fn recorded_end(&self, record: &Record) -> Result<Option<Observed>> {
        let path = self.exit_path(record)?;
        let Some(bytes) = durable::read(&path)? else { return Ok(None) };
        let exited = match serde_json::from_slice::<Exit>(&bytes) {
            Ok(Exit { code, signal, not_executed, at_unix_milliseconds }) => {
                let unseen = not_executed.map_or(Ending::Unknown, Ending::NotExecuted);
                let by_signal = signal.map_or(unseen, Ending::Signal);
                let ending = code.map_or(by_signal, Ending::Code);
                Observed::Exited { ending, when: Some(time_of(at_unix_milliseconds)) }
            }
            // That the file is there says that the run ended; only how is lost.
            Err(error) => {
                warn!(run = record.id, %error, "cannot read how a run ended");
                Observed::Exited { ending: Ending::Unknown, when: None }
            }
        };
        Ok(Some(exited))
    }
}

fn ending_of(zombie: &table::Process) -> Ending {
    match zombie.wait_status() {
        None => Ending::Unknown,
        Some(status) if status & 0x7f == 0 => Ending::Code((status >> 8) & 0xff),
        Some(status) => Ending::Signal(status & 0x7f),
    }
}
