//! The end of a command beside a run, whoever brings it about.

use super::super::stop::signal_exactly;
use super::super::table;
use super::{Leader, Left};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tracing::debug;

/// What is to be done when a command ends.
pub(super) struct Ending {
    pub(super) leader: Leader,
    pub(super) on_end: Box<dyn FnOnce(Left) + Send>,
}

/// How long a session has after SIGHUP.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is killed again: a process may have been born meanwhile.
const KILLS: u32 = 20;
const BETWEEN_KILLS: Duration = Duration::from_millis(20);
/// Where processes cannot be waited for as descriptors, the process table is read.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits for the end of a command, or brings it about: when the other end of `dropped` is closed, or the leader of
/// the run ends.
pub(super) fn wait(mut child: Child, ending: &mpsc::Receiver<Ending>, dropped: &OwnedFd) {
    let Ok(ending) = ending.recv() else {
        // It got no word: what it reads is closed, and it ends.
        let _ = child.wait();
        return;
    };
    let session = i32::try_from(child.id()).unwrap_or(0);
    let why = first_of(&mut child, ending.leader, dropped);
    let left = match why {
        First::Child => left(&mut child),
        First::Dropped => {
            end(session, &mut child);
            left(&mut child)
        }
        First::Leader => {
            end(session, &mut child);
            let _ = child.wait();
            Left::WithTheRun
        }
    };
    debug!(session, ?left, "a command beside a run has ended");
    (ending.on_end)(left);
}

enum First {
    Child,
    Leader,
    Dropped,
}

/// What happens first.
fn first_of(child: &mut Child, leader: Leader, dropped: &OwnedFd) -> First {
    let handle = |pid: i32| {
        let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        pidfd_open(pid, PidfdFlags::empty())
    };
    let of_child = handle(i32::try_from(child.id()).unwrap_or(0)).ok();
    // The handle is of the leader if that lives after it was opened.
    let of_leader = handle(leader.pid).ok();
    let can_wait = of_child.is_some() && of_leader.is_some();
    loop {
        if has_ended(child) {
            return First::Child;
        }
        if !leader.lives() {
            return First::Leader;
        }
        let mut polled = vec![PollFd::new(dropped, PollFlags::IN)];
        polled.extend(
            [&of_child, &of_leader].into_iter().flatten().map(|it| PollFd::new(it, PollFlags::IN)),
        );
        let ready = poll(&mut polled, (!can_wait).then_some(&LOOK));
        if ready.is_ok() && !polled[0].revents().is_empty() {
            // A command that has ended by itself has ended so, whoever else goes meanwhile.
            return if has_ended(child) { First::Child } else { First::Dropped };
        }
    }
}

fn has_ended(child: &mut Child) -> bool {
    // An error says that somebody else has waited for it.
    !matches!(child.try_wait(), Ok(None))
}

fn left(child: &mut Child) -> Left {
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Left::Code(code),
            (None, Some(signal)) => Left::Code(128 + signal),
            (None, None) => Left::Unknown,
        },
        Err(_) => Left::Unknown,
    }
}

/// Ends every process of a session.
fn end(session: i32, child: &mut Child) {
    signal(session, Signal::HUP);
    let until = Instant::now() + GRACE;
    while !has_ended(child) && Instant::now() < until {
        std::thread::sleep(BETWEEN_KILLS);
    }
    for _ in 0..KILLS {
        if signal(session, Signal::KILL) == 0 {
            return;
        }
        std::thread::sleep(BETWEEN_KILLS);
    }
}

/// Sends a signal to every process of a session, and says how many live.
fn signal(session: i32, signal: Signal) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let members = pids.filter_map(table::look);
    let members = members.filter(|process| process.session == session && process.lives());
    let mut living = 0;
    for process in members {
        // One that has ended in the meantime cannot be signalled, and is not there the next time.
        let _ = signal_exactly(process.pid, process.start_time, signal);
        living += 1;
    }
    living
}
