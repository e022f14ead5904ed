//! What the kernel says of processes: which are there, and whether two writers ever lived at once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A process: its number, and when it was started, since numbers come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Living {
    pub(crate) pid: u32,
    since: u64,
}

/// When a process was started; none if it is gone or only waits to be buried.
fn since(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets, and may have brackets and blanks in it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?;
    let is_dead = matches!(state, "Z" | "X");
    words.nth(18).filter(|_| !is_dead)?.parse().ok()
}

fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("this is Linux");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// Every `write-numbers DIRECTORY` that lives.
pub(crate) fn writers(directory: &Path) -> Vec<Living> {
    let directory = directory.to_string_lossy();
    let is_writer = |pid: &u32| {
        let words = command_line(*pid);
        words.windows(2).any(|two| two[0] == "write-numbers" && two[1] == directory)
    };
    let living = |pid| since(pid).map(|since| Living { pid, since });
    all().into_iter().filter(is_writer).filter_map(living).collect()
}

/// Every process that was started with something below this directory.
pub(crate) fn left_in(directory: &Path) -> Vec<(u32, String)> {
    let directory = directory.to_string_lossy();
    let others = all().into_iter().map(|pid| (pid, command_line(pid).join(" ")));
    others.filter(|(_, line)| line.contains(&*directory)).collect()
}

/// Every process of the pod with this uid, by what its environment says.
pub(crate) fn of_run(uid: &str) -> Vec<u32> {
    let mark = format!("INTERLOCK_RUN={uid}/");
    let is_its = |pid: &u32| {
        let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()))
    };
    all().into_iter().filter(is_its).filter(|pid| since(*pid).is_some()).collect()
}

/// Sends a signal: `KILL`, `STOP`, `TERM`.
pub(crate) fn signal(pid: u32, name: &str) {
    let mut command = Command::new("kill");
    command.args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null());
    // It may be gone by itself.
    let _ = command.status().expect("kill runs");
}

/// What an outside look at the writers showed, over and over.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How many looks there were.
    pub(crate) looks: u64,
    /// How many of them found a writer.
    pub(crate) with_one: u64,
    /// Writers that lived at one moment.
    pub(crate) together: Vec<(Living, Living)>,
}

/// LiveReads at the writers of a directory without pause, until it is asked what it saw.
pub(crate) struct Watcher {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Seen>,
}

impl Watcher {
    pub(crate) fn of(directory: &Path) -> Self {
        let is_over: Arc<AtomicBool> = Arc::default();
        let (over, directory) = (Arc::clone(&is_over), PathBuf::from(directory));
        let task = thread::spawn(move || {
            let mut seen = Seen::default();
            while !over.load(Ordering::Relaxed) {
                look(&directory, &mut seen);
                // The pause between two looks, not a wait for something.
                thread::sleep(Duration::from_millis(1));
            }
            seen
        });
        Watcher { is_over, task }
    }

    pub(crate) fn saw(self) -> Seen {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.join().expect("it only looks")
    }
}

fn look(directory: &Path, seen: &mut Seen) {
    let first = writers(directory);
    seen.looks += 1;
    seen.with_one += u64::from(!first.is_empty());
    if first.len() < 2 {
        return;
    }
    // One may have gone before the other came, in the middle of the look. Who is in two looks lived
    // at every moment between them, and so together with all who are in both.
    let second = writers(directory);
    let both: Vec<Living> = first.into_iter().filter(|one| second.contains(one)).collect();
    if let [one, other, ..] = both[..] {
        seen.together.push((one, other));
    }
}

#[test]
fn the_watcher_sees_two_writers_that_live_at_once() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let stand_in = || {
        let mut command = Command::new("sh");
        command.args(["-c", "read word; exit", "write-numbers"]).arg(place.path());
        command.stdin(Stdio::piped()).spawn().expect("there is a shell")
    };
    let watcher = Watcher::of(place.path());
    let mut children = [stand_in(), stand_in()];
    let began = std::time::Instant::now();
    while writers(place.path()).len() < 2 && began.elapsed() < super::harness::TIMEOUT {
        thread::yield_now();
    }
    let mut seen = Seen::default();
    look(place.path(), &mut seen);
    for child in &mut children {
        child.kill().expect("it waits for a word");
        child.wait().expect("it is our child");
    }
    watcher.saw();
    assert_eq!(seen.together.len(), 1, "{seen:?}");
    assert!(writers(place.path()).is_empty());
}
