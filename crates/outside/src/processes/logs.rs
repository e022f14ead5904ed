//! Logs of runs: what a run wrote, and when; how little of it is kept.
//!
//! A run writes into its log file by itself, so it goes on writing whatever happens to us. What a file
//! does not say, a [`LogKeeper`] adds from outside: it notes how long the file was at which moment
//! (`marks`), and frees the beginning of a file that has grown too large. It punches a hole there, so
//! that no byte of the rest moves: offsets mean the same before and after, and the run never notices.
//!
//! | name | what it is |
//! |---|---|
//! | `logs/<id>.log` | the output of the last start of a run |
//! | `logs/before/<id>.log` | the output of the start before that |
//! | `logs/marks/<id>`, `logs/before/marks/<id>` | when how much of it was there |
//!
//! A log outlives its run, and the program that started it. While no program of ours is there, nothing
//! is freed: the next one does so at once.

mod keeper;
mod marks;
mod reader;

pub use keeper::LogKeeper;
pub use reader::{LogReader, LogWindow, Stamp};

use super::error::{Error, Result};
use super::{Processes, durable, names};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Which log of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOf {
    /// That of its last start.
    LastStart,
    /// That of the start before it.
    StartBefore,
}

/// The files of one log.
#[derive(Clone, Debug)]
struct Paths {
    log: PathBuf,
    marks: PathBuf,
}

impl Processes {
    /// Keeps the log of a start that is over as that of the start before: for whoever starts the run
    /// again, and has not forgotten it yet. A start whose command never ran has no log of its own, so
    /// that nothing is set aside for it. Done twice, it is done once.
    pub fn set_log_aside(&self, id: &str) -> Result<()> {
        if self.leader(id)?.is_none() {
            return Ok(());
        }
        let (last, before) =
            (self.log_paths(id, LogOf::LastStart)?, self.log_paths(id, LogOf::StartBefore)?);
        if !last.log.exists() {
            return Ok(());
        }
        for path in [&before.marks, &before.log] {
            if let Some(folder) = path.parent() {
                durable::make_folder(folder)?;
            }
        }
        // Marks that are missing cost the times of lines; those of another log would give wrong ones.
        durable::remove(&before.marks)?;
        for (from, to) in [(&last.log, &before.log), (&last.marks, &before.marks)] {
            match fs::rename(from, to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Write { path: to.clone(), source }),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Opens a log at the beginning of what is asked for; None if there is no such log.
    pub fn read_log(
        &self,
        id: &str,
        which: LogOf,
        window: &LogWindow,
    ) -> Result<Option<LogReader>> {
        let paths = self.log_paths(id, which)?;
        let file = match File::open(&paths.log) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path: paths.log, source }),
        };
        let reader = LogReader::open(file, marks::read(&paths.marks), window);
        reader.map(Some).map_err(|source| Error::Read { path: paths.log, source })
    }

    fn log_paths(&self, id: &str, which: LogOf) -> Result<Paths> {
        let id = names::checked("run", id)?;
        let mut folder = self.directory.join("logs");
        if which == LogOf::StartBefore {
            folder.push("before");
        }
        let log = folder.join(format!("{id}.log"));
        Ok(Paths { log, marks: folder.join("marks").join(id) })
    }
}
