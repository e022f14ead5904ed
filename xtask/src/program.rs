//! Programs that are started, waited for, and ended.

use anyhow::{Context, bail};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that runs in the background, and ends with this.
pub(crate) struct Program(Child);

impl Program {
    /// Starts it in a folder, which gets its log.
    pub(crate) fn start(command: &mut Command, folder: &Path, name: &str) -> anyhow::Result<Self> {
        let log = File::options().create(true).append(true).open(folder.join(log_of(name)))?;
        let child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Program(child))
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    /// As a crash would end it.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name of a program's log.
pub(crate) fn log_of(name: &str) -> String {
    format!("{name}.log")
}

/// What a command prints; an error with what it complained of if it fails.
pub(crate) fn output(command: &mut Command, folder: &Path) -> anyhow::Result<String> {
    let output = command.current_dir(folder).output();
    let output = output.with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} {}: {}", command.get_program().display(), words.join(" "), complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until something is so.
pub(crate) fn eventually(
    what: &str,
    timeout: Duration,
    mut is_so: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while !is_so().unwrap_or(false) {
        if started.elapsed() > timeout {
            // Once more, for its own complaint.
            is_so()?;
            bail!("not within {} s: {what}", timeout.as_secs());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
