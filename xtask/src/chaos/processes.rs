//! What the kernel says of processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Living {
    pub(crate) pid: u32,
    pub(crate) words: Vec<String>,
}

/// Every process that was started with something below this folder.
pub(crate) fn left_in(folder: &Path) -> Vec<Living> {
    let folder = folder.to_string_lossy();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse::<u32>().ok());
    let all = pids.filter(|pid| *pid != std::process::id()).filter_map(living);
    all.filter(|living| living.words.iter().any(|word| word.contains(&*folder))).collect()
}

fn living(pid: u32) -> Option<Living> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Some(Living { pid, words })
}

/// The folder of the claim `data` of whoever writes into this folder of acknowledged records.
pub(crate) fn volume_of(records: &Path) -> Option<PathBuf> {
    let is_writer = |living: &Living| {
        living
            .words
            .windows(2)
            .any(|two| two[0] == "write-numbers" && Path::new(&two[1]) == records)
    };
    let writers = left_in(records).into_iter().filter(is_writer);
    let folder = |living: Living| {
        let bytes = std::fs::read(format!("/proc/{}/environ", living.pid)).ok()?;
        let mut all = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        all.find_map(|it| it.strip_prefix("INTERLOCK_VOLUME_DATA=").map(PathBuf::from))
    };
    writers.filter_map(folder).next()
}

/// Sends a signal: `KILL`, `STOP`, `CONT`, `TERM`. The process may be gone by itself.
pub(crate) fn signal(pid: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null());
    let _ = kill.status();
}
