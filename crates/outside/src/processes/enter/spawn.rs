//! A shell with the variables of a run, which waits for a word before it becomes the command.

use super::super::dispositions;
use super::end::{self, Ending};
use super::{Entered, Entry, Hold, Leader, Left, Surroundings};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Signal, ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;

/// Reads the word byte by byte, so that what follows it is left for the command.
const READS_ON: &str = "read -r _ || exit 126; exec \"$@\"";
/// The command reads nothing.
const READS_NOTHING: &str = "read -r _ || exit 126; exec \"$@\" </dev/null";
/// The word came by another way than what the command reads: its terminal, which it writes to.
const READS_TERMINAL: &str = "read -r _ || exit 126; exec \"$@\" <&1";
const WORD: &[u8] = b"go\n";

/// A shell that waits. Dropped, it gets no word, and ends.
pub(super) struct Waiting {
    stdin: ChildStdin,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
    keeps_stdin: bool,
    hold: OwnedFd,
    ending: mpsc::Sender<Ending>,
}

/// What the thread that starts a command needs.
struct Start {
    command: Command,
    /// Dropped when whoever has the command does not want it any more.
    dropped: OwnedFd,
    ending: mpsc::Receiver<Ending>,
}

/// Starts the shell.
pub(super) fn waiting(entry: &Entry, surroundings: &Surroundings) -> io::Result<Waiting> {
    let script = match entry {
        Entry { terminal: true, .. } => READS_TERMINAL,
        Entry { stdin: true, .. } => READS_ON,
        Entry { .. } => READS_NOTHING,
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).args(&entry.command);
    command.env_clear().envs(&surroundings.variables).current_dir(&surroundings.folder);
    command.stdin(Stdio::piped());
    let terminal = match entry.terminal {
        true => Some(Terminal::open()?),
        false => None,
    };
    let own_end = match terminal {
        Some(Terminal { own, theirs }) => {
            command.stdout(theirs.try_clone()?).stderr(theirs.try_clone()?);
            if !surroundings.variables.contains_key(std::ffi::OsStr::new("TERM")) {
                command.env("TERM", "xterm");
            }
            begin_session(&mut command, Some(theirs));
            Some(own)
        }
        None => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            begin_session(&mut command, None);
            None
        }
    };
    let (hold, dropped) = held()?;
    let (ending, endings) = mpsc::channel();
    let mut child = start(Start { command, dropped, ending: endings })?;
    let stdin = child.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
    Ok(Waiting {
        stdin,
        stdout: child.stdout.take().map(OwnedFd::from),
        stderr: child.stderr.take().map(OwnedFd::from),
        terminal: own_end,
        keeps_stdin: entry.stdin && !entry.terminal,
        hold,
        ending,
    })
}

impl Waiting {
    /// Gives it the word.
    pub(super) fn go(
        mut self,
        leader: Leader,
        on_end: impl FnOnce(Left) + Send + 'static,
    ) -> io::Result<Entered> {
        let on_end = Box::new(on_end);
        // The thread waits for it; if it were gone, so were the shell.
        let _ = self.ending.send(Ending { leader, on_end });
        self.stdin.write_all(WORD)?;
        let stdin = OwnedFd::from(self.stdin);
        Ok(Entered {
            stdin: self.keeps_stdin.then_some(stdin),
            stdout: self.stdout,
            stderr: self.stderr,
            terminal: self.terminal,
            hold: Hold { _held: self.hold },
        })
    }
}

/// Starts the child in a thread of its own, which waits for its end: the kernel kills the child with that thread.
fn start(start: Start) -> io::Result<Pipes> {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().name("enter".to_owned());
    thread.spawn(move || {
        let Start { mut command, dropped, ending } = start;
        let spawned = command.spawn();
        // Our copies of the other end of a terminal go with it.
        drop(command);
        match spawned {
            Ok(mut child) => {
                let _ = tell.send(Ok(Pipes::of(&mut child)));
                end::wait(child, &ending, &dropped);
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it has ended")))
}

/// Our ends of what a child reads and writes.
struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<std::process::ChildStdout>,
    stderr: Option<std::process::ChildStderr>,
}

impl Pipes {
    fn of(child: &mut Child) -> Pipes {
        Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        }
    }
}

/// A pair of which one end shows when the other is dropped.
fn held() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// Both ends of a terminal.
struct Terminal {
    own: OwnedFd,
    theirs: OwnedFd,
}

impl Terminal {
    fn open() -> io::Result<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let own = openpt(flags)?;
        grantpt(&own)?;
        unlockpt(&own)?;
        let theirs = ioctl_tiocgptpeer(&own, flags)?;
        // Of our end alone: the command waits for what it reads, as always.
        fcntl_setfl(&own, fcntl_getfl(&own)? | OFlags::NONBLOCK)?;
        Ok(Terminal { own, theirs })
    }
}

#[allow(unsafe_code)]
fn begin_session(command: &mut Command, terminal: Option<OwnedFd>) {
    let begin = move || -> io::Result<()> {
        dispositions::reset();
        setsid()?;
        if let Some(terminal) = &terminal {
            ioctl_tiocsctty(terminal)?;
        }
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: between fork and exec in a program with threads, only what is async-signal-safe may be done. The
    // closure makes system calls (sigaction, setsid, ioctl, prctl) on a descriptor that it owns. It allocates nothing,
    // takes no lock of the program, drops nothing that it captured, cannot panic, and its errors are bare numbers.
    unsafe { command.pre_exec(begin) };
}
