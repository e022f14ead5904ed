//! Who belongs to a run.

use super::error::{Error, Result};
use super::record::Record;
use super::table::{FileUse, Process, Seen};
use super::{Processes, table};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A living process that belongs to a run.
pub(super) struct Member {
    pub(super) process: Process,
    /// Whether it is proven to be of the run, so that it may be killed. It is not if all that
    /// speaks for it is a session whose leader is gone.
    pub(super) is_proven: bool,
    /// Whether a signal to the group of the leader reaches it.
    pub(super) is_in_group: bool,
}

/// By what the members of one run are known.
struct Marks<'a> {
    directory: &'a Path,
    id: &'a str,
    session: Option<i32>,
    leader_is_there: bool,
    /// The lock's file, if nobody has taken the lock since this run.
    lock: Option<PathBuf>,
}

impl Processes {
    /// The living processes of the run. One whose record is missing or damaged is still known by
    /// the environment of its processes.
    pub(super) fn members(&self, id: &str) -> Result<Vec<Member>> {
        self.members_among(&self.others()?, id)
    }

    /// The same, among processes that were seen already.
    pub(super) fn members_among(&self, others: &[Seen], id: &str) -> Result<Vec<Member>> {
        let record = match self.record(id) {
            Ok(record) => record,
            Err(Error::DamagedRecord { .. }) => None,
            Err(error) => return Err(error),
        };
        let marks = self.marks(id, record.as_ref())?;
        Ok(others.iter().filter_map(|other| marks.member(other)).collect())
    }

    fn marks<'a>(&'a self, id: &'a str, record: Option<&Record>) -> Result<Marks<'a>> {
        let mut marks = Marks {
            directory: &self.directory,
            id,
            session: None,
            leader_is_there: false,
            lock: None,
        };
        let Some(record) = record.filter(|record| record.boot_id == self.boot_id) else {
            return Ok(marks);
        };
        marks.session = self.session_of(record);
        // Session and start time agree if the pid is there at all, also as a zombie.
        marks.leader_is_there = marks.session.and_then(table::look).is_some();
        if record.leader.is_some() && !self.was_taken_since(record)? {
            marks.lock = Some(self.lock_path(&record.lock)?);
        }
        Ok(marks)
    }

    /// Whether the lock was taken after this run had it: then no process of the run holds it.
    pub(super) fn was_taken_since(&self, record: &Record) -> Result<bool> {
        let note = self.lock_note(&self.lock_path(&record.lock)?)?;
        Ok(note.generation > record.lock_generation)
    }
}

impl Marks<'_> {
    fn member(&self, seen: &Seen) -> Option<Member> {
        let process = &seen.process;
        let is_in_session = Some(process.session) == self.session;
        let is_proven = is_in_session && self.leader_is_there
            || self.is_named_by(seen)
            || self.has_inherited_the_lock(seen);
        let is_in_group = self.leader_is_there && Some(process.group) == self.session;
        let member = Member { process: process.clone(), is_proven, is_in_group };
        (is_in_session || is_proven).then_some(member)
    }

    /// Whether its environment names this run. Another directory may have a run of the same id.
    fn is_named_by(&self, seen: &Seen) -> bool {
        let run = seen.run().and_then(|run| run.strip_prefix(self.id.as_bytes()));
        run.is_some_and(|rest| rest.starts_with(b"/")) && self.is_of_this_directory(seen)
    }

    /// Whether it has the lock open as runs have it. What is of another run is not looked into: that is asked of a
    /// thousand processes for each run.
    fn has_inherited_the_lock(&self, seen: &Seen) -> bool {
        let Some(lock) = &self.lock else { return false };
        let is_of_another_run = seen.run().is_some() && self.is_of_this_directory(seen);
        !is_of_another_run && seen.use_of(lock) == FileUse::Inherited
    }

    /// Whether its environment names a lock of the directory.
    fn is_of_this_directory(&self, seen: &Seen) -> bool {
        let lock = seen.lock().map(OsStr::from_bytes).map(Path::new);
        lock.is_some_and(|lock| lock.starts_with(self.directory))
    }
}
