//! A directory with processes in it, and words to talk about them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use interlock_outside::processes::{Lock, Locking, Observed, Processes, Run, Started};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Tests also run as root, in containers; that it is refused by default has a test of its own.
pub fn open(directory: &Path) -> Processes {
    Processes::open_allowing_root(directory).unwrap()
}

pub struct Scene {
    pub directory: tempfile::TempDir,
    pub processes: Processes,
}

impl Scene {
    pub fn new() -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let processes = open(directory.path());
        Scene { directory, processes }
    }

    pub fn shell(&self, id: &str, script: &str) -> Run {
        // A run outlives whoever started it, also a test that was killed: a loop ends after so much processor time.
        let script = format!("ulimit -t 120; {script}");
        Run {
            id: id.to_owned(),
            epoch: 1,
            command: vec!["sh".to_owned(), "-c".to_owned(), script],
            log_file: self.processes.log_file(id).unwrap(),
            grace_seconds: 30,
            ..Run::default()
        }
    }

    /// Starts a script as run `id`, under the lock `volumes`.
    pub fn start(&self, id: &str, script: &str) -> Started {
        self.processes.start(&self.shell(id, script), self.lock("volumes")).unwrap()
    }

    /// The lock, as soon as it can be had: a child forked by another test may have a copy of it
    /// until it executes its program.
    pub fn lock(&self, name: &str) -> Lock {
        let mut lock = None;
        until("the lock is free", || {
            if let Locking::Taken(taken) = self.processes.lock(name).unwrap() {
                lock = Some(taken);
            }
            lock.is_some()
        });
        lock.unwrap()
    }

    pub fn is_refused(&self, name: &str) -> bool {
        matches!(self.processes.lock(name).unwrap(), Locking::HeldByAnother { .. })
    }

    pub fn until_exited(&self, id: &str) -> Observed {
        let exited = || matches!(self.processes.observe(id).unwrap(), Observed::Exited { .. });
        until("the run has exited", exited);
        self.processes.observe(id).unwrap()
    }

    pub fn until_gone(&self, id: &str) {
        until("the run is gone", || self.processes.is_gone(id).unwrap());
    }

    /// A file in the folder in which the command runs.
    pub fn file(&self, id: &str, name: &str) -> PathBuf {
        self.directory.path().join("runs").join(id).join("root").join(name)
    }

    pub fn until_file(&self, id: &str, name: &str) {
        until("the script has made its file", || self.file(id, name).exists());
    }

    pub fn record_path(&self, id: &str) -> PathBuf {
        self.directory.path().join("runs").join(id).join("run.json")
    }

    /// Changes the record behind our back.
    pub fn edit_record(&self, id: &str, edit: impl FnOnce(&mut serde_json::Value)) {
        let text = std::fs::read(self.record_path(id)).unwrap();
        let mut record = serde_json::from_slice(&text).unwrap();
        edit(&mut record);
        std::fs::write(self.record_path(id), record.to_string()).unwrap();
    }

    /// What the runs said: a script that cannot fork says so there, and nowhere else.
    fn print_logs(&self) {
        let logs = std::fs::read_dir(self.directory.path().join("logs"));
        for log in logs.into_iter().flatten().flatten() {
            let said = std::fs::read(log.path()).unwrap_or_default();
            let end = &said[said.len().saturating_sub(2_000)..];
            eprintln!("{}:\n{}", log.path().display(), String::from_utf8_lossy(end));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // No process outlives its test, also when the test fails.
        let _ = open(self.directory.path()).stop_all(Duration::ZERO);
        if std::thread::panicking() {
            self.print_logs();
        }
    }
}

/// A machine that is busy with other things must not fail a test.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Looks until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process with this pid lives.
pub fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The session of a process. Read from its record, for the system call answers 0 (which rustix
/// takes for impossible) when the leader is outside of the container that the tests run in.
pub fn session(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(3)?.parse().ok()
}
