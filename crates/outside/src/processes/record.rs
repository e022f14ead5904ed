//! The record of a run: what is on disk about it before its command runs.

use super::error::{Error, Result};
use super::{Processes, durable, names, table};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is written before a start, and again when its process is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) epoch: i64,
    /// Differs between any two starts, also of one run.
    pub(super) token: String,
    pub(super) lock: String,
    pub(super) lock_generation: u64,
    pub(super) boot_id: String,
    pub(super) grace_seconds: u64,
    pub(super) command: Vec<String>,
    /// The real paths of its volumes.
    #[serde(default)]
    pub(super) volumes: Vec<PathBuf>,
    /// Where its commands run; none in records of earlier versions.
    #[serde(default)]
    pub(super) folder: Option<PathBuf>,
    /// What is run before it is asked to stop.
    #[serde(default)]
    pub(super) pre_stop: Vec<String>,
    /// Absent while starting: the command has then never run.
    pub(super) leader: Option<Leader>,
}

/// The process that leads the session of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Leader {
    pub(super) pid: i32,
    pub(super) start_time: u64,
    pub(super) since_unix_milliseconds: u64,
}

/// How the leader ended, as seen by the program that started it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Exit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// The kernel's number for why the command could not be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not_executed: Option<i32>,
    pub(super) at_unix_milliseconds: u64,
}

impl Processes {
    pub(super) fn run_folder(&self, id: &str) -> Result<PathBuf> {
        Ok(self.directory.join("runs").join(names::checked("run", id)?))
    }

    pub(super) fn record_path(&self, id: &str) -> Result<PathBuf> {
        Ok(self.run_folder(id)?.join("run.json"))
    }

    pub(super) fn exit_path(&self, record: &Record) -> Result<PathBuf> {
        Ok(self.run_folder(&record.id)?.join(format!("exit-{}.json", record.token)))
    }

    /// The record, if the run has one. A damaged one is an error, never taken for none.
    pub(super) fn record(&self, id: &str) -> Result<Option<Record>> {
        let path = self.record_path(id)?;
        let Some(bytes) = durable::read(&path)? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(record) => Ok(Some(record)),
            Err(source) => Err(Error::DamagedRecord { id: id.to_owned(), path, source }),
        }
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<()> {
        let path = self.record_path(&record.id)?;
        let bytes = serde_json::to_vec_pretty(record).map_err(std::io::Error::from);
        let bytes = bytes.map_err(|source| Error::Write { path: path.clone(), source })?;
        durable::replace(&path, &bytes)
    }

    /// The ids of all runs that have a folder, in order.
    pub(super) fn run_ids(&self) -> Result<Vec<String>> {
        let path = self.directory.join("runs");
        let failed = |source| Error::Read { path: path.clone(), source };
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            ids.extend(entry.map_err(failed)?.file_name().into_string());
        }
        ids.retain(|id| names::checked("run", id).is_ok());
        ids.sort();
        Ok(ids)
    }

    /// The number of the session that the run leads, unless it is certain that nobody is left in
    /// it: the machine was restarted since, or the number means another process by now. The kernel
    /// gives a number to no other process while anyone is in the session of that number.
    pub(super) fn session_of(&self, record: &Record) -> Option<i32> {
        let leader = record.leader.filter(|_| record.boot_id == self.boot_id)?;
        match table::look(leader.pid) {
            Some(process) if process.start_time != leader.start_time => None,
            _ => Some(leader.pid),
        }
    }
}

/// The time as it is written in records.
pub(super) fn now_unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time as it is handed out. A record may say anything, so it may also say too much.
pub(super) fn time_of(unix_milliseconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(unix_milliseconds)).unwrap_or(UNIX_EPOCH)
}
