//! The program nft, which people use as well: one run is one transaction of the kernel.

use crate::calls::Calls;
use crate::files::Lock;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A package that is being replaced is away for a moment.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Why nothing was done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no such program, or it cannot be started.
    Missing(String),
    /// It was started, and says this.
    Refused(String),
}

impl Trouble {
    pub(super) fn words(self) -> String {
        match self {
            Trouble::Missing(words) | Trouble::Refused(words) => words,
        }
    }
}

#[derive(Debug)]
pub(super) struct Nft {
    pub(super) program: PathBuf,
    pub(super) calls: Calls,
}

impl Nft {
    /// Where it is: Debian's is not on everybody's path.
    pub(super) fn program(named: &Path) -> PathBuf {
        let sbin = Path::new("/usr/sbin/nft");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|folder| folder.join(named).is_file());
        if named == Path::new("nft") && !is_there && sbin.is_file() {
            return sbin.to_owned();
        }
        named.to_owned()
    }

    /// Runs the commands, and returns what they list. The process holds the lock until it ends, even if we do not.
    pub(super) fn run(&self, lock: &Lock, commands: &str) -> Result<String, Trouble> {
        self.calls.before("nft");
        let mut tried = 0;
        let output = loop {
            tried += 1;
            match self.start(lock, commands) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && tried < TRIES => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                other => break other,
            }
        };
        let program = self.program.display();
        let output = output.map_err(|error| {
            Trouble::Missing(format!(
                "cannot start {program}: {error}; install the package nftables"
            ))
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // Each complaint repeats the whole batch in its second line.
        let said: Vec<&str> = said.lines().filter(|line| line.contains("rror")).collect();
        let said = if said.is_empty() { output.status.to_string() } else { said.join("; ") };
        Err(Trouble::Refused(format!("nft says: {said}")))
    }

    fn start(&self, lock: &Lock, commands: &str) -> io::Result<std::process::Output> {
        Command::new(&self.program)
            .args(["-j", "-f", "-"])
            .env("LC_ALL", "C")
            .stdin(lock.as_input(commands)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?
            .wait_with_output()
    }
}
