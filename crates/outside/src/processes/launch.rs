//! A child that waits at a gate until its pid is on disk.
//!
//! The gate is a pair of sockets. The forked child makes itself the leader of a session, says its
//! pid, and waits; the program it is to become is not executed before a word arrives. If the gate
//! is shut instead, or the program that forked it dies, the child ends and has done nothing.

use super::dispositions;
use super::durable;
use super::record::{Exit, now_unix_milliseconds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tracing::{debug, warn};

const GO: u8 = b'g';
/// How often a waiting child looks whether the program that forked it still lives.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const BETWEEN_WRITES: Duration = Duration::from_secs(1);

/// A child at the gate. Dropped, it shuts the gate, and the child ends.
pub(super) struct Launch {
    gate: Gate,
    pid: i32,
    executed: mpsc::Receiver<io::Result<()>>,
}

struct Gate(UnixStream);

impl Drop for Gate {
    fn drop(&mut self) {
        // The child has a copy of this end, so closing it alone would tell nothing. An error means
        // that nobody waits any more.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let _ = self.gate.0.shutdown(Shutdown::Both);
        // Whoever gives a launch up may rely on it that its child is gone. After the gate was
        // opened, this is answered already.
        let _ = self.executed.recv();
    }
}

impl Launch {
    /// Forks the child up to the gate. A thread waits for its end and writes it to `exit_path`: so
    /// nothing of ours stands in the way of whatever else the program does with its children.
    pub(super) fn to_the_gate(
        mut command: Command,
        lock: &Arc<OwnedFd>,
        exit_path: PathBuf,
    ) -> io::Result<Launch> {
        let (gate, childs_end) = UnixStream::pair()?;
        let mut gate = Gate(gate);
        wait_at_the_gate(&mut command, childs_end, Arc::clone(lock));
        let (tell, executed) = mpsc::channel();
        std::thread::Builder::new().name("run".to_owned()).spawn(move || {
            let spawned = command.spawn();
            // Our copies of the child's end and of the lock go before anyone is informed.
            drop(command);
            match spawned {
                Ok(child) => {
                    let _ = tell.send(Ok(()));
                    drop(tell);
                    wait_for_the_end(child, &exit_path);
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        })?;
        let mut pid = [0; 4];
        if let Err(error) = gate.0.read_exact(&mut pid) {
            drop(gate);
            return Err(executed.recv().ok().and_then(Result::err).unwrap_or(error));
        }
        Ok(Launch { gate, pid: i32::from_ne_bytes(pid), executed })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the child go, and returns when it executes its program or could not.
    pub(super) fn open_the_gate(mut self) -> io::Result<()> {
        let opened = self.gate.0.write_all(&[GO]);
        let executed = self.executed.recv();
        opened.and(executed.unwrap_or_else(|_| Err(Errno::CANCELED.into())))
    }
}

#[allow(unsafe_code)]
fn wait_at_the_gate(command: &mut Command, gate: UnixStream, lock: Arc<OwnedFd>) {
    let parent = rustix::process::getpid();
    let wait = move || -> io::Result<()> {
        dispositions::reset();
        rustix::process::setsid()?;
        let own = rustix::process::getpid().as_raw_nonzero().get();
        rustix::io::write(&gate, &own.to_ne_bytes())?;
        loop {
            let mut polled = [PollFd::new(&gate, PollFlags::IN)];
            let ready = poll(&mut polled, Some(&LOOK));
            if ready.is_ok_and(|count| count > 0) {
                break;
            }
            if rustix::process::getppid() != Some(parent) {
                // Nobody is left to be informed of an error, and telling would be an error again.
                rustix::process::kill_process(rustix::process::getpid(), Signal::KILL)?;
            }
        }
        let mut word = [0];
        if rustix::io::read(&gate, &mut word)? != 1 || word != [GO] {
            return Err(Errno::CANCELED.into());
        }
        // In this child alone, the lock outlives the execution of the program.
        rustix::io::fcntl_setfd(&*lock, FdFlags::empty())?;
        Ok(())
    };
    // SAFETY: between fork and exec in a program with threads, only what is async-signal-safe may
    // be done. The closure makes system calls (sigaction, setsid, getpid, write, poll, getppid, kill, read,
    // fcntl) on descriptors that it owns, with buffers on its stack. It allocates nothing, takes no
    // lock of the program, drops nothing that it captured, cannot panic, and its errors are bare
    // numbers.
    unsafe { command.pre_exec(wait) };
}

/// Writes how the child ended, and only then removes it from the process table: at every moment
/// one of the two says how it ended.
fn wait_for_the_end(mut child: Child, exit_path: &Path) {
    if let Some(exit) = end_of(&child) {
        let bytes = serde_json::to_vec(&exit).expect("three numbers are always JSON");
        while let Err(error) = durable::replace(exit_path, &bytes) {
            // Without its folder, the run has been forgotten, and nobody asks any more.
            if exit_path.parent().is_none_or(|folder| !folder.exists()) {
                break;
            }
            let path = exit_path.display();
            warn!(%path, %error, "cannot write how a run ended; trying again");
            std::thread::sleep(BETWEEN_WRITES);
        }
    }
    if let Err(error) = child.wait() {
        debug!(pid = child.id(), %error, "somebody else has waited for a run");
    }
}

/// Waits until the child has ended, and leaves it in the process table. Nothing if somebody else
/// in this program took it from there: then its exit code is lost.
fn end_of(child: &Child) -> Option<Exit> {
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = loop {
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Ok(status) => break status?,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    };
    Some(Exit {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        not_executed: None,
        at_unix_milliseconds: now_unix_milliseconds(),
    })
}

#[cfg(test)]
mod tests {
    use super::Launch;
    use crate::processes::table;
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const PLACE: &str = "INTERLOCK_TEST_PLACE";
    const OPENER: &str = "processes::launch::tests::an_opener_that_never_opens_its_gate";

    /// A command that would leave a trace, at the gate.
    fn at_the_gate(place: &Path) -> Launch {
        let mut command = Command::new("touch");
        command.arg(place.join("trace"));
        let lock = Arc::new(File::create(place.join("lock")).unwrap().into());
        Launch::to_the_gate(command, &lock, place.join("exit.json")).unwrap()
    }

    fn until_ended(pid: i32) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while table::look(pid).is_some_and(|process| process.lives()) {
            assert!(Instant::now() < deadline, "process {pid} still waits at the gate");
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_opened_gate_lets_the_command_run() {
        let place = tempfile::tempdir().unwrap();
        let launch = at_the_gate(place.path());
        let pid = launch.pid();
        launch.open_the_gate().unwrap();
        until_ended(pid);
        assert!(place.path().join("trace").exists());
    }

    #[test]
    fn a_shut_gate_ends_the_child_before_it_did_anything() {
        let place = tempfile::tempdir().unwrap();
        let launch = at_the_gate(place.path());
        let pid = launch.pid();
        assert!(table::look(pid).is_some_and(|process| process.session == pid));
        drop(launch);
        assert!(table::look(pid).is_none());
        assert!(!place.path().join("trace").exists());
    }

    #[test]
    fn a_child_at_the_gate_of_a_killed_opener_ends_before_it_did_anything() {
        let place = tempfile::tempdir().unwrap();
        let mut opener = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", OPENER, "--nocapture"])
            .env(PLACE, place.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(opener.stdout.take().unwrap());
        let told = |line: String| line.rsplit_once("at the gate: ")?.1.parse().ok();
        let pid = output.lines().map_while(Result::ok).find_map(told);
        opener.kill().unwrap();
        opener.wait().unwrap();
        until_ended(pid.expect("the opener tells who is at the gate"));
        assert!(!place.path().join("trace").exists());
    }

    /// Not a test of its own: what the one above kills. By itself, it does nothing.
    #[test]
    fn an_opener_that_never_opens_its_gate() {
        let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
        let launch = at_the_gate(&place);
        println!("\nat the gate: {}", launch.pid());
        loop {
            std::thread::park();
        }
    }
}
