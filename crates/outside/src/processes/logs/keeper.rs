//! The keeper of logs: notes when they grew, and frees what is too much of them.

use super::super::{Observed, Processes, durable, error::Error, error::Result};
use super::marks::{self, MOST_MARKS, Mark};
use super::{LogOf, Paths};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, fallocate, inotify};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use tracing::{debug, warn};

/// How much of logs is kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogLimits {
    /// A log with more bytes on disk is cut.
    pub(super) most_bytes: u64,
    /// So many of its bytes are left.
    pub(super) kept_bytes: u64,
    /// All logs of one directory: beyond it, the oldest ones of runs that are over are removed.
    pub(super) all_bytes: u64,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits { most_bytes: 16 << 20, kept_bytes: 8 << 20, all_bytes: 512 << 20 }
    }
}

/// Holes begin and end between blocks of any file system.
const BLOCK_BYTES: u64 = 64 * 1024;
/// Beyond it a file is emptied instead: file systems have a largest file.
const LARGEST_FILE_BYTES: u64 = 1 << 40;
/// How exact the times of lines are.
const BETWEEN_MARKS: Duration = Duration::from_millis(100);
/// How long a keeper waits for a change before it asks whether it is still wanted.
const WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How often logs are read where the kernel does not say when they change.
const WITHOUT_NOTICE: Duration = Duration::from_millis(500);
/// How often all logs together are counted.
const BETWEEN_COUNTS: Duration = Duration::from_secs(60);
/// A log that was just written is not removed.
const YOUNG: Duration = Duration::from_secs(60);

/// Keeps the logs of a directory until it is dropped, or nobody else has the directory open.
#[derive(Debug)]
pub struct LogKeeper {
    is_over: Arc<AtomicBool>,
}

impl Drop for LogKeeper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl LogKeeper {
    /// Begins, in a thread of its own.
    pub fn start(processes: &Arc<Processes>) -> Result<LogKeeper> {
        let folder = processes.directory.join("logs");
        let notice = match notice_of_changes(&folder) {
            Ok(notice) => Some(notice),
            // The number of those who are given notice is limited for each user.
            Err(error) => {
                debug!(folder = %folder.display(), %error, "reading the sizes of logs regularly");
                None
            }
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let keeping = Keeping::new(LogLimits::default());
        let (weak, stop) = (Arc::downgrade(processes), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name("logs".to_owned());
        let spawned = thread.spawn(move || run(keeping, &weak, &stop, notice.as_ref()));
        spawned.map_err(|source| Error::Prepare { path: folder, source })?;
        Ok(LogKeeper { is_over })
    }
}

fn run(
    mut keeping: Keeping,
    processes: &Weak<Processes>,
    is_over: &AtomicBool,
    notice: Option<&OwnedFd>,
) {
    let mut has_changed = true;
    loop {
        let Some(processes) = processes.upgrade() else { return };
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        if has_changed || keeping.is_count_due() {
            keeping.pass(&processes);
        }
        drop(processes);
        has_changed = match notice {
            Some(notice) => wait_for_changes(notice),
            None => {
                std::thread::sleep(WITHOUT_NOTICE);
                true
            }
        };
        if has_changed {
            std::thread::sleep(BETWEEN_MARKS);
        }
    }
}

fn notice_of_changes(folder: &Path) -> io::Result<OwnedFd> {
    let notice = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let changes = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
    inotify::add_watch(&notice, folder, changes)?;
    Ok(notice)
}

/// Waits for a while; whether something has changed. What exactly, the sizes say.
fn wait_for_changes(notice: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(notice, PollFlags::IN)];
    if !poll(&mut polled, Some(&WAIT)).is_ok_and(|count| count > 0) {
        return false;
    }
    let mut events = [0; 4096];
    while rustix::io::read(notice, &mut events).is_ok_and(|count| count > 0) {}
    true
}

/// What is known of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    inode: u64,
    last: Mark,
    count: usize,
}

/// The logs of one directory, as they were last seen.
#[derive(Debug)]
pub(super) struct Keeping {
    limits: LogLimits,
    known: BTreeMap<String, Known>,
    counted: Option<Instant>,
}

impl Keeping {
    pub(super) fn new(limits: LogLimits) -> Keeping {
        Keeping { limits, known: BTreeMap::new(), counted: None }
    }

    fn is_count_due(&self) -> bool {
        self.counted.is_none_or(|at| at.elapsed() >= BETWEEN_COUNTS)
    }

    /// Looks at each log once. One that cannot be kept is no reason to leave out the others.
    pub(super) fn pass(&mut self, processes: &Processes) {
        let ids = ids_in(&processes.directory.join("logs"));
        self.known.retain(|id, _| ids.contains(id));
        for id in &ids {
            let Ok(paths) = processes.log_paths(id, LogOf::LastStart) else { continue };
            if let Err(error) = self.keep(id, &paths) {
                warn!(run = id, %error, "cannot keep the log of a run");
            }
        }
        if self.is_count_due() {
            self.counted = Some(Instant::now());
            self.remove_oldest(processes);
        }
    }

    fn keep(&mut self, id: &str, paths: &Paths) -> io::Result<()> {
        let metadata = match fs::metadata(&paths.log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata?,
        };
        let size = metadata.len();
        let known = self.known.get(id).copied().filter(|known| known.inode == metadata.ino());
        let mut known = match known {
            Some(known) => known,
            None => {
                if let Some(folder) = paths.marks.parent() {
                    durable::make_folder(folder).map_err(io::Error::other)?;
                }
                let marks = marks::read(&paths.marks);
                let last = marks.last().copied().unwrap_or_default();
                Known { inode: metadata.ino(), last, count: marks.len() }
            }
        };
        if size < known.last.bytes {
            // It was emptied, or these are the marks of an earlier log.
            marks::replace(&paths.marks, &[])?;
            (known.last, known.count) = (Mark::default(), 0);
        }
        if size > known.last.bytes {
            let last = Mark::new(size, metadata.modified().unwrap_or_else(|_| SystemTime::now()));
            marks::append(&paths.marks, last)?;
            (known.last, known.count) = (last, known.count + 1);
        }
        if known.count > MOST_MARKS {
            known.count = thin(&paths.marks)?;
        }
        if metadata.blocks() * 512 > self.limits.most_bytes {
            (known.last, known.count) = self.cut(paths, size)?;
        }
        self.known.insert(id.to_owned(), known);
        Ok(())
    }

    /// Frees the beginning of a log. Gives its last mark, and how many it has.
    fn cut(&self, paths: &Paths, size: u64) -> io::Result<(Mark, usize)> {
        let file = OpenOptions::new().write(true).open(&paths.log)?;
        let from = size.saturating_sub(self.limits.kept_bytes) / BLOCK_BYTES * BLOCK_BYTES;
        let mut marks = marks::read(&paths.marks);
        if from == 0 {
            // There is not more in it: the file system has given it more room than it needs.
            return Ok((marks.last().copied().unwrap_or_default(), marks.len()));
        }
        let is_cut = size <= LARGEST_FILE_BYTES && has_hole(&file, from);
        if is_cut {
            marks.retain(|mark| mark.bytes > from);
        } else {
            // The run appends, so its next line is the first one.
            file.set_len(0)?;
            marks.clear();
        }
        marks::replace(&paths.marks, &marks)?;
        Ok((marks.last().copied().unwrap_or_default(), marks.len()))
    }

    /// Removes logs of runs that are over, oldest first, until all together are few enough.
    fn remove_oldest(&self, processes: &Processes) {
        let mut logs = Vec::new();
        for which in [LogOf::LastStart, LogOf::StartBefore] {
            let folder = processes.directory.join("logs");
            let folder = if which == LogOf::StartBefore { folder.join("before") } else { folder };
            for id in ids_in(&folder) {
                let Ok(paths) = processes.log_paths(&id, which) else { continue };
                let Ok(metadata) = fs::metadata(&paths.log) else { continue };
                let Ok(modified) = metadata.modified() else { continue };
                logs.push((modified, metadata.blocks() * 512, id, paths));
            }
        }
        let mut all: u64 = logs.iter().map(|(_, bytes, ..)| bytes).sum();
        logs.sort_by_key(|(modified, ..)| *modified);
        for (modified, bytes, id, paths) in logs {
            if all <= self.limits.all_bytes {
                return;
            }
            let is_young = modified.elapsed().is_ok_and(|age| age < YOUNG);
            if is_young || !is_over(processes, &id) {
                continue;
            }
            debug!(run = id, bytes, "removing the log of a run that is over");
            if remove(&paths).is_ok() {
                all = all.saturating_sub(bytes);
            }
        }
    }
}

/// A run that cannot be read may live.
fn is_over(processes: &Processes, id: &str) -> bool {
    let observed = processes.observe(id);
    matches!(observed, Ok(Observed::NoRecord | Observed::Exited { .. }))
}

fn remove(paths: &Paths) -> Result<()> {
    durable::remove(&paths.log)?;
    durable::remove(&paths.marks)
}

/// Frees everything before an offset; false if the file system cannot.
fn has_hole(file: &File, until: u64) -> bool {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, 0, until).is_ok()
}

/// Keeps every other mark and the last one. Gives how many are left.
fn thin(path: &Path) -> io::Result<usize> {
    let marks = marks::read(path);
    let last = marks.len().saturating_sub(1);
    let kept: Vec<Mark> = marks
        .iter()
        .enumerate()
        .filter(|(place, _)| place % 2 == 1 || *place == last)
        .map(|(_, mark)| *mark)
        .collect();
    marks::replace(path, &kept)?;
    Ok(kept.len())
}

/// The runs that have a log in a folder.
fn ids_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".log").map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{LogWindow, marks};
    use super::*;
    use std::io::Write;

    const LIMITS: LogLimits =
        LogLimits { most_bytes: 512 * 1024, kept_bytes: 128 * 1024, all_bytes: 256 * 1024 };

    struct Scene {
        _place: tempfile::TempDir,
        processes: Processes,
        keeping: Keeping,
    }

    impl Scene {
        fn new() -> Scene {
            let place = tempfile::tempdir().unwrap();
            let processes = Processes::open_allowing_root(place.path()).unwrap();
            Scene { _place: place, processes, keeping: Keeping::new(LIMITS) }
        }

        fn write(&self, id: &str, bytes: &[u8]) {
            let path = self.processes.log_file(id).unwrap();
            let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(bytes).unwrap();
        }

        fn pass(&mut self) {
            self.keeping.pass(&self.processes);
        }

        fn marks(&self, id: &str) -> Vec<u64> {
            let paths = self.processes.log_paths(id, LogOf::LastStart).unwrap();
            marks::read(&paths.marks).iter().map(|mark| mark.bytes).collect()
        }

        fn on_disk(&self, id: &str) -> u64 {
            fs::metadata(self.processes.log_file(id).unwrap()).unwrap().blocks() * 512
        }

        fn read(&self, id: &str) -> String {
            let window = LogWindow::default();
            let log = self.processes.read_log(id, LogOf::LastStart, &window).unwrap();
            let mut log = log.expect("there is a log");
            let mut all = Vec::new();
            while let Some(part) = log.next().unwrap() {
                all.extend(part);
            }
            String::from_utf8(all).unwrap()
        }
    }

    #[test]
    fn each_growth_of_a_log_has_one_mark() {
        let mut scene = Scene::new();
        scene.write("a", b"one\n");
        scene.pass();
        scene.pass();
        scene.write("a", b"two\n");
        scene.pass();
        assert_eq!(scene.marks("a"), [4, 8]);
        // Whoever comes next goes on from what is on disk.
        scene.keeping = Keeping::new(LIMITS);
        scene.pass();
        assert_eq!(scene.marks("a"), [4, 8]);
    }

    #[test]
    fn a_log_is_bounded_and_what_is_left_begins_with_a_whole_line() {
        let mut scene = Scene::new();
        for number in 0..200_000 {
            if number % 20_000 == 0 {
                scene.pass();
            }
            scene.write("a", format!("line {number}\n").as_bytes());
        }
        scene.pass();
        let on_disk = scene.on_disk("a");
        assert!(on_disk <= LIMITS.most_bytes, "{on_disk} bytes are on disk");
        let left = scene.read("a");
        let first = left.lines().next().unwrap();
        let number: u32 = first.strip_prefix("line ").unwrap().parse().unwrap();
        assert!((150_000..199_990).contains(&number), "it begins with {first:?}");
        let expected: String = (number..200_000).map(|number| format!("line {number}\n")).collect();
        assert!(left == expected, "no line in between is missing");
        assert!(!scene.marks("a").is_empty());
    }

    #[test]
    fn a_log_that_was_emptied_by_somebody_begins_anew() {
        let mut scene = Scene::new();
        scene.write("a", b"a long first line\n");
        scene.pass();
        let path = scene.processes.log_file("a").unwrap();
        OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
        scene.write("a", b"short\n");
        scene.pass();
        assert_eq!((scene.marks("a"), scene.read("a").as_str()), (vec![6], "short\n"));
    }

    #[test]
    fn the_oldest_logs_of_runs_that_are_over_are_removed() {
        let mut scene = Scene::new();
        let old = SystemTime::now() - Duration::from_secs(3600);
        for (id, age) in [("oldest", 2), ("older", 1), ("old", 0)] {
            scene.write(id, &[b'x'; 128 * 1024]);
            let file = File::open(scene.processes.log_file(id).unwrap()).unwrap();
            file.set_modified(old - Duration::from_secs(age)).unwrap();
        }
        scene.write("young", &[b'x'; 128 * 1024]);
        scene.pass();
        let mut left = ids_in(&scene.processes.directory.join("logs"));
        left.sort();
        assert_eq!(left, ["old", "young"]);
        assert!(scene.marks("oldest").is_empty());
    }

    #[test]
    fn too_many_marks_become_half_as_many_and_the_last_one_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("marks");
        let all: Vec<Mark> =
            (1..=9).map(|bytes| Mark { bytes, at_unix_milliseconds: bytes }).collect();
        marks::replace(&path, &all).unwrap();
        assert_eq!(thin(&path).unwrap(), 5);
        let left: Vec<u64> = marks::read(&path).iter().map(|mark| mark.bytes).collect();
        assert_eq!(left, [2, 4, 6, 8, 9]);
    }
}
