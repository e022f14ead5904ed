//! Who we are, so that others can tell whether we still live.

use crate::seal::{hexadecimal, random};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The name of this machine, as every restic on it says it.
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// One process, distinguished from every other that ever was. restic's locks say host and number only,
/// which a container shares with others, and a later process may have again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Random.
    token: String,
    /// Which start of the kernel.
    boot: String,
    /// In which numbers of processes count.
    namespace: String,
    pid: i64,
    /// When it was started, in ticks since the start of the kernel.
    started: String,
}

impl Process {
    /// This one.
    pub(crate) fn this() -> &'static Process {
        static THIS: OnceLock<Process> = OnceLock::new();
        THIS.get_or_init(|| {
            let pid = i64::from(std::process::id());
            Process {
                token: hexadecimal(&random::<16>()),
                boot: boot(),
                namespace: namespace(),
                pid,
                started: started(pid).unwrap_or_default(),
            }
        })
    }

    pub(crate) fn is_this(&self) -> bool {
        self.token == Process::this().token
    }

    /// Whether it is certain that this process is no more.
    pub(crate) fn is_provably_dead(&self) -> bool {
        let is_visible = !self.boot.is_empty()
            && !self.namespace.is_empty()
            && !self.started.is_empty()
            && self.boot == boot()
            && self.namespace == namespace();
        is_visible && !self.is_this() && started(self.pid).as_ref() != Some(&self.started)
    }
}

/// Whether a process with this number is visible.
pub(crate) fn is_running(pid: i64) -> bool {
    started(pid).is_some()
}

fn boot() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_default().trim().to_owned()
}

fn namespace() -> String {
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    namespace.map(|link| link.display().to_string()).unwrap_or_default()
}

fn started(pid: i64) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets, which may have anything in it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_with_its_number_does_not() {
        let this = Process::this().clone();
        assert!(!this.is_provably_dead());
        let earlier = Process { token: "x".into(), started: "1".into(), ..this.clone() };
        assert!(earlier.is_provably_dead());
        let same_but_token = Process { token: "x".into(), ..this };
        assert!(!same_but_token.is_provably_dead(), "it may have been another copy of our code");
    }

    #[test]
    fn nothing_is_proven_about_hidden_processes() {
        let this = Process::this().clone();
        let gone = Process { token: "x".into(), started: "1".into(), ..this };
        assert!(!Process { boot: "other".into(), ..gone.clone() }.is_provably_dead());
        assert!(!Process { namespace: "pid:[1]".into(), ..gone.clone() }.is_provably_dead());
        assert!(!Process { started: String::new(), ..gone }.is_provably_dead());
    }
}
