//! What a program costs that runs to its end: time, processor time and most memory, seen from outside.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many ticks of the kernel's accounts are a second.
const TICKS: f64 = 100.0;

/// What something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) processor_seconds: f64,
    pub(crate) memory_bytes: f64,
}

impl Cost {
    /// Runs something to its end, and until what it wrote is on the disk for good. What others left to
    /// be written is written first.
    pub(crate) fn of(command: &mut Command, writes_to: &Path) -> anyhow::Result<Self> {
        sync(writes_to)?;
        let began = Instant::now();
        let mut child =
            command.stdout(Stdio::null()).spawn().with_context(|| format!("{command:?}"))?;
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let mut memory_kilobytes = 0.0_f64;
        // Once it has ended, its memory is gone but its times are still to be read.
        let ticks = loop {
            let status = fs::read_to_string(process.join("status"))?;
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            if let Some(peak) = peak.and_then(|peak| peak.split_whitespace().next()) {
                memory_kilobytes = memory_kilobytes.max(peak.parse()?);
            }
            let stat = fs::read_to_string(process.join("stat"))?;
            let fields: Vec<&str> =
                stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
            if fields.first() == Some(&"Z") {
                let (user, system): (f64, f64) = (fields[11].parse()?, fields[12].parse()?);
                break user + system;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if !child.wait()?.success() {
            bail!("{command:?} failed");
        }
        sync(writes_to)?;
        Ok(Cost {
            seconds: began.elapsed().as_secs_f64(),
            processor_seconds: ticks / TICKS,
            memory_bytes: memory_kilobytes * 1024.0,
        })
    }
}

fn sync(folder: &Path) -> anyhow::Result<()> {
    let status = Command::new("sync").arg("--file-system").arg(folder).status()?;
    if !status.success() {
        bail!("cannot sync {}", folder.display());
    }
    Ok(())
}
