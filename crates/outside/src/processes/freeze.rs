//! Runs that hold still while somebody reads what they write.
//!
//! Every process of a run is stopped by SIGSTOP, and checked until all of its threads are seen
//! stopped and no new process has appeared. What is about to be stopped is on disk before: whoever
//! opens the directory after a freezer was killed finds the note, and lets those runs go on. A note
//! whose file is locked belongs to a freezer that lives.
//!
//! A parent is stopped before its children that have not executed a program yet. Shells and most
//! languages start a command by vfork(2): the parent waits in the kernel, in state D, until its child
//! executes a program or ends. No signal stops the parent there. A child that was stopped first would
//! never get that far, and the parent would never be seen stopped.
//!
//! One run is frozen by one freezer at a time, and a second waits: whoever is done first would let
//! go whom the other still reads.
//!
//! If nobody lives who could write to a folder, nobody is stopped, and nobody need hurry. A start
//! that comes in the first seconds is put off. One that comes later goes ahead, and leaves a mark by
//! which whoever reads the folder knows that it was disturbed.
//!
//! | name | what it is |
//! |---|---|
//! | `frozen/<token>.json` | which runs are, or are about to be, stopped, and for which folder |
//! | `frozen/<token>.disturbed` | a run was started into that folder nevertheless |

use super::error::{Error, Result};
use super::frozen_note::{Note, OpenNote, Stopped, disturbed, is_locked, read_note};
use super::lock::RecordsGuard;
use super::members::Member;
use super::record::{Record, now_unix_milliseconds};
use super::stop::{ended_is_fine, signal_exactly};
use super::{Processes, durable, table};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::{info, warn};

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// How often a freezer that waits for another one looks whether that is done.
const BETWEEN_TURNS: Duration = Duration::from_millis(10);

/// Runs that are stopped until this is dropped, or until their time is over; or a folder that
/// nobody writes to.
#[derive(Debug)]
pub struct Frozen {
    shared: Arc<Shared>,
    watchdog: Option<JoinHandle<()>>,
}

/// What the one who froze and the watchdog have in common.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    note: OpenNote,
    longest: Duration,
    /// None if nobody is stopped.
    deadline: Option<Instant>,
}

#[derive(Debug)]
struct State {
    /// Those that we have stopped, and let go in the end.
    stopped: BTreeSet<Stopped>,
    /// Those that somebody else had stopped. They stay so, or what was read is not of one moment.
    found_stopped: BTreeSet<Stopped>,
    end: Option<End>,
}

/// Whom to freeze, for how long at most.
struct Order {
    runs: Vec<String>,
    /// All runs that have it as a volume are frozen as well.
    folder: Option<PathBuf>,
    longest: Duration,
}

/// A freeze that is on disk, before anybody is stopped.
enum Announced {
    Noted {
        note: OpenNote,
        /// Nobody, if nobody lives who could write to the folder.
        runs: Vec<String>,
        is_idle: bool,
    },
    /// Not announced: another freezer has stopped this run.
    FrozenByAnother(String),
}

/// How a freeze ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    InTime,
    TooLate,
}

impl Processes {
    /// Stops every process of these runs, and returns when none of them can do anything. They go
    /// on when the answer is dropped, or after `longest`. Nobody is left stopped by an error.
    pub fn freeze(&self, runs: &[String], longest: Duration) -> Result<Frozen> {
        self.freeze_as(&Order { runs: runs.to_vec(), folder: None, longest })
    }

    /// The same for all runs that have this folder, or one in or around it, as a volume. None that
    /// has it is started meanwhile. If none of them lives, there is no need to end after `longest`:
    /// then a run may be started later, and [`Frozen::thaw`] tells.
    pub fn freeze_writers(&self, folder: &Path, longest: Duration) -> Result<Frozen> {
        let real = folder.canonicalize();
        let folder = real.map_err(|source| Error::Read { path: folder.to_owned(), source })?;
        self.freeze_as(&Order { runs: Vec::new(), folder: Some(folder), longest })
    }

    fn freeze_as(&self, order: &Order) -> Result<Frozen> {
        let give_up_at = Instant::now() + order.longest;
        let (note, runs, is_idle) = loop {
            match self.announce(order)? {
                Announced::Noted { note, runs, is_idle } => break (note, runs, is_idle),
                Announced::FrozenByAnother(id) if Instant::now() >= give_up_at => {
                    return Err(Error::FrozenByAnother { id, seconds: order.longest.as_secs() });
                }
                Announced::FrozenByAnother(_) => std::thread::sleep(BETWEEN_TURNS),
            }
        };
        let longest = order.longest;
        info!(?runs, is_idle, "freezing");
        // Nobody is stopped yet: what a slow disk took for the note is not taken from their time.
        let deadline = (!is_idle).then_some(Instant::now() + longest);
        let state = State { stopped: BTreeSet::new(), found_stopped: BTreeSet::new(), end: None };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { state, changed, note, longest, deadline });
        let mut frozen = Frozen { shared: Arc::clone(&shared), watchdog: None };
        let Some(deadline) = deadline else { return Ok(frozen) };
        let watchdog = std::thread::Builder::new()
            .name("thaw".to_owned())
            .spawn(move || shared.thaw_at(deadline));
        let path = frozen.shared.note.path.clone();
        frozen.watchdog = Some(watchdog.map_err(|source| Error::Prepare { path, source })?);
        self.stop_until_still(&runs, &frozen.shared)?;
        Ok(frozen)
    }

    /// Puts on disk who is about to be stopped, unless another freezer has stopped one of them.
    fn announce(&self, order: &Order) -> Result<Announced> {
        // A start writes its record under this guard: so it is seen here, or sees the note. Another
        // freezer writes its note under it: so one of the two sees the other.
        let _guard = RecordsGuard::take(&self.directory)?;
        let Order { folder, longest, .. } = order;
        let mut runs = order.runs.clone();
        if let Some(folder) = folder {
            runs.extend(self.runs_with(folder)?);
        }
        if let Some(id) = self.frozen_by_another(&runs)? {
            return Ok(Announced::FrozenByAnother(id));
        }
        let is_idle = folder.is_some() && !self.any_lives(&runs)?;
        if is_idle {
            runs.clear();
        }
        let note = self.write_note(&Note {
            boot_id: self.boot_id.clone(),
            runs: runs.clone(),
            folder: folder.clone(),
            until_unix_milliseconds: unix_milliseconds(SystemTime::now() + *longest),
            stopped_before: self.stopped_already(&runs)?,
        })?;
        Ok(Announced::Noted { note, runs, is_idle })
    }

    /// One of these runs that a freezer who lives has stopped. Only for who has the guard.
    fn frozen_by_another(&self, runs: &[String]) -> Result<Option<String>> {
        for path in self.notes()? {
            let Some(note) = read_note(&path)? else { continue };
            let common = note.runs.into_iter().find(|id| runs.contains(id));
            if common.is_some() && is_locked(&path)? {
                return Ok(common);
            }
        }
        Ok(None)
    }

    /// Stops what is not stopped, again and again, until nothing is found that moves.
    fn stop_until_still(&self, runs: &[String], shared: &Shared) -> Result<()> {
        let mut looks_still = 0;
        loop {
            let mut is_still = true;
            let others = if runs.is_empty() { Vec::new() } else { self.others()? };
            let mut members = Vec::new();
            for id in runs {
                is_still &= !self.is_starting(id)?;
                let of_run = self.members_among(&others, id)?;
                members.extend(of_run.into_iter().map(|member| (id.as_str(), member)));
            }
            is_still &= stop_members(&members, shared)?;
            if shared.state().end.is_some() {
                return Err(Error::FreezeTooLong { seconds: shared.longest.as_secs() });
            }
            // The last act of a process, after it was listed and before it was stopped, may have
            // been a child. If all were stopped before a second list, nobody was left to have one.
            looks_still = if is_still { looks_still + 1 } else { 0 };
            if looks_still == 2 {
                return Ok(());
            }
            if !is_still {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
    }

    /// Whether anything of these runs lives, or is about to.
    fn any_lives(&self, runs: &[String]) -> Result<bool> {
        let others = if runs.is_empty() { Vec::new() } else { self.others()? };
        for id in runs {
            if self.is_starting(id)? || !self.members_among(&others, id)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a start is under way whose process is not known yet.
    fn is_starting(&self, id: &str) -> Result<bool> {
        match self.record(id) {
            Ok(Some(Record { leader: None, lock, boot_id, .. })) => {
                Ok(boot_id == self.boot_id && !self.is_unlocked(&self.lock_path(&lock)?)?)
            }
            Ok(_) | Err(Error::DamagedRecord { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The runs that have this folder, or one in or around it, as a volume.
    pub(super) fn runs_with(&self, folder: &Path) -> Result<Vec<String>> {
        let mut runs = Vec::new();
        for id in self.run_ids()? {
            let volumes = match self.record(&id) {
                Ok(record) => record.map(|record| record.volumes).unwrap_or_default(),
                // It may be one of them. To stop one run too many for a moment does no harm.
                Err(Error::DamagedRecord { .. }) => vec![folder.to_owned()],
                Err(error) => return Err(error),
            };
            if volumes.iter().any(|volume| is_around(volume, folder)) {
                runs.push(id);
            }
        }
        Ok(runs)
    }

    fn stopped_already(&self, runs: &[String]) -> Result<Vec<Stopped>> {
        let mut stopped = Vec::new();
        if runs.is_empty() {
            return Ok(stopped);
        }
        let others = self.others()?;
        for id in runs {
            let members = self.members_among(&others, id)?;
            let still = members.iter().filter(|member| is_stopped(member.process.state));
            stopped.extend(still.map(|member| Stopped::of(&member.process)));
        }
        Ok(stopped)
    }

    /// Whether somebody holds the run still for a moment.
    pub(super) fn is_frozen(&self, id: &str) -> Result<bool> {
        let _guard = RecordsGuard::take(&self.directory)?;
        Ok(self.frozen_by_another(&[id.to_owned()])?.is_some())
    }

    /// Refuses a start into a volume that is being read while everybody holds still, or tells the
    /// reader if that takes long and stops nobody. Only for who has the guard of the records.
    pub(super) fn refuse_while_frozen(&self, id: &str, volumes: &[PathBuf]) -> Result<()> {
        for path in self.notes()? {
            let Some(Note { folder: Some(folder), runs, until_unix_milliseconds, .. }) =
                read_note(&path)?
            else {
                continue;
            };
            let is_read = volumes.iter().any(|volume| is_around(volume, &folder));
            if !is_read || !is_locked(&path)? {
                continue;
            }
            if !runs.is_empty() || now_unix_milliseconds() < until_unix_milliseconds {
                return Err(Error::VolumeFrozen { id: id.to_owned(), path: folder });
            }
            durable::replace(&disturbed(&path), id.as_bytes())?;
        }
        Ok(())
    }

    /// Lets all go on that a freezer left stopped who is dead. One that cannot be signalled is left
    /// to the next who opens the directory.
    pub(super) fn thaw_abandoned(&self) -> Result<()> {
        let notes = self.notes()?;
        if notes.is_empty() {
            return Ok(());
        }
        // A note is made and locked under this guard: so one that is not locked has no owner.
        let _guard = RecordsGuard::take(&self.directory)?;
        for path in notes {
            let Some(note) = OpenNote::take_over(&path)? else { continue };
            if let Err(error) = self.thaw_noted(&path) {
                warn!(%error, note = %path.display(), "cannot let a stopped run go on");
                continue;
            }
            note.remove();
        }
        Ok(())
    }

    fn thaw_noted(&self, path: &Path) -> Result<()> {
        // One that cannot be understood was never whole, and nothing was stopped for it.
        let Some(note) = read_note(path)?.filter(|note| note.boot_id == self.boot_id) else {
            return Ok(());
        };
        warn!(runs = ?note.runs, "letting runs go on that were left stopped");
        let others = self.others()?;
        for id in &note.runs {
            for member in self.members_among(&others, id)? {
                let stopped = Stopped::of(&member.process);
                let by_us = !note.stopped_before.contains(&stopped);
                if by_us && member.is_proven && may_be_stopped(member.process.pid) {
                    let (pid, start) = (stopped.pid, stopped.start_time);
                    ended_is_fine(signal_exactly(pid, start, Signal::CONT))
                        .map_err(|source| Error::Signal { id: id.clone(), pid, source })?;
                }
            }
        }
        Ok(())
    }
}

/// Stops those that are not stopped, each after its parent if need be; true if all were stopped.
///
/// The order is enough. A parent that is seen stopped in all of its threads waits for no child. A
/// child that has executed a program is waited for by no parent: the kernel wakes the parent before
/// it says so of the child. And a parent that is asked to stop while it waits stops as soon as it is
/// woken, before it runs a single instruction, so it starts no further child.
///
/// Ruled out: to count a parent in state D as stopped. A thread in that state may as well be in the
/// middle of a write, which arrives on the disk later. What a thread waits for is in
/// `/proc/<pid>/wchan`, but many kernels say nothing there (x86 before 5.16), and what they do say
/// is the name of a function of theirs. Which system call it is in is in `/proc/<pid>/syscall`, for
/// those who may trace it only, and it does not say enough: a signal that comes in the middle of a
/// fork(2) does not end that, and a parent that waits for memory there has one more child later.
/// The freezer of a cgroup knows such parents, but needs a cgroup that is ours to write to, and we
/// ask for no such right.
///
/// A child that waits for something else before it executes a program delays the freeze until then.
fn stop_members(members: &[(&str, Member)], shared: &Shared) -> Result<bool> {
    // One that is not proven is never stopped, so nobody waits for that.
    let proven = members.iter().filter(|(_, member)| member.is_proven);
    let to_stop: BTreeSet<i32> = proven.map(|(_, member)| member.process.pid).collect();
    let mut is_still = true;
    for (id, member) in members {
        let table::Process { parent, has_executed, .. } = member.process;
        if !has_executed && to_stop.contains(&parent) && !is_wholly_stopped(parent) {
            is_still = false;
            continue;
        }
        is_still &= stop(id, member, shared)?;
    }
    Ok(is_still)
}

/// Stops a process that is not stopped; true if it needed none of that.
fn stop(id: &str, member: &Member, shared: &Shared) -> Result<bool> {
    if !member.is_proven {
        // It may be a stranger that has the number of an old session: it is let be.
        return Ok(true);
    }
    let stopped = Stopped::of(&member.process);
    let mut state = shared.state();
    if is_wholly_stopped(stopped.pid) {
        if !state.stopped.contains(&stopped) {
            state.found_stopped.insert(stopped);
        }
        return Ok(true);
    }
    // If somebody else had stopped it, that is over now: it is ours to stop and to let go.
    state.found_stopped.remove(&stopped);
    if state.end.is_none() {
        state.stopped.insert(stopped);
        ended_is_fine(signal_exactly(stopped.pid, stopped.start_time, Signal::STOP))
            .map_err(|source| Error::Signal { id: id.to_owned(), pid: stopped.pid, source })?;
    }
    Ok(false)
}

impl Frozen {
    /// When they go on by themselves; None if nobody is stopped.
    pub fn deadline(&self) -> Option<Instant> {
        self.shared.deadline
    }

    /// Lets them go on. An error says that they did not hold still all the time.
    pub fn thaw(mut self) -> Result<()> {
        let end = self.shared.end();
        self.join();
        match end {
            Ended::Still => Ok(()),
            Ended::TooLate => Err(Error::FreezeTooLong { seconds: self.shared.longest.as_secs() }),
            Ended::Moved(pid) => Err(Error::NotStill { pid }),
            Ended::Disturbed(id) => Err(Error::Disturbed { id }),
        }
    }

    fn join(&mut self) {
        if let Some(watchdog) = self.watchdog.take() {
            let _ = watchdog.join();
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.shared.end();
        self.join();
    }
}

/// How those who were stopped were found at the end.
enum Ended {
    Still,
    TooLate,
    Moved(i32),
    /// By the start of this run.
    Disturbed(String),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets them go on if nobody has.
    fn end(&self) -> Ended {
        let mut state = self.state();
        match state.end {
            Some(End::InTime) => return Ended::Still,
            Some(End::TooLate) => return Ended::TooLate,
            None => {}
        }
        // Somebody else may have let one of them go on before.
        let moves = |stopped: &&Stopped| {
            table::look(stopped.pid)
                .is_some_and(|process| process.start_time == stopped.start_time && process.lives())
                && !is_wholly_stopped(stopped.pid)
        };
        let mut all = state.stopped.iter().chain(&state.found_stopped);
        let moved = all.find(moves).map(|stopped| stopped.pid);
        let mark = durable::read(&disturbed(&self.note.path)).ok().flatten();
        self.thaw(&mut state, End::InTime);
        self.changed.notify_all();
        match (moved, mark) {
            (Some(pid), _) => Ended::Moved(pid),
            (None, Some(id)) => Ended::Disturbed(String::from_utf8_lossy(&id).into_owned()),
            (None, None) => Ended::Still,
        }
    }

    fn thaw_at(&self, deadline: Instant) {
        let mut state = self.state();
        while state.end.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                warn!("runs were frozen for as long as they may be");
                self.thaw(&mut state, End::TooLate);
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn thaw(&self, state: &mut State, end: End) {
        state.end = Some(end);
        let mut all_go_on = true;
        for Stopped { pid, start_time } in &state.stopped {
            if let Err(error) = ended_is_fine(signal_exactly(*pid, *start_time, Signal::CONT)) {
                warn!(pid, %error, "cannot let a stopped process go on");
                all_go_on = false;
            }
        }
        // Otherwise the note stays, and whoever opens the directory next tries again.
        if all_go_on {
            self.note.remove();
        }
    }
}

fn unix_milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn is_around(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn is_stopped(state: char) -> bool {
    matches!(state, 'T' | 't')
}

/// Whether every thread of the process is stopped or over; also if there is no such process.
fn is_wholly_stopped(pid: i32) -> bool {
    threads(pid).iter().all(|state| is_stopped(*state) || matches!(state, 'Z' | 'X' | 'x'))
}

/// Whether any thread of the process is stopped, or will be without being asked again. A signal is
/// pending until the moment in which a thread stops by it: so who asks in this order misses nothing.
fn may_be_stopped(pid: i32) -> bool {
    table::is_stop_pending(pid) || threads(pid).into_iter().any(is_stopped)
}

/// The states of all threads of a process.
fn threads(pid: i32) -> Vec<char> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let state = |entry: fs::DirEntry| {
        let stat = fs::read(entry.path().join("stat")).ok()?;
        table::state(&stat)
    };
    entries.flatten().filter_map(state).collect()
}
