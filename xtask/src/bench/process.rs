//! A server that runs while it is measured, in a directory of its own.

use crate::scratch;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long a server may take to start or to stop.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How many ticks of the kernel's accounts are a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// A directory that is gone afterwards. All are on one file system, that of the build.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// A new one.
    pub(crate) fn new(name: &str) -> anyhow::Result<Self> {
        let path = scratch().join("bench").join(format!("{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Directory(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    name: String,
    started: Instant,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let (sender, lines) = mpsc::channel();
        let errors = child.stderr.take().context("the server has no standard error")?;
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                // Read on when nobody listens, or the server would stand still.
                let _ = sender.send(line);
            }
        });
        Ok(Running { child, lines, name, started })
    }

    /// Waits for a line with this word in it; how long it took since the start, and the line.
    pub(crate) fn says(&self, word: &str) -> anyhow::Result<(Duration, String)> {
        let mut last = String::new();
        while let Ok(line) = self.lines.recv_timeout(TIMEOUT) {
            if line.contains(word) {
                return Ok((self.started.elapsed(), line));
            }
            last = line;
        }
        bail!("{} does not say {word:?}; it last said {last:?}", self.name)
    }

    /// Waits until something is true; how long it took since the start.
    pub(crate) fn becomes(&self, is_true: impl Fn() -> bool) -> anyhow::Result<Duration> {
        while !is_true() {
            if self.started.elapsed() > TIMEOUT {
                bail!("{} does not become ready", self.name);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self.started.elapsed())
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The memory it uses, with the pages of files that it has mapped.
    pub(crate) fn resident_bytes(&self) -> f64 {
        self.status_bytes("VmRSS:")
    }

    /// The most that it has used.
    pub(crate) fn peak_bytes(&self) -> f64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, name: &str) -> f64 {
        let path = format!("/proc/{}/status", self.pid());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kilobytes.unwrap_or(f64::NAN) * 1024.0
    }

    /// The time of the processor that it has used so far.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        processor_seconds(&self.pid().to_string(), [11, 12])
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let asked = Instant::now();
        Command::new("kill").arg(self.pid().to_string()).status().context("cannot run kill")?;
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > TIMEOUT {
                bail!("{} does not stop", self.name);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `stop` there is nothing to end any more; after a failure there is.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The time of the processor that those programs have used which this one started, and which have ended.
pub(crate) fn ended_processor_seconds() -> anyhow::Result<f64> {
    processor_seconds("self", [13, 14])
}

/// The sum of some accounts of a process, by their places after its name.
fn processor_seconds(process: &str, places: [usize; 2]) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields = stat.rsplit_once(')').context("no /proc/PID/stat")?.1;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let mut ticks = 0.0;
    for place in places {
        ticks += fields.get(place).context("/proc/PID/stat has no times")?.parse::<f64>()?;
    }
    Ok(ticks / TICKS_PER_SECOND)
}

/// A port that is free now.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
