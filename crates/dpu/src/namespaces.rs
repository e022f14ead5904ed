//! An agent in namespaces of its own: it enters them before it has a second thread.
//!
//! A process with several threads cannot enter a user namespace at all, and entering a network namespace moves the
//! calling thread only: the others would go on with the interfaces of the machine. So the agent of a DPU that is a
//! namespace is a child process, and enters both first thing in `main`.

use interlock_nodes::outside::Failure;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// The namespaces to enter, as files below /proc or where they are mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// The user namespace, in which the process then has all capabilities; none: it stays in its own.
    pub user: Option<PathBuf>,
    /// The network namespace; none: it stays in its own.
    pub network: Option<PathBuf>,
}

impl Namespaces {
    /// Enters them, the user namespace first. Refused if the process has more than one thread.
    pub fn enter(&self) -> Result<(), Failure> {
        let failed = |what: &str, error: &io::Error| Failure {
            reason: "NamespaceNotEntered",
            message: format!("cannot {what}: {error}"),
        };
        let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
        let threads =
            threads.map_err(|error| failed("count the threads of this process", &error))?;
        if threads != 1 {
            let error = io::Error::other(format!("the process has {threads} threads already"));
            return Err(failed("enter namespaces", &error));
        }
        // Both are opened first: as somebody else in the user namespace, one may not reach the other's file.
        let mut opened = Vec::new();
        for (path, kind) in
            [(&self.user, LinkNameSpaceType::User), (&self.network, LinkNameSpaceType::Network)]
        {
            let Some(path) = path else { continue };
            let what = format!("enter the namespace {}", path.display());
            let file = File::open(path).map_err(|error| failed(&what, &error))?;
            opened.push((file, kind, what));
        }
        for (file, kind, what) in opened {
            let entered = move_into_link_name_space(file.as_fd(), Some(kind));
            entered.map_err(|error| failed(&what, &error.into()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_enters_nothing() {
        // The harness of tests has a thread for each test, and one of its own.
        let refused = Namespaces::default().enter().unwrap_err();
        assert!(refused.message.ends_with("threads already"), "{}", refused.message);
    }
}
