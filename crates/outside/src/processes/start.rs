//! Starting a run: checked, recorded, and only then let go.

use super::error::{Error, Result};
use super::launch::Launch;
use super::lock::{self, LOCK_VARIABLE, Lock, RecordsGuard};
use super::record::{Exit, Leader, Record, now_unix_milliseconds, time_of};
use super::{Mount, Processes, durable, table};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::time::SystemTime;
use tracing::info;

/// The variable that names a run to whoever looks at its processes: `<id>/<token>`.
pub(super) const RUN_VARIABLE: &str = "INTERLOCK_RUN";
const RANDOM_TOKEN: &str = "/proc/sys/kernel/random/uuid";
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Names the run: the uid of the Pod, or that with the name of an init container.
    pub id: String,
    /// The epoch of the Grant under which it runs.
    pub epoch: i64,
    /// The program and its first arguments. Its name is looked up in the run's `PATH`.
    pub command: Vec<String>,
    /// More arguments.
    pub args: Vec<String>,
    /// The whole environment but for the defaults of `PATH`, `HOME` and `TMPDIR`.
    pub env: BTreeMap<String, String>,
    /// Taken below the folder of the run, and made if it is not there.
    pub working_directory: Option<String>,
    /// Where volumes appear.
    pub mounts: Vec<Mount>,
    /// Output and errors are appended to this file.
    pub log_file: PathBuf,
    /// What is run before it is asked to stop; empty: nothing.
    pub pre_stop: Vec<String>,
    /// How long it may take to stop before it is killed.
    pub grace_seconds: u64,
}

/// A run whose command now executes, or could not be executed and has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The process that leads the run.
    pub pid: i32,
    /// When it was started.
    pub since: SystemTime,
}

/// What is on disk before a process exists.
struct Recorded {
    record: Record,
    /// Where the process begins.
    folder: PathBuf,
}

impl Processes {
    /// Starts the command and hands the lock over to it. Refused if the run has a record of an
    /// earlier start, whatever became of it. When this fails nothing runs, and the lock is free. A
    /// command that cannot be executed is no failure of a start but how the run ended: it has a
    /// record, says why, and counts as a start to whoever waits between two of them.
    pub fn start(&self, run: &Run, lock: Lock) -> Result<Started> {
        let stopping = self.stopping.read().unwrap_or_else(PoisonError::into_inner);
        if *stopping {
            return Err(Error::Stopping { id: run.id.clone() });
        }
        if self.lock_path(lock.name())? != lock.path {
            let directory = self.directory.clone();
            return Err(Error::ForeignLock { path: lock.path.clone(), directory });
        }
        let recorded = self.record_start(run, &lock)?;
        let outcome = self.launch(run, &lock, recorded);
        if outcome.is_err() {
            // The child is gone, and the lock is still ours: nobody else touches this record.
            durable::remove(&self.record_path(&run.id)?)?;
        }
        outcome
    }

    /// Everything that must be on disk before a process exists.
    fn record_start(&self, run: &Run, lock: &Lock) -> Result<Recorded> {
        let program = run.command.first().filter(|program| !program.is_empty());
        if program.is_none() {
            return Err(Error::NoCommand { id: run.id.clone() });
        }
        let _guard = RecordsGuard::take(&self.directory)?;
        match self.record(&run.id)? {
            None => {}
            // That start got no further, or the lock could not be ours: its child inherits the
            // lock in the moment in which it is made, and never ran anything.
            Some(Record { leader: None, lock: earlier, .. }) if earlier == lock.name => {}
            Some(_) => return Err(Error::HasRecord { id: run.id.clone() }),
        }
        let volumes = real_paths(run)?;
        self.refuse_while_frozen(&run.id, &volumes)?;
        let token = fs::read_to_string(RANDOM_TOKEN)
            .map_err(|source| Error::Read { path: RANDOM_TOKEN.into(), source })?;
        let folder = self.prepare_root(run)?;
        let record = Record {
            id: run.id.clone(),
            epoch: run.epoch,
            token: token.trim().to_owned(),
            lock: lock.name.clone(),
            lock_generation: lock.generation,
            boot_id: self.boot_id.clone(),
            grace_seconds: run.grace_seconds,
            command: run.command.clone(),
            volumes,
            folder: Some(folder.clone()),
            pre_stop: run.pre_stop.clone(),
            leader: None,
        };
        lock::note_run(lock, &run.id)?;
        self.write_record(&record)?;
        let run_folder = self.run_folder(&run.id)?;
        durable::sync_folder_of(&run_folder)
            .map_err(|source| Error::Write { path: run_folder, source })?;
        Ok(Recorded { record, folder })
    }

    fn launch(&self, run: &Run, lock: &Lock, mut recorded: Recorded) -> Result<Started> {
        let command = self.command(run, lock, &recorded)?;
        let record = &mut recorded.record;
        let program = run.command.first().cloned().unwrap_or_default();
        let failed = |source| Error::Start { id: run.id.clone(), program: program.clone(), source };
        info!(run = run.id, epoch = run.epoch, lock = lock.name, "starting a command");
        let exit_path = self.exit_path(record)?;
        let launch = match Launch::to_the_gate(command, &lock.descriptor, exit_path) {
            Ok(launch) => launch,
            Err(error) => return Err(failed(error)),
        };
        let pid = launch.pid();
        let Some(process) = table::look(pid) else {
            let error = std::io::Error::other("it ended before it was let go");
            return Err(failed(error));
        };
        let since_unix_milliseconds = now_unix_milliseconds();
        let start_time = process.start_time;
        record.leader = Some(Leader { pid, start_time, since_unix_milliseconds });
        self.write_record(record)?;
        if let Err(error) = launch.open_the_gate() {
            match flaw_of_command(&error) {
                Some(number) => self.note_not_executed(record, number)?,
                None => return Err(failed(error)),
            }
        }
        Ok(Started { pid, since: time_of(since_unix_milliseconds) })
    }

    /// Notes that the command could not be executed. The process that was to do so is gone.
    fn note_not_executed(&self, record: &Record, number: i32) -> Result<()> {
        let exit = Exit {
            code: None,
            signal: None,
            not_executed: Some(number),
            at_unix_milliseconds: now_unix_milliseconds(),
        };
        let bytes = serde_json::to_vec(&exit).expect("numbers are always JSON");
        durable::replace(&self.exit_path(record)?, &bytes)
    }

    fn command(&self, run: &Run, lock: &Lock, recorded: &Recorded) -> Result<Command> {
        let Recorded { record, folder } = recorded;
        let log_failed = |source| Error::Write { path: run.log_file.clone(), source };
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&run.log_file);
        let log = log.map_err(log_failed)?;
        let errors = log.try_clone().map_err(log_failed)?;
        let mut words = run.command.iter().chain(&run.args);
        let mut command = Command::new(words.next().map(String::as_str).unwrap_or_default());
        command.args(words).env_clear().envs(inherited()).envs(checked_variables(run)?);
        command.envs(self.mount_variables(run)?);
        command.env(RUN_VARIABLE, format!("{}/{}", record.id, record.token));
        command.env(LOCK_VARIABLE, &lock.path);
        command.current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(errors);
        Ok(command)
    }
}

/// The kernel's number for why it is the command itself that cannot be executed. None if the machine could not do it
/// now: it had no memory or no more processes, and another try may succeed.
fn flaw_of_command(error: &io::Error) -> Option<i32> {
    let errno = Errno::from_io_error(error)?;
    let is_of_command = matches!(
        errno,
        Errno::NOENT
            | Errno::ACCESS
            | Errno::PERM
            | Errno::NOEXEC
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::TOOBIG
            | Errno::INVAL
            | Errno::LIBBAD
            | Errno::TXTBSY
    );
    is_of_command.then(|| errno.raw_os_error())
}

/// The folders of its volumes, without links on the way to them.
fn real_paths(run: &Run) -> Result<Vec<PathBuf>> {
    let real = |mount: &Mount| match mount.directory.canonicalize() {
        Ok(path) => Ok(path),
        // The run will find nothing there, and say so.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(mount.directory.clone()),
        Err(source) => Err(Error::Read { path: mount.directory.clone(), source }),
    };
    run.mounts.iter().map(real).collect()
}

/// The only variables that a run has from us. A command must be found, and must have a home.
fn inherited() -> Vec<(&'static str, OsString)> {
    let defaults = [("PATH", DEFAULT_PATH), ("HOME", "/"), ("TMPDIR", "/tmp")];
    let ours = |(name, default): (&'static str, &str)| {
        (name, std::env::var_os(name).unwrap_or_else(|| default.into()))
    };
    defaults.into_iter().map(ours).collect()
}

fn checked_variables(run: &Run) -> Result<&BTreeMap<String, String>> {
    for (name, value) in &run.env {
        let because = if name.is_empty() || name.contains('=') {
            "the name is empty or has an equals sign"
        } else if name.contains('\0') || value.contains('\0') {
            "it has a zero byte"
        } else {
            continue;
        };
        return Err(Error::Variable { id: run.id.clone(), name: name.clone(), because });
    }
    Ok(&run.env)
}
