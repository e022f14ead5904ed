//! The process table: what `/proc` says about the processes of this machine.
//!
//! A process may end while it is read. It is then as if it had not been there.

use rustix::process::Signal;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A flag of the kernel, `PF_FORKNOEXEC`. It is the 1 in the column F of ps(1).
const FORKED_BUT_NOT_EXECUTED: u32 = 0x40;
/// A flag of the kernel, `PF_KTHREAD`.
const IS_OF_THE_KERNEL: u32 = 0x0020_0000;

/// One line of the process table.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) name: String,
    /// One letter as in `ps`: R, S, D, T, Z, ...
    pub(super) state: char,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Whether it has executed a program since it was forked.
    pub(super) has_executed: bool,
    environment: EnvironmentSize,
    image: Image,
    threads: i64,
    /// Ticks since the machine booted. With the pid, it names a process for a whole boot.
    pub(super) start_time: u64,
    /// As `wait(2)` encodes it; meant only once the process is a zombie.
    wait_status: i32,
}

impl Process {
    /// Whether it can still do anything. A zombie cannot, unless it is only the first thread of a
    /// process whose other threads go on.
    pub(super) fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || self.threads > 1
    }

    /// The program that it executes, by which its environment may be remembered: not before it has executed one of its
    /// own, and not if the kernel does not show us where it is.
    fn program(&self) -> Option<Image> {
        let Image { code, stack, environment } = self.image;
        (self.has_executed && code > 1 && stack > 1 && environment > 1).then_some(self.image)
    }

    /// How a zombie ended, for as long as nobody has waited for it. The kernel shows this to the
    /// process's own user only, and zero to everyone else: then nothing is known.
    pub(super) fn wait_status(&self) -> Option<i32> {
        let owner = fs::metadata(format!("/proc/{}", self.pid)).ok()?.uid();
        let own = rustix::process::geteuid();
        (own.is_root() || own.as_raw() == owner).then_some(self.wait_status)
    }
}

/// Where the kernel has put the program that a process executes: at another place each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Image {
    code: u64,
    stack: u64,
    environment: u64,
}

/// How large the environment of a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnvironmentSize {
    Bytes(u64),
    /// A thread of the kernel has none.
    Never,
    /// The process executes a program or ends at this moment, or is not ours to look into.
    NotShown,
}

impl EnvironmentSize {
    fn from(flags: u32, start: Option<&str>, end: Option<&str>) -> EnvironmentSize {
        if flags & IS_OF_THE_KERNEL != 0 {
            return EnvironmentSize::Never;
        }
        let address = |field: Option<&str>| field.and_then(|text| text.parse::<u64>().ok());
        match (address(start), address(end)) {
            (Some(start), Some(end)) if start > 0 && end >= start => {
                EnvironmentSize::Bytes(end - start)
            }
            _ => EnvironmentSize::NotShown,
        }
    }

    /// Whether so much of it is all of it.
    fn is_whole(self, bytes: usize) -> bool {
        match self {
            EnvironmentSize::Bytes(size) => u64::try_from(bytes) == Ok(size),
            EnvironmentSize::Never => true,
            EnvironmentSize::NotShown => false,
        }
    }
}

/// The process with this pid, if there is one now.
pub(super) fn look(pid: i32) -> Option<Process> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// A living process with what tells to which run it belongs.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) process: Process,
    named: Arc<Named>,
    /// The files of one folder that it has open, once somebody asked.
    open: OnceCell<Vec<(PathBuf, FileUse)>>,
    folder: Arc<Path>,
}

impl Seen {
    /// The run that its environment named when the program was started.
    pub(super) fn run(&self) -> Option<&[u8]> {
        self.named.run.as_deref()
    }

    /// The lock that its environment named when the program was started.
    pub(super) fn lock(&self) -> Option<&[u8]> {
        self.named.lock.as_deref()
    }

    /// How it has this file open, at most. Looks into the open files of the process when it is asked first.
    pub(super) fn use_of(&self, path: &Path) -> FileUse {
        let open = self.open.get_or_init(|| open_files(self.process.pid, &self.folder));
        let uses = open.iter().filter(|(open, _)| open == path).map(|(_, file_use)| *file_use);
        uses.max().unwrap_or(FileUse::NotOpen)
    }
}

/// What the environment of a program says of the run that it belongs to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    run: Option<Vec<u8>>,
    lock: Option<Vec<u8>>,
}

/// The variables that name a run and its lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) run: &'static str,
    pub(super) lock: &'static str,
}

/// What was read of a process, for as long as it executes the same program.
#[derive(Debug)]
struct Known {
    image: Image,
    named: Arc<Named>,
}

/// What is remembered of the processes of this machine: the environments of their programs, so that with a thousand
/// runs not a thousand of them are read for each question. Whether a process lives, and what it executes, is always read.
#[derive(Debug, Default)]
pub(super) struct Environments(Mutex<HashMap<(i32, u64), Known>>);

impl Environments {
    /// All living processes except this one, in one pass. Those of other users are seen without their files and variables.
    pub(super) fn others(&self, folder: &Path, names: Names) -> io::Result<Vec<Seen>> {
        let own = i32::try_from(std::process::id()).ok();
        let folder: Arc<Path> = folder.into();
        let (mut seen, mut remembered) = (Vec::new(), HashMap::new());
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            if Some(pid) == own {
                continue;
            }
            let Some(process) = look(pid).filter(Process::lives) else { continue };
            let (named, image) = self.of(&process, names);
            if let Some(image) = image {
                let known = Known { image, named: Arc::clone(&named) };
                remembered.insert((pid, process.start_time), known);
            }
            seen.push(Seen { process, named, open: OnceCell::new(), folder: Arc::clone(&folder) });
        }
        // Whoever is not among them has ended.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
        Ok(seen)
    }

    /// What the environment of a process says, and the program of which it may be remembered.
    fn of(&self, process: &Process, names: Names) -> (Arc<Named>, Option<Image>) {
        let key = (process.pid, process.start_time);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key).filter(|known| known.image == process.image) {
            return (Arc::clone(&known.named), Some(process.image));
        }
        drop(known);
        let (environment, whole) = Environment::of(process);
        let value = |name| environment.value(name).map(<[u8]>::to_vec);
        let named = Named { run: value(names.run), lock: value(names.lock) };
        (Arc::new(named), whole)
    }
}

/// Reads `/proc/<pid>/stat`. The name stands in brackets and may itself hold brackets and spaces,
/// so the fields are counted from the last closing one.
fn parse(line: &[u8]) -> Option<Process> {
    let line = String::from_utf8_lossy(line);
    let (front, back) = line.rsplit_once(')')?;
    let (pid, name) = front.split_once(" (")?;
    let fields: Vec<&str> = back.split_whitespace().collect();
    // Field numbers as in proc(5), which counts from one and has the pid and the name first.
    let field = |number: usize| fields.get(number - 3).copied();
    let flags = field(9)?.parse::<u32>().ok()?;
    let address = |number: usize| field(number).and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(Process {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        has_executed: flags & FORKED_BUT_NOT_EXECUTED == 0,
        environment: EnvironmentSize::from(flags, field(50), field(51)),
        image: Image { code: address(26), stack: address(28), environment: address(50) },
        threads: field(20)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
        wait_status: field(52).and_then(|status| status.parse().ok()).unwrap_or(0),
    })
}

/// The state in a line of `stat`, of a process or of a thread.
pub(super) fn state(line: &[u8]) -> Option<char> {
    parse(line).map(|process| process.state)
}

/// Whether a SIGSTOP was sent to the process, and none of its threads has stopped by it yet.
pub(super) fn is_stop_pending(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    // Signals to the process as a whole; those to one thread are in `SigPnd`, and are not ours.
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = pending.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    pending.is_some_and(|signals| signals & 1 << (Signal::STOP.as_raw() - 1) != 0)
}

/// The environment a process was started with; empty if it may not be read.
#[derive(Debug)]
struct Environment(Vec<u8>);

/// How often an environment is read that is not there yet, and how long it is waited for.
const READS: u32 = 100;
const BETWEEN_READS: Duration = Duration::from_millis(1);

impl Environment {
    /// A process that executes a program has no environment for some microseconds: the old one is
    /// gone, and the new one is not shown yet. Whoever began to read the old one sees its beginning
    /// only. So it is read again until it is whole. Otherwise a process that is known by nothing
    /// else would be taken for gone.
    ///
    /// The wait is bounded: a program may be on a file system that does not answer.
    ///
    /// Beside it, the program whose whole environment it is; None if it may be another's, or is not all of it.
    fn of(process: &Process) -> (Environment, Option<Image>) {
        let path = format!("/proc/{}/environ", process.pid);
        let mut seen = process.clone();
        let mut environment = Vec::new();
        for _ in 0..READS {
            let Ok(read) = fs::read(&path) else { break };
            environment = read;
            let is_whole = seen.environment.is_whole(environment.len());
            // It may have executed a program since it was seen, or be doing so now.
            let now = look(process.pid).filter(|now| now.start_time == process.start_time);
            match now {
                Some(now) if is_whole && now.image == seen.image => {
                    return (Environment(environment), seen.program());
                }
                Some(now) if !is_whole && now.state != 'Z' => seen = now,
                _ => break,
            }
            if !seen.environment.is_whole(environment.len()) {
                std::thread::sleep(BETWEEN_READS);
            }
        }
        (Environment(environment), None)
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        self.0.split(|byte| *byte == 0).find_map(|variable| {
            variable.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
        })
    }
}

/// How a process has a file open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileUse {
    NotOpen,
    /// Closed when the process executes another program: so do the openers of locks have it.
    ForItself,
    /// Passed on to other programs: so do runs have their lock, and nobody else.
    Inherited,
}

const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// The files of this folder that a process has open. Only the links in `/proc` are read: to ask
/// the files themselves could wait for ever on a file system that does not answer.
fn open_files(pid: i32, folder: &Path) -> Vec<(PathBuf, FileUse)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let open = entries.flatten().filter_map(|entry| {
        let path = fs::read_link(entry.path()).ok().filter(|path| path.starts_with(folder))?;
        Some((path, use_of_descriptor(pid, &entry.file_name().to_string_lossy())))
    });
    open.collect()
}

fn use_of_descriptor(pid: i32, descriptor: &str) -> FileUse {
    let Ok(info) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")) else {
        return FileUse::NotOpen;
    };
    let flags = info
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    match flags {
        Some(flags) if flags & CLOSE_ON_EXEC == 0 => FileUse::Inherited,
        _ => FileUse::ForItself,
    }
}

#[cfg(test)]
mod tests {
    use super::{EnvironmentSize, parse};

    const TAIL: &str = "1 40 41 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 0 0 0 \
                        0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 256";

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let process = parse(format!("42 (a) S 7) Z {TAIL}").as_bytes()).unwrap();
        assert_eq!((process.pid, process.name.as_str(), process.state), (42, "a) S 7", 'Z'));
        assert_eq!((process.group, process.session, process.start_time), (40, 41, 98765));
        assert_eq!((process.parent, process.wait_status), (1, 256));
    }

    #[test]
    fn a_process_that_was_forked_has_not_executed_a_program_yet() {
        let executed = parse(format!("42 (a) S {TAIL}").as_bytes()).unwrap();
        let flags = TAIL.replacen("4194560", "4194624", 1);
        let forked = parse(format!("42 (a) S {flags}").as_bytes()).unwrap();
        assert_eq!((executed.has_executed, forked.has_executed), (true, false));
    }

    #[test]
    fn an_environment_is_whole_if_it_is_as_large_as_the_kernel_says() {
        let size = |flags, start, end| EnvironmentSize::from(flags, Some(start), Some(end));
        assert_eq!(size(0, "1000", "1030"), EnvironmentSize::Bytes(30));
        assert!(size(0, "1000", "1030").is_whole(30) && !size(0, "1000", "1030").is_whole(0));
        assert!(size(0, "1000", "1000").is_whole(0), "it was started with none");
        // While a program is executed.
        assert!(!size(0, "0", "0").is_whole(0) && !size(0, "1000", "0").is_whole(0));
        assert!(size(super::IS_OF_THE_KERNEL, "0", "0").is_whole(0));
        assert_eq!(EnvironmentSize::from(0, None, None), EnvironmentSize::NotShown);
    }

    #[test]
    fn a_zombie_with_other_threads_still_lives() {
        let alone = parse(format!("42 (a) Z {TAIL}").as_bytes()).unwrap();
        let threads = TAIL.replacen("20 0 1 0", "20 0 2 0", 1);
        let not_alone = parse(format!("42 (a) Z {threads}").as_bytes()).unwrap();
        assert_eq!((alone.lives(), not_alone.lives()), (false, true));
    }

    #[test]
    fn a_line_cut_short_is_no_process() {
        assert!(parse(b"42 (a) S 1 2").is_none());
        assert!(parse(b"").is_none());
    }
}
