//! A command beside a run: it sees what the run sees, is a member of the run, and ends with it.
//!
//! # How a command never runs in a run that is over
//! Whoever lets go of what a run uses reads first that no process of the run lives. So a command must be seen as
//! one of its processes before it does anything, and must not begin if nobody could have seen it in time:
//!
//! | step | what holds after it |
//! |---|---|
//! | 1. a shell is started with the variables of the run, and waits for a word | whoever reads sees a member of the run |
//! | 2. the process that leads the run is read, and whether the run was killed | it lived while the member was there |
//! | 3. the shell gets the word, and executes the command in its own place | |
//!
//! If the leader does not live in step 2, the shell gets no word, and ends. A crash of ours leaves it without a
//! word, too; later, the kernel kills what it has become when the thread that started it is gone.
//!
//! A command has a session of its own. When its connection is dropped, or the leader of the run ends, the session
//! gets SIGHUP and then SIGKILL. What leaves the session is still a member of the run, and ends with it at the latest.

mod end;
mod ports;
mod spawn;

use super::error::Error;
use super::lock::{LOCK_VARIABLE, RecordsGuard};
use super::record::Record;
use super::start::RUN_VARIABLE;
use super::{Processes, table};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::PoisonError;

/// What to run beside a run.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The program and its arguments. Its name is looked up in the `PATH` of the run.
    pub command: Vec<String>,
    /// Whether somebody writes to it; else it reads nothing.
    pub stdin: bool,
    /// Whether it has a terminal.
    pub terminal: bool,
}

/// A command beside a run. To drop it ends the command.
#[derive(Debug)]
pub struct Entered {
    /// What it reads, if somebody writes to it and it has no terminal. It ends when this is closed.
    pub stdin: Option<OwnedFd>,
    /// What it writes, if it has no terminal.
    pub stdout: Option<OwnedFd>,
    /// What it writes about errors, if it has no terminal.
    pub stderr: Option<OwnedFd>,
    /// Its terminal: both directions. Whoever reads or writes it does not wait.
    pub terminal: Option<OwnedFd>,
    /// Ends it.
    pub hold: Hold,
}

/// Keeps a command going. To drop it ends the command.
#[derive(Debug)]
pub struct Hold {
    _held: OwnedFd,
}

/// How a command beside a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// With this code; of a command that was killed by a signal it is 128 and its number.
    Code(i32),
    /// The run ended, and the command with it.
    WithTheRun,
    /// Nobody knows.
    Unknown,
}

/// Why a command could not be run beside a run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are the words of the texts; variants are described")]
pub enum EnterError {
    /// There is nothing to run it beside.
    #[error("run {id} does not live")]
    NotThere { id: String },
    /// There is nothing to execute.
    #[error("no command is named, or its name begins with a dash")]
    NoCommand,
    /// A word has a zero byte.
    #[error("the command has a zero byte")]
    ZeroByte,
    /// The kernel could not give what the command needs.
    #[error("cannot run a command beside run {id}")]
    Start { id: String, source: io::Error },
    /// What is on record cannot be read.
    #[error(transparent)]
    Processes(#[from] Error),
}

/// The process that leads a run, as long as it lives.
#[derive(Clone, Copy, Debug)]
struct Leader {
    pid: i32,
    start_time: u64,
}

impl Leader {
    fn lives(self) -> bool {
        let process = table::look(self.pid);
        process.is_some_and(|process| process.start_time == self.start_time && process.lives())
    }
}

impl Processes {
    /// Runs a command beside a run, in its working directory, with its variables. `on_end` learns how it ended,
    /// in a thread of its own.
    pub fn enter(
        &self,
        id: &str,
        entry: &Entry,
        on_end: impl FnOnce(Left) + Send + 'static,
    ) -> Result<Entered, EnterError> {
        match entry.command.first() {
            Some(program) if !program.is_empty() && !program.starts_with('-') => {}
            _ => return Err(EnterError::NoCommand),
        }
        if entry.command.iter().any(|word| word.contains('\0')) {
            return Err(EnterError::ZeroByte);
        }
        // While everything is being stopped nothing is begun, and a stop sees each member that was.
        let stopping = self.stopping.read().unwrap_or_else(PoisonError::into_inner);
        if *stopping {
            return Err(Error::Stopping { id: id.to_owned() }.into());
        }
        let not_there = || EnterError::NotThere { id: id.to_owned() };
        let record = self.record(id)?.filter(|record| record.boot_id == self.boot_id);
        let record = record.ok_or_else(not_there)?;
        let leader = record.leader.map(|it| Leader { pid: it.pid, start_time: it.start_time });
        let leader = leader.filter(|leader| leader.lives()).ok_or_else(not_there)?;
        // What is read of a process that is just ending may be an error of its own.
        let is_killed = || Ok::<bool, Error>(self.asked(id)?.kill.is_some());
        if is_killed()? {
            return Err(not_there());
        }
        let surroundings = match self.surroundings(&record, leader) {
            Err(_) if !leader.lives() => return Err(not_there()),
            read => read?,
        };
        let failed = |source| EnterError::Start { id: id.to_owned(), source };
        let waiting = self.waiting_unless_frozen(&record, entry, &surroundings)?;
        // It has executed a program with the variables of the run: whoever reads sees it.
        if is_killed()? || !leader.lives() {
            return Err(not_there());
        }
        waiting.go(leader, on_end).map_err(failed)
    }

    /// Whoever reads a volume of the run while everybody holds still either sees the shell, or is seen here.
    fn waiting_unless_frozen(
        &self,
        record: &Record,
        entry: &Entry,
        surroundings: &Surroundings,
    ) -> Result<spawn::Waiting, EnterError> {
        let _guard = RecordsGuard::take(&self.directory)?;
        self.refuse_while_frozen(&record.id, &record.volumes)?;
        let waiting = spawn::waiting(entry, surroundings);
        waiting.map_err(|source| EnterError::Start { id: record.id.clone(), source })
    }

    /// What the process that leads a run was started with. A program may have written over its own variables:
    /// those by which its processes are known are as they must be in any case.
    fn surroundings(&self, record: &Record, leader: Leader) -> Result<Surroundings, EnterError> {
        let id = &record.id;
        let failed = |source| EnterError::Start { id: id.clone(), source };
        let bytes = fs::read(format!("/proc/{}/environ", leader.pid)).map_err(failed)?;
        let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
            let equals = variable.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((text(&variable[..equals]), text(&variable[equals + 1..])))
        });
        let mut variables: BTreeMap<OsString, OsString> = variables.collect();
        variables.insert(RUN_VARIABLE.into(), format!("{id}/{}", record.token).into());
        variables.insert(LOCK_VARIABLE.into(), self.lock_path(&record.lock)?.into_os_string());
        let root = self.run_folder(id)?.join("root");
        let folder = record.folder.clone().filter(|folder| folder.is_dir()).unwrap_or(root);
        Ok(Surroundings { variables, folder })
    }
}

/// What a command sees.
#[derive(Debug)]
struct Surroundings {
    variables: BTreeMap<OsString, OsString>,
    folder: PathBuf,
}

/// Gives a terminal another size. Whoever reads it gets SIGWINCH.
pub fn resize(terminal: impl AsFd, columns: u16, rows: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
