//! A command beside a run: a probe of it, or what it wants to be done before it is stopped.
//!
//! It runs in the folder of the run, with the environment of the process that leads it. It may write to the
//! volumes of the run, so whoever asks whether the run is gone has to see it, from the moment in which it is
//! forked. It has a lock of its own, beside that of the run, as its standard input:
//!
//! | who | in this order |
//! |---|---|
//! | a command beside a run | takes its own lock; sees that the run lives; starts |
//! | who asks whether all is free | sees that the run's lock is free; then that this one is |
//!
//! So one of the two sees the other. Later it is known by its environment, too, and is signalled with the run.

use super::error::{Error, Result};
use super::lock::{LOCK_VARIABLE, Locking, RecordsGuard};
use super::record::Record;
use super::start::RUN_VARIABLE;
use super::stop::signal_exactly;
use super::{Ending, Observed, Processes, Signal, table};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tracing::warn;

/// How long after its time a command that nobody waits for any more may keep its lock.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

/// For what a command runs beside a run: there is one at once for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It tells whether the run has started.
    Startup,
    /// It tells whether the run lives.
    Liveness,
    /// It tells whether the run can serve.
    Readiness,
    /// It is run before the run is asked to stop.
    PreStop,
}

/// All of them, to see that none is there.
const PURPOSES: [Purpose; 4] =
    [Purpose::Startup, Purpose::Liveness, Purpose::Readiness, Purpose::PreStop];

impl Purpose {
    /// What its lock is called: no name of a Pod has this sign.
    fn lock_beside(self, lock_name: &str) -> String {
        let what = match self {
            Purpose::Startup => "startup",
            Purpose::Liveness => "liveness",
            Purpose::Readiness => "readiness",
            Purpose::PreStop => "pre-stop",
        };
        format!("{lock_name}~{what}")
    }
}

/// What became of a command beside a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// It ended.
    Ended(Ending),
    /// It took too long, and its process group was killed.
    TimedOut,
    /// It could not be executed.
    NoProgram,
    /// It was not started: the run does not live, or is being stopped.
    NotRunning,
    /// It was not started: the one before it has not ended.
    Busy,
}

impl Processes {
    /// Runs a command beside a run, and waits for its end, but no longer than the timeout.
    pub fn run_beside(
        &self,
        id: &str,
        purpose: Purpose,
        command: &[String],
        timeout: Duration,
    ) -> Result<Beside> {
        let Some(record) = self.record(id)? else { return Ok(Beside::NotRunning) };
        let lock_name = purpose.lock_beside(&record.lock);
        let lock = match self.lock(&lock_name)? {
            Locking::Taken(lock) => lock,
            Locking::HeldByAnother { .. } => {
                self.kill_left_behind(&lock_name, timeout)?;
                return Ok(Beside::Busy);
            }
        };
        // Only now: whoever saw the run gone and this lock free before finds no command after that.
        let observed = self.observe(id)?;
        let asked = self.asked(id)?;
        let is_stopping =
            asked.kill.is_some() || asked.term.is_some() && purpose != Purpose::PreStop;
        let Observed::Running { pid, .. } = observed else { return Ok(Beside::NotRunning) };
        if is_stopping {
            return Ok(Beside::NotRunning);
        }
        let failed = |source| Error::Start {
            id: id.to_owned(),
            program: command.first().cloned().unwrap_or_default(),
            source,
        };
        let input = lock.descriptor.try_clone().map_err(failed)?;
        let mut input = fs::File::from(input);
        // Whoever reads it finds the end.
        input.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut command = self.command_beside(&record, pid, command)?;
        command.stdin(Stdio::from(input));
        match self.spawn_unless_frozen(&record, command)? {
            Ok(child) => wait(child, timeout).map_err(failed),
            Err(error) => {
                warn!(run = id, %error, "cannot execute a command beside a run");
                Ok(Beside::NoProgram)
            }
        }
    }

    /// Whoever reads a volume of the run while everybody holds still either sees the command, or is seen here.
    /// When this returns the command executes its program, and is known by its environment.
    fn spawn_unless_frozen(
        &self,
        record: &Record,
        mut command: Command,
    ) -> Result<io::Result<Child>> {
        let _guard = RecordsGuard::take(&self.directory)?;
        self.refuse_while_frozen(&record.id, &record.volumes)?;
        Ok(command.spawn())
    }

    /// Whether a lock is free, and no command runs beside a run that had it.
    pub fn is_free_with_all_beside(&self, lock_name: &str) -> Result<bool> {
        if !self.is_free(lock_name)? {
            return Ok(false);
        }
        for purpose in PURPOSES {
            if !self.is_unlocked(&self.lock_path(&purpose.lock_beside(lock_name))?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn command_beside(&self, record: &Record, leader: i32, words: &[String]) -> Result<Command> {
        let mut words = words.iter();
        let mut command = Command::new(words.next().map(String::as_str).unwrap_or_default());
        command.args(words).env_clear();
        let path = PathBuf::from(format!("/proc/{leader}/environ"));
        let environment = fs::read(&path).map_err(|source| Error::Read { path, source })?;
        for variable in environment.split(|byte| *byte == 0) {
            let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = variable.split_at(at);
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(&value[1..]));
        }
        command.env(RUN_VARIABLE, format!("{}/{}", record.id, record.token));
        command.env(LOCK_VARIABLE, self.lock_path(&record.lock)?);
        let root = self.run_folder(&record.id)?.join("root");
        command.current_dir(record.folder.as_ref().unwrap_or(&root));
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(command)
    }

    /// Kills what an agent before this one has started and nobody waits for any more.
    fn kill_left_behind(&self, lock_name: &str, timeout: Duration) -> Result<()> {
        let path = self.lock_path(lock_name)?;
        // It was written when the lock was taken.
        let taken = fs::metadata(&path).and_then(|metadata| metadata.modified());
        let age = taken.ok().and_then(|taken| taken.elapsed().ok());
        if age.is_none_or(|age| age < timeout + LEFT_BEHIND) {
            return Ok(());
        }
        for left in self.leftovers(lock_name)? {
            let Some(process) = table::look(left.pid) else { continue };
            // One that ended since is what was wanted.
            let _ = signal_exactly(left.pid, process.start_time, process::Signal::KILL);
        }
        Ok(())
    }

    /// What is to be run before a run is asked to stop, if that was not begun yet. It is noted as begun.
    pub fn begin_pre_stop(&self, id: &str) -> Result<Option<PreStop>> {
        let Some(record) = self.record(id)? else { return Ok(None) };
        if record.pre_stop.is_empty() || self.asked(id)?.pre_stop.is_some() {
            return Ok(None);
        }
        self.note_pre_stop(id)?;
        let timeout = Duration::from_secs(record.grace_seconds);
        Ok(Some(PreStop { command: record.pre_stop, timeout }))
    }

    /// Runs what was begun, to its end, and then asks the run to stop.
    pub fn finish_pre_stop(&self, id: &str, PreStop { command, timeout }: &PreStop) -> Result<()> {
        let ended = self.run_beside(id, Purpose::PreStop, command, *timeout);
        match &ended {
            Ok(Beside::Ended(Ending::Code(0)) | Beside::NotRunning) => {}
            Ok(ended) => warn!(run = id, ?ended, "a preStop hook failed"),
            Err(error) => warn!(run = id, %error, "a preStop hook could not be run"),
        }
        self.signal(id, Signal::Term).map(|_| ())
    }
}

/// What is to be run before a run is asked to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreStop {
    command: Vec<String>,
    timeout: Duration,
}

/// Waits for the end of a child, or ends it with its process group.
fn wait(mut child: Child, timeout: Duration) -> io::Result<Beside> {
    if ends_within(&child, timeout)? {
        return Ok(Beside::Ended(ending(child.wait()?)));
    }
    // It is not waited for yet, so its number means it and no other.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        match process::kill_process_group(group, process::Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    child.wait()?;
    Ok(Beside::TimedOut)
}

fn ends_within(child: &Child, timeout: Duration) -> io::Result<bool> {
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let number = number.ok_or(Errno::SRCH)?;
    let handle = process::pidfd_open(number, PidfdFlags::empty())?;
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn ending(status: ExitStatus) -> Ending {
    let by_signal = status.signal().map_or(Ending::Unknown, Ending::Signal);
    status.code().map_or(by_signal, Ending::Code)
}
